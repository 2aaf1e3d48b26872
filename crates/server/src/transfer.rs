//! Opening two stores at once, to move vaults from one to the other while no server uses either.

use std::fmt;
use std::path::{Path, PathBuf};

use yore_engine::Secret;
use yore_engine::transfer::{Source, Target};
use yore_store_postgres::{PostgresSource, PostgresTarget};
use yore_store_sqlite::{Error as StoreError, MasterKey, SqliteSource, SqliteTarget};

use crate::claim::Claim;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::host::blocking;
use crate::key::KeySource;
use crate::place;

/// Where vaults lie, as it is named on a command line.
#[derive(Clone, Debug)]
pub enum Vaults {
    /// In a data directory.
    Directory(PathBuf),
    /// In a database.
    Database(Secret),
}

impl Vaults {
    /// Reads a path or the address of a PostgreSQL.
    #[must_use]
    pub fn named(text: &str) -> Self {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            Self::Database(Secret::new(text))
        } else {
            Self::Directory(PathBuf::from(text))
        }
    }

    /// The directory, when it is one.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) => Some(path),
            Self::Database(_) => None,
        }
    }
}

impl fmt::Display for Vaults {
    /// The address of a database may hold a password: only what follows it is said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "{}", path.display()),
            Self::Database(address) => {
                let rest = address.expose().rsplit_once('@').map_or_else(
                    || address.expose().split_once("://").map_or("", |(_, rest)| rest),
                    |(_, rest)| rest,
                );
                let place = rest.split_once('?').map_or(rest, |(place, _)| place);
                write!(f, "postgres://{place}")
            }
        }
    }
}

/// A store, and the claim on its directory: no server begins on it meanwhile.
#[derive(Debug)]
pub struct Opened<S: ?Sized> {
    /// The store.
    pub store: Box<S>,
    _claim: Option<Claim>,
}

/// Opens a store to read it.
pub async fn source(config: &Config, vaults: &Vaults) -> Result<Opened<dyn Source>> {
    let master = master(config, vaults).await?;
    match vaults {
        Vaults::Database(address) => {
            let options = yore_store_postgres::Options::new(address.expose(), master);
            let store = Box::pin(PostgresSource::open(&options)).await?;
            Ok(Opened { store: Box::new(store), _claim: None })
        }
        Vaults::Directory(path) => {
            let data = path.clone();
            blocking(move || {
                // Nothing is made where nothing is.
                if !data.join("catalog.db").exists() {
                    return Err(StoreError::Foreign { path: data.join("catalog.db") }.into());
                }
                let claim = Claim::take(&data)?;
                let options = yore_store_sqlite::Options::new(&data, master);
                let store = SqliteSource::open(&options).map_err(|error| named(error, &data))?;
                Ok(Opened { store: Box::new(store) as Box<dyn Source>, _claim: Some(claim) })
            })
            .await
        }
    }
}

/// Opens a store that vaults are moved into, or makes it.
pub async fn target(config: &Config, vaults: &Vaults) -> Result<Opened<dyn Target>> {
    let master = master(config, vaults).await?;
    match vaults {
        Vaults::Database(address) => {
            let options = yore_store_postgres::Options::new(address.expose(), master);
            let store = Box::pin(PostgresTarget::open(&options)).await?;
            Ok(Opened { store: Box::new(store), _claim: None })
        }
        Vaults::Directory(path) => {
            let data = path.clone();
            let statics = yore_embed::Embedder::id(&*yore_embed::builtin().statics);
            let statics = statics.as_str().to_owned();
            blocking(move || {
                let claim = Claim::take(&data)?;
                let options = yore_store_sqlite::Options::new(&data, master);
                let store =
                    SqliteTarget::open(options, statics).map_err(|error| named(error, &data))?;
                Ok(Opened { store: Box::new(store) as Box<dyn Target>, _claim: Some(claim) })
            })
            .await
        }
    }
}

/// Both sides are under the same master key, and none is made: there is a vault already.
async fn master(config: &Config, vaults: &Vaults) -> Result<MasterKey> {
    let (source, data) = (config.key.clone(), vaults.directory().map(Path::to_owned));
    blocking(move || {
        if matches!(source, KeySource::Default) {
            let path = place::config()?.join("master.key");
            if !path.exists() {
                return Err(Error::Key(format!("{} is not there", path.display())));
            }
            return Ok(MasterKey::File(path));
        }
        Ok(source.obtain(data.as_deref().unwrap_or(Path::new("")))?.master)
    })
    .await
}

fn named(error: StoreError, data: &Path) -> Error {
    if let StoreError::InUse(pid) = error {
        return Error::InUse { data: data.to_owned(), pid };
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart_and_passwords_are_not_said() {
        for (text, said) in [
            ("/var/lib/yore", "/var/lib/yore"),
            (
                "postgres://yore:sesame@db.example/yore?sslmode=disable",
                "postgres://db.example/yore",
            ),
            ("postgresql://localhost/yore", "postgres://localhost/yore"),
        ] {
            assert_eq!(Vaults::named(text).to_string(), said);
        }
        assert!(Vaults::named("mysql://x").directory().is_some(), "it is taken for a path");
    }
}
