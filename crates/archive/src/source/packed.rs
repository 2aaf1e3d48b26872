//! Bytes that can be read at any place by several readers at once.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use crate::omp::Sealed;

/// A file or a piece of memory with a place of its own.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    bytes: Bytes,
    length: u64,
    at: u64,
}

#[derive(Clone, Debug)]
enum Bytes {
    File(Arc<File>),
    Memory(Arc<[u8]>),
    Sealed(Arc<Sealed>),
}

impl Shared {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { bytes: Bytes::File(Arc::new(file)), length, at: 0 })
    }

    pub(crate) fn memory(bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u64;
        Self { bytes: Bytes::Memory(bytes.into()), length, at: 0 }
    }

    pub(crate) fn sealed(sealed: Sealed) -> Self {
        let length = sealed.length();
        Self { bytes: Bytes::Sealed(Arc::new(sealed)), length, at: 0 }
    }

    pub(crate) fn at(&self, place: u64) -> Self {
        Self { at: place, ..self.clone() }
    }

    /// Whether it begins like a zip.
    pub(crate) fn is_zip(&self) -> bool {
        let mut magic = [0; 4];
        self.at(0).read_exact(&mut magic).is_ok()
            && (magic == *b"PK\x03\x04" || magic == *b"PK\x05\x06")
    }
}

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &self.bytes {
            Bytes::File(file) => read_at(file, buffer, self.at)?,
            Bytes::Sealed(sealed) => sealed.read_at(buffer, self.at)?,
            Bytes::Memory(bytes) => {
                let from = usize::try_from(self.at).unwrap_or(usize::MAX).min(bytes.len());
                let count = buffer.len().min(bytes.len() - from);
                buffer[..count].copy_from_slice(&bytes[from..from + count]);
                count
            }
        };
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(offset) => self.length.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        self.at = place.ok_or_else(|| io::Error::other("a place before the beginning"))?;
        Ok(self.at)
    }
}

#[cfg(unix)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(windows)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}
