//! Files that appear whole or not at all.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::NamedTempFile;

use crate::failure::{Failure, Result};

/// Where an export goes: standard output, or a file that appears when it is complete.
#[derive(Debug)]
pub(crate) struct Sink {
    to: To,
    rows: u64,
}

#[derive(Debug)]
enum To {
    Output,
    File { path: PathBuf, part: BufWriter<NamedTempFile> },
}

impl Sink {
    /// Opens it; a file is made beside its final place, readable by its owner alone.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self> {
        let to = match path {
            Some(path) if path != Path::new("-") => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let part = NamedTempFile::new_in(parent.unwrap_or(Path::new(".")))
                    .map_err(Failure::file(path.display()))?;
                To::File { path: path.to_owned(), part: BufWriter::new(part) }
            }
            _ => To::Output,
        };
        Ok(Self { to, rows: 0 })
    }

    /// Writes one value on one line.
    pub(crate) fn row(&mut self, value: &impl Serialize) -> Result {
        self.rows += 1;
        let text =
            serde_json::to_string(value).map_err(|error| Failure::failed(error.to_string()))?;
        match &mut self.to {
            To::Output => crate::output::raw(&text),
            To::File { path, part } => {
                writeln!(part, "{text}").map_err(Failure::file(path.display()))
            }
        }
    }

    /// Writes a piece of text as it is.
    pub(crate) fn piece(&mut self, text: &str) -> Result {
        match &mut self.to {
            To::Output => crate::output::plain(text),
            To::File { path, part } => {
                part.write_all(text.as_bytes()).map_err(Failure::file(path.display()))
            }
        }
    }

    /// Makes the file appear. Returns how many rows it has and where it is.
    pub(crate) fn close(self) -> Result<(u64, String)> {
        let rows = self.rows;
        let To::File { path, part } = self.to else {
            return Ok((rows, "standard output".to_owned()));
        };
        let place = path.display().to_string();
        let part = part.into_inner().map_err(|error| Failure::file(&place)(error.into_error()))?;
        part.as_file().sync_all().map_err(Failure::file(&place))?;
        part.persist(&path).map_err(|error| Failure::file(&place)(error.error))?;
        Ok((rows, place))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.to {
            To::Output => std::io::stdout().lock().write(bytes),
            To::File { part, .. } => part.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.to {
            To::Output => std::io::stdout().lock().flush(),
            To::File { part, .. } => part.flush(),
        }
    }
}

/// A file without a name beside another: it is gone when the command ends, however it ends.
pub(crate) fn nameless(beside: &Path) -> Result<std::fs::File> {
    let parent = beside.parent().filter(|parent| !parent.as_os_str().is_empty());
    tempfile::tempfile_in(parent.unwrap_or(Path::new("."))).map_err(Failure::file(beside.display()))
}

/// Writes a file that appears whole, in place of one that may be there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let failed = || Failure::file(path.display());
    let mut part = NamedTempFile::new_in(parent.unwrap_or(Path::new("."))).map_err(failed())?;
    part.write_all(bytes).map_err(failed())?;
    part.as_file().sync_all().map_err(failed())?;
    part.persist(path).map_err(|error| failed()(error.error))?;
    Ok(())
}

/// Makes a directory, or takes one that is empty.
pub(crate) fn empty_directory(path: &Path) -> Result {
    let failed = || Failure::file(path.display());
    std::fs::create_dir_all(path).map_err(failed())?;
    if std::fs::read_dir(path).map_err(failed())?.next().is_some() {
        let taken = format!("{} is not empty", path.display());
        return Err(Failure::new(crate::failure::Exit::Conflict, taken)
            .hint("name a directory that is empty or not there; yore sync keeps one in step"));
    }
    Ok(())
}
