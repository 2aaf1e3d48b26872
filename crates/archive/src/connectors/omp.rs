//! Archives in the `.omp.zip` form, among other exports.

use crate::connector::{Connector, Sample, Sink};
use crate::omp::{Reader, Sealed};
use crate::source::{File, Source};
use crate::{Error, Result};

/// Reads archives.
#[derive(Debug)]
pub(super) struct Omp;

impl Connector for Omp {
    fn platform(&self) -> &'static str {
        "omp"
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        // A zip is handed over whole only when it has a manifest of the format.
        if sample.head.starts_with(b"PK\x03\x04") {
            return 100;
        }
        u8::from(Sealed::begins(sample.head)) * 90
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        for file in files {
            let done = one(source, file, sink);
            sink.pass(file.path(), None, done)?;
        }
        Ok(())
    }
}

fn one(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    source.named(&format!("{}.hmac", file.name())).for_each(|tag| sink.used(tag));
    let head = file.sample()?;
    if Sealed::begins(&head) {
        let Some(password) = source.password() else {
            return Err(Error::archive("password", "it is under a password"));
        };
        let Some(path) = file.on_disk() else {
            return Err(Error::archive("password", "it lies inside a zip; take it out first"));
        };
        // The tag is beside it, unless somebody moved the one without the other.
        let mut beside = path.as_os_str().to_owned();
        beside.push(".hmac");
        let tag = std::fs::read_to_string(beside).ok();
        let reader = Reader::open_sealed(path, password, tag.as_deref(), source.limits())?;
        return reader.read(sink);
    }
    let bytes = file.shared(source.limits().nested)?;
    Reader::verify(file.path(), bytes, source.limits())?.read(sink)
}
