//! What was removed for good, so that no archive brings it back.

use yore_domain::grant::Verb;
use yore_domain::{ConversationId, Result};
use yore_policy::Need;
use yore_store::snapshot::Gone;

use crate::call::Call;
use crate::engine::Engine;

impl Engine {
    /// Says what of a conversation was removed for good. An agent is told nothing: what it brings
    /// in gets ids of its own.
    pub async fn erased_of(&self, call: &Call, conversation: ConversationId) -> Result<Gone> {
        let need = Need::one("restore", Verb::Write);
        let session = self.enter_again(&self.renewed(call), need).await?;
        let snapshot = self.store().snapshot(&session.permit).await?;
        snapshot.gone(conversation).await
    }
}
