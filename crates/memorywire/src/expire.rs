//! Expiry by policy.

use yore_domain::grant::Verb;
use yore_domain::mutation::{ExpiryAction, ExpiryPolicy};
use yore_domain::{Result, Span};
use yore_engine::{Among, Call, DryRun};

use crate::elsewhere::kind;
use crate::filter::Narrowed;
use crate::wire::{Action, Expire, Expired};
use crate::{Memorywire, stores};

impl Memorywire {
    /// Applies a policy to an agent's memories. What was never recalled counts as not recalled
    /// for however many days.
    pub(crate) async fn expire(&self, call: &Call, request: Expire) -> Result<Expired> {
        let policy = request.check()?;
        self.speaker(call, &request.agent_id, Verb::Read).await?;
        let types = policy.kind.as_slice();
        let narrowed = Narrowed::of(&request.agent_id, request.user_id.as_deref()).types(types);
        let among = Among { filter: narrowed.filter, never_recalled: true };
        let user = request.user_id.clone();
        let elsewhere = yore_router::Expire {
            whose: yore_router::Whose { agent: request.agent_id.clone(), user },
            policy: yore_router::Policy {
                older_than_days: policy.older_than_days.map(days),
                kind: policy.kind.map(kind),
                confidence_below: policy.confidence_below,
                no_recall_in_days: policy.no_recall_in_days.map(days),
            },
            action: match request.action {
                Action::Forget => yore_router::Action::Forget,
                Action::Archive => yore_router::Action::Archive,
                Action::Demote => yore_router::Action::Demote,
            },
            only: None,
            now: self.engine.now().millis(),
        };
        let policy = ExpiryPolicy {
            older_than: policy.older_than_days.map(Span::days),
            kind: None,
            confidence_below: policy.confidence_below,
            unused_for: policy.no_recall_in_days.map(Span::days),
        };
        let action = match request.action {
            Action::Forget => ExpiryAction::Forget,
            Action::Archive => ExpiryAction::Archive,
            Action::Demote => ExpiryAction::Demote,
        };
        let expired = self.engine.expire_among(call, among, policy, action, DryRun::No).await?;
        let there = self.expire_there(call, elsewhere).await?;
        Ok(Expired {
            matched_count: (expired.matched.len() + there.ids.len()) as u64,
            action_taken: request.action,
            stores: stores().into_iter().chain(there.stores).collect(),
        })
    }
}

/// As many days as other stores can count.
fn days(days: u64) -> u32 {
    u32::try_from(days).unwrap_or(u32::MAX)
}
