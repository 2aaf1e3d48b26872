//! From entries to drafts and from memories to entries.
//!
//! The model keeps what an entry means; its words are kept beside it and come back for as long
//! as the model still means the same.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};
use yore_domain::class::{Governance, Handling};
use yore_domain::memory::{Content, Draft, Foreign, Lifecycle, Memory, Version};
use yore_domain::mutation::Patch;
use yore_domain::provenance::{ActorKind, Provenance};
use yore_domain::{MemoryId, Timestamp, limits};

use crate::NAME;
use crate::person::Person;
use crate::wire::{self, Entry, Object};

/// What a source is called that was never named.
const NOWHERE: &str = "unstated";

/// What the model does not keep of an entry in the same words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) oamp_version: Option<String>,
    /// The id an agent chose, and which agent: to others it has another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<(String, MemoryId)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) confidence: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provenance: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) governance: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decay: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Object>,
    /// Whether a list of tags was given, though an empty one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tags: bool,
}

impl Kept {
    pub(crate) fn of(content: &Content) -> Self {
        let kept = content.foreign.get(NAME).cloned();
        kept.and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_default()
    }

    pub(crate) fn foreign(&self) -> Foreign {
        let kept = serde_json::to_value(self).expect("invariant: what is kept is plain JSON");
        Foreign::from([(NAME.to_owned(), kept)])
    }
}

/// Makes the draft of an entry that a person or an agent brings.
pub(crate) fn draft(entry: &Entry, person: &Person, now: Timestamp) -> Draft {
    let mut draft = Draft::new(entry.category.kind(), entry.content.as_str());
    let content = &mut draft.content;
    content.facet = entry.category;
    content.lifecycle = lifecycle(entry);
    content.governance = entry.governance.as_ref().map(governance).unwrap_or_default();
    content.provenance = provenance(&entry.source);
    content.scope.session = session(&entry.source);
    content.tags = entry.tags.clone().unwrap_or_default();
    content.foreign = kept(entry, person).foreign();
    // A source may claim to lie in the future; what it says holds from now on at the latest.
    let made = content.provenance.at.map_or(now, |at| at.min(now));
    draft.time.created = Some(made);
    draft.time.valid_from = Some(made);
    draft
}

/// What an entry replaces where it wins over a stored one.
pub(crate) fn replacement(entry: &Entry, person: &Person, head: &Version) -> Patch {
    let mut kept = kept(entry, person);
    kept.id = Kept::of(&head.content).id.or(kept.id);
    Patch {
        body: Some(yore_domain::memory::Body { text: entry.content.clone(), structured: None }),
        kind: Some(entry.category.kind()),
        facet: Some(entry.category),
        lifecycle: Some(lifecycle(entry)),
        tags: Some(entry.tags.clone().unwrap_or_default()),
        provenance: Some(provenance(&entry.source)),
        governance: Some(entry.governance.as_ref().map(governance).unwrap_or_default()),
        foreign: kept.foreign(),
        ..standing(head)
    }
}

/// A patch that leaves the times of a memory alone: it says nothing new.
pub(crate) fn standing(head: &Version) -> Patch {
    Patch {
        created: Some(head.time.created),
        valid_from: Some(head.time.valid_from),
        valid_to: head.time.valid_to,
        ..Patch::default()
    }
}

fn kept(entry: &Entry, person: &Person) -> Kept {
    let agent = person.identity.agent().map(str::to_owned);
    Kept {
        oamp_version: entry.version.clone(),
        id: agent.map(|agent| (agent, entry.id)),
        user_id: (entry.user != person.identity.owner()).then(|| entry.user.clone()),
        confidence: (!entry.confidence.is_f64()).then(|| entry.confidence.clone()),
        source: Some(entry.source.clone()),
        provenance: entry.provenance.clone(),
        governance: entry.governance.clone(),
        decay: entry.decay.clone(),
        metadata: entry.metadata.clone(),
        tags: entry.tags.is_some(),
    }
}

fn lifecycle(entry: &Entry) -> Lifecycle {
    let (half_life, confirmed) =
        entry.decay.as_ref().and_then(|decay| wire::decay_of(decay).ok()).unwrap_or_default();
    Lifecycle {
        confidence: entry.confidence.as_f64(),
        half_life,
        confirmed,
        ..Lifecycle::default()
    }
}

fn governance(given: &Object) -> Governance {
    wire::governance_of(given).unwrap_or_default()
}

fn provenance(source: &Object) -> Provenance {
    let said = |name: &str| source.get(name).and_then(Value::as_str).map(str::to_owned);
    let agent = said("agent_id").filter(|agent| !agent.is_empty());
    Provenance {
        actor_kind: if agent.is_some() { ActorKind::Agent } else { ActorKind::User },
        actor: agent.unwrap_or_default(),
        source: said("session_id"),
        at: said("timestamp").and_then(|at| at.parse().ok()),
        ..Provenance::default()
    }
}

fn session(source: &Object) -> Option<String> {
    let session = source.get("session_id").and_then(Value::as_str)?;
    (session.len() <= limits::NAME_BYTES).then(|| session.to_owned())
}

