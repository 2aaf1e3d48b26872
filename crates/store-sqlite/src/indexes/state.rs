//! The state behind the lock: two indexes and what must be known beside them.
//!
//! One index holds all versions that have text. Its partitions are named by tier, the version's own
//! class and the class of the memory's head: a past version is seen only by whoever sees both. When a
//! head is replaced or its class changes, documents move between partitions; nothing is analysed again.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use yore_domain::MessageId;
use yore_domain::memory::{Feedback, Version};
use yore_index::{ClassId, Document, DocumentError, Index, Meta, STATIC_DIMS};
use yore_store::plan::Indexing;
use yore_store::{RowKey, Source, Standing, Vector};

use super::Effect;
use super::meta::{self, Head, Place};
use super::seats::Seats;

/// Dimensions of the built-in transformer's vectors, until a vector says otherwise.
pub(super) const DENSE_DIMS: usize = 384;

/// Everything the indexes know.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) versions: Index,
    pub(crate) messages: Index,
    pub(super) beside: Beside,
    seats: Seats,
    /// Numbers of what live heads say, each with the row of its memory.
    said: BTreeSet<(u64, u64)>,
}

/// What is known beside the indexes and saved with them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Beside {
    /// The last change contained.
    pub(super) seq: u64,
    /// The last of what attachments say that is contained.
    pub(super) inside: u64,
    /// What tells its past from another; set when it is saved.
    pub(super) mark: [u8; 32],
    /// Whose vectors the indexes hold.
    pub(super) model: Option<String>,
    pub(super) partitions: Vec<Partition>,
    pub(super) chains: FxHashMap<u64, Chain>,
    pub(super) heads: FxHashMap<u64, Head>,
    pub(super) usage: FxHashMap<u64, Usage>,
    pub(super) talks: FxHashMap<u64, Talk>,
}

/// Which versions lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Partition {
    /// Whether they are live heads.
    pub(crate) live: bool,
    /// Their own class.
    pub(crate) own: u32,
    /// The class of their memory's head.
    pub(crate) head: u32,
}

/// The versions of a memory, oldest first, each with its own class.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Chain {
    pub(super) rows: Vec<(u64, u32)>,
}

/// How a memory fared, when it was used at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Usage {
    pub(super) feedback: Feedback,
    pub(super) demoted: bool,
}

/// A conversation and the rows of its messages.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Talk {
    pub(super) class: u32,
    pub(super) session: Option<Box<str>>,
    pub(super) rows: Vec<u64>,
}

impl State {
    pub(super) fn empty(dense_dims: usize, model: Option<String>) -> Self {
        Self {
            versions: Index::new(dense_dims),
            messages: Index::new(dense_dims),
            beside: Beside { model, ..Beside::default() },
            seats: Seats::default(),
            said: BTreeSet::new(),
        }
    }

    /// Puts saved parts together again.
    pub(super) fn assembled(versions: Index, messages: Index, beside: Beside) -> Self {
        let mut seats = Seats::default();
        for (row, head) in &beside.heads {
            let class = beside.chains.get(&head.memory).and_then(|chain| chain.rows.last());
            if let Some((_, class)) = class.filter(|(newest, _)| newest == row) {
                seats.sit(head.memory, head.bench(*class));
            }
        }
        let said = beside.heads.values().filter_map(Head::said).collect();
        Self { versions, messages, beside, seats, said }
    }

