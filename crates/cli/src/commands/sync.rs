//! `yore sync`: keeps another host, or a directory of records, in step with the vault, both ways.

mod book;
mod hosts;
mod only;
mod records;
mod talks;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt;
use serde::Serialize;
use serde_json::json;
use yore_client::api::{self, DryRun};
use yore_client::input::{self, Nothing};
use yore_domain::HoldId;
use yore_domain::hold::HoldState;
use yore_domain::query::Filter;
use yore_domain::scope::ScopeRule;
use yore_server::interrupted;
use yore_ump::files;
use yore_ump::wire::Object;

use super::export::{Entry, Pages, request};
use crate::app::{App, Session};
use crate::failure::{Exit, Failure, Result};
use crate::folder::{self, Folder, Known, Proposed, Seen, Step};
use crate::output::{GOOD, Table, WARN, cell, styled};
use crate::peer::Elsewhere;
use crate::source::Skipped;

/// How often a directory is looked at while it is watched.
const LOOK: Duration = Duration::from_secs(1);
/// How long to wait after a change for those that follow it.
const REST: Duration = Duration::from_millis(300);

/// Options of `yore sync`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore sync https://laptop.local:7443 --peer-token yore_v_… --peer-ca laptop-ca.pem
  yore sync https://laptop.local:7443 --only platform:claude --only tag:work
  yore sync ~/memory
  yore sync ~/memory --project yore --watch
  yore review list

With the address of another host, what changed there comes here and what changed here goes there:
conversations, messages, attachments and memories, and deletions of them. What was said is united;
of two names for a conversation the later counts. A memory that both sides changed stays as it is on
both, and what the other host says becomes a proposal here (yore review list): approve it and it
holds here, turn it down and yours goes there. What was deleted does not come back from the other
side; deleted on one side and changed on the other, it is kept and named. A sync that was cut off
goes on when it is run again. Tokens must be the owner's: yore token owner.

With a directory, every memory is a file of Markdown under a few lines that describe it. Change a file and the
memory is revised; write a new one and it is remembered; what changes in the vault is written to
its file. Nothing is overwritten: where both sides changed, and where a file is gone, the change
becomes a proposal (yore review list). What consent keeps inside the vault gets no file.")]
pub(crate) struct Args {
    /// The address of another host, or a directory
    #[arg(value_name = "URL|DIR")]
    pub(crate) place: String,
    /// Only what is so: platform:NAME, label:NAME or tag:NAME
    #[arg(long, value_name = "WHAT")]
    pub(crate) only: Vec<String>,
    /// Read all that ever changed on both hosts once more
    #[arg(long)]
    pub(crate) anew: bool,
    #[command(flatten)]
    pub(crate) elsewhere: Elsewhere,
    /// Only memories of this project; said once, it is kept
    #[arg(long, short, value_name = "NAME")]
    project: Option<String>,
    /// Go on until it is told to stop
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Default, PartialEq, Serialize)]
struct Sum {
    written: u64,
    removed: u64,
    taken_in: u64,
    revised: u64,
    proposed: u64,
    waiting: u64,
    unchanged: u64,
    kept_inside: u64,
    problems: Vec<Skipped>,
}

impl Sum {
    /// Whether there was nothing to do.
    fn is_quiet(&self) -> bool {
        let Self { unchanged, kept_inside, waiting, .. } = *self;
        *self == Self { unchanged, kept_inside, waiting, ..Self::default() }
    }
}

impl Args {
    /// Whether another host is meant.
    pub(crate) fn is_host(&self) -> bool {
        self.place.contains("://")
    }

    fn directory(&self) -> PathBuf {
        PathBuf::from(&self.place)
    }
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    if args.is_host() {
        if args.project.is_some() {
            return Err(Failure::usage("--project is for directories; --only is for hosts"));
        }
        return Box::pin(hosts::run(app, args)).await;
    }
    if !args.only.is_empty() {
        return Err(Failure::usage("--only is for hosts; --project is for directories"));
    }
    let mut session = app.session().await?;
    let mut folder = Folder::open(&args.directory())?;
    let did = session.call::<api::Whoami>(Nothing {}).await?.did;
    belongs(&mut folder, &args, &did)?;
    if !args.watch {
        let sum = pass(&mut session, &mut folder).await?;
        app.out.either(&sum, |sum| show(app, sum))?;
        return ended(&sum);
    }
    tokio::select! {
        ended = follow(app, &mut session, &mut folder) => ended,
        () = interrupted() => Ok(()),
    }
}

