//! `yore import`: takes in memories and conversations, whatever form they lie in.

mod attachments;
mod conversations;
mod near;

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use serde::Serialize;
use yore_client::api::{self, DryRun, Item};
use yore_client::input::{self, Nothing};
use yore_domain::memory::{Draft, Version};
use yore_domain::provenance::ActorKind;
use yore_domain::{ConversationId, MemoryId, Timestamp};
use yore_ump::files::{self, FILE_BYTES, Format, NOTE_BYTES, Source};
use yore_ump::wire::Object;

use self::conversations::Exports;
use crate::app::{App, Session};
use crate::failure::{Exit, Failure, Result};
use crate::output::{BAD, GOOD, Table, WARN, cell, styled};
use crate::progress;
use crate::source::{Form, Found, Skipped, Walk};

/// What the server takes in one batch.
const BATCH: usize = 500;
/// A batch stays well below the server's bound on a request's bytes.
const BATCH_BYTES: usize = 4 << 20;
/// No line is read further than this; a message may be 16 MiB.
const LINE_BYTES: u64 = 15 << 20;

/// Options of `yore import`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore import memories.ndjson
  yore import --dry-run memories.ump.json
  yore import chatgpt-export.zip claude-export.zip
  yore import ~/.claude ~/.codex
  yore import backup.omp.zip
  yore import CLAUDE.md AGENTS.md ~/notes
  yore export --data elsewhere | yore import -
  yore import --lines --tag notes notes.txt

Reads exports of yore, portable UMP records (ump.json, NDJSON, ump.md), CLAUDE.md and AGENTS.md,
Obsidian vaults and folders of Markdown, .omp.zip archives, and the exports and stores of ChatGPT,
Claude, Claude Code, Codex, Copilot, Cursor, Gemini, Grok, Letta, LM Studio, mem0, Ollama, Open
WebUI, Perplexity and MCP's memory server: files, folders and zips, told apart by their content.
Conversations stay as they were said, with branches, attachments and whatever has no place of its
own. What a platform remembers of a person, and what the person asked to remember, is proposed:
yore review list shows it. Notes are cut at their headings and come in as candidates.

What is known already is counted as a duplicate, so an import that was cut off can be run again.
Each item is judged by itself; those that were turned down are listed and the command ends with 1.
What could not be read is listed too. YORE_ARCHIVE_PASSWORD opens archives that have a password.")]
pub(crate) struct Args {
    /// Files and directories, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Say what would come in, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Every line of plain text is one memory
    #[arg(long)]
    lines: bool,
    /// Draw nothing to remember from what was said in conversations
    #[arg(long)]
    no_proposals: bool,
    /// Tags for what notes and --lines make
    #[arg(long = "tag", short = 't', value_delimiter = ',', value_name = "TAG")]
    tags: Vec<String>,
    /// The project for what notes and --lines make
    #[arg(long, short, value_name = "NAME")]
    project: Option<String>,
}

/// What is taken of an archive. What is set must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// From this platform.
    pub(crate) platform: Option<String>,
    /// With this tag.
    pub(crate) tag: Option<String>,
    /// This conversation.
    pub(crate) conversation: Option<ConversationId>,
    /// Said or made at or after this.
    pub(crate) since: Option<Timestamp>,
    /// Said or made before this.
    pub(crate) until: Option<Timestamp>,
}

impl Choice {
    /// Whether something from a platform, with tags and times, is taken.
    fn takes(&self, platform: Option<&str>, tags: &[String], times: &[Timestamp]) -> bool {
        self.platform.as_deref().is_none_or(|wanted| platform == Some(wanted))
            && self.tag.as_ref().is_none_or(|wanted| tags.contains(wanted))
            && ((self.since.is_none() && self.until.is_none())
                || times.iter().any(|at| {
                    self.since.is_none_or(|since| since <= *at)
                        && self.until.is_none_or(|until| *at < until)
                }))
    }
}

/// What became of what was found.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Sum {
    found: u64,
    imported: u64,
    merged: u64,
    duplicates: u64,
    /// What was erased here and stays so.
    erased: u64,
    held: u64,
    proposed: u64,
    rejected: Vec<Skipped>,
    skipped: Vec<Skipped>,
    /// What was not chosen.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: u64,
    dry_run: bool,
    /// What was read of other platforms.
    #[serde(skip_serializing_if = "Option::is_none")]
    exports: Option<Exports>,
}