    /// Takes over what a commit did.
    pub(super) fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Version { row, memory_row, class, version, indexing } => {
                self.begin_head(row, memory_row, class, &version, &indexing);
            }
            Effect::Erased { memory_row } => self.forget(memory_row),
            Effect::Feedback { memory_row, tallies } => {
                self.beside.usage.entry(memory_row).or_default().feedback = tallies;
            }
            Effect::Demoted { memory_row, demoted } => {
                self.beside.usage.entry(memory_row).or_default().demoted = demoted;
            }
            Effect::Vector { row, vector } => self.set_vector(row, &vector),
            Effect::Conversation { row, class, session } => {
                let talk = self.beside.talks.entry(row).or_default();
                talk.session = session.map(String::into_boxed_str);
                talk.class = class;
                for &message in &talk.rows {
                    note(self.messages.reclass(message, ClassId(class)), message);
                }
            }
            Effect::Message { row, conversation_row, class, id, position, at, text, indexing } => {
                let talk = self.beside.talks.entry(conversation_row).or_default();
                talk.class = class;
                if let Err(place) = talk.rows.binary_search(&row) {
                    talk.rows.insert(place, row);
                }
                let said = Said { row, conversation_row, class, id, position, at, text: &text };
                self.put_message(&said, &indexing);
            }
            Effect::MessagesErased { conversation_row, rows } => {
                for row in &rows {
                    self.messages.remove(*row);
                }
                if let Some(talk) = self.beside.talks.get_mut(&conversation_row) {
                    talk.rows.retain(|row| !rows.contains(row));
                }
            }
            Effect::Read { number } => self.beside.inside = self.beside.inside.max(number),
            Effect::Changed { seq } => self.beside.seq = self.beside.seq.max(seq),
        }
    }

    /// Makes a version the head of its memory and the head before it a part of the past.
    fn begin_head(
        &mut self,
        row: u64,
        memory_row: u64,
        class: u32,
        version: &Version,
        indexing: &Indexing,
    ) {
        let chain = self.beside.chains.entry(memory_row).or_default();
        chain.rows.retain(|(other, _)| *other < row);
        let past = chain.rows.clone();
        chain.rows.push((row, class));
        if let Some(&(replaced, _)) = past.last() {
            self.drop_head(replaced);
            if let Some(meta) = self.versions.meta(replaced).copied() {
                let meta = meta::retired(meta, version.recorded.micros());
                note(self.versions.set_meta(replaced, meta), replaced);
            }
        }
        for &(row, own) in &past {
            let partition = self.partition(Partition { live: false, own, head: class });
            note(self.versions.reclass(row, partition), row);
        }
        let head =
            version.status.is_live().then(|| Head::of(memory_row, version, &indexing.statement));
        self.said.extend(head.as_ref().and_then(Head::said));
        let bench = head.as_ref().and_then(|head| head.bench(class));
        self.beside.heads.extend(head.map(|head| (row, head)));
        let moved = self.seats.sit(memory_row, bench);
        self.reseat(&moved);
        let place = Place {
            session: bench.map_or(0, |(session, _)| session),
            ordinal: self.seats.number(memory_row),
        };
        self.put_head(row, class, version, indexing, place);
    }

    fn drop_head(&mut self, row: u64) {
        if let Some(said) = self.beside.heads.remove(&row).and_then(|head| head.said()) {
            self.said.remove(&said);
        }
    }

    /// The rows of memories that may say this, oldest first; only the row tells whether one does.
    pub(crate) fn saying(&self, number: u64) -> impl Iterator<Item = u64> {
        self.said.range((number, 0)..=(number, u64::MAX)).map(|(_, memory)| *memory)
    }

    /// Tells the index where memories sit now.
    fn reseat(&mut self, memories: &[u64]) {
        for memory in memories {
            let Some(&(row, _)) = self.beside.chains.get(memory).and_then(|c| c.rows.last()) else {
                continue;
            };
            if let Some(meta) = self.versions.meta(row).copied() {
                let meta = Meta { ordinal: self.seats.number(*memory), ..meta };
                note(self.versions.set_meta(row, meta), row);
            }
        }
    }

    fn put_head(
        &mut self,
        row: u64,
        class: u32,
        version: &Version,
        indexing: &Indexing,
        place: Place,
    ) {
        let live = version.status.is_live();
        let partition = self.partition(Partition { live, own: class, head: class });
        put(
            &mut self.versions,
            Arrival {
                key: row,
                id: version.id.bytes(),
                class: partition,
                text: &version.content.body.text,
                meta: meta::of_head(version, place),
            },
            indexing,
        );
    }

    pub(super) fn put_message(&mut self, said: &Said<'_>, indexing: &Indexing) {
        put(
            &mut self.messages,
            Arrival {
                key: said.row,
                id: said.id.bytes(),
                class: ClassId(said.class),
                text: said.text,
                meta: Meta {
                    created: said.at,
                    valid_from: said.at,
                    recorded: said.at,
                    session: said.conversation_row,
                    ordinal: u32::try_from(said.position).unwrap_or(u32::MAX),
                    ..Meta::default()
                },
            },
            indexing,
        );
    }

    /// Drops everything known of a memory.
    pub(super) fn forget(&mut self, memory_row: u64) {
        self.beside.usage.remove(&memory_row);
        for (row, _) in self.beside.chains.remove(&memory_row).unwrap_or_default().rows {
            self.versions.remove(row);
            self.drop_head(row);
        }
        let moved = self.seats.sit(memory_row, None);
        self.reseat(&moved);
    }

    /// Drops everything known of a conversation.
    pub(super) fn forget_talk(&mut self, conversation_row: u64) {
        for row in self.beside.talks.remove(&conversation_row).unwrap_or_default().rows {
            self.messages.remove(row);
        }
    }

    /// Takes a vector of the model that the indexes hold; the first vector decides which that is.
    pub(super) fn set_vector(&mut self, row: RowKey, vector: &Vector) {
        if vector.values.len() != self.versions.dense_dims() {
            return;
        }
        if self.beside.model.get_or_insert_with(|| vector.model.clone()) != &vector.model {
            return;
        }
        let index = match row.source {
            Source::Version => &mut self.versions,
            Source::Message => &mut self.messages,
        };
        let vector = yore_index::Vector { values: &vector.values, scale: vector.scale };
        note(index.set_dense(row.row, Some(vector)), row.row);
    }

    /// How a live head stands.
    pub(crate) fn standing(&self, row: u64) -> Option<Standing> {
        let head = self.beside.heads.get(&row)?;
        let usage = self.beside.usage.get(&head.memory).copied().unwrap_or_default();
        Some(head.standing(usage.feedback, usage.demoted))
    }

    /// The session a conversation states.
    pub(crate) fn talk_session(&self, conversation_row: u64) -> Option<Arc<str>> {
        self.beside.talks.get(&conversation_row)?.session.as_deref().map(Arc::from)
    }

    /// The classes of an indexed version and whether it is the head of its memory.
    pub(crate) fn placed(&self, row: u64) -> Option<(Partition, bool)> {
        let class = self.versions.class(row)?;
        let partition = *self.beside.partitions.get(class.0 as usize)?;
        Some((partition, meta::is_head(self.versions.meta(row)?)))
    }

    /// Whose dense vectors are held.
    pub(crate) fn model(&self) -> Option<&str> {
        self.beside.model.as_deref()
    }

    /// How many live heads and messages have no dense vector.
    pub(crate) fn unembedded(&self) -> usize {
        let live = |row: &u64| self.beside.heads.contains_key(row);
        self.versions.pending().filter(live).count() + self.messages.pending().count()
    }

    /// Lists the partitions of versions with their numbers.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = (ClassId, Partition)> + '_ {
        (0u32..).map(ClassId).zip(self.beside.partitions.iter().copied())
    }

    fn partition(&mut self, wanted: Partition) -> ClassId {
        let known = &mut self.beside.partitions;
        let at = known.iter().position(|other| *other == wanted).unwrap_or_else(|| {
            known.push(wanted);
            known.len() - 1
        });
        ClassId(u32::try_from(at).expect("invariant: partitions are few"))
    }
}

