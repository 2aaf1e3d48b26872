//! Keeping vaults: making, checking and destroying them.

use std::path::Path;
use std::sync::Arc;

use yore_canon::did::Did;
use yore_canon::hash::Blake3;
use yore_canon::key::VerifyingKey;
use yore_domain::grant::Verb;
use yore_domain::{Error as DomainError, Span, TenantId, Timestamp, VaultId};
use yore_policy::Permit;
use yore_store::keeper::{Health, Traces, VaultInfo};
use yore_store::key::{Key, MasterKey};
use yore_store::snapshot::Census;
use yore_store::{Answer, Keeper};

use crate::audit;
use crate::error::{Error, Result};
use crate::migrate::tables_of_vaults;
use crate::pool::{Begin, Conn};
use crate::store::{Inner, PostgresStore, furnish};
use crate::vault::Vault;

mod check;
mod traces;

/// How long an attachment may take to arrive.
const UNFINISHED: Span = Span::days(1);

const COLUMNS: &str = "vault, tenant, owner, did, created, wrapped";

/// A vault's line in the catalog.
pub(crate) struct Line {
    pub(crate) info: VaultInfo,
    pub(crate) wrapped: Vec<u8>,
}

fn line_of(row: &tokio_postgres::Row) -> Result<Line> {
    let id = |column: usize| -> Result<[u8; 16]> {
        let bytes: &[u8] = row.get(column);
        bytes.try_into().map_err(|_| Error::Damaged("an id has the wrong length".into()))
    };
    Ok(Line {
        info: VaultInfo {
            id: VaultId::from_bytes(id(0)?),
            tenant: TenantId::from_bytes(id(1)?),
            owner: row.get(2),
            did: row.get(3),
            created: Timestamp::from_micros(row.get(4)),
        },
        wrapped: row.get(5),
    })
}

/// Removes every row of the transaction's own vault. What the catalog has alone goes with the
/// catalog, but for the root keys.
pub(crate) async fn empty(conn: &Conn) -> Result<()> {
    for table in tables_of_vaults().chain(["tenant"]) {
        conn.run(&format!("DELETE FROM {table} WHERE vault = $1"), &[]).await?;
    }
    Ok(())
}

/// The line of the transaction's own vault.
pub(crate) async fn line(conn: &Conn) -> Result<Option<Line>> {
    let sql = format!("SELECT {COLUMNS} FROM line WHERE vault = $1");
    conn.row(&sql, &[]).await?.as_ref().map(line_of).transpose()
}

impl Inner {
    async fn find(&self, tenant: TenantId, owner: &str) -> Result<Option<VaultInfo>> {
        let conn = self.lookups.begin(VaultId::CATALOG, Begin::View).await?;
        let sql =
            format!("SELECT {COLUMNS} FROM line WHERE vault <> $1 AND tenant = $2 AND owner = $3");
        let tenant = tenant.bytes();
        let row = conn.row(&sql, &[&tenant.as_slice(), &owner]).await?;
        conn.roll_back().await?;
        Ok(row.as_ref().map(line_of).transpose()?.map(|line| line.info))
    }

