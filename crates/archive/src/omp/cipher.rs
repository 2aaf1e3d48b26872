//! The password around an archive: what `openssl enc -aes-256-cbc -pbkdf2` writes and opens.
//!
//! `Salted__`, eight bytes of salt, AES-256-CBC. The mode does not tell whether bytes were
//! changed, so a tag over the whole file is written beside it and checked before anything is
//! decrypted. An archive is read through the cipher in place; its clear text never touches a disk.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use aes::Aes256;
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit, generic_array::GenericArray};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"Salted__";
const HEADER: u64 = 16;
const BLOCK: usize = 16;
/// Rounds that are written.
const ROUNDS: u32 = 600_000;
/// Rounds that are tried: those, and what `openssl` does unless it is told otherwise.
const TRIED: [u32; 2] = [ROUNDS, 10_000];
/// Rounds for a key that nobody chose: it cannot be guessed, so one is enough.
const ONCE: u32 = 1;

/// Key, first vector and the key of the tag, from one derivation.
struct Keys(Zeroizing<[u8; 80]>);

impl Keys {
    fn derive(password: &str, salt: &[u8], rounds: u32) -> Self {
        let password: Zeroizing<String> = Zeroizing::new(password.nfc().collect());
        let mut bytes = Zeroizing::new([0; 80]);
        pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), salt, rounds, &mut *bytes);
        Self(bytes)
    }

    fn cipher(&self) -> Aes256 {
        Aes256::new(GenericArray::from_slice(&self.0[..32]))
    }

    fn vector(&self) -> [u8; BLOCK] {
        let mut vector = [0; BLOCK];
        vector.copy_from_slice(&self.0[32..48]);
        vector
    }

    fn tag(&self) -> Hmac<Sha256> {
        <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&self.0[48..])
            .expect("invariant: HMAC takes a key of any length")
    }
}

/// Encrypts what is written to it.
pub struct Sealer<W> {
    inner: W,
    cipher: Aes256,
    before: [u8; BLOCK],
    waiting: Vec<u8>,
    tag: Hmac<Sha256>,
}

impl<W> std::fmt::Debug for Sealer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").finish_non_exhaustive()
    }
}

/// Begins a file under a password.
pub fn seal<W: Write>(inner: W, password: &str) -> Result<Sealer<W>> {
    let mut salt = [0; 8];
    getrandom::fill(&mut salt)
        .map_err(|error| Error::archive("password", format!("no random bytes: {error}")))?;
    Sealer::new(inner, password, salt, ROUNDS)
}

/// Begins a file that is put aside for a while under a key of 32 random bytes, which only lives in
/// memory. [`Source::open_put_aside`](crate::Source::open_put_aside) reads it.
pub fn put_aside<W: Write>(inner: W, key: &[u8; 32]) -> Result<Sealer<W>> {
    Sealer::new(inner, &spelled(key), [0; 8], ONCE)
}

fn spelled(key: &[u8; 32]) -> Zeroizing<String> {
    Zeroizing::new(yore_canon::encode::hex(key))
}

impl<W: Write> Sealer<W> {
    fn new(mut inner: W, password: &str, salt: [u8; 8], rounds: u32) -> Result<Self> {
        let keys = Keys::derive(password, &salt, rounds);
        let mut tag = keys.tag();
        for part in [&MAGIC[..], &salt[..]] {
            inner.write_all(part).map_err(Error::io("archive"))?;
            tag.update(part);
        }
        let (cipher, before) = (keys.cipher(), keys.vector());
        Ok(Self { inner, cipher, before, waiting: Vec::new(), tag })
    }

    /// Writes the end, and returns the tag to write beside the file.
    pub fn finish(mut self) -> Result<(W, String)> {
        let padding = BLOCK - self.waiting.len() % BLOCK;
        let fill = u8::try_from(padding).expect("invariant: a block has sixteen bytes");
        self.waiting.extend(std::iter::repeat_n(fill, padding));
        self.encrypt().map_err(Error::io("archive"))?;
        self.inner.flush().map_err(Error::io("archive"))?;
        let tag: [u8; 32] = self.tag.finalize().into_bytes().into();
        Ok((self.inner, yore_canon::encode::hex(&tag)))
    }

    fn encrypt(&mut self) -> io::Result<()> {
        let whole = self.waiting.len() - self.waiting.len() % BLOCK;
        let rest = self.waiting.split_off(whole);
        let mut blocks = std::mem::replace(&mut self.waiting, rest);
        for block in blocks.chunks_exact_mut(BLOCK) {
            block.iter_mut().zip(self.before).for_each(|(byte, before)| *byte ^= before);
            self.cipher.encrypt_block(GenericArray::from_mut_slice(block));
            self.before.copy_from_slice(block);
        }
        self.tag.update(&blocks);
        self.inner.write_all(&blocks)
    }
}

