//! Expiry by policy.

use yore_domain::grant::Verb;
use yore_domain::mutation::{ExpiryAction, ExpiryPolicy};
use yore_domain::{Result, Span};
use yore_engine::{Among, Call, DryRun};

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
        Ok(Expired {
            matched_count: expired.matched.len() as u64,
            action_taken: request.action,
            stores: stores(),
        })
    }
}
