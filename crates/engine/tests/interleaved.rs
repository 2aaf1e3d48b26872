//! Passes over short-term memory that overlap and break off, in every order.

use std::sync::Arc;

use futures::future::BoxFuture;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::sync::{Semaphore, mpsc, watch};
use yore_domain::job::{Job, JobState};
use yore_domain::kind::Kind;
use yore_domain::query::Effort;
use yore_domain::{MemoryId, Result, Seq, Span};
use yore_engine::{Consolidation, DryRun};
use yore_policy::Permit;
use yore_store::{CommitError, Plan, Receipt, Snapshot, Store};

use crate::consolidate::{deeds, item};
use crate::support::Vault;

/// Items of each case.
const ITEMS: usize = 3;

tokio::task_local! {
    /// Which pass a task is; others are not held up.
    static WHO: usize;
}

/// What a pass says to whoever drives it.
enum Said {
    AtGate(usize),
    Ended(usize),
}

/// A store that lets a pass go on only when it is its turn: before each look, before each commit,
/// and after each commit before the pass learns of it.
#[derive(Debug)]
struct Gate {
    store: Arc<dyn Store>,
    said: mpsc::UnboundedSender<Said>,
    turns: [Semaphore; 2],
}

impl Gate {
    async fn wait(&self) {
        let Ok(who) = WHO.try_with(|who| *who) else { return };
        self.said.send(Said::AtGate(who)).unwrap();
        self.turns[who].acquire().await.unwrap().forget();
    }
}

impl Store for Gate {
    fn snapshot<'a>(&'a self, permit: &'a Permit) -> BoxFuture<'a, Result<Box<dyn Snapshot>>> {
        Box::pin(async move {
            self.wait().await;
            self.store.snapshot(permit).await
        })
    }

    fn commit<'a>(
        &'a self,
        permit: &'a Permit,
        plan: Plan,
    ) -> BoxFuture<'a, Result<Receipt, CommitError>> {
        Box::pin(async move {
            self.wait().await;
            let done = self.store.commit(permit, plan).await;
            self.wait().await;
            done
        })
    }

    fn watch<'a>(&'a self, permit: &'a Permit) -> BoxFuture<'a, Result<watch::Receiver<Seq>>> {
        self.store.watch(permit)
    }
}

/// Runs two passes over one window step by step; the first breaks off at a step.
async fn overlap(
    vault: &Vault,
    gate: &Gate,
    said: &mut mpsc::UnboundedReceiver<Said>,
    order: &[bool],
    crash: usize,
) {
    let tasks = [0, 1].map(|who| {
        let (engine, owner) = (vault.engine.clone(), vault.owner());
        let asked = Consolidation { agent: Some("a".to_owned()), ..Consolidation::default() };
        let ended = gate.said.clone();
        tokio::spawn(WHO.scope(who, async move {
            engine.consolidate(&owner, asked, DryRun::No).await.unwrap();
            ended.send(Said::Ended(who)).unwrap();
        }))
    });
    // Whether each stands at the gate; `None` once it has ended.
    let mut at = [Some(false), Some(false)];
    let mut order = order.iter().cycle();
    let mut steps_of_first = 0;
    loop {
        while at.contains(&Some(false)) {
            match said.recv().await.unwrap() {
                Said::AtGate(who) => at[who] = Some(true),
                Said::Ended(who) => at[who] = None,
            }
        }
        let wanted = usize::from(*order.next().unwrap());
        let who = match (at[wanted], at[1 - wanted]) {
            (Some(_), _) => wanted,
            (None, Some(_)) => 1 - wanted,
            (None, None) => break,
        };
        if who == 0 {
            steps_of_first += 1;
            if steps_of_first == crash {
                tasks[0].abort();
                at[0] = None;
                continue;
            }
        }
        at[who] = Some(false);
        gate.turns[who].add_permits(1);
    }
    for task in tasks {
        if let Err(error) = task.await {
            assert!(error.is_cancelled(), "{error}");
        }
    }
}

