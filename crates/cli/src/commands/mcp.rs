//! `yore mcp`: speaks MCP on standard input and output, for an agent host that starts it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use yore_client::Client;
use yore_http::{Peer, RequestId, Way};
use yore_mcp::{Here, Nearby, Options, Relayed, ToolNames, Upstream, relay};
use yore_server::{Near, interrupted};

use crate::app::App;
use crate::failure::{Failure, Result};

/// Options of `yore mcp`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore mcp
  yore mcp --tool-names underscore
  YORE_TOKEN=$(yore token issue --verbs read,write --agent cursor) yore mcp

An agent host starts this command and speaks MCP with it; yore connect writes the host's
configuration. The vault is reached like with every other command: through the server of the data
directory if one runs, else through this process, which then serves other commands too. Without a
token the host acts as the owner; with YORE_TOKEN it may do what the token allows.")]
pub(crate) struct Args {
    /// How tools are named: some hosts refuse dots
    #[arg(long, value_name = "SPELLING", default_value = "dotted")]
    tool_names: Names,
}

/// How tools are named.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Names {
    /// As ump.recall
    Dotted,
    /// As ump_recall
    Underscore,
}

/// How long the vault stays open after a call that went straight to it: agents seldom ask once.
const LINGER: Duration = Duration::from_secs(30);

pub(crate) async fn run(app: Arc<App>, args: Args) -> Result {
    let names = match args.tool_names {
        Names::Dotted => ToolNames::Dotted,
        Names::Underscore => ToolNames::Underscore,
    };
    let options = Options { names, ..Options::default() };
    let link = Link {
        reached: Arc::default(),
        app,
        options: options.clone(),
        asked: AtomicU64::new(0),
        leaving: CancellationToken::new(),
    };
    link.reach().await?;
    let link = Arc::new(link);
    let ended = tokio::select! {
        ended = relay(Arc::clone(&link) as Arc<dyn Upstream>, options) => {
            ended.map_err(Failure::file("standard input"))
        }
        () = interrupted() => Ok(()),
    };
    link.leaving.cancel();
    ended
}

/// The way to the vault, found anew when the process that served it ends.
struct Link {
    app: Arc<App>,
    options: Options,
    reached: Arc<Mutex<Option<Reached>>>,
    asked: AtomicU64,
    /// Nobody asks any more.
    leaving: CancellationToken,
}

/// The server that was found, and the way to it when it is this process.
#[derive(Clone)]
struct Reached {
    client: Client,
    near: Option<(Near, Nearby)>,
}

impl Link {
    async fn reach(&self) -> Result<Client> {
        if let Some(reached) = &*self.reached.lock() {
            return Ok(reached.client.clone());
        }
        let client = self.app.link().await?;
        let near = self.app.near().await.and_then(|near| {
            let nearby = Nearby::new(near.surface()?, self.options.clone());
            Some((near, nearby))
        });
        if let Some((near, _)) = &near {
            tokio::spawn(let_go(Arc::clone(&self.reached), near.clone()));
        }
        *self.reached.lock() = Some(Reached { client: client.clone(), near });
        Ok(client)
    }

    /// Keeps the vault open for a while.
    fn linger(&self, near: &Near) {
        let Some(held) = near.hold() else { return };
        let (leaving, near) = (self.leaving.clone(), near.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(LINGER) => {}
                () = leaving.cancelled() => {}
                () = near.ending() => {}
            }
            drop(held);
        });
    }
}

/// Drops what holds on to a server of this process once it ends: the next one waits for it.
async fn let_go(reached: Arc<Mutex<Option<Reached>>>, near: Near) {
    near.ending().await;
    if let Some(Reached { near: slot, .. }) = &mut *reached.lock()
        && slot.as_ref().is_some_and(|(near, _)| near.is_ending())
    {
        *slot = None;
    }
}

impl Upstream for Link {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, io::Result<Response<Relayed>>> {
        Box::pin(async move {
            let client = self.reach().await;
            let client = client.map_err(|failure| io::Error::other(failure.message))?;
            match client.forward(request).await {
                Ok(response) => Ok(response),
                Err(error) => {
                    self.reached.lock().take();
                    Err(io::Error::other(error))
                }
            }
        })
    }

    fn here(&self) -> Option<Here> {
        let reached = self.reached.lock().clone()?;
        let (near, server) = reached.near?;
        let held = near.hold()?;
        self.linger(&near);
        let mut head = reached.client.head().ok()?;
        head.extensions.insert(Peer { way: Way::Socket, address: None });
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        head.extensions.insert(RequestId(format!("stdio-{:x}-{number:x}", std::process::id())));
        Some(Here { server, head, held: Box::new(held) })
    }
}
