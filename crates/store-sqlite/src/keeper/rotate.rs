//! New keys for a vault or for the whole directory. A crash at any point leaves every file
//! under a key that is still written down.

use rusqlite::Connection;
use yore_domain::VaultId;

use crate::catalog;
use crate::error::{Error, Result};
use crate::key::root::{self, Roots};
use crate::key::{self, Key};
use crate::open::{self, Role};
use crate::store::Inner;
use crate::vault::Vault;
use crate::writer::Desk;

/// Gives a vault a new key.
pub(crate) fn vault(inner: &Inner, id: VaultId) -> Result<String> {
    let vault = inner.open_vault(id)?;
    let (old, new) = (vault.key(), Key::random());
    let both = {
        let roots = inner.roots.lock();
        [roots.wrap(&id.bytes(), &old), roots.wrap(&id.bytes(), &new)].concat()
    };
    inner
        .catalog()?
        .writer
        .ask_blocking(move |desk| catalog::set_wrapped(&desk.conn, id, &both))?;
    let outcome = vault.rekey(&new);
    inner.settle(id, &vault.key())?;
    outcome?;
    Ok(format!("vault {id} has a new key"))
}

/// Makes a new root key, wraps every vault's key under it and puts the catalog under it.
pub(crate) fn roots(inner: &Inner) -> Result<String> {
    let _making = inner.making.lock();
    let catalog = inner.catalog()?;
    let mut roots = inner.roots.lock();
    roots.begin_rotation()?;
    let vaults = finish(&mut roots, &catalog)?;
    Ok(format!("the catalog and {vaults} vaults are under a new root key"))
}

/// Finishes a rotation of the root, wherever it was left; without one it does nothing.
pub(crate) fn finish(roots: &mut Roots, catalog: &Vault) -> Result<usize> {
    if roots.all().len() == 1 {
        return Ok(0);
    }
    let known = roots.clone();
    let vaults = catalog.writer.ask_blocking(move |desk| wrap_anew(&mut desk.conn, &known))?;
    let key = root::catalog(roots.newest());
    if catalog.key() != key {
        catalog.rekey(&key)?;
    }
    roots.finish_rotation()?;
    Ok(vaults)
}

fn wrap_anew(conn: &mut Connection, roots: &Roots) -> Result<usize> {
    let tx = conn.transaction()?;
    let lines = catalog::all(&tx)?;
    for line in &lines {
        let id = line.info.id;
        let mut wrapped = Vec::new();
        for old in key::wraps(&line.wrapped)? {
            let key = roots.unwrap(&id.bytes(), old).ok_or(Error::WrongKey)?;
            wrapped.extend(roots.wrap(&id.bytes(), &key));
        }
        catalog::set_wrapped(&tx, id, &wrapped)?;
    }
    tx.commit()?;
    Ok(lines.len())
}

impl Desk {
    /// Encrypts the file anew and returns the key that fits from now on.
    pub(crate) fn rekey(&mut self, key: Key) -> Result<Key> {
        // Without the WAL the change is one rollback journal: all pages or none.
        let rekeyed = open::truncate_wal(&self.conn)
            .and_then(|emptied| if emptied { Ok(()) } else { Err(Error::Stopped) })
            .and_then(|()| journal(&self.conn, "DELETE"))
            .and_then(|()| {
                Ok(self.conn.pragma_update(None, "rekey", key::pragma(&key).as_str())?)
            });
        // The connection's idea of the key is not trusted: the file itself is asked.
        self.conn = Connection::open_in_memory()?;
        match open::connect(&self.files.db, &key, Role::Writer, self.tuning) {
            Ok(conn) => {
                self.conn = conn;
                self.key = key;
            }
            Err(refused) => {
                self.conn = open::connect(&self.files.db, &self.key, Role::Writer, self.tuning)?;
                rekeyed?;
                return Err(refused);
            }
        }
        self.save_indexes();
        Ok(self.key.clone())
    }
}

fn journal(conn: &Connection, mode: &str) -> Result<()> {
    let now: String = conn.pragma_update_and_check(None, "journal_mode", mode, |row| row.get(0))?;
    if now.eq_ignore_ascii_case(mode) {
        return Ok(());
    }
    Err(Error::Damaged(format!("the journal stays {now}")))
}

#[cfg(test)]
mod tests;
