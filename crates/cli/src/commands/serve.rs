//! `yore serve`: serves the vault to agents, until it is told to stop.

use std::path::Path;
use std::time::Duration;

use yore_server::{Config, Host, Note, interrupted};

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::local::key_file;
use crate::output::{GOOD, HEAD, ID, WARN};

/// Options of `yore serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore serve
  yore serve --data ~/work-memory --listen 127.0.0.1:0
  yore serve --listen off --tls-listen 0.0.0.0:7443
  yore serve --passphrase
  yore serve --database postgres://yore@localhost/yore

Plain HTTP is for this machine alone; other machines are served over TLS. The first start makes the
vault, a master key that only you can read, and an owner token that is shown once. SIGTERM and
Ctrl-C let requests under way finish.")]
pub(crate) struct Args {
    /// Where to listen for plain HTTP, or off; port 0 picks a free one [env: YORE_LISTEN] [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Where to listen for TLS, or off; port 0 picks a free one [env: YORE_TLS_LISTEN] [default: 127.0.0.1:7443]
    #[arg(long, value_name = "ADDR")]
    tls_listen: Option<String>,
    /// A PostgreSQL with pgvector that holds the vaults instead of the data directory [env: YORE_DATABASE]
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// What the log says: error, warn, info, debug, or a filter [default: info]
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    if !app.is_local() {
        return Err(Failure::usage("yore serve serves a data directory, not an address")
            .hint("leave out --url, or unset YORE_URL"));
    }
    let mut layers = app.layers()?;
    for (path, value) in [
        ("listen.http", &args.listen),
        ("listen.https", &args.tls_listen),
        ("database", &args.database),
        ("log", &args.log),
    ] {
        if let Some(value) = value {
            layers = layers.set(path, value.as_str());
        }
    }
    let config = app.unlocked(Config::load(layers)?)?;
    crate::log(&config.log)?;
    // Before anything is opened: whoever ends this server right away ends it in order, too.
    let interrupted = interrupted();
    let host = Host::open(config.clone()).await?;
    let listeners = host.listen().await?;
    let first = First {
        token: host.first_token().map(|token| token.expose().to_owned()),
        key: host.made_key().is_some(),
    };
    let serving = host.serve(listeners, interrupted);
    tokio::pin!(serving);
    let note = tokio::select! {
        ended = &mut serving => return Ok(ended?),
        note = announced(&config.data) => note,
    };
    greet(app, &config, &note, &first)?;
    Ok(serving.await?)
}

/// What only a first start has to tell.
struct First {
    token: Option<String>,
    key: bool,
}

/// Waits until the server has said where it listens.
async fn announced(data: &Path) -> Note {
    loop {
        match Note::read(data) {
            Some(note) if note.pid == std::process::id() => return note,
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

fn greet(app: &App, config: &Config, note: &Note, first: &First) -> Result {
    let key = key_file(config);
    if app.out.json {
        let mut ready = serde_json::to_value(note).map_err(|e| Failure::failed(e.to_string()))?;
        ready["data"] = serde_json::json!(config.data);
        ready["key"] = serde_json::json!(key);
        ready["owner_token"] = serde_json::json!(first.token);
        return app.out.row(&ready);
    }
    let out = &app.out;
    out.line(format!("{GOOD}{HEAD}yore {} is ready{HEAD:#}{GOOD:#}", note.version))?;
    let data = config.data.display();
    let mut base = None;
    if let Some(http) = note.http {
        out.line(format!("  http    {ID}http://{http}{ID:#}"))?;
        base = Some(format!("http://{http}"));
    }
    if let Some(https) = note.https {
        let ca = note.ca.as_ref();
        let trust = ca.map(|ca| format!("   (trust {})", ca.display())).unwrap_or_default();
        out.line(format!("  https   {ID}https://{https}{ID:#}{trust}"))?;
        let pinned = ca.map(|ca| format!(" --cacert {}", ca.display())).unwrap_or_default();
        base = base.or(Some(format!("https://{https}{pinned}")));
    }
    if let Some(base) =
        note.http.map(|at| format!("http://{at}")).or(note.https.map(|at| format!("https://{at}")))
    {
        out.line(format!("  app     {ID}{base}/app{ID:#}   (yore open signs you in)"))?;
    }
    out.line(format!("  data    {data}"))?;
    let key = key.map_or("a passphrase, or from the environment".to_owned(), |key| {
        key.display().to_string()
    });
    let made =
        if first.key { "   (made just now: keep a copy, nothing opens without it)" } else { "" };
    out.line(format!("  key     {key}{made}"))?;
    if let Some(token) = &first.token {
        out.line("")?;
        out.line(format!("{WARN}The owner's token, shown this once:{WARN:#}"))?;
        out.line(format!("  {token}"))?;
    }
    if let Some(base) = base {
        out.line("")?;
        out.line(format!("{HEAD}Connect an agent:{HEAD:#}"))?;
        out.line(format!(
            "  TOKEN=$(yore token issue --data {data} --verbs read,write --agent my-agent)"
        ))?;
        out.line(format!(
            "  curl {base}/api/v1/recall -H \"Authorization: Bearer $TOKEN\" \
             -H 'Content-Type: application/json' -d '{{\"query\":\"hello\",\"limit\":3}}'"
        ))?;
    }
    Ok(())
}
