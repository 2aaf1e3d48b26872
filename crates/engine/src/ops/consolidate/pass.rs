//! One pass over short-term memory: a job whose every step is one commit.
//!
//! A step holds only if the item's head is still the one that was scored. That is the claim on the
//! item: of two passes one wins, the other finds it moved. The job's counts are written in the same
//! commit, so a pass that broke off is taken up where it was, and counts nothing twice.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use serde_json::json;
use yore_domain::audit::{Outcome, Target};
use yore_domain::hold::{HoldReason, HoldState};
use yore_domain::job::{Job, JobState};
use yore_domain::kind::Kind;
use yore_domain::memory::{Cause, Memory};
use yore_domain::mutation::{Depth, MergeStrategy, Mutation, Patch};
use yore_domain::{Error, HoldId, JobId, Result, Span, Timestamp, VaultId};
use yore_policy::{Permit, Unasked};
use yore_store::{CommitError, Plan, Precondition, Snapshot, Write};

use super::item::{Candidate, Measure, candidates};
use super::{Consolidated, Consolidation, Fate, Scored};
use crate::background::PROTOCOL;
use crate::call::Call;
use crate::engine::Engine;
use crate::mutate::{Ground, Steps, Waiting, Weighed, Wish};
use crate::ops::many::hold_named;
use crate::ops::remember::statement;
use crate::ops::revise;
use crate::run::{Attempt, Trace};

/// What the job and the audit chain call it.
const NAME: &str = "consolidate";
/// How often a step is planned anew when rules moved underneath.
const ATTEMPTS: usize = 3;
/// Finished passes of which the job is kept.
const KEPT: usize = 20;
/// Jobs that are looked through.
const JOBS: usize = 1000;

/// A pass under way.
pub(crate) struct Pass<'a> {
    engine: &'a Engine,
    permit: Permit,
    asked: Consolidation,
    measure: Measure,
    /// The job, once there is something to do.
    job: Option<(Job, Claim<'a>)>,
}

/// What is to be done about an item.
enum Step {
    /// Commit this.
    Do(Box<Work>),
    /// Nothing, for this reason.
    Rest(Fate, String, Option<HoldId>),
    /// Nothing at all any more: somebody ended the job.
    Stop,
}

/// A step that is ready to be committed.
struct Work {
    fate: Fate,
    writes: Vec<Write>,
    preconditions: Vec<Precondition>,
    outcome: Outcome,
    hold: Option<HoldId>,
    why: Option<String>,
}

impl<'a> Pass<'a> {
    /// Makes a pass ready. Nothing is read yet.
    pub(crate) fn new(engine: &'a Engine, vault: VaultId, asked: Consolidation) -> Result<Self> {
        let settings = &engine.settings().consolidation;
        let threshold = asked.threshold.unwrap_or(settings.threshold);
        if !(0.0..=1.0).contains(&threshold) {
            return Err(Error::invalid("threshold", "must be a number from 0 to 1"));
        }
        // Where no pass runs by itself, items still get the usual time.
        let usual = super::Consolidating::default().every;
        let every = if settings.every == Span::ZERO { usual } else { settings.every };
        let measure = Measure {
            scorer: settings.scorer(asked.scorer.as_deref())?,
            threshold,
            every,
            window: settings.window,
            now: engine.now(),
        };
        Ok(Self { engine, permit: engine.system(vault, NAME)?, asked, measure, job: None })
    }

    /// Takes up a pass that broke off; `None` when somebody is at it, or it has ended meanwhile.
    pub(crate) async fn resumed(
        engine: &'a Engine,
        vault: VaultId,
        job: JobId,
    ) -> Result<Option<Self>> {
        let Some(claim) = Claim::on(&engine.0.work.passes, job) else { return Ok(None) };
        // Only now: whoever had the claim before may have counted on.
        let permit = engine.system(vault, NAME)?;
        let job = engine.store().snapshot(&permit).await?.job(job).await?;
        let Some(job) = job.filter(|job| !job.state.is_final()) else { return Ok(None) };
        let asked = serde_json::from_value(job.input.clone()).unwrap_or_default();
        let mut pass = Self::new(engine, vault, asked)?;
        pass.job = Some((job, claim));
        Ok(Some(pass))
    }

