//! `yore import`: takes in memories and conversations.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use serde::Serialize;
use yore_client::api::{self, Item};
use yore_client::input;
use yore_domain::MemoryId;
use yore_domain::memory::{Draft, Version};
use yore_domain::provenance::ActorKind;

use crate::app::{App, Session};
use crate::failure::{Exit, Failure, Result};
use crate::output::{BAD, GOOD, Table, WARN, cell, styled};
use crate::progress;

/// What the server takes in one batch.
const BATCH: usize = 500;
/// A batch stays well below the server's bound on a request's bytes.
const BATCH_BYTES: usize = 8 << 20;
/// No line is read further than this; a message may be 16 MiB.
const LINE_BYTES: u64 = 15 << 20;

/// Options of `yore import`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore import memories.ndjson
  yore export --data elsewhere | yore import -
  yore import --lines --tag notes notes.txt

What is known already is counted as a duplicate, so an import that was cut off can be run again.
Each item is judged by itself; those that were turned down are listed and the command ends with 1.")]
pub(crate) struct Args {
    /// The file, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Every line of plain text is one memory
    #[arg(long)]
    lines: bool,
    /// Tags for what --lines makes
    #[arg(
        long = "tag",
        short = 't',
        value_delimiter = ',',
        value_name = "TAG",
        requires = "lines"
    )]
    tags: Vec<String>,
    /// The project for what --lines makes
    #[arg(long, short, value_name = "NAME", requires = "lines")]
    project: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Sum {
    lines: u64,
    imported: u64,
    merged: u64,
    duplicates: u64,
    held: u64,
    rejected: Vec<Rejected>,
}

#[derive(Debug, Serialize)]
struct Rejected {
    item: String,
    reason: String,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let (mut reader, size) = open(&args)?;
    let mut session = app.session().await?;
    let bar = match size {
        Some(size) => progress::through_bytes(&app.out, size, "importing"),
        None => progress::spinner(&app.out, "importing"),
    };
    let mut sum = Sum::default();
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while let Some(line) = next(&mut reader, &args, sum.lines + 1)? {
        sum.lines += 1;
        bytes += line.len();
        if size.is_some() {
            bar.inc(line.len() as u64);
        }
        match item(app, &args, &line) {
            Ok(Some(item)) => batch.push(item),
            Ok(None) => {}
            Err(reason) => {
                sum.rejected.push(Rejected { item: format!("line {}", sum.lines), reason });
            }
        }
        if batch.len() == BATCH || bytes >= BATCH_BYTES {
            send(&mut session, &mut sum, &mut batch).await?;
            bytes = 0;
            if size.is_none() {
                bar.set_position(sum.lines);
            }
        }
    }
    send(&mut session, &mut sum, &mut batch).await?;
    bar.finish_and_clear();
    app.out.either(&sum, |sum| show(app, sum))?;
    ended(&args, &sum)
}

fn open(args: &Args) -> Result<(Box<dyn BufRead>, Option<u64>)> {
    if args.file.as_os_str() == "-" {
        return Ok((Box::new(BufReader::new(std::io::stdin())), None));
    }
    let name = args.file.display();
    let file = File::open(&args.file).map_err(Failure::file(&name))?;
    let about = file.metadata().map_err(Failure::file(&name))?;
    if about.is_dir() {
        return Err(Failure::usage(format!("{name} is a directory")).hint("name a file in it"));
    }
    Ok((Box::new(BufReader::new(file)), Some(about.len())))
}

fn next(reader: &mut dyn BufRead, args: &Args, number: u64) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let name = args.file.display();
    reader.take(LINE_BYTES).read_until(b'\n', &mut line).map_err(Failure::file(&name))?;
    if line.len() as u64 == LINE_BYTES && !line.ends_with(b"\n") {
        return Err(Failure::usage(format!("{name}: line {number} is longer than 15 MiB"))
            .hint("is it a file of one item a line? --lines takes plain text"));
    }
    Ok((!line.is_empty()).then_some(line))
}

fn item(app: &App, args: &Args, line: &[u8]) -> Result<Option<Item>, String> {
    let text = std::str::from_utf8(line)
        .map_err(|error| format!("not UTF-8 text: byte {}", error.valid_up_to()))?
        .trim();
    if text.is_empty() {
        return Ok(None);
    }
    if !args.lines {
        return serde_json::from_str(text)
            .map(Some)
            .map_err(|error| format!("not an item of a yore export: {error}"));
    }
    let mut draft = Draft::text(text);
    draft.content.tags.clone_from(&args.tags);
    draft.content.scope.project.clone_from(&args.project);
    draft.content.provenance.actor_kind = ActorKind::Import;
    draft.content.provenance.method = "imported".to_owned();
    draft.content.provenance.source = Some(args.file.display().to_string());
    draft.validate().map_err(|error| error.to_string())?;
    let version = Version::first(MemoryId::random(), draft, app.out.now, None);
    Ok(Some(Item::Memory { versions: vec![version] }))
}

async fn send(session: &mut Session<'_>, sum: &mut Sum, batch: &mut Vec<Item>) -> Result {
    if batch.is_empty() {
        return Ok(());
    }
    let request = input::Import { items: std::mem::take(batch) };
    let done = session.change::<api::Import>(request).await.map_err(|failure| {
        let before = sum.imported + sum.merged + sum.duplicates + sum.held;
        failure.at(format!("stopped before line {} ({before} items are in)", sum.lines))
    })?;
    sum.imported += done.imported as u64;
    sum.merged += done.merged as u64;
    sum.duplicates += done.duplicates as u64;
    sum.held += done.held as u64;
    let rejected = done.rejected.into_iter();
    sum.rejected.extend(rejected.map(|(item, reason)| Rejected { item, reason }));
    Ok(())
}

fn show(app: &App, sum: &Sum) -> Result {
    let mut table = Table::new(&["ITEMS", ""]);
    let rows = [
        (sum.imported, "imported", GOOD),
        (sum.merged, "merged into what was known", GOOD),
        (sum.duplicates, "known already", GOOD),
        (sum.held, "held for approval: yore review list", WARN),
        (sum.rejected.len() as u64, "turned down", BAD),
    ];
    for (number, what, style) in rows {
        if number > 0 || what == "imported" {
            table.push([styled(number.to_string(), style), cell(what)]);
        }
    }
    app.out.table(&table)?;
    if !sum.rejected.is_empty() {
        let mut table = Table::new(&["TURNED DOWN", "WHY"]);
        for rejected in sum.rejected.iter().take(20) {
            table.push([cell(&rejected.item), cell(&rejected.reason)]);
        }
        app.out.line("")?;
        app.out.table(&table)?;
        if sum.rejected.len() > 20 {
            app.out.remark(format!("and {} more; --json lists all", sum.rejected.len() - 20));
        }
    }
    Ok(())
}

fn ended(args: &Args, sum: &Sum) -> Result {
    let name = args.file.display();
    if sum.rejected.is_empty() {
        return Ok(());
    }
    if sum.rejected.len() as u64 == sum.lines && !args.lines {
        return Err(Failure::usage(format!("{name} is not a file that yore export wrote"))
            .hint("--lines takes plain text, one memory a line"));
    }
    let count = sum.rejected.len();
    Err(Failure::new(
        Exit::Failed,
        format!("{name}: {count} of {} lines were turned down", sum.lines),
    )
    .hint("the others are in; mend the listed lines and run the import again"))
}
