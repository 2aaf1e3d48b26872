//! Reading and verifying the audit chain.

use serde::{Deserialize, Serialize};
use yore_domain::audit::{Entry, Report};
use yore_domain::grant::Verb;
use yore_domain::{Error, MemoryId, Result, Seq, Timestamp, limits};
use yore_policy::Need;

use crate::call::Call;
use crate::engine::Engine;
use crate::run::Trace;

/// Which entries of the audit chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditQuery {
    /// After this number.
    pub after: Seq,
    /// Only this operation.
    pub operation: Option<String>,
    /// Only this agent.
    pub agent: Option<String>,
    /// Only those that touched this memory.
    pub memory: Option<MemoryId>,
    /// From this time on.
    pub from: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// How many.
    pub limit: usize,
    /// Newest first.
    pub newest_first: bool,
}

impl Engine {
    /// Lists entries of the audit chain.
    pub async fn audit(&self, call: &Call, query: AuditQuery) -> Result<Vec<Entry>> {
        self.look(call, Need::one("audit.query", Verb::Audit), query, |_, _, snapshot, query| {
            Box::pin(async move {
                if query.limit == 0 {
                    return Err(Error::invalid("limit", "must be at least 1"));
                }
                let entries = snapshot.audit(&stored(query.clone())).await?;
                let trace = Trace::count(entries.len());
                Ok((entries, trace))
            })
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

fn stored(query: AuditQuery) -> yore_store::snapshot::AuditQuery {
    let AuditQuery { after, operation, agent, memory, from, until, limit, newest_first } = query;
    let limit = limit.min(limits::PAGE);
    yore_store::snapshot::AuditQuery {
        after,
        operation,
        agent,
        memory,
        from,
        until,
        limit,
        newest_first,
    }
}