impl Sum {
    /// Whether everything that was found could be read and taken in.
    pub(crate) fn is_whole(&self) -> bool {
        self.skipped.is_empty() && self.rejected.is_empty()
    }

    /// Says in one line what is new; nothing when nothing is.
    pub(crate) fn news(&self) -> Option<String> {
        let parts = [
            (self.imported, "imported"),
            (self.merged, "added to"),
            (self.held, "held"),
            (self.proposed, "proposed"),
            (self.rejected.len() as u64, "turned down"),
        ];
        let said: Vec<String> = parts
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{number} {what}"))
            .collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let standard = |path: &PathBuf| path.as_os_str() == "-";
    let (mut exports, others): (Vec<PathBuf>, Vec<PathBuf>) = args
        .paths
        .iter()
        .cloned()
        .partition(|path| !args.lines && !standard(path) && conversations::are_in(path));
    let Walk { found, skipped, pasted } = Walk::of(&others, args.lines)?;
    exports.extend(pasted);
    let several = found.len() > 1;
    let mut session = app.session().await?;
    let sum = Sum { skipped, dry_run: args.dry_run, ..Sum::default() };
    let mut tray = Tray {
        app,
        args: &args,
        bar: progress::spinner(&app.out, "importing"),
        sum,
        batch: Vec::new(),
        bytes: 0,
        names: HashMap::new(),
        place: String::new(),
        records: Vec::new(),
    };
    for file in found {
        tray.place = if several { format!("{}: ", file.name) } else { String::new() };
        match file.form {
            Form::Items | Form::Lines => tray.lines(&mut session, file).await?,
            Form::Records(format) => tray.records(file, format),
            Form::Notes(source) => tray.notes(&mut session, file, source).await?,
        }
    }
    tray.chained(&mut session).await?;
    tray.send(&mut session).await?;
    tray.bar.finish_and_clear();
    let mut sum = tray.sum;
    if !exports.is_empty() {
        conversations::run(app, &mut session, &args, &exports, &Choice::default(), &mut sum)
            .await?;
    }
    app.out.either(&sum, |sum| show(app, sum))?;
    ended(&args, &sum)
}

/// Takes in of an archive what is chosen.
pub(crate) async fn restore(app: &App, archive: PathBuf, choice: Choice, dry_run: bool) -> Result {
    std::fs::metadata(&archive).map_err(Failure::file(archive.display()))?;
    let args = Args { dry_run, no_proposals: true, ..Args::of(vec![archive]) };
    let mut session = app.session().await?;
    let mut sum = Sum { dry_run, ..Sum::default() };
    conversations::run(app, &mut session, &args, &args.paths, &choice, &mut sum).await?;
    app.out.either(&sum, |sum| show(app, sum))?;
    ended(&args, &sum)
}

/// Takes in what exports and stores of other platforms hold, and says what became of it.
pub(crate) async fn sources(app: &App, paths: Vec<PathBuf>, no_proposals: bool) -> Result<Sum> {
    let args = Args { no_proposals, ..Args::of(paths) };
    let mut session = app.session().await?;
    let mut sum = Sum::default();
    let choice = Choice::default();
    conversations::run(app, &mut session, &args, &args.paths, &choice, &mut sum).await?;
    Ok(sum)
}

/// Whether a file is an export of a platform that can be read.
pub(crate) fn is_export(path: &Path) -> bool {
    conversations::are_exported(path)
}

impl Args {
    fn of(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            dry_run: false,
            lines: false,
            no_proposals: false,
            tags: Vec::new(),
            project: None,
        }
    }
}

/// Items on their way to the server.
struct Tray<'a> {
    app: &'a App,
    args: &'a Args,
    bar: ProgressBar,
    sum: Sum,
    batch: Vec<Item>,
    bytes: usize,
    /// What the reader of the report calls an item, by the id the server knows it by.
    names: HashMap<String, String>,
    /// What stands before names when there are several files.
    place: String,
    /// Records of all files.
    records: Vec<Object>,
}

