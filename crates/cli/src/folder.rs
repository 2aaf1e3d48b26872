//! A directory of records that is kept in step with a vault: what was seen last, what lies there
//! now, and what follows from the two.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use yore_ump::files::{self, Format};
use yore_ump::wire::Object;

use crate::failure::{Failure, Result};
use crate::file;

/// Where the directory's own notes lie.
const NOTES: &str = ".yore-sync.json";
/// How records end.
const ENDING: &str = ".ump.md";
/// The largest file that is read.
const FILE_BYTES: u64 = 2 << 20;
/// What a record says about itself rather than about the world.
const DERIVED: [&str; 6] = ["ump", "id", "supersedes", "superseded_by", "integrity", "provenance"];
/// What only the vault says: a file that says otherwise is not understood.
const FIXED: [&str; 4] = ["id", "supersedes", "superseded_by", "provenance"];
/// The members of a record, and what those may hold that hold others.
const MEMBERS: [(&str, &[&str]); 13] = [
    ("ump", &[]),
    ("id", &[]),
    ("kind", &[]),
    ("body", &["text", "structured"]),
    ("scope", &["owner", "user", "project", "agent", "session", "visibility"]),
    ("time", &["created", "observed", "valid_from", "valid_to"]),
    ("lifecycle", &["confidence", "salience", "decay", "status"]),
    ("supersedes", &[]),
    ("superseded_by", &[]),
    ("relations", &[]),
    ("provenance", &["actor", "actor_kind", "method", "source", "evidence"]),
    ("consent", &["retention", "exportable", "redact"]),
    ("integrity", &[]),
];

/// What is remembered about a directory between two runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// The form of these notes.
    pub(crate) form: u32,
    /// The vault's DID.
    pub(crate) vault: String,
    /// Only memories of this project are kept here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<String>,
    /// What is known of each file.
    pub(crate) files: BTreeMap<String, Known>,
}

/// What is known of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// Its memory; absent where the vault had said the same under another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<String>,
    /// The file as it was when both were in step.
    pub(crate) file: String,
    /// The record as it was then.
    pub(crate) record: String,
    /// What the file said then that only the vault says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) fixed: String,
    /// What was proposed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proposed: Option<Proposed>,
}

/// A change of a file that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proposed {
    /// The file that was proposed; absent when it was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// The hold that waits.
    pub(crate) hold: String,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Its bytes.
    pub(crate) text: String,
    /// The record it holds, and its fingerprint.
    pub(crate) record: Object,
    /// The record's fingerprint.
    pub(crate) print: String,
}

/// The files of a directory by name, and those that cannot be read with the reason.
type Scanned = (BTreeMap<String, Seen>, Vec<(String, String)>);

/// What is to be done about a file and a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Rest,
    /// It waits for a decision.
    Wait,
    /// Both are gone: nothing is left to know.
    Drop,
    /// The file says what the vault says; the notes are brought up to date.
    Settle,
    /// The file is written from the vault.
    Write,
    /// The file goes, because its memory was forgotten.
    Remove,
    /// The vault takes in a new file.
    TakeIn,
    /// The vault takes over what the file changed.
    Revise,
    /// Both changed, or the file changed what was forgotten: a person decides.
    Propose,
    /// The file is gone: a person decides whether its memory goes, too.
    ProposeForgetting,
}

/// Decides from what was known, what lies there and what the vault says. `same` says that file
/// and vault mean the same.
pub(crate) fn decide(
    known: Option<&Known>,
    file: Option<&str>,
    vault: Option<&str>,
    same: bool,
) -> Step {
    let proposed = known.and_then(|known| known.proposed.as_ref());
    let waits = proposed.is_some_and(|proposed| proposed.file.as_deref() == file);
    match (known, file, vault) {
        (_, None, None) => Step::Drop,
        (None, None, Some(_)) => Step::Write,
        (Some(_), None, Some(_)) if waits => Step::Wait,
        (Some(known), None, Some(now)) if now == known.record && proposed.is_none() => {
            Step::ProposeForgetting
        }
        (Some(_), None, Some(_)) => Step::Write,
        (None, Some(_), None) => Step::TakeIn,
        (Some(known), Some(file), None) if file == known.file => {
            if known.memory.is_some() {
                Step::Remove
            } else {
                Step::Rest
            }
        }
        (Some(_), Some(_), None) if waits => Step::Wait,
        (Some(known), Some(_), None) => {
            if known.memory.is_some() {
                Step::Propose
            } else {
                Step::TakeIn
            }
        }
        (Some(known), Some(file), Some(now)) if file == known.file && now == known.record => {
            Step::Rest
        }
        (_, Some(_), Some(_)) if same => Step::Settle,
        (None, Some(_), Some(_)) => Step::Propose,
        (Some(known), Some(file), Some(_)) if file == known.file => Step::Write,
        (Some(_), Some(_), Some(_)) if waits => Step::Wait,
        // What changes while a person decides is one more question.
        (Some(known), Some(_), Some(now)) if now == known.record && proposed.is_none() => {
            Step::Revise
        }
        (Some(_), Some(_), Some(_)) => Step::Propose,
    }
}

