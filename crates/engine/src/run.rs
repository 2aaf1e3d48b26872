//! The one way in: enter, read or act, and leave a trace.

use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use yore_canon::hash::Sha256;
use yore_domain::audit::{self, Actor, Outcome, Target};
use yore_domain::grant::Verb;
use yore_domain::{Error, MemoryId, Result, Timestamp, VaultId};
use yore_policy::redact::Viewer;
use yore_policy::{Need, Permit, authorise};
use yore_store::plan::Operation;
use yore_store::{CommitError, Durability, Plan, Precondition, Snapshot, Write};

use crate::call::Call;
use crate::engine::Engine;
use crate::evidence::Unknown;
use crate::kept::Kept;

/// How often facts and judgement are repeated when the vault moved underneath.
const ATTEMPTS: usize = 3;

/// A caller that may do what it came for.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) permit: Permit,
    pub(crate) now: Timestamp,
    /// What the owner's rules keep from it, once it reads.
    pub(crate) kept: Kept,
}

impl Session {
    /// As whom the caller looks: it decides what consent leaves out.
    pub(crate) fn viewer(&self) -> Viewer {
        Viewer::of(self.permit.principal())
    }

    /// Whether the owner speaks, or the server itself.
    pub(crate) fn is_owner(&self) -> bool {
        self.viewer() == Viewer::Own
    }

    /// Where the names live that this caller made up; the owner's is the empty one.
    pub(crate) fn namespace(&self) -> &str {
        self.permit.principal().agent().unwrap_or_default()
    }
}

/// What an operation leaves in the audit chain.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// What it touched.
    pub(crate) targets: Vec<Target>,
    /// Memories that recall returned.
    pub(crate) used: Vec<MemoryId>,
    /// Counts and flags; never text.
    pub(crate) detail: Map<String, Value>,
}

impl Trace {
    /// A trace that only counts.
    pub(crate) fn count(found: usize) -> Self {
        Self::default().with("count", found)
    }

    /// Adds a count or a flag.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.detail.insert(name.to_owned(), value.into());
        self
    }

    /// Adds what was touched.
    pub(crate) fn touching(mut self, memories: impl IntoIterator<Item = MemoryId>) -> Self {
        self.targets.extend(memories.into_iter().map(|memory| Target {
            memory,
            number: None,
            digest: None,
        }));
        self
    }
}

/// An operation that only looks.
pub(crate) trait Read: Send + Sync {
    /// What it answers.
    type Output: Send;

    /// What it needs.
    fn need(&self) -> Need;

    /// Checks the input before anything is looked up.
    fn validate(&self) -> Result<()> {
        Ok(())
    }

    /// Looks, through the session's lens.
    fn read<'a>(
        &'a self,
        engine: &'a Engine,
        session: &'a Session,
        snapshot: &'a dyn Snapshot,
    ) -> BoxFuture<'a, Result<(Self::Output, Trace)>>;
}

/// An operation that changes something.
pub(crate) trait Act: Serialize + Send + Sync {
    /// What it answers; a retry with the same operation id gets it again.
    type Output: Serialize + DeserializeOwned + Send;

    /// What it needs.
    fn need(&self) -> Need;

    /// Checks the input before anything is looked up.
    fn validate(&self) -> Result<()> {
        Ok(())
    }

    /// Gathers facts, judges, and plans. Called again when the vault moved underneath.
    fn plan<'a>(
        &'a self,
        engine: &'a Engine,
        call: &'a Call,
        session: &'a Session,
        snapshot: &'a dyn Snapshot,
        attempt: Attempt,
    ) -> BoxFuture<'a, Result<Planned<Self::Output>>>;

    /// Notes that it is committed, for work that follows from it.
    fn committed(&self, _engine: &Engine, _session: &Session) {}
}

/// Whether a plan is made for the first time, or again because something had moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// What is rarely so may be assumed not to be so: the commit finds out.
    First,
    /// Everything is looked up.
    Again,
}

/// A look that is told by one function.
pub(crate) type Looking<I, O> = for<'a> fn(
    &'a Engine,
    &'a Session,
    &'a dyn Snapshot,
    &'a I,
) -> BoxFuture<'a, Result<(O, Trace)>>;

