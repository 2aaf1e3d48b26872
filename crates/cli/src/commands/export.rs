//! `yore export`: writes everything out, in the native form, as portable records or as an archive.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use yore_client::{api, input};
use yore_domain::query::{Filter, Order, PageRequest};
use yore_ump::files::{self, Format, Writer};
use yore_ump::wire::Object;

use crate::app::{App, Session};
use crate::archive::{self, Wanted};
use crate::failure::{Failure, Result};
use crate::file::{self, Sink};
use crate::filter::Which;
use crate::{password, progress};

const PAGE: usize = 200;

/// Options of `yore export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore export --out memories.ndjson
  yore export --project yore | gzip > yore.ndjson.gz
  yore export | yore import --data elsewhere -
  yore export --format ump.json --out memories.ump.json
  yore export --format ump.md --out notes/
  yore export --format omp.zip --out conversations.omp.zip

Without --format memories come with all their versions, conversations with all their messages, one
item a line of JSON: everything the vault keeps. As ump.json, ndjson or ump.md memories become
signed, portable records that other tools read; labels and tags have no place there. What consent
keeps inside stays inside, unless --unredacted says that the copy is for your own hands. As omp.zip
conversations with their attachments and memories as they stand become one archive with the same
bytes for the same content; yore import takes it in again. A name that ends in .omp.zip.enc puts a
password around it, from YORE_ARCHIVE_PASSWORD or the terminal, in the form that openssl opens. A
file appears only when it is complete, and only you can read it.")]
pub(crate) struct Args {
    /// The file to write, or for ump.md the directory [default: standard output]
    #[arg(long, short, value_name = "PATH")]
    out: Option<PathBuf>,
    /// The form: ump.json, ndjson or ump.md (one file a record) for portable records, omp.zip for
    /// an archive
    #[arg(long, short, value_name = "FORM", value_parser = form)]
    format: Option<Form>,
    /// Also what consent keeps inside; the copy is for the owner's own hands
    #[arg(long, requires = "format")]
    unredacted: bool,
    #[command(flatten)]
    which: Which,
}

/// What is written with `--format`.
#[derive(Clone, Copy, Debug)]
enum Form {
    Records(Format),
    Archive,
}

fn form(text: &str) -> Result<Form, String> {
    if text == "omp.zip" {
        return Ok(Form::Archive);
    }
    let wrong = |_| "must be ump.json, ndjson, ump.md or omp.zip".to_owned();
    Format::parse(text).map(Form::Records).map_err(wrong)
}

pub(crate) fn format(text: &str) -> Result<Format, String> {
    Format::parse(text).map_err(crate::filter::said)
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    match args.format {
        None => native(app, args).await,
        Some(Form::Archive) => {
            let out =
                args.out.as_deref().filter(|out| *out != Path::new("-")).ok_or_else(|| {
                    Failure::usage("omp.zip is an archive").hint("name a file with --out")
                })?;
            let wanted = Wanted {
                filter: args.which.filter(app.out.now),
                hands: if args.unredacted { api::Hands::Own } else { api::Hands::Anybody },
                password: password::for_writing(out)?,
                ..Wanted::default()
            };
            let written = archive::write(app, wanted, out).await?;
            app.out.either(&written, |written| {
                written.tell(app);
                Ok(())
            })
        }
        Some(Form::Records(Format::Markdown)) => {
            let out = args.out.clone().filter(|out| out != Path::new("-")).ok_or_else(|| {
                Failure::usage("ump.md is one file a record").hint("name a directory with --out")
            })?;
            let mut session = app.session().await?;
            file::empty_directory(&out)?;
            let asked = asked(app, &args);
            into_directory(app, &mut session, &asked, &out).await
        }
        Some(Form::Records(format)) => {
            let mut session = app.session().await?;
            let asked = asked(app, &args);
            into_file(app, &mut session, &asked, format, args.out.as_deref()).await
        }
    }
}

