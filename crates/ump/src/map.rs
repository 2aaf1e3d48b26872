//! From records to drafts and from versions to records.
//!
//! What a record says in a way that the model does not keep (an offset of a time, a member that
//! is absent where the model has a default) is kept beside it: for each such member what the
//! model means by it and what was given. As long as the model still means the same, the member
//! is written as it was given.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use yore_domain::class::{Governance, Sensitivity};
use yore_domain::memory::{Body, Content, Draft, Foreign, Relation, Seal, Status, Version};
use yore_domain::provenance::{ActorKind, Provenance};
use yore_domain::scope::Visibility;
use yore_domain::{MemoryId, Timestamp};

use crate::id;
use crate::wire::{Object, Said, Wire, decay_of, duration_of};

/// The name under which the model keeps what only this protocol understands.
const NAME: &str = "ump";
/// The most predecessors that a record lists.
const LINEAGE: usize = 32;
/// What a seal of this protocol calls its format, before the version.
const FORMAT: &str = "ump/";

/// What the model does not keep of a record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The id, valid while the version it stands for is the origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// The owner, where it is not the vault's DID. A filter finds it by this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ump_owner: Option<String>,
    /// The statements before this one, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) supersedes: Vec<String>,
    /// For a member: what the model means, and what was given if anything was.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub(crate) said: Object,
    /// A digest of the request, where the caller may repeat it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<String>,
}

impl Kept {
    /// Reads what was kept with a content.
    pub(crate) fn of(content: &Content) -> Self {
        let kept = content.foreign.get(NAME).cloned();
        kept.and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_default()
    }

    /// What a content keeps for this protocol.
    pub(crate) fn foreign(&self) -> Foreign {
        let kept = serde_json::to_value(self).expect("invariant: what is kept is plain JSON");
        Foreign::from([(NAME.to_owned(), kept)])
    }
}

/// Where a version stands in its chain, when it is not the last statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Place {
    /// The statement that replaced it.
    pub(crate) superseded_by: Vec<String>,
    /// When it was closed by that.
    pub(crate) closed: Option<Timestamp>,
}

impl Place {
    /// Finds the place of a version among all versions of its chain.
    pub(crate) fn of(version: &Version, chain: &[Version], now: Timestamp) -> Self {
        let next = chain
            .iter()
            .find(|other| other.number > version.number && other.origin() != version.origin());
        let Some(next) = next else { return Self::default() };
        // A backdated successor closes the prior where it begins, so that no instant has two.
        let from = next.time.valid_from;
        let closed =
            if from <= now && from >= version.time.valid_from { from } else { next.recorded };
        Self { superseded_by: vec![id_of(next)], closed: Some(closed) }
    }
}

/// Returns the id of the statement that a version makes.
pub(crate) fn id_of(version: &Version) -> String {
    let origin = version.origin();
    match Kept::of(&version.content).id {
        Some(id) if id::version_of(&id) == origin => id,
        Some(_) | None => id::of_version(origin),
    }
}

/// Returns the statements before a version, newest first.
pub(crate) fn lineage(version: &Version) -> Vec<String> {
    let kept = Kept::of(&version.content);
    let stands_for = |id: &str| id::version_of(id);
    if kept.id.as_deref().is_some_and(|id| stands_for(id) == version.origin()) {
        return kept.supersedes;
    }
    // It was revised in another way since: what was kept then is the past now.
    let Some(replaces) = version.replaces else { return kept.supersedes };
    let mut lineage = Vec::new();
    match kept.id {
        Some(id) => {
            if stands_for(&id) != replaces {
                lineage.push(id::of_version(replaces));
            }
            lineage.push(id);
            lineage.extend(kept.supersedes);
        }
        None => lineage.push(id::of_version(replaces)),
    }
    lineage.truncate(LINEAGE);
    lineage
}

/// Returns what a successor of a version supersedes.
pub(crate) fn succession(version: &Version) -> Vec<String> {
    let mut ids = vec![id_of(version)];
    ids.extend(lineage(version));
    ids.truncate(LINEAGE);
    ids
}

