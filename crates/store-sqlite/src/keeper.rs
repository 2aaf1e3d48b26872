//! Keeping vaults: making, copying, checking, re-keying and destroying them.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod rotate;
pub(crate) mod traces;

use std::path::Path;
use std::sync::Arc;

use yore_canon::did::Did;
use yore_canon::key::VerifyingKey;
use yore_domain::grant::Verb;
use yore_domain::{Error as DomainError, TenantId, Timestamp, VaultId};
use yore_policy::Permit;
use yore_store::keeper::{Health, Traces, VaultInfo};
use yore_store::key::MasterKey;
use yore_store::snapshot::Census;
use yore_store::{Answer, Keeper};

use crate::catalog::{self, Line};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::store::{Inner, SqliteStore, blocking};
use crate::{audit, open};

impl SqliteStore {
    /// Runs blocking work on the store for an answer of the keeper.
    fn keep<'a, T: Send + 'static>(
        &self,
        allowed: Result<(), DomainError>,
        work: impl FnOnce(&Inner) -> Result<T> + Send + 'static,
    ) -> Answer<'a, T> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            allowed?;
            Ok(blocking(move || work(&inner)).await?)
        })
    }
}

impl Keeper for SqliteStore {
    fn create<'a>(
        &'a self,
        permit: &'a Permit,
        tenant: TenantId,
        owner: &'a str,
        now: Timestamp,
    ) -> Answer<'a, VaultInfo> {
        let owner = owner.to_owned();
        self.keep(of_catalog(permit), move |inner| inner.create(tenant, &owner, now))
    }

    fn find<'a>(
        &'a self,
        permit: &'a Permit,
        tenant: TenantId,
        owner: &'a str,
    ) -> Answer<'a, Option<VaultInfo>> {
        let owner = owner.to_owned();
        self.keep(of_catalog(permit), move |inner| {
            let reader = inner.catalog()?.reader()?;
            Ok(catalog::find(&reader, tenant, &owner)?.map(|line| line.info))
        })
    }

    fn info<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Option<VaultInfo>> {
        let id = permit.vault();
        if let Some(info) = self.inner.recent(id).and_then(|vault| vault.info.clone()) {
            return Box::pin(async { Ok(Some(info)) });
        }
        self.keep(Ok(()), move |inner| {
            let reader = inner.catalog()?.reader()?;
            Ok(catalog::get(&reader, id)?.map(|line| line.info))
        })
    }

    fn vaults<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Vec<VaultInfo>> {
        self.keep(of_catalog(permit), |inner| {
            let reader = inner.catalog()?.reader()?;
            Ok(catalog::all(&reader)?.into_iter().map(|line| line.info).collect())
        })
    }

    fn sign<'a>(&'a self, permit: &'a Permit, message: &'a [u8]) -> Answer<'a, [u8; 64]> {
        Box::pin(async move {
            let vault = self.vault(permit.vault()).await?;
            Ok(*vault.signer.sign(message).as_bytes())
        })
    }

    fn key<'a>(&'a self, permit: &'a Permit) -> Answer<'a, VerifyingKey> {
        Box::pin(async move { Ok(self.vault(permit.vault()).await?.signer.verifying_key()) })
    }

    fn destroy<'a>(&'a self, permit: &'a Permit) -> Answer<'a, ()> {
        let id = permit.vault();
        self.keep(of_vault(permit), move |inner| inner.destroy(id))
    }

    fn backup<'a>(&'a self, permit: &'a Permit, to: &'a Path) -> Answer<'a, u64> {
        let (id, to) = (permit.vault(), to.to_owned());
        self.keep(of_vault(permit), move |inner| backup::write(inner, id, &to))
    }

    fn restore<'a>(&'a self, permit: &'a Permit, from: &'a Path) -> Answer<'a, ()> {
        let (id, from) = (permit.vault(), from.to_owned());
        self.keep(of_vault(permit), move |inner| backup::restore(inner, id, &from))
    }

    fn survey<'a>(&'a self, permit: &'a Permit, copy: &'a Path) -> Answer<'a, Census> {
        let (id, copy) = (permit.vault(), copy.to_owned());
        self.keep(of_vault(permit), move |inner| backup::survey(inner, id, &copy))
    }

    fn check<'a>(&'a self, permit: &'a Permit, repair: bool) -> Answer<'a, Health> {
        let id = permit.vault();
        self.keep(admin(permit), move |inner| check::check(inner, id, repair))
    }

    fn rotate<'a>(&'a self, permit: &'a Permit) -> Answer<'a, String> {
        let id = permit.vault();
        self.keep(admin(permit), move |inner| match id {
            VaultId::CATALOG => rotate::roots(inner),
            id => rotate::vault(inner, id),
        })
    }

    fn change_master<'a>(&'a self, permit: &'a Permit, master: &'a MasterKey) -> Answer<'a, ()> {
        let master = master.clone();
        self.keep(of_catalog(permit), move |inner| {
            let options = &inner.options;
            inner.roots.lock().rewrap(&options.data, &master, options.cost)
        })
    }

    fn seal_audit<'a>(&'a self, permit: &'a Permit, now: Timestamp) -> Answer<'a, ()> {
        Box::pin(async move {
            admin(permit)?;
            let vault = self.vault(permit.vault()).await?;
            let sealed = vault.writer.ask(move |desk| {
                if let Some(checkpoint) = audit::seal(desk, Some(now))? {
                    desk.notify(checkpoint);
                }
                Ok(())
            });
            Ok(sealed.await?)
        })
    }

    fn traces<'a>(&'a self, permit: &'a Permit, text: &'a str) -> Answer<'a, Traces> {
        let (id, text) = (permit.vault(), text.to_owned());
        self.keep(admin(permit), move |inner| traces::search(inner, id, &text))
    }

    fn traces_in<'a>(
        &'a self,
        permit: &'a Permit,
        copy: &'a Path,
        text: &'a str,
    ) -> Answer<'a, Traces> {
        let (id, copy, text) = (permit.vault(), copy.to_owned(), text.to_owned());
        self.keep(admin(permit), move |inner| {
            let (key, mut database) = backup::opened(inner, id, &copy)?;
            traces::in_copy(&key, &mut database, &copy, &text)
        })
    }

    fn close(&self) -> Answer<'_, ()> {
        self.keep(Ok(()), Inner::close)
    }
}

