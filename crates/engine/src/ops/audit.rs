//! Reading and verifying the audit chain.

use yore_domain::audit::{Entry, Report};
use yore_domain::grant::Verb;
use yore_domain::{Error, Result, limits};
use yore_policy::Need;
pub use yore_store::snapshot::AuditQuery;

use crate::audit_copy::Sealed;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::Trace;

impl Engine {
    /// Lists entries of the audit chain.
    pub async fn audit(&self, call: &Call, query: AuditQuery) -> Result<Vec<Entry>> {
        self.look(call, Need::one("audit.query", Verb::Audit), query, |_, _, snapshot, query| {
            Box::pin(async move {
                if query.limit == 0 {
                    return Err(Error::invalid("limit", "must be at least 1"));
                }
                let limit = query.limit.min(limits::PAGE);
                let entries = snapshot.audit(&AuditQuery { limit, ..query.clone() }).await?;
                let trace = Trace::count(entries.len());
                Ok((entries, trace))
            })
        })
        .await
    }

    /// Signs where the chain stands, so that a copy of it can be checked without the vault.
    pub async fn seal_audit(&self, call: &Call) -> Result<Sealed> {
        let need = Need::one("audit.seal", Verb::Audit);
        self.keep(call, need, async |engine, permit| {
            engine.keeper().seal_audit(permit, engine.now()).await?;
            let checkpoint = engine.store().snapshot(permit).await?.checkpoint().await?;
            let checkpoint = checkpoint.ok_or(Error::NotFound)?;
            let trace = Trace::default().with("seq", checkpoint.seq.0);
            Ok((Sealed { vault: permit.vault(), checkpoint }, trace))
        })
        .await
    }

    /// Verifies every link and every signed checkpoint of the chain.
    pub async fn verify_audit(&self, call: &Call) -> Result<Report> {
        let need = Need::one("audit.verify", Verb::Audit);
        self.keep(call, need, async |engine, permit| {
            let health = engine.keeper().check(permit, false).await?;
            let trace = Trace::default().with("faults", health.audit.faults.len());
            Ok((health.audit, trace))
        })
        .await
    }
}
