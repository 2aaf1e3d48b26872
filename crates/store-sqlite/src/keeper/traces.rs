//! The search for traces of a text: every page, journal frame and snapshot, decrypted.
//!
//! Pages are decrypted here, not by SQLite, because what must be proven absent is exactly
//! what SQLite no longer shows: free pages, slack inside pages, frames of older commits.

use std::io::Read;
use std::path::Path;

use aes::cipher::block_padding::NoPadding;
use aes::cipher::{BlockDecryptMut as _, KeyIvInit as _};
use memchr::memmem::Finder;
use serde_json::Value;
use yore_domain::VaultId;
use yore_store::keeper::Traces;

use crate::error::{Error, Result};
use crate::key::Key;
use crate::open::{Files, with_suffix};
use crate::sealed::open_index;
use crate::store::Inner;
use crate::vault::Vault;

const PAGE: usize = 4096;
/// What SQLCipher keeps at the end of a page: 16 bytes of IV and 32 of HMAC.
const RESERVE: usize = 48;
const IV: usize = 16;
/// The salt that stands in front of the first page.
const SALT: usize = 16;
const WAL_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// A text longer than twice this is also looked for in pieces: it may lie on several pages.
const PIECE: usize = 32;

/// Looks for a text in everything that belongs to a vault, and in the catalog.
pub(crate) fn search(inner: &Inner, id: VaultId, text: &str) -> Result<Traces> {
    let needles = Needles::new(text);
    let mut traces = Traces::default();
    if id != VaultId::CATALOG {
        let vault = inner.open_vault(id)?;
        merge(&mut traces, within(&vault, needles.clone())?);
    }
    merge(&mut traces, within(&*inner.catalog()?, needles)?);
    Ok(traces)
}

/// Looks for a text in a copy of a vault, from where its database begins.
pub(crate) fn in_copy(
    key: &Key,
    database: &mut impl Read,
    copy: &Path,
    text: &str,
) -> Result<Traces> {
    let (needles, traces) = (Needles::new(text), Traces::default());
    let mut scan = Scan { needles, key: key.clone(), traces };
    for number in 1u32.. {
        let mut page = Vec::with_capacity(PAGE);
        let read = database.take(PAGE as u64).read_to_end(&mut page);
        if read.map_err(Error::file(copy))? == 0 {
            break;
        }
        let plain = page_text(key, number, &page);
        scan.look(&plain, || format!("{} page {number}", name(copy)));
    }
    Ok(scan.traces)
}

fn merge(traces: &mut Traces, more: Traces) {
    traces.scanned += more.scanned;
    traces.found.extend(more.found);
}

/// Runs on the writer's thread, so that no page changes while it is read.
fn within(vault: &Vault, needles: Needles) -> Result<Traces> {
    vault.writer.ask_blocking(move |desk| {
        let mut scan = Scan { needles, key: desk.key.clone(), traces: Traces::default() };
        scan.files(&desk.files, desk.id)?;
        Ok(scan.traces)
    })
}

/// The spellings of a text that are looked for.
#[derive(Clone)]
struct Needles(Vec<Finder<'static>>);

impl Needles {
    fn new(text: &str) -> Self {
        let spelt = Value::from(text).to_string();
        let spelt = &spelt.as_bytes()[1..spelt.len() - 1];
        let mut needles: Vec<&[u8]> = vec![text.as_bytes()];
        if spelt != text.as_bytes() {
            needles.push(spelt);
        }
        if spelt.len() > 2 * PIECE {
            needles.extend(spelt.chunks_exact(PIECE));
        }
        needles.retain(|needle| !needle.is_empty());
        Self(needles.into_iter().map(|needle| Finder::new(needle).into_owned()).collect())
    }

    fn found(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|finder| finder.find(bytes).is_some())
    }
}

struct Scan {
    needles: Needles,
    key: Key,
    traces: Traces,
}

impl Scan {
    fn files(&mut self, files: &Files, id: VaultId) -> Result<()> {
        self.database(&files.db)?;
        self.journal(&files.wal())?;
        self.plain(&with_suffix(&files.db, "-shm"))?;
        self.plain(&with_suffix(&files.db, "-journal"))?;
        self.index(&files.index, id)?;
        self.index(&with_suffix(&files.index, ".new"), id)
    }

    fn database(&mut self, path: &Path) -> Result<()> {
        let Some(bytes) = read(path)? else { return Ok(()) };
        for (number, page) in (1u32..).zip(bytes.chunks(PAGE)) {
            let plain = page_text(&self.key, number, page);
            self.look(&plain, || format!("{} page {number}", name(path)));
        }
        Ok(())
    }

    /// Looks at every frame, also at those that newer frames or a checkpoint made void.
    fn journal(&mut self, path: &Path) -> Result<()> {
        let Some(bytes) = read(path)? else { return Ok(()) };
        let frames = bytes.get(WAL_HEADER..).unwrap_or_default();
        for (index, frame) in frames.chunks(FRAME_HEADER + PAGE).enumerate() {
            let Some((head, page)) = frame.split_at_checked(FRAME_HEADER) else { continue };
            let number = head.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
            let plain = page_text(&self.key, number, page);
            self.look(&plain, || format!("{} frame {index} of page {number}", name(path)));
        }
        Ok(())
    }

    fn index(&mut self, path: &Path, id: VaultId) -> Result<()> {
        let Some(bytes) = read(path)? else { return Ok(()) };
        let plain = open_index(bytes.clone(), &self.key, id).unwrap_or(bytes);
        self.look(&plain, || name(path));
        Ok(())
    }

    fn plain(&mut self, path: &Path) -> Result<()> {
        let Some(bytes) = read(path)? else { return Ok(()) };
        self.look(&bytes, || name(path));
        Ok(())
    }

    fn look(&mut self, bytes: &[u8], place: impl FnOnce() -> String) {
        self.traces.scanned += bytes.len() as u64;
        if self.needles.found(bytes) {
            self.traces.found.push(place());
        }
    }
}

/// Decrypts one page. A page cut short is returned as it lies there.
fn page_text(key: &Key, number: u32, page: &[u8]) -> Vec<u8> {
    if page.len() != PAGE {
        return page.to_vec();
    }
    let (body, reserve) = page.split_at(PAGE - RESERVE);
    let body = if number == 1 { &body[SALT..] } else { body };
    let decryptor = cbc::Decryptor::<aes::Aes256>::new_from_slices(key.bytes(), &reserve[..IV])
        .expect("invariant: key and IV have the lengths of AES-256");
    decryptor
        .decrypt_padded_vec_mut::<NoPadding>(body)
        .expect("invariant: a page is a whole number of blocks")
}

fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file(path)(error)),
    }
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
