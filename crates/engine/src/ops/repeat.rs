//! What an operation id was answered before, for protocols whose requests hold the time.

use yore_domain::grant::Verb;
use yore_domain::{Error, Result};
use yore_policy::Need;

use crate::call::Call;
use crate::engine::Engine;
use crate::mutate::Mutated;
use crate::run::{Trace, caller_of};

impl Engine {
    /// Returns what the call's operation id was answered before, if it was. Whether the request
    /// is the same is for the protocol to say. `operation` is the one that is asked for.
    pub async fn answered(&self, call: &Call, operation: &'static str) -> Result<Option<Mutated>> {
        let Some(id) = &call.operation else { return Ok(None) };
        let need = Need::one("repeat", Verb::Write).towards(operation);
        let before = self.look(call, need, id.clone(), |_, session, snapshot, id| {
            Box::pin(async move {
                let caller = caller_of(&session.permit.actor());
                let before = snapshot.operation(&caller, id).await?;
                let trace = Trace::count(usize::from(before.is_some()));
                Ok((before, trace))
            })
        });
        let Some(before) = before.await? else { return Ok(None) };
        if let Some(hold) = before.result.get("held") {
            let hold = serde_json::from_value(hold.clone()).map_err(Error::internal)?;
            return Err(Error::Held { hold });
        }
        let done = before.result.get("done").cloned().unwrap_or_default();
        serde_json::from_value(done).map(Some).map_err(Error::internal)
    }
}