/// Writes a memory as an entry, as this caller may see it; nothing when no word is left of it.
pub(crate) fn entry(memory: &Memory, person: &Person) -> Option<Object> {
    of_version(&memory.head, person)
}

/// The same for one of its versions.
pub(crate) fn of_version(version: &Version, person: &Person) -> Option<Object> {
    of_content(&version.content, version.memory, version.time.created, person)
}

/// The same for what is about to become one.
pub(crate) fn of_content(
    content: &Content,
    memory: MemoryId,
    created: Timestamp,
    person: &Person,
) -> Option<Object> {
    if content.body.text.is_empty() {
        return None;
    }
    let redacted = !person.identity.viewer().withheld(&content.consent).is_empty();
    // What consent leaves out of the model must not come back from what is kept beside it.
    let kept = if redacted { Kept::default() } else { Kept::of(content) };
    let same_source =
        kept.source.as_ref().is_some_and(|kept| provenance(kept) == content.provenance);
    let declared = governance_words(content, &kept);
    let extended = kept.provenance.filter(|_| same_source);
    let version = kept.oamp_version.unwrap_or_else(|| {
        let governed = declared.is_some() || extended.is_some();
        (if governed { "1.2.0" } else { "1.0.0" }).to_owned()
    });
    let mut entry = Object::new();
    let mut put = |name: &str, value: Value| entry.insert(name.to_owned(), value);
    put("oamp_version", version.into());
    put("type", "knowledge_entry".into());
    put("id", spelt(kept.id.as_ref(), memory, person).to_string().into());
    let owner = person.identity.owner().to_owned();
    put("user_id", kept.user_id.unwrap_or(owner).into());
    put("category", wire::category_word(content.facet).into());
    put("content", content.body.text.clone().into());
    let sure = content.lifecycle.confidence.unwrap_or(1.0);
    let sure_words = kept.confidence.filter(|kept| kept.as_f64() == Some(sure));
    put("confidence", sure_words.map_or_else(|| sure.into(), Value::Number));
    let source = kept.source.filter(|_| same_source);
    put("source", source.unwrap_or_else(|| source_words(content, created)).into());
    if let Some(extended) = extended {
        put("provenance", extended.into());
    }
    if let Some(declared) = declared {
        put("governance", declared.into());
    }
    if let Some(decay) = decay_words(content, kept.decay) {
        put("decay", decay.into());
    }
    if kept.tags || !content.tags.is_empty() {
        put("tags", content.tags.clone().into());
    }
    if let Some(metadata) = kept.metadata {
        put("metadata", metadata.into());
    }
    Some(entry)
}

/// The id a memory has to a caller: the one an agent chose is only that agent's own.
fn spelt(chosen: Option<&(String, MemoryId)>, memory: MemoryId, person: &Person) -> MemoryId {
    match (chosen, person.identity.agent()) {
        (Some((agent, id)), Some(caller)) if agent == caller => *id,
        _ => memory,
    }
}

fn governance_words(content: &Content, kept: &Kept) -> Option<Object> {
    let Governance { sensitivity, labels, handling } = &content.governance;
    if let Some(kept) = &kept.governance
        && governance(kept) == content.governance
    {
        return Some(kept.clone());
    }
    if content.governance == Governance::default() {
        return None;
    }
    let mut words = Object::new();
    words.insert("sensitivity_class".into(), sensitivity.unwrap_or_default().as_str().into());
    if !labels.is_empty() {
        let labels: Vec<Value> = labels.iter().map(|label| label.as_str().into()).collect();
        words.insert("labels".into(), labels.into());
    }
    if let Some(Handling { open_retrieval, open_export, open_stream }) = handling {
        let word = |open: bool| if open { "ungoverned" } else { "governed" };
        words.insert(
            "handling".into(),
            json!({
                "retrieval": word(*open_retrieval),
                "export": word(*open_export),
                "stream": word(*open_stream),
            }),
        );
    }
    Some(words)
}

fn decay_words(content: &Content, kept: Option<Object>) -> Option<Object> {
    let Lifecycle { half_life, confirmed, .. } = &content.lifecycle;
    if let Some(kept) = kept
        && wire::decay_of(&kept).is_ok_and(|meant| meant == (*half_life, *confirmed))
    {
        return Some(kept);
    }
    let mut words = Object::new();
    if let Some(half_life) = half_life {
        words.insert("half_life_days".into(), half_life.as_days().into());
    }
    if let Some(confirmed) = confirmed {
        words.insert("last_confirmed".into(), confirmed.to_string().into());
    }
    (!words.is_empty()).then_some(words)
}

/// Where something came from that another protocol brought.
fn source_words(content: &Content, created: Timestamp) -> Object {
    let Provenance { actor, actor_kind, source, at, .. } = &content.provenance;
    let session = content.scope.session.as_ref().or(source.as_ref());
    let session = session.filter(|session| !session.is_empty());
    let mut words = Object::new();
    words.insert("session_id".into(), session.map_or(NOWHERE, String::as_str).into());
    if *actor_kind == ActorKind::Agent && !actor.is_empty() {
        words.insert("agent_id".into(), actor.as_str().into());
    }
    words.insert("timestamp".into(), at.unwrap_or(created).to_string().into());
    words
}
