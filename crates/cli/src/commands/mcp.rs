//! `yore mcp`: speaks MCP on standard input and output, for an agent host that starts it.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use tokio::sync::Mutex;
use yore_client::Client;
use yore_mcp::{Options, Relayed, ToolNames, Upstream, relay};
use yore_server::interrupted;

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

pub(crate) async fn run(app: Arc<App>, args: Args) -> Result {
    let names = match args.tool_names {
        Names::Dotted => ToolNames::Dotted,
        Names::Underscore => ToolNames::Underscore,
    };
    let link = Link { client: Mutex::new(Some(app.link().await?)), app };
    let options = Options { names, ..Options::default() };
    tokio::select! {
        ended = relay(Arc::new(link), options) => ended.map_err(Failure::file("standard input")),
        () = interrupted() => Ok(()),
    }
}

/// The way to the vault, found anew when the process that served it ends.
struct Link {
    app: Arc<App>,
    client: Mutex<Option<Client>>,
}

impl Link {
    async fn client(&self) -> io::Result<Client> {
        let mut client = self.client.lock().await;
        match &*client {
            Some(client) => Ok(client.clone()),
            None => {
                let linked = self.app.link().await;
                let linked = linked.map_err(|failure| io::Error::other(failure.message))?;
                Ok(client.insert(linked).clone())
            }
        }
    }
}

impl Upstream for Link {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, io::Result<Response<Relayed>>> {
        Box::pin(async move {
            match self.client().await?.forward(request).await {
                Ok(response) => Ok(response),
                Err(error) => {
                    self.client.lock().await.take();
                    Err(io::Error::other(error))
                }
            }
        })
    }
}
