//! Reading what people wrote for other tools: `CLAUDE.md`, `AGENTS.md`, Obsidian, plain Markdown.
//!
//! A file is cut at its first three levels of headings; each part becomes a draft that is marked
//! as a candidate, because nobody has said yet that it still holds.

use serde_json::{Value, json};
use yore_canon::hash::Blake3;
use yore_domain::kind::Kind;
use yore_domain::memory::{Draft, Relation, Status, Version};
use yore_domain::provenance::{ActorKind, Evidence, Provenance};
use yore_domain::{MemoryId, Result, Timestamp};
use yore_engine::Item;

use super::front;
use crate::wire::Object;

/// The largest file that is read.
pub const NOTE_BYTES: usize = 512_000;
/// Directories whose files are nobody's memory.
const SKIPPED: [&str; 6] = ["node_modules", ".git", "dist", "target", ".obsidian", ".trash"];

/// What sort of notes a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Instructions for Claude Code.
    Claude,
    /// Instructions for any agent.
    Agents,
    /// A note of an Obsidian vault.
    Obsidian,
    /// Any other Markdown.
    Markdown,
}

impl Source {
    /// Says what a file holds, by its path and by whether it lies in an Obsidian vault.
    #[must_use]
    pub fn of(path: &str, in_obsidian: bool) -> Option<Self> {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_ascii_lowercase();
        match name.as_str() {
            "claude.md" | "claude.local.md" => Some(Self::Claude),
            "agents.md" => Some(Self::Agents),
            name if name.ends_with(".md") || name.ends_with(".markdown") => {
                Some(if in_obsidian { Self::Obsidian } else { Self::Markdown })
            }
            _ => None,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Agents => "agents",
            Self::Obsidian => "obsidian",
            Self::Markdown => "markdown",
        }
    }

    fn kind(self, heading: &str) -> Kind {
        if matches!(self, Self::Claude | Self::Agents) {
            return Kind::Procedural;
        }
        let heading = heading.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| heading.contains(word));
        if says(&["preference", "identity"]) {
            Kind::Identity
        } else if says(&["incident", "history"]) {
            Kind::Episodic
        } else {
            Kind::Semantic
        }
    }

    const fn confidence(self) -> f64 {
        match self {
            Self::Claude | Self::Agents => 0.75,
            Self::Obsidian | Self::Markdown => 0.55,
        }
    }
}

/// Whether a directory is passed over.
#[must_use]
pub fn is_skipped(directory: &str) -> bool {
    SKIPPED.contains(&directory)
}

/// Reads a file. `path` is how the file is called from the directory that is imported.
pub fn drafts(path: &str, text: &str, source: Source) -> Result<Vec<Draft>> {
    if text.len() > NOTE_BYTES {
        return Err(yore_domain::Error::too_large("the file", format!("{NOTE_BYTES} bytes")));
    }
    // Front matter that is not readable is still not text.
    let rest = front::cut(text).map_or(text, |(_, rest)| rest);
    let members = front::split(text).ok().flatten().map(|(members, _)| members).unwrap_or_default();
    let tags = tags(&members);
    let drafts = sections(rest)
        .into_iter()
        .filter(|section| !section.text.trim().is_empty())
        .enumerate()
        .map(|(at, section)| draft(path, source, &section, &tags, at))
        .collect();
    Ok(drafts)
}

/// Reads a file as what the engine imports. The same section of the same file is the same memory
/// each time, so that reading it again adds nothing.
pub fn notes(
    path: &str,
    text: &str,
    source: Source,
    change: impl Fn(&mut Draft),
    now: Timestamp,
) -> Result<Vec<Item>> {
    let made = |mut draft: Draft| {
        let said = format!("{path}\0{}", draft.content.body.text);
        let mut id = [0; 16];
        id.copy_from_slice(&Blake3::of(said).as_bytes()[..16]);
        change(&mut draft);
        let version = Version::first(MemoryId::from_bytes(id), draft, now, None);
        Item::Memory { versions: vec![version] }
    };
    Ok(drafts(path, text, source)?.into_iter().map(made).collect())
}

struct Section<'a> {
    heading: &'a str,
    text: String,
}

/// Cuts at headings of the first three levels, except inside code.
fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections = vec![Section { heading: "", text: String::new() }];
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_) | None, _) => {}
        }
        let heading = heading(line).filter(|_| fence.is_none());
        if let Some(heading) = heading {
            sections.push(Section { heading, text: String::new() });
        } else if let Some(section) = sections.last_mut() {
            section.text.push_str(line);
            section.text.push('\n');
        }
    }
    sections
}

fn heading(line: &str) -> Option<&str> {
    let marks = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = line.get(marks..)?;
    let heading = rest.trim().trim_end_matches('#').trim_end();
    ((1..=3).contains(&marks) && rest.starts_with(' ') && !heading.is_empty()).then_some(heading)
}

fn draft(path: &str, source: Source, section: &Section<'_>, tags: &[String], at: usize) -> Draft {
    let text = section.text.trim();
    let text = match section.heading {
        "" => text.to_owned(),
        heading => format!("{heading}\n\n{text}"),
    };
    let mut draft = Draft::new(source.kind(section.heading), text);
    let place = match slug(section.heading) {
        slug if slug.is_empty() => path.to_owned(),
        slug => format!("{path}#{slug}"),
    };
    let content = &mut draft.content;
    let mut structured = json!({"source_kind": source.word(), "source_path": path});
    if !section.heading.is_empty() {
        structured["heading"] = section.heading.into();
    }
    content.body.structured = structured.as_object().cloned();
    content.lifecycle.confidence = Some(source.confidence());
    content.tags = tags.to_vec();
    content.provenance = Provenance {
        actor: "import".to_owned(),
        actor_kind: ActorKind::Import,
        method: format!("filesystem:{}", source.word()),
        source: Some(place.clone()),
        provider: Some(source.word().to_owned()),
        evidence: vec![Evidence {
            reference: format!("file:{place}"),
            weight: Some(if at == 0 { 1.0 } else { 0.8 }),
        }],
        ..Provenance::default()
    };
    if source == Source::Obsidian {
        content.relations = links(&section.text);
    }
    draft.status = Status::Candidate;
    draft
}

/// The notes a note links to, once each.
fn links(text: &str) -> Vec<Relation> {
    let mut links: Vec<Relation> = Vec::new();
    for rest in text.split("[[").skip(1) {
        let Some((inside, _)) = rest.split_once("]]") else { continue };
        let name = inside.split(['|', '#']).next().unwrap_or_default().trim();
        if name.is_empty() || name.len() > 200 || name.contains('\n') {
            continue;
        }
        let link = Relation { kind: "about".to_owned(), target: format!("entity:{name}") };
        if !links.contains(&link) && links.len() < 64 {
            links.push(link);
        }
    }
    links
}

fn tags(members: &Object) -> Vec<String> {
    let tags: Vec<&str> = match members.get("tags") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => text.split([',', ' ']).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    };
    tags.into_iter()
        .map(|tag| tag.trim().trim_start_matches('#'))
        .filter(|tag| !tag.is_empty() && tag.len() <= 256)
        .take(64)
        .map(str::to_owned)
        .collect()
}

fn slug(heading: &str) -> String {
    let mut slug = String::new();
    for c in heading.to_lowercase().chars() {
        if c.is_alphanumeric() {
            slug.push(c);
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}
