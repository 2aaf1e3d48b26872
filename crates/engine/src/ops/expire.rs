//! Expiry by policy: what is old, unsure or unused is forgotten, archived or ranked down.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::grant::Verb;
use yore_domain::memory::Memory;
use yore_domain::mutation::{Depth, ExpiryAction, ExpiryPolicy, Mutation};
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{Error, MemoryId, Result, Timestamp, limits};
use yore_policy::Need;
use yore_store::{Snapshot, Write};

use super::DryRun;
use crate::call::Call;
use crate::engine::Engine;
use crate::mutate::{Ground, Weighed, Wish, epochs};
use crate::run::{Attempt, Planned, Session, Trace};

/// The tag of what expiry archived.
const ARCHIVED: &str = "archived";

/// What an expiry took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Expired {
    /// The memories the policy matched.
    pub matched: Vec<MemoryId>,
}

/// Where an expiry looks, for protocols that say more than the policy does.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Among {
    /// Only memories that pass.
    pub filter: Filter,
    /// Whether what no recall ever returned counts as unused from its first moment on.
    pub never_recalled: bool,
}

#[derive(Debug, Serialize)]
struct Expire {
    among: Among,
    policy: ExpiryPolicy,
    action: ExpiryAction,
    dry_run: DryRun,
}

impl Engine {
    /// Applies an expiry policy to what the caller sees and may write.
    pub async fn expire(
        &self,
        call: &Call,
        policy: ExpiryPolicy,
        action: ExpiryAction,
        dry_run: DryRun,
    ) -> Result<Expired> {
        self.expire_among(call, Among::default(), policy, action, dry_run).await
    }

    /// The same for some memories only. Kinds that the filter names count as a demand.
    pub async fn expire_among(
        &self,
        call: &Call,
        among: Among,
        policy: ExpiryPolicy,
        action: ExpiryAction,
        dry_run: DryRun,
    ) -> Result<Expired> {
        let need = Need::one("expire", Verb::Write);
        let input = Expire { among, policy, action, dry_run };
        self.change(call, need, input, |engine, session, snapshot, input| {
            Box::pin(plan(engine, session, snapshot, input))
        })
        .await
    }
}

async fn plan(
    engine: &Engine,
    session: &Session,
    snapshot: &dyn Snapshot,
    input: &Expire,
) -> Result<Planned<Expired>> {
    if input.policy.is_empty() && input.among.filter.kinds.is_empty() {
        return Err(Error::invalid("policy", "must demand something, or it would take everything"));
    }
    let targets = matching(session, snapshot, input).await?;
    let matched: Vec<MemoryId> = targets.iter().map(|target| target.head.memory).collect();
    let trace = Trace::count(matched.len()).touching(matched.iter().copied());
    let output = Expired { matched: matched.clone() };
    if input.dry_run == DryRun::Yes || matched.is_empty() {
        let trace = trace.with("dry_run", input.dry_run == DryRun::Yes);
        return Ok(Planned::done(output, Vec::new()).traced(trace));
    }
    if input.action == ExpiryAction::Demote {
        let demote = |memory| Write::Demote { memory, demoted: true };
        return Ok(Planned::done(output, matched.into_iter().map(demote).collect()).traced(trace));
    }
    let wish = Wish::default();
    let ground = Ground {
        engine,
        permit: &session.permit,
        snapshot,
        now: session.now,
        writer: session.permit.principal().agent().map(str::to_owned),
        targets,
        wish: &wish,
        attempt: Attempt::Again,
    };
    let reason = Some("expiry policy".to_owned());
    let forget = Mutation::Forget { memories: matched, depth: Depth::Tombstone, reason };
    let rules = snapshot.rules().await?;
    let mut steps = match ground.weigh(&forget, &rules, None).await? {
        Weighed::Commit(steps) => steps,
        Weighed::Hold(..) => {
            return Err(Error::forbidden("a rule asks for approval of what would be forgotten"));
        }
    };
    if input.action == ExpiryAction::Archive {
        archive(&mut steps.writes);
    }
    let mut planned = Planned::done(output, steps.writes).traced(trace);
    planned.preconditions = steps.preconditions;
    planned.preconditions.extend(epochs(snapshot.epochs().await?));
    Ok(planned)
}

fn archive(writes: &mut [Write]) {
    for write in writes {
        if let Write::Version { version, .. } = write
            && !version.content.tags.iter().any(|tag| tag == ARCHIVED)
        {
            version.content.tags.push(ARCHIVED.to_owned());
        }
    }
}

/// Every live memory the policy takes and the caller may write.
async fn matching(
    session: &Session,
    snapshot: &dyn Snapshot,
    input: &Expire,
) -> Result<Vec<Memory>> {
    let policy = &input.policy;
    let mut filter = input.among.filter.clone();
    if filter.kinds.is_empty() {
        filter.kinds.extend(policy.kind);
    }
    // A memory made exactly that long ago counts, and `until` leaves its end out.
    let until = |span| Timestamp::from_micros(session.now.minus(span).micros() + 1);
    filter.until = filter.until.or(policy.older_than.map(until));
    let mut page = PageRequest { limit: limits::PAGE, ..PageRequest::default() };
    let mut found = Vec::new();
    loop {
        let some = snapshot.memories(&filter, &page).await?;
        found.extend(some.items.into_iter().filter(|memory| {
            taken(input, memory, session.now)
                && session.permit.may_write(&memory.head.class()).is_ok()
        }));
        match some.next {
            Some(next) => page.after = Some(next),
            None => return Ok(found),
        }
    }
}

fn taken(input: &Expire, memory: &Memory, now: Timestamp) -> bool {
    let ExpiryPolicy { older_than, kind, confidence_below, unused_for } = &input.policy;
    let Memory { head, since, usage, .. } = memory;
    let since = if input.among.never_recalled { Timestamp::MIN } else { *since };
    older_than.is_none_or(|span| head.time.created <= now.minus(span))
        && kind.is_none_or(|kind| head.content.kind == kind)
        && confidence_below
            .is_none_or(|bar| head.content.lifecycle.confidence.is_some_and(|sure| sure < bar))
        && unused_for.is_none_or(|span| usage.recalled.unwrap_or(since) <= now.minus(span))
}
