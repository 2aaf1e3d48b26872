//! An upload on its way to the disk: encrypted, unless it is already.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;

use yore_archive::omp::{Sealed, Sealer, put_aside};
use yore_domain::{Error, Result};
use zeroize::Zeroizing;

use crate::questions::random;

/// Bytes that tell whether a file is under a password.
const HEAD: usize = 8;

/// The key of a file, which is kept in memory alone.
pub(crate) type Key = Arc<Zeroizing<[u8; 32]>>;

/// A file that is being put aside.
#[derive(Debug)]
pub(crate) enum Aside {
    /// Too little came to tell what it is.
    Begins(BufWriter<File>, Vec<u8>),
    /// Clear bytes, encrypted here.
    Clear(Box<Sealer<BufWriter<File>>>, Key),
    /// Bytes under a password of their owner's, kept as they are.
    Sealed(BufWriter<File>),
    /// Given up.
    Broken,
}

impl Aside {
    pub(crate) fn new(file: File) -> Self {
        Self::Begins(BufWriter::new(file), Vec::new())
    }

    /// Takes some more.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Begins(_, head) => {
                head.extend_from_slice(bytes);
                if head.len() >= HEAD {
                    self.tell()?;
                }
                Ok(())
            }
            Self::Clear(sealer, _) => sealer.write_all(bytes).map_err(Error::internal),
            Self::Sealed(file) => file.write_all(bytes).map_err(Error::internal),
            Self::Broken => Err(Error::internal("the file was given up")),
        }
    }

    /// Decides by its head how the rest is kept.
    fn tell(&mut self) -> Result<()> {
        let Self::Begins(mut file, head) = std::mem::replace(self, Self::Broken) else {
            return Ok(());
        };
        *self = if Sealed::begins(&head) {
            file.write_all(&head).map_err(Error::internal)?;
            Self::Sealed(file)
        } else {
            let key: Key = Arc::new(Zeroizing::new(random()?));
            let mut sealer = put_aside(file, &key).map_err(Error::internal)?;
            sealer.write_all(&head).map_err(Error::internal)?;
            Self::Clear(Box::new(sealer), key)
        };
        Ok(())
    }

    /// Writes the end, and returns the key it is under.
    pub(crate) fn finish(mut self) -> Result<Option<Key>> {
        if matches!(self, Self::Begins(..)) {
            self.tell()?;
        }
        match self {
            Self::Clear(sealer, key) => {
                sealer.finish().map_err(Error::internal)?;
                Ok(Some(key))
            }
            Self::Sealed(mut file) => {
                file.flush().map_err(Error::internal)?;
                Ok(None)
            }
            Self::Begins(..) | Self::Broken => Err(Error::internal("the file was given up")),
        }
    }
}
