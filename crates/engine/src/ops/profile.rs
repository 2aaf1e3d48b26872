//! The model of the person: read, replaced, and removed together with everything remembered.

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};
use yore_domain::class::Surface;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::hold::HoldState;
use yore_domain::memory::{Memory, Status};
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::profile::Profile;
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{Error, Result, Timestamp, limits};
use yore_policy::Need;
use yore_store::{Precondition, Snapshot, Write};

use crate::call::Call;
use crate::engine::Engine;
use crate::mutate::{Ground, Weighed, Wish, done, epochs};
use crate::run::{Act, Attempt, Planned, Session, Trace};

/// Everything that can still be erased.
const PRESENT: [Status; 4] =
    [Status::Active, Status::Candidate, Status::Quarantined, Status::Tombstoned];

/// The most proposals of each state that are taken back at once.
pub(super) const HOLDS: usize = 100_000;

impl Engine {
    /// Returns the owner's profile, now or as it was.
    pub async fn profile(&self, call: &Call, as_of: Option<Timestamp>) -> Result<Profile> {
        self.shown_profile(call, Need::one("profile.get", Verb::Read), as_of).await
    }

    /// Returns the owner's profile to be taken out.
    pub async fn export_profile(&self, call: &Call) -> Result<Profile> {
        let verbs = Verbs::of(&[Verb::Export]);
        let need = Need::of("profile.export", verbs, Surface::Export);
        self.shown_profile(call, need, None).await
    }

    async fn shown_profile(
        &self,
        call: &Call,
        need: Need,
        as_of: Option<Timestamp>,
    ) -> Result<Profile> {
        self.look(call, need, as_of, |_, _, snapshot, as_of| {
            Box::pin(async move {
                let found = snapshot.profile(None, *as_of).await?.ok_or(Error::NotFound)?;
                let trace = Trace::default().with("version", found.version);
                Ok((found, trace))
            })
        })
        .await
    }

    /// Replaces the owner's profile, and says whether there was none before. The producer's
    /// number must rise.
    pub async fn put_profile(
        &self,
        call: &Call,
        version: u64,
        document: Map<String, Value>,
    ) -> Result<bool> {
        let need = Need::one("profile.put", Verb::Write);
        self.change(call, need, (version, document), |_, session, snapshot, (version, document)| {
            Box::pin(async move {
                let class = Profile::class();
                session.permit.may_write(&class)?;
                if !session.permit.lens().sees(&class) {
                    return Err(Error::forbidden("the profile is outside the grant"));
                }
                let known = snapshot.profile(None, None).await?.map(|known| known.version);
                if known.is_some_and(|known| known >= *version) {
                    return Err(Error::conflict("the profile has this version or a later one"));
                }
                let profile = Profile {
                    user: None,
                    version: *version,
                    document: document.clone(),
                    recorded: session.now,
                };
                let writes = vec![Write::Profile(Box::new(profile))];
                let trace = Trace::default().with("version", *version);
                let mut planned = Planned::done(known.is_none(), writes).traced(trace);
                planned.preconditions = epochs(snapshot.epochs().await?);
                planned.preconditions.push(Precondition::Profile(None, known));
                Ok(planned)
            })
        })
        .await
    }

    /// Erases the owner's profile and every memory, at once, and says how many memories went.
    /// Only the owner may.
    pub async fn erase_person(&self, call: &Call) -> Result<u64> {
        self.act(call, &ErasePerson {}).await
    }
}

#[derive(Debug, Serialize)]
struct ErasePerson {}

impl Act for ErasePerson {
    type Output = u64;

    fn need(&self) -> Need {
        let verbs = Verbs::of(&[Verb::Write, Verb::Erase]);
        Need::of("profile.erase", verbs, Surface::Retrieval)
    }

    fn plan<'a>(
        &'a self,
        engine: &'a Engine,
        _call: &'a Call,
        session: &'a Session,
        snapshot: &'a dyn Snapshot,
        attempt: Attempt,
    ) -> BoxFuture<'a, Result<Planned<u64>>> {
        Box::pin(async move {
            if !session.is_owner() {
                return Err(Error::forbidden("only the owner erases a person"));
            }
            let targets = present(snapshot).await?;
            let profile = snapshot.profile(None, None).await?.is_some();
            let proposals = withdrawn(snapshot, session.now).await?;
            if targets.is_empty() && !profile && proposals.is_empty() {
                return Err(Error::NotFound);
            }
            let mut planned = Planned::done(targets.len() as u64, Vec::new());
            if !targets.is_empty() {
                let memories = targets.iter().map(|target| target.head.memory).collect();
                let forget = Mutation::Forget { memories, depth: Depth::Erase, reason: None };
                let ground = Ground {
                    engine,
                    permit: &session.permit,
                    snapshot,
                    now: session.now,
                    writer: None,
                    targets,
                    wish: &Wish::default(),
                    attempt,
                };
                let rules = snapshot.rules().await?;
                let Weighed::Commit(steps) = ground.weigh(&forget, &rules, None).await? else {
                    return Err(Error::forbidden("a rule wants a person to approve each erasure"));
                };
                let erased = done(steps);
                planned.writes = erased.writes;
                planned.preconditions = erased.preconditions;
                planned.trace = erased.trace;
            }
            if profile {
                planned.writes.push(Write::EraseProfile(None));
            }
            planned.writes.extend(proposals);
            planned.preconditions.extend(epochs(snapshot.epochs().await?));
            planned.trace = planned.trace.with("count", planned.output);
            Ok(planned)
        })
    }
}

/// Takes back what was proposed about the person, decided or not.
async fn withdrawn(snapshot: &dyn Snapshot, now: Timestamp) -> Result<Vec<Write>> {
    let mut writes = Vec::new();
    for state in [HoldState::Pending, HoldState::Approved, HoldState::Rejected, HoldState::Expired]
    {
        for mut hold in snapshot.holds(state, HOLDS).await? {
            let before = hold.clone();
            hold.withdraw(now);
            if hold != before {
                writes.push(Write::EraseHold(hold.id));
            }
        }
    }
    Ok(writes)
}

async fn present(snapshot: &dyn Snapshot) -> Result<Vec<Memory>> {
    let filter = Filter { statuses: PRESENT.to_vec(), ..Filter::default() };
    let mut page = PageRequest { limit: limits::PAGE, ..PageRequest::default() };
    let mut all = Vec::new();
    loop {
        let found = snapshot.memories(&filter, &page).await?;
        all.extend(found.items);
        match found.next {
            Some(next) => page.after = Some(next),
            None => return Ok(all),
        }
    }
}
