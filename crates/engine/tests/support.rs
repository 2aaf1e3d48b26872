//! A vault in a temporary directory, a clock that stands still, and callers.

use std::sync::Arc;

use tempfile::TempDir;
use yore_domain::audit::{Entry, Outcome};
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::memory::Draft;
use yore_domain::mutation::Mutation;
use yore_domain::query::{Cutoff, Recall};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, GrantId, MemoryId, Result, Seq, Timestamp};
use yore_engine::{
    AuditQuery, Call, Engine, FixedClock, GrantRequest, Mutated, Parts, Secret, Settings,
    TokenKind, Wish, token,
};
use yore_store::Store;
use zeroize::Zeroizing;

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const LOCAL_KEY: [u8; 32] = [7; 32];

pub(crate) struct Vault {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<FixedClock>,
    owner: String,
    directory: Arc<TempDir>,
}

/// An agent's call and the grant behind it.
pub(crate) struct Agent {
    pub(crate) call: Call,
    pub(crate) grant: GrantId,
}

impl Vault {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::over(change, |store| store).await
    }

    /// The same with something between the engine and the store.
    pub(crate) async fn over(
        change: impl FnOnce(&mut Settings),
        between: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
    ) -> Self {
        Self::opened(Arc::new(TempDir::new().unwrap()), change, between).await
    }

    /// Another server on the same vaults.
    pub(crate) async fn beside(&self, change: impl FnOnce(&mut Settings)) -> Self {
        Self::opened(Arc::clone(&self.directory), change, |store| store).await
    }

    async fn opened(
        directory: Arc<TempDir>,
        change: impl FnOnce(&mut Settings),
        between: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
    ) -> Self {
        let (store, keeper) = yore_scratch::open(directory.path()).await;
        let clock = Arc::new(FixedClock::at(NOW));
        let mut settings = Settings { strict_audit: true, ..Settings::default() };
        change(&mut settings);
        let engine = Engine::new(Parts {
            store: between(store),
            keeper,
            clock: clock.clone(),
            local_key: Zeroizing::new(LOCAL_KEY),
            settings,
        });
        let master = Call::bearer("test", token::proof(&LOCAL_KEY, NOW));
        let owner = engine.issue_token(&master, TokenKind::Owner, None, None).await.unwrap();
        Self { engine, clock, owner, directory }
    }

    /// Whoever holds the master key, at this time.
    pub(crate) fn master(&self) -> Call {
        Call::bearer("test", token::proof(&LOCAL_KEY, self.engine.now()))
    }

    pub(crate) fn owner(&self) -> Call {
        Call::bearer("test", Secret::new(self.owner.clone()))
    }

    /// An agent that may read and write everything up to confidential, unless changed.
    pub(crate) async fn agent(&self, change: impl FnOnce(&mut GrantRequest)) -> Agent {
        self.agent_of(&self.owner(), change).await.unwrap()
    }

    pub(crate) async fn agent_of(
        &self,
        issuer: &Call,
        change: impl FnOnce(&mut GrantRequest),
    ) -> Result<Agent> {
        let mut request = GrantRequest {
            agent: AgentId::new("scheduler").unwrap(),
            verbs: Verbs::of(&[Verb::Read, Verb::Write]),
            read: Labels::Any,
            write: Labels::Any,
            ceiling: Sensitivity::Confidential,
            scope: ScopeRule::default(),
            ttl: None,
            note: None,
        };
        change(&mut request);
        let issued = self.engine.issue_grant(issuer, request).await?;
        let call = Call::bearer("test", Secret::new(issued.token));
        Ok(Agent { call, grant: issued.grant.id })
    }

    pub(crate) async fn remember(&self, call: &Call, draft: Draft) -> Result<Mutated> {
        let mutation = Mutation::Remember { draft: Box::new(draft), id: None };
        self.engine.mutate(call, mutation, Wish::default()).await
    }

    /// What the owner remembers.
    pub(crate) async fn holds(&self, draft: Draft) -> MemoryId {
        self.remember(&self.owner(), draft).await.unwrap().memories[0].memory
    }

    pub(crate) async fn texts(&self, call: &Call, query: &str) -> Vec<String> {
        let recalled = self.engine.recall(call, recall(query)).await.unwrap();
        recalled.results.iter().map(|hit| hit.found.text().to_owned()).collect()
    }

    pub(crate) async fn audit(&self) -> Vec<Entry> {
        let query = AuditQuery { limit: 1000, after: Seq(0), ..AuditQuery::default() };
        let mut entries = self.engine.audit(&self.owner(), query).await.unwrap();
        entries.retain(|entry| entry.draft.operation != "audit.query");
        entries
    }

    /// The last entry before the asking.
    pub(crate) async fn last(&self) -> Entry {
        self.audit().await.pop().unwrap()
    }
}

pub(crate) fn recall(query: &str) -> Recall {
    Recall {
        query: query.to_owned(),
        corpus: Default::default(),
        filter: Default::default(),
        near: Default::default(),
        limit: 10,
        effort: Default::default(),
        prefer: Vec::new(),
        cutoff: Cutoff::Off,
    }
}

pub(crate) fn label(name: &str) -> Label {
    Label::new(name).unwrap()
}

pub(crate) fn labelled(text: &str, name: &str) -> Draft {
    let mut draft = Draft::text(text);
    draft.content.governance.labels = vec![label(name)];
    draft
}

pub(crate) fn under(name: &str) -> Labels {
    Labels::Under(vec![label(name)])
}

pub(crate) fn refused(entry: &Entry) -> Option<&str> {
    match &entry.draft.outcome {
        Outcome::Refused { code } => Some(code),
        Outcome::Done | Outcome::Held { .. } => None,
    }
}
