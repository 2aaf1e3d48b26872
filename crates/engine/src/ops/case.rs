//! A held operation as it is put before whoever decides: with what it would change, sorted by
//! what would be added, removed and modified.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use yore_domain::audit::Target;
use yore_domain::grant::Verb;
use yore_domain::hold::{DiffLine, Hold};
use yore_domain::memory::{Content, Memory, Version};
use yore_domain::mutation::Mutation;
use yore_domain::query::{Corpus, Cutoff, Effort, Filter, PageRequest, Recall};
use yore_domain::scope::{Scope, ScopeRule};
use yore_domain::{Error, HoldId, MemoryId, Result, limits};
use yore_policy::Need;
use yore_store::Snapshot;

use super::diff;
use super::recall::Found;
use super::shown::shown_hold;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Session, Trace};

/// The member of the structured body that names the thing a memory is about.
const ENTITY: &str = "entity_name";

/// A held operation and what it would change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// The hold.
    #[serde(flatten)]
    pub hold: Hold,
    /// What carrying it out would change, against what is now.
    pub changes: Changes,
}

/// Differences, each list sorted by field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// The memory it was compared with: the one it would change, or the nearest to what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<MemoryId>,
    /// What was not there.
    pub added: Vec<FieldValue>,
    /// What would no longer be there.
    pub removed: Vec<FieldValue>,
    /// What would be otherwise.
    pub modified: Vec<FieldChange>,
}

/// A member with its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldValue {
    /// The member, dotted.
    pub field: String,
    /// The value.
    pub value: Value,
}

/// A member with two values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldChange {
    /// The member, dotted.
    pub field: String,
    /// What it is now.
    pub before: Value,
    /// What it would become.
    pub after: Value,
}

impl Changes {
    fn of(lines: Vec<DiffLine>, against: Option<MemoryId>) -> Self {
        let mut changes = Self { against, ..Self::default() };
        for DiffLine { field, before, after } in lines {
            match (before, after) {
                (None, Some(value)) => changes.added.push(FieldValue { field, value }),
                (Some(value), None) => changes.removed.push(FieldValue { field, value }),
                (Some(before), Some(after)) => {
                    changes.modified.push(FieldChange { field, before, after });
                }
                (None, None) => {}
            }
        }
        changes
    }
}

impl Engine {
    /// Returns one hold with what it would change.
    pub async fn case(&self, call: &Call, hold: HoldId) -> Result<Case> {
        let need = Need::one("hold", Verb::Read);
        self.look(call, need, hold, |engine, session, snapshot, hold| {
            Box::pin(async move {
                let hold = snapshot.hold(*hold).await?.ok_or(Error::NotFound)?;
                let hold = shown_hold(session, snapshot, hold).await?;
                let changes = engine.changes(session, snapshot, &hold).await?;
                let targets =
                    hold.outcome.map(|memory| Target { memory, number: None, digest: None });
                let trace = Trace { targets: targets.into_iter().collect(), ..Trace::default() };
                Ok((Case { hold, changes }, trace))
            })
        })
        .await
    }

    /// What a hold would change. Only the owner is told what else the vault holds: an agent sees
    /// what it asked for against what it was judged by.
    async fn changes(
        &self,
        session: &Session,
        snapshot: &dyn Snapshot,
        hold: &Hold,
    ) -> Result<Changes> {
        let judged = hold.judged.first().map(|(memory, _)| *memory);
        if !session.is_owner() {
            return Ok(Changes::of(hold.diff.clone(), judged));
        }
        match &hold.mutation {
            Mutation::Remember { draft, .. } => {
                let known = self.counterpart(session, snapshot, &draft.content).await?;
                let before = known.as_ref().map(|known| &known.content);
                let lines = diff::compare(before, Some(&draft.content));
                Ok(Changes::of(lines, known.map(|known| known.memory)))
            }
            Mutation::Disclose { memories, .. } => {
                let mut lines = Vec::new();
                for memory in memories {
                    lines.extend(snapshot.memory(*memory).await?.map(|memory| told(&memory)));
                }
                Ok(Changes::of(lines, None))
            }
            Mutation::Revise { .. }
            | Mutation::Relabel { .. }
            | Mutation::Forget { .. }
            | Mutation::Merge { .. }
            | Mutation::Restore { .. } => Ok(Changes::of(hold.diff.clone(), judged)),
        }
    }

    /// The live memory that says most nearly what would be remembered: the newest about the same
    /// entity, else the nearest in words and meaning.
    async fn counterpart(
        &self,
        session: &Session,
        snapshot: &dyn Snapshot,
        content: &Content,
    ) -> Result<Option<Version>> {
        let Scope { user, agent, .. } = content.scope.clone();
        let scope = ScopeRule { user, agent, ..ScopeRule::default() };
        let filter = Filter { scope, ..Filter::default() };
        if let Some(entity) = content.body.structured.as_ref().and_then(|map| map.get(ENTITY)) {
            let mut named = filter.clone();
            named.members.insert(ENTITY.to_owned(), entity.clone());
            let page = PageRequest { limit: 1, ..PageRequest::default() };
            let found = snapshot.memories(&named, &page).await?.items.into_iter().next();
            if let Some(found) = found {
                return Ok(Some(found.head));
            }
        }
        let recall = Recall {
            query: beginning(&content.body.text).to_owned(),
            corpus: Corpus::Memories,
            filter,
            near: Scope::default(),
            limit: 1,
            effort: Effort::Instant,
            prefer: Vec::new(),
            cutoff: Cutoff::Each,
        };
        if recall.query.trim().is_empty() {
            return Ok(None);
        }
        let (recalled, _) = self.find(session, snapshot, &recall).await?;
        Ok(recalled.results.into_iter().find_map(|hit| match hit.found {
            Found::Memory { version, head: true } => Some(*version),
            Found::Memory { .. } | Found::Message { .. } => None,
        }))
    }
}

/// What an agent would read.
fn told(memory: &Memory) -> DiffLine {
    DiffLine {
        field: format!("memory.{}", memory.head.memory),
        before: None,
        after: Some(Value::String(memory.head.content.body.text.clone())),
    }
}

/// As much of a text as a query may have.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(limits::QUERY_BYTES)]
}
