//! The record as it is written, and what makes one acceptable.

use serde_json::{Map, Value};
use yore_domain::consent::Consent;
use yore_domain::kind::Kind;
use yore_domain::memory::{Body, DraftTimes, Lifecycle, Relation, Status};
use yore_domain::provenance::{ActorKind, Evidence, Provenance};
use yore_domain::scope::{Scope, Visibility};
use yore_domain::{Error, Result, Span, Timestamp};

use crate::id;

/// A record, or anything else that JSON writes in braces.
pub type Object = Map<String, Value>;

/// The five kinds, in the order in which they are listed.
pub const KINDS: [Kind; 5] =
    [Kind::Semantic, Kind::Episodic, Kind::Procedural, Kind::Working, Kind::Identity];

/// How `lifecycle.decay` says a half-life.
const HALF_LIFE: &str = "half_life:";

/// A version of the protocol that one running server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wire {
    /// The draft.
    V0_1,
    /// The stable one.
    #[default]
    V1_0,
}

impl Wire {
    /// Returns the text of the version.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1",
            Self::V1_0 => "1.0",
        }
    }

    /// Reads a version. Minor versions add; another major version is refused, not guessed at.
    pub fn parse(text: &str) -> Result<Self> {
        match text.split_once('.') {
            Some(("0", "1")) => Ok(Self::V0_1),
            Some(("1", minor))
                if minor.bytes().all(|b| b.is_ascii_digit()) && !minor.is_empty() =>
            {
                Ok(Self::V1_0)
            }
            _ => Err(Error::invalid("ump", "must be 1.0 or 0.1")),
        }
    }

    /// Reads the version a record states, when it states one.
    pub fn of(record: &Object) -> Result<Option<Self>> {
        text(record, "ump", "ump")?.map(|stated| Self::parse(&stated)).transpose()
    }
}

/// A record that was read and found acceptable. What it leaves out is left out here.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// The id, when one is given.
    pub id: Option<String>,
    /// The kind.
    pub kind: Kind,
    /// The body.
    pub body: Body,
    /// Whose it says it is.
    pub owner: String,
    /// The rest of the scope.
    pub scope: Scope,
    /// The times that are given.
    pub time: DraftTimes,
    /// Confidence, salience and decay.
    pub lifecycle: Lifecycle,
    /// Where it says it stands.
    pub status: Option<Status>,
    /// What it says it replaces.
    pub supersedes: Vec<String>,
    /// Links.
    pub relations: Vec<Relation>,
    /// Where it says it came from.
    pub provenance: Option<Provenance>,
    /// What was agreed to.
    pub consent: Consent,
}

/// Reads a whole or partial record. Unknown members are passed over.
pub fn read(record: &Object) -> Result<Said> {
    Wire::of(record)?;
    let id = text(record, "id", "id")?;
    if let Some(id) = &id {
        id::check("id", id)?;
    }
    let kind = text(record, "kind", "kind")?.ok_or_else(|| missing("kind"))?;
    let (owner, scope) = scope(object(record, "scope", "scope")?)?;
    let (lifecycle, status) = lifecycle(object(record, "lifecycle", "lifecycle")?)?;
    let supersedes = ids(record, "supersedes")?;
    ids(record, "superseded_by")?;
    Ok(Said {
        id,
        kind: self::kind("kind", &kind)?,
        body: body(object(record, "body", "body")?)?,
        owner,
        scope,
        time: time(object(record, "time", "time")?)?,
        lifecycle,
        status,
        supersedes,
        relations: relations(record.get("relations"))?,
        provenance: object(record, "provenance", "provenance")?.map(provenance).transpose()?,
        consent: consent(object(record, "consent", "consent")?)?,
    })
}

/// Reads one of the five kinds.
pub(crate) fn kind(path: &str, word: &str) -> Result<Kind> {
    KINDS.into_iter().find(|kind| kind.as_str() == word).ok_or_else(|| {
        Error::invalid(path, "must be semantic, episodic, procedural, working or identity")
    })
}

