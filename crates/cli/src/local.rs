//! The vault of a data directory on this machine: its server if one runs, else this process.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use indicatif::ProgressBar;
use yore_client::Client;
use yore_server::{Attached, Config, Error, KeySource, Near, attach, place};
use yore_store_postgres::Error as DatabaseError;
use yore_store_sqlite::Error as StoreError;

use crate::failure::{Exit, FULL, Failure, Result};
use crate::output::Output;
use crate::progress;

/// How long a command that became the server waits for others before it ends.
const LINGER_MILLIS: u64 = 100;
/// The same for a command that goes on: the vault stays open between its requests.
const STAY_MILLIS: u64 = 2_000;
/// What takes longer than this is explained.
const NOTICEABLE: Duration = Duration::from_millis(1500);

const HALF: &str = "run the same yore migrate-store again; it goes on where it was";
const UNWRITABLE: &str = "make the directory writable for this user, or use another --data";

/// How long a command that became the server stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// Until it is done.
    Short,
    /// Until whoever started it ends it.
    Long,
}

/// The vault of a data directory.
#[derive(Debug)]
pub(crate) struct Local {
    config: Config,
    out: Output,
    attached: Option<Attached>,
}

impl Local {
    /// Names the directory; nothing is opened yet.
    pub(crate) fn new(mut config: Config, out: Output, stay: Stay) -> Self {
        config.limits.idle_millis = match stay {
            Stay::Short => config.limits.idle_millis.min(LINGER_MILLIS),
            Stay::Long => STAY_MILLIS,
        };
        Self { config, out, attached: None }
    }

    /// Connects to the server of the directory, or becomes it.
    pub(crate) async fn reach(&mut self) -> Result<Client> {
        let new_key = key_file(&self.config).filter(|path| !path.exists());
        let waiting = noticed(&self.out, "waiting for the process that uses the data directory");
        let attached = Box::pin(attach(self.config.clone())).await;
        waiting.done();
        let attached = attached?;
        if let Some(path) = new_key.filter(|path| path.exists()) {
            self.out.remark(format!(
                "made the master key {}: keep a copy, without it the vault cannot be opened",
                path.display()
            ));
        }
        let client = attached.client().clone();
        // The first connection tells a server that was made for this command to stay.
        client.health().await?;
        self.attached = Some(attached);
        Ok(client)
    }

    /// The server itself, when it is this process.
    pub(crate) fn near(&self) -> Option<&Near> {
        self.attached.as_ref().and_then(Attached::near)
    }

    /// Lets go; if this process is the server, after the others that use it are done.
    pub(crate) async fn close(self) -> Result {
        let Some(attached) = self.attached else { return Ok(()) };
        let waiting = noticed(&self.out, "finishing what is left to index");
        let finished = attached.finish().await;
        waiting.done();
        Ok(finished?)
    }
}

/// Returns the file the master key lies in, when it lies in one.
pub(crate) fn key_file(config: &Config) -> Option<PathBuf> {
    match &config.key {
        KeySource::File(path) => Some(path.clone()),
        KeySource::Default => place::config().ok().map(|place| place.join("master.key")),
        KeySource::Text(_) | KeySource::Passphrase(_) => None,
    }
}

/// Shows a spinner once something takes long.
fn noticed(out: &Output, doing: &'static str) -> Notice {
    let (out, (send, receive)) = (*out, tokio::sync::oneshot::channel::<()>());
    let task = tokio::spawn(async move {
        let mut receive = receive;
        if tokio::time::timeout(NOTICEABLE, &mut receive).await.is_ok() {
            return;
        }
        let spinner: ProgressBar = progress::spinner(&out, doing);
        receive.await.unwrap_or_default();
        spinner.finish_and_clear();
    });
    Notice { send: Some(send), _task: task }
}

struct Notice {
    send: Option<tokio::sync::oneshot::Sender<()>>,
    _task: tokio::task::JoinHandle<()>,
}

