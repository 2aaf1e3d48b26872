//! A short, repeatable run of every fuzzing target over its corpus, without a fuzzer.
//!
//! Samples are mutated by a generator with a fixed seed. What a long run by `cargo xtask fuzz`
//! finds becomes a file of the corpus, and is tried here from then on.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

#[path = "../../fuzz/src/spoken.rs"]
#[expect(unreachable_pub, reason = "a fuzzer reaches it as a library")]
mod spoken;
#[path = "../../fuzz/src/targets.rs"]
#[expect(unreachable_pub, reason = "a fuzzer reaches it as a library")]
mod targets;

use targets::Target;

/// The largest sample that is mutated here; a fuzzer takes larger ones.
const SAMPLE: u64 = 64 << 10;

/// How many inputs each target gets: some, or as many as a night's rest allows.
fn rounds() -> usize {
    if std::env::var_os("YORE_FULL").is_some() { 50_000 } else { 150 }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

/// Words that parsers look for, and numbers at their edges.
const WORDS: [&[u8]; 18] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b":",
    b",",
    b"\\ud800",
    b"null",
    b"-0",
    b"1e400",
    b"\n---\n",
    b"\0",
    b"\xff\xfe",
    b"18446744073709551616",
    b"PK\x03\x04",
    b"SQLite format 3\0",
];

/// xorshift64*: small, and the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let rolled = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(rolled).unwrap_or(0) % sides.max(1)
    }

    /// Changes a sample a little, or crosses it with another.
    fn mutate(&mut self, samples: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = samples[self.roll(samples.len())].clone();
        for _ in 0..=self.roll(6) {
            let at = self.roll(bytes.len() + 1);
            let to = (at + self.roll(32)).min(bytes.len());
            match self.roll(7) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.roll(8),
                1 => drop(bytes.drain(at..to)),
                2 => {
                    let copy = bytes[at..to].to_vec();
                    bytes.splice(at..at, copy);
                }
                3 => {
                    let word = WORDS[self.roll(WORDS.len())];
                    bytes.splice(at..to, word.iter().copied());
                }
                4 => bytes.truncate(at),
                5 => {
                    let other = &samples[self.roll(samples.len())];
                    let from = self.roll(other.len() + 1);
                    bytes.splice(at.., other[from..].iter().copied());
                }
                _ => bytes.insert(at, u8::try_from(self.roll(256)).unwrap_or(0)),
            }
        }
        bytes
    }
}

/// The files below a directory that are small enough, in the order of their names.
fn samples(folder: &Path, found: &mut Vec<Vec<u8>>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            samples(&path, found);
        } else if std::fs::metadata(&path).is_ok_and(|found| found.len() <= SAMPLE) {
            found.extend(std::fs::read(&path));
        }
    }
}

fn try_all(all: &[Target]) {
    let mut broken = Vec::new();
    for (name, run, beside) in all {
        let mut corpus = Vec::new();
        samples(&root().join("fuzz/corpus").join(name), &mut corpus);
        if let Some(beside) = beside {
            samples(&root().join(beside), &mut corpus);
        }
        assert!(!corpus.is_empty(), "the target {name} has no corpus");
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
        let mutated = (0..rounds()).map(|_| dice.mutate(&corpus));
        let mutated: Vec<Vec<u8>> = corpus.clone().into_iter().chain(mutated).collect();
        for bytes in mutated {
            if catch_unwind(|| run(&bytes)).is_err() {
                let kept = std::env::temp_dir().join(format!("yore-fuzz-{name}"));
                std::fs::write(&kept, &bytes).expect("the input is kept");
                broken.push(format!("{name}: {}", kept.display()));
                break;
            }
        }
    }
    assert!(broken.is_empty(), "targets that panicked, and where their input lies: {broken:?}");
}

#[test]
fn the_parsers_survive_a_short_run() {
    let (first, rest) = targets::TARGETS.split_at(targets::TARGETS.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| try_all(first));
        try_all(rest);
    });
}

#[test]
fn the_parsers_of_protocols_survive_a_short_run() {
    try_all(spoken::TARGETS);
}

#[test]
fn every_target_can_be_run_by_a_fuzzer() {
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("the manifest");
    for (name, ..) in targets::TARGETS.iter().chain(spoken::TARGETS) {
        assert!(manifest.contains(&format!("name = \"{name}\"\n")), "{name} is no binary");
        let file = root().join(format!("fuzz/fuzz_targets/{name}.rs"));
        let text = std::fs::read_to_string(file).expect("the target's file");
        assert!(text.contains(&format!("run(\"{name}\"")), "{name}: {text}");
    }
}
