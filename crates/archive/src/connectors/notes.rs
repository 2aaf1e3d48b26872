//! Files that tell agents what to know and do: instructions beside code, an agent's own notes,
//! notes of basic-memory, and memories pasted from a chat.

use yore_domain::kind::Facet;

use super::memories::Found;
use crate::connector::{Connector, Sample, Sink};
use crate::source::{File, Source};
use crate::{Result, time};

/// Reads notes and instructions.
#[derive(Debug)]
pub(super) struct Notes;

/// What sort of notes a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// Instructions: one for each item of a list, one for each paragraph.
    Instructions,
    /// One note, with a head of its own.
    Note,
    /// Observations and relations as basic-memory writes them.
    Observations,
    /// `[date] - text`, a line each.
    Pasted,
}

fn sort(file: &File, head: &[u8]) -> Option<Sort> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    let name = file.name();
    let front = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---"));
    if name.ends_with(".md")
        && let Some((front, _)) = front
    {
        if front.contains("permalink:") {
            return Some(Sort::Observations);
        }
        if front.contains("description:") && file.folder().rsplit('/').next() == Some("memory") {
            return Some(Sort::Note);
        }
    }
    let rules = ["CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md", ".cursorrules"];
    if rules.contains(&name) || name.ends_with(".mdc") || name == "copilot-instructions.md" {
        return Some(Sort::Instructions);
    }
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let dated = |line: &str| pasted(line).is_some();
    lines.next().is_some_and(dated).then_some(Sort::Pasted)
}

impl Connector for Notes {
    fn platform(&self) -> &'static str {
        "notes"
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        // Below every form that is told by more than a few words.
        u8::from(sort(sample.file, sample.head).is_some()) * 30
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        for file in files {
            let done = notes(source, file, sink);
            sink.pass(file.path(), None, done)?;
        }
        Ok(())
    }
}

fn notes(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let bytes = source.document(file)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}');
    match sort(file, &bytes) {
        Some(Sort::Pasted) => {
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                let (date, said) = pasted(line).unwrap_or(("", line));
                give(file, sink, "chatgpt", None, said, kind_of(said), time::text(date))?;
            }
            Ok(())
        }
        Some(Sort::Note) => {
            let (front, body) = split_front(text);
            let name = field(front, "name");
            give(file, sink, "claude-code", name, body, Facet::Instruction, file.modified())
        }
        Some(Sort::Observations) => observations(file, sink, text),
        Some(Sort::Instructions) | None => {
            for (heading, said) in items(split_front(text).1) {
                let facet = Facet::Instruction;
                give(file, sink, "notes", heading.as_deref(), &said, facet, file.modified())?;
            }
            Ok(())
        }
    }
}

fn give(
    file: &File,
    sink: &mut Sink<'_>,
    platform: &'static str,
    heading: Option<&str>,
    text: &str,
    facet: Facet,
    created: Option<yore_domain::Timestamp>,
) -> Result<()> {
    if text.trim().is_empty() {
        return Ok(());
    }
    let found = Found {
        platform,
        key: &[file.path(), heading.unwrap_or_default(), text.trim()],
        facet,
        text,
        created,
        source: file.path(),
        native: heading.map(|heading| serde_json::json!({"heading": heading})),
    };
    let mut note = found.note();
    note.draft.content.tags.extend(heading.filter(|h| h.len() <= 64).map(str::to_owned));
    sink.note(file.path(), note)
}

/// Splits `[date] - text`. The date may be unknown.
fn pasted(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().trim_start_matches(['-', '*', ' ']);
    let (date, said) = line.strip_prefix('[')?.split_once(']')?;
    let said = said.trim_start().strip_prefix(['-', '–', '—'])?.trim();
    let known = date == "unknown" || time::text(date).is_some();
    (known && !said.is_empty()).then_some((date, said))
}

fn kind_of(said: &str) -> Facet {
    let said = said.to_lowercase();
    let wants = ["prefers ", "user prefers", "likes ", "wants ", "always ", "never "];
    if wants.iter().any(|word| said.starts_with(word)) { Facet::Preference } else { Facet::Fact }
}

fn split_front(text: &str) -> (&str, &str) {
    let parts = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---"));
    parts.map_or(("", text), |(front, body)| (front, body.trim_start_matches('-').trim()))
}