impl Notice {
    fn done(mut self) {
        if let Some(send) = self.send.take() {
            send.send(()).unwrap_or_default();
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Config(_) | Error::Exposed(_) => {
                Self::usage(message).hint("yore config check says where the setting comes from")
            }
            Error::Key(_) => Self::new(Exit::Damaged, message)
                .hint("name the right key with --key-file, YORE_MASTER_KEY or YORE_PASSPHRASE"),
            Error::Damaged(_) => Self::new(Exit::Damaged, message),
            Error::InUse { .. } => Self::new(Exit::Unreachable, message).hint(
                "it holds the lock but does not answer; wait for it, end it, or use another --data",
            ),
            Error::Bind { .. } => Self::new(Exit::Unreachable, message).hint(
                "choose another address with --listen or --tls-listen; port 0 picks a free one",
            ),
            Error::Tls(_) => Self::new(Exit::Damaged, message)
                .hint("move the directory tls aside; a new authority is made at the next start"),
            Error::File { source, .. } => file(message, &source),
            Error::Store(error) => store(error),
            Error::Database(error) => database(error),
            Error::Engine(error) => engine(error),
            Error::Client(error) => Self::from(error),
            Error::Interrupted(_) => Self::failed(message),
        }
    }
}

/// What the engine met in the store is told as the store tells it.
fn engine(error: yore_domain::Error) -> Failure {
    let yore_domain::Error::Internal(source) = error else { return Failure::from(error) };
    match source.downcast::<StoreError>() {
        Ok(error) => store(*error),
        Err(source) => Failure::from(yore_domain::Error::Internal(source)),
    }
}

fn store(error: StoreError) -> Failure {
    let message = error.to_string();
    let damaged = error.is_damage();
    match error {
        StoreError::WrongKey => Failure::new(Exit::Damaged, message).hint(
            "nothing was changed; give the key it was made with: --key-file, YORE_MASTER_KEY or \
             YORE_PASSPHRASE",
        ),
        StoreError::Key(_) => Failure::new(Exit::Damaged, message).hint("nothing was changed"),
        StoreError::InUse(_) => Failure::new(Exit::Unreachable, message),
        StoreError::Half { .. } => Failure::new(Exit::Conflict, message).hint(HALF),
        StoreError::Newer { .. } => Failure::new(Exit::Damaged, message)
            .hint("nothing was changed; install the newer version of yore"),
        StoreError::Foreign { .. }
        | StoreError::Json(_)
        | StoreError::Damaged(_)
        | StoreError::Sqlite(_)
            if damaged =>
        {
            Failure::new(Exit::Damaged, message)
                .hint("nothing was changed; put a backup in its place with yore restore")
        }
        StoreError::File { source, .. } => file(message, &source),
        StoreError::Sqlite(_) => Failure::from(yore_domain::Error::from(error)),
        StoreError::Foreign { .. }
        | StoreError::Json(_)
        | StoreError::Damaged(_)
        | StoreError::Stopped
        | StoreError::Domain(_) => Failure::failed(message),
    }
}

fn database(error: DatabaseError) -> Failure {
    let message = error.to_string();
    match error {
        DatabaseError::Address(_) | DatabaseError::Unfit(_) => Failure::usage(message),
        DatabaseError::WrongKey | DatabaseError::Key(_) => Failure::new(Exit::Damaged, message)
            .hint(
                "nothing was changed; give the key the database was made with: --key-file, \
                 YORE_MASTER_KEY or YORE_PASSPHRASE",
            ),
        DatabaseError::InUse(_) => Failure::new(Exit::Unreachable, message)
            .hint("stop every server that uses the database, or wait until the move is done"),
        DatabaseError::Half => Failure::new(Exit::Conflict, message).hint(HALF),
        DatabaseError::Newer { .. } => Failure::new(Exit::Damaged, message)
            .hint("nothing was changed; install the newer version of yore"),
        DatabaseError::Json(_) | DatabaseError::Damaged(_) => Failure::new(Exit::Damaged, message),
        DatabaseError::Postgres(_) | DatabaseError::Crowded => {
            Failure::new(Exit::Unreachable, message)
                .hint("check the address and that its user may make tables, or that they are made")
        }
        DatabaseError::Domain(_) => Failure::failed(message),
    }
}

fn file(message: String, source: &std::io::Error) -> Failure {
    const KNOWN: [(ErrorKind, Exit, &str); 5] = [
        (ErrorKind::PermissionDenied, Exit::Unreachable, UNWRITABLE),
        (ErrorKind::ReadOnlyFilesystem, Exit::Unreachable, UNWRITABLE),
        (ErrorKind::StorageFull, Exit::Unreachable, FULL),
        (ErrorKind::QuotaExceeded, Exit::Unreachable, FULL),
        (ErrorKind::NotFound, Exit::Failed, "check the path"),
    ];
    let known = KNOWN.iter().find(|(kind, ..)| *kind == source.kind());
    let (exit, hint) = known.map_or(
        (Exit::Failed, "yore doctor says what is wrong and what to do"),
        |(_, exit, hint)| (*exit, *hint),
    );
    Failure::new(exit, message).hint(hint)
}