    async fn create(&self, tenant: TenantId, owner: &str, now: Timestamp) -> Result<VaultInfo> {
        if let Some(known) = self.find(tenant, owner).await? {
            return Ok(known);
        }
        let (id, key, seed) = (VaultId::random(), Key::random(), Key::random());
        let vault = Vault::new(id, None, &key, &seed)?;
        let did = Did::of_key(&vault.signer.verifying_key()).as_str().to_owned();
        let wrapped = self.root.wrap(id, &key);
        let conn = self.writers.begin(id, Begin::Strict).await?;
        let of = tenant.bytes();
        let made = conn
            .run(
                "INSERT INTO line (vault, tenant, owner, did, created, wrapped)
                 VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant, owner) DO NOTHING",
                &[&of.as_slice(), &owner, &did, &now.micros(), &wrapped],
            )
            .await?;
        if made == 0 {
            // Another server was quicker.
            conn.roll_back().await?;
            let known = self.find(tenant, owner).await?;
            return known.ok_or(Error::Domain(DomainError::NotFound));
        }
        furnish(&conn, id, &key, &seed).await?;
        conn.commit().await?;
        Ok(VaultInfo { id, tenant, owner: owner.to_owned(), did, created: now })
    }

    async fn vaults(&self) -> Result<Vec<VaultInfo>> {
        let conn = self.lookups.begin(VaultId::CATALOG, Begin::View).await?;
        let sql = format!("SELECT {COLUMNS} FROM line WHERE vault <> $1 ORDER BY created, vault");
        let rows = conn.rows(&sql, &[]).await?;
        conn.roll_back().await?;
        rows.iter().map(|row| Ok(line_of(row)?.info)).collect()
    }

    async fn destroy(&self, id: VaultId) -> Result<()> {
        let conn = self.writers.begin(id, Begin::Strict).await?;
        let tail = conn.row("SELECT 1 FROM tail WHERE vault = $1 FOR UPDATE", &[]).await?;
        tail.ok_or(Error::Domain(DomainError::NotFound))?;
        empty(&conn).await?;
        conn.commit().await?;
        let conn = self.writers.begin(VaultId::CATALOG, Begin::Strict).await?;
        let gone = id.bytes();
        let sql = "DELETE FROM locate WHERE vault = $1 AND target = $2";
        conn.run(sql, &[&gone.as_slice()]).await?;
        conn.commit().await?;
        self.forget(id);
        Ok(())
    }

    /// Drops what is left of attachments that stopped growing, and of work that ended long ago.
    async fn tend(&self, id: VaultId, now: Timestamp) -> Result<bool> {
        let conn = self.writers.begin(id, Begin::Strict).await?;
        let before = now.minus(UNFINISHED).micros();
        let sql = "SELECT hash FROM blob WHERE vault = $1 AND size IS NULL AND grown < $2 LIMIT 1";
        let Some(row) = conn.row(sql, &[&before]).await? else {
            let sql = "DELETE FROM lease WHERE vault = $1 AND ends < now() - interval '1 day'";
            conn.run(sql, &[]).await?;
            conn.commit().await?;
            return Ok(false);
        };
        let hash: &[u8] = row.get(0);
        // Whoever adds a piece meanwhile holds the tail; then it has grown after all.
        conn.row("SELECT 1 FROM tail WHERE vault = $1 FOR UPDATE", &[]).await?;
        let sql = "DELETE FROM blob WHERE vault = $1 AND hash = $2 AND size IS NULL AND grown < $3";
        if conn.run(sql, &[&hash, &before]).await? > 0 {
            let sql = "DELETE FROM blob_chunk WHERE vault = $1 AND hash = $2";
            conn.run(sql, &[&hash]).await?;
        }
        conn.commit().await?;
        Ok(true)
    }

    async fn seal(&self, id: VaultId, now: Timestamp) -> Result<()> {
        let vault = self.vault(id).await?;
        let conn = self.writers.begin(id, Begin::Strict).await?;
        let sql = "SELECT seq, hash FROM tail WHERE vault = $1 FOR UPDATE";
        let tail = conn.row(sql, &[]).await?.ok_or(Error::Domain(DomainError::NotFound))?;
        let (seq, hash): (i64, Option<&[u8]>) = (tail.get(0), tail.get(1));
        let hash: Option<[u8; 32]> = hash.and_then(|hash| hash.try_into().ok());
        let covered = audit::newest(&conn, &vault).await?;
        let covered = covered.is_some_and(|newest| newest.seq.0 >= seq.cast_unsigned());
        if let Some(hash) = hash.filter(|_| !covered) {
            audit::seal(&conn, &vault, seq, Blake3::from_bytes(hash), now).await?;
        }
        conn.commit().await
    }
}