/// Whether two records mean the same.
pub(crate) fn same(one: &Object, other: &Object) -> bool {
    meant(one) == meant(other)
}

/// What a record says about the world.
fn meant(record: &Object) -> Object {
    let mut meant = record.clone();
    meant.retain(|name, _| !DERIVED.contains(&name.as_str()));
    if let Some(Value::Object(time)) = meant.get_mut("time") {
        time.retain(|name, value| name == "valid_to" && !value.is_null());
    }
    meant.retain(|_, value| value.as_object().is_none_or(|members| !members.is_empty()));
    meant
}

/// What of a record only the vault says.
fn fixed(record: &Object) -> Object {
    let mut fixed = record.clone();
    fixed.retain(|name, _| FIXED.contains(&name.as_str()) || name == "time");
    if let Some(Value::Object(time)) = fixed.get_mut("time") {
        time.retain(|name, _| name != "valid_to");
    }
    fixed
}

/// A fingerprint of what of a record only the vault says.
pub(crate) fn fixed_print(record: &Object) -> String {
    files::fingerprint(&fixed(record))
}

/// The name of a member that a person changed in a file, though only the vault says it.
pub(crate) fn overreach(
    known: Option<&Known>,
    file: &Seen,
    vault: Option<&Object>,
) -> Option<String> {
    let own = fixed(&file.record);
    let untouched = match (known, vault) {
        (Some(known), _) if known.file == file.print => true,
        (Some(known), _) if !known.fixed.is_empty() => known.fixed == files::fingerprint(&own),
        // Older notes do not tell which side changed it.
        (Some(known), Some(vault)) if known.record != files::fingerprint(vault) => true,
        (_, Some(vault)) => own == fixed(vault),
        (_, None) => true,
    };
    if untouched {
        return None;
    }
    let vault = vault.map(fixed).unwrap_or_default();
    let inner = |of: &Object, name: &str| of.get("time").and_then(|time| time.get(name)).cloned();
    let times = ["created", "observed", "valid_from"];
    let time = times.into_iter().find(|name| inner(&own, name) != inner(&vault, name));
    let other = FIXED.into_iter().find(|name| own.get(*name) != vault.get(*name));
    let time = time.map(|name| format!("time.{name}"));
    Some(time.or(other.map(str::to_owned)).unwrap_or_else(|| "what only the vault says".to_owned()))
}

/// The name of a member that no record has, and that the vault does not give to this one either.
pub(crate) fn unknown(file: &Object, vault: Option<&Object>) -> Option<String> {
    for (name, value) in file {
        let given = vault.and_then(|vault| vault.get(name));
        let Some((_, inner)) = MEMBERS.iter().find(|(member, _)| member == name) else {
            if given.is_some() {
                continue;
            }
            return Some(name.clone());
        };
        let members = value.as_object().into_iter().flatten().filter(|_| !inner.is_empty());
        let mut odd = members.filter(|(name, _)| {
            !inner.contains(&name.as_str()) && given.and_then(|given| given.get(name)).is_none()
        });
        if let Some((one, _)) = odd.next() {
            return Some(format!("{name}.{one}"));
        }
    }
    None
}

/// What of a file the vault can take over, as a patch; the name of a member that it cannot.
/// When it is true goes with every change: left out, it would be true from now on.
pub(crate) fn patch(file: &Object, vault: &Object) -> Result<Object, String> {
    let times = ["valid_from", "valid_to"].into_iter().filter_map(|name| {
        let of = |record: &Object| record.get("time")?.get(name).cloned();
        Some((name.to_owned(), of(file).or_else(|| of(vault))?))
    });
    let times: Object = times.collect();
    let (file, vault) = (meant(file), meant(vault));
    let mut patch = Object::new();
    for name in file.keys().chain(vault.keys()) {
        if file.get(name) == vault.get(name) {
            continue;
        }
        match (name.as_str(), file.get(name)) {
            ("body" | "lifecycle" | "relations", Some(value)) => {
                patch.insert(name.clone(), value.clone());
            }
            ("relations", None) => {
                patch.insert(name.clone(), Value::Array(Vec::new()));
            }
            // A line that was taken out of the front matter takes nothing out of the vault.
            ("lifecycle", None) | ("time", _) => {}
            _ => return Err(name.clone()),
        }
    }
    if file != vault && !times.is_empty() {
        patch.insert("time".to_owned(), times.into());
    }
    Ok(patch)
}

