//! Measures search, ingest, memory and vector recall on synthetic documents.
//!
//! `cargo run --release -p yore-index --example speed [documents …]`; one core, CPU time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use yore_index::{ClassId, Document, Index, Meta, STATIC_DIMS, Search, TokenTable, Vector};

const DENSE_DIMS: usize = 384;
const VOCABULARY: usize = 60_000;
const CLUSTERS: usize = 4_000;
const DEPTH: usize = 50;
const QUERIES: usize = 300;

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 16_777_216.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }

    /// Close enough to normal for a direction.
    fn bell(&mut self) -> f32 {
        self.unit() + self.unit() + self.unit() - 1.5
    }
}

/// Makes texts of 15–40 Zipf words and vectors around shared topics.
struct World {
    words: Vec<String>,
    cumulative: Vec<f64>,
    topics: Vec<Vec<f32>>,
    kin: Vec<Vec<(u16, f32)>>,
}

struct Made {
    text: String,
    tokens: Vec<u16>,
    statics: (Vec<i8>, f32),
    dense: (Vec<i8>, f32),
}

impl World {
    fn new(rng: &mut Rng) -> World {
        let syllables = [
            "ba", "ke", "lo", "mi", "nu", "ra", "se", "ti", "vo", "da", "fen", "gor", "hul", "pim",
            "wat", "zor",
        ];
        let words = (0..VOCABULARY)
            .map(|n| {
                let mut rest = n;
                let mut word = String::from(syllables[rest % 16]);
                loop {
                    rest /= 16;
                    if rest == 0 {
                        break word;
                    }
                    word.push_str(syllables[rest % 16]);
                }
            })
            .collect();
        let mut total = 0.0;
        let cumulative: Vec<f64> = (1..=VOCABULARY)
            .map(|rank| {
                total += (rank as f64 + 2.7).powf(-1.07);
                total
            })
            .collect();
        let topics = (0..CLUSTERS).map(|_| (0..DENSE_DIMS).map(|_| rng.bell()).collect()).collect();
        // Each token is alike to some sixty others, as the built-in table has it.
        let kin = (0..30_000u16)
            .map(|token| {
                std::iter::once((token, 1.0))
                    .chain((0..60).map(|_| (rng.below(30_000) as u16, 0.15 + 0.5 * rng.unit())))
                    .collect()
            })
            .collect();
        World { words, cumulative, topics, kin }
    }

    fn rank(&self, rng: &mut Rng) -> usize {
        let total = self.cumulative.last().copied().unwrap_or(1.0);
        let mark = f64::from(rng.unit()) * total;
        self.cumulative.partition_point(|&sum| sum < mark).min(VOCABULARY - 1)
    }

    fn make(&self, rng: &mut Rng, ranks: &[usize]) -> Made {
        let text =
            ranks.iter().map(|&rank| self.words[rank].as_str()).collect::<Vec<_>>().join(" ");
        // Three topics and noise, the first one strongest.
        let mix: Vec<(usize, f32)> = [(0.4, 0.6), (0.1, 0.4), (0.0, 0.4)]
            .map(|(least, more)| (rng.below(CLUSTERS), least + more * rng.unit()))
            .to_vec();
        let floats: Vec<f32> = (0..DENSE_DIMS)
            .map(|at| {
                mix.iter().map(|&(topic, share)| share * self.topics[topic][at]).sum::<f32>()
                    + 0.35 * rng.bell()
            })
            .collect();
        Made {
            text,
            tokens: ranks.iter().map(|&rank| (rank % 30_000 + 500) as u16).collect(),
            statics: Vector::quantise(&floats[..STATIC_DIMS]),
            dense: Vector::quantise(&floats),
        }
    }

    fn document(&self, rng: &mut Rng) -> Made {
        let count = 15 + rng.below(26);
        let ranks: Vec<usize> = (0..count).map(|_| self.rank(rng)).collect();
        self.make(rng, &ranks)
    }

    /// Three to six words without the 25 commonest, which a stop list takes away.
    fn query(&self, rng: &mut Rng) -> Made {
        let count = 3 + rng.below(4);
        let mut ranks = Vec::new();
        while ranks.len() < count {
            let rank = self.rank(rng);
            if rank >= 25 && !ranks.contains(&rank) {
                ranks.push(rank);
            }
        }
        self.make(rng, &ranks)
    }
}

impl TokenTable for World {
    fn kin(&self, token: u16) -> Option<&[(u16, f32)]> {
        self.kin.get(usize::from(token)).map(Vec::as_slice)
    }
}