/// A directory belongs to one vault, and to one project if one was named.
fn belongs(folder: &mut Folder, args: &Args, did: &str) -> Result {
    let place = &args.place;
    let state = &mut folder.state;
    if state.vault.is_empty() {
        state.vault = did.to_owned();
        state.project.clone_from(&args.project);
    }
    if state.vault != did {
        return Err(Failure::new(Exit::Conflict, format!("{place} is kept for another vault"))
            .hint("name another directory"));
    }
    if args.project.is_some() && args.project != state.project {
        return Err(Failure::new(Exit::Conflict, format!("{place} is kept for another project"))
            .hint("name another directory"));
    }
    Ok(())
}

async fn follow(app: &App, session: &mut Session<'_>, folder: &mut Folder) -> Result {
    loop {
        let mut events = session.watch(None).await?;
        let before = folder.pulse();
        let sum = pass(session, folder).await?;
        if !sum.is_quiet() {
            if app.out.json { app.out.row(&sum)? } else { show(app, &sum)? }
        }
        // What was written here must not hide what somebody else changed meanwhile.
        let mut resting = sum.written + sum.removed == 0;
        while resting {
            resting = tokio::select! {
                event = events.next() => {
                    if !matches!(event, Some(Ok(_))) {
                        tokio::time::sleep(LOOK).await;
                    }
                    false
                }
                () = tokio::time::sleep(LOOK) => before == folder.pulse(),
            };
        }
        tokio::time::sleep(REST).await;
    }
}

/// Brings both sides in step, once: first what files say, then what the vault says.
async fn pass(session: &mut Session<'_>, folder: &mut Folder) -> Result<Sum> {
    let mut sum = Sum::default();
    let vault = listed(session, folder, &mut sum).await?;
    let (seen, wrong) = folder.scan()?;
    sum.problems.extend(wrong.into_iter().map(|(item, reason)| Skipped { item, reason }));
    let moved = inbound(session, folder, &vault, &seen, &mut sum).await?;
    // What could not be taken over stays as it is.
    let unread: Vec<String> = sum.problems.iter().map(|one| one.item.clone()).collect();
    folder.save()?;
    let vault = match moved {
        true => listed(session, folder, &mut Sum::default()).await?,
        false => vault,
    };
    outbound(folder, &vault, &unread, &mut sum)?;
    folder.save()?;
    Ok(sum)
}

/// The records that stand now, by their memory.
async fn listed(
    session: &mut Session<'_>,
    folder: &Folder,
    sum: &mut Sum,
) -> Result<BTreeMap<String, Entry>> {
    let scope = ScopeRule { project: folder.state.project.clone(), ..ScopeRule::default() };
    let filter = Filter { scope, ..Filter::default() };
    let mut pages = Pages::new(request(&filter, "standing", true));
    let mut vault = BTreeMap::new();
    while let Some(entries) = pages.next(session).await? {
        for entry in entries {
            if stays_inside(&entry.record) {
                sum.kept_inside += 1;
            } else {
                vault.insert(entry.memory.clone(), entry);
            }
        }
    }
    sum.kept_inside += pages.kept;
    Ok(vault)
}

/// Whether consent lets a record out only in part, or not at all.
fn stays_inside(record: &Object) -> bool {
    let Some(consent) = record.get("consent") else { return false };
    let redacts = consent["redact"].as_array().is_some_and(|paths| !paths.is_empty());
    redacts || consent["exportable"] == false
}

fn paired<'a>(
    folder: &Folder,
    vault: &'a BTreeMap<String, Entry>,
    name: &str,
    file: Option<&Seen>,
) -> Option<&'a Entry> {
    match folder.state.files.get(name) {
        Some(known) => known.memory.as_ref().and_then(|memory| vault.get(memory)),
        None => {
            let id = file?.record.get("id")?;
            vault.values().find(|entry| entry.record.get("id") == Some(id))
        }
    }
}