    /// Says what the pass would do.
    pub(crate) async fn weigh_all(&mut self) -> Result<Consolidated> {
        let snapshot = self.engine.store().snapshot(&self.permit).await?;
        let mut report = self.report(true);
        for candidate in candidates(&*snapshot, &self.asked, &self.measure).await? {
            let step = self.plan(&*snapshot, &candidate).await;
            report.push(match step {
                Err(error) => failed(candidate, &error),
                Ok(Step::Stop) => told(candidate, Fate::Keep, None, None),
                Ok(Step::Rest(fate, why, hold)) => told(candidate, fate, Some(why), hold),
                Ok(Step::Do(work)) => told(candidate, work.fate, work.why, None),
            });
        }
        Ok(report)
    }

    /// Carries the pass out.
    pub(crate) async fn run(&mut self) -> Result<Consolidated> {
        let found = {
            let snapshot = self.engine.store().snapshot(&self.permit).await?;
            candidates(&*snapshot, &self.asked, &self.measure).await?
        };
        let mut report = self.report(false);
        let mut stopped = false;
        for candidate in found {
            if stopped || candidate.fate == Fate::Keep {
                report.push(candidate.told());
                continue;
            }
            report.push(match self.step(&candidate).await {
                // One that fails stays where it is and stops none of the others.
                Err(error) => failed(candidate, &error),
                Ok(Step::Stop) => {
                    stopped = true;
                    told(candidate, Fate::Keep, None, None)
                }
                Ok(Step::Rest(fate, why, hold)) => told(candidate, fate, Some(why), hold),
                Ok(Step::Do(done)) => told(candidate, done.fate, done.why, done.hold),
            });
        }
        report.job = self.job.as_ref().map(|(job, _)| job.id);
        if !stopped {
            self.finish().await?;
        }
        Ok(report)
    }

    fn report(&self, dry_run: bool) -> Consolidated {
        Consolidated {
            scorer: self.measure.scorer.name().to_owned(),
            threshold: self.measure.threshold,
            dry_run,
            job: None,
            fates: Default::default(),
            items: Vec::new(),
        }
    }

    /// Does what follows for one item, or finds that nothing does.
    async fn step(&mut self, candidate: &Candidate) -> Result<Step> {
        for _ in 0..ATTEMPTS {
            let snapshot = self.engine.store().snapshot(&self.permit).await?;
            let work = match self.plan(&*snapshot, candidate).await? {
                Step::Do(work) => work,
                rest @ (Step::Rest(..) | Step::Stop) => return Ok(rest),
            };
            drop(snapshot);
            if self.commit(candidate, &work).await? == Committed::Yes {
                return Ok(Step::Do(work));
            }
        }
        Err(Error::conflict("the vault changed meanwhile"))
    }

