//! How far the vault and another host are in step. It is kept here, so that a sync that was cut
//! off goes on where it ended, whoever takes it up.

use serde_json::Value;
use yore_domain::grant::Verb;
use yore_domain::{Error, Result};
use yore_policy::Need;
use yore_store::Write;

use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Session, Trace};

/// How long the name of a host may be.
const NAME: usize = 512;

impl Engine {
    /// Returns what was kept of the sync with a host.
    pub async fn sync_state(&self, call: &Call, peer: String) -> Result<Option<Value>> {
        let need = Need::one("sync.look", Verb::Admin);
        self.look(call, need, peer, |_, session, snapshot, peer| {
            Box::pin(async move {
                let state = snapshot.setting(&setting(session, peer)?).await?;
                let trace = Trace::default().with("peer", peer.clone());
                Ok((state.filter(|state| !state.is_null()), trace))
            })
        })
        .await
    }

    /// Keeps how far the sync with a host has come; nothing forgets it.
    pub async fn keep_sync_state(
        &self,
        call: &Call,
        peer: String,
        state: Option<Value>,
    ) -> Result<()> {
        let need = Need::one("sync.keep", Verb::Admin);
        self.change(call, need, (peer, state), |_, session, _, (peer, state)| {
            Box::pin(async move {
                let name = setting(session, peer)?;
                let write = Write::Setting(name, state.clone().unwrap_or_default());
                let trace = Trace::default().with("peer", peer.clone());
                Ok(Planned::done((), vec![write]).traced(trace))
            })
        })
        .await
    }
}

/// What is kept of all is the owner's: it names what others may not see.
fn setting(session: &Session, peer: &str) -> Result<String> {
    if !session.is_owner() {
        return Err(Error::forbidden("only the owner keeps the vault in step with another"));
    }
    if peer.is_empty() || peer.len() > NAME {
        return Err(Error::invalid("peer", "must be a name of 1 to 512 bytes"));
    }
    Ok(format!("sync:{peer}"))
}
