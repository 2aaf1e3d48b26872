//! The saved indexes as a file: sealed piece by piece, so that they are never held twice.
//!
//! Each piece stands behind its length and is bound to the vault, to its place, and to being the
//! last or not: pieces cannot be swapped, dropped or taken from another vault's file.

use std::io::{self, Write};

use yore_domain::VaultId;

use crate::error::Result;
use crate::key::Key;
use crate::open::{self, Files};

/// Plain bytes of a piece.
const PIECE: usize = 1 << 20;
const LENGTH: usize = size_of::<u32>();

fn index_key(key: &Key) -> Key {
    key.derive("yore index snapshot v2")
}

fn context(id: VaultId, number: u64, last: bool) -> Vec<u8> {
    [&id.bytes()[..], &number.to_le_bytes(), &[u8::from(last)]].concat()
}

/// Writes what is put into it as sealed pieces.
struct Pieces<'a, W> {
    out: &'a mut W,
    key: Key,
    id: VaultId,
    number: u64,
    held: Vec<u8>,
}

impl<W: Write> Pieces<'_, W> {
    fn put(&mut self, last: bool) -> io::Result<()> {
        let sealed = self.key.seal(&context(self.id, self.number, last), &self.held);
        let length = u32::try_from(sealed.len()).map_err(io::Error::other)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&sealed)?;
        self.number += 1;
        self.held.clear();
        Ok(())
    }
}

impl<W: Write> Write for Pieces<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.held.len() >= PIECE {
            self.put(false)?;
        }
        let some = bytes.len().min(PIECE - self.held.len());
        self.held.extend_from_slice(&bytes[..some]);
        Ok(some)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the indexes down, encrypted.
pub(crate) fn save_index(
    files: &Files,
    key: &Key,
    id: VaultId,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    open::replace_with(&files.index, |file| {
        let held = Vec::with_capacity(PIECE);
        let mut pieces = Pieces { out: file, key: index_key(key), id, number: 0, held };
        write(&mut pieces)?;
        pieces.put(true)
    })
}

/// Reads the saved indexes; anything wrong with them means they are built from the rows.
pub(crate) fn load_index(files: &Files, key: &Key, id: VaultId) -> Option<Vec<u8>> {
    open_index(std::fs::read(&files.index).ok()?, key, id)
}

/// Decrypts saved indexes where they lie: they may be large.
pub(crate) fn open_index(mut bytes: Vec<u8>, key: &Key, id: VaultId) -> Option<Vec<u8>> {
    let key = index_key(key);
    let (mut at, mut end) = (0, 0);
    for number in 0.. {
        let begin = at + LENGTH;
        let length = u32::from_le_bytes(*bytes.get(at..begin)?.first_chunk()?) as usize;
        at = begin.checked_add(length).filter(|end| *end <= bytes.len())?;
        let last = at == bytes.len();
        let plain = key.open_in_place(&context(id, number, last), &mut bytes[begin..at])?;
        bytes.copy_within(begin + plain.start..begin + plain.end, end);
        end += plain.len();
        if last {
            break;
        }
    }
    bytes.truncate(end);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back_whole_and_in_no_other_order() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.idx");
        let (key, id) = (Key::random(), VaultId::random());
        let sealed = |plain: &[u8]| {
            open::replace_with(&path, |file| {
                let held = Vec::new();
                let mut out = Pieces { out: file, key: index_key(&key), id, number: 0, held };
                out.write_all(plain)?;
                out.put(true)
            })
            .unwrap();
            std::fs::read(&path).unwrap()
        };
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7] {
            let plain: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let bytes = sealed(&plain);
            assert!(open_index(bytes.clone(), &key, id).is_some_and(|found| found == plain));
            assert!(open_index(bytes.clone(), &Key::random(), id).is_none());
            assert!(open_index(bytes.clone(), &key, VaultId::random()).is_none());
            assert!(open_index(bytes[..bytes.len() - 1].to_vec(), &key, id).is_none());
        }
        let bytes = sealed(&vec![7; 3 * PIECE]);
        let one = bytes.len() / 3;
        assert!(open_index(bytes[..one * 2].to_vec(), &key, id).is_none(), "one is missing");
        let swapped = [&bytes[one..2 * one], &bytes[..one], &bytes[2 * one..]].concat();
        assert!(open_index(swapped, &key, id).is_none(), "two are swapped");
        assert!(open_index(Vec::new(), &key, id).is_none());
    }
}
