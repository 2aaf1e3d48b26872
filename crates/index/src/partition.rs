//! One visibility class: its documents, posting lists, vectors, sessions and counts.

use rustc_hash::FxHashMap;

use crate::analysis::Language;
use crate::codec;
use crate::document::{Meta, STATIC_DIMS, Vector};
use crate::postings::{List, SLOT_LIMIT, entry, length_code, reserve};
use crate::vectors::Plane;

/// Set in [`Doc::dense`] while the document has no dense vector; the rest is its place in `pending`.
const PENDING: u32 = 1 << 31;
/// Marks a document without a session in `session_of`.
pub(crate) const NO_SESSION: u32 = u32::MAX;

/// What is kept of a document besides its postings and vectors.
#[derive(Debug)]
pub(crate) struct Doc {
    pub(crate) key: u64,
    pub(crate) id: [u8; 16],
    pub(crate) meta: Meta,
    pub(crate) blob: Box<[u8]>,
    pub(crate) statics: u32,
    dense: u32,
    pub(crate) length: u32,
    pub(crate) language: Language,
    pub(crate) live: bool,
}

impl Doc {
    /// Returns the row of the dense vector, if there is one.
    pub(crate) fn dense(&self) -> Option<u32> {
        (self.dense & PENDING == 0).then_some(self.dense)
    }
}

/// Everything about a new document that is already computed.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) key: u64,
    pub(crate) id: [u8; 16],
    pub(crate) meta: Meta,
    pub(crate) blob: Box<[u8]>,
    pub(crate) length: u32,
    pub(crate) language: Language,
    pub(crate) statics: Vector<'a>,
    pub(crate) dense: Option<Vector<'a>>,
}

/// The part of a session that lies in one partition.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) id: u64,
    /// (ordinal, slot), ascending.
    pub(crate) members: Vec<(u32, u32)>,
    pub(crate) length: u64,
}

/// The documents of one visibility class.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) docs: Vec<Doc>,
    pub(crate) lengths: Vec<u8>,
    pub(crate) session_of: Vec<u32>,
    free: Vec<u32>,
    pub(crate) lists: FxHashMap<u32, List>,
    token_counts: FxHashMap<u16, u32>,
    pub(crate) statics: Plane,
    pub(crate) dense: Plane,
    /// Slots without a dense vector.
    pub(crate) pending: Vec<u32>,
    session_ids: FxHashMap<u64, u32>,
    pub(crate) sessions: Vec<Session>,
    free_sessions: Vec<u32>,
    pub(crate) session_length: u64,
    pub(crate) total_length: u64,
    pub(crate) languages: [u32; Language::COUNT],
    blob_bytes: usize,
}

impl Partition {
    pub(crate) fn new(dense_dims: usize) -> Partition {
        Partition {
            docs: Vec::new(),
            lengths: Vec::new(),
            session_of: Vec::new(),
            free: Vec::new(),
            lists: FxHashMap::default(),
            token_counts: FxHashMap::default(),
            statics: Plane::new(STATIC_DIMS),
            dense: Plane::new(dense_dims),
            pending: Vec::new(),
            session_ids: FxHashMap::default(),
            sessions: Vec::new(),
            free_sessions: Vec::new(),
            session_length: 0,
            total_length: 0,
            languages: [0; Language::COUNT],
            blob_bytes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.docs.len() - self.free.len()
    }

    pub(crate) fn session_count(&self) -> usize {
        self.session_ids.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty() && self.docs.len() >= SLOT_LIMIT as usize
    }

    pub(crate) fn token_count(&self, token: u16) -> u32 {
        self.token_counts.get(&token).copied().unwrap_or(0)
    }

    pub(crate) fn session(&self, id: u64) -> Option<(u32, &Session)> {
        self.session_ids.get(&id).map(|&at| (at, &self.sessions[at as usize]))
    }

    /// Makes room for so many documents.
    pub(crate) fn expect(&mut self, documents: usize) {
        self.docs.reserve_exact(documents);
        self.lengths.reserve_exact(documents);
        self.session_of.reserve_exact(documents);
        self.statics.expect(documents);
    }

    /// Stores a document and returns its slot.
    pub(crate) fn insert(&mut self, arrival: Arrival<'_>) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => u32::try_from(self.docs.len())
                .expect("invariant: the index refuses documents past 2^28 slots"),
        };
        for (term, frequency) in codec::terms(&arrival.blob) {
            let new = entry(slot, frequency);
            self.lists.entry(term).and_modify(|list| list.insert(new)).or_insert(List::One(new));
        }
        for token in codec::tokens(&arrival.blob) {
            *self.token_counts.entry(token).or_insert(0) += 1;
        }
        self.total_length += u64::from(arrival.length);
        self.languages[arrival.language as usize] += 1;
        self.blob_bytes += arrival.blob.len();
        let statics = self.statics.push(slot, arrival.statics);
        let dense = match arrival.dense {
            Some(vector) => self.dense.push(slot, vector),
            None => self.wait(slot),
        };
        let doc = Doc {
            key: arrival.key,
            id: arrival.id,
            meta: arrival.meta,
            blob: arrival.blob,
            statics,
            dense,
            length: arrival.length,
            language: arrival.language,
            live: true,
        };
        let code = length_code(arrival.length);
        if slot as usize == self.docs.len() {
            reserve(&mut self.docs, 1);
            reserve(&mut self.lengths, 1);
            reserve(&mut self.session_of, 1);
            self.docs.push(doc);
            self.lengths.push(code);
            self.session_of.push(NO_SESSION);
        } else {
            self.docs[slot as usize] = doc;
            self.lengths[slot as usize] = code;
        }
        self.join_session(slot);
        slot
    }

