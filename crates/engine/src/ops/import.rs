//! Taking in what was exported: each item is judged by itself, the batch is committed at once.

use std::borrow::{Borrow, Cow};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufWriter;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use yore_domain::conversation::{Conversation, Message};
use yore_domain::grant::Verb;
use yore_domain::hold::Rule;
use yore_domain::memory::{Draft, DraftTimes, Status, Version};
use yore_domain::mutation::Mutation;
use yore_domain::profile::Profile;
use yore_domain::{ConversationId, Error, MemoryId, Result, VersionId};
use yore_policy::Need;
use yore_store::plan::{AliasTarget, Indexing};
use yore_store::{Precondition, Snapshot, Write};

use super::converse::append;
use super::export::Item;
use super::get::{conversation_named, memory_named, version_name};
use super::many::{Planner, each, hold_of};
use super::remember::{indexing, statement};
use crate::call::Call;
use crate::engine::Engine;
use crate::mutate::{Ground, Weighed, Wish, cites, epochs};
use crate::run::{Act, Attempt, Planned, Session, Trace};
use crate::stated::stated_versions;

/// Bytes that are hashed at once.
const HASHED: usize = 32 << 10;
/// Items of one batch.
const ITEMS: usize = 500;

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// Items that are new.
    pub imported: usize,
    /// Memories that said exactly what another one says, which was reinforced, and conversations
    /// that were here and got more messages.
    pub merged: usize,
    /// Items that were here already.
    pub duplicates: usize,
    /// Items that were erased here: nothing brings them back.
    #[serde(default)]
    pub erased: usize,
    /// Memories that wait for a person's decision.
    pub held: usize,
    /// Items that were turned down: id and reason.
    pub rejected: Vec<(String, String)>,
    /// The memories that are new, in the order of their items. What comes in under a grant gets
    /// an id of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memories: Vec<MemoryId>,
}

#[derive(Debug, Serialize)]
struct Import {
    items: Vec<Brought>,
    /// By what the caller will know conversations again, besides what they say.
    prints: BTreeMap<ConversationId, String>,
}

/// An item, with messages that a plan can hold without copying them.
#[derive(Debug, Serialize)]
enum Brought {
    Memory(Vec<Version>),
    Conversation(Box<Conversation>, #[serde(serialize_with = "plain")] Vec<Arc<Message>>),
    Profile(Profile),
}

impl From<Item> for Brought {
    fn from(item: Item) -> Self {
        match item {
            Item::Memory { versions } => Self::Memory(versions),
            Item::Conversation { conversation, messages } => {
                Self::Conversation(conversation, messages.into_iter().map(Arc::new).collect())
            }
            Item::Profile(profile) => Self::Profile(profile),
        }
    }
}

fn plain<S: Serializer>(messages: &[Arc<Message>], to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_seq(messages.iter().map(|message| &**message))
}

/// A batch being planned.
struct Batch<'a> {
    engine: &'a Engine,
    call: &'a Call,
    session: &'a Session,
    snapshot: &'a dyn Snapshot,
    rules: &'a [Rule],
    prints: &'a BTreeMap<ConversationId, String>,
    /// What the batch itself says already, and the memory that says it unless that waits.
    said: BTreeMap<String, Option<MemoryId>>,
    seen: BTreeSet<[u8; 16]>,
    stated: BTreeSet<VersionId>,
    planned: Planned<Imported>,
}

impl Engine {
    /// Takes in a batch of items.
    pub async fn import(&self, call: &Call, items: Vec<Item>) -> Result<Imported> {
        self.import_as(call, items, BTreeMap::new()).await
    }

    /// Takes in a batch of items, and notes by what the caller knows where conversations came
    /// from: [`Engine::imported`] tells what is known by such a print, too.
    pub async fn import_as(
        &self,
        call: &Call,
        items: Vec<Item>,
        prints: BTreeMap<ConversationId, String>,
    ) -> Result<Imported> {
        let items = items.into_iter().map(Brought::from).collect();
        self.act(call, &Import { items, prints }).await
    }

    /// Says what would become of a batch of items. Nothing is written but the audit entry.
    pub async fn weigh_import(&self, call: &Call, items: Vec<Item>) -> Result<Imported> {
        let items = items.into_iter().map(Brought::from).collect();
        self.rehearse(call, &Import { items, prints: BTreeMap::new() }).await
    }