/// A change that is planned by one function.
pub(crate) type Changing<I, O> = for<'a> fn(
    &'a Engine,
    &'a Session,
    &'a dyn Snapshot,
    &'a I,
) -> BoxFuture<'a, Result<Planned<O>>>;

struct Look<I, O> {
    need: Need,
    input: I,
    look: Looking<I, O>,
}

impl<I: Send + Sync, O: Send> Read for Look<I, O> {
    type Output = O;

    fn need(&self) -> Need {
        self.need
    }

    fn read<'a>(
        &'a self,
        engine: &'a Engine,
        session: &'a Session,
        snapshot: &'a dyn Snapshot,
    ) -> BoxFuture<'a, Result<(O, Trace)>> {
        (self.look)(engine, session, snapshot, &self.input)
    }
}

#[derive(Serialize)]
struct Change<I, O> {
    #[serde(skip)]
    need: Need,
    input: I,
    #[serde(skip)]
    plan: Changing<I, O>,
}

impl<I, O> Act for Change<I, O>
where
    I: Serialize + Send + Sync,
    O: Serialize + DeserializeOwned + Send,
{
    type Output = O;

    fn need(&self) -> Need {
        self.need
    }

    fn plan<'a>(
        &'a self,
        engine: &'a Engine,
        _call: &'a Call,
        session: &'a Session,
        snapshot: &'a dyn Snapshot,
        _attempt: Attempt,
    ) -> BoxFuture<'a, Result<Planned<O>>> {
        (self.plan)(engine, session, snapshot, &self.input)
    }
}

/// What an act would change, and what it would answer.
#[derive(Debug)]
pub(crate) struct Planned<T> {
    /// The answer.
    pub(crate) output: T,
    /// The changes.
    pub(crate) writes: Vec<Write>,
    /// What must still hold.
    pub(crate) preconditions: Vec<Precondition>,
    /// Whether it is done or waits.
    pub(crate) outcome: Outcome,
    /// What the audit chain says besides.
    pub(crate) trace: Trace,
}

impl<T> Planned<T> {
    /// A plan that is done once it is committed.
    pub(crate) fn done(output: T, writes: Vec<Write>) -> Self {
        Self {
            output,
            writes,
            preconditions: Vec::new(),
            outcome: Outcome::Done,
            trace: Trace::default(),
        }
    }

    /// The same with another answer.
    pub(crate) fn map<U>(self, output: U) -> Planned<U> {
        let Self { writes, preconditions, outcome, trace, .. } = self;
        Planned { output, writes, preconditions, outcome, trace }
    }

    /// The same with a trace.
    pub(crate) fn traced(mut self, trace: Trace) -> Self {
        self.trace = trace;
        self
    }
}

/// Whether a call counts against its caller's budget.
#[derive(Clone, Copy, Debug)]
enum Spending {
    Once,
    Nothing,
}

impl Engine {
    /// Evidence, principal, permit. A refusal is audited where the vault is known.
    pub(crate) async fn enter(&self, call: &Call, need: Need) -> Result<Session> {
        self.admit(call, need, Spending::Once).await
    }

    /// Looks a caller up who was let in before and paid for it.
    pub(crate) async fn enter_again(&self, call: &Call, need: Need) -> Result<Session> {
        self.admit(call, need, Spending::Nothing).await
    }

    async fn admit(&self, call: &Call, need: Need, spending: Spending) -> Result<Session> {
        let now = self.now();
        let unknown = if need.verbs.has(Verb::Write) { Unknown::Create } else { Unknown::Refuse };
        let (vault, actor, error) = match self.believe(call, now, unknown).await {
            Err((vault, error)) => (vault, Actor::Unknown, error),
            Ok((evidence, principal)) => match authorise(&principal, need, now) {
                Ok(permit) => {
                    let spent = match spending {
                        Spending::Once => {
                            let (store, settings) = (self.store(), self.settings());
                            self.0.budgets.spend(store, settings, &permit, need, now).await
                        }
                        Spending::Nothing => Ok(()),
                    };
                    match spent {
                        Ok(()) => return Ok(Session { permit, now, kept: Kept::default() }),
                        Err(error) => (evidence.vault, principal.actor(), error),
                    }
                }
                Err(error) => (evidence.vault, principal.actor(), error),
            },
        };
        let permit = self.system(vault, "record a refusal")?;
        let draft = self.draft(call, actor, need.wanted(), now, refusal(&error), Trace::default());
        self.record(&permit, draft, Vec::new()).await;
        Err(error)
    }

