//! How a command finds the server of a data directory, or becomes it for a moment.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use yore_client::{Client, Credential, Target};

use super::{Host, Near, fresh};
use crate::claim::{Note, Wish};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::{key, place};

/// How long a command waits for a server that is starting or ending.
const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(50);

/// A client, and the host behind it when this process became one.
#[derive(Debug)]
pub struct Attached {
    client: Client,
    hosting: Option<(Near, JoinHandle<Result<()>>)>,
}

impl Attached {
    /// The client.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Whether this process is the host.
    #[must_use]
    pub const fn is_hosting(&self) -> bool {
        self.hosting.is_some()
    }

    /// The server itself, when it is this process.
    #[must_use]
    pub fn near(&self) -> Option<&Near> {
        self.hosting.as_ref().map(|(near, _)| near)
    }

    /// Lets go. A process that became the host stays until it is idle.
    pub async fn finish(self) -> Result<()> {
        let Self { client, hosting } = self;
        drop(client);
        match hosting {
            None => Ok(()),
            Some((near, hosting)) => {
                drop(near);
                hosting.await.map_err(|error| Error::Interrupted(error.to_string()))?
            }
        }
    }
}

/// Connects to the server of the configured data directory with a proof of the master key;
/// when there is none, becomes it until idle.
pub async fn attach(config: Config) -> Result<Attached> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(client) = find(&config.data).await {
            let client = client.with_credential(proof(&config).await?);
            return Ok(Attached { client, hosting: None });
        }
        let opened = if Wish::is_expressed(&config.data) {
            Err(Error::InUse { data: config.data.clone(), pid: String::new() })
        } else {
            Host::open_idle(config.clone()).await
        };
        match opened {
            Ok(idle) => {
                let client = idle.client()?;
                let (near, serving) = idle.begin();
                return Ok(Attached { client, hosting: Some((near, tokio::spawn(serving))) });
            }
            Err(Error::InUse { .. }) if waited < PATIENCE => {
                tokio::time::sleep(STEP).await;
                waited += STEP;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Where the server of a data directory says it listens.
#[must_use]
pub fn discover(data: &Path) -> Vec<Target> {
    let mut targets = vec![Target::Socket(place::socket(data))];
    if let Some(http) = Note::read(data).and_then(|note| note.http)
        && let Ok(target) = format!("http://{http}").parse()
    {
        targets.push(target);
    }
    targets
}

/// A credential from the master key of the configuration.
pub async fn proof(config: &Config) -> Result<Credential> {
    let (source, data) = (config.key.clone(), config.data.clone());
    let derived =
        tokio::task::spawn_blocking(move || key::local(&source.obtain(&data)?.master, &data));
    let key = derived.await.map_err(|error| Error::Interrupted(error.to_string()))??;
    Ok(fresh(Arc::new(key), Arc::new(SystemClock::default())))
}

async fn find(data: &Path) -> Option<Client> {
    for target in discover(data) {
        if let Ok(client) = Client::connect(target).await {
            return Some(client);
        }
    }
    None
}