/// Lets the vault know what files say. Returns whether anything of the vault moved.
async fn inbound(
    session: &mut Session<'_>,
    folder: &mut Folder,
    vault: &BTreeMap<String, Entry>,
    seen: &BTreeMap<String, Seen>,
    sum: &mut Sum,
) -> Result<bool> {
    let mut moved = false;
    let unread: Vec<String> = sum.problems.iter().map(|one| one.item.clone()).collect();
    let mut names: Vec<String> = folder.state.files.keys().chain(seen.keys()).cloned().collect();
    names.sort();
    names.dedup();
    for name in names.into_iter().filter(|name| !unread.contains(name)) {
        let file = seen.get(&name);
        let entry = paired(folder, vault, &name, file);
        let known = folder.state.files.get(&name).cloned();
        let step = step(known.as_ref(), file, entry);
        if let Some(reason) = file.and_then(|file| misread(step, known.as_ref(), file, entry)) {
            sum.problems.push(Skipped { item: name, reason });
            continue;
        }
        let done = match (step, file) {
            (Step::TakeIn, Some(file)) => {
                moved = true;
                take_in(session, &name, file).await.map(|known| {
                    sum.taken_in += 1;
                    Some(known)
                })
            }
            (Step::Revise | Step::Propose, Some(file)) => {
                moved = true;
                let ask = step == Step::Propose;
                change(session, known.as_ref(), file, entry, ask, sum).await.map(Some)
            }
            (Step::ProposeForgetting, None) => {
                let forgotten = forget(session, known.as_ref(), entry).await;
                forgotten.map(|known| {
                    sum.proposed += 1;
                    Some(known)
                })
            }
            (Step::Wait, _) => {
                let known = known.clone().unwrap_or_default();
                waited(session, known, sum).await.map(Some)
            }
            (Step::Drop, _) => Ok(None),
            _ => continue,
        };
        match done {
            Ok(Some(known)) => _ = folder.state.files.insert(name, known),
            Ok(None) => _ = folder.state.files.remove(&name),
            Err(failure) if matches!(failure.exit, Exit::Unreachable | Exit::NotAuthorised) => {
                return Err(failure.at(name));
            }
            Err(failure) => {
                sum.problems.push(Skipped { item: name, reason: failure.message });
            }
        }
    }
    Ok(moved)
}

/// Why a file that changed cannot be taken over without losing what a person wrote there.
fn misread(
    step: Step,
    known: Option<&Known>,
    file: &Seen,
    entry: Option<&Entry>,
) -> Option<String> {
    let vault = entry.map(|entry| &entry.record);
    let changes = match step {
        Step::TakeIn | Step::Revise | Step::Propose => true,
        Step::Settle => false,
        Step::Rest
        | Step::Wait
        | Step::Drop
        | Step::Write
        | Step::Remove
        | Step::ProposeForgetting => return None,
    };
    if let Some(member) = folder::unknown(&file.record, vault).filter(|_| changes) {
        return Some(format!("{member} is no member of a record and would be lost"));
    }
    folder::overreach(known, file, vault)
        .map(|member| format!("{member} cannot be changed in a file"))
}

fn step(known: Option<&Known>, file: Option<&Seen>, entry: Option<&Entry>) -> Step {
    let record = entry.map(|entry| files::fingerprint(&entry.record));
    let same = match (file, entry) {
        (Some(file), Some(entry)) => folder::same(&file.record, &entry.record),
        _ => false,
    };
    folder::decide(known, file.map(|file| file.print.as_str()), record.as_deref(), same)
}

