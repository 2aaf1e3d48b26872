//! `yore open`: opens the web app, signed in.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

use yore_client::api::{self, TokenKind};
use yore_client::input;
use yore_server::{Note, web};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::raw;

/// Options of `yore open`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore open
  yore open --print

The address signs a browser in once and within five minutes. A server must be running.")]
pub(crate) struct Args {
    /// Only print the address
    #[arg(long)]
    print: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let base = base(app)?;
    let mut session = app.session().await?;
    let request = input::IssueToken {
        kind: TokenKind::Owner,
        ttl: Some(web::SIGN_IN_LIFE),
        note: Some(web::SIGN_IN_NOTE.to_owned()),
    };
    let token = session.change::<api::IssueToken>(request).await?;
    let address = web::sign_in(&base, &token);
    if !args.print && !app.out.json && std::io::stdout().is_terminal() && !show(&address) {
        app.out.remark("no browser could be started; open the address yourself");
    }
    app.out.either(&serde_json::json!({ "url": address }), |_| raw(&address))
}

/// Where a browser finds the server.
fn base(app: &App) -> Result<String> {
    if let Some(url) = app.url() {
        return Ok(url.to_owned());
    }
    let note = Note::read(&app.config()?.data);
    let plain = note.as_ref().and_then(|note| note.http).map(|at| format!("http://{at}"));
    let secure = || note.as_ref().and_then(|note| note.https).map(|at| format!("https://{at}"));
    plain.or_else(secure).ok_or_else(|| {
        Failure::new(Exit::Unreachable, "no server is running here")
            .hint("start one with yore serve")
    })
}

/// Starts the browser; answers whether there is one.
fn show(address: &str) -> bool {
    let (program, before): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("rundll32", &["url.dll,FileProtocolHandler"]),
        _ => ("xdg-open", &[]),
    };
    let mut command = Command::new(program);
    command.args(before).arg(address);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
}
