//! The guarantees of a store, one story each, told against whichever backend is under test.
//!
//! A backend's test names a function that makes an empty store and hands it to
//! [`stories!`](crate::stories): every story becomes a test of its own. A story panics when the
//! guarantee does not hold.

#![expect(clippy::unwrap_used, reason = "a story that cannot go on has failed")]

pub mod books;
pub mod memories;
pub mod moving;
pub mod outbox;
pub mod recall;
pub mod talks;
pub mod visible;

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};

use yore_domain::audit::{Draft as AuditDraft, Outcome, Target};
use yore_domain::class::Sensitivity;
use yore_domain::grant::{Grant, Labels, Verb, Verbs};
use yore_domain::memory::{Draft, Version};
use yore_domain::query::{Corpus, Filter};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, GrantId, MemoryId, TenantId, Timestamp, VaultId};
use yore_policy::{Evidence, Need, Permit, Presented, Principal, Standing, authorise, verify};

use crate::plan::Indexing;
use crate::search::{Candidate, Search, Vector};
use crate::{CommitError, Keeper, Plan, Receipt, Snapshot, Store, Write};

/// Turns every story into a test. `$make` is an async function that returns an empty store and
/// whatever must live as long as it; after `if it can:`, it may return nothing instead, once it
/// has said why.
#[macro_export]
macro_rules! stories {
    (if it can: $make:path) => {
        $crate::stories! { @all $make }
    };
    (@all $make:expr) => {
        $crate::stories! { @each $make =>
            memories: versions_form_a_chain, heads_are_checked_in_the_transaction,
                an_exact_statement_is_known, of_equal_statements_at_once_one_stays,
                erasing_leaves_no_text, the_past_can_be_read,
                lists_are_paged_without_gaps, names_and_links_are_followed, use_is_counted,
                filters_are_exact;
            recall: a_write_is_findable_at_once, time_is_respected,
                a_vector_finds_what_words_do_not, neighbours_come_along;
            talks: conversations_only_grow, attachments_follow_their_messages,
                what_attachments_say_belongs_to_their_message,
                what_was_said_can_be_erased, conversations_are_listed;
            books: holds_are_for_the_owner_and_the_asker, grants_and_tokens_move_the_epoch,
                an_operation_happens_once, profiles_only_rise, procedures_follow_their_memory,
                jobs_are_kept, streams_and_letters_are_kept,
                streams_and_letters_are_not_overtaken;
            outbox: the_outbox_folds_to_the_tables, every_commit_has_one_entry,
                a_failed_plan_writes_nothing, watchers_hear_of_changes;
        }
    };
    (@each $make:expr => $($module:ident: $($story:ident),*;)*) => {$($(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $story() {
            let Some((store, _kept)) = ($make)().await else { return };
            let scene = $crate::suite::Scene::new(&store, &store).await;
            $crate::suite::$module::$story(&scene).await;
        }
    )*)*};
    ($make:path) => {
        $crate::stories! { @all async || Some($make().await) }
    };
}

/// Turns the properties of visibility into tests, over so many random vaults. `$make` is an async
/// function that returns an empty store and whatever must live as long as it, or nothing once it
/// has said why.
#[macro_export]
macro_rules! visibility {
    ($make:path, $cases:expr) => {
        #[test]
        fn answers_are_exactly_what_the_lens_allows() {
            $crate::suite::visible::answers_are_exactly_what_the_lens_allows($make, $cases);
        }

        #[test]
        fn no_byte_depends_on_what_is_hidden() {
            $crate::suite::visible::no_byte_depends_on_what_is_hidden($make, $cases);
        }
    };
}

/// A fresh vault, its owner and its agents.
pub struct Scene<'a> {
    store: &'a dyn Store,
    keeper: &'a dyn Keeper,
    vault: VaultId,
    clock: AtomicI64,
}

impl fmt::Debug for Scene<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scene").field("vault", &self.vault).finish_non_exhaustive()
    }
}

impl<'a> Scene<'a> {
    /// Makes a vault for a new owner.
    pub async fn new(store: &'a dyn Store, keeper: &'a dyn Keeper) -> Self {
        let name = VaultId::random().to_string();
        let system = Principal::system(VaultId::CATALOG, "suite");
        let permit = authorise(&system, Need::one("create", Verb::Admin), time(0)).unwrap();
        let made = keeper.create(&permit, TenantId::DEFAULT, &name, time(0)).await.unwrap();
        Self { store, keeper, vault: made.id, clock: AtomicI64::new(1) }
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        self.store
    }

    /// Returns the keeper.
    #[must_use]
    pub fn keeper(&self) -> &dyn Keeper {
        self.keeper
    }

    /// Moves the clock a second on and returns it.
    pub fn tick(&self) -> Timestamp {
        time(self.clock.fetch_add(1, Ordering::Relaxed))
    }

    /// A permit of the owner for anything.
    #[must_use]
    pub fn owner(&self) -> Permit {
        self.permit(vec![Presented::MasterKey { proven: true }])
    }

    /// A permit of an agent that reads under these grants together.
    #[must_use]
    pub fn agent(&self, grants: &[Grant]) -> Permit {
        let claims = |grant: &Grant| Presented::Claims {
            grant: Box::new(grant.clone()),
            signature: true,
            issuer: Standing::Owner,
            audience: None,
            subject: true,
            revoked: false,
        };
        self.permit(grants.iter().map(claims).collect())
    }

    fn permit(&self, presented: Vec<Presented>) -> Permit {
        let evidence = Evidence { vault: self.vault, presented, public_reads: false };
        let principal = verify(&evidence, time(0)).unwrap();
        authorise(&principal, Need::one("suite", Verb::Read), time(0)).unwrap()
    }