async fn take_in(session: &mut Session<'_>, name: &str, file: &Seen) -> Result<Known> {
    let fixed = folder::fixed_print(&file.record);
    let known = Known { file: file.print.clone(), fixed, ..Known::default() };
    if file.record.contains_key("id") {
        let now = session.now();
        let did = session.call::<api::Whoami>(Nothing {}).await?.did;
        let (items, refused) = files::items(std::slice::from_ref(&file.record), &did, now);
        if let Some((_, error)) = refused.into_iter().next() {
            return Err(Failure::usage(error.to_string()));
        }
        let done =
            session.change::<api::Import>(input::Import { items, dry_run: DryRun::No }).await?;
        if let Some((_, reason)) = done.rejected.into_iter().next() {
            return Err(Failure::usage(reason));
        }
        // Merged into another memory, held, or known and forgotten: the file has none here.
        let memory = done.memories.first().map(ToString::to_string);
        return Ok(Known { memory, ..known });
    }
    let mut record = file.record.clone();
    let scope = record.entry("scope").or_insert_with(|| json!({}));
    if scope.get("owner").is_none() {
        scope["owner"] = "owner".into();
    }
    record.entry("kind").or_insert_with(|| "semantic".into());
    record.entry("provenance").or_insert_with(|| {
        json!({"actor": "owner", "actor_kind": "user", "method": "file", "source": {"ref": name}})
    });
    let answer = session.ump("remember", &json!({"record": record})).await?;
    let created = answer["result"] == "created";
    let memory = match (created, answer["id"].as_str()) {
        (true, Some(id)) => Some(session.memory_of(id).await?),
        _ => None,
    };
    Ok(Known { memory, ..known })
}

/// Takes over what a file changed, or proposes it.
async fn change(
    session: &mut Session<'_>,
    known: Option<&Known>,
    file: &Seen,
    entry: Option<&Entry>,
    ask: bool,
    sum: &mut Sum,
) -> Result<Known> {
    let before = known.cloned().unwrap_or_default();
    let answer = match entry {
        Some(entry) => {
            let patch = folder::patch(&file.record, &entry.record).map_err(|member| {
                Failure::usage(format!("{member} cannot be changed in a file"))
            })?;
            let input = json!({"id": entry.record.get("id"), "patch": patch, "approval": ask});
            session.ump("revise", &input).await?
        }
        None => {
            let mut record = file.record.clone();
            for derived in ["id", "integrity", "supersedes", "superseded_by", "time"] {
                record.shift_remove(derived);
            }
            session.ump("remember", &json!({"record": record, "approval": ask})).await?
        }
    };
    let hold = answer["reason"].as_str().and_then(|why| why.strip_prefix("pending_approval:"));
    let memory = entry.map(|entry| entry.memory.clone()).or(before.memory);
    let fixed = match before.fixed.is_empty() {
        true => folder::fixed_print(&file.record),
        false => before.fixed,
    };
    let record = entry.map_or(before.record, |entry| files::fingerprint(&entry.record));
    match hold {
        Some(hold) => {
            sum.proposed += 1;
            let proposed = Proposed { file: Some(file.print.clone()), hold: hold.to_owned() };
            Ok(Known { memory, file: before.file, record, fixed, proposed: Some(proposed) })
        }
        None => {
            sum.revised += 1;
            // The vault's new record differs from the one noted, so the file is written anew.
            Ok(Known { memory, file: file.print.clone(), record, fixed, proposed: None })
        }
    }
}

async fn forget(
    session: &mut Session<'_>,
    known: Option<&Known>,
    entry: Option<&Entry>,
) -> Result<Known> {
    let id = entry.and_then(|entry| entry.record.get("id")).cloned().unwrap_or_default();
    let input = json!({"id": id, "reason": "its file was removed", "approval": true});
    let answer = session.ump("forget", &input).await?;
    let hold = answer["reason"].as_str().and_then(|why| why.strip_prefix("pending_approval:"));
    let proposed = hold.map(|hold| Proposed { file: None, hold: hold.to_owned() });
    Ok(Known { proposed, ..known.cloned().unwrap_or_default() })
}

/// Looks at what waits. What was turned down is no longer proposed; what was approved shows as
/// a change of the vault.
async fn waited(session: &mut Session<'_>, mut known: Known, sum: &mut Sum) -> Result<Known> {
    let Some(proposed) = &known.proposed else { return Ok(known) };
    let id: HoldId = proposed.hold.parse().map_err(Failure::from)?;
    let state = match session.call::<api::ShowHold>(input::OneHold { hold: id }).await {
        Ok(case) => case.hold.state,
        Err(failure) if failure.exit == Exit::NotFound => HoldState::Rejected,
        Err(failure) => return Err(failure),
    };
    match state {
        HoldState::Pending => sum.waiting += 1,
        // A removed file comes back when its memory stays; a changed one stays as it is.
        HoldState::Approved | HoldState::Rejected | HoldState::Expired => match &proposed.file {
            None => {
                known.proposed = None;
                known.record.clear();
            }
            Some(_) => sum.waiting += 1,
        },
    }
    Ok(known)
}

