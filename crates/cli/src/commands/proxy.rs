//! `yore proxy`: a base URL for programs that speak with a model; it records what is said.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http::Uri;
use serde_json::json;
use yore_client::{Client, Target};
use yore_server::interrupted;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::GOOD;
use crate::proxy::{self, Proxy};

/// Options of `yore proxy`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore proxy --provider https://api.openai.com
  yore proxy --provider https://api.anthropic.com --listen 127.0.0.1:7072
  yore proxy --provider http://127.0.0.1:11434 --memories 800

Programs use the printed address in place of the provider's: OPENAI_BASE_URL=http://127.0.0.1:7071/v1,
ANTHROPIC_BASE_URL=http://127.0.0.1:7071. Requests go on as they are, with the program's own key,
and answers come back as they come, piece by piece too. What was asked and answered is stored word
for word (chat completions, responses and messages; nothing else is recorded). --memories puts what
the vault knows about a question before it, marked as data that is not to be obeyed.")]
pub(crate) struct Args {
    /// Where the provider is
    #[arg(long, value_name = "URL")]
    provider: String,
    /// Where to listen; only this machine can reach it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7071")]
    listen: SocketAddr,
    /// Put memories before each question, at most so many tokens of them
    #[arg(long, value_name = "TOKENS")]
    memories: Option<usize>,
}

pub(crate) async fn run(app: &Arc<App>, args: Args) -> Result {
    let wrong = || {
        Failure::usage(format!("{} is not an address of a provider", args.provider))
            .hint("write https://HOST, with the path before /v1 if there is one")
    };
    let uri: Uri = args.provider.parse().map_err(|_| wrong())?;
    let (scheme, authority) = uri.scheme_str().zip(uri.authority()).ok_or_else(wrong)?;
    let target: Target = format!("{scheme}://{authority}").parse()?;
    let proxy = Proxy {
        app: Arc::clone(app),
        provider: Client::new(target)?,
        prefix: uri.path().trim_end_matches('/').to_owned(),
        memories: args.memories,
        threads: Mutex::default(),
    };
    // The vault is reached before anybody speaks: what is said must not be lost.
    drop(app.session().await?);
    let listener = proxy::bind(args.listen).await?;
    let at = listener.local_addr().map_err(Failure::file(args.listen))?;
    let ready = json!({"listen": format!("http://{at}"), "provider": args.provider});
    app.out.either(&ready, |_| {
        app.out.line(format!("{GOOD}recording{GOOD:#}  http://{at} → {}", args.provider))
    })?;
    proxy::serve(proxy, listener, interrupted()).await
}
