//! What moves of vaults are tried with: a store that holds some of everything, and a target that
//! fails in the middle or does not take everything.

#![expect(clippy::missing_panics_doc, reason = "a story panics when the guarantee does not hold")]

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use yore_domain::conversation::Attachment;
use yore_domain::grant::Verb;
use yore_domain::memory::{Cause, Draft, FeedbackOutcome, Relation};
use yore_domain::query::{Corpus, Filter};
use yore_domain::{BlobHash, Error, MemoryId, TenantId, VaultId};
use yore_policy::{Need, Permit, Principal, authorise};

use super::{Scene, books, gather, indexing, memories, talks, time, write};
use crate::inside::Inside;
use crate::plan::{AliasTarget, Operation};
use crate::search::{RowKey, Source as Corpora, Vector};
use crate::transfer::{Fate, Intake, Line, Moved, Row, Rows, Source, Standing, Target, Tip};
use crate::{Answer, Keeper, Plan, Store, Write};

/// A permit to keep a vault.
#[must_use]
pub fn keeping(vault: VaultId) -> Permit {
    let system = Principal::system(vault, "suite");
    authorise(&system, Need::one("suite", Verb::Admin), time(0)).unwrap()
}

/// Fills a store with vaults that hold some of everything.
pub async fn furnish(store: &dyn Store, keeper: &dyn Keeper) {
    let scene = || Scene::new(store, keeper);
    memories::versions_form_a_chain(&scene().await).await;
    memories::erasing_leaves_no_text(&scene().await).await;
    memories::names_and_links_are_followed(&scene().await).await;
    memories::use_is_counted(&scene().await).await;
    talks::attachments_follow_their_messages(&scene().await).await;
    talks::what_was_said_can_be_erased(&scene().await).await;
    books::holds_are_for_the_owner_and_the_asker(&scene().await).await;
    books::grants_and_tokens_move_the_epoch(&scene().await).await;
    books::profiles_only_rise(&scene().await).await;
    books::procedures_follow_their_memory(&scene().await).await;
    books::jobs_are_kept(&scene().await).await;
    books::streams_and_letters_are_kept(&scene().await).await;
    // A vault that holds nothing, and one that holds all that the stories above leave out.
    scene().await;
    crowded(&scene().await).await;
    catalog(store).await;
}

/// What the catalog has of its own.
async fn catalog(store: &dyn Store) {
    let (permit, vault) = (keeping(VaultId::CATALOG), VaultId::random());
    let mut audit = audit(&permit);
    audit.operation = "catalog".into();
    let writes = vec![
        Write::Tenant { id: TenantId::random(), name: "acme".into() },
        Write::Locate { mac: [7; 32], vault },
        Write::Setting("issuer:x".into(), json!({"did": "did:web:example.org"})),
    ];
    store.commit(&permit, Plan { writes, ..Plan::of(audit) }).await.unwrap();
}

fn audit(permit: &Permit) -> yore_domain::audit::Draft {
    yore_domain::audit::Draft {
        at: time(1),
        actor: permit.actor(),
        protocol: "suite".into(),
        operation: "story".into(),
        outcome: yore_domain::audit::Outcome::Done,
        targets: Vec::new(),
        request: None,
        source: None,
        because: None,
        detail: serde_json::Map::new(),
    }
}

