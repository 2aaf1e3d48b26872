//! One file on its way into a zip of its own, so that whatever is put aside can be read alike.

use std::io::{self, Write};

use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipWriter};

use crate::{Error, Result};

/// A zip with one file, written as the file's bytes come.
pub struct Wrapped<W: Write>(ZipWriter<StreamWriter<W>>);

impl<W: Write> std::fmt::Debug for Wrapped<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wrapped").finish_non_exhaustive()
    }
}

impl<W: Write> Wrapped<W> {
    /// Begins a zip with a file of this name.
    pub fn new(inner: W, name: &str) -> Result<Self> {
        let mut zip = ZipWriter::new_stream(inner);
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .large_file(true);
        zip.start_file(name, options).map_err(|error| failed(name, error.to_string()))?;
        Ok(Self(zip))
    }

    /// Ends the zip.
    pub fn finish(self) -> Result<W> {
        let inner = self.0.finish().map_err(|error| failed("its end", error.to_string()))?;
        Ok(inner.into_inner())
    }
}

impl<W: Write> Write for Wrapped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn failed(path: &str, reason: String) -> Error {
    Error::Zip { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_goes_in_comes_out_under_its_name() {
        let mut wrapped = Wrapped::new(Vec::new(), "conversations.json").unwrap();
        wrapped.write_all(b"[1, ").unwrap();
        wrapped.write_all(b"2]").unwrap();
        let bytes = wrapped.finish().unwrap();
        let mut zip = zip::ZipArchive::new(io::Cursor::new(bytes)).unwrap();
        let mut text = String::new();
        zip.by_name("conversations.json").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "[1, 2]");
    }
}
