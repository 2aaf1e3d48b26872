//! Where things lie: the platform's directories, and the layout of a data directory.

use std::path::{Path, PathBuf};

use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};

use crate::error::{Error, Result};

/// Returns the platform's directory for this program's configuration.
pub fn config() -> Result<PathBuf> {
    Ok(strategy()?.config_dir())
}

/// Returns the platform's directory for this program's data.
pub fn data() -> Result<PathBuf> {
    Ok(strategy()?.data_dir())
}

fn strategy() -> Result<impl AppStrategy> {
    let args = AppStrategyArgs {
        top_level_domain: "dev".into(),
        author: "yore".into(),
        app_name: "yore".into(),
    };
    choose_app_strategy(args).map_err(|error| Error::Config(error.to_string()))
}

/// The socket of a data directory.
#[must_use]
pub fn socket(data: &Path) -> PathBuf {
    data.join("run").join("yore.sock")
}

/// The lock of a data directory.
#[must_use]
pub fn lock(data: &Path) -> PathBuf {
    data.join("run").join("lock")
}

/// The lock that a server takes while it waits for commands to leave a data directory.
#[must_use]
pub fn wish(data: &Path) -> PathBuf {
    data.join("run").join("wish")
}

/// The note that says where the server of a data directory listens.
#[must_use]
pub fn note(data: &Path) -> PathBuf {
    data.join("run").join("server.json")
}

/// Where copies go that were asked for from afar.
#[must_use]
pub fn backups(data: &Path) -> PathBuf {
    data.join("backups")
}

/// Makes a directory that only its owner can enter.
pub(crate) fn make(path: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(Error::file(path))
}

/// Writes a file that only its owner can read, so that a crash leaves the old or the new one.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write as _;
    let fresh = path.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&fresh).map_err(Error::file(&fresh))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(Error::file(&fresh))?;
    drop(file);
    std::fs::rename(&fresh, path).map_err(Error::file(path))
}

/// Removes a file; one that is not there is fine.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::file(path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes a secret into a file that must not be there yet, readable by its owner alone.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(Error::file(path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(Error::file(path))
}