impl Tray<'_> {
    async fn lines(&mut self, session: &mut Session<'_>, file: Found) -> Result {
        let name = file.name.clone();
        let mut reader = file.open()?;
        let mut number = 0;
        while let Some(line) = line(&mut *reader, &name, number + 1)? {
            number += 1;
            let called = format!("line {number}");
            match item(self.app, self.args, &line) {
                Ok(Some(item)) => self.push(session, item, called, line.len()).await?,
                Ok(None) => {}
                Err(reason) => self.reject(called, reason),
            }
        }
        Ok(())
    }

    fn records(&mut self, file: Found, format: Format) {
        let name = file.name.clone();
        let text = file.text(FILE_BYTES);
        let records = match (text, format) {
            (Err(reason), _) => Err(reason),
            (Ok(text), Format::Ndjson) => Ok(self.by_line(&text)),
            (Ok(text), Format::Json | Format::Markdown) => {
                files::parse(&text, format).map_err(|error| error.to_string())
            }
        };
        let records = match records {
            Ok(records) => records,
            Err(reason) => return self.reject(name, reason),
        };
        self.records.extend(records);
    }

    /// Makes memories of all records that were read: what supersedes each other may lie in
    /// several files.
    async fn chained(&mut self, session: &mut Session<'_>) -> Result {
        if self.records.is_empty() {
            return Ok(());
        }
        self.place.clear();
        let owner = session.call::<api::Whoami>(Nothing {}).await?.did;
        let records = std::mem::take(&mut self.records);
        let (items, refused) = files::items(&records, &owner, self.app.out.now);
        for (id, error) in refused {
            let called = if id.is_empty() { "a record without an id".to_owned() } else { id };
            self.reject(called, error.to_string());
        }
        for item in items {
            let called = match &item {
                Item::Memory { versions } => versions.last().map_or(String::new(), stated),
                Item::Conversation { .. } | Item::Profile(_) => String::new(),
            };
            let bytes = serde_json::to_string(&item).map_or(0, |text| text.len());
            self.push(session, item, called, bytes).await?;
        }
        Ok(())
    }

    /// The records of a file of lines; a line that is none costs nothing but itself.
    fn by_line(&mut self, text: &str) -> Vec<Object> {
        let mut records = Vec::new();
        for (at, line) in text.lines().enumerate() {
            match files::parse(line, Format::Ndjson) {
                Ok(record) => records.extend(record),
                Err(error) => {
                    let reason = error.to_string().replace("line 1", "the line");
                    self.reject(format!("line {}", at + 1), reason);
                }
            }
        }
        records
    }

    async fn notes(&mut self, session: &mut Session<'_>, file: Found, source: Source) -> Result {
        let name = file.name.clone();
        let args = self.args;
        let label = |draft: &mut Draft| {
            draft.content.tags.extend(args.tags.iter().cloned());
            draft.content.scope.project.clone_from(&args.project);
        };
        let read = file.text(NOTE_BYTES).and_then(|text| {
            files::notes(&name, &text, source, label, self.app.out.now)
                .map_err(|error| error.to_string())
        });
        match read {
            Ok(items) if items.is_empty() => {
                self.sum.skipped.push(Skipped { item: name, reason: "it says nothing".to_owned() });
            }
            Ok(items) => {
                for (at, item) in items.into_iter().enumerate() {
                    let called = format!("{name}, part {}", at + 1);
                    self.push(session, item, called, 2000).await?;
                }
            }
            Err(reason) => self.sum.skipped.push(Skipped { item: name, reason }),
        }
        Ok(())
    }

    fn reject(&mut self, called: String, reason: String) {
        self.sum.found += 1;
        self.sum.rejected.push(Skipped { item: format!("{}{called}", self.place), reason });
    }

    async fn push(
        &mut self,
        session: &mut Session<'_>,
        item: Item,
        called: String,
        bytes: usize,
    ) -> Result {
        self.sum.found += 1;
        self.bytes += bytes;
        if let Item::Memory { versions } = &item
            && let Some(first) = versions.first()
        {
            self.names.insert(first.memory.to_string(), format!("{}{called}", self.place));
        }
        self.batch.push(item);
        if self.batch.len() == BATCH || self.bytes >= BATCH_BYTES {
            self.send(session).await?;
        }
        Ok(())
    }

    async fn send(&mut self, session: &mut Session<'_>) -> Result {
        self.bytes = 0;
        if self.batch.is_empty() {
            return Ok(());
        }
        let dry_run = if self.args.dry_run { DryRun::Yes } else { DryRun::No };
        let request = input::Import { items: std::mem::take(&mut self.batch), dry_run };
        let sum = &mut self.sum;
        let done = session.change::<api::Import>(request).await.map_err(|failure| {
            let before = sum.imported + sum.merged + sum.duplicates + sum.held + sum.erased;
            failure.at(format!("stopped after {} ({before} items are in)", sum.found))
        })?;
        sum.imported += done.imported as u64;
        sum.merged += done.merged as u64;
        sum.duplicates += done.duplicates as u64;
        sum.erased += done.erased as u64;
        sum.held += done.held as u64;
        for (id, reason) in done.rejected {
            let item = self.names.get(&id).cloned().unwrap_or(id);
            sum.rejected.push(Skipped { item, reason });
        }
        self.names.clear();
        self.bar.set_position(sum.found);
        Ok(())
    }
}

