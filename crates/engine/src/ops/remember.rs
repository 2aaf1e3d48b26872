//! Storing something new, or noticing that exactly this was said before.

use yore_canon::hash::Sha256;
use yore_domain::class::Class;
use yore_domain::memory::{Cause, Content, Draft, Memory, Status, Version, normalised};
use yore_domain::{Error, MemoryId, Result};
use yore_store::plan::{AliasTarget, Indexing};
use yore_store::{Precondition, Snapshot, Vector, Write};

use super::get::chosen_memory;
use crate::engine::Engine;
use crate::mutate::{Effect, Ground, Mutated, Steps};
use crate::run::Attempt;

/// WordPiece ids kept per row; longer texts are found by their beginning and their words.
const TOKENS: usize = 256;

pub(crate) async fn steps(
    ground: &Ground<'_>,
    draft: &Draft,
    id: Option<MemoryId>,
) -> Result<Steps> {
    let statement = statement(ground, &draft.content);
    // Hardly anything is said twice: the commit notices, and then it is looked up.
    if id.is_none()
        && !ground.wish.keep_duplicate
        && ground.attempt == Attempt::Again
        && let Some(memory) = said_before(ground, &draft.content, &statement).await?
    {
        return Ok(reinforce(ground, &memory, draft, statement));
    }
    let mut names = ground.wish.aliases.clone();
    let mut erased = None;
    let memory = match (id, &ground.writer) {
        (None, _) => MemoryId::random(),
        (Some(id), Some(namespace)) => {
            let known = chosen_memory(namespace, ground.snapshot, id).await?;
            free(ground, known, id).await?;
            // An id that an agent chose is a name of its own: it can never collide with, and
            // so never ask about, what the agent does not see.
            names.push(id.to_string());
            MemoryId::random()
        }
        (Some(id), None) => {
            // An id that was erased is free again: its chain goes on, and nothing of it is left.
            erased = free(ground, id, id).await?;
            id
        }
    };
    let mut version = Version::first(memory, draft.clone(), ground.now, ground.writer.clone());
    version.number += erased.unwrap_or_default();
    let output = Mutated::one(Effect::Created, &version);
    let preconditions = match id {
        Some(_) => vec![Precondition::Head(memory, erased)],
        None if ground.wish.keep_duplicate => Vec::new(),
        None => vec![Precondition::Unsaid(statement.clone())],
    };
    let indexing = Indexing { statement, ..indexing(ground.engine, &version.content) };
    let mut writes = vec![Write::Version { version: Box::new(version), indexing }];
    let namespace = ground.writer.clone().unwrap_or_default();
    for name in names {
        let vault = ground.permit.vault();
        let instead_of = ground.engine.behind(vault, ground.snapshot, &namespace, &name).await?;
        let target = AliasTarget::Memory(memory);
        writes.push(Write::Alias { namespace: namespace.clone(), name, target, instead_of });
    }
    Ok(Steps { output, writes, preconditions })
}

/// The memory that says exactly this. What a writer said where it cannot look is found too:
/// its name is part of the digest, so it finds only its own.
pub(crate) async fn said_before(
    ground: &Ground<'_>,
    content: &Content,
    statement: &str,
) -> Result<Option<Memory>> {
    if ground.permit.lens().sees(&content.class()) {
        return find_said(ground.snapshot, statement).await;
    }
    let permit = ground.engine.system(ground.permit.vault(), "find a repeated statement")?;
    let snapshot = ground.engine.store().snapshot(&permit).await?;
    find_said(&*snapshot, statement).await
}

async fn find_said(snapshot: &dyn Snapshot, statement: &str) -> Result<Option<Memory>> {
    match snapshot.said(statement).await? {
        Some(known) => snapshot.memory(known).await,
        None => Ok(None),
    }
}

/// Whether an id is free; where something was erased under it, the number of its last version.
async fn free(ground: &Ground<'_>, known: MemoryId, asked: MemoryId) -> Result<Option<u32>> {
    match ground.snapshot.memory(known).await? {
        None => Ok(None),
        Some(gone) if gone.head.status == Status::Erased => Ok(Some(gone.head.number)),
        Some(_) => Err(Error::Conflict {
            reason: "the id is taken".to_owned(),
            winner: Some(asked.to_string()),
        }),
    }
}

/// The same was said again: evidence is added and it is surer than before.
fn reinforce(ground: &Ground<'_>, known: &Memory, draft: &Draft, statement: String) -> Steps {
    let mut next = known.head.next(Cause::Reinforced, ground.now, ground.writer.clone());
    let content = &mut next.content;
    for evidence in &draft.content.provenance.evidence {
        if !content.provenance.evidence.contains(evidence) {
            content.provenance.evidence.push(evidence.clone());
        }
    }
    for tag in &draft.content.tags {
        if !content.tags.contains(tag) {
            content.tags.push(tag.clone());
        }
    }
    let sure = content.lifecycle.confidence.or(draft.content.lifecycle.confidence);
    content.lifecycle.confidence = sure.map(|sure| (sure + 0.1).min(1.0));
    content.lifecycle.confirmed = Some(ground.now);
    // What is said again lasts at least as long as whoever says it wants it to.
    let wanted = draft.content.lifecycle.expires;
    let longer = content.lifecycle.expires.zip(wanted).map(|(known, wanted)| known.max(wanted));
    content.lifecycle.expires = longer;
    next.time.observed = Some(ground.now);
    let output = Mutated::one(Effect::Merged, &next);
    let indexing = Indexing { statement, ..indexing(ground.engine, &next.content) };
    let preconditions = vec![Precondition::Head(known.head.memory, Some(known.head.number))];
    let writes = vec![Write::Version { version: Box::new(next), indexing }];
    Steps { output, writes, preconditions }
}

/// What makes a row findable right after its commit: tokens and the static vector.
pub(crate) fn indexing(engine: &Engine, content: &Content) -> Indexing {
    text_indexing(engine, &content.body.text)
}

/// The same for any text.
pub(crate) fn text_indexing(engine: &Engine, text: &str) -> Indexing {
    let statics = &*engine.0.models.statics;
    let mut tokens = statics.tokens(text);
    let vector = statics.embed(&tokens);
    tokens.truncate(TOKENS);
    Indexing {
        tokens,
        statics: Some(Vector {
            model: yore_embed::Embedder::id(statics).as_str().to_owned(),
            scale: vector.scale,
            values: vector.values.into_vec(),
        }),
        statement: String::new(),
    }
}

/// A digest of what a memory says, where, and of what kind.
///
/// Two memories merge only inside one class. A writer who cannot see the class it writes to
/// merges only with itself: otherwise a merge would tell it what lies there.
pub(crate) fn statement(ground: &Ground<'_>, content: &Content) -> String {
    let content = &*ground.labelled(content);
    let class = content.class();
    let blind = !ground.permit.lens().sees(&class);
    let writer = blind.then(|| ground.writer.clone()).flatten();
    statement_of(content, &class, writer.as_deref())
}

fn statement_of(content: &Content, class: &Class, writer: Option<&str>) -> String {
    let said = (
        normalised(&content.body.text),
        &content.body.structured,
        content.kind,
        &content.scope.session,
        class,
        writer,
    );
    let said = serde_json::to_vec(&said).expect("invariant: a statement has no odd keys");
    Sha256::of(&said).to_hex()
}