    /// Plans what becomes of an item, against the vault as it is now.
    async fn plan(&self, snapshot: &dyn Snapshot, candidate: &Candidate) -> Result<Step> {
        if let Some((job, _)) = &self.job
            && snapshot.job(job.id).await?.is_some_and(|job| job.state == JobState::Cancelled)
        {
            return Ok(Step::Stop);
        }
        let memory = snapshot.memory(candidate.memory).await?;
        let Some(memory) = memory.filter(|memory| memory.head.number == candidate.number) else {
            return Ok(Step::Rest(Fate::Moved, "it was changed meanwhile".to_owned(), None));
        };
        let wish = Wish::default();
        let mut ground = Ground {
            engine: self.engine,
            permit: &self.permit,
            snapshot,
            now: self.measure.now.max(memory.head.recorded),
            writer: memory.head.writer.clone(),
            targets: Vec::new(),
            wish: &wish,
            attempt: Attempt::Again,
        };
        let wanted = match candidate.fate {
            Fate::Promote => promotion(&ground, memory).await?,
            Fate::Evict => eviction(memory),
            Fate::Merge | Fate::Keep | Fate::Hold | Fate::Refuse | Fate::Moved => {
                return Ok(Step::Rest(Fate::Keep, candidate.why.clone(), None));
            }
        };
        let Wanted { fate, mutation, targets, counts_as, unsaid } = wanted;
        ground.targets = targets;
        if fate != Fate::Promote {
            // What the server merges and lets go, no agent wrote.
            ground.writer = None;
        }
        let head = ground.targets.last().map(|memory| &memory.head);
        let agent = head.and_then(|head| head.writer.clone().or(head.content.scope.agent.clone()));
        let unasked = Unasked { agent: agent.as_deref(), counts_as };
        let rules = snapshot.rules().await?;
        let mut step = match ground.weigh_unasked(&mutation, &rules, unasked).await? {
            Weighed::Hold(waiting) => {
                let asked = Asked { fate, mutation: &mutation, waiting: *waiting };
                // Whoever decides speaks for the owner, and no name an agent chose comes between.
                ground.writer = None;
                match ask(&ground, candidate, asked).await? {
                    Step::Do(work) => work,
                    rest @ (Step::Rest(..) | Step::Stop) => return Ok(rest),
                }
            }
            Weighed::Commit(steps) => Box::new(Work::of(fate, steps, unsaid)),
        };
        step.preconditions.push(Precondition::RuleEpoch(snapshot.epochs().await?.rules));
        Ok(Step::Do(step))
    }

    /// Commits a step together with the job's count of it.
    async fn commit(&mut self, candidate: &Candidate, work: &Work) -> Result<Committed> {
        let known = self.job.take();
        let begun = known.is_some();
        let (before, claim) = match known {
            Some(known) => known,
            None => self.begin()?,
        };
        let job = counted(before.clone(), work.fate, self.engine.now());
        let mut trace = Trace::default()
            .with("job", job.id.to_string())
            .with("fate", work.fate.as_str())
            .with("scorer", self.measure.scorer.name())
            .with("score", (candidate.total * 1e4).round() / 1e4)
            .with("threshold", self.measure.threshold);
        let number = match work.outcome {
            Outcome::Done => candidate.number + 1,
            Outcome::Held { .. } | Outcome::Refused { .. } => candidate.number,
        };
        let memory = candidate.memory;
        trace.targets.push(Target { memory, number: Some(number), digest: None });
        let mut writes = work.writes.clone();
        writes.push(Write::Job(Box::new(job.clone())));
        let committed = self.write(writes, work, trace).await;
        match committed {
            Ok(Committed::Yes) => self.job = Some((job, claim)),
            // What did not happen is not counted; a job that did not begin is none.
            Ok(Committed::No) | Err(_) => self.job = begun.then_some((before, claim)),
        }
        committed
    }

    async fn write(&self, writes: Vec<Write>, work: &Work, trace: Trace) -> Result<Committed> {
        let (engine, permit) = (self.engine, &self.permit);
        let call = Call::anonymous(PROTOCOL);
        let (actor, outcome) = (permit.actor(), work.outcome.clone());
        let audit = engine.draft(&call, actor, permit.operation(), engine.now(), outcome, trace);
        let preconditions = work.preconditions.clone();
        let plan = Plan { writes, preconditions, ..Plan::of(audit) };
        match engine.store().commit(permit, plan).await {
            Ok(_) => Ok(Committed::Yes),
            Err(CommitError::Stale(_)) => Ok(Committed::No),
            Err(CommitError::Failed(error)) => Err(error),
        }
    }

