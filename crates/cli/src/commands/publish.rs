//! `yore publish`: writes what is public where anybody can fetch it.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use yore_client::api;
use yore_client::input::{self, Nothing};
use yore_domain::query::Filter;
use yore_server::config::{Publish, published};
use yore_ump::files::{self, Format};
use yore_ump::wire::Object;

use super::export::{format, into_directory, into_file, request};
use crate::app::{App, Session};
use crate::failure::{Exit, Failure, Result};
use crate::file;
use crate::output::GOOD;
use crate::ump::send;

/// Options of `yore publish`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore publish /srv/www --at https://me.example
  yore publish --format ump.json,ump.md /srv/www
  yore publish --reads on

Writes the memories that are public, in visibility and in sensitivity, as signed records, and the
manifest .well-known/ump.json that lists them; what is no longer public is gone from the files, and
so are the files of a form that is no longer listed. The
[publish] section of the configuration names directory, url and formats for both this command and
the server's own manifest. With --reads anybody may read public memories from the running server,
or no longer.")]
pub(crate) struct Args {
    /// The directory that is published [default: publish.directory of the configuration]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Where that directory is reached from outside
    #[arg(long = "at", value_name = "URL")]
    at: Option<String>,
    /// The forms to write: ump.json, ndjson, ump.md
    #[arg(long, short, value_delimiter = ',', value_name = "FORMS", value_parser = format)]
    format: Vec<Format>,
    /// Whether strangers may read what is public from the server: on or off
    #[arg(long, value_name = "ON", value_parser = switch, conflicts_with_all = ["directory", "at", "format"])]
    reads: Option<bool>,
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("must be on or off".to_owned()),
    }
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    if let Some(open) = args.reads {
        session.change::<api::PublicReads>(input::PublicReads { open }).await?;
        return app.out.either(&json!({"public_reads": open}), |_| {
            let who = if open { "anybody reads" } else { "no stranger reads" };
            app.out.line(format!("{GOOD}done{GOOD:#}  {who} what is public"))
        });
    }
    let configured = if app.is_local() { app.config()?.publish } else { Publish::default() };
    let directory = args.directory.or(configured.directory.clone()).ok_or_else(|| {
        Failure::usage("where to?").hint("name a directory, or set publish.directory")
    })?;
    let formats = match args.format.is_empty() {
        true => configured.formats.clone(),
        false => args.format.iter().map(|format| format.as_str().to_owned()).collect(),
    };
    let publish = Publish { directory: None, url: args.at.or(configured.url), formats };
    std::fs::create_dir_all(&directory).map_err(Failure::file(directory.display()))?;
    let listed: Vec<Format> = publish.exports()?.into_iter().map(|(format, _)| format).collect();
    let stale = stale(&directory, &listed)?;
    let memories = directory.join(published(Format::Markdown));
    if listed.contains(&Format::Markdown) && held(&memories)?.others {
        return Err(foreign(&memories));
    }
    let asked = request(&Filter::default(), "public", false);
    for format in listed {
        let place = directory.join(published(format));
        match format {
            Format::Markdown => replaced(app, &mut session, &asked, &place).await?,
            Format::Json | Format::Ndjson => {
                into_file(app, &mut session, &asked, format, Some(&place)).await?;
                readable(&place)?;
            }
        }
    }
    for place in stale {
        let removed = match place.is_dir() {
            true => std::fs::remove_dir_all(&place),
            false => std::fs::remove_file(&place),
        };
        removed.map_err(Failure::file(place.display()))?;
    }
    let manifest = manifest(&mut session, &publish).await?;
    let place = directory.join(".well-known");
    std::fs::create_dir_all(&place).map_err(Failure::file(place.display()))?;
    let place = place.join("ump.json");
    let text =
        serde_json::to_string_pretty(&manifest).map_err(|e| Failure::failed(e.to_string()))?;
    file::write(&place, format!("{text}\n").as_bytes())?;
    readable(&place)?;
    app.out.either(&manifest, |_| {
        app.out.line(format!("{GOOD}published{GOOD:#}  {}", directory.display()))
    })
}

