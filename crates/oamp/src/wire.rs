//! The protocol's three documents, checked member by member.
//!
//! A document is kept as it was sent: what is checked here is read into [`Entry`], what the
//! model does not keep in the same words stays in its objects. No error repeats a value.

mod model;
mod store;

use serde_json::{Map, Number, Value};
use yore_domain::class::{Governance, Handling, Label, Sensitivity};
use yore_domain::kind::Facet;
use yore_domain::{Error, MemoryId, Result, Span, Timestamp};

pub use model::Model;
pub use store::Store;

/// Members of a document.
pub type Object = Map<String, Value>;

/// How much is demanded of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// A source of a provenance may lack its time, as in the protocol's own announcement.
    #[default]
    Lenient,
    /// Exactly what the schemas say.
    Strict,
}

/// Where an entry stands: in a store it may leave out what the store says for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// By itself.
    Alone,
    /// Among the entries of a store.
    InStore,
}

/// A knowledge entry that passed every check.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The version it states.
    pub version: Option<String>,
    /// Its id.
    pub id: MemoryId,
    /// Whose it is.
    pub user: String,
    /// What it is.
    pub category: Facet,
    /// What it says.
    pub content: String,
    /// How sure it is, as it was written.
    pub confidence: Number,
    /// Where it comes from.
    pub source: Object,
    /// Where else it comes from.
    pub provenance: Option<Object>,
    /// What it is about and how it is to be treated.
    pub governance: Option<Object>,
    /// How it fades.
    pub decay: Option<Object>,
    /// Free words.
    pub tags: Option<Vec<String>>,
    /// Anything.
    pub metadata: Option<Object>,
}

const MEMBERS: [&str; 13] = [
    "oamp_version",
    "type",
    "id",
    "user_id",
    "category",
    "content",
    "confidence",
    "source",
    "provenance",
    "governance",
    "decay",
    "tags",
    "metadata",
];

/// The word for each category with the facets that count as it, its own first.
pub const CATEGORIES: [(&str, &[Facet]); 4] = [
    ("fact", &[Facet::Fact, Facet::Decision, Facet::Summary, Facet::Entity, Facet::Custom]),
    ("preference", &[Facet::Preference, Facet::Instruction]),
    ("pattern", &[Facet::Pattern]),
    ("correction", &[Facet::Correction]),
];

/// Reads an entry.
pub fn entry(document: &Object, standing: Standing, strict: Strictness) -> Result<Entry> {
    only(document, "", &MEMBERS)?;
    let alone = standing == Standing::Alone;
    let version = text(document, "", "oamp_version")?;
    match &version {
        Some(version) => spoken(version)?,
        None if alone => return Err(required("oamp_version")),
        None => {}
    }
    match text(document, "", "type")?.as_deref() {
        Some("knowledge_entry") => {}
        None if !alone => {}
        None => return Err(required("type")),
        Some(_) => return Err(Error::invalid("type", "must be knowledge_entry")),
    }
    let id = text(document, "", "id")?.ok_or_else(|| required("id"))?;
    let category = named(document, "", "category")?;
    let category = category_of(&category).ok_or_else(|| {
        Error::invalid("category", "must be fact, preference, pattern or correction")
    })?;
    let content = text(document, "", "content")?.ok_or_else(|| required("content"))?;
    if content.is_empty() {
        return Err(Error::invalid("content", "must not be empty"));
    }
    let source = object(document, "", "source")?.ok_or_else(|| required("source"))?;
    check_source(&source, "source", &["session_id", "timestamp", "agent_id"], Strictness::Strict)?;
    let provenance = object(document, "", "provenance")?;
    if let Some(provenance) = &provenance {
        check_provenance(provenance, strict)?;
    }
    let governance = object(document, "", "governance")?;
    if let Some(governance) = &governance {
        governance_of(governance)?;
    }
    let decay = object(document, "", "decay")?;
    if let Some(decay) = &decay {
        decay_of(decay)?;
    }
    Ok(Entry {
        version,
        id: uuid(&id)?,
        user: named(document, "", "user_id")?,
        category,
        content,
        confidence: share(document, "", "confidence")?.ok_or_else(|| required("confidence"))?,
        source,
        provenance,
        governance,
        decay,
        tags: texts(document, "", "tags")?,
        metadata: object(document, "", "metadata")?,
    })
}

