//! Recalled memories as a block of text for a model's context.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::conversation::Role;
use yore_domain::grant::Verb;
use yore_domain::provenance::ActorKind;
use yore_domain::query::Recall;
use yore_domain::{HoldId, MemoryId, Result};
use yore_policy::Need;

use super::passage::Passage;
use super::recall::{Found, Hit, trace};
use crate::call::Call;
use crate::engine::Engine;
use crate::frame::{Frame, Line, frame};

/// A block of text for a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    /// The framed text; empty when nothing was found.
    pub frame: String,
    /// The memories in it.
    pub used: Vec<MemoryId>,
    /// How many tokens it takes.
    pub tokens: usize,
    /// Where it waits for the owner whether the caller may read what was left out by a rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<HoldId>,
}

impl Engine {
    /// Recalls, and frames the best of it within a budget of tokens.
    pub async fn context(
        &self,
        call: &Call,
        recall: Recall,
        budget_tokens: usize,
    ) -> Result<Context> {
        let need = Need::one("context", Verb::Read);
        let looked =
            self.look(call, need, (recall, budget_tokens), |engine, session, snapshot, input| {
                Box::pin(async move {
                    let (recall, budget) = input;
                    let (mut recalled, withheld) = engine.find(session, snapshot, recall).await?;
                    let Frame { text, kept, tokens } =
                        framed(&recalled.results, *budget, |text| engine.tokens_of(text));
                    let mut kept = kept.into_iter();
                    recalled.results.retain(|_| kept.next().unwrap_or(false));
                    let used =
                        recalled.results.iter().filter_map(|hit| hit.found.memory()).collect();
                    let context = Context { frame: text, used, tokens, waits: Vec::new() };
                    Ok(((context, withheld), trace(&recalled)))
                })
            });
        let (mut context, withheld) = looked.await?;
        context.waits = self.ask_to_read(call, need, withheld).await?;
        Ok(context)
    }
}

fn framed(hits: &[Hit], budget: usize, tokens: impl Fn(&str) -> usize) -> Frame {
    let described: Vec<Described<'_>> = hits.iter().map(Described::of).collect();
    frame(described.iter().map(Described::line), budget, tokens)
}

/// What a line says of something that was found, owned.
struct Described<'a> {
    found: &'a Found,
    at: String,
    by: String,
    id: String,
    text: Cow<'a, str>,
}

impl<'a> Described<'a> {
    fn of(hit: &'a Hit) -> Self {
        let found = &hit.found;
        let text = match &hit.inside {
            None => Cow::Borrowed(found.text()),
            Some(passage) => {
                let Passage { filename, text, .. } = passage;
                Cow::Owned(format!("{} [{filename}: {text}]", found.text()))
            }
        };
        let (at, by, id) = match found {
            Found::Memory { version, .. } => {
                let provenance = &version.content.provenance;
                let kind = match provenance.actor_kind {
                    ActorKind::User => "user",
                    ActorKind::Agent => "agent",
                    ActorKind::Model => "model",
                    ActorKind::Import => "import",
                    ActorKind::Scan => "scan",
                };
                (version.time.created, kind, version.memory.to_string())
            }
            Found::Message { conversation, message, .. } => {
                let role = match message.role {
                    Role::User => "user",
                    Role::Assistant => "assistant",
                    Role::System => "system",
                    Role::Tool => "tool",
                };
                (message.at, role, conversation.id.to_string())
            }
        };
        let at = at.to_string();
        let date = at.split('T').next().unwrap_or_default().to_owned();
        Self { found, at: date, by: by.to_owned(), id, text }
    }

    fn line(&self) -> Line<'_> {
        let (what, project) = match self.found {
            Found::Memory { version, .. } => {
                (version.content.kind.as_str(), version.content.scope.project.as_deref())
            }
            Found::Message { conversation, .. } => ("said", conversation.scope.project.as_deref()),
        };
        Line { what, project, at: &self.at, by: &self.by, id: &self.id, text: &self.text }
    }
}
