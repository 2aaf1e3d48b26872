//! `cargo xtask model`: makes the artefacts in `crates/embed/models` from the published weights
//! of all-MiniLM-L6-v2.
//!
//! The steps are fetch, check the f32 pass against stored reference vectors, quantise, distil,
//! write. All arithmetic is the portable definition of `yore-kernels` or plain `f64`, so every
//! machine writes the same bytes. Run it with `--release`; the distillation takes minutes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

mod artefact;
mod bert;
mod distil;
mod eigen;
mod source;

use bert::Bert;

const FILES: [&str; 3] = ["minilm-l6-v2.int8.bin", "static-256.int8.bin", "vocab.txt"];

/// Arguments of `cargo xtask model`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only compare the files in place with their checksums.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let models = root.join("crates/embed/models");
    if arguments.check {
        return check(&models);
    }
    let source = source::fetch(&root.join("target/model"))?;
    let bert = Bert::from_tensors(&source.tensors)?;
    compare(&bert, &root.join("crates/embed/tests"))?;
    let vectors = distil::token_vectors(&bert);
    let table = distil::table_from(&vectors);
    fs::write(models.join(FILES[0]), artefact::transformer(&source.tensors)?)?;
    fs::write(models.join(FILES[1]), artefact::table(&table))?;
    fs::write(models.join(FILES[2]), &source.vocabulary)?;
    fs::write(models.join("SHA256SUMS"), sums(&models)?)?;
    eprintln!("wrote {}", FILES.join(", "));
    Ok(())
}

fn check(models: &Path) -> Result<()> {
    let expected = fs::read_to_string(models.join("SHA256SUMS")).context("no SHA256SUMS")?;
    ensure!(
        sums(models)? == expected,
        "a model file differs from SHA256SUMS; run `cargo xtask model`"
    );
    eprintln!("{} model files match SHA256SUMS", FILES.len());
    Ok(())
}

fn sums(models: &Path) -> Result<String> {
    FILES
        .iter()
        .map(|name| {
            let path: PathBuf = models.join(name);
            let bytes = fs::read(&path).with_context(|| format!("cannot read {name}"))?;
            Ok(format!("{}  {name}\n", sha256(&bytes)))
        })
        .collect()
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Compares the f32 pass with the vectors the original Python code gives for the same tokens.
fn compare(bert: &Bert, fixtures: &Path) -> Result<()> {
    let texts: Vec<serde_json::Value> =
        serde_json::from_slice(&fs::read(fixtures.join("reference.json"))?)?;
    let vectors = source::floats(&fs::read(fixtures.join("reference.f32"))?);
    let mut lowest = 1f32;
    for (text, expected) in texts.iter().zip(vectors.chunks_exact(bert::WIDTH)) {
        let tokens: Vec<usize> = serde_json::from_value(text["tokens"].clone())?;
        let mut found = bert.mean(&tokens);
        yore_kernels::normalise(&mut found);
        lowest = lowest.min(yore_kernels::dot_f32(&found, expected));
    }
    eprintln!("f32 pass: lowest cosine to the reference {lowest:.7} over {} texts", texts.len());
    ensure!(lowest > 0.999_99, "the f32 pass differs from the reference");
    Ok(())
}