    /// Runs a look that one function tells.
    pub(crate) async fn look<I: Send + Sync, O: Send>(
        &self,
        call: &Call,
        need: Need,
        input: I,
        look: Looking<I, O>,
    ) -> Result<O> {
        self.read(call, &Look { need, input, look }).await
    }

    /// Runs a change that one function plans.
    pub(crate) async fn change<I, O>(
        &self,
        call: &Call,
        need: Need,
        input: I,
        plan: Changing<I, O>,
    ) -> Result<O>
    where
        I: Serialize + Send + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        self.act(call, &Change { need, input, plan }).await
    }

    /// Runs an operation that only looks.
    pub(crate) async fn read<R: Read>(&self, call: &Call, op: &R) -> Result<R::Output> {
        let mut session = self.enter(call, op.need()).await?;
        let looked = async {
            op.validate()?;
            let snapshot = self.store().snapshot(&session.permit).await?;
            session.kept = Kept::of(&session, &*snapshot).await?;
            op.read(self, &session, &*snapshot).await
        };
        let looked = looked.await;
        self.leave(call, &session, looked).await
    }

    /// Leaves the trace of something that was looked at, and gives the answer.
    pub(crate) async fn leave<T>(
        &self,
        call: &Call,
        session: &Session,
        looked: Result<(T, Trace)>,
    ) -> Result<T> {
        let (result, outcome, trace) = match looked {
            Ok((output, trace)) => (Ok(output), Outcome::Done, trace),
            Err(error) => {
                let outcome = refusal(&error);
                (Err(error), outcome, Trace::default())
            }
        };
        let used = trace.used.clone();
        let writes = if used.is_empty() {
            Vec::new()
        } else {
            vec![Write::Used { memories: used, at: session.now }]
        };
        let Session { permit, now, .. } = session;
        let draft = self.draft(call, permit.actor(), permit.operation(), *now, outcome, trace);
        self.record(permit, draft, writes).await;
        result
    }

    /// Runs an operation that changes something.
    pub(crate) async fn act<A: Act>(&self, call: &Call, op: &A) -> Result<A::Output> {
        let session = self.enter(call, op.need()).await?;
        match self.carry_out(call, &session, op).await {
            Ok(output) => Ok(output),
            Err(error @ Error::Held { .. }) => Err(error),
            Err(error) => {
                let Session { permit, now, .. } = &session;
                let outcome = refusal(&error);
                let (actor, operation) = (permit.actor(), permit.operation());
                let draft = self.draft(call, actor, operation, *now, outcome, Trace::default());
                self.record(permit, draft, Vec::new()).await;
                Err(error)
            }
        }
    }

    /// Runs a change of the server's own, on a vault that a caller was let into before.
    pub(crate) async fn act_alone<A: Act>(
        &self,
        vault: VaultId,
        protocol: &'static str,
        op: &A,
    ) -> Result<A::Output> {
        let permit = self.system(vault, op.need().operation)?;
        let session = Session { permit, now: self.now(), kept: Kept::default() };
        self.carry_out(&Call::anonymous(protocol), &session, op).await
    }

    /// Says what an operation would do. Nothing is written but the audit entry.
    pub(crate) async fn rehearse<A: Act>(&self, call: &Call, op: &A) -> Result<A::Output> {
        let session = self.enter(call, op.need()).await?;
        let weighed = async {
            op.validate()?;
            let snapshot = self.store().snapshot(&session.permit).await?;
            let planned = op.plan(self, call, &session, &*snapshot, Attempt::Again).await?;
            let trace = Trace { detail: planned.trace.detail, ..Trace::default() };
            Ok((planned.output, trace.with("dry_run", true)))
        };
        let weighed = weighed.await;
        self.leave(call, &session, weighed).await
    }

    async fn carry_out<A: Act>(&self, call: &Call, session: &Session, op: &A) -> Result<A::Output> {
        op.validate()?;
        let Session { permit, now, .. } = session;
        let caller = caller_of(&permit.actor());
        let fingerprint = match &call.operation {
            Some(_) => fingerprint(permit.operation(), op)?,
            None => String::new(),
        };
        let mut attempt = Attempt::First;
        for _ in 0..ATTEMPTS {
            let snapshot = self.store().snapshot(permit).await?;
            if let Some(id) = &call.operation
                && let Some(before) = snapshot.operation(&caller, id).await?
            {
                return repeat(before, &fingerprint);
            }
            let planned = op.plan(self, call, session, &*snapshot, attempt).await?;
            drop(snapshot);
            let Planned { output, writes, preconditions, outcome, trace } = planned;
            let held = match &outcome {
                Outcome::Held { hold } => Some(*hold),
                Outcome::Done | Outcome::Refused { .. } => None,
            };
            let operation = match &call.operation {
                None => None,
                Some(id) => Some(Operation {
                    caller: caller.clone(),
                    id: id.clone(),
                    fingerprint: fingerprint.clone(),
                    result: match held {
                        Some(hold) => serde_json::json!({ "held": hold }),
                        None => serde_json::json!({
                            "done": serde_json::to_value(&output).map_err(Error::internal)?
                        }),
                    },
                }),
            };
            let audit = self.draft(call, permit.actor(), permit.operation(), *now, outcome, trace);
            let plan = Plan {
                writes,
                preconditions,
                operation,
                durability: Durability::Strict,
                ..Plan::of(audit)
            };
            match self.store().commit(permit, plan).await {
                Ok(_) => {
                    op.committed(self, session);
                    self.0.work.touch(permit.vault());
                    return match held {
                        Some(hold) => Err(Error::Held { hold }),
                        None => Ok(output),
                    };
                }
                Err(CommitError::Stale(_)) => attempt = Attempt::Again,
                Err(CommitError::Failed(error)) => return Err(error),
            }
        }
        Err(Error::conflict("the vault changed meanwhile, try again"))
    }

    pub(crate) fn draft(
        &self,
        call: &Call,
        actor: Actor,
        operation: &str,
        at: Timestamp,
        outcome: Outcome,
        trace: Trace,
    ) -> audit::Draft {
        audit::Draft {
            at,
            actor,
            protocol: call.protocol.to_owned(),
            operation: operation.to_owned(),
            outcome,
            targets: trace.targets,
            request: call.request.clone(),
            source: call.source.clone(),
            because: None,
            detail: trace.detail,
        }
    }

    /// Writes the trace of something that changed nothing. A failure is logged, because the
    /// answer has been given already.
    pub(crate) async fn record(&self, permit: &Permit, draft: audit::Draft, writes: Vec<Write>) {
        let durability =
            if self.settings().strict_audit { Durability::Strict } else { Durability::Relaxed };
        let plan = Plan { writes, durability, ..Plan::of(draft) };
        if let Err(error) = self.store().commit(permit, plan).await {
            tracing::error!(vault = %permit.vault(), %error, "an audit entry could not be written");
        }
    }
}

