//! Connections, and the transactions on them that say whose rows they want.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::future::maybe_done;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row, Statement};
use yore_canon::encode;
use yore_domain::VaultId;

use crate::error::{Error, Result};
use crate::tls::Connector;

/// Something to put into a statement.
pub(crate) type Param<'a> = &'a (dyn ToSql + Sync);

/// The same for a statement that is sent later.
pub(crate) type Owned = Box<dyn ToSql + Sync + Send>;

/// Puts values into a statement that is sent later.
macro_rules! owned {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as $crate::pool::Owned),*]
    };
}

pub(crate) use owned;

/// How many changes travel together at most.
const FLIGHT: usize = 64;

/// A change that waits to be sent.
struct Queued {
    statement: Statement,
    params: Vec<Owned>,
    /// What a second row with the same key is to the caller.
    taken: Option<&'static str>,
}

/// How a connection is set up.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) connector: Connector,
    /// Whom the server acts as.
    pub(crate) role: String,
    /// The longest a statement may take.
    pub(crate) statement: Duration,
    /// The longest a statement waits for a lock.
    pub(crate) lock: Duration,
    /// The longest a view may lie idle.
    pub(crate) idle: Duration,
    /// The longest anyone waits for a connection.
    pub(crate) patience: Duration,
}

impl Setup {
    /// Connects as the address says.
    pub(crate) async fn connect(&self) -> Result<Client> {
        let (client, connection) = self.config.connect(self.connector.clone()).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the database ended");
            }
        });
        Ok(client)
    }

    /// Connects and steps down to the role that sees only what it says it wants.
    pub(crate) async fn connect_lesser(&self) -> Result<Client> {
        let client = self.connect().await?;
        let millis = |time: Duration| time.as_millis();
        client
            .batch_execute(&format!(
                "SET ROLE {};
                 SET search_path = yore, public;
                 SET statement_timeout = {};
                 SET lock_timeout = {};
                 SET idle_in_transaction_session_timeout = {};
                 SET client_min_messages = warning",
                self.role,
                millis(self.statement),
                millis(self.lock),
                millis(self.idle),
            ))
            .await?;
        // The index keeps so many in view while it looks for the nearest: its own 40 miss one in
        // eight of vectors that have little in common. The library must be loaded to know it.
        client.batch_execute("SELECT '[1]'::halfvec; SET hnsw.ef_search = 200").await?;
        // Known from pgvector 0.8 on; without it an index may return too few, which is noticed
        // and made up for.
        let iterative = "SET hnsw.iterative_scan = strict_order";
        if let Err(error) = client.batch_execute(iterative).await {
            tracing::debug!(%error, "the index cannot be read on and on");
        }
        Ok(client)
    }
}

/// Connections that are used again.
pub(crate) struct Pool {
    setup: Setup,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Link>>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("free", &self.permits.available_permits()).finish()
    }
}

/// A connection and the statements it knows.
struct Link {
    client: Client,
    statements: Mutex<HashMap<String, Statement>>,
}

impl Pool {
    pub(crate) fn new(setup: Setup, most: usize) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(most.max(1)));
        Arc::new(Self { setup, permits, idle: Mutex::default() })
    }

    /// Begins a transaction that sees the rows of one vault.
    pub(crate) async fn begin(self: &Arc<Self>, vault: VaultId, how: Begin) -> Result<Conn> {
        let waiting = Arc::clone(&self.permits).acquire_owned();
        let permit = tokio::time::timeout(self.setup.patience, waiting)
            .await
            .map_err(|_| Error::Crowded)?
            .map_err(|_| Error::Crowded)?;
        loop {
            let idle = self.idle.lock().pop();
            let fresh = idle.is_none();
            let link = match idle {
                Some(link) if link.client.is_closed() => continue,
                Some(link) => link,
                None => {
                    let client = self.setup.connect_lesser().await?;
                    Link { client, statements: Mutex::default() }
                }
            };
            let begun = link.client.batch_execute(&how.sql(vault)).await;
            match begun {
                Ok(()) => {
                    let pool = Arc::clone(self);
                    return Ok(Conn {
                        vault: vault.bytes(),
                        link: Some(link),
                        pool,
                        permit: Some(permit),
                        queued: Mutex::default(),
                    });
                }
                // The database may have closed what lay idle.
                Err(_) if !fresh && link.client.is_closed() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes no more work and closes what lies idle.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.idle.lock().clear();
    }
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// A view that stays as it is.
    View,
    /// A commit that waits for the disk.
    Strict,
    /// A commit that does not.
    Relaxed,
}

impl Begin {
    fn sql(self, vault: VaultId) -> String {
        let begin = match self {
            Self::View => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Self::Strict => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            Self::Relaxed => {
                "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit = off"
            }
        };
        format!("{begin}; SET LOCAL yore.vault = '{}'", encode::hex(&vault.bytes()))
    }
}

/// A connection inside a transaction of one vault. Dropped without an end, it is rolled back.
pub(crate) struct Conn {
    vault: [u8; 16],
    link: Option<Link>,
    pool: Arc<Pool>,
    permit: Option<OwnedSemaphorePermit>,
    /// Changes whose answers nobody waits for, sent ahead of the next statement.
    queued: Mutex<Vec<Queued>>,
}

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conn").finish_non_exhaustive()
    }
}

