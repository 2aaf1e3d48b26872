//! What an import reads: files found below what was named, each known by what it holds.
//!
//! A form is told by content first and by name only where the content does not say. A new form
//! is one more arm of [`form`], and one more way to make items in the import.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Stdin};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use yore_ump::files::{self, Format, Source};

use crate::failure::{Failure, Result};

/// What a file that was named is, as far as the forms below tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// An export of ours, or portable records.
    Own,
    /// Notes that people wrote.
    Notes,
    /// Something else.
    No,
}

/// How much of a file is looked at to tell its form.
const HEAD: usize = 64 << 10;
/// How deep directories are followed.
const DEPTH: usize = 32;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Items of an export of ours, one a line.
    Items,
    /// Plain text, one memory a line.
    Lines,
    /// Portable records.
    Records(Format),
    /// Notes that people wrote for other tools.
    Notes(Source),
}

/// A file that will be read.
#[derive(Debug)]
pub(crate) struct Found {
    /// What it is called from where the import was pointed at.
    pub(crate) name: String,
    /// What it holds.
    pub(crate) form: Form,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Path(PathBuf),
    Input(BufReader<Stdin>),
}

impl Found {
    /// Opens it.
    pub(crate) fn open(self) -> Result<Box<dyn BufRead>> {
        match self.place {
            Place::Input(input) => Ok(Box::new(input)),
            Place::Path(path) => {
                let file = File::open(&path).map_err(Failure::file(path.display()))?;
                Ok(Box::new(BufReader::new(file)))
            }
        }
    }

    /// Reads it whole, up to so many bytes.
    pub(crate) fn text(self, most: usize) -> Result<String, String> {
        let mut text = Vec::new();
        let reader = self.open().map_err(|failure| failure.message)?;
        let read = reader.take(most as u64 + 1).read_to_end(&mut text);
        read.map_err(|error| error.to_string())?;
        if text.len() > most {
            return Err(format!("larger than {} KiB", most >> 10));
        }
        String::from_utf8(text)
            .map_err(|error| format!("not UTF-8 text: byte {}", error.utf8_error().valid_up_to()))
    }
}

/// Something that is not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Skipped {
    /// What it is called.
    pub(crate) item: String,
    /// Why.
    pub(crate) reason: String,
}

/// All that was found.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// What will be read.
    pub(crate) found: Vec<Found>,
    /// What will not.
    pub(crate) skipped: Vec<Skipped>,
    /// Memories that somebody pasted from a chat, which the reader of exports knows.
    pub(crate) pasted: Vec<PathBuf>,
}

impl Walk {
    /// Looks at what was named. A file that was named itself and has no known form is a
    /// failure; one that merely lies in a directory is passed over.
    pub(crate) fn of(paths: &[PathBuf], lines: bool) -> Result<Self> {
        let mut walk = Self::default();
        for path in paths {
            if path.as_os_str() == "-" {
                walk.input(lines)?;
                continue;
            }
            let about = std::fs::metadata(path).map_err(Failure::file(path.display()))?;
            if about.is_dir() {
                walk.directory(path, path, path.join(".obsidian").is_dir(), DEPTH)?;
                continue;
            }
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            let beside = path.parent().is_some_and(|parent| parent.join(".obsidian").is_dir());
            let form = if lines { Ok(Form::Lines) } else { form(&name, &head(path)?, beside) };
            let form = form.map_err(|reason| unknown(&path.display().to_string(), &reason))?;
            walk.found.push(Found { name, form, place: Place::Path(path.clone()) });
        }
        Ok(walk)
    }

    fn input(&mut self, lines: bool) -> Result {
        let name = "standard input";
        let mut input = BufReader::with_capacity(HEAD, std::io::stdin());
        let form = if lines {
            Form::Lines
        } else {
            let head = input.fill_buf().map_err(Failure::file(name))?;
            form("-", head, false).map_err(|reason| unknown(name, &reason))?
        };
        self.found.push(Found { name: name.to_owned(), form, place: Place::Input(input) });
        Ok(())
    }

    fn directory(&mut self, root: &Path, at: &Path, obsidian: bool, depth: usize) -> Result {
        let mut entries: Vec<_> = std::fs::read_dir(at)
            .and_then(Iterator::collect)
            .map_err(Failure::file(at.display()))?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let plain = entry.file_name().to_string_lossy().into_owned();
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            let skip = |reason: &str| Skipped { item: name.clone(), reason: reason.to_owned() };
            // A link may lead outside of what was named, or round in circles.
            let kind = entry.file_type().map_err(Failure::file(path.display()))?;
            if kind.is_symlink() {
                self.skipped.push(skip("a link"));
            } else if kind.is_dir() {
                if files::is_skipped(&plain) || plain.starts_with('.') {
                    continue;
                }
                if depth == 0 {
                    self.skipped.push(skip("too many directories inside one another"));
                    continue;
                }
                self.directory(
                    root,
                    &path,
                    obsidian || path.join(".obsidian").is_dir(),
                    depth - 1,
                )?;
            } else if !plain.starts_with('.') {
                let told = head(&path).map_err(|failure| failure.message).and_then(|head| {
                    if is_pasted(&head) {
                        Ok(None)
                    } else {
                        form(&plain, &head, obsidian).map(Some)
                    }
                });
                match told {
                    Ok(None) => self.pasted.push(path),
                    Ok(Some(form)) => {
                        self.found.push(Found { name, form, place: Place::Path(path) })
                    }
                    Err(reason) => self.skipped.push(skip(&reason)),
                }
            }
        }
        Ok(())
    }
}