async fn case(
    vault: &Vault,
    gate: &Gate,
    said: &mut mpsc::UnboundedReceiver<Said>,
    order: &[bool],
    crash: usize,
) {
    let mut ids: Vec<MemoryId> = Vec::new();
    for number in 0..ITEMS {
        ids.push(vault.holds(item("a", &format!("learnt {number}"), 0.9)).await);
    }
    overlap(vault, gate, said, order, crash).await;
    // The next start finds what is left.
    vault.clock.advance(Span::seconds(60));
    vault.engine.settle().await.unwrap();
    for id in ids {
        let history = vault.engine.history(&vault.owner(), id).await.unwrap();
        let kinds: Vec<Kind> = history.iter().map(|version| version.content.kind).collect();
        assert_eq!(kinds, [Kind::Working, Kind::Semantic], "{order:?} {crash}");
        assert_eq!(deeds(vault, id).await.len(), 1, "{order:?} {crash}");
    }
    let jobs = consolidated(vault).await;
    assert!(jobs.iter().all(|job| job.state == JobState::Completed), "{jobs:?}");
    let counted = jobs.iter().map(|job| job.done).sum::<u64>();
    assert_eq!(counted, ITEMS as u64, "each is counted once: {order:?} {crash}");
}

async fn consolidated(vault: &Vault) -> Vec<Job> {
    let mut jobs = vault.engine.jobs(&vault.owner(), 1000).await.unwrap();
    jobs.retain(|job| job.kind == "consolidate");
    jobs
}

/// A vault behind a gate, and what is said at the gate.
async fn gated() -> (Vault, Arc<Gate>, mpsc::UnboundedReceiver<Said>) {
    let (send, said) = mpsc::unbounded_channel();
    let mut gate = None;
    let vault = Vault::over(
        |settings| settings.effort = Effort::Instant,
        |store| {
            let turns = [Semaphore::new(0), Semaphore::new(0)];
            let made = Arc::new(Gate { store, said: send, turns });
            gate = Some(Arc::clone(&made));
            made
        },
    )
    .await;
    (vault, gate.unwrap(), said)
}

#[test]
fn mw_106_passes_that_overlap_or_break_off_promote_each_item_once() {
    let full = std::env::var_os("YORE_FULL").is_some();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cases = if full { 400 } else { 24 };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let strategy = (vec(any::<bool>(), 1..24), 0..60_usize);
    let tried = TestRunner::new(config).run(&strategy, |(order, crash)| {
        runtime.block_on(async {
            let (vault, gate, mut said) = gated().await;
            case(&vault, &gate, &mut said, &order, crash).await;
        });
        Ok(())
    });
    tried.unwrap();
}

#[tokio::test]
async fn mw_106_a_pass_that_broke_off_is_taken_up_and_one_that_was_cancelled_is_not() {
    let (vault, gate, mut said) = gated().await;
    for number in 0..ITEMS {
        vault.holds(item("a", &format!("learnt {number}"), 0.9)).await;
    }
    let (engine, owner) = (vault.engine.clone(), vault.owner());
    let pass = tokio::spawn(WHO.scope(0, async move {
        engine.consolidate(&owner, Consolidation::default(), DryRun::No).await
    }));
    // It goes on until its first item is done, and no further.
    let begun = loop {
        let Some(Said::AtGate(0)) = said.recv().await else { panic!("it ended") };
        if let [begun] = &consolidated(&vault).await[..] {
            break begun.clone();
        }
        gate.turns[0].add_permits(1);
    };
    assert_eq!((begun.state, begun.done), (JobState::Running, 1));
    pass.abort();
    assert!(pass.await.unwrap_err().is_cancelled());

    vault.engine.settle().await.unwrap();
    let jobs = consolidated(&vault).await;
    assert_eq!(jobs.len(), 1, "the same job went on: {jobs:?}");
    assert_eq!((jobs[0].id, jobs[0].state, jobs[0].done), (begun.id, JobState::Completed, 3));

    for number in 0..ITEMS {
        vault.holds(item("b", &format!("learnt {number} more"), 0.9)).await;
    }
    let (engine, owner) = (vault.engine.clone(), vault.owner());
    let pass = tokio::spawn(WHO.scope(1, async move {
        engine.consolidate(&owner, Consolidation::default(), DryRun::No).await
    }));
    let begun = loop {
        let Some(Said::AtGate(1)) = said.recv().await else { panic!("it ended") };
        if let Some(begun) = consolidated(&vault).await.iter().find(|job| !job.state.is_final()) {
            break begun.id;
        }
        gate.turns[1].add_permits(1);
    };
    vault.engine.cancel_job(&vault.owner(), begun).await.unwrap();
    gate.turns[1].add_permits(100);
    let done = pass.await.unwrap().unwrap();
    // What was under way is finished, and nothing is begun.
    assert_eq!(done.count(yore_engine::Fate::Keep), 1, "{done:?}");
    let job = vault.engine.job(&vault.owner(), begun).await.unwrap();
    assert_eq!(job.state, JobState::Cancelled);
}