/// What was published here before in a form that is no longer listed: a copy that nobody keeps up
/// to date may hold what is public no more. What is not ours is left alone or refused.
fn stale(directory: &Path, listed: &[Format]) -> Result<Vec<PathBuf>> {
    let mut stale = Vec::new();
    for format in Format::ALL.into_iter().filter(|format| !listed.contains(format)) {
        let place = directory.join(published(format));
        let ours = match format {
            Format::Markdown => match held(&place)? {
                Held { records: true, others: true } => return Err(foreign(&place)),
                Held { records, .. } => records,
            },
            Format::Json | Format::Ndjson if !place.exists() => false,
            Format::Json | Format::Ndjson => {
                let read = std::fs::read_to_string(&place);
                let text = read.map_err(Failure::file(place.display()))?;
                let records = files::parse(&text, format).map_err(|_| foreign(&place))?;
                if !records.iter().all(is_public) {
                    return Err(foreign(&place));
                }
                true
            }
        };
        if ours {
            stale.push(place);
        }
    }
    Ok(stale)
}

fn is_public(record: &Object) -> bool {
    let visibility = record.get("scope").and_then(|scope| scope.get("visibility"));
    visibility.is_some_and(|visibility| visibility == "public")
}

/// What a directory holds.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Files of records.
    records: bool,
    /// Anything else.
    others: bool,
}

fn held(place: &Path) -> Result<Held> {
    let failed = || Failure::file(place.display());
    let entries = match std::fs::read_dir(place) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Held::default()),
        Err(error) => return Err(failed()(error)),
    };
    let mut held = Held::default();
    for entry in entries {
        let entry = entry.map_err(failed())?;
        let plain = entry.file_type().map_err(failed())?.is_file();
        match plain && entry.file_name().to_string_lossy().ends_with(".ump.md") {
            true => held.records = true,
            false => held.others = true,
        }
    }
    Ok(held)
}

fn foreign(place: &Path) -> Failure {
    let what = format!("{} holds what was not published from here", place.display());
    Failure::new(Exit::Conflict, what).hint("move it away, or name another directory")
}

/// Writes a directory of files in place of the one before, which may hold what is public no more.
async fn replaced(app: &App, session: &mut Session<'_>, asked: &Value, place: &Path) -> Result {
    let next = place.with_file_name(".memories.next");
    let failed = || Failure::file(place.display());
    if next.exists() {
        std::fs::remove_dir_all(&next).map_err(failed())?;
    }
    std::fs::create_dir_all(&next).map_err(failed())?;
    into_directory(app, session, asked, &next).await?;
    for entry in std::fs::read_dir(&next).map_err(failed())? {
        readable(&entry.map_err(failed())?.path())?;
    }
    if place.exists() {
        std::fs::remove_dir_all(place).map_err(failed())?;
    }
    std::fs::rename(&next, place).map_err(failed())
}

/// What the server says of itself, with what was written.
async fn manifest(session: &mut Session<'_>, publish: &Publish) -> Result<Value> {
    let path = "/.well-known/ump.json";
    let answer = send(session.client(), Method::GET, path, &[], Bytes::new()).await?;
    let mut manifest = answer.json();
    if !manifest.is_object() {
        return Err(Failure::failed("the server has no manifest"));
    }
    let listed = publish.exports()?.into_iter();
    let listed = listed.map(|(format, url)| json!({"url": url, "format": format.as_str()}));
    manifest["exports"] = listed.collect();
    manifest["owner"] = session.call::<api::Whoami>(Nothing {}).await?.did.into();
    Ok(manifest)
}

/// What is public may be read by the server that serves it.
fn readable(path: &Path) -> Result {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(path, open).map_err(Failure::file(path.display()))?;
    }
    #[cfg(not(unix))]
    let _ = path; // Directories there hand their permissions down.
    Ok(())
}