/// A message about to be indexed.
#[derive(Debug)]
pub(super) struct Said<'a> {
    pub(super) row: u64,
    pub(super) conversation_row: u64,
    pub(super) class: u32,
    pub(super) id: MessageId,
    pub(super) position: u64,
    pub(super) at: i64,
    pub(super) text: &'a str,
}

struct Arrival<'a> {
    key: u64,
    id: [u8; 16],
    class: ClassId,
    text: &'a str,
    meta: Meta,
}

/// Indexes a document, or takes it out when it is not to be found.
fn put(index: &mut Index, arrival: Arrival<'_>, indexing: &Indexing) {
    let Some(statics) = &indexing.statics else {
        index.remove(arrival.key);
        return;
    };
    // A vector of a foreign shape must not make the words unfindable.
    let fits = statics.values.len() == STATIC_DIMS && statics.scale.is_finite();
    let statics = if fits {
        yore_index::Vector { values: &statics.values, scale: statics.scale }
    } else {
        yore_index::Vector { values: &[0; STATIC_DIMS], scale: 0.0 }
    };
    let Arrival { key, id, class, text, meta } = arrival;
    let document =
        Document { key, id, class, text, meta, tokens: &indexing.tokens, statics, dense: None };
    note(index.put(&document), key);
}

/// A refusal leaves the row unindexed, which a check reports and a rebuild mends.
fn note<T>(result: Result<T, DocumentError>, row: u64) {
    if let Err(error) = result {
        tracing::warn!(row, %error, "row {row} was not indexed");
    }
}