/// The members whose way of saying is kept, as the model says them; absent ones are `None`.
type Members = Vec<(&'static str, Option<Value>)>;

/// Writes a version as a record without integrity.
pub(crate) fn record(
    version: &Version,
    place: &Place,
    owner: &str,
    wire: Wire,
    now: Timestamp,
) -> Object {
    let content = &version.content;
    let kept = Kept::of(content);
    let owner = kept.ump_owner.as_deref().unwrap_or(owner);
    let mut record = Object::new();
    record.insert("ump".into(), wire.as_str().into());
    record.insert("id".into(), id_of(version).into());
    record.insert("kind".into(), kind_of(content).into());
    record.insert("body".into(), body_of(&content.body));
    record.insert("scope".into(), scope_of(content, owner));
    for (name, meant) in members(version, place, owner, now) {
        let given = match kept.said.get(name).and_then(Value::as_array).map(Vec::as_slice) {
            Some([was]) if *was == meant.clone().unwrap_or_default() => None,
            Some([was, given]) if *was == meant.clone().unwrap_or_default() => Some(given.clone()),
            Some(_) | None => meant,
        };
        if let Some(value) = given {
            insert(&mut record, name, value);
        }
    }
    record
}

fn insert(record: &mut Object, name: &str, value: Value) {
    match name.split_once('.') {
        None => {
            record.insert(name.to_owned(), value);
        }
        Some((outer, inner)) => {
            let outer = record.entry(outer).or_insert_with(|| json!({}));
            outer[inner] = value;
        }
    }
}

fn kind_of(content: &Content) -> &'static str {
    use yore_domain::kind::Kind;
    match content.kind {
        // How something felt is, to a consumer of five kinds, a fact about a person.
        Kind::Emotional => Kind::Semantic.as_str(),
        kind @ (Kind::Semantic
        | Kind::Episodic
        | Kind::Procedural
        | Kind::Working
        | Kind::Identity) => kind.as_str(),
    }
}

fn body_of(body: &Body) -> Value {
    match &body.structured {
        None => json!({"text": body.text}),
        Some(structured) => json!({"text": body.text, "structured": structured}),
    }
}

fn scope_of(content: &Content, owner: &str) -> Value {
    let mut scope = json!({"owner": owner});
    let given = [
        ("user", &content.scope.user),
        ("project", &content.scope.project),
        ("agent", &content.scope.agent),
        ("session", &content.scope.session),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            scope[name] = value.as_str().into();
        }
    }
    scope["visibility"] = content.scope.visibility.as_str().into();
    scope
}

fn members(version: &Version, place: &Place, owner: &str, now: Timestamp) -> Members {
    let Version { time, content, .. } = version;
    let lifecycle = &content.lifecycle;
    let expired = version.status.is_live() && version.ends().is_some_and(|end| end <= now);
    let status = match version.status {
        _ if expired => "tombstoned",
        Status::Active => "active",
        Status::Candidate => "candidate",
        Status::Quarantined | Status::Tombstoned | Status::Erased => "tombstoned",
    };
    let end = time.valid_to.or(place.closed).or(version.ends().filter(|_| expired));
    let lineage = lineage(version);
    let moment = |time: Timestamp| Value::from(time.to_string());
    vec![
        ("time.created", Some(moment(time.created))),
        ("time.observed", time.observed.map(moment)),
        ("time.valid_from", Some(moment(time.valid_from))),
        ("time.valid_to", Some(end.map_or(Value::Null, moment))),
        ("lifecycle.status", Some(status.into())),
        ("lifecycle.confidence", lifecycle.confidence.map(Value::from)),
        ("lifecycle.salience", lifecycle.salience.map(Value::from)),
        ("lifecycle.decay", lifecycle.half_life.map(|span| decay_of(span).into())),
        ("supersedes", (!lineage.is_empty()).then(|| lineage.into())),
        ("superseded_by", Some(place.superseded_by.clone().into())),
        ("relations", (!content.relations.is_empty()).then(|| relations_of(&content.relations))),
        ("provenance", Some(provenance_of(version, owner))),
        ("consent", consent_of(content)),
    ]
}

pub(crate) fn relations_of(relations: &[Relation]) -> Value {
    relations.iter().map(|link| json!({"type": link.kind, "target": link.target})).collect()
}