/// Writes down what the vault says.
fn outbound(
    folder: &mut Folder,
    vault: &BTreeMap<String, Entry>,
    unread: &[String],
    sum: &mut Sum,
) -> Result {
    let (seen, _) = folder.scan()?;
    let mut names: BTreeMap<String, Option<String>> =
        seen.keys().chain(folder.state.files.keys()).map(|name| (name.clone(), None)).collect();
    let mut placed: Vec<String> = Vec::new();
    for (name, memory) in &mut names {
        if let Some(entry) = paired(folder, vault, name, seen.get(name)) {
            *memory = Some(entry.memory.clone());
            placed.push(entry.memory.clone());
        }
    }
    for entry in vault.values().filter(|entry| !placed.contains(&entry.memory)) {
        let mut name = files::file_name(&entry.record);
        if names.contains_key(&name) || unread.contains(&name) {
            name = format!("{}.ump.md", entry.memory);
        }
        names.insert(name, Some(entry.memory.clone()));
    }
    for (name, memory) in names.iter().filter(|(name, _)| !unread.contains(name)) {
        let entry = memory.as_ref().and_then(|memory| vault.get(memory));
        let (file, known) = (seen.get(name), folder.state.files.get(name).cloned());
        match (step(known.as_ref(), file, entry), entry) {
            (Step::Write | Step::Settle, Some(entry)) => {
                let before = file.map(|file| file.print.clone());
                if let Some(print) = folder.put(name, &entry.record, file)? {
                    if before.as_ref() != Some(&print) {
                        sum.written += 1;
                    }
                    let memory = Some(entry.memory.clone());
                    let fixed = folder::fixed_print(&entry.record);
                    let (record, file) = (print.clone(), print);
                    let known = Known { memory, file, record, fixed, proposed: None };
                    folder.state.files.insert(name.clone(), known);
                }
            }
            (Step::Remove, _) => {
                if let Some(file) = file
                    && folder.remove(name, file)?
                {
                    sum.removed += 1;
                    folder.state.files.remove(name);
                }
            }
            (Step::Drop, _) => _ = folder.state.files.remove(name),
            (Step::Rest, _) => sum.unchanged += 1,
            _ => {}
        }
    }
    Ok(())
}

fn show(app: &App, sum: &Sum) -> Result {
    let mut table = Table::new(&["FILES", ""]);
    let rows = [
        (sum.unchanged, "in step", GOOD),
        (sum.written, "written from the vault", GOOD),
        (sum.removed, "removed: their memories were forgotten", GOOD),
        (sum.taken_in, "new, taken into the vault", GOOD),
        (sum.revised, "changed, taken into the vault", GOOD),
        (sum.proposed, "proposed: yore review list", WARN),
        (sum.waiting, "wait for a decision, or were turned down", WARN),
        (sum.kept_inside, "memories without a file, as consent says", WARN),
        (sum.problems.len() as u64, "with problems", WARN),
    ];
    for (number, what, style) in rows {
        if number > 0 || what == "in step" {
            table.push([styled(number.to_string(), style), cell(what)]);
        }
    }
    app.out.table(&table)?;
    for problem in &sum.problems {
        app.out.line(format!("{}: {}", problem.item, problem.reason))?;
    }
    Ok(())
}

fn ended(sum: &Sum) -> Result {
    if sum.problems.is_empty() {
        return Ok(());
    }
    let what = crate::output::count(sum.problems.len(), "file has", "files have");
    Err(Failure::failed(format!("{what} problems")).hint("the others are in step; mend these"))
}

impl Session<'_> {
    /// Returns the memory that a record is of.
    async fn memory_of(&mut self, id: &str) -> Result<String> {
        let reference = api::Reference::Version(yore_ump::id::version_of(id));
        let memory = self.call::<api::Get>(input::Get { reference }).await?;
        Ok(memory.head.memory.to_string())
    }
}
