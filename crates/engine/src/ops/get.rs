//! Reading one memory: now, at a time, or all of its history.

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::audit::Target;
use yore_domain::class::Surface;
use yore_domain::grant::Verb;
use yore_domain::memory::{Memory, Status, Version};
use yore_domain::{ConversationId, Error, MemoryId, Result, Timestamp, VaultId, VersionId};
use yore_policy::Need;
use yore_policy::redact::Viewer;
use yore_store::Snapshot;
use yore_store::plan::AliasTarget;

use super::shown::{Standing, shown, shown_memory, shown_to, standing};
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Session, Trace};

/// How a caller names a memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reference {
    /// By its id.
    Memory(MemoryId),
    /// By the id of one of its versions; the answer's head is that version.
    Version(VersionId),
    /// By a name given to it.
    Name(String),
}

impl Reference {
    /// Reads a UUID as a memory's id and everything else as a name.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Memory)
    }
}

impl Engine {
    /// Returns a memory. What is hidden is missing.
    pub async fn get(&self, call: &Call, reference: Reference) -> Result<Memory> {
        self.get_on(call, reference, Surface::Retrieval).await
    }

    /// Returns a memory to go out on another surface: handling may differ between them.
    pub async fn get_on(
        &self,
        call: &Call,
        reference: Reference,
        surface: Surface,
    ) -> Result<Memory> {
        let need = Need { surface, ..Need::one("get", Verb::Read) };
        self.look(call, need, reference, |_, session, snapshot, wanted| {
            Box::pin(async move {
                let memory = find(session, snapshot, wanted).await?.ok_or(Error::NotFound)?;
                let standing = standing(session, snapshot, memory.head.memory).await?;
                let memory = shown_memory(session, memory, &standing).ok_or(Error::NotFound)?;
                let trace = Trace { targets: vec![target(&memory.head)], ..Trace::default() };
                Ok((memory, trace))
            })
        })
        .await
    }

    /// Returns a memory as the vault knew it at a time.
    pub async fn get_as_of(&self, call: &Call, memory: MemoryId, at: Timestamp) -> Result<Version> {
        let need = Need::one("get", Verb::Read);
        self.look(call, need, (memory, at), |_, session, snapshot, (memory, at)| {
            Box::pin(async move {
                let id = memory_named(session, snapshot, *memory).await?;
                let version = snapshot.memory_as_of(id, *at).await?;
                let version = version.and_then(present).ok_or(Error::NotFound)?;
                let standing = standing(session, snapshot, id).await?;
                let version = shown(session, version, &standing).ok_or(Error::NotFound)?;
                let trace = Trace { targets: vec![target(&version)], ..Trace::default() };
                Ok((version, trace.with("as_of", true)))
            })
        })
        .await
    }

    /// Returns every version the caller may see, oldest first.
    pub async fn history(&self, call: &Call, memory: MemoryId) -> Result<Vec<Version>> {
        let need = Need::one("history", Verb::Read);
        self.look(call, need, memory, |_, session, snapshot, memory| {
            Box::pin(async move {
                let id = memory_named(session, snapshot, *memory).await?;
                let versions = shown_chain(session, session.viewer(), snapshot.history(id).await?);
                if versions.is_empty() {
                    return Err(Error::NotFound);
                }
                let trace = Trace::count(versions.len()).touching([id]);
                Ok((versions, trace))
            })
        })
        .await
    }
}

pub(crate) fn target(version: &Version) -> Target {
    Target { memory: version.memory, number: Some(version.number), digest: None }
}

/// What may be seen of a whole chain, whose last version is the head.
pub(super) fn shown_chain(
    session: &Session,
    viewer: Viewer,
    versions: Vec<Version>,
) -> Vec<Version> {
    let standing = versions.last().map(|head| Standing::of(session, head)).unwrap_or_default();
    let seen = |version| shown_to(session, viewer, version, &standing);
    versions.into_iter().filter_map(seen).collect()
}

fn present(version: Version) -> Option<Version> {
    (version.status != Status::Erased).then_some(version)
}

