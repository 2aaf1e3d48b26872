//! Moving vaults out of a database and into one, while no server uses it.
//!
//! Servers share a lock in the database for as long as they listen; a move holds it alone. A vault
//! is taken in by one transaction, which reads back what it wrote before it is kept, so a move that
//! breaks off leaves nothing of it. The source is read in transactions that change nothing.

mod read;
mod write;

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;
use yore_canon::did::Did;
use yore_domain::grant::Verb;
use yore_domain::{Error as DomainError, VaultId};
use yore_policy::Permit;
use yore_store::Answer;
use yore_store::transfer::{Intake, Line, Rows, Source, Standing, Target, Tip, stream};

use crate::error::{Error, Result};
use crate::keeper;
use crate::migrate;
use crate::pool::{Begin, Conn, Pool, Setup};
use crate::roots::Root;
use crate::store::{Options, found, refuse_powers};
use crate::vault::{Setting, Vault};
use write::PostgresIntake;

/// The lock that servers share and a move holds alone.
const LOCK: i64 = 0x796f_7265_6d76;
/// How often it is asked for while others end, by a move and by a server, and how long one waits
/// between.
const TRIES: usize = 50;
const SERVERS_TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);
/// The setting of the catalog that says from where a move into the database was begun.
const MARK: &str = "store:moving";
/// How many connections a move uses at most: one writes, others read.
const CONNECTIONS: usize = 4;

/// Shares the lock for as long as the connection lasts; false while vaults are being moved.
pub(crate) async fn shares(client: &Client) -> Result<bool> {
    taken(client, "SELECT pg_try_advisory_lock_shared($1)", SERVERS_TRIES).await
}