    fn begin(&self) -> Result<(Job, Claim<'a>)> {
        let now = self.engine.now();
        let id = JobId::random();
        let job = Job {
            id,
            kind: NAME.to_owned(),
            state: JobState::Running,
            input: serde_json::to_value(&self.asked).map_err(Error::internal)?,
            checkpoint: serde_json::Value::Null,
            report: json!({}),
            done: 0,
            total: None,
            error: None,
            created: now,
            updated: now,
        };
        let claim = Claim::on(&self.engine.0.work.passes, id);
        claim.map(|claim| (job, claim)).ok_or_else(|| Error::internal("a random id came twice"))
    }

    /// Ends the job, and drops those of passes long gone.
    async fn finish(&mut self) -> Result<()> {
        let Some((mut job, _claim)) = self.job.take() else { return Ok(()) };
        let snapshot = self.engine.store().snapshot(&self.permit).await?;
        let known = snapshot.jobs(JOBS).await?;
        drop(snapshot);
        job.state = JobState::Completed;
        job.total = Some(job.done);
        job.updated = self.engine.now();
        let ended = known.iter().filter(|job| job.kind == NAME && job.state.is_final());
        let mut writes: Vec<Write> =
            ended.skip(KEPT - 1).map(|job| Write::RemoveJob(job.id)).collect();
        let trace = Trace::count(usize::try_from(job.done).unwrap_or(usize::MAX))
            .with("job", job.id.to_string());
        writes.push(Write::Job(Box::new(job)));
        self.engine.commit_own(&self.permit, writes, Vec::new(), trace).await?;
        Ok(())
    }
}

/// Whether a step was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Committed {
    Yes,
    /// Something had moved.
    No,
}

/// The right to work on a job, in this process.
pub(crate) struct Claim<'a> {
    claims: &'a Mutex<BTreeSet<JobId>>,
    job: JobId,
}

impl<'a> Claim<'a> {
    fn on(claims: &'a Mutex<BTreeSet<JobId>>, job: JobId) -> Option<Self> {
        claims.lock().insert(job).then_some(Self { claims, job })
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.claims.lock().remove(&self.job);
    }
}

/// Passes that have not ended.
pub(super) async fn unfinished(engine: &Engine, vault: VaultId) -> Result<Vec<JobId>> {
    let permit = engine.system(vault, NAME)?;
    let snapshot = engine.store().snapshot(&permit).await?;
    let jobs = snapshot.jobs(JOBS).await?;
    let open = jobs.iter().filter(|job| job.kind == NAME && !job.state.is_final());
    Ok(open.map(|job| job.id).collect())
}

/// A change that the pass wants.
struct Wanted {
    fate: Fate,
    mutation: Mutation,
    /// What it touches, the item last.
    targets: Vec<Memory>,
    counts_as: &'static [&'static str],
    /// What nobody may have said meanwhile.
    unsaid: Option<String>,
}

/// The item as a semantic memory: a new version of the same, or part of the memory that says
/// exactly this already.
async fn promotion(ground: &Ground<'_>, memory: Memory) -> Result<Wanted> {
    let head = &memory.head;
    let facet = if head.content.facet == Kind::Working.facet() {
        Kind::Semantic.facet()
    } else {
        head.content.facet
    };
    let patch = Patch {
        kind: Some(Kind::Semantic),
        facet: Some(facet),
        created: Some(head.time.created),
        valid_from: Some(head.time.valid_from),
        valid_to: head.time.valid_to,
        ..Patch::default()
    };
    let said = statement(ground, &revise::after(&memory, &patch));
    let known = match ground.snapshot.said(&said).await? {
        Some(known) => ground.snapshot.memory(known).await?,
        None => None,
    };
    let (id, expected) = (head.memory, Some(head.number));
    Ok(match known {
        None => Wanted {
            fate: Fate::Promote,
            mutation: Mutation::Revise { memory: id, patch: Box::new(patch), expected },
            targets: vec![memory],
            counts_as: &[NAME, "remember", "revise"],
            unsaid: Some(said),
        },
        Some(known) => Wanted {
            fate: Fate::Merge,
            mutation: Mutation::Merge {
                canonical: known.head.memory,
                duplicates: vec![id],
                strategy: MergeStrategy::KeepCanonical,
            },
            targets: vec![known, memory],
            counts_as: &[NAME, "remember", "merge"],
            unsaid: None,
        },
    })
}

