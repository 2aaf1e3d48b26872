//! An engine on a real encrypted vault, filled from the corpus.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::memory::Draft;
use yore_domain::mutation::Mutation;
use yore_domain::query::{Corpus as Where, Cutoff, Effort, Filter, Recall};
use yore_domain::scope::{Scope, ScopeRule};
use yore_domain::{AgentId, Timestamp};
use yore_embed::builtin;
use yore_engine::{
    Call, Clock, Engine, GrantRequest, Parts, Secret, Settings, TokenKind, Wish, token,
};
use yore_store_sqlite::{MasterKey, Options, SqliteStore};
use zeroize::Zeroizing;

use crate::corpus::Corpus;

/// How many writes are under way at once while a vault is filled.
const LOADERS: usize = 64;

/// The label of one memory in a hundred.
pub(crate) const RARE: &str = "work.calendar";
const COMMON: [&str; 4] = ["health", "finance", "home", "behaviour"];

pub(crate) const MASTER: &str = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
const LOCAL: [u8; 32] = [0x5a; 32];

#[derive(Debug)]
struct MachineClock;

impl Clock for MachineClock {
    #[expect(clippy::disallowed_methods, reason = "a measurement stands where the server stands")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// An engine and the credential of its vault's owner.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) owner: Call,
}

impl World {
    /// Opens a data directory, or makes it.
    pub(crate) async fn open(data: &Path) -> Result<Self> {
        Self::open_with(data, Effort::default()).await
    }

    /// Opens it for questions of at most this effort; the background embeds no further either.
    pub(crate) async fn open_with(data: &Path, effort: Effort) -> Result<Self> {
        Self::open_at(data, effort, Arc::new(MachineClock)).await
    }

    /// Opens it under a clock of its own.
    pub(crate) async fn open_at(
        data: &Path,
        effort: Effort,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let mut options = Options::new(data, MasterKey::text(MASTER));
        options.tokens = Some(Arc::new(|token| builtin().statics.kin(token)));
        let store = Arc::new(SqliteStore::open(options)?);
        let engine = Engine::new(Parts {
            store: store.clone(),
            keeper: store,
            clock,
            local_key: Zeroizing::new(LOCAL),
            settings: Settings { effort, ..Settings::default() },
        });
        let master = Call::bearer("bench", token::proof(&LOCAL, engine.now()));
        engine.default_vault().await?;
        let owner = engine.issue_token(&master, TokenKind::Owner, None, None).await?;
        Ok(Self { engine, owner: Call::bearer("bench", Secret::new(owner)) })
    }

    /// Fills the vault with the memories of these numbers.
    pub(crate) async fn load(
        &self,
        corpus: &Corpus,
        numbers: impl IntoIterator<Item = usize>,
    ) -> Result<()> {
        stream::iter(numbers)
            .map(|number| self.remember(corpus, number))
            .buffer_unordered(LOADERS)
            .try_collect()
            .await
    }

    /// Fills the vault with what is made of numbers.
    pub(crate) async fn load_with(
        &self,
        numbers: impl IntoIterator<Item = usize>,
        draft: impl Fn(usize) -> Draft,
    ) -> Result<()> {
        stream::iter(numbers)
            .map(|number| self.store(draft(number)))
            .buffer_unordered(LOADERS)
            .try_collect()
            .await
    }

    /// Stores one memory.
    pub(crate) async fn remember(&self, corpus: &Corpus, number: usize) -> Result<()> {
        self.store(draft(corpus, number)?).await
    }

    /// Stores a draft.
    pub(crate) async fn store(&self, draft: Draft) -> Result<()> {
        let mutation = Mutation::Remember { draft: Box::new(draft), id: None };
        self.engine.mutate(&self.owner, mutation, Wish::default()).await?;
        Ok(())
    }

    /// Makes an agent that sees only what carries the rare label.
    pub(crate) async fn scheduler(&self) -> Result<Call> {
        let request = GrantRequest {
            agent: AgentId::new("scheduler")?,
            verbs: Verbs::of(&[Verb::Read]),
            read: Labels::Under(vec![Label::new(RARE)?]),
            write: Labels::Under(Vec::new()),
            ceiling: Sensitivity::Restricted,
            scope: ScopeRule::default(),
            ttl: None,
            note: None,
        };
        let issued = self.engine.issue_grant(&self.owner, request).await?;
        Ok(Call::bearer("bench", Secret::new(issued.token)))
    }

    /// Asks a question and returns how many answers came.
    pub(crate) async fn ask(&self, call: &Call, query: &str, effort: Effort) -> Result<usize> {
        Ok(self.engine.recall(call, question(query, effort)).await?.results.len())
    }

    /// Writes everything down.
    pub(crate) async fn close(self) -> Result<()> {
        Ok(self.engine.close().await?)
    }
}

/// Whether the memory of this number carries the rare label.
pub(crate) fn is_rare(number: usize) -> bool {
    number.is_multiple_of(100)
}

/// Makes the memory of a number.
pub(crate) fn draft(corpus: &Corpus, number: usize) -> Result<Draft> {
    let mut draft = Draft::text(corpus.memory(number));
    let label = if is_rare(number) { RARE } else { COMMON[number % COMMON.len()] };
    draft.content.governance.labels = vec![Label::new(label)?];
    draft.content.lifecycle.confidence = Some(0.8);
    draft.content.tags = vec![format!("tag{}", number % 37)];
    Ok(draft)
}

fn question(query: &str, effort: Effort) -> Recall {
    Recall {
        query: query.to_owned(),
        corpus: Where::Memories,
        filter: Filter::default(),
        near: Scope::default(),
        limit: 10,
        effort,
        prefer: Vec::new(),
        // All ten results are loaded and sent, relevant or not: the dearer case.
        cutoff: Cutoff::Off,
    }
}
