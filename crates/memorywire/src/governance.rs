//! The governance channel: what waits, in the protocol's words, and deciding it.
//!
//! Nothing is decided here. The engine lists, shows and decides; this translates. Operations that
//! the protocol does not have (revisions, relabellings, reading) are decided elsewhere.

use serde_json::{Value, json};
use yore_domain::hold::{Hold, HoldReason, HoldState};
use yore_domain::memory::Draft;
use yore_domain::mutation::{Depth, MergeStrategy, Mutation};
use yore_domain::{Error, HoldId, MemoryId, Result, Timestamp};
use yore_engine::{Call, Case, Changes, Decision};

use crate::operations::answer;
use crate::wire::governance::{Change, Decide, Diff, Member, Named, ReviewRequest, ReviewResponse};
use crate::wire::{Object, read};
use crate::{Memorywire, map};

/// Holds that are listed at once.
const HOLDS: usize = 1000;

impl Memorywire {
    /// Lists, shows or decides what waits.
    pub(crate) async fn govern(&self, call: &Call, what: &str, input: Object) -> Result<Value> {
        match what {
            "list" => self.waiting(call).await,
            "show" => {
                let Named { id } = read(input)?;
                let case = self.engine.case(call, hold_id(&id)?).await?;
                answer(self.review_request(case).ok_or(Error::NotFound)?)
            }
            "decide" => self.decide(call, read(input)?).await,
            _ => Err(Error::NotFound),
        }
    }

    async fn waiting(&self, call: &Call) -> Result<Value> {
        let mut reviews = Vec::new();
        for hold in self.engine.holds(call, HoldState::Pending, HOLDS).await? {
            if request(&hold).is_some() {
                reviews.extend(self.review_request(self.engine.case(call, hold.id).await?));
            }
        }
        Ok(json!({ "reviews": answer(reviews)? }))
    }

    async fn decide(&self, call: &Call, asked: Decide) -> Result<Value> {
        let decision = if asked.approved { Decision::Approve } else { Decision::Reject };
        let hold = hold_id(&asked.id)?;
        let reviewed = self.engine.review(call, hold, decision, asked.reason).await?.hold;
        answer(ReviewResponse {
            approved: reviewed.state == HoldState::Approved,
            reviewer: reviewed.decided_by.unwrap_or_default(),
            reviewed_at: reviewed.decided.map(Timestamp::millis).unwrap_or_default(),
            reason: reviewed.note,
        })
    }

    /// What a person is shown of a hold; nothing where the protocol has no such operation.
    fn review_request(&self, case: Case) -> Option<ReviewRequest> {
        let Case { hold, changes } = case;
        let request = request(&hold)?;
        Some(ReviewRequest {
            id: map::waiting(hold.id),
            operation: hold.mutation.name().to_owned(),
            agent_id: agent(&hold),
            request,
            diff: diff(changes),
            reasoning: reasoning(&hold),
            approval_url: self.approval_url(hold.id),
        })
    }
}

fn hold_id(text: &str) -> Result<HoldId> {
    text.parse::<MemoryId>().map(|id| HoldId::from_bytes(id.bytes())).map_err(|_| Error::NotFound)
}

/// The agent whose memory it is about; who asked, where it does not say.
fn agent(hold: &Hold) -> String {
    let scope = match &hold.mutation {
        Mutation::Remember { draft, .. } => draft.content.scope.agent.clone(),
        Mutation::Revise { .. }
        | Mutation::Relabel { .. }
        | Mutation::Forget { .. }
        | Mutation::Merge { .. }
        | Mutation::Restore { .. }
        | Mutation::Disclose { .. } => None,
    };
    scope.or_else(|| hold.agent.clone()).unwrap_or_else(|| "owner".to_owned())
}

/// The request that waits, in the form of the operation's schema.
fn request(hold: &Hold) -> Option<Object> {
    let members = match &hold.mutation {
        Mutation::Remember { draft, .. } => remembering(hold, draft),
        Mutation::Forget { memories, depth, reason } => json!({
            "agent_id": agent(hold),
            "ids": memories.iter().map(|id| map::id(*id)).collect::<Vec<_>>(),
            "hard_delete": *depth == Depth::Erase,
            "reason": reason,
            "approval_required": true,
        }),
        Mutation::Merge { canonical, duplicates, strategy } => json!({
            "agent_id": agent(hold),
            "canonical": map::id(*canonical),
            "duplicates": duplicates.iter().map(|id| map::id(*id)).collect::<Vec<_>>(),
            "strategy": match strategy {
                MergeStrategy::KeepCanonical => "keep_canonical",
                MergeStrategy::MergeContent => "merge_content",
                MergeStrategy::KeepHighestConfidence => "keep_highest_confidence",
            },
            "approval_required": true,
        }),
        Mutation::Revise { .. }
        | Mutation::Relabel { .. }
        | Mutation::Restore { .. }
        | Mutation::Disclose { .. } => return None,
    };
    let mut members = members.as_object().cloned()?;
    members.retain(|_, value| !value.is_null());
    Some(members)
}

fn remembering(hold: &Hold, draft: &Draft) -> Value {
    let content = &draft.content;
    json!({
        "agent_id": agent(hold),
        "type": map::type_of(content.kind).as_str(),
        "content": content.body.text,
        "user_id": content.scope.user,
        "metadata": content.body.structured,
        "confidence": map::confidence(content),
        "source": content.provenance.source,
        "expires_at": content.lifecycle.expires.map(Timestamp::millis),
        "privacy_intent": map::privacy_intent(content),
        "approval_required": true,
    })
}

fn diff(changes: Changes) -> Diff {
    let Changes { against: _, added, removed, modified } = changes;
    Diff {
        added: added.into_iter().map(|it| Member { field: it.field, value: it.value }).collect(),
        removed: removed
            .into_iter()
            .map(|it| Member { field: it.field, value: it.value })
            .collect(),
        modified: modified
            .into_iter()
            .map(|it| Change { field: it.field, before: it.before, after: it.after })
            .collect(),
    }
}

fn reasoning(hold: &Hold) -> String {
    if let Some(reasoning) = &hold.reasoning {
        return reasoning.clone();
    }
    match &hold.reason {
        HoldReason::Requested => "the caller asked for approval".to_owned(),
        HoldReason::Rule(name) => format!("the rule {name} asks for approval"),
        HoldReason::NearDuplicate(memory) => format!("it looks like {}", map::id(*memory)),
        HoldReason::Contradiction(memory) => format!("it speaks against {}", map::id(*memory)),
        HoldReason::SyncConflict(memory) => format!("two sides changed {}", map::id(*memory)),
        HoldReason::Unhelpful => "nobody has needed it".to_owned(),
    }
}
