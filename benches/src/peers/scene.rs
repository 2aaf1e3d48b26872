//! The texts, the questions and the vectors that every system is given.
//!
//! The vectors are those of the transformer inside Yore, rounded as its vault keeps them. Making
//! one takes some milliseconds, so beyond a number they are mixtures of real ones, and all of them
//! are kept for the next run.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use yore_embed::builtin;

use crate::corpus::{Corpus, Random};

const SEED: u64 = 20_261_118;
/// So many memories are asked about, whatever lies there besides.
const ASKED_ABOUT: usize = 600;
/// How many texts are turned into vectors at once.
const TOGETHER: usize = 32;

/// What is remembered and asked.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) place: PathBuf,
    corpus: Corpus,
}

impl Scene {
    /// Makes the files for so many memories and questions, unless they lie there.
    pub(crate) fn make(place: &Path, size: usize, questions: usize, real: usize) -> Result<Self> {
        let scene = Self::at(place);
        let real = real.min(size);
        let stamp = format!("{SEED} {size} {questions} {real} {ASKED_ABOUT}");
        let made = place.join("made");
        if fs::read_to_string(&made).is_ok_and(|found| found == stamp) {
            return Ok(scene);
        }
        fs::create_dir_all(place)?;
        drop(fs::remove_file(&made)); // it may not be there
        println!("making {real} vectors of {size} texts and those of {questions} questions");
        let texts: Vec<String> = (0..size).map(|number| scene.memory(number)).collect();
        let asked: Vec<String> = (0..questions).map(|number| scene.question(number)).collect();
        fs::write(place.join("texts.txt"), lines(&texts))?;
        fs::write(place.join("questions.txt"), lines(&asked))?;
        let known = vectors(&texts[..real]);
        let mut file = BufWriter::new(fs::File::create(place.join("texts.f32"))?);
        let mut random = Random::new(SEED);
        for number in 0..size {
            match known.get(number) {
                Some(vector) => put(&mut file, vector)?,
                None => put(&mut file, &mixture(&known, &mut random))?,
            }
        }
        file.flush()?;
        let mut file = BufWriter::new(fs::File::create(place.join("questions.f32"))?);
        for vector in vectors(&asked) {
            put(&mut file, &vector)?;
        }
        file.flush()?;
        fs::write(made, stamp).context("the scene cannot be kept")?;
        Ok(scene)
    }

    /// The scene whose files lie there.
    pub(crate) fn at(place: &Path) -> Self {
        Self { place: place.to_owned(), corpus: Corpus::new(SEED) }
    }

    pub(crate) fn memory(&self, number: usize) -> String {
        self.corpus.memory(number)
    }

    pub(crate) fn question(&self, number: usize) -> String {
        self.corpus.question(ASKED_ABOUT, number)
    }
}

/// The user that a memory or a question belongs to.
pub(crate) fn user(number: usize, users: usize) -> String {
    format!("user{}", number % users.max(1))
}

fn lines(texts: &[String]) -> String {
    texts.iter().fold(String::new(), |all, one| all + one + "\n")
}

/// The vectors of texts, on all cores.
fn vectors(texts: &[String]) -> Vec<Vec<f32>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let each = texts.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = texts
            .chunks(each)
            .map(|part| {
                scope.spawn(move || {
                    let mut made = Vec::with_capacity(part.len());
                    for few in part.chunks(TOGETHER) {
                        let few: Vec<&str> = few.iter().map(String::as_str).collect();
                        let few = builtin().transformer.embed_all(&few);
                        made.extend(few.iter().map(yore_embed::Quantised::to_floats));
                    }
                    made
                })
            })
            .collect();
        let joined = parts.into_iter().map(|part| part.join().expect("making vectors never fails"));
        joined.flatten().collect()
    })
}

/// Something near three real vectors, of length one.
fn mixture(known: &[Vec<f32>], random: &mut Random) -> Vec<f32> {
    let parts: Vec<&Vec<f32>> = (0..3).map(|_| &known[random.below(known.len())]).collect();
    let shares = [1.0, random.unit(), random.unit()];
    let mut mixed: Vec<f32> = (0..parts[0].len())
        .map(|at| {
            let sum: f64 = parts.iter().zip(shares).map(|(part, s)| f64::from(part[at]) * s).sum();
            (sum + (random.unit() - 0.5) * 0.05) as f32
        })
        .collect();
    let length = mixed.iter().map(|value| value * value).sum::<f32>().sqrt();
    mixed.iter_mut().for_each(|value| *value /= length);
    mixed
}

fn put(file: &mut impl Write, vector: &[f32]) -> Result<()> {
    for value in vector {
        file.write_all(&value.to_le_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixture_has_the_length_of_one() {
        let known = vec![vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 0.0], vec![0.0, 0.0, 1.0]];
        let mut random = Random::new(3);
        for _ in 0..20 {
            let mixed = mixture(&known, &mut random);
            let length: f32 = mixed.iter().map(|value| value * value).sum();
            assert!((length - 1.0).abs() < 1e-5, "{mixed:?}");
        }
    }

    #[test]
    fn users_share_the_memories_evenly() {
        let of = |wanted: &str| (0..100).filter(|number| user(*number, 10) == wanted).count();
        assert_eq!((of("user0"), of("user9"), of("user10")), (10, 10, 0));
    }
}