/// Reads a body. Its text is kept to the last blank.
pub(crate) fn body(given: Option<&Object>) -> Result<Body> {
    let given = given.ok_or_else(|| missing("body"))?;
    let text = text(given, "text", "body.text")?.ok_or_else(|| missing("body.text"))?;
    if text.is_empty() {
        return Err(Error::invalid("body.text", "must not be empty"));
    }
    let structured = object(given, "structured", "body.structured")?.cloned();
    Ok(Body { text, structured })
}

fn scope(given: Option<&Object>) -> Result<(String, Scope)> {
    let given = given.ok_or_else(|| missing("scope"))?;
    let owner = text(given, "owner", "scope.owner")?
        .filter(|owner| !owner.is_empty())
        .ok_or_else(|| missing("scope.owner"))?;
    let visibility = match text(given, "visibility", "scope.visibility")? {
        Some(word) => Visibility::parse(&word)
            .map_err(|_| Error::invalid("scope.visibility", "must be private, shared or public"))?,
        // The specification's own example leaves it out; the closest reading is the safest.
        None => Visibility::Private,
    };
    let scope = Scope {
        user: text(given, "user", "scope.user")?,
        project: text(given, "project", "scope.project")?,
        agent: text(given, "agent", "scope.agent")?,
        session: text(given, "session", "scope.session")?,
        visibility,
        shared_with: None,
    };
    Ok((owner, scope))
}

/// Reads times; `valid_to` may be null.
pub(crate) fn time(given: Option<&Object>) -> Result<DraftTimes> {
    let Some(given) = given else { return Ok(DraftTimes::default()) };
    let read = |name: &str| -> Result<Option<Timestamp>> {
        let path = format!("time.{name}");
        let Some(text) = text(given, name, &path)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Error::invalid(path, "not a date and time"))
    };
    let times = DraftTimes {
        created: read("created")?,
        observed: read("observed")?,
        valid_from: read("valid_from")?,
        valid_to: read("valid_to")?,
    };
    Ok(times)
}

/// Reads how sure, how important, how lasting, and where it stands.
pub(crate) fn lifecycle(given: Option<&Object>) -> Result<(Lifecycle, Option<Status>)> {
    let Some(given) = given else { return Ok((Lifecycle::default(), None)) };
    let unit = |name: &str| -> Result<Option<f64>> {
        let path = format!("lifecycle.{name}");
        match given.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_f64()
                .filter(|number| (0.0..=1.0).contains(number))
                .map(Some)
                .ok_or_else(|| Error::invalid(path, "must be a number from 0 to 1")),
        }
    };
    let status = match text(given, "status", "lifecycle.status")?.as_deref() {
        None => None,
        Some("active") => Some(Status::Active),
        Some("candidate") => Some(Status::Candidate),
        Some("tombstoned") => Some(Status::Tombstoned),
        Some(_) => {
            return Err(Error::invalid(
                "lifecycle.status",
                "must be active, candidate or tombstoned",
            ));
        }
    };
    let decay = text(given, "decay", "lifecycle.decay")?;
    let half_life = decay
        .as_deref()
        .and_then(|decay| decay.strip_prefix(HALF_LIFE))
        .and_then(|span| Span::parse_iso(span).ok());
    let lifecycle = Lifecycle {
        confidence: unit("confidence")?,
        salience: unit("salience")?,
        half_life,
        ..Lifecycle::default()
    };
    Ok((lifecycle, status))
}

/// Reads links.
pub(crate) fn relations(given: Option<&Value>) -> Result<Vec<Relation>> {
    let wrong = || Error::invalid("relations", "must be a list of {type, target}");
    let list = match given {
        None => return Ok(Vec::new()),
        Some(value) => value.as_array().ok_or_else(wrong)?,
    };
    list.iter()
        .map(|link| {
            let member = |name: &str| link.get(name).and_then(Value::as_str).map(str::to_owned);
            let kind = member("type").ok_or_else(wrong)?;
            let target = member("target").ok_or_else(wrong)?;
            Ok(Relation { kind, target })
        })
        .collect()
}