impl Conn {
    fn link(&self) -> &Link {
        self.link.as_ref().expect("invariant: a connection is there until its transaction ends")
    }

    async fn prepared(&self, sql: &str) -> Result<Statement> {
        let link = self.link();
        if let Some(known) = link.statements.lock().get(sql) {
            return Ok(known.clone());
        }
        let statement = link.client.prepare(sql).await?;
        link.statements.lock().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Reads rows. The first parameter of every statement is the vault.
    pub(crate) async fn rows(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let statement = self.prepared(sql).await?;
        let vault = self.vault.as_slice();
        let mut all: Vec<Param<'_>> = vec![&vault];
        all.extend_from_slice(params);
        self.together(self.link().client.query(&statement, &all)).await
    }

    /// Reads at most one row.
    pub(crate) async fn row(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>> {
        Ok(self.rows(sql, params).await?.pop())
    }

    /// Changes rows and says how many.
    pub(crate) async fn run(&self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        let statement = self.prepared(sql).await?;
        let vault = self.vault.as_slice();
        let mut all: Vec<Param<'_>> = vec![&vault];
        all.extend_from_slice(params);
        self.together(self.link().client.execute(&statement, &all)).await
    }

    /// Changes rows whenever the next statement is sent, and fails with that one. `taken` says what
    /// a second row with the same key is to the caller.
    pub(crate) async fn later(
        &self,
        sql: &str,
        params: Vec<Owned>,
        taken: Option<&'static str>,
    ) -> Result<()> {
        let statement = self.prepared(sql).await?;
        let mut all: Vec<Owned> = vec![Box::new(self.vault.to_vec())];
        all.extend(params);
        let waiting = {
            let mut queued = self.queued.lock();
            queued.push(Queued { statement, params: all, taken });
            queued.len()
        };
        if waiting < FLIGHT {
            return Ok(());
        }
        self.together(std::future::ready(Ok(()))).await
    }

    /// Sends what waits and then a statement, without a pause between them, and hears of all. A
    /// connection answers in the order in which it was asked, so the first failure is the cause
    /// of the others.
    async fn together<T>(
        &self,
        last: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        let queued = std::mem::take(&mut *self.queued.lock());
        if queued.is_empty() {
            return Ok(last.await?);
        }
        let client = &self.link().client;
        let mut flight: Vec<_> = queued
            .iter()
            .map(|one| {
                let params: Vec<Param<'_>> =
                    one.params.iter().map(|param| &**param as Param<'_>).collect();
                Box::pin(maybe_done(async move { client.execute(&one.statement, &params).await }))
            })
            .collect();
        let mut last = std::pin::pin!(maybe_done(last));
        // A request is sent when it is first looked at: all are, in order, before any is waited for.
        poll_fn(|context| {
            let mut pending = false;
            for one in &mut flight {
                pending |= one.as_mut().poll(context).is_pending();
            }
            pending |= last.as_mut().poll(context).is_pending();
            if pending { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        for (mut one, sent) in flight.into_iter().zip(&queued) {
            let done = one.as_mut().take_output().expect("invariant: all are done");
            done.map_err(|error| Error::from(error).or_taken(sent.taken))?;
        }
        Ok(last.as_mut().take_output().expect("invariant: all are done")?)
    }

    /// The vault as a statement spells it that cannot take parameters.
    pub(crate) fn literal(&self) -> String {
        format!(r"'\x{}'::bytea", encode::hex(&self.vault))
    }

    /// Reads rows with a statement that is used once.
    pub(crate) async fn fetch(&self, sql: &str) -> Result<Vec<Row>> {
        self.together(self.link().client.query(sql, &[])).await
    }

    /// Runs statements that take no parameters.
    pub(crate) async fn batch(&self, sql: &str) -> Result<()> {
        self.together(self.link().client.batch_execute(sql)).await
    }

    /// Makes the changes stay.
    pub(crate) async fn commit(mut self) -> Result<()> {
        self.end("COMMIT").await
    }

    /// Undoes the changes.
    pub(crate) async fn roll_back(mut self) -> Result<()> {
        // What was not sent need not be undone.
        self.queued.lock().clear();
        self.end("ROLLBACK").await
    }

    async fn end(&mut self, sql: &str) -> Result<()> {
        self.batch(sql).await?;
        // Only a connection whose transaction ended as told is used again.
        self.pool.idle.lock().extend(self.link.take());
        Ok(())
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else { return };
        let (pool, permit) = (Arc::clone(&self.pool), self.permit.take());
        // Without a runtime the connection is closed, which rolls back, too.
        if let Ok(handle) = Handle::try_current() {
            handle.spawn(async move {
                if link.client.batch_execute("ROLLBACK").await.is_ok() {
                    pool.idle.lock().push(link);
                }
                // Whoever waits gets a connection that is there again, not one more.
                drop(permit);
            });
        }
    }
}