    /// Opens the owner's view.
    pub async fn look(&self) -> Box<dyn Snapshot> {
        self.look_as(&self.owner()).await
    }

    /// Opens someone's view.
    pub async fn look_as(&self, permit: &Permit) -> Box<dyn Snapshot> {
        self.store.snapshot(permit).await.unwrap()
    }

    /// A plan with an audit entry that names what the writes touch.
    pub fn plan(&self, writes: Vec<Write>) -> Plan {
        let targets = writes.iter().filter_map(touched).collect();
        let audit = AuditDraft {
            at: self.tick(),
            actor: self.owner().actor(),
            protocol: "suite".into(),
            operation: "story".into(),
            outcome: Outcome::Done,
            targets,
            request: None,
            source: None,
            because: None,
            detail: serde_json::Map::new(),
        };
        Plan { writes, ..Plan::of(audit) }
    }

    /// Commits writes as the owner.
    pub async fn commit(&self, writes: Vec<Write>) -> Receipt {
        self.run(self.plan(writes)).await.unwrap()
    }

    /// Commits a plan as the owner.
    pub async fn run(&self, plan: Plan) -> Result<Receipt, CommitError> {
        self.store.commit(&self.owner(), plan).await
    }

    /// Makes and commits the first version of a memory.
    pub async fn remember(&self, draft: Draft) -> Version {
        let version = Version::first(MemoryId::random(), draft, self.tick(), None);
        self.commit(vec![write(&version)]).await;
        version
    }

    /// Searches memories as the owner and returns the texts that were listed, best words first.
    pub async fn find(&self, text: &str, filter: &Filter) -> Vec<String> {
        self.find_as(&self.owner(), text, filter).await
    }

    /// Searches memories as someone.
    pub async fn find_as(&self, permit: &Permit, text: &str, filter: &Filter) -> Vec<String> {
        let view = self.look_as(permit).await;
        let mut found = gather(&*view, text, Corpus::Memories, filter, self.tick()).await;
        found.retain(|one| one.signals.lexical > 0.0);
        found.sort_by(|a, b| b.signals.lexical.total_cmp(&a.signals.lexical));
        let rows: Vec<_> = found.iter().map(|one| one.row).collect();
        let loaded = view.load(&rows).await.unwrap();
        loaded.iter().map(|(_, loaded)| text_of(loaded)).collect()
    }
}

/// Gathers candidates for a text the way the engine would.
pub async fn gather(
    view: &dyn Snapshot,
    text: &str,
    corpus: Corpus,
    filter: &Filter,
    now: Timestamp,
) -> Vec<Candidate> {
    let Indexing { tokens, statics, .. } = indexing(text);
    let statics = statics.as_ref();
    let search =
        Search { text, tokens: &tokens, statics, dense: None, corpus, filter, depth: 50, now };
    view.search(&search).await.unwrap()
}

/// The words of a loaded row.
#[must_use]
pub fn text_of(loaded: &crate::snapshot::Loaded) -> String {
    match loaded {
        crate::snapshot::Loaded::Memory { version, .. } => version.content.body.text.clone(),
        crate::snapshot::Loaded::Message { message, .. } => message.text.clone(),
    }
}

/// So many seconds after a fixed day.
#[must_use]
pub fn time(seconds: i64) -> Timestamp {
    Timestamp::from_millis((1_750_000_000 + seconds) * 1000)
}

/// The write that appends a version, findable by its words.
#[must_use]
pub fn write(version: &Version) -> Write {
    let mut indexing = indexing(&version.content.body.text);
    indexing.statement = statement(&version.content.body.text);
    Write::Version { version: Box::new(version.clone()), indexing }
}

/// A stand-in for the digest of a statement.
#[must_use]
pub fn statement(text: &str) -> String {
    format!("statement of {}", yore_domain::memory::normalised(text))
}

/// What makes a text findable: word numbers as tokens, and a vector of hashed words.
#[must_use]
pub fn indexing(text: &str) -> Indexing {
    let mut counts = [0i8; 256];
    let mut tokens = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let hash = word
            .to_lowercase()
            .bytes()
            .fold(7u16, |hash, byte| hash.wrapping_mul(31).wrapping_add(u16::from(byte)));
        tokens.push(hash % 30_000);
        let count = &mut counts[usize::from(hash % 256)];
        *count = count.saturating_add(16);
    }
    let norm = counts.iter().map(|&count| f32::from(count) * f32::from(count)).sum::<f32>().sqrt();
    let scale = if norm > 0.0 { 1.0 / norm } else { 0.0 };
    let statics = Vector { model: "words".into(), scale, values: counts.to_vec() };
    Indexing { tokens, statics: Some(statics), statement: String::new() }
}

/// A grant that reads and writes everything, to be narrowed.
#[must_use]
pub fn grant(agent: &str) -> Grant {
    Grant {
        id: GrantId::random(),
        agent: AgentId::new(agent).unwrap(),
        issuer: "did:key:owner".into(),
        verbs: Verbs::of(&[Verb::Read, Verb::Write]),
        read: Labels::Any,
        write: Labels::Any,
        ceiling: Sensitivity::Restricted,
        scope: ScopeRule::default(),
        not_before: None,
        expires: None,
        issued: time(0),
        revoked: None,
        note: None,
    }
}

fn touched(write: &Write) -> Option<Target> {
    if let Write::Version { version, .. } = write {
        return Some(Target { memory: version.memory, number: Some(version.number), digest: None });
    }
    if let Write::Erase { memory } = write {
        return Some(Target { memory: *memory, number: None, digest: None });
    }
    None
}