fn provenance(given: &Object) -> Result<Provenance> {
    let needed = |name: &str| {
        let path = format!("provenance.{name}");
        text(given, name, &path)?.ok_or_else(|| missing(&path))
    };
    let source = object(given, "source", "provenance.source")?;
    let of_source = |name: &str| -> Result<Option<String>> {
        let Some(source) = source else { return Ok(None) };
        text(source, name, &format!("provenance.source.{name}"))
    };
    Ok(Provenance {
        actor: needed("actor")?,
        actor_kind: actor_kind("provenance.actor_kind", &needed("actor_kind")?)?,
        method: needed("method")?,
        source: of_source("ref")?,
        provider: of_source("provider")?,
        evidence: evidence(given.get("evidence"))?,
        ..Provenance::default()
    })
}

/// Reads what sort of actor.
pub(crate) fn actor_kind(path: &str, word: &str) -> Result<ActorKind> {
    Ok(match word {
        "user" => ActorKind::User,
        "agent" => ActorKind::Agent,
        "model" => ActorKind::Model,
        "import" => ActorKind::Import,
        "scan" => ActorKind::Scan,
        _ => return Err(Error::invalid(path, "must be user, agent, model, import or scan")),
    })
}

fn evidence(given: Option<&Value>) -> Result<Vec<Evidence>> {
    let wrong = || Error::invalid("provenance.evidence", "must be a list of {ref, weight}");
    let list = match given {
        None => return Ok(Vec::new()),
        Some(value) => value.as_array().ok_or_else(wrong)?,
    };
    list.iter()
        .map(|piece| {
            let reference = piece.get("ref").and_then(Value::as_str).ok_or_else(wrong)?.to_owned();
            let weight = match piece.get("weight") {
                None | Some(Value::Null) => None,
                Some(weight) => Some(weight.as_f64().ok_or_else(wrong)?),
            };
            Ok(Evidence { reference, weight })
        })
        .collect()
}

fn consent(given: Option<&Object>) -> Result<Consent> {
    let Some(given) = given else { return Ok(Consent::default()) };
    // A duration that cannot be read could not be honoured either.
    let retention = text(given, "retention", "consent.retention")?
        .map(|text| Span::parse_iso(&text))
        .transpose()
        .map_err(|_| Error::invalid("consent.retention", "not an ISO 8601 duration"))?;
    let exportable = match given.get("exportable") {
        None | Some(Value::Null) => None,
        Some(value) => Some(
            value
                .as_bool()
                .ok_or_else(|| Error::invalid("consent.exportable", "must be true or false"))?,
        ),
    };
    let redact = texts(given, "redact", "consent.redact")?;
    Ok(Consent { retention, exportable, redact, reference: None })
}

fn ids(record: &Object, name: &str) -> Result<Vec<String>> {
    let ids = texts(record, name, name)?;
    ids.iter().try_for_each(|one| id::check(name, one))?;
    Ok(ids)
}

/// Reads a list of texts that may be absent.
pub(crate) fn texts(of: &Object, name: &str, path: &str) -> Result<Vec<String>> {
    let wrong = || Error::invalid(path, "must be a list of texts");
    match of.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(value) => value
            .as_array()
            .ok_or_else(wrong)?
            .iter()
            .map(|one| one.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect(),
    }
}

/// Reads a text that may be absent or null.
pub(crate) fn text(of: &Object, name: &str, path: &str) -> Result<Option<String>> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Error::invalid(path, "must be a text")),
    }
}

/// Reads an object that may be absent or null.
pub(crate) fn object<'a>(of: &'a Object, name: &str, path: &str) -> Result<Option<&'a Object>> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(Error::invalid(path, "must be an object")),
    }
}

/// The words that `lifecycle.decay` has for a half-life.
pub(crate) fn decay_of(half_life: Span) -> String {
    format!("{HALF_LIFE}{}", duration_of(half_life))
}

/// The shortest ISO 8601 duration of days or seconds.
pub(crate) fn duration_of(span: Span) -> String {
    const SECOND: i64 = 1_000_000;
    const DAY: i64 = 86_400 * SECOND;
    let micros = span.micros();
    if micros % DAY == 0 {
        return format!("P{}D", micros / DAY);
    }
    let fraction = format!("{:06}", micros % SECOND);
    match fraction.trim_end_matches('0') {
        "" => format!("PT{}S", micros / SECOND),
        digits => format!("PT{}.{digits}S", micros / SECOND),
    }
}

fn missing(path: &str) -> Error {
    Error::invalid(path, "is required")
}

#[cfg(test)]
mod tests;