fn refusal(error: &Error) -> Outcome {
    Outcome::Refused { code: error.code().to_owned() }
}

/// Whose operation ids these are, so that two callers cannot see each other's results.
pub(crate) fn caller_of(actor: &Actor) -> String {
    match actor {
        Actor::Owner => "owner".to_owned(),
        Actor::Agent { grant, .. } => grant.to_string(),
        Actor::Service { name } => format!("service:{name}"),
        Actor::System { reason } => format!("system:{reason}"),
        Actor::Anonymous | Actor::Unknown => "anonymous".to_owned(),
    }
}

fn fingerprint(operation: &str, op: &impl Serialize) -> Result<String> {
    let mut bytes = operation.as_bytes().to_vec();
    serde_json::to_writer(&mut bytes, op).map_err(Error::internal)?;
    Ok(Sha256::of(&bytes).to_hex())
}

fn repeat<T: DeserializeOwned>(before: Operation, fingerprint: &str) -> Result<T> {
    if before.fingerprint != fingerprint {
        return Err(Error::conflict("the operation id was used for another request"));
    }
    if let Some(hold) = before.result.get("held") {
        let hold = serde_json::from_value(hold.clone()).map_err(Error::internal)?;
        return Err(Error::Held { hold });
    }
    let done = before.result.get("done").cloned().unwrap_or_default();
    serde_json::from_value(done).map_err(Error::internal)
}