impl Inner {
    fn create(&self, tenant: TenantId, owner: &str, now: Timestamp) -> Result<VaultInfo> {
        let _making = self.making.lock();
        let catalog = self.catalog()?;
        if let Some(line) = catalog::find(&*catalog.reader()?, tenant, owner)? {
            return Ok(line.info);
        }
        // File first, catalog second: a crash between the two leaves a file nobody can open,
        // never a line without its file.
        let (id, key) = (VaultId::random(), Key::random());
        let vault = self.start(id, None, key.clone())?;
        let did = Did::of_key(&vault.signer.verifying_key()).as_str().to_owned();
        let gate = Arc::clone(&vault.gate);
        drop(vault);
        gate.wait();
        let info = VaultInfo { id, tenant, owner: owner.to_owned(), did, created: now };
        let wrapped = self.roots.lock().wrap(&id.bytes(), &key);
        let line = Line { info: info.clone(), wrapped, checkpoint: None };
        catalog.writer.ask_blocking(move |desk| catalog::insert(&desk.conn, &line))?;
        Ok(info)
    }

    fn destroy(&self, id: VaultId) -> Result<()> {
        let files = self.files(id);
        let catalog = self.catalog()?;
        self.line(id)?;
        self.alone(id, || {
            // The key goes first: without it the file is noise, whatever happens next.
            catalog.writer.ask_blocking(move |desk| {
                let tx = desk.conn.transaction()?;
                catalog::remove(&tx, id)?;
                tx.commit()?;
                desk.truncation_due = true;
                Ok(())
            })?;
            for path in files.all() {
                open::remove(&path)?;
            }
            open::sync_parent(&files.db)
        })
    }
}

fn admin(permit: &Permit) -> Result<(), DomainError> {
    if permit.allows(Verb::Admin) {
        return Ok(());
    }
    Err(DomainError::forbidden("keeping a vault needs the verb 'admin'"))
}

fn of_catalog(permit: &Permit) -> Result<(), DomainError> {
    if permit.vault() == VaultId::CATALOG {
        return Ok(());
    }
    Err(DomainError::forbidden("the catalog is not this vault's to ask"))
}

fn of_vault(permit: &Permit) -> Result<(), DomainError> {
    admin(permit)?;
    if permit.vault() != VaultId::CATALOG {
        return Ok(());
    }
    Err(DomainError::Unsupported { what: "the catalog is not a vault of its own".into() })
}

/// Says which step of long work failed.
pub(crate) fn damaged(what: impl Into<String>) -> Error {
    Error::Damaged(what.into())
}