/// Whether a version is one whose documents are understood: any 1.x.y.
pub fn spoken(version: &str) -> Result<()> {
    let mut numbers = version.split('.');
    let mut next = || numbers.next().filter(|n| !n.is_empty() && n.len() < 9)?.parse::<u32>().ok();
    match (next(), next(), next(), numbers.next()) {
        (Some(1), Some(_), Some(_), None) => Ok(()),
        (Some(_), Some(_), Some(_), None) => {
            Err(Error::invalid("oamp_version", "only major version 1 is supported"))
        }
        _ => Err(Error::invalid("oamp_version", "must be a version such as 1.3.0")),
    }
}

/// Reads an id: a UUID of version 4.
pub fn uuid(text: &str) -> Result<MemoryId> {
    let wrong = || Error::invalid("id", "must be a UUID of version 4");
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
        && bytes[14] == b'4'
        && b"89abAB".contains(&bytes[19]);
    if shaped { text.parse().map_err(|_| wrong()) } else { Err(wrong()) }
}

/// The facet a category stands for.
pub fn category_of(word: &str) -> Option<Facet> {
    CATEGORIES.iter().find(|(known, _)| *known == word).map(|(_, facets)| facets[0])
}

/// The category a facet counts as.
pub fn category_word(facet: Facet) -> &'static str {
    let found = CATEGORIES.iter().find(|(_, facets)| facets.contains(&facet));
    found.expect("invariant: every facet counts as a category").0
}

fn check_source(source: &Object, path: &str, members: &[&str], strict: Strictness) -> Result<()> {
    only(source, path, members)?;
    named(source, path, "session_id")?;
    match time(source, path, "timestamp")? {
        Some(_) => {}
        None if strict == Strictness::Lenient => {}
        None => return Err(required(&joined(path, "timestamp"))),
    }
    text(source, path, "agent_id")?;
    text(source, path, "turn_id")?;
    Ok(())
}

fn check_provenance(provenance: &Object, strict: Strictness) -> Result<()> {
    only(provenance, "provenance", &["sources", "derived"])?;
    flag(provenance, "provenance", "derived")?;
    let sources = objects(provenance, "provenance", "sources")?
        .filter(|sources| !sources.is_empty())
        .ok_or_else(|| Error::invalid("provenance.sources", "must name at least one source"))?;
    for (at, source) in sources.iter().enumerate() {
        let path = format!("provenance.sources.{at}");
        let members = ["session_id", "timestamp", "agent_id", "turn_id"];
        check_source(source, &path, &members, strict)?;
    }
    Ok(())
}

/// What a governance means to the model.
pub fn governance_of(governance: &Object) -> Result<Governance> {
    const PATH: &str = "governance";
    only(governance, PATH, &["sensitivity_class", "labels", "handling"])?;
    let class = named(governance, PATH, "sensitivity_class")?;
    let sensitivity = Sensitivity::parse(&class).map_err(|_| {
        let known = "must be public, internal, confidential or restricted";
        Error::invalid("governance.sensitivity_class", known)
    })?;
    let labels = texts(governance, PATH, "labels")?.unwrap_or_default();
    let labels: Result<Vec<Label>> = labels.into_iter().map(Label::new).collect();
    let handling = object(governance, PATH, "handling")?;
    let handling = handling.as_ref().map(handling_of).transpose()?;
    Ok(Governance {
        sensitivity: Some(sensitivity),
        labels: labels.map_err(|_| {
            Error::invalid("governance.labels", "each must be a text of 1 to 256 bytes")
        })?,
        handling,
    })
}

fn handling_of(handling: &Object) -> Result<Handling> {
    const PATH: &str = "governance.handling";
    only(handling, PATH, &["retrieval", "export", "stream"])?;
    let open = |name| match text(handling, PATH, name)?.as_deref() {
        None | Some("governed") => Ok(false),
        Some("ungoverned") => Ok(true),
        Some(_) => Err(Error::invalid(joined(PATH, name), "must be governed or ungoverned")),
    };
    Ok(Handling {
        open_retrieval: open("retrieval")?,
        open_export: open("export")?,
        open_stream: open("stream")?,
    })
}