/// A directory.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What is known of it.
    pub(crate) state: State,
}

impl Folder {
    /// Opens a directory, or makes it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path).map_err(Failure::file(path.display()))?;
        let notes = path.join(NOTES);
        let state = match std::fs::read(&notes) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| {
                Failure::usage(format!("{} is damaged", notes.display()))
                    .hint("remove it; files are then matched with the vault by their ids")
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                State { form: 1, ..State::default() }
            }
            Err(error) => return Err(Failure::file(notes.display())(error)),
        };
        let state: State = state;
        if state.form != 1 {
            return Err(Failure::usage(format!("{} is of a newer yore", notes.display())));
        }
        if let Some(name) = state.files.keys().find(|name| !is_plain(name)) {
            let what = format!("{} names {name:?}, which is no record beside it", notes.display());
            return Err(Failure::usage(what)
                .hint("remove it; files are then matched with the vault by their ids"));
        }
        Ok(Self { path: path.to_owned(), state })
    }

    /// Writes down what is known.
    pub(crate) fn save(&self) -> Result {
        let mut text = serde_json::to_string_pretty(&self.state)
            .map_err(|error| Failure::failed(error.to_string()))?;
        text.push('\n');
        file::write(&self.path.join(NOTES), text.as_bytes())
    }

    /// Reads the records that lie there; those that cannot be read come with the reason.
    pub(crate) fn scan(&self) -> Result<Scanned> {
        let (mut seen, mut wrong) = (BTreeMap::new(), Vec::new());
        let failed = || Failure::file(self.path.display());
        for entry in std::fs::read_dir(&self.path).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.ends_with(ENDING) || name.starts_with('.') {
                continue;
            }
            match read(&entry) {
                Ok(file) => _ = seen.insert(name, file),
                Err(reason) => wrong.push((name, reason)),
            }
        }
        wrong.sort();
        Ok((seen, wrong))
    }

    /// Writes a record, unless the file is no longer what was read. Returns whether it was
    /// written, and the fingerprint it has now.
    pub(crate) fn put(
        &self,
        name: &str,
        record: &Object,
        before: Option<&Seen>,
    ) -> Result<Option<String>> {
        let path = self.path.join(name);
        if !self.is_still(&path, before) {
            return Ok(None);
        }
        let text = files::print(std::slice::from_ref(record), Format::Markdown)?;
        file::write(&path, text.as_bytes())?;
        Ok(Some(files::fingerprint(record)))
    }

    /// Removes a file, unless it is no longer what was read.
    pub(crate) fn remove(&self, name: &str, before: &Seen) -> Result<bool> {
        let path = self.path.join(name);
        if !self.is_still(&path, Some(before)) {
            return Ok(false);
        }
        std::fs::remove_file(&path).map_err(Failure::file(path.display()))?;
        Ok(true)
    }

    fn is_still(&self, path: &Path, before: Option<&Seen>) -> bool {
        match (std::fs::read_to_string(path), before) {
            (Ok(text), Some(before)) => text == before.text,
            (Err(error), None) => error.kind() == std::io::ErrorKind::NotFound,
            (Ok(_), None) | (Err(_), Some(_)) => false,
        }
    }

    /// Says when anything of it changed: names, sizes and times.
    pub(crate) fn pulse(&self) -> Vec<(String, u64, Option<std::time::SystemTime>)> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut pulse: Vec<_> = entries
            .filter_map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                let about = entry.metadata().ok().filter(|_| name.ends_with(ENDING))?;
                Some((name, about.len(), about.modified().ok()))
            })
            .collect();
        pulse.sort();
        pulse
    }
}

/// Whether a name is that of a record in the directory itself, and of nothing elsewhere.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let one = matches!(parts.next(), Some(Component::Normal(part)) if part == name);
    one && parts.next().is_none()
        && !name.contains(['/', '\\', '\0'])
        && !name.starts_with('.')
        && name.ends_with(ENDING)
}

fn read(entry: &std::fs::DirEntry) -> Result<Seen, String> {
    let about = entry.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("not a plain file".to_owned());
    }
    if about.len() > FILE_BYTES {
        return Err("larger than 2 MiB".to_owned());
    }
    let text = std::fs::read_to_string(entry.path()).map_err(|error| error.to_string())?;
    let record = files::parse(&text, Format::Markdown).map_err(|error| error.to_string())?;
    let record = record.into_iter().next().ok_or("it holds no record")?;
    let print = files::fingerprint(&record);
    Ok(Seen { text, record, print })
}

#[cfg(test)]
mod tests;