    /// Says of conversations, by their fingerprints or prints, whether exactly they came in before.
    pub async fn imported(&self, call: &Call, fingerprints: Vec<String>) -> Result<Vec<bool>> {
        let need = Need::one("imported", Verb::Write);
        self.look(call, need, fingerprints, |_, session, snapshot, fingerprints| {
            Box::pin(async move {
                if fingerprints.len() > ITEMS {
                    return Err(Error::too_large("fingerprints", ITEMS));
                }
                let namespace = imports(session);
                let mut known = Vec::with_capacity(fingerprints.len());
                for fingerprint in fingerprints {
                    known.push(snapshot.resolve(&namespace, fingerprint).await?.is_some());
                }
                let trace = Trace::count(known.iter().filter(|known| **known).count());
                Ok((known, trace))
            })
        })
        .await
    }
}

impl Act for Import {
    type Output = Imported;

    fn need(&self) -> Need {
        Need::one("import", Verb::Write)
    }

    fn validate(&self) -> Result<()> {
        if self.items.len() > ITEMS {
            return Err(Error::too_large("items", ITEMS));
        }
        Ok(())
    }

    fn plan<'a>(
        &'a self,
        engine: &'a Engine,
        call: &'a Call,
        session: &'a Session,
        snapshot: &'a dyn Snapshot,
        _attempt: Attempt,
    ) -> BoxFuture<'a, Result<Planned<Imported>>> {
        Box::pin(async move {
            let rules = snapshot.rules().await?;
            let mut batch = Batch {
                engine,
                call,
                session,
                snapshot,
                rules: &rules,
                prints: &self.prints,
                said: BTreeMap::new(),
                seen: BTreeSet::new(),
                stated: BTreeSet::new(),
                planned: Planned::done(Imported::default(), Vec::new()),
            };
            let refused = each(&self.items, &mut batch).await?;
            let mut planned = batch.planned;
            planned.output.rejected = refused
                .into_iter()
                .map(|(place, error)| (named(&self.items[place]), error.to_string()))
                .collect();
            planned.preconditions.extend(epochs(snapshot.epochs().await?));
            let Imported { imported, merged, duplicates, erased, held, rejected, memories: _ } =
                &planned.output;
            let counted = Trace::count(*imported)
                .with("merged", *merged)
                .with("duplicates", *duplicates)
                .with("erased", *erased)
                .with("held", *held)
                .with("rejected", rejected.len());
            planned.trace.detail = counted.detail;
            Ok(planned)
        })
    }

    fn committed(&self, engine: &Engine, session: &Session) {
        engine.0.work.fills(session.permit.vault());
    }
}

/// What an item is called in a report.
fn named(item: &Brought) -> String {
    match item {
        Brought::Memory(versions) => {
            versions.first().map(|version| version.memory.to_string()).unwrap_or_default()
        }
        Brought::Conversation(conversation, _) => conversation.id.to_string(),
        Brought::Profile(profile) => profile.user.clone().unwrap_or_default(),
    }
}

/// Where the fingerprints of what a caller brought in are kept. No agent has such a name.
fn imports(session: &Session) -> String {
    format!("imported\u{1}{}", session.namespace())
}

/// Returns the fingerprint of a conversation as it is brought in: the same words, the same
/// fingerprint.
#[must_use]
pub fn fingerprint(head: &Conversation, messages: &[impl Borrow<Message>]) -> String {
    struct Said<'a, M>(&'a [M]);
    impl<M: Borrow<Message>> Serialize for Said<'_, M> {
        fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
            to.collect_seq(self.0.iter().map(Borrow::<Message>::borrow))
        }
    }
    #[derive(Debug)]
    struct Digest(yore_canon::hash::Blake3Hasher);
    impl std::io::Write for Digest {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    // JSON is written a few bytes at a time, and hashed much faster in long pieces.
    let digest = Digest(yore_canon::hash::Blake3::hasher());
    let mut pieces = BufWriter::with_capacity(HASHED, digest);
    serde_json::to_writer(&mut pieces, &(head, Said(messages)))
        .expect("invariant: a conversation is JSON and hashing never fails");
    let digest = pieces.into_inner().expect("invariant: hashing never fails");
    digest.0.finish().to_hex()
}

impl Planner<Brought> for Batch<'_> {
    fn one<'a>(&'a mut self, item: &'a Brought) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match item {
                Brought::Memory(versions) => self.memory(versions).await,
                Brought::Conversation(conversation, messages) => {
                    self.conversation(conversation, messages).await
                }
                Brought::Profile(profile) => self.profile(profile).await,
            }
        })
    }
}