/// Where it came from. What another protocol wrote without saying is said for it.
fn provenance_of(version: &Version, owner: &str) -> Value {
    let Provenance { actor, actor_kind, method, source, provider, evidence, .. } =
        &version.content.provenance;
    let kind = match (actor.as_str(), actor_kind, &version.writer) {
        ("", ActorKind::User, Some(_)) => ActorKind::Agent,
        _ => *actor_kind,
    };
    let actor = match (actor.as_str(), &version.writer) {
        ("", Some(agent)) => agent.as_str(),
        ("", None) => owner,
        (stated, _) => stated,
    };
    let method = if method.is_empty() { "remember" } else { method };
    let mut said = json!({"actor": actor, "actor_kind": actor_kind_word(kind), "method": method});
    if let Some(source) = source {
        said["source"]["ref"] = source.as_str().into();
    }
    if let Some(provider) = provider {
        said["source"]["provider"] = provider.as_str().into();
    }
    if !evidence.is_empty() {
        said["evidence"] = evidence
            .iter()
            .map(|piece| match piece.weight {
                None => json!({"ref": piece.reference}),
                Some(weight) => json!({"ref": piece.reference, "weight": weight}),
            })
            .collect();
    }
    said
}

/// The word for a sort of actor.
pub(crate) const fn actor_kind_word(kind: ActorKind) -> &'static str {
    match kind {
        ActorKind::User => "user",
        ActorKind::Agent => "agent",
        ActorKind::Model => "model",
        ActorKind::Import => "import",
        ActorKind::Scan => "scan",
    }
}

fn consent_of(content: &Content) -> Option<Value> {
    let consent = &content.consent;
    let mut said = Object::new();
    if let Some(retention) = consent.retention {
        said.insert("retention".into(), duration_of(retention).into());
    }
    if let Some(exportable) = consent.exportable {
        said.insert("exportable".into(), exportable.into());
    }
    if !consent.redact.is_empty() {
        said.insert("redact".into(), consent.redact.clone().into());
    }
    (!said.is_empty()).then(|| said.into())
}

/// Makes the draft of a record. `owner` is the vault's DID; the record's own id is kept when
/// `id` says so.
pub(crate) fn draft(
    record: &Object,
    said: &Said,
    owner: &str,
    id: Option<String>,
    now: Timestamp,
) -> Draft {
    let Said { kind, body, scope, time, lifecycle, status, relations, provenance, consent, .. } =
        said.clone();
    let mut draft = Draft::new(kind, body.text.as_str());
    let content = &mut draft.content;
    content.body = body;
    // What is public here is public in every sense, or nobody could read it.
    if scope.visibility == Visibility::Public {
        content.governance =
            Governance { sensitivity: Some(Sensitivity::Public), ..Governance::default() };
    }
    content.scope = scope;
    content.lifecycle = lifecycle;
    content.relations = relations;
    content.provenance = provenance.unwrap_or_default();
    content.consent = consent;
    draft.time = time;
    draft.status = status.unwrap_or_default();
    draft.version = id.as_deref().map(id::version_of);
    let kept = Kept {
        id,
        ump_owner: (said.owner != owner).then(|| said.owner.clone()),
        supersedes: said.supersedes.clone(),
        ..Kept::default()
    };
    keep(&mut draft, kept, record, owner, now);
    draft
}

/// Notes which members the model would say otherwise.
fn keep(draft: &mut Draft, mut kept: Kept, record: &Object, owner: &str, now: Timestamp) {
    draft.content.foreign = kept.foreign();
    let version = Version::first(MemoryId::from_bytes([0; 16]), draft.clone(), now, None);
    let owner = kept.ump_owner.as_deref().unwrap_or(owner);
    for (name, meant) in members(&version, &Place::default(), owner, now) {
        let given = match name.split_once('.') {
            None => record.get(name),
            Some((outer, inner)) => record.get(outer).and_then(|outer| outer.get(inner)),
        };
        if given == meant.as_ref() {
            continue;
        }
        let meant = meant.unwrap_or_default();
        let pair = match given {
            None => json!([meant]),
            Some(given) => json!([meant, given]),
        };
        kept.said.insert(name.to_owned(), pair);
    }
    draft.content.foreign = kept.foreign();
}

/// Keeps the bytes of a record that arrived signed, or that had to be rewritten.
pub(crate) fn sealed(record: &Object, signer: Option<&str>, owner: &str) -> Seal {
    let wire = record.get("ump").and_then(Value::as_str).unwrap_or(Wire::V1_0.as_str());
    Seal {
        format: format!("{FORMAT}{wire}"),
        bytes: Value::Object(record.clone()).to_string(),
        signer: signer.unwrap_or_default().to_owned(),
        by_owner: signer == Some(owner),
    }
}

/// Returns the record a seal holds, when it is one of this protocol in this version.
pub(crate) fn unsealed(seal: &Seal, wire: Wire) -> Option<Object> {
    (seal.format.strip_prefix(FORMAT)? == wire.as_str()).then_some(())?;
    serde_json::from_str(&seal.bytes).ok()
}