async fn native(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    let mut sink = Sink::open(args.out.as_deref())?;
    let spinner = progress::spinner(&app.out, "exporting");
    let filter = args.which.filter(app.out.now);
    let mut after = None;
    loop {
        let page = PageRequest { limit: PAGE, after, offset: 0, order: Order::OldestFirst };
        let request = input::Export { filter: filter.clone(), page, hands: api::Hands::Own };
        let found = session.call::<api::Export>(request).await?;
        for item in &found.items {
            sink.row(item)?;
        }
        spinner.inc(found.items.len() as u64);
        after = found.next;
        if after.is_none() {
            break;
        }
    }
    let (rows, place) = sink.close()?;
    spinner.finish_and_clear();
    app.out.remark(format!("{rows} items written to {place}"));
    Ok(())
}

fn asked(app: &App, args: &Args) -> Value {
    request(&args.which.filter(app.out.now), "whole", args.unredacted)
}

/// What the server is asked for records.
pub(crate) fn request(filter: &Filter, extent: &str, unredacted: bool) -> Value {
    json!({"filter": filter, "extent": extent, "unredacted": unredacted, "limit": PAGE})
}

/// One record and the memory it is of.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The record.
    pub(crate) record: Object,
    /// The memory.
    pub(crate) memory: String,
}

/// The records of an export, a page at a time.
#[derive(Debug)]
pub(crate) struct Pages {
    asked: Value,
    ended: bool,
    /// How many consent kept inside so far.
    pub(crate) kept: u64,
}

impl Pages {
    /// Begins.
    pub(crate) fn new(asked: Value) -> Self {
        Self { asked, ended: false, kept: 0 }
    }

    /// The next records; nothing when there are no more.
    pub(crate) async fn next(&mut self, session: &mut Session<'_>) -> Result<Option<Vec<Entry>>> {
        if self.ended {
            return Ok(None);
        }
        let mut page = session.ump("export", &self.asked).await?;
        self.kept += page["kept"].as_u64().unwrap_or(0);
        self.asked["after"] = page["next"].take();
        self.ended = self.asked["after"].is_null();
        let strange = || Failure::failed("the server's answer is not an export");
        let Value::Array(entries) = page["entries"].take() else { return Err(strange()) };
        let read = |mut entry: Value| {
            let Value::Object(record) = entry["record"].take() else { return Err(strange()) };
            let memory = entry["memory"].as_str().ok_or_else(strange)?.to_owned();
            Ok(Entry { record, memory })
        };
        entries.into_iter().map(read).collect::<Result<Vec<_>>>().map(Some)
    }
}

/// Writes records into one file, or to standard output.
pub(crate) async fn into_file(
    app: &App,
    session: &mut Session<'_>,
    asked: &Value,
    format: Format,
    out: Option<&Path>,
) -> Result {
    let mut writer = Writer::new(format)?;
    let mut sink = Sink::open(out)?;
    let spinner = progress::spinner(&app.out, "exporting");
    let mut pages = Pages::new(asked.clone());
    while let Some(entries) = pages.next(session).await? {
        for entry in &entries {
            sink.piece(&writer.next(&entry.record)?)?;
        }
        spinner.inc(entries.len() as u64);
    }
    sink.piece(writer.end())?;
    let (_, place) = sink.close()?;
    let rows = spinner.position();
    spinner.finish_and_clear();
    told(app, rows, pages.kept, &place);
    Ok(())
}

/// Writes one file a record.
pub(crate) async fn into_directory(
    app: &App,
    session: &mut Session<'_>,
    asked: &Value,
    out: &Path,
) -> Result {
    let spinner = progress::spinner(&app.out, "exporting");
    let mut pages = Pages::new(asked.clone());
    while let Some(entries) = pages.next(session).await? {
        for Entry { record, .. } in &entries {
            let name = files::file_name(record);
            let text = files::print(std::slice::from_ref(record), Format::Markdown)?;
            file::write(&out.join(name), text.as_bytes())?;
            spinner.inc(1);
        }
    }
    let rows = spinner.position();
    spinner.finish_and_clear();
    told(app, rows, pages.kept, &out.display().to_string());
    Ok(())
}

fn told(app: &App, rows: u64, kept: u64, place: &str) {
    app.out.remark(format!("{rows} records written to {place}"));
    if kept > 0 {
        app.out.remark(format!("{kept} stay inside, as consent says; --unredacted takes them too"));
    }
}