async fn crowded(scene: &Scene<'_>) {
    let mut draft = Draft::text("the boat is moored at Porto");
    draft.content.scope.session = Some("harbour".into());
    draft.content.tags = vec!["boat".into()];
    draft.content.relations = vec![Relation { kind: "about".into(), target: "entity:boat".into() }];
    let boat = scene.remember(draft).await;
    let mut next = boat.next(Cause::Revised, scene.tick(), Some("scheduler".into()));
    next.content.body.text = "the boat is moored at Faro, \"stern to\"".into();
    scene.commit(vec![write(&next)]).await;
    let held = scene.remember(Draft::text("kept for the court")).await;
    let feedback = Write::Feedback { memory: held.memory, outcome: FeedbackOutcome::Overridden };
    scene
        .commit(vec![
            Write::LegalHold { memory: held.memory, held: true },
            Write::Demote { memory: held.memory, demoted: true },
            Write::Used { memories: vec![held.memory], at: scene.tick() },
            feedback,
            Write::Alias {
                namespace: "scribe".into(),
                name: "the court's".into(),
                target: AliasTarget::Memory(held.memory),
                instead_of: None,
            },
        ])
        .await;
    for (row, model) in [(1, "sentence"), (2, "sentence"), (3, "other")] {
        let values = (0..384).map(|at| i8::try_from((at * row) % 250 - 125).unwrap()).collect();
        let vector = Vector { model: model.into(), scale: 0.007, values };
        let row = RowKey { source: Corpora::Version, row: u64::try_from(row).unwrap() };
        scene.commit(vec![Write::Vector { row, vector }]).await;
    }
    talk(scene).await;
    let mut plan = scene.plan(Vec::new());
    plan.operation = Some(Operation {
        caller: "owner".into(),
        id: "op-9".into(),
        fingerprint: "f".into(),
        result: json!({"memory": held.memory, "score": 0.1}),
    });
    scene.run(plan).await.unwrap();
    // Enough entries that a checkpoint is signed on the way.
    for _ in 0..260 {
        scene.commit(Vec::new()).await;
    }
}

async fn talk(scene: &Scene<'_>) {
    let talk = talks::talk(scene, "claude").await;
    for number in 0..300 {
        talks::say(scene, &talk, &format!("message {number} about marzipan")).await;
    }
    let parts = [vec![1u8; 70_000], vec![2u8; 70_000], b"the end".to_vec()];
    let (blob, size) = (BlobHash::of(&parts.concat()), parts.concat().len() as u64);
    for (number, bytes) in (0..).zip(parts) {
        let complete = (number == 2).then_some(size);
        scene.commit(vec![Write::BlobChunk { blob, number, bytes, complete }]).await;
    }
    let named = async |text: &str| {
        let mut message = talks::message(scene, text);
        message.attachments = vec![Attachment {
            filename: "harbour.txt".into(),
            media_type: "text/plain".into(),
            blob: Some(blob),
            size: Some(size),
            foreign: yore_domain::memory::Foreign::new(),
        }];
        scene.commit(vec![talks::saying(talk.id, &message)]).await;
    };
    named("see the timetable").await;
    let row = scene.look().await.unread(1).await.unwrap()[0].row;
    let text = "the ferry to Hydra leaves at nine".to_owned();
    let indexing = indexing("see the timetable ferry Hydra");
    let inside = vec![Inside { blob, text }];
    scene.commit(vec![Write::Inside { row, inside, indexing }]).await;
    // Nobody has read what hangs on this one.
    named("and once more").await;
}

/// Asserts that two stores answer a search in every vault with the same rows in the same order.
pub async fn finds_the_same(here: &dyn Store, there: &dyn Store, keeper: &dyn Keeper) {
    let vaults = keeper.vaults(&keeping(VaultId::CATALOG)).await.unwrap();
    let mut found = 0;
    for vault in vaults {
        let permit = keeping(vault.id);
        let (ours, theirs) =
            (here.snapshot(&permit).await.unwrap(), there.snapshot(&permit).await.unwrap());
        for text in ["marzipan", "the boat at Faro", "Hydra ferry", "court", "tea"] {
            for corpus in [Corpus::Memories, Corpus::Messages] {
                let any = Filter::default();
                let now = time(100_000);
                let listed = async |view: &dyn crate::Snapshot| -> Vec<(RowKey, u32)> {
                    let mut found = gather(view, text, corpus, &any, now).await;
                    found.retain(|one| one.signals.lexical > 0.0);
                    found.sort_by_key(|one| one.row);
                    found.iter().map(|one| (one.row, one.signals.lexical.to_bits())).collect()
                };
                let (ours, theirs) = (listed(&*ours).await, listed(&*theirs).await);
                let rows = |found: &[(RowKey, u32)]| -> Vec<RowKey> {
                    found.iter().map(|(row, _)| *row).collect()
                };
                assert_eq!(rows(&ours), rows(&theirs), "{text} in {}", vault.owner);
                found += ours.len();
            }
        }
    }
    assert!(found > 50, "nothing was found in either: {found}");
}