fn field<'a>(front: &'a str, name: &str) -> Option<&'a str> {
    front.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The items of lists and the paragraphs, each under its heading. Code stays with what it follows.
fn items(text: &str) -> Vec<(Option<String>, String)> {
    let (mut found, mut heading): (Vec<(Option<String>, String)>, Option<String>) =
        (Vec::new(), None);
    let (mut open, mut code) = (false, false);
    for line in text.lines() {
        let trimmed = line.trim_end();
        if trimmed.trim_start().starts_with("```") {
            code = !code;
        }
        let title = trimmed.trim_start_matches('#');
        if !code && title.len() < trimmed.len() && title.starts_with(' ') {
            heading = Some(title.trim().to_owned());
            open = false;
            continue;
        }
        let item = ["- ", "* ", "+ "].iter().find_map(|mark| trimmed.strip_prefix(mark));
        if let Some(item) = item.filter(|_| !code) {
            found.push((heading.clone(), item.to_owned()));
            open = true;
        } else if trimmed.is_empty() && !code {
            open = false;
        } else if open && let Some((_, last)) = found.last_mut() {
            last.push('\n');
            last.push_str(trimmed);
        } else {
            found.push((heading.clone(), trimmed.to_owned()));
            open = true;
        }
    }
    found
}

/// `- [category] text #tag (context)` and `- kind [[Target]]`.
fn observations(file: &File, sink: &mut Sink<'_>, text: &str) -> Result<()> {
    let (front, body) = split_front(text);
    let title = field(front, "title").unwrap_or(file.name()).to_owned();
    let link = field(front, "permalink").unwrap_or_default().to_owned();
    let (mut said, mut links) = (Vec::new(), Vec::new());
    for line in body.lines().filter_map(|line| line.trim_start().strip_prefix("- ")) {
        let category = line.strip_prefix('[').filter(|rest| !rest.starts_with('['));
        if let Some((category, text)) = category.and_then(|rest| rest.split_once("] ")) {
            said.push((category.to_owned(), text.trim().to_owned()));
        } else if let Some((kind, target)) = line.split_once("[[") {
            let target = target.split("]]").next().unwrap_or_default();
            links.push(yore_domain::memory::Relation {
                kind: kind.trim().to_owned(),
                target: format!("entity:{target}"),
            });
        }
    }
    if said.is_empty() {
        said.push(("note".to_owned(), body.trim().to_owned()));
    }
    for (category, observed) in said.into_iter().filter(|(_, text)| !text.is_empty()) {
        let text = format!("{title}: {observed}");
        let found = Found {
            platform: "basic-memory",
            key: &[&link, &category, &observed],
            facet: Facet::Fact,
            text: &text,
            created: file.modified(),
            source: file.path(),
            native: Some(serde_json::json!({"permalink": link, "category": category})),
        };
        let mut note = found.note();
        let words = observed.split_whitespace().filter_map(|word| word.strip_prefix('#'));
        note.draft.content.tags = std::iter::once(category.as_str())
            .chain(words)
            .filter(|tag| !tag.is_empty() && tag.len() <= 64)
            .map(str::to_owned)
            .collect();
        note.draft.content.relations = std::mem::take(&mut links);
        sink.note(file.path(), note)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_fall_into_items_and_paragraphs() {
        let text = "# Title\n\nIntro line\nwraps.\n\n## Build\n\n- Run `a`.\n  more\n- Never b.\n\n```\n# no heading\n```\n";
        let found = items(text);
        let shown: Vec<_> = found.iter().map(|(h, t)| (h.as_deref(), t.as_str())).collect();
        assert_eq!(
            shown,
            [
                (Some("Title"), "Intro line\nwraps."),
                (Some("Build"), "Run `a`.\n  more"),
                (Some("Build"), "Never b."),
                (Some("Build"), "```\n# no heading\n```"),
            ]
        );
    }

    #[test]
    fn pasted_memories_have_a_date_or_say_that_it_is_unknown() {
        assert_eq!(pasted("[2025-11-02] - Keeps bees."), Some(("2025-11-02", "Keeps bees.")));
        assert_eq!(pasted("[unknown] - Short."), Some(("unknown", "Short.")));
        assert_eq!(pasted("[x] - a task"), None);
        assert_eq!(pasted("plain"), None);
    }
}
