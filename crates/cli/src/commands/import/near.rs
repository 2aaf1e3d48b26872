//! Items on their way into a vault that this process serves itself.
//!
//! They go to the engine as they are. What the server would not take from others it does not
//! take from here either, so that the same export comes in alike on every way.

use std::collections::BTreeMap;

use serde_json::Value;
use yore_client::api::{DryRun, Imported, Item};
use yore_domain::ConversationId;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::memory::Foreign;
use yore_http::Limits;

use super::conversations::{id, weight};
use crate::app::Session;
use crate::failure::Result;

/// What became of items.
pub(super) enum Taken {
    /// The vault has taken them.
    Here(Imported),
    /// Another process serves the vault.
    Elsewhere(Vec<Item>),
}

/// Says of pieces of exports whether exactly they came in before; nothing where another process
/// serves the vault.
pub(super) async fn known(session: &Session<'_>, prints: Vec<String>) -> Result<Vec<bool>> {
    match session.here().await? {
        Some(here) => Ok(here.engine.imported(&here.call, prints).await?),
        None => Ok(vec![false; prints.len()]),
    }
}

/// Takes items in where this process is the server.
pub(super) async fn take(
    session: &Session<'_>,
    items: Vec<Item>,
    prints: BTreeMap<ConversationId, String>,
    dry_run: DryRun,
) -> Result<Taken> {
    let Some(here) = session.here().await? else { return Ok(Taken::Elsewhere(items)) };
    let mut refused = Vec::new();
    let mut left = Vec::with_capacity(items.len());
    for item in items {
        match fits(&item, &here.limits) {
            Ok(()) => left.push(item),
            Err(error) => refused.push((id(&item), error.to_string())),
        }
    }
    let mut done = match dry_run {
        DryRun::No => here.engine.import_as(&here.call, left, prints).await?,
        DryRun::Yes => here.engine.weigh_import(&here.call, left).await?,
    };
    done.rejected.append(&mut refused);
    Ok(Taken::Here(done))
}

/// Whether a request could carry the item.
fn fits(item: &Item, limits: &Limits) -> yore_domain::Result<()> {
    let plain = match item {
        Item::Conversation { conversation, messages } => {
            size(conversation, messages) < limits.heavy_body / 2
                && !is_deep(conversation, messages, limits.depth)
        }
        Item::Memory { .. } | Item::Profile(_) => false,
    };
    if plain {
        return Ok(());
    }
    let text = serde_json::to_vec(item).map_err(yore_domain::Error::internal)?;
    // Two levels stand around an item of a request.
    yore_http::parse::<Value>(&text, limits.heavy_body, limits.depth.saturating_sub(2)).map(drop)
}

fn size(head: &Conversation, messages: &[Message]) -> usize {
    let foreign = |foreign: &Foreign| foreign.values().map(weight).sum::<usize>();
    let said = messages.iter().map(|message| {
        weight(&message.content) + message.text.len() + foreign(&message.foreign) + 600
    });
    foreign(&head.foreign) + said.sum::<usize>() + 2000
}

/// Whether something of a conversation may nest deeper than a request.
fn is_deep(head: &Conversation, messages: &[Message], depth: usize) -> bool {
    // The request, its items, the item, its messages, the message, what is foreign; and for an
    // attachment three levels more.
    let (inside, attached) = (depth.saturating_sub(6), depth.saturating_sub(9));
    let deep = |foreign: &Foreign, depth: usize| foreign.values().any(|value| deeper(value, depth));
    deep(&head.foreign, inside)
        || messages.iter().any(|message| {
            deeper(&message.content, inside)
                || deep(&message.foreign, inside)
                || message.attachments.iter().any(|one| deep(&one.foreign, attached))
        })
}

fn deeper(value: &Value, depth: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(_) | Value::Object(_) if depth == 0 => true,
        Value::Array(items) => items.iter().any(|item| deeper(item, depth - 1)),
        Value::Object(members) => members.values().any(|member| deeper(member, depth - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_is_counted_as_in_a_document() {
        for (text, depth) in [("1", 0), ("[]", 1), (r#"{"a":[1]}"#, 2), (r#"[{"a":[[]]}]"#, 4)] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert!(!deeper(&value, depth), "{text}");
            assert!(depth == 0 || deeper(&value, depth - 1), "{text}");
        }
    }
}
