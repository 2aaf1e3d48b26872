//! Changing what a conversation is called and filed under; what was said in it stays.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use yore_domain::class::Label;
use yore_domain::conversation::Conversation;
use yore_domain::grant::Verb;
use yore_domain::regulated::{erased_at, is_regulated, parental_consent};
use yore_domain::{ConversationId, Error, Result};
use yore_policy::Need;
use yore_policy::regulated::{may_collect, may_lower, protect};
use yore_store::Write;

use super::get::conversation_named;
use super::guardian::guardianship;
use super::retention::some_end;
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
    /// Labels of what a law protects, to be added.
    pub protect: Vec<Label>,
    /// Labels of what a law protects, to be taken away; only who administers may.
    pub release: Vec<Label>,
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
        protect(&mut head.governance, self.protect.iter().filter(|label| is_regulated(label)));
        let released = |label: &Label| is_regulated(label) && self.release.contains(label);
        head.governance.labels.retain(|label| !released(label));
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
        self.change(call, need, input, |engine, session, snapshot, input| {
            Box::pin(async move {
                let (dialect, id, amendment, expected) = input;
                let id = conversation_named(session, snapshot, *id).await?;
                let (mut head, _) = snapshot.conversation(id).await?.ok_or(Error::NotFound)?;
                session.permit.may_write(&head.class())?;
                let preconditions = unmoved(snapshot, id, expected).await?;
                let before = head.class();
                amendment.apply(dialect, &mut head);
                head.validate()?;
                may_lower(&session.permit, &before, &head.class())?;
                let consent = parental_consent(&head.foreign);
                let guarded = guardianship(snapshot).await?;
                may_collect(&head.class(), consent, &guarded, engine.settings().gate)?;
                // Names alone: who said that a person looked at it, and when, is in the chain.
                let changed: Vec<&str> = amendment.members.keys().map(String::as_str).collect();
                let trace = Trace::default()
                    .with("conversation", id.to_string())
                    .with("members", changed.join(","));
                let mut writes = Vec::new();
                if erased_at(&head.foreign).is_some() {
                    writes.extend(some_end(snapshot).await?);
                }
                writes.push(Write::Conversation(Box::new(head)));
                let mut planned = Planned::done((), writes).traced(trace);
                planned.preconditions = preconditions;
                Ok(planned)
            })
        })
        .await
    }
}
