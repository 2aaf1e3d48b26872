//! Random documents and a full search over them.

use std::ops::Range;

use proptest::prelude::*;
use yore_index::{
    Candidates, ClassId, Document, Index, Meta, STATIC_DIMS, Search, TokenTable, Vector,
};

pub(crate) const DENSE_DIMS: usize = 96;

#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) key: u64,
    pub(crate) id: [u8; 16],
    pub(crate) class: u32,
    pub(crate) text: String,
    pub(crate) tokens: Vec<u16>,
    pub(crate) session: u64,
    pub(crate) ordinal: u32,
    pub(crate) seed: u64,
    pub(crate) has_dense: bool,
}

const WORDS: [&str; 16] = [
    "alice",
    "running",
    "the",
    "häuser",
    "собаки",
    "東京タワー",
    "pnpm",
    "v1.2.3",
    "tea",
    "coffee",
    "is",
    "und",
    "nicht",
    "moved",
    "Berlin",
    "parseConfig",
];

pub(crate) fn draft() -> impl Strategy<Value = Draft> {
    (
        prop::collection::vec(0usize..WORDS.len(), 0..12),
        0u32..6,
        0u64..4,
        0u32..6,
        0u64..12,
        any::<bool>(),
    )
        .prop_map(|(words, class, session, ordinal, seed, has_dense)| Draft {
            key: 0,
            id: [0; 16],
            class,
            tokens: words.iter().map(|&word| word as u16 * 7 + 1).collect(),
            text: words.iter().map(|&word| WORDS[word]).collect::<Vec<_>>().join(" "),
            session,
            ordinal,
            seed,
            has_dense,
        })
}

/// Drafts with distinct keys and ids; the ids do not follow the keys.
pub(crate) fn drafts(count: Range<usize>) -> impl Strategy<Value = Vec<Draft>> {
    prop::collection::vec(draft(), count).prop_map(|mut drafts| {
        for (key, draft) in (1u64..).zip(&mut drafts) {
            draft.key = key;
            draft.id[8..].copy_from_slice(&key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        }
        drafts
    })
}

pub(crate) fn numbered(n: u64, class: u32) -> Draft {
    let mut rng = Rng(n.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
    let words: Vec<usize> = (0..8).map(|_| rng.next() as usize % WORDS.len()).collect();
    let mut id = [0; 16];
    id[8..].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    Draft {
        key: n,
        id,
        class,
        tokens: words.iter().map(|&word| word as u16 * 7 + 1).collect(),
        text: words.iter().map(|&word| WORDS[word]).collect::<Vec<_>>().join(" "),
        session: n / 10 + 1,
        ordinal: (n % 10) as u32,
        seed: n,
        has_dense: !n.is_multiple_of(3),
    }
}

pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }
}

pub(crate) fn values(seed: u64, dims: usize) -> (Vec<i8>, f32) {
    let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let floats: Vec<f32> = (0..dims).map(|_| (rng.next() % 2001) as f32 / 1000.0 - 1.0).collect();
    Vector::quantise(&floats)
}

pub(crate) fn meta(draft: &Draft) -> Meta {
    Meta {
        session: draft.session,
        ordinal: draft.ordinal,
        kind: (draft.seed % 5) as u8,
        ..Meta::default()
    }
}

pub(crate) fn put_all(index: &mut Index, drafts: &[Draft]) {
    for draft in drafts {
        let (statics, dense) =
            (values(draft.seed, STATIC_DIMS), values(draft.seed + 77, DENSE_DIMS));
        index
            .put(&Document {
                key: draft.key,
                id: draft.id,
                class: ClassId(draft.class),
                text: &draft.text,
                meta: meta(draft),
                tokens: &draft.tokens,
                statics: Vector { values: &statics.0, scale: statics.1 },
                dense: draft.has_dense.then_some(Vector { values: &dense.0, scale: dense.1 }),
            })
            .expect("a well-formed document");
    }
}

pub(crate) fn corpus(drafts: &[Draft]) -> Index {
    let mut index = Index::new(DENSE_DIMS);
    put_all(&mut index, drafts);
    index
}

/// A token table in which neighbouring numbers are alike.
pub(crate) struct Table(Vec<Vec<(u16, f32)>>);

impl Table {
    pub(crate) fn new() -> Table {
        let near = |token: u16| {
            (token - token % 3..token - token % 3 + 3)
                .map(move |other| (other, if other == token { 1.0 } else { 0.5 }))
        };
        Table((0..256).map(|token| near(token).collect()).collect())
    }
}

impl TokenTable for Table {
    fn kin(&self, token: u16) -> Option<&[(u16, f32)]> {
        self.0.get(usize::from(token)).map(Vec::as_slice)
    }
}

pub(crate) fn search(
    index: &Index,
    classes: &[ClassId],
    query: &Draft,
    with_dense: bool,
) -> Candidates {
    search_where(index, classes, query, with_dense, 20, &|_, meta| meta.kind != 4)
}

pub(crate) fn search_where(
    index: &Index,
    classes: &[ClassId],
    query: &Draft,
    with_dense: bool,
    depth: usize,
    filter: &dyn Fn(u64, &Meta) -> bool,
) -> Candidates {
    let (statics, dense) = (values(query.seed, STATIC_DIMS), values(query.seed + 77, DENSE_DIMS));
    let table = Table::new();
    index.search(&Search {
        classes,
        text: &query.text,
        tokens: &query.tokens,
        statics: Some(Vector { values: &statics.0, scale: statics.1 }),
        dense: with_dense.then_some(Vector { values: &dense.0, scale: dense.1 }),
        depth,
        filter,
        token_table: Some(&table),
        context: true,
    })
}

/// Every bit of an answer, floats by their bits.
pub(crate) fn encode(candidates: &Candidates) -> String {
    let mut out = format!("{}", candidates.visible);
    for c in &candidates.list {
        out.push_str(&format!(
            "\n{} {:?} {:?} {:?} {:?} {:08x} {:?} {:08x} {:08x} {:08x} {:08x} {:?}",
            c.key,
            c.id,
            c.class,
            c.meta,
            c.origin,
            c.lexical.to_bits(),
            c.dense.map(f32::to_bits),
            c.statics.to_bits(),
            c.soft.to_bits(),
            c.coverage.to_bits(),
            c.session.to_bits(),
            c.neighbours
        ));
    }
    out
}