/// The id by which the owner of a record knows it.
fn stated(version: &Version) -> String {
    let said = version.content.foreign.get("ump").and_then(|kept| kept.get("id"));
    said.and_then(|id| id.as_str()).map_or_else(|| version.id.to_string(), str::to_owned)
}

fn line(reader: &mut dyn BufRead, name: &str, number: u64) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    reader.take(LINE_BYTES).read_until(b'\n', &mut line).map_err(Failure::file(name))?;
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
    draft.content.provenance.source = args.paths.first().map(|path| path.display().to_string());
    draft.validate().map_err(|error| error.to_string())?;
    let version = Version::first(MemoryId::random(), draft, app.out.now, None);
    Ok(Some(Item::Memory { versions: vec![version] }))
}

fn show(app: &App, sum: &Sum) -> Result {
    if let Some(exports) = &sum.exports {
        exports.show(app)?;
    }
    let mut table = Table::new(&["ITEMS", ""]);
    let would = if sum.dry_run { "would be " } else { "" };
    let rows = [
        (sum.found, "found".to_owned(), GOOD),
        (sum.imported, format!("{would}imported"), GOOD),
        (sum.merged, format!("{would}merged into what was known"), GOOD),
        (sum.duplicates, "known already".to_owned(), GOOD),
        (sum.erased, "erased here before, and left out".to_owned(), WARN),
        (sum.held, format!("{would}held for approval: yore review list"), WARN),
        (sum.proposed, format!("{would}proposed to remember: yore review list"), WARN),
        (sum.rejected.len() as u64, format!("{would}turned down"), BAD),
        (sum.left_out, "left out, as they were not chosen".to_owned(), GOOD),
        (sum.skipped.len() as u64, "passed over".to_owned(), WARN),
    ];
    for (at, (number, what, style)) in rows.into_iter().enumerate() {
        if number > 0 || at < 2 {
            table.push([styled(number.to_string(), style), cell(what)]);
        }
    }
    app.out.table(&table)?;
    list(app, "TURNED DOWN", &sum.rejected)?;
    list(app, "PASSED OVER", &sum.skipped)
}

fn list(app: &App, head: &'static str, items: &[Skipped]) -> Result {
    if items.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[head, "WHY"]);
    for skipped in items.iter().take(20) {
        table.push([cell(&skipped.item), cell(&skipped.reason)]);
    }
    app.out.line("")?;
    app.out.table(&table)?;
    if items.len() > 20 {
        app.out.remark(format!("and {} more; --json lists all", items.len() - 20));
    }
    Ok(())
}

fn ended(args: &Args, sum: &Sum) -> Result {
    let names: Vec<String> = args.paths.iter().map(|path| path.display().to_string()).collect();
    let name = names.join(", ");
    let count = sum.rejected.len() as u64;
    if sum.found == 0 && sum.exports.as_ref().is_some_and(Exports::is_empty) {
        return Err(Failure::usage(format!("{name}: nothing in it could be read")));
    }
    if count == 0 {
        return Ok(());
    }
    if count == sum.found && !args.lines {
        return Err(Failure::usage(format!("{name}: nothing in it could be taken in"))
            .hint("--lines takes plain text, one memory a line"));
    }
    let what = format!("{name}: {count} of {} items were turned down", sum.found);
    Err(Failure::new(Exit::Failed, what)
        .hint("the others are in; mend the listed ones and run the import again"))
}