impl<W: Write> Write for Sealer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= 64 << 10 {
            self.encrypt()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A file under a password, opened: any place of its clear text can be read.
pub struct Sealed {
    file: File,
    cipher: Aes256,
    vector: [u8; BLOCK],
    length: u64,
}

impl std::fmt::Debug for Sealed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealed").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Sealed {
    /// Whether a file begins like one under a password.
    #[must_use]
    pub fn begins(head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    /// Opens a file. With its tag, nothing is decrypted unless the tag is right.
    pub fn open(path: &Path, password: &str, tag: Option<&str>) -> Result<Self> {
        let shown = path.display().to_string();
        let file = File::open(path).map_err(Error::io(&shown))?;
        let size = file.metadata().map_err(Error::io(&shown))?.len();
        let wrong = || Error::archive("password", "wrong password or damaged file");
        let mut header = [0; HEADER as usize];
        if size < HEADER + BLOCK as u64 || !(size - HEADER).is_multiple_of(BLOCK as u64) {
            return Err(wrong());
        }
        read_exact_at(&file, &mut header, 0).map_err(Error::io(&shown))?;
        if !Self::begins(&header) {
            return Err(Error::archive("password", "not a file that a password opens"));
        }
        let tag = match tag.map(|tag| yore_canon::encode::from_hex(tag.trim())) {
            None => None,
            Some(Ok(tag)) => Some(tag),
            Some(Err(_)) => return Err(Error::archive("password", "the tag is not hexadecimal")),
        };
        for rounds in TRIED {
            let keys = Keys::derive(password, &header[8..], rounds);
            if let Some(tag) = &tag {
                let mut mac = keys.tag();
                let mut reader = io::BufReader::new(File::open(path).map_err(Error::io(&shown))?);
                let mut buffer = vec![0; 64 << 10];
                loop {
                    let count = reader.read(&mut buffer).map_err(Error::io(&shown))?;
                    if count == 0 {
                        break;
                    }
                    mac.update(&buffer[..count]);
                }
                if mac.verify_slice(tag).is_err() {
                    continue;
                }
            }
            let file = file.try_clone().map_err(Error::io(&shown))?;
            let mut sealed =
                Self { file, cipher: keys.cipher(), vector: keys.vector(), length: size - HEADER };
            if sealed.begins_like_a_zip().map_err(Error::io(&shown))?
                && sealed.ends().map_err(Error::io(&shown))?
            {
                return Ok(sealed);
            }
        }
        Err(wrong())
    }

    /// Opens a file that was put aside.
    pub(crate) fn open_put_aside(path: &Path, key: &[u8; 32]) -> Result<Self> {
        let shown = || Error::io("a file that was put aside");
        let file = File::open(path).map_err(shown())?;
        let size = file.metadata().map_err(shown())?.len();
        let whole = size >= HEADER + BLOCK as u64 && (size - HEADER).is_multiple_of(BLOCK as u64);
        let keys = Keys::derive(&spelled(key), &[0; 8], ONCE);
        let length = size.saturating_sub(HEADER);
        let mut sealed = Self { file, cipher: keys.cipher(), vector: keys.vector(), length };
        if !whole || !sealed.ends().map_err(shown())? {
            return Err(Error::form("a file that was put aside is not whole"));
        }
        Ok(sealed)
    }

    fn begins_like_a_zip(&self) -> io::Result<bool> {
        let mut first = [0; BLOCK];
        self.read_at(&mut first, 0)?;
        Ok(first.starts_with(b"PK"))
    }

    /// Whether the clear text ends in a proper padding, which is cut off.
    fn ends(&mut self) -> io::Result<bool> {
        let mut last = [0; BLOCK];
        self.read_at(&mut last, self.length - BLOCK as u64)?;
        let padding = last[BLOCK - 1];
        let proper = (1..=BLOCK).contains(&usize::from(padding))
            && last[BLOCK - usize::from(padding)..].iter().all(|byte| *byte == padding);
        if !proper {
            return Ok(false);
        }
        self.length -= u64::from(padding);
        Ok(true)
    }

    /// Returns how long the clear text is.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads clear text. A block needs only the one before it.
    pub fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let block = BLOCK as u64;
        let count = self.length.saturating_sub(at).min(buffer.len().min(1 << 20) as u64);
        if count == 0 {
            return Ok(0);
        }
        let (first, last) = (at / block, (at + count - 1) / block);
        let mut before = self.vector;
        if first > 0 {
            read_exact_at(&self.file, &mut before, HEADER + (first - 1) * block)?;
        }
        let bytes = usize::try_from((last - first + 1) * block).map_err(io::Error::other)?;
        let mut text = vec![0; bytes];
        read_exact_at(&self.file, &mut text, HEADER + first * block)?;
        for part in text.chunks_exact_mut(BLOCK) {
            let mut sealed = [0; BLOCK];
            sealed.copy_from_slice(part);
            self.cipher.decrypt_block(GenericArray::from_mut_slice(part));
            part.iter_mut().zip(before).for_each(|(byte, before)| *byte ^= before);
            before = sealed;
        }
        let from = usize::try_from(at % block).map_err(io::Error::other)?;
        let count = usize::try_from(count).map_err(io::Error::other)?;
        buffer[..count].copy_from_slice(&text[from..from + count]);
        Ok(count)
    }
}

fn read_exact_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        let count = crate::source::read_at(file, buffer, at)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer = &mut buffer[count..];
        at += count as u64;
    }
    Ok(())
}
