//! What holds for memories that lie outside the vault, in stores beside it.

use yore_domain::grant::Verb;
use yore_domain::memory::Draft;
use yore_domain::{MemoryId, Result};
use yore_policy::Need;

use crate::call::Call;
use crate::engine::Engine;

impl Engine {
    /// Whether the caller would be shown a memory like this one, were it in the vault.
    pub async fn would_show(&self, call: &Call, draft: &Draft) -> Result<bool> {
        let session = self.enter_again(call, Need::one("recall", Verb::Read)).await?;
        Ok(session.permit.lens().sees(&draft.class()))
    }

    /// Whether the caller means the vault that stores beside it belong to.
    pub async fn means_default_vault(&self, call: &Call) -> Result<bool> {
        let identity = self.identify(call, Verb::Read).await?;
        Ok(identity.vault() == self.default_vault().await?)
    }

    /// Which of these ids are ids of the vault's memories, whether or not the caller may see
    /// them. It must decide nothing but what comes from elsewhere: a copy of a memory is shown
    /// only where the memory is.
    pub async fn held_here(&self, call: &Call, ids: &[MemoryId]) -> Result<Vec<MemoryId>> {
        let session = self.enter_again(call, Need::one("recall", Verb::Read)).await?;
        let permit = self.system(session.permit.vault(), "tell copies from strangers")?;
        let snapshot = self.store().snapshot(&permit).await?;
        let mut held = Vec::new();
        for id in ids {
            if snapshot.memory(*id).await?.is_some() {
                held.push(*id);
            }
        }
        Ok(held)
    }
}