    /// Forgets a document in every structure and returns its blob, whose terms the caller releases.
    pub(crate) fn remove(&mut self, slot: u32) -> Box<[u8]> {
        self.leave_session(slot);
        let at = slot as usize;
        let blob = std::mem::take(&mut self.docs[at].blob);
        for (term, _) in codec::terms(&blob) {
            if self.lists.get_mut(&term).is_some_and(|list| list.remove(slot)) {
                self.lists.remove(&term);
            }
        }
        for token in codec::tokens(&blob) {
            if let Some(count) = self.token_counts.get_mut(&token) {
                *count -= 1;
                if *count == 0 {
                    self.token_counts.remove(&token);
                }
            }
        }
        if let Some(moved) = self.statics.swap_remove(self.docs[at].statics) {
            self.docs[moved as usize].statics = self.docs[at].statics;
        }
        self.drop_dense(slot);
        let doc = &mut self.docs[at];
        self.total_length -= u64::from(doc.length);
        self.languages[doc.language as usize] -= 1;
        self.blob_bytes -= blob.len();
        doc.live = false;
        doc.meta = Meta::default();
        doc.id = [0; 16];
        doc.key = 0;
        self.free.push(slot);
        blob
    }

    pub(crate) fn set_dense(&mut self, slot: u32, vector: Option<Vector<'_>>) {
        self.drop_dense(slot);
        self.docs[slot as usize].dense = match vector {
            Some(vector) => self.dense.push(slot, vector),
            None => self.wait(slot),
        };
    }

    pub(crate) fn set_meta(&mut self, slot: u32, meta: Meta) {
        let old = self.docs[slot as usize].meta;
        if (old.session, old.ordinal) == (meta.session, meta.ordinal) {
            self.docs[slot as usize].meta = meta;
            return;
        }
        self.leave_session(slot);
        self.docs[slot as usize].meta = meta;
        self.join_session(slot);
    }

    pub(crate) fn memory(&self) -> usize {
        let table = |capacity: usize, entry: usize| capacity * (entry + 1) * 8 / 7;
        self.docs.capacity() * size_of::<Doc>()
            + self.blob_bytes
            + self.len() * 16
            + self.lengths.capacity()
            + (self.session_of.capacity() + self.free.capacity() + self.pending.capacity()) * 4
            + table(self.lists.capacity(), size_of::<(u32, List)>())
            + self.lists.values().map(List::memory).sum::<usize>()
            + table(self.token_counts.capacity(), 8)
            + self.statics.memory()
            + self.dense.memory()
            + table(self.session_ids.capacity(), 16)
            + self.sessions.capacity() * size_of::<Session>()
            + self.sessions.iter().map(|session| session.members.capacity() * 8).sum::<usize>()
    }

    fn wait(&mut self, slot: u32) -> u32 {
        self.pending.push(slot);
        PENDING
            | u32::try_from(self.pending.len() - 1).expect("invariant: at most one entry per slot")
    }

    fn drop_dense(&mut self, slot: u32) {
        let word = self.docs[slot as usize].dense;
        let moved = if word & PENDING == 0 {
            self.dense.swap_remove(word)
        } else {
            let place = (word & !PENDING) as usize;
            self.pending.swap_remove(place);
            self.pending.get(place).copied()
        };
        if let Some(moved) = moved {
            self.docs[moved as usize].dense = word;
        }
    }

    fn join_session(&mut self, slot: u32) {
        let doc = &self.docs[slot as usize];
        if doc.meta.session == 0 {
            self.session_of[slot as usize] = NO_SESSION;
            return;
        }
        let id = doc.meta.session;
        let at = match self.session_ids.get(&id) {
            Some(&at) => at,
            None => {
                let at = self.free_sessions.pop().unwrap_or_else(|| {
                    self.sessions.push(Session::default());
                    u32::try_from(self.sessions.len() - 1)
                        .expect("invariant: at most one session per slot")
                });
                self.sessions[at as usize].id = id;
                self.session_ids.insert(id, at);
                at
            }
        };
        let session = &mut self.sessions[at as usize];
        let member = (doc.meta.ordinal, slot);
        let place = session.members.partition_point(|&other| other < member);
        session.members.insert(place, member);
        session.length += u64::from(doc.length);
        self.session_length += u64::from(doc.length);
        self.session_of[slot as usize] = at;
    }

    fn leave_session(&mut self, slot: u32) {
        let at = std::mem::replace(&mut self.session_of[slot as usize], NO_SESSION);
        if at == NO_SESSION {
            return;
        }
        let doc = &self.docs[slot as usize];
        let session = &mut self.sessions[at as usize];
        session.members.retain(|&(_, member)| member != slot);
        session.length -= u64::from(doc.length);
        self.session_length -= u64::from(doc.length);
        if session.members.is_empty() {
            self.session_ids.remove(&session.id);
            *session = Session::default();
            self.free_sessions.push(at);
        }
    }
}