/// Asserts that a store is sound: every page or value, every audit chain, every index.
pub async fn is_sound(keeper: &dyn Keeper) {
    let vaults = keeper.vaults(&keeping(VaultId::CATALOG)).await.unwrap();
    assert!(vaults.len() > 10);
    let mut entries = 0;
    for id in vaults.iter().map(|vault| vault.id).chain([VaultId::CATALOG]) {
        let health = keeper.check(&keeping(id), false).await.unwrap();
        assert!(health.is_sound() && health.indexes.is_empty(), "{id}: {health:?}");
        entries += health.audit.entries;
    }
    assert!(entries > 500, "{entries}");
}

/// Whether every vault met this fate.
#[must_use]
pub fn all(moved: &[Moved], fate: Fate) -> bool {
    !moved.is_empty() && moved.iter().all(|one| one.fate == fate && one.broken == 0)
}

/// What goes wrong in a target.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It breaks off after so many batches.
    Stops(usize),
    /// It takes no rows of this kind.
    Drops(&'static str),
}

/// A target with a fault.
#[derive(Debug)]
pub struct Faulty<'a> {
    inner: &'a dyn Target,
    fault: Fault,
    batches: AtomicUsize,
}

impl<'a> Faulty<'a> {
    /// Gives a target a fault.
    #[must_use]
    pub fn new(inner: &'a dyn Target, fault: Fault) -> Self {
        Self { inner, fault, batches: AtomicUsize::new(0) }
    }
}

struct FaultyIntake<'a> {
    inner: Box<dyn Intake + 'a>,
    fault: Fault,
    batches: &'a AtomicUsize,
}

impl Source for Faulty<'_> {
    fn name<'a>(&'a self, permit: &'a Permit) -> Answer<'a, String> {
        self.inner.name(permit)
    }

    fn lines<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Vec<Line>> {
        self.inner.lines(permit)
    }

    fn tip<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Tip> {
        self.inner.tip(permit)
    }

    fn counts<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Vec<(&'static str, u64)>> {
        self.inner.counts(permit)
    }

    fn rows<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Rows> {
        self.inner.rows(permit)
    }
}

impl Target for Faulty<'_> {
    fn standing<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Standing> {
        self.inner.standing(permit)
    }

    fn begin<'a>(&'a self, permit: &'a Permit, origin: &'a str) -> Answer<'a, ()> {
        self.inner.begin(permit, origin)
    }

    fn intake<'a>(
        &'a self,
        permit: &'a Permit,
        line: Option<&'a Line>,
    ) -> Answer<'a, Box<dyn Intake + 'a>> {
        Box::pin(async move {
            let inner = self.inner.intake(permit, line).await?;
            let faulty = FaultyIntake { inner, fault: self.fault, batches: &self.batches };
            Ok(Box::new(faulty) as Box<dyn Intake + 'a>)
        })
    }

    fn discard<'a>(&'a self, permit: &'a Permit) -> Answer<'a, ()> {
        self.inner.discard(permit)
    }
}

impl Intake for FaultyIntake<'_> {
    fn put(&mut self, mut rows: Vec<Row>) -> Answer<'_, ()> {
        match self.fault {
            Fault::Stops(after) => {
                if self.batches.fetch_add(1, Ordering::Relaxed) >= after {
                    return Box::pin(async { Err(Error::internal("the power went")) });
                }
            }
            Fault::Drops(kind) => rows.retain(|row| row.kind() != kind),
        }
        self.inner.put(rows)
    }

    fn rows(&mut self) -> Answer<'_, Rows> {
        self.inner.rows()
    }

    fn keep(self: Box<Self>) -> Answer<'static, ()> {
        self.inner.keep()
    }
}

/// Makes a memory in the first vault of a store, after which a move made before is no longer whole.
pub async fn goes_on(store: &dyn Store, keeper: &dyn Keeper) {
    let vaults = keeper.vaults(&keeping(VaultId::CATALOG)).await.unwrap();
    let permit = keeping(vaults[0].id);
    let text = "something new";
    let version =
        yore_domain::memory::Version::first(MemoryId::random(), Draft::text(text), time(9), None);
    let plan = Plan { writes: vec![write(&version)], ..Plan::of(audit(&permit)) };
    store.commit(&permit, plan).await.unwrap();
}
