//! A search: candidate lists from each signal, their union, and every signal of every candidate.

use rustc_hash::FxHashMap;

use crate::codec;
pub use crate::context::NEIGHBOUR_OFFSETS;
use crate::context::{self, Place};
use crate::document::{ClassId, Meta, TokenTable, Vector};
use crate::index::Index;
use crate::lexical::Lexical;
use crate::partition::Partition;
use crate::soft::Soft;
use crate::top::Hit;
use crate::vectors::{Which, cosine, nearest, nearest_pending};

/// What to look for and where.
///
/// The classes decide what is visible and feeds the statistics; the filter only decides what of that may
/// be returned, and is asked lazily.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// The visibility classes to search.
    pub classes: &'a [ClassId],
    /// The words; empty for a purely semantic search.
    pub text: &'a str,
    /// WordPiece ids of the words, for the soft signal.
    pub tokens: &'a [u16],
    /// The query's static vector.
    pub statics: Option<Vector<'a>>,
    /// The query's dense vector; without it the static vector alone speaks for meaning.
    pub dense: Option<Vector<'a>>,
    /// How many documents each list contributes.
    pub depth: usize,
    /// Says whether a document may be returned.
    pub filter: &'a dyn Fn(u64, &Meta) -> bool,
    /// Which tokens are alike, for the soft signal; without it that stays 0.
    pub token_table: Option<&'a dyn TokenTable>,
    /// Whether the turns around a candidate become candidates too.
    pub context: bool,
}

impl std::fmt::Debug for Search<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The text of a query is private: show its size only.
        out.debug_struct("Search")
            .field("classes", &self.classes)
            .field("text_bytes", &self.text.len())
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

/// Which lists brought a candidate in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Among the best by words.
    pub lexical: bool,
    /// Among the nearest by vector.
    pub vector: bool,
}

/// A document that may answer, with its raw signals.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The caller's row id.
    pub key: u64,
    /// The stable public id.
    pub id: [u8; 16],
    /// The visibility class.
    pub class: ClassId,
    /// The stored metadata.
    pub meta: Meta,
    /// Which lists it came from; neither means it is only a neighbour, and carries no signals of its own.
    pub origin: Origin,
    /// BM25 of the words.
    pub lexical: f32,
    /// Cosine of the dense vectors, if query and document both have one.
    pub dense: Option<f32>,
    /// Cosine of the static vectors; 0 if the query has none.
    pub statics: f32,
    /// Token-level similarity, 0 to 1.
    pub soft: f32,
    /// Share of the query's weight whose words the document holds, 0 to 1.
    pub coverage: f32,
    /// BM25 of the whole session.
    pub session: f32,
    /// Places, in the candidate list, of the neighbours at [`NEIGHBOUR_OFFSETS`].
    pub neighbours: [Option<u32>; NEIGHBOUR_OFFSETS.len()],
}

/// The answer to a search, ordered by id: ranking is the caller's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidates {
    /// The candidates.
    pub list: Vec<Candidate>,
    /// How many documents the selected classes hold.
    pub visible: usize,
}

impl Index {
    /// Gathers the candidates for a search.
    #[must_use]
    pub fn search(&self, search: &Search<'_>) -> Candidates {
        let mut classes = search.classes.to_vec();
        classes.sort_unstable();
        classes.dedup();
        let (classes, parts): (Vec<ClassId>, Vec<&Partition>) = classes
            .into_iter()
            .filter_map(|class| self.partitions.get(&class).map(|part| (class, part)))
            .unzip();
        let visible = parts.iter().map(|part| part.len()).sum();
        let search = Search {
            statics: search.statics.filter(|vector| vector.values.len() == crate::STATIC_DIMS),
            dense: search
                .dense
                .filter(|vector| vector.values.len() == self.dense_dims && self.dense_dims > 0),
            ..*search
        };
        let lexical = Lexical::new(&parts, &self.dictionary, search.text);
        let mut gathering = Gathering::default();
        for hit in lexical.best(search.depth, search.filter) {
            gathering.add(hit).lexical = true;
        }
        for hit in by_vector(&parts, &search) {
            gathering.add(hit).vector = true;
        }
        let listed = gathering.places.len();
        let around =
            if search.context { gathering.surround(&parts, search.filter) } else { Vec::new() };
        let holders =
            |token| parts.iter().map(|part| part.token_count(token) as usize).sum::<usize>();
        let soft =
            search.token_table.map(|table| Soft::new(visible, &holders, table, search.tokens));
        let sessions = context::sessions(&parts, &lexical, &gathering.places);
        let mut list: Vec<Candidate> = Vec::with_capacity(gathering.places.len());
        for (at, (&(part, slot), &origin)) in
            gathering.places.iter().zip(&gathering.origins).enumerate()
        {
            let home = parts[part as usize];
            let doc = &home.docs[slot as usize];
            let mut candidate = Candidate {
                key: doc.key,
                id: doc.id,
                class: classes[part as usize],
                meta: doc.meta,
                origin,
                lexical: 0.0,
                dense: None,
                statics: 0.0,
                soft: 0.0,
                coverage: 0.0,
                session: sessions.get(&doc.meta.session).copied().unwrap_or(0.0),
                neighbours: around.get(at).copied().unwrap_or_default(),
            };
            if at < listed {
                (candidate.lexical, candidate.coverage) = lexical.score(home, slot);
                candidate.dense = search
                    .dense
                    .and_then(|query| doc.dense().map(|row| home.dense.cosine(row, query)));
                candidate.statics = search
                    .statics
                    .map_or(0.0, |query| cosine(home.statics.vector(doc.statics), query));
                candidate.soft =
                    soft.as_ref().map_or(0.0, |soft| soft.score(codec::tokens(&doc.blob)));
            }
            list.push(candidate);
        }
        Candidates { list: sorted(list), visible }
    }
}

