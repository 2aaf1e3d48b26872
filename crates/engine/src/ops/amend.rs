//! Changing what a conversation is called and filed under; what was said in it stays.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use yore_domain::conversation::Conversation;
use yore_domain::grant::Verb;
use yore_domain::{ConversationId, Error, Result};
use yore_policy::Need;
use yore_store::Write;

use super::get::conversation_named;
use super::talk::unmoved;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Trace};

/// What changes of a conversation's head. Absent members stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Amendment {
    /// Replaces or removes the title.
    pub title: Option<Option<String>>,
    /// Replaces or removes the summary.
    pub summary: Option<Option<String>>,
    /// Replaces the tags.
    pub tags: Option<Vec<String>>,
    /// Replaces or removes members that a protocol keeps under its own name.
    pub members: BTreeMap<String, Option<Value>>,
}

impl Amendment {
    fn apply(&self, dialect: &str, head: &mut Conversation) {
        if let Some(title) = &self.title {
            head.title.clone_from(title);
        }
        if let Some(summary) = &self.summary {
            head.summary.clone_from(summary);
        }
        if let Some(tags) = &self.tags {
            head.tags.clone_from(tags);
        }
        if self.members.is_empty() {
            return;
        }
        let kept = head.foreign.remove(dialect);
        let mut own = match kept {
            Some(Value::Object(own)) => own,
            Some(_) | None => Map::new(),
        };
        for (name, value) in &self.members {
            match value {
                Some(value) => own.insert(name.clone(), value.clone()),
                None => own.shift_remove(name),
            };
        }
        if !own.is_empty() {
            head.foreign.insert(dialect.to_owned(), Value::Object(own));
        }
    }
}

impl Engine {
    /// Amends a conversation on behalf of a dialect, if it still has one of these tags; without
    /// tags, as it is.
    pub async fn amend_conversation(
        &self,
        dialect: &'static str,
        call: &Call,
        conversation: ConversationId,
        amendment: Amendment,
        expected: Vec<String>,
    ) -> Result<()> {
        let need = Need::one("amend-conversation", Verb::Write);
        let input = (dialect, conversation, amendment, expected);
        self.change(call, need, input, |_, session, snapshot, input| {
            Box::pin(async move {
                let (dialect, id, amendment, expected) = input;
                let id = conversation_named(session, snapshot, *id).await?;
                let (mut head, _) = snapshot.conversation(id).await?.ok_or(Error::NotFound)?;
                session.permit.may_write(&head.class())?;
                let preconditions = unmoved(snapshot, id, expected).await?;
                amendment.apply(dialect, &mut head);
                head.validate()?;
                let trace = Trace::default().with("conversation", id.to_string());
                let writes = vec![Write::Conversation(Box::new(head))];
                let mut planned = Planned::done((), writes).traced(trace);
                planned.preconditions = preconditions;
                Ok(planned)
            })
        })
        .await
    }
}