/// Finds what a reference means to this caller.
pub(super) fn find<'a>(
    session: &'a Session,
    snapshot: &'a dyn Snapshot,
    wanted: &'a Reference,
) -> BoxFuture<'a, Result<Option<Memory>>> {
    Box::pin(async move {
        let found = match wanted {
            Reference::Memory(id) => {
                let known = memory_named(session, snapshot, *id).await?;
                match snapshot.memory(known).await? {
                    // It came in under this id, and another memory said the same.
                    None if session.is_owner() => {
                        by_name(session, snapshot, &id.to_string()).await?
                    }
                    found => found,
                }
            }
            Reference::Version(id) => match snapshot.version(*id).await? {
                Some(version) => of_version(snapshot, version).await?,
                None => by_name(session, snapshot, &version_name(*id)).await?,
            },
            Reference::Name(name) => by_name(session, snapshot, name).await?,
        };
        Ok(found.filter(|memory| memory.head.status != Status::Erased))
    })
}

/// What an agent calls a version that it brought in under an id of its choice.
pub(super) fn version_name(id: VersionId) -> String {
    format!("version:{id}")
}

async fn by_name(session: &Session, snapshot: &dyn Snapshot, name: &str) -> Result<Option<Memory>> {
    match named(session, snapshot, name).await? {
        Some(AliasTarget::Memory(id)) => snapshot.memory(id).await,
        Some(AliasTarget::Version(id, number)) => {
            let history = snapshot.history(id).await?;
            match history.into_iter().find(|version| version.number == number) {
                Some(version) => of_version(snapshot, version).await,
                None => Ok(None),
            }
        }
        Some(AliasTarget::Conversation(_)) | None => Ok(None),
    }
}

async fn of_version(snapshot: &dyn Snapshot, version: Version) -> Result<Option<Memory>> {
    let memory = snapshot.memory(version.memory).await?;
    Ok(memory.map(|memory| Memory { head: version, ..memory }))
}

/// What a name means: the caller's own names first, then the owner's.
async fn named(
    session: &Session,
    snapshot: &dyn Snapshot,
    name: &str,
) -> Result<Option<AliasTarget>> {
    let own = snapshot.resolve(session.namespace(), name).await?;
    if own.is_some() || session.namespace().is_empty() {
        return Ok(own);
    }
    snapshot.resolve("", name).await
}

impl Engine {
    /// What an agent's own name means where the agent cannot look: to the agent it is free.
    pub(crate) async fn behind(
        &self,
        vault: VaultId,
        snapshot: &dyn Snapshot,
        namespace: &str,
        name: &str,
    ) -> Result<Option<AliasTarget>> {
        if namespace.is_empty() || snapshot.resolve(namespace, name).await?.is_some() {
            return Ok(None);
        }
        let permit = self.system(vault, "find what a name hides")?;
        self.store().snapshot(&permit).await?.resolve(namespace, name).await
    }
}

/// The memory an id means to this caller: an agent may have chosen an id of its own.
pub(crate) async fn memory_named(
    session: &Session,
    snapshot: &dyn Snapshot,
    id: MemoryId,
) -> Result<MemoryId> {
    chosen_memory(session.namespace(), snapshot, id).await
}

/// The same in a stated namespace.
pub(crate) async fn chosen_memory(
    namespace: &str,
    snapshot: &dyn Snapshot,
    id: MemoryId,
) -> Result<MemoryId> {
    if namespace.is_empty() {
        return Ok(id);
    }
    Ok(match snapshot.resolve(namespace, &id.to_string()).await? {
        Some(AliasTarget::Memory(memory) | AliasTarget::Version(memory, _)) => memory,
        Some(AliasTarget::Conversation(_)) | None => id,
    })
}

/// The conversation an id means to this caller.
pub(crate) async fn conversation_named(
    session: &Session,
    snapshot: &dyn Snapshot,
    id: ConversationId,
) -> Result<ConversationId> {
    if session.namespace().is_empty() {
        return Ok(id);
    }
    Ok(match snapshot.resolve(session.namespace(), &id.to_string()).await? {
        Some(AliasTarget::Conversation(conversation)) => conversation,
        Some(AliasTarget::Memory(_) | AliasTarget::Version(..)) | None => id,
    })
}
