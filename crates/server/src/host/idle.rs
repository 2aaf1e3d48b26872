//! A host for one command, and for those that come while it runs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use yore_client::{Client, Target};
use yore_http::Surface;

use super::Host;
use crate::app::App;
use crate::claim::Wish;
use crate::config::Config;
use crate::error::Result;
use crate::listen::{Acceptor, Listeners, Open};
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
        self.begin().1.await
    }

    /// The server as this process sees it, and the work of serving the others.
    pub(super) fn begin(self) -> (Near, impl Future<Output = Result<()>> + Send) {
        let (app, acceptor) = self.host.assemble(None);
        let near = Near::new(&app);
        (near.clone(), self.run(app, acceptor, near))
    }

    async fn run(self, app: App, acceptor: Arc<Acceptor>, near: Near) -> Result<()> {
        let Self { host, listeners } = self;
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
        near.leave();
        if let Err(error) = serving.await {
            tracing::error!(%error, "the socket ended badly");
        }
        app.uamp().stop().await;
        app.omp().halt().await;
        drop(app);
        host.close(None).await
    }
}

/// The server of this process, for whoever in it needs no socket.
#[derive(Clone, Debug)]
pub struct Near {
    /// Taken out when the server ends: who kept it would keep the directory from the next one.
    surface: Arc<Mutex<Option<Surface>>>,
    open: watch::Sender<usize>,
    stop: CancellationToken,
}

impl Near {
    fn new(app: &App) -> Self {
        let surface = app.surface().clone();
        let stop = surface.stop.clone();
        Self { surface: Arc::new(Mutex::new(Some(surface))), open: app.open().clone(), stop }
    }

    /// What every crate with routes gets, while the server lives. Whatever is made of it must be
    /// dropped when the server ends.
    #[must_use]
    pub fn surface(&self) -> Option<Surface> {
        self.surface.lock().clone()
    }

    /// Keeps the server from ending while the guard lives; `None` when it ends already.
    #[must_use]
    pub fn hold(&self) -> Option<Held> {
        // Counted before the look: who ends the server first says so and then waits for the count.
        let held = Held(Open::inside(&self.open));
        (!self.is_ending()).then_some(held)
    }

    /// Whether the server ends, or has ended.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Waits until the server ends.
    pub async fn ending(&self) {
        self.stop.cancelled().await;
    }

    fn leave(&self) {
        self.surface.lock().take();
    }
}

/// Keeps a server of this process from ending.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "counts while it lives")] Open);

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