/// Tells what a file is that was named; a directory is not looked into.
pub(crate) fn known(path: &Path) -> Option<Known> {
    let head = head(path).ok()?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    Some(match form(&name, &head, false) {
        Ok(Form::Records(Format::Json)) if !names_record(&head) => Known::No,
        Ok(Form::Items | Form::Lines | Form::Records(_)) => Known::Own,
        Ok(Form::Notes(_)) => Known::Notes,
        Err(_) => Known::No,
    })
}

/// Whether a file that was named is a zip.
pub(crate) fn is_zip(path: &Path) -> bool {
    head(path).is_ok_and(|head| head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06"))
}

/// Whether a file begins with a line as `[2026-03-01] - text`: JSON begins in no such way.
fn is_pasted(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let line = text.trim_start_matches('\u{feff}').trim_start().lines().next().unwrap_or_default();
    let line = line.trim_start_matches(['-', '*', ' ']);
    let parts = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    parts.is_some_and(|(date, said)| {
        !date.contains(['"', '{', '[']) && said.trim_start().starts_with(['-', '–', '—'])
    })
}

/// Whether JSON has the member that every record has.
fn names_record(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    text.match_indices("\"ump\"")
        .any(|(at, name)| text[at + name.len()..].trim_start().starts_with(':'))
}

fn unknown(name: &str, reason: &str) -> Failure {
    Failure::usage(format!("{name}: {reason}")).hint(
        "yore import reads exports of yore and of other platforms, UMP records and Markdown; \
         --lines takes plain text",
    )
}

fn head(path: &Path) -> Result<Vec<u8>> {
    let failed = || Failure::file(path.display());
    let mut head = Vec::new();
    let file = File::open(path).map_err(failed())?;
    file.take(HEAD as u64).read_to_end(&mut head).map_err(failed())?;
    Ok(head)
}

/// Tells what a file holds from how it begins, and from its name where that does not say.
fn form(name: &str, head: &[u8], obsidian: bool) -> Result<Form, String> {
    if head.starts_with(b"PK\x03\x04") {
        return Err("a zip that holds no known export".to_owned());
    }
    let text = String::from_utf8_lossy(head);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let begins = text.trim_start();
    if is_pasted(head) {
        return Err("memories pasted from a chat".to_owned());
    }
    if begins.starts_with('[') {
        return Ok(Form::Records(Format::Json));
    }
    if begins.starts_with('{') {
        return object(begins);
    }
    if begins.starts_with("---") && (name.ends_with(".ump.md") || files::has_record(begins)) {
        return Ok(Form::Records(Format::Markdown));
    }
    match Source::of(name, obsidian) {
        Some(source) => Ok(Form::Notes(source)),
        None if begins.is_empty() => Err("empty".to_owned()),
        None => Err("not a form that is read".to_owned()),
    }
}

/// A file that begins with an object: many of them line by line, or one that spans lines.
fn object(begins: &str) -> Result<Form, String> {
    let (line, rest) = begins.split_once('\n').unwrap_or((begins, ""));
    match serde_json::from_str::<Value>(line) {
        Ok(value) if value.get("item").is_some() => Ok(Form::Items),
        Ok(value) if files::is_record(&value) => Ok(Form::Records(Format::Ndjson)),
        Ok(_) => Err("JSON, but neither records nor an export of yore".to_owned()),
        Err(_) if line.starts_with("{\"item\":") => Ok(Form::Items),
        Err(_) if line.trim() == "{" => Ok(Form::Records(Format::Json)),
        // A line that is longer than what was looked at.
        Err(_) if rest.is_empty() && line.contains("\"ump\"") => Ok(Form::Records(Format::Ndjson)),
        Err(_) => Err("not JSON that can be read".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_by_content_and_then_by_name() {
        let record = r#"{"ump":"1.0","id":"urn:ump:a","kind":"semantic"}"#;
        let cases: [(&str, String, Option<Form>); 14] = [
            ("x", r#"{"item":"memory","versions":[]}"#.into(), Some(Form::Items)),
            ("x.json", format!("{record}\n{record}\n"), Some(Form::Records(Format::Ndjson))),
            ("x", format!(" \n[{record}]"), Some(Form::Records(Format::Json))),
            ("x", "{\n  \"ump\": \"1.0\"".into(), Some(Form::Records(Format::Json))),
            (
                "x.md",
                "---\nump: \"1.0\"\nkind: semantic\n---\nt".into(),
                Some(Form::Records(Format::Markdown)),
            ),
            (
                "x.ump.md",
                "---\nkind: semantic\n---\nt".into(),
                Some(Form::Records(Format::Markdown)),
            ),
            ("x.md", "---\ntags: a\n---\nt".into(), Some(Form::Notes(Source::Markdown))),
            ("CLAUDE.md", "# Build".into(), Some(Form::Notes(Source::Claude))),
            ("x", format!("{{\"item\":\"memory\",\"x\":\"{}", "y".repeat(9000)), Some(Form::Items)),
            ("x.txt", "tea".into(), None),
            ("x.txt", "[2026-03-01] - likes tea\n[unknown] - has a cat".into(), None),
            ("x.zip", "PK\u{3}\u{4}".into(), None),
            ("x.json", r#"{"name":"package"}"#.into(), None),
            ("x", String::new(), None),
        ];
        for (name, text, wanted) in cases {
            assert_eq!(form(name, text.as_bytes(), false).ok(), wanted, "{name}: {text}");
        }
        assert_eq!(form("x.md", b"t", true), Ok(Form::Notes(Source::Obsidian)));
    }
}