fn borrow(pair: &(Vec<i8>, f32)) -> Vector<'_> {
    Vector { values: &pair.0, scale: pair.1 }
}

/// CPU time of this thread, so that a busy machine does not count.
fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = cpu();
    let out = work();
    (out, cpu().saturating_sub(before))
}

fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    format!("p50 {:.3} ms  p99 {:.3} ms", at(50), at(99))
}

fn run(world: &World, documents: usize) {
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    let mut index = Index::new(DENSE_DIMS);
    let mut puts = Vec::new();
    for key in 0..documents as u64 {
        let made = world.document(&mut rng);
        // One document in a hundred belongs to the small class; sessions have 30 turns.
        let class = ClassId(u32::from(key % 100 == 42));
        let meta = Meta { session: key / 30 + 1, ordinal: (key % 30) as u32, ..Meta::default() };
        let mut id = [0; 16];
        id[..8].copy_from_slice(&rng.next().to_be_bytes());
        let document = Document {
            key,
            id,
            class,
            text: &made.text,
            meta,
            tokens: &made.tokens,
            statics: borrow(&made.statics),
            dense: Some(borrow(&made.dense)),
        };
        let (outcome, time) = timed(|| index.put(&document));
        outcome.expect("a well-formed document");
        puts.push(time);
    }
    println!(
        "{documents} documents: put {}; {} B a document",
        quantiles(puts),
        index.memory() / documents
    );
    let queries: Vec<Made> = (0..QUERIES).map(|_| world.query(&mut rng)).collect();
    let small = [ClassId(1)];
    let all = [ClassId(0), ClassId(1)];
    for (name, classes, dense) in [
        ("all, balanced", &all[..], true),
        ("all, instant", &all[..], false),
        ("1 %, balanced", &small[..], true),
    ] {
        let mut times = Vec::new();
        let mut candidates = 0;
        for query in &queries {
            let search = Search {
                classes,
                text: &query.text,
                tokens: &query.tokens,
                statics: Some(borrow(&query.statics)),
                dense: dense.then(|| borrow(&query.dense)),
                depth: DEPTH,
                filter: &|_, meta| meta.retired == i64::MAX,
                token_table: Some(world),
                context: true,
            };
            let (found, time) = timed(|| index.search(&search));
            candidates += found.list.len();
            times.push(time);
        }
        println!(
            "  search {name}: {}  ({} candidates)",
            quantiles(times),
            candidates / queries.len()
        );
    }
    recall(&index, &queries);
    let (bytes, wrote) = timed(|| {
        let mut bytes = Vec::new();
        index.snapshot(&mut bytes).expect("memory takes any write");
        bytes
    });
    let (back, read) = timed(|| Index::restore(&bytes));
    assert_eq!(back.map(|back| back.len()), Ok(documents));
    println!("  snapshot {} MB: write {wrote:.0?}, restore {read:.0?}", bytes.len() >> 20);
}

/// Compares the ten nearest with an exact scan, reached through a depth that covers every row.
fn recall(index: &Index, queries: &[Made]) {
    let classes = [ClassId(0), ClassId(1)];
    let nearest = |query: &Made, dense: bool, depth: usize| {
        let found = index.search(&Search {
            classes: &classes,
            text: "",
            tokens: &[],
            statics: (!dense).then(|| borrow(&query.statics)),
            dense: dense.then(|| borrow(&query.dense)),
            depth,
            filter: &|_, _| true,
            token_table: None,
            context: false,
        });
        let mut keys: Vec<(f32, u64)> =
            found.list.iter().map(|one| (one.dense.unwrap_or(one.statics), one.key)).collect();
        keys.sort_by(|a, b| b.0.total_cmp(&a.0));
        keys.truncate(10);
        keys
    };
    for (name, dense) in [("dense", true), ("static", false)] {
        let (mut hits, mut total) = (0, 0);
        for query in queries.iter().take(if index.len() > 200_000 { 5 } else { 20 }) {
            let exact = nearest(query, dense, index.len());
            let found = nearest(query, dense, DEPTH);
            hits += exact.iter().filter(|one| found.contains(one)).count();
            total += exact.len();
        }
        println!("  recall@10 {name}: {:.3}", f64::from(hits as u32) / f64::from(total as u32));
    }
}

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![10_000, 100_000, 1_000_000] } else { sizes };
    let world = World::new(&mut Rng(7));
    for documents in sizes {
        run(&world, documents);
    }
}