impl Keeper for PostgresStore {
    fn create<'a>(
        &'a self,
        permit: &'a Permit,
        tenant: TenantId,
        owner: &'a str,
        now: Timestamp,
    ) -> Answer<'a, VaultInfo> {
        Box::pin(async move {
            of_catalog(permit)?;
            Ok(self.inner.create(tenant, owner, now).await?)
        })
    }

    fn find<'a>(
        &'a self,
        permit: &'a Permit,
        tenant: TenantId,
        owner: &'a str,
    ) -> Answer<'a, Option<VaultInfo>> {
        Box::pin(async move {
            of_catalog(permit)?;
            Ok(self.inner.find(tenant, owner).await?)
        })
    }

    fn info<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Option<VaultInfo>> {
        Box::pin(async move {
            match self.inner.vault(permit.vault()).await {
                Ok(vault) => Ok(vault.info.clone()),
                Err(Error::Domain(DomainError::NotFound)) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn vaults<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Vec<VaultInfo>> {
        Box::pin(async move {
            of_catalog(permit)?;
            Ok(self.inner.vaults().await?)
        })
    }

    fn sign<'a>(&'a self, permit: &'a Permit, message: &'a [u8]) -> Answer<'a, [u8; 64]> {
        Box::pin(async move {
            let vault = self.inner.vault(permit.vault()).await?;
            Ok(*vault.signer.sign(message).as_bytes())
        })
    }

    fn key<'a>(&'a self, permit: &'a Permit) -> Answer<'a, VerifyingKey> {
        Box::pin(async move { Ok(self.inner.vault(permit.vault()).await?.signer.verifying_key()) })
    }

    fn destroy<'a>(&'a self, permit: &'a Permit) -> Answer<'a, ()> {
        Box::pin(async move {
            of_vault(permit)?;
            Ok(self.inner.destroy(permit.vault()).await?)
        })
    }

    fn backup<'a>(&'a self, permit: &'a Permit, _to: &'a Path) -> Answer<'a, u64> {
        Box::pin(async move {
            of_vault(permit)?;
            Err(elsewhere("copies of one vault: a database is copied as a whole"))
        })
    }

    fn restore<'a>(&'a self, permit: &'a Permit, _from: &'a Path) -> Answer<'a, ()> {
        Box::pin(async move {
            of_vault(permit)?;
            Err(elsewhere("copies of one vault: a database is restored as a whole"))
        })
    }

    fn survey<'a>(&'a self, permit: &'a Permit, _copy: &'a Path) -> Answer<'a, Census> {
        Box::pin(async move {
            of_vault(permit)?;
            Err(elsewhere("copies of one vault: a database is restored as a whole"))
        })
    }

    fn check<'a>(&'a self, permit: &'a Permit, repair: bool) -> Answer<'a, Health> {
        Box::pin(async move {
            admin(permit)?;
            Ok(check::check(&self.inner, permit.vault(), repair).await?)
        })
    }

    fn rotate<'a>(&'a self, permit: &'a Permit) -> Answer<'a, String> {
        Box::pin(async move {
            admin(permit)?;
            Err(elsewhere("new keys for vaults in PostgreSQL"))
        })
    }

    fn change_master<'a>(&'a self, permit: &'a Permit, _master: &'a MasterKey) -> Answer<'a, ()> {
        Box::pin(async move {
            admin(permit)?;
            Err(elsewhere("another master key for vaults in PostgreSQL"))
        })
    }

    fn seal_audit<'a>(&'a self, permit: &'a Permit, now: Timestamp) -> Answer<'a, ()> {
        Box::pin(async move {
            admin(permit)?;
            Ok(self.inner.seal(permit.vault(), now).await?)
        })
    }

    fn traces<'a>(&'a self, permit: &'a Permit, text: &'a str) -> Answer<'a, Traces> {
        Box::pin(async move {
            admin(permit)?;
            Ok(traces::search(&self.inner, permit.vault(), text).await?)
        })
    }

    fn tend<'a>(&'a self, permit: &'a Permit, now: Timestamp) -> Answer<'a, bool> {
        Box::pin(async move {
            admin(permit)?;
            Ok(self.inner.tend(permit.vault(), now).await?)
        })
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.inner.settle().await;
            for pool in [&self.inner.readers, &self.inner.writers, &self.inner.lookups] {
                pool.close();
            }
            Ok(())
        })
    }
}

fn elsewhere(what: &str) -> DomainError {
    DomainError::Unsupported { what: what.to_owned() }
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

/// A transaction in which nothing changes, for long work on a vault.
async fn view(inner: &Inner, id: VaultId) -> Result<(Conn, Arc<Vault>)> {
    let vault = inner.vault(id).await?;
    Ok((inner.readers.begin(id, Begin::View).await?, vault))
}
