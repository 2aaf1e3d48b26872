//! Recovery of an agent's memories after poisoning.
//!
//! Every live memory gets a verdict by where it comes from and by what it says: what an
//! untrusted source said is purged, what gives orders or has no known source is put aside, the
//! rest is kept. Purging is forgetting, which can be undone unless it is asked to be final;
//! what is put aside is out of recall and comes back by being restored. Both go through the same
//! pipeline as everything else, so rules may hold them.

use serde_json::Value;
use yore_domain::grant::Verb;
use yore_domain::memory::Memory;
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::{Error, MemoryId, Result};
use yore_engine::{Call, Purpose, Reference, Wish};

use crate::filter::Narrowed;
use crate::operations::{Outcome, outcome};
use crate::rows::Whose;
use crate::wire::{
    Action, Deed, Expire, Mode, Policy, Recover, Recovered, Restore, Restored, Verdict,
};
use crate::{Memorywire, map};

/// How sure the rest must be when what is unsure expires as well.
const SURE: f64 = 0.75;
/// What the report says of a memory nobody named the source of.
const UNKNOWN: &str = "unknown";

/// A memory with its verdict.
struct Judged {
    id: MemoryId,
    verdict: Verdict,
    source: String,
    reason: &'static str,
}

impl Memorywire {
    /// Looks through an agent's memories and takes out what should not be trusted.
    pub(crate) async fn recover(&self, call: &Call, request: Recover) -> Result<Recovered> {
        request.check()?;
        self.speaker(call, &request.agent_id, Verb::Read).await?;
        let user = request.user_id.as_deref();
        let whose = Whose { agent: &request.agent_id, user, purpose: Purpose::Reading };
        let narrowed = Narrowed::of(&request.agent_id, user);
        let judged =
            self.each(call, whose, &narrowed, |memory| Some(judge(&request, memory))).await?;

        let mut report = Recovered::of(&request, judged.len() as u64);
        // First what may be refused as a whole, while nothing is done yet.
        if request.mode == Mode::ProvenanceExpire && !request.dry_run {
            report.expired = self.expire(call, unsure(&request)).await?.matched_count;
        }
        for (verdict, depth, reason) in [
            (Verdict::Purge, purge(&request), "recover:purge:untrusted-source"),
            (Verdict::Quarantine, Depth::Quarantine, "recover:quarantine:review"),
        ] {
            let found = judged.iter().filter(|one| one.verdict == verdict);
            let memories: Vec<MemoryId> = found.map(|one| one.id).collect();
            let waits = self.take(call, &request, memories.clone(), depth, reason).await?;
            report.pending.extend(waits);
            match verdict {
                Verdict::Purge => report.purged = memories.len() as u64,
                Verdict::Quarantine => report.quarantined = memories.len() as u64,
                Verdict::Keep => {}
            }
        }
        let gone = report.purged + report.quarantined + report.expired;
        report.kept = report.scanned.saturating_sub(gone);
        report.actions = judged
            .into_iter()
            .filter(|one| one.verdict != Verdict::Keep)
            .map(|one| Deed {
                id: map::id(one.id),
                verdict: one.verdict,
                source: one.source,
                reason: one.reason.to_owned(),
            })
            .collect();
        Ok(report)
    }

    /// Takes some memories out, unless it only says so; returns where a person decides, if one
    /// must.
    async fn take(
        &self,
        call: &Call,
        request: &Recover,
        memories: Vec<MemoryId>,
        depth: Depth,
        reason: &str,
    ) -> Result<Option<String>> {
        if request.dry_run || memories.is_empty() {
            return Ok(None);
        }
        let forget = Mutation::Forget { memories, depth, reason: Some(reason.to_owned()) };
        // A retry finds nothing left to do; an id of the whole request would stop the second half.
        let call = Call { operation: None, ..call.clone() };
        match outcome(self.engine.mutate(&call, forget, Wish::default()).await)? {
            Outcome::Done(_) => Ok(None),
            Outcome::Waits(hold) => Ok(Some(self.approval_url(hold))),
        }
    }