/// The nearest by dense vector, and by static vector among documents that have no dense one (yet).
fn by_vector(parts: &[&Partition], search: &Search<'_>) -> Vec<Hit> {
    let mut hits = Vec::new();
    if let Some(query) = search.dense {
        hits = nearest(parts, Which::Dense, query, search.depth, search.filter);
        if let Some(query) = search.statics {
            hits.extend(nearest_pending(parts, query, search.depth, search.filter));
        }
    } else if let Some(query) = search.statics {
        hits = nearest(parts, Which::Statics, query, search.depth, search.filter);
    }
    hits
}

/// The union of the lists, each document once.
#[derive(Default)]
struct Gathering {
    places: Vec<Place>,
    origins: Vec<Origin>,
    known: FxHashMap<Place, u32>,
}

impl Gathering {
    fn add(&mut self, hit: Hit) -> &mut Origin {
        let at = self.place((hit.part, hit.slot));
        &mut self.origins[at as usize]
    }

    fn place(&mut self, place: Place) -> u32 {
        *self.known.entry(place).or_insert_with(|| {
            self.places.push(place);
            self.origins.push(Origin::default());
            u32::try_from(self.places.len() - 1).expect("invariant: candidates are few")
        })
    }

    /// Adds the neighbours of the listed documents and returns everyone's neighbours.
    fn surround(
        &mut self,
        parts: &[&Partition],
        admit: &dyn Fn(u64, &Meta) -> bool,
    ) -> Vec<[Option<u32>; NEIGHBOUR_OFFSETS.len()]> {
        let listed = self.places.len();
        let mut around = Vec::with_capacity(listed * 2);
        for at in 0..listed {
            let found = context::neighbours(parts, self.places[at], admit);
            around.push(found.map(|place| place.map(|place| self.place(place))));
        }
        // A neighbour has the candidate on its other side. Other neighbours of its own were found by no list.
        around.resize(self.places.len(), Default::default());
        for at in 0..listed {
            for (side, neighbour) in around[at].into_iter().enumerate() {
                let Some(neighbour) = neighbour.filter(|&neighbour| neighbour as usize >= listed)
                else {
                    continue;
                };
                let back = &mut around[neighbour as usize][NEIGHBOUR_OFFSETS.len() - 1 - side];
                let id = |place: u32| self.id(parts, place);
                let at = u32::try_from(at).expect("invariant: candidates are few");
                if back.is_none_or(|other| id(at) < id(other)) {
                    *back = Some(at);
                }
            }
        }
        around
    }

    fn id(&self, parts: &[&Partition], at: u32) -> ([u8; 16], u64) {
        let (part, slot) = self.places[at as usize];
        let doc = &parts[part as usize].docs[slot as usize];
        (doc.id, doc.key)
    }
}

/// Orders candidates by id and carries the neighbour references along.
fn sorted(list: Vec<Candidate>) -> Vec<Candidate> {
    let mut order: Vec<([u8; 16], u64, u32)> =
        (0u32..).zip(&list).map(|(at, c)| (c.id, c.key, at)).collect();
    order.sort_unstable();
    let mut place = vec![0u32; list.len()];
    for (new, &(_, _, old)) in (0u32..).zip(&order) {
        place[old as usize] = new;
    }
    order
        .into_iter()
        .map(|(_, _, old)| {
            let mut candidate = list[old as usize].clone();
            for neighbour in candidate.neighbours.iter_mut().flatten() {
                *neighbour = place[*neighbour as usize];
            }
            candidate
        })
        .collect()
}
