//! A host for one command, and for those that come while it runs.

use std::path::Path;
use std::time::Duration;

use tokio::sync::watch;
use yore_client::{Client, Target};

use super::Host;
use crate::claim::Wish;
use crate::config::Config;
use crate::error::Result;
use crate::listen::Listeners;
use crate::place;

/// How often it is asked whether a server wants the directory.
const LISTENING: Duration = Duration::from_millis(200);

/// A host that serves only the socket and ends by itself.
#[derive(Debug)]
pub struct Idle {
    host: Host,
    listeners: Listeners,
}

/// How long a command that is done goes on with what is left to do in the background.
const SETTLING: Duration = Duration::from_secs(2);

impl Host {
    /// Opens the data directory for a command when no server runs: other commands find the
    /// socket and use it too.
    pub async fn open_idle(config: Config) -> Result<Idle> {
        let host = Self::open_quietly(config).await?;
        let listeners = Listeners::socket_only(&host.config)?;
        Ok(Idle { host, listeners })
    }
}

impl Idle {
    /// The host.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// A client of this host that proves the master key.
    pub fn client(&self) -> Result<Client> {
        let target = Target::Socket(place::socket(&self.host.config.data));
        Ok(Client::new(target)?.with_credential(self.host.credential()))
    }

    /// Serves until there was no connection for a while and little is left to do, or until a
    /// server that stays wants the directory.
    pub async fn serve(self) -> Result<()> {
        let Self { host, listeners } = self;
        let (app, acceptor) = host.assemble(None);
        host.announce(&listeners)?;
        app.set_ready(true);
        let stop = app.surface().stop.clone();
        let mut open = app.open().subscribe();
        let serving = tokio::spawn(acceptor.run(listeners));
        loop {
            tokio::select! {
                () = silence(&mut open, host.config.limits.idle()) => {}
                () = wanted(&host.config.data) => break,
            }
            let settled = host.engine.settle_for(SETTLING).await;
            if let Err(error) = settled {
                tracing::warn!(%error, "some work is left for the next start");
            }
            if !open.has_changed().unwrap_or(false) && *open.borrow() == 0 {
                break;
            }
        }
        app.set_ready(false);
        stop.cancel();
        if let Err(error) = serving.await {
            tracing::error!(%error, "the socket ended badly");
        }
        app.uamp().stop().await;
        app.omp().halt().await;
        drop(app);
        host.close(None).await
    }
}

/// Waits until a server that stays wants the directory.
async fn wanted(data: &Path) {
    while !Wish::is_expressed(data) {
        tokio::time::sleep(LISTENING).await;
    }
}

/// Waits until there was no connection for as long as this.
async fn silence(open: &mut watch::Receiver<usize>, length: Duration) {
    loop {
        if open.wait_for(|count| *count == 0).await.is_err() {
            return;
        }
        match tokio::time::timeout(length, open.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}
