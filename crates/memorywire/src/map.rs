//! From requests to drafts and from memories to hits.

use std::collections::BTreeSet;

use serde_json::Value;
use yore_canon::encode::hex;
use yore_domain::kind::Kind;
use yore_domain::memory::{Content, Draft, Foreign, Version};
use yore_domain::provenance::{ActorKind, Provenance};
use yore_domain::{Error, HoldId, MemoryId, Result, Span, Timestamp};
use yore_engine::Viewer;

use crate::procedure::{MOVE, machine};
use crate::wire::{Hit, Object, PrivacyIntent, Remember, Type};
use crate::{NAME, STORE};

/// The tag of what expiry archived, and the member that says so.
const ARCHIVED: &str = "archived";

/// Makes the draft of a memory. A procedural one must be a machine that names no code.
pub(crate) fn draft(request: &Remember) -> Result<Draft> {
    if request.kind == Type::Procedural {
        machine(&request.content)?;
    }
    let mut draft = Draft::new(kind_of(request), request.content.as_str());
    let content = &mut draft.content;
    content.scope.agent = Some(request.agent_id.clone());
    content.scope.user.clone_from(&request.user_id);
    content.body.structured = request.metadata.clone().filter(|metadata| !metadata.is_empty());
    content.lifecycle.confidence = Some(request.confidence);
    content.lifecycle.salience = request.importance;
    content.lifecycle.expires = request.expires_at.map(Timestamp::from_millis);
    content.provenance = Provenance {
        actor: request.agent_id.clone(),
        actor_kind: ActorKind::Agent,
        source: request.source.clone(),
        ..Provenance::default()
    };
    if let Some(intent) = &request.privacy_intent {
        privacy(content, intent)?;
    }
    let mut extra = request.extra.clone();
    extra.remove(MOVE);
    if !extra.is_empty() {
        content.foreign = Foreign::from([(NAME.to_owned(), Value::Object(extra))]);
    }
    Ok(draft)
}

/// Takes over what was agreed on with the person. Whom it is shown to is decided by its scope,
/// how long it is kept by its consent, as for every other protocol.
fn privacy(content: &mut Content, intent: &PrivacyIntent) -> Result<()> {
    let PrivacyIntent { retain, share_with, user_consent_id } = intent;
    let read = |text: &String| {
        Span::parse_human(text).map_err(|_| {
            let reason = "write a number and s, m, h, d or w, such as 30d";
            Error::invalid("privacy_intent.retain", reason)
        })
    };
    content.consent.retention = retain.as_ref().map(read).transpose()?;
    content.consent.reference.clone_from(user_consent_id);
    content.scope.shared_with = share_with.clone().map(BTreeSet::from_iter);
    Ok(())
}

/// What was agreed on, as the protocol says it; nothing where nothing was.
pub(crate) fn privacy_intent(content: &Content) -> Option<Value> {
    let mut intent = Object::new();
    if let Some(span) = content.consent.retention {
        intent.insert("retain".to_owned(), retain(span).into());
    }
    if let Some(agents) = &content.scope.shared_with {
        intent.insert("share_with".to_owned(), agents.iter().cloned().collect());
    }
    if let Some(consent) = &content.consent.reference {
        intent.insert("user_consent_id".to_owned(), consent.as_str().into());
    }
    (!intent.is_empty()).then_some(intent.into())
}

/// A duration in the largest unit that says it in whole numbers.
fn retain(span: Span) -> String {
    let seconds = span.micros() / 1_000_000;
    let units = [(86_400, 'd'), (3_600, 'h'), (60, 'm'), (1, 's')];
    let fits = units.into_iter().find(|(length, _)| seconds % length == 0);
    let (length, unit) = fits.unwrap_or((1, 's'));
    format!("{}{unit}", seconds / length)
}

/// Writes what a recall found, as this caller may see it; nothing when no word is left of it.
pub(crate) fn hit(version: &Version, score: f32, viewer: Viewer) -> Option<Hit> {
    let content = &version.content;
    if content.body.text.is_empty() {
        return None;
    }
    // What consent leaves out of the model must not come back from what is kept beside it.
    let redacted = !viewer.withheld(&content.consent).is_empty();
    Some(Hit {
        extra: if redacted { Object::new() } else { extra(content) },
        id: id(version.memory),
        agent_id: content.scope.agent.clone().unwrap_or_default(),
        kind: type_of(content.kind),
        content: content.body.text.clone(),
        score: f64::from(score),
        metadata: metadata(content),
        created_at: version.time.created.millis(),
        updated_at: version.recorded.millis(),
        supporting: Vec::new(),
        source_store: STORE.to_owned(),
        confidence: confidence(content),
        user_id: content.scope.user.clone(),
        source: content.provenance.source.clone(),
        expires_at: content.lifecycle.expires.map(Timestamp::millis),
        importance: content.lifecycle.salience,
        short_term: content.kind == Kind::Working,
        last_recalled_at: None,
        envelope: None,
    })
}

/// The kind a memory is stored as.
pub(crate) const fn kind_of(request: &Remember) -> Kind {
    if request.short_term { Kind::Working } else { kinds(request.kind)[0] }
}

/// The kinds that count as a type, its own first.
pub(crate) const fn kinds(of: Type) -> &'static [Kind] {
    match of {
        Type::Semantic => &[Kind::Semantic, Kind::Identity],
        Type::Episodic => &[Kind::Episodic, Kind::Working],
        Type::Procedural => &[Kind::Procedural],
        Type::Emotional => &[Kind::Emotional],
    }
}

/// The type a kind counts as.
pub(crate) const fn type_of(kind: Kind) -> Type {
    match kind {
        Kind::Semantic | Kind::Identity => Type::Semantic,
        Kind::Episodic | Kind::Working => Type::Episodic,
        Kind::Procedural => Type::Procedural,
        Kind::Emotional => Type::Emotional,
    }
}

/// How sure a memory is; what another protocol left open counts as sure.
pub(crate) fn confidence(content: &Content) -> f64 {
    content.lifecycle.confidence.unwrap_or(1.0)
}

/// An id as the protocol spells it: 32 hexadecimal digits.
pub(crate) fn id(memory: MemoryId) -> String {
    hex(&memory.bytes())
}

/// The name of what waits: the memory has none yet, and is found under this one later.
pub(crate) fn waiting(hold: HoldId) -> String {
    hex(&hold.bytes())
}

fn metadata(content: &Content) -> Object {
    let mut metadata = content.body.structured.clone().unwrap_or_default();
    if content.tags.iter().any(|tag| tag == ARCHIVED) {
        metadata.insert(ARCHIVED.to_owned(), true.into());
    }
    metadata
}

fn extra(content: &Content) -> Object {
    let mut extra =
        content.foreign.get(NAME).and_then(Value::as_object).cloned().unwrap_or_default();
    extra.remove(MOVE);
    extra.extend(privacy_intent(content).map(|intent| ("privacy_intent".to_owned(), intent)));
    extra
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mw_001_every_kind_counts_as_the_type_it_is_found_by() {
        for kind in Kind::ALL {
            assert!(kinds(type_of(kind)).contains(&kind), "{kind}");
        }
        for of in Type::ALL {
            assert_eq!(type_of(kinds(*of)[0]), *of);
            assert_eq!(kinds(*of)[0].as_str(), of.as_str());
        }
    }

    #[test]
    fn mw_013_ids_are_32_hexadecimal_digits_and_read_back() {
        let memory = MemoryId::random();
        let text = id(memory);
        assert_eq!(text.len(), 32);
        assert!(text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(text.parse::<MemoryId>().unwrap(), memory);
    }
}