async fn taken(client: &Client, sql: &str, tries: usize) -> Result<bool> {
    for _ in 0..tries {
        if client.query_one(sql, &[&LOCK]).await?.get(0) {
            return Ok(true);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(false)
}

/// Holds the lock alone for as long as the connection lasts.
async fn alone(setup: &Setup) -> Result<Client> {
    let client = setup.connect().await?;
    if taken(&client, "SELECT pg_try_advisory_lock($1)", TRIES).await? {
        return Ok(client);
    }
    Err(Error::InUse("a server is connected to it"))
}

/// From where a move into the database was begun that is not finished.
pub(crate) async fn begun(conn: &Conn, catalog: &Vault) -> Result<Option<String>> {
    let name = catalog.mac("setting", &[MARK]);
    let sql = "SELECT data FROM setting WHERE vault = $1 AND name = $2";
    let Some(row) = conn.row(sql, &[&name]).await? else { return Ok(None) };
    let mark: Setting = catalog.open_value("setting", &name, row.get(0))?;
    Ok(mark.value.as_str().map(ToOwned::to_owned))
}

/// A database that is only read.
#[derive(Debug)]
pub struct PostgresSource {
    side: Side,
}

/// A database that vaults are moved into.
#[derive(Debug)]
pub struct PostgresTarget {
    side: Side,
}

#[derive(Debug)]
struct Side {
    pool: Arc<Pool>,
    root: Root,
    /// The connection that holds the lock.
    _alone: Client,
}

impl PostgresSource {
    /// Opens a database that holds vaults. Refuses while a server uses it.
    pub async fn open(options: &Options) -> Result<Self> {
        let setup = options.setup()?;
        let alone = alone(&setup).await?;
        let (found, known) = (migrate::reached(&alone).await?, migrate::known());
        if found > known {
            return Err(Error::Newer { found, known });
        }
        let none = || Error::Unfit("it holds no vaults".into());
        if found == 0 {
            return Err(none());
        }
        if found < known {
            return Err(Error::Unfit(format!(
                "its tables have schema {found}, this version wants {known}: start a server of \
                 this version on it once"
            )));
        }
        let pool = Pool::new(setup, CONNECTIONS);
        let conn = pool.begin(VaultId::CATALOG, Begin::View).await?;
        let root = Root::read(&conn, &options.master).await?.ok_or_else(none)?;
        let catalog = Vault::open(&conn, VaultId::CATALOG, None, &root.catalog()).await?;
        if begun(&conn, &catalog).await?.is_some() {
            return Err(Error::Half);
        }
        conn.roll_back().await?;
        Ok(Self { side: Side { pool, root, _alone: alone } })
    }
}

impl PostgresTarget {
    /// Opens a database and makes the tables where they are missing. Refuses while a server uses it.
    pub async fn open(options: &Options) -> Result<Self> {
        let setup = options.setup()?;
        let mut alone = alone(&setup).await?;
        migrate::migrate(&mut alone, &setup.role).await?;
        refuse_powers(&setup).await?;
        let pool = Pool::new(setup, CONNECTIONS);
        let conn = pool.begin(VaultId::CATALOG, Begin::Strict).await?;
        let (root, _) = found(&conn, options).await?;
        conn.commit().await?;
        Ok(Self { side: Side { pool, root, _alone: alone } })
    }
}

impl Side {
    /// A vault and a transaction that reads it.
    async fn vault(&self, id: VaultId) -> Result<(Conn, Vault)> {
        let conn = self.pool.begin(id, Begin::View).await?;
        patient(&conn).await?;
        let vault = if id == VaultId::CATALOG {
            Vault::open(&conn, id, None, &self.root.catalog()).await?
        } else {
            let line = keeper::line(&conn).await?.ok_or(Error::Domain(DomainError::NotFound))?;
            let key = self.root.unwrap(id, &line.wrapped)?;
            Vault::open(&conn, id, Some(line.info), &key).await?
        };
        Ok((conn, vault))
    }

    async fn name(&self) -> Result<String> {
        let (conn, catalog) = self.vault(VaultId::CATALOG).await?;
        conn.roll_back().await?;
        Ok(Did::of_key(&catalog.signer.verifying_key()).as_str().to_owned())
    }

    async fn lines(&self) -> Result<Vec<Line>> {
        let conn = self.pool.begin(VaultId::CATALOG, Begin::View).await?;
        let sql = "SELECT vault FROM line WHERE vault <> $1 ORDER BY created, vault";
        let rows = conn.rows(sql, &[]).await?;
        conn.roll_back().await?;
        let mut lines = Vec::new();
        for row in rows {
            let id: &[u8] = row.get(0);
            let id = id.try_into().map_err(|_| Error::Damaged("an id is cut short".into()))?;
            let (conn, vault) = self.vault(VaultId::from_bytes(id)).await?;
            let copy = conn.row("SELECT checkpoint FROM line WHERE vault = $1", &[]).await?;
            let copy = copy.and_then(|row| row.get::<_, Option<Vec<u8>>>(0));
            let checkpoint =
                copy.map(|copy| read::text(vault.open_bytes("line", &[], &copy)?)).transpose()?;
            conn.roll_back().await?;
            let info = vault.info.clone().ok_or(Error::Domain(DomainError::NotFound))?;
            lines.push(Line { info, checkpoint });
        }
        Ok(lines)
    }

    async fn tip(&self, id: VaultId) -> Result<Tip> {
        let conn = self.pool.begin(id, Begin::View).await?;
        let row = conn.row("SELECT seq, hash FROM tail WHERE vault = $1", &[]).await?;
        conn.roll_back().await?;
        let tip = row.map(|row| (row.get::<_, i64>(0), row.get::<_, Option<Vec<u8>>>(1)));
        Ok(tip.and_then(|(seq, hash)| Some((seq.cast_unsigned(), hash?))))
    }

    async fn standing(&self) -> Result<Standing> {
        let (conn, catalog) = self.vault(VaultId::CATALOG).await?;
        let standing = match begun(&conn, &catalog).await? {
            Some(origin) => Standing::Moving(origin),
            None => {
                let sql = "SELECT 1 FROM line WHERE vault <> $1
                    UNION ALL SELECT 1 FROM audit WHERE vault = $1 LIMIT 1";
                let used = conn.row(sql, &[]).await?.is_some();
                if used { Standing::Used } else { Standing::Empty }
            }
        };
        conn.roll_back().await?;
        Ok(standing)
    }

    async fn begin(&self, origin: &str) -> Result<()> {
        let conn = self.pool.begin(VaultId::CATALOG, Begin::Strict).await?;
        let catalog = Vault::open(&conn, VaultId::CATALOG, None, &self.root.catalog()).await?;
        let name = catalog.mac("setting", &[MARK]);
        let mark = Setting { name: MARK.into(), value: origin.into() };
        let data = catalog.seal("setting", &name, &mark)?;
        let sql = "INSERT INTO setting (vault, name, data) VALUES ($1, $2, $3)";
        conn.run(sql, &[&name, &data]).await?;
        conn.commit().await
    }

    async fn rows(&self, id: VaultId) -> Result<Rows> {
        let (conn, vault) = self.vault(id).await?;
        Ok(walked(Arc::new(conn), Arc::new(vault)))
    }
}

/// Lets long work take its time: what it reads and writes is no runaway statement.
async fn patient(conn: &Conn) -> Result<()> {
    conn.batch("SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0")
        .await
}

/// Reads all rows of a vault in a task of its own.
fn walked(conn: Arc<Conn>, vault: Arc<Vault>) -> Rows {
    let (mut out, rows) = stream();
    tokio::spawn(async move {
        let read = read::walk(&conn, &vault, &mut out).await;
        // The transaction is let go of before the end is told.
        drop(conn);
        out.end(read.map_err(Into::into)).await;
    });
    rows
}

fn admin(permit: &Permit) -> Result<(), DomainError> {
    if permit.allows(Verb::Admin) {
        return Ok(());
    }
    Err(DomainError::forbidden("moving a vault needs the verb 'admin'"))
}

macro_rules! source {
    ($type:ty) => {
        impl Source for $type {
            fn name<'a>(&'a self, permit: &'a Permit) -> Answer<'a, String> {
                Box::pin(async move {
                    admin(permit)?;
                    Ok(self.side.name().await?)
                })
            }

            fn lines<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Vec<Line>> {
                Box::pin(async move {
                    admin(permit)?;
                    Ok(self.side.lines().await?)
                })
            }

            fn tip<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Tip> {
                Box::pin(async move {
                    admin(permit)?;
                    Ok(self.side.tip(permit.vault()).await?)
                })
            }

            fn counts<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Vec<(&'static str, u64)>> {
                Box::pin(async move {
                    admin(permit)?;
                    let (conn, _) = self.side.vault(permit.vault()).await?;
                    Ok(read::counts(&conn).await?)
                })
            }

            fn rows<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Rows> {
                Box::pin(async move {
                    admin(permit)?;
                    Ok(self.side.rows(permit.vault()).await?)
                })
            }
        }
    };
}

source!(PostgresSource);
source!(PostgresTarget);

impl Target for PostgresTarget {
    fn standing<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Standing> {
        Box::pin(async move {
            admin(permit)?;
            Ok(self.side.standing().await?)
        })
    }

    fn begin<'a>(&'a self, permit: &'a Permit, origin: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            admin(permit)?;
            Ok(self.side.begin(origin).await?)
        })
    }

    fn intake<'a>(
        &'a self,
        permit: &'a Permit,
        line: Option<&'a Line>,
    ) -> Answer<'a, Box<dyn Intake + 'a>> {
        Box::pin(async move {
            admin(permit)?;
            let begun = PostgresIntake::begin(&self.side.pool, &self.side.root, line).await?;
            Ok(Box::new(begun) as Box<dyn Intake>)
        })
    }

    fn discard<'a>(&'a self, permit: &'a Permit) -> Answer<'a, ()> {
        Box::pin(async move {
            admin(permit)?;
            let conn = self.side.pool.begin(permit.vault(), Begin::Strict).await?;
            patient(&conn).await?;
            keeper::empty(&conn).await?;
            Ok(conn.commit().await?)
        })
    }
}