fn eviction(memory: Memory) -> Wanted {
    Wanted {
        fate: Fate::Evict,
        mutation: Mutation::Forget {
            memories: vec![memory.head.memory],
            depth: Depth::Tombstone,
            reason: Some(NAME.to_owned()),
        },
        targets: vec![memory],
        counts_as: &[NAME, "expire", "forget"],
        unsaid: None,
    }
}

impl Work {
    fn of(fate: Fate, steps: Steps, unsaid: Option<String>) -> Self {
        let Steps { output: _, mut writes, mut preconditions } = steps;
        preconditions.extend(unsaid.map(Precondition::Unsaid));
        if fate == Fate::Evict {
            for write in &mut writes {
                if let Write::Version { version, .. } = write {
                    version.cause = Cause::Expired;
                }
            }
        }
        Self { fate, writes, preconditions, outcome: Outcome::Done, hold: None, why: None }
    }
}

/// What a person is asked about.
struct Asked<'a> {
    fate: Fate,
    mutation: &'a Mutation,
    waiting: Waiting,
}

/// Lets a person decide about an item, once for each version of it.
async fn ask(ground: &Ground<'_>, candidate: &Candidate, asked: Asked<'_>) -> Result<Step> {
    let Asked { fate, mutation, waiting } = asked;
    let (memory, number) = (candidate.memory, candidate.number);
    let id = hold_named(&format!("{NAME}:{}:{memory}:{number}", fate.as_str()));
    if let Some(known) = ground.snapshot.hold(id).await? {
        return Ok(match known.state {
            HoldState::Pending => {
                Step::Rest(Fate::Hold, "it waits for a decision".to_owned(), Some(id))
            }
            HoldState::Approved | HoldState::Rejected | HoldState::Expired => {
                Step::Rest(Fate::Keep, "a person did not let it happen".to_owned(), Some(id))
            }
        });
    }
    let why = match waiting.reason() {
        HoldReason::Rule(name) => format!("the rule '{name}' lets a person decide"),
        HoldReason::Requested
        | HoldReason::NearDuplicate(_)
        | HoldReason::Contradiction(_)
        | HoldReason::SyncConflict(_)
        | HoldReason::Unhelpful => "a person decides".to_owned(),
    };
    let mut hold = ground.hold(&Call::anonymous(PROTOCOL), mutation, waiting);
    hold.id = id;
    hold.reasoning = Some(format!("{}: {}", fate.as_str(), candidate.why));
    let writes = ground.held(hold).writes;
    let mut preconditions = ground.unmoved();
    preconditions.push(Precondition::Unasked(id));
    let outcome = Outcome::Held { hold: id };
    let (fate, hold, why) = (Fate::Hold, Some(id), Some(why));
    Ok(Step::Do(Box::new(Work { fate, writes, preconditions, outcome, hold, why })))
}

/// The job with one step more.
fn counted(mut job: Job, fate: Fate, now: Timestamp) -> Job {
    let so_far = job.report.get(fate.as_str()).and_then(serde_json::Value::as_u64).unwrap_or(0);
    job.report[fate.as_str()] = (so_far + 1).into();
    job.done += 1;
    job.updated = now;
    job
}

fn told(candidate: Candidate, fate: Fate, why: Option<String>, hold: Option<HoldId>) -> Scored {
    let told = candidate.told();
    let why = why.unwrap_or_else(|| told.why.clone());
    Scored { fate, why, hold, ..told }
}

/// What is told of an item that could not be dealt with.
fn failed(candidate: Candidate, error: &Error) -> Scored {
    if matches!(error, Error::Internal(_)) {
        tracing::error!(memory = %candidate.memory, %error, "an item could not be consolidated");
    }
    let why = error.to_string();
    told(candidate, Fate::Refuse, Some(why), None)
}
