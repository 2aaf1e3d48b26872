//! An archive or an export on its way in: put aside encrypted, whatever form it arrives in.

use std::fs::File;
use std::io::{BufWriter, Write};

use axum::body::{Body, HttpBody};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use futures::StreamExt;
use yore_archive::Wrapped;
use yore_archive::omp::{Sealed, Sealer, seal};
use yore_domain::Error;
use yore_domain::job::Job;
use yore_http::multipart::{Form, Piece};

use crate::Omp;
use crate::error::{Refusal, Result};

/// What arrived besides the bytes.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    /// The fields of a form.
    pub(crate) fields: Vec<(String, String)>,
    /// Whether the archive is under a password of its own.
    pub(crate) sealed: bool,
}

/// What is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expecting {
    /// An archive, as the field `archive` of a form or bare.
    Archive,
    /// What a platform exported, as the field `file` of a form or bare: a zip, or one file that
    /// the client calls so.
    Export(String),
}

/// Where the bytes of an archive go.
enum Place {
    /// It is not known yet what they are.
    Unknown(File, Vec<u8>, Expecting),
    /// Clear bytes, encrypted here.
    Clear(Box<Sealer<BufWriter<File>>>),
    /// Clear bytes that are no zip: they get one of their own, encrypted here.
    Wrapped(Box<Wrapped<Sealer<BufWriter<File>>>>),
    /// Bytes that are encrypted already.
    Sealed(BufWriter<File>),
}

impl Omp {
    /// Puts an archive aside for a job, under a password unless it has one.
    pub(crate) async fn arrive(
        &self,
        headers: &HeaderMap,
        body: Body,
        job: &Job,
        password: &str,
        expecting: Expecting,
    ) -> Result<Arrived> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let archive = expecting == Expecting::Archive;
        let field = if archive { "archive" } else { "file" };
        let mut form = kind.and_then(|kind| Form::of(kind, field));
        if archive && form.is_none() && kind.is_some_and(|kind| !is_archive(kind)) {
            let reason = "the archive must come as a form or as application/zip";
            return Err(Refusal::new(415, "unsupported_media_type", reason));
        }
        let most = self.options.archive_bytes;
        if body.size_hint().lower() > most {
            return Err(too_large(most));
        }
        let file = self.spool()?.create(job, self.engine.now()).map_err(Error::internal)?;
        let mut place = Place::Unknown(file, Vec::new(), expecting);
        let (mut arrived, mut count) = (Arrived::default(), 0_u64);
        let mut pieces = body.into_data_stream();
        while let Some(bytes) = pieces.next().await {
            let bytes = bytes.map_err(|_| Refusal::invalid("body", "it ended early"))?;
            count += bytes.len() as u64;
            if count > most {
                return Err(too_large(most));
            }
            let Some(form) = &mut form else {
                place = place.take(&bytes, password).await?;
                continue;
            };
            for piece in form.take(&bytes)? {
                match piece {
                    Piece::Field(name, value) => arrived.fields.push((name, value)),
                    Piece::Begins(name) => place.called(&name),
                    Piece::File(bytes) => place = place.take(&bytes, password).await?,
                }
            }
        }
        if form.is_some_and(|form| !form.ended()) {
            return Err(Refusal::invalid("body", "it ended early"));
        }
        arrived.sealed = place.finish()?;
        Ok(arrived)
    }
}

fn is_archive(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    ["application/zip", "application/vnd.omp.archive+zip", "application/octet-stream"]
        .contains(&essence.as_str())
}

fn too_large(most: u64) -> Refusal {
    Error::too_large("the archive", format!("{most} bytes")).into()
}

/// Begins a file under a password, which takes a while by design.
async fn sealed(file: BufWriter<File>, password: &str) -> Result<Sealer<BufWriter<File>>> {
    let password = password.to_owned();
    let begun = tokio::task::spawn_blocking(move || seal(file, &password));
    Ok(begun.await.map_err(Error::internal)??)
}

impl Place {
    /// Takes the next bytes. The first eight tell what they are.
    async fn take(self, bytes: &[u8], password: &str) -> Result<Self> {
        match self {
            Self::Unknown(file, mut head, expecting) => {
                head.extend_from_slice(bytes);
                if head.len() < 8 {
                    return Ok(Self::Unknown(file, head, expecting));
                }
                let file = BufWriter::new(file);
                let mut place = match (Sealed::begins(&head), expecting) {
                    (true, Expecting::Archive) => Self::Sealed(file),
                    (false, _) if head.starts_with(b"PK") => {
                        Self::Clear(Box::new(sealed(file, password).await?))
                    }
                    (false, Expecting::Export(name)) => {
                        let inner = sealed(file, password).await?;
                        Self::Wrapped(Box::new(Wrapped::new(inner, &name)?))
                    }
                    (true, Expecting::Export(_)) => {
                        let reason = "is under a password; an archive is restored, not imported";
                        return Err(Refusal::invalid("file", reason));
                    }
                    (false, Expecting::Archive) => {
                        return Err(Refusal::invalid("archive", "is not an archive"));
                    }
                };
                place.write(&head)?;
                Ok(place)
            }
            mut place @ (Self::Clear(_) | Self::Wrapped(_) | Self::Sealed(_)) => {
                place.write(bytes)?;
                Ok(place)
            }
        }
    }

    /// Notes what the sender calls a file.
    fn called(&mut self, given: &str) {
        if let Self::Unknown(_, _, Expecting::Export(name)) = self
            && !given.is_empty()
        {
            *name = plain_name(given);
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = match self {
            Self::Unknown(_, head, _) => head.write_all(bytes),
            Self::Clear(sealer) => sealer.write_all(bytes),
            Self::Wrapped(wrapped) => wrapped.write_all(bytes),
            Self::Sealed(file) => file.write_all(bytes),
        };
        Ok(written.map_err(Error::internal)?)
    }

    /// Says whether it was encrypted when it came.
    fn finish(self) -> Result<bool> {
        match self {
            Self::Unknown(..) => Err(Refusal::invalid("archive", "is missing")),
            Self::Clear(sealer) => {
                sealer.finish()?;
                Ok(false)
            }
            Self::Wrapped(wrapped) => {
                wrapped.finish()?.finish()?;
                Ok(false)
            }
            Self::Sealed(mut file) => {
                file.flush().map_err(Error::internal)?;
                Ok(true)
            }
        }
    }
}

/// The name of an uploaded file, made plain: only how it ends may matter to a reader.
pub(crate) fn plain_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = last.chars().take(80).map(kept).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "export.json".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere() {
        for (given, plain) in [
            ("conversations.json", "conversations.json"),
            ("../../etc/passwd", "passwd"),
            ("C:\\x\\..\\a b.json", "a_b.json"),
            ("..", "export.json"),
            ("", "export.json"),
        ] {
            assert_eq!(plain_name(given), plain, "{given}");
        }
    }
}