/// What a decay means to the model: in what time it halves, and since when.
pub fn decay_of(decay: &Object) -> Result<(Option<Span>, Option<Timestamp>)> {
    const PATH: &str = "decay";
    /// Longer ones are the same as none.
    const MOST_SECONDS: f64 = 1e12;
    only(decay, PATH, &["half_life_days", "last_confirmed"])?;
    let days = match decay.get("half_life_days") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let days = value.as_f64().filter(|days| *days >= 0.0);
            let wrong = || Error::invalid("decay.half_life_days", "must be a number from 0 on");
            Some(days.ok_or_else(wrong)?)
        }
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above")]
    let half_life = days
        .filter(|days| *days > 0.0)
        .map(|days| Span::seconds((days * 86_400.0).min(MOST_SECONDS).ceil() as u64));
    Ok((half_life, time(decay, PATH, "last_confirmed")?))
}

pub(crate) fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn required(path: &str) -> Error {
    Error::invalid(path, "is required")
}

/// Refuses members that the schema does not know.
pub(crate) fn only(document: &Object, path: &str, known: &[&str]) -> Result<()> {
    if document.keys().any(|name| !known.contains(&name.as_str())) {
        let at = if path.is_empty() { "document" } else { path };
        return Err(Error::invalid(at, format!("may only have {}", known.join(", "))));
    }
    Ok(())
}

pub(crate) fn text(of: &Object, path: &str, name: &str) -> Result<Option<String>> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Error::invalid(joined(path, name), "must be a text")),
    }
}

/// A text that must be there and not be empty.
pub(crate) fn named(of: &Object, path: &str, name: &str) -> Result<String> {
    let found = text(of, path, name)?.ok_or_else(|| required(&joined(path, name)))?;
    if found.is_empty() {
        return Err(Error::invalid(joined(path, name), "must not be empty"));
    }
    Ok(found)
}

pub(crate) fn texts(of: &Object, path: &str, name: &str) -> Result<Option<Vec<String>>> {
    let wrong = || Error::invalid(joined(path, name), "must be a list of texts");
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(list)) => list
            .iter()
            .map(|one| one.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect::<Result<_>>()
            .map(Some),
        Some(_) => Err(wrong()),
    }
}

pub(crate) fn object(of: &Object, path: &str, name: &str) -> Result<Option<Object>> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(members)) => Ok(Some(members.clone())),
        Some(_) => Err(Error::invalid(joined(path, name), "must be an object")),
    }
}

pub(crate) fn objects(of: &Object, path: &str, name: &str) -> Result<Option<Vec<Object>>> {
    let wrong = || Error::invalid(joined(path, name), "must be a list of objects");
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(list)) => list
            .iter()
            .map(|one| one.as_object().cloned().ok_or_else(wrong))
            .collect::<Result<_>>()
            .map(Some),
        Some(_) => Err(wrong()),
    }
}

pub(crate) fn flag(of: &Object, path: &str, name: &str) -> Result<Option<bool>> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(Error::invalid(joined(path, name), "must be true or false")),
    }
}

/// A number from 0 to 1.
pub(crate) fn share(of: &Object, path: &str, name: &str) -> Result<Option<Number>> {
    number(of, path, name, 0.0, 1.0)
}

pub(crate) fn number(
    of: &Object,
    path: &str,
    name: &str,
    least: f64,
    most: f64,
) -> Result<Option<Number>> {
    let wrong =
        || Error::invalid(joined(path, name), format!("must be a number from {least} to {most}"));
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => {
            let inside = number.as_f64().is_some_and(|value| (least..=most).contains(&value));
            if inside { Ok(Some(number.clone())) } else { Err(wrong()) }
        }
        Some(_) => Err(wrong()),
    }
}

pub(crate) fn time(of: &Object, path: &str, name: &str) -> Result<Option<Timestamp>> {
    let wrong = || Error::invalid(joined(path, name), "must be a date and time with an offset");
    text(of, path, name)?.map(|text| text.parse().map_err(|_| wrong())).transpose()
}

#[cfg(test)]
mod tests;