    /// Brings back what was put aside or forgotten, as it was before.
    pub(crate) async fn restore(&self, call: &Call, request: Restore) -> Result<Restored> {
        request.check()?;
        self.speaker(call, &request.agent_id, Verb::Write).await?;
        let mut restored = Restored::default();
        for id in &request.ids {
            let Some((memory, number)) = self.before_it_went(call, &request, id).await? else {
                restored.missing.push(id.clone());
                continue;
            };
            let call = Call { operation: None, ..call.clone() };
            let back = Mutation::Restore { memory, number };
            match outcome(self.engine.mutate(&call, back, Wish::default()).await) {
                Ok(Outcome::Done(_)) => restored.restored.push(map::id(memory)),
                Ok(Outcome::Waits(hold)) => restored.pending.push(self.approval_url(hold)),
                // What may not come back is as good as absent; the others still may.
                Err(Error::Forbidden { .. }) => restored.missing.push(id.clone()),
                Err(error) => return Err(error),
            }
        }
        Ok(restored)
    }

    /// A memory of the agent's that is not live now, and the number of its last live version.
    async fn before_it_went(
        &self,
        call: &Call,
        request: &Restore,
        id: &str,
    ) -> Result<Option<(MemoryId, u32)>> {
        let Ok(memory) = id.parse::<MemoryId>() else { return Ok(None) };
        let chain = self
            .engine
            .chain(call, vec![Reference::Memory(memory)], Purpose::Change("restore"))
            .await;
        let chain = match chain {
            Ok(chain) => chain,
            Err(Error::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        let scope = &chain.asked.content.scope;
        let theirs = scope.agent.as_deref() == Some(request.agent_id.as_str())
            && request.user_id.as_ref().is_none_or(|user| scope.user.as_ref() == Some(user));
        if !theirs || chain.asked.status.is_live() {
            return Ok(None);
        }
        let live = chain.versions.iter().rev().find(|version| version.status.is_live());
        Ok(live.map(|live| (live.memory, live.number)))
    }
}

fn judge(request: &Recover, memory: &Memory) -> Judged {
    let content = &memory.head.content;
    let source = content.provenance.source.as_deref();
    let trusted = source.is_some_and(|source| request.trusted().any(|name| name == source));
    let suspicious = || {
        request.use_detectors
            && (yore_engine::directs(&content.body.text)
                || content.body.structured.iter().flat_map(|members| members.values()).any(orders)
                || content.foreign.values().any(orders))
    };
    let (verdict, reason) = match source {
        None => (Verdict::Quarantine, "no source is known"),
        Some(_) if !trusted => (Verdict::Purge, "the source is not trusted"),
        Some(_) if suspicious() => (Verdict::Quarantine, "it gives orders"),
        Some(_) => (Verdict::Keep, "trusted"),
    };
    let verdict = match verdict {
        Verdict::Quarantine if !request.quarantine => Verdict::Keep,
        Verdict::Purge | Verdict::Quarantine | Verdict::Keep => verdict,
    };
    let source = source.unwrap_or(UNKNOWN).to_owned();
    Judged { id: memory.head.memory, verdict, source, reason }
}

/// Whether a value gives orders, however deep.
fn orders(value: &Value) -> bool {
    match value {
        Value::String(text) => yore_engine::directs(text),
        Value::Array(items) => items.iter().any(orders),
        Value::Object(members) => members.values().any(orders),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

const fn purge(request: &Recover) -> Depth {
    if request.hard_delete { Depth::Erase } else { Depth::Tombstone }
}

fn unsure(request: &Recover) -> Expire {
    let below = request.confidence_below.unwrap_or(SURE);
    Expire {
        agent_id: request.agent_id.clone(),
        user_id: request.user_id.clone(),
        agent_only: request.agent_only,
        policy: Some(Policy { confidence_below: Some(below), ..Policy::default() }),
        action: Action::Forget,
    }
}