impl Batch<'_> {
    async fn memory(&mut self, versions: &[Version]) -> Result<()> {
        let versions = &*stated_versions(self.session, versions);
        let (Some(first), Some(last)) = (versions.first(), versions.last()) else {
            return Err(Error::invalid("versions", "must not be empty"));
        };
        if versions.iter().any(|version| version.memory != first.memory) {
            return Err(Error::invalid("versions", "must all be of one memory"));
        }
        if versions.iter().any(|version| version.status == Status::Erased) {
            return Err(Error::invalid("status", "what was erased cannot be brought back"));
        }
        if self.is_erased(first.memory).await? {
            self.planned.output.erased += 1;
            return Ok(());
        }
        let hold = hold_of(self.session.namespace(), first.memory);
        if self.is_known(first.memory, versions).await? || self.snapshot.hold(hold).await?.is_some()
        {
            self.planned.output.duplicates += 1;
            return Ok(());
        }
        for version in versions {
            version.content.validate()?;
            if !self.session.permit.allows(Verb::Derive) && cites(&version.content) {
                return Err(Error::forbidden("the grant does not allow 'derive'"));
            }
        }
        let wish = Wish::default();
        let ground = Ground {
            engine: self.engine,
            permit: &self.session.permit,
            snapshot: self.snapshot,
            now: self.session.now,
            writer: self.session.permit.principal().agent().map(str::to_owned),
            targets: Vec::new(),
            wish: &wish,
            attempt: Attempt::Again,
        };
        let draft = draft_of(last);
        let statement = statement(&ground, &last.content);
        if last.status.is_live()
            && let Some(said) = self.said.get(&statement).copied()
        {
            self.planned.output.merged += 1;
            return self.name(first.memory, said).await;
        }
        let remember = Mutation::Remember { draft: Box::new(draft), id: None };
        match ground.weigh(&remember, self.rules, None).await? {
            Weighed::Hold(waiting) => {
                let mut waits = ground.hold(self.call, &remember, *waiting);
                waits.id = hold;
                self.planned.writes.extend(ground.held(waits).writes);
                self.planned.preconditions.push(Precondition::Unasked(hold));
                self.planned.output.held += 1;
                self.said.insert(statement, None);
            }
            Weighed::Commit(steps)
                if last.status.is_live()
                    && steps.output.effect == crate::mutate::Effect::Merged =>
            {
                let into = steps.output.memories.first().map(|head| head.memory);
                self.planned.writes.extend(steps.writes);
                self.planned.preconditions.extend(steps.preconditions);
                self.planned.output.merged += 1;
                self.said.insert(statement, into);
                self.name(first.memory, into).await?;
            }
            Weighed::Commit(_) => self.chain(&ground, versions, statement).await?,
        }
        Ok(())
    }

    /// Gives the memory that says the same the id of the one that came in: brought again, it is
    /// known.
    async fn name(&mut self, id: MemoryId, into: Option<MemoryId>) -> Result<()> {
        let Some(into) = into else { return Ok(()) };
        let (namespace, name) = (self.session.namespace().to_owned(), id.to_string());
        let vault = self.session.permit.vault();
        let instead_of = self.engine.behind(vault, self.snapshot, &namespace, &name).await?;
        let target = AliasTarget::Memory(into);
        self.planned.writes.push(Write::Alias { namespace, name, target, instead_of });
        Ok(())
    }

    /// Whether a memory was erased here, under its id or as part of another.
    async fn is_erased(&self, memory: MemoryId) -> Result<bool> {
        let Self { session, snapshot, .. } = *self;
        let known = memory_named(session, snapshot, memory).await?;
        if let Some(known) = snapshot.memory(known).await? {
            return Ok(known.head.status == Status::Erased);
        }
        Ok(snapshot.buried(session.namespace(), &memory.to_string()).await?.whole)
    }

    /// Whether a memory was here before, or came in this batch: under its id, or under another
    /// with the same statement in its chain.
    async fn is_known(&mut self, memory: MemoryId, versions: &[Version]) -> Result<bool> {
        let Self { session, snapshot, .. } = *self;
        let known = memory_named(session, snapshot, memory).await?;
        if !self.seen.insert(memory.bytes())
            || snapshot.memory(known).await?.is_some()
            || snapshot.resolve(session.namespace(), &memory.to_string()).await?.is_some()
        {
            return Ok(true);
        }
        for version in versions {
            let name = version_name(version.id);
            if !self.stated.insert(version.id)
                || snapshot.version(version.id).await?.is_some()
                || snapshot.resolve(session.namespace(), &name).await?.is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Plans the whole chain. The owner's keeps its ids and its times; what comes in under a
    /// grant is new here, and its ids are names of the agent's own.
    async fn chain(
        &mut self,
        ground: &Ground<'_>,
        versions: &[Version],
        statement: String,
    ) -> Result<()> {
        let owner = self.session.is_owner();
        let memory = if owner { versions[0].memory } else { MemoryId::random() };
        let now = self.session.now;
        let mut recorded = yore_domain::Timestamp::MIN;
        for (number, version) in (1..).zip(versions) {
            self.session.permit.may_write(&version.class())?;
            let content = ground.labelled(&version.content).into_owned();
            let mut version = Version { memory, number, content, ..version.clone() };
            if owner {
                recorded = recorded.max(version.recorded.min(now));
            } else {
                recorded = now;
                version.id = VersionId::random();
                version.writer.clone_from(&ground.writer);
                version.origin = None;
                version.replaces = None;
                version.absorbs.clear();
                version.absorbed_by = None;
            }
            version.recorded = recorded;
            let said = if number as usize == versions.len() && version.status.is_live() {
                statement.clone()
            } else {
                String::new()
            };
            let indexing = Indexing { statement: said, ..indexing(self.engine, &version.content) };
            self.planned.writes.push(Write::Version { version: Box::new(version), indexing });
        }
        if !owner {
            let numbered = (1..).zip(versions).map(|(number, version)| {
                (version_name(version.id), AliasTarget::Version(memory, number))
            });
            let itself = (versions[0].memory.to_string(), AliasTarget::Memory(memory));
            let vault = self.session.permit.vault();
            for (name, target) in std::iter::once(itself).chain(numbered) {
                let namespace = self.session.namespace().to_owned();
                let behind = self.engine.behind(vault, self.snapshot, &namespace, &name);
                let instead_of = behind.await?;
                self.planned.writes.push(Write::Alias { namespace, name, target, instead_of });
            }
        }
        self.planned.preconditions.push(Precondition::Head(memory, None));
        // What no longer holds says nothing: something else may say the same.
        if versions.last().is_some_and(|last| last.status.is_live()) {
            self.said.insert(statement.clone(), Some(memory));
            self.planned.preconditions.push(Precondition::Unsaid(statement));
        }
        self.planned.output.imported += 1;
        self.planned.output.memories.push(memory);
        let touched = Trace::default().touching([memory]).targets;
        self.planned.trace.targets.extend(touched);
        Ok(())
    }

    async fn conversation(&mut self, head: &Conversation, messages: &[Arc<Message>]) -> Result<()> {
        if !self.seen.insert(head.id.bytes()) {
            return Err(Error::invalid("id", "the batch holds the conversation twice"));
        }
        let print = fingerprint(head, messages);
        if self.snapshot.resolve(&imports(self.session), &print).await?.is_some() {
            self.planned.output.duplicates += 1;
            return Ok(());
        }
        let namespace = self.session.namespace();
        let buried = self.snapshot.buried(namespace, &head.id.to_string()).await?;
        let id = conversation_named(self.session, self.snapshot, head.id).await?;
        if buried.whole && self.snapshot.conversation(id).await?.is_none() {
            self.planned.output.erased += 1;
            return Ok(());
        }
        let left = if buried.messages.is_empty() {
            Cow::Borrowed(messages)
        } else {
            let said = messages.iter().filter(|message| !buried.messages.contains(&message.id));
            Cow::Owned(said.cloned().collect())
        };
        let planned = append(self.engine, self.session, self.snapshot, head, &left).await?;
        let fresh = planned
            .preconditions
            .iter()
            .any(|precondition| matches!(precondition, Precondition::Conversation(_, false)));
        if !fresh && planned.output.appended == 0 {
            self.planned.output.duplicates += 1;
            return Ok(());
        }
        *if fresh { &mut self.planned.output.imported } else { &mut self.planned.output.merged } +=
            1;
        self.planned.writes.extend(planned.writes);
        let target = AliasTarget::Conversation(planned.output.conversation);
        let names = [Some(print), self.prints.get(&head.id).cloned()];
        self.planned.writes.extend(names.into_iter().flatten().map(|name| Write::Alias {
            namespace: imports(self.session),
            name,
            target,
            instead_of: None,
        }));
        self.planned.preconditions.extend(planned.preconditions);
        Ok(())
    }

    async fn profile(&mut self, profile: &Profile) -> Result<()> {
        if !self.session.is_owner() {
            return Err(Error::forbidden("only the owner brings in a profile"));
        }
        let known = self.snapshot.profile(profile.user.as_deref(), None).await?;
        if known.as_ref().is_some_and(|known| known.version >= profile.version) {
            self.planned.output.duplicates += 1;
            return Ok(());
        }
        let version = known.map(|known| known.version);
        let profile = Profile { recorded: self.session.now, ..profile.clone() };
        self.planned.preconditions.push(Precondition::Profile(profile.user.clone(), version));
        self.planned.writes.push(Write::Profile(Box::new(profile)));
        self.planned.output.imported += 1;
        Ok(())
    }
}

/// What a version would be if it were said now.
fn draft_of(version: &Version) -> Draft {
    Draft {
        content: version.content.clone(),
        time: DraftTimes {
            created: Some(version.time.created),
            observed: version.time.observed,
            valid_from: Some(version.time.valid_from),
            valid_to: version.time.valid_to,
        },
        status: if version.status.is_live() { version.status } else { Status::Active },
        version: None,
    }
}
