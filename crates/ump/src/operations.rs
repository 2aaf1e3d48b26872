//! The protocol's operations, each a few calls of the engine.

use serde_json::{Value, json};
use yore_canon::hash::Blake3;
use yore_canon::jcs;
use yore_domain::grant::Verb;
use yore_domain::memory::{FeedbackOutcome, Status};
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::query::{Corpus, Cutoff, Effort, Filter, Hint, Recall, ScopeMatch};
use yore_domain::scope::{Scope, ScopeRule, Visibility};
use yore_domain::{Error, Result};
use yore_engine::token::{Shape, shape};
use yore_engine::{Call, Chain, Effect, Found, Hit, Identity, Purpose, VaultRef, Wish};

use crate::capabilities::{DEFAULT_RECALL, MAX_RECALL, SIGNALS};
use crate::emit::standing;
use crate::map::{Kept, Place};
use crate::remember::waiting;
use crate::wire::{Object, Wire, kind, object, text, texts};
use crate::{NAME, Strictness, Ump, id};

impl Ump {
    /// Carries out an operation. The carrier may fix the version; otherwise the caller says it.
    pub(crate) async fn perform(
        &self,
        call: &Call,
        operation: &str,
        input: Object,
        wire: Option<Wire>,
    ) -> Result<Value> {
        let wire = wire.map_or_else(|| wire_of(&input), Ok)?;
        match operation {
            "capabilities" => Ok(self.capabilities(wire)),
            "recall" => self.recall(call, &input, wire).await,
            "remember" => self.remember(call, &input).await,
            "get" => self.get(call, &input, wire).await,
            "revise" => self.revise(call, &input).await,
            "forget" => self.forget(call, &input).await,
            "feedback" => self.feedback(call, &input).await,
            "audit" => self.audit(call, &input, wire).await,
            "audit.verify" => self.verify_audit(call).await,
            "export" => self.export_page(call, &input, wire).await,
            _ => Err(Error::Unsupported { what: "the operation is unknown".into() }),
        }
    }

    async fn recall(&self, call: &Call, input: &Object, wire: Wire) -> Result<Value> {
        let scope = object(input, "scope", "scope")?.cloned().unwrap_or_default();
        let owner = text(&scope, "owner", "scope.owner")?;
        let call = &addressed(call, owner.as_deref());
        let identity = self.engine.identify(call, Verb::Read).await?;
        let mut recall = self.question(input, &scope)?;
        let label = owner.map(|owner| Label::of(&identity, &owner));
        if let Some(Label::Other(owner)) = &label {
            recall.filter.members.insert("ump_owner".into(), owner.as_str().into());
        }
        let results = match recall.filter.statuses.iter().any(|status| status.is_live()) {
            // What was forgotten is not recalled, whoever asks for it.
            false => Vec::new(),
            true => self.engine.recall(call, recall).await?.results,
        };
        let mut answer = Vec::with_capacity(results.len());
        for hit in &results {
            let Found::Memory { version, head } = &hit.found else { continue };
            let place = if *head { Place::default() } else { self.place(call, version).await? };
            let record = self.emit(&identity, version, &place, wire).await?;
            if label == Some(Label::Own) && Kept::of(&version.content).ump_owner.is_some() {
                continue;
            }
            answer.push(json!({
                "record": record,
                "signals": signals(hit),
                "score": rounded(hit.score),
            }));
        }
        Ok(json!({"results": answer}))
    }

    fn question(&self, input: &Object, scope: &Object) -> Result<Recall> {
        let query = text(input, "query", "query")?.unwrap_or_default();
        if query.trim().is_empty() {
            return Err(Error::invalid("query", "must not be empty"));
        }
        let member = |name: &str| text(scope, name, &format!("scope.{name}"));
        let visibility = member("visibility")?
            .map(|word| Visibility::parse(&word))
            .transpose()
            .map_err(|_| Error::invalid("scope.visibility", "must be private, shared or public"))?;
        let near = Scope {
            user: member("user")?,
            project: member("project")?,
            agent: member("agent")?,
            session: member("session")?,
            visibility: visibility.unwrap_or_default(),
            shared_with: None,
        };
        let mut filter = asked_filter(object(input, "filter", "filter")?)?;
        filter.scope = ScopeRule {
            user: near.user.clone(),
            project: near.project.clone(),
            agent: near.agent.clone(),
            visibility,
        };
        filter.session.clone_from(&near.session);
        filter.scope_match = match self.options.strict {
            Strictness::Lenient => ScopeMatch::OrAbsent,
            Strictness::Strict => ScopeMatch::Exact,
        };
        Ok(Recall {
            query,
            corpus: Corpus::Memories,
            filter,
            near,
            limit: limit(input.get("limit"))?,
            effort: Effort::default(),
            prefer: preferences(object(input, "ranking_hints", "ranking_hints")?)?,
            cutoff: Cutoff::Off,
        })
    }

    async fn get(&self, call: &Call, input: &Object, wire: Wire) -> Result<Value> {
        let id = text(input, "id", "id")?.ok_or_else(|| Error::invalid("id", "is required"))?;
        Ok(json!({"record": self.record(call, &id, wire).await?}))
    }

    /// Returns one record.
    pub(crate) async fn record(&self, call: &Call, id: &str, wire: Wire) -> Result<Object> {
        let identity = self.engine.identify(call, Verb::Read).await?;
        let chain = self.engine.chain(call, id::references(id)?, Purpose::Reading).await?;
        self.emit_from(&identity, &chain, wire).await
    }

    async fn forget(&self, call: &Call, input: &Object) -> Result<Value> {
        let reason = text(input, "reason", "reason")?
            .ok_or_else(|| Error::invalid("reason", "is required"))?;
        let depth = match input.get("hard") {
            None | Some(Value::Null | Value::Bool(false)) => Depth::Tombstone,
            Some(Value::Bool(true)) => Depth::Erase,
            Some(_) => return Err(Error::invalid("hard", "must be true or false")),
        };
        let before = match self.engine.answered(call, "forget").await {
            Ok(before) => before,
            Err(Error::Held { hold }) => return Ok(waiting(hold)),
            Err(error) => return Err(error),
        };
        let memory = match (self.named(call, input, "forget").await, &before) {
            (Ok(chain), None) => {
                let place = Place::of(standing(&chain), &chain.versions, self.engine.now());
                if let (Depth::Tombstone, Some(by)) = (depth, place.superseded_by.first()) {
                    // Whoever holds an old id must not forget what they have not seen.
                    return Err(Error::invalid("id", format!("was superseded by {by}")));
                }
                chain.asked.memory
            }
            (Ok(chain), Some(_)) => chain.asked.memory,
            // What was erased is not found any more; the engine says whether this is a retry.
            (Err(Error::NotFound), Some(before)) => {
                before.memories.first().ok_or(Error::NotFound)?.memory
            }
            (Err(error), _) => return Err(error),
        };
        let memories = vec![memory];
        let mutation = Mutation::Forget { memories, depth, reason: Some(reason) };
        match self.engine.mutate_as(NAME, call, mutation, wish(input)?).await {
            Ok(mutated) => Ok(json!({"result": match mutated.effect {
                Effect::Erased => "erased",
                Effect::Created
                | Effect::Merged
                | Effect::Revised
                | Effect::Tombstoned
                | Effect::Unchanged => "tombstoned",
            }})),
            Err(Error::Held { hold }) => Ok(waiting(hold)),
            Err(error) => Err(error),
        }
    }

    async fn feedback(&self, call: &Call, input: &Object) -> Result<Value> {
        let outcome = text(input, "outcome", "outcome")?
            .ok_or_else(|| Error::invalid("outcome", "is required"))?;
        let outcome = FeedbackOutcome::parse(&outcome)?;
        let chain = self.named(call, input, "feedback").await?;
        self.engine.feedback(call, chain.asked.memory, outcome).await?;
        Ok(json!({"ok": true}))
    }

    /// Finds what the input's id names, on the way to a change.
    pub(crate) async fn named(
        &self,
        call: &Call,
        input: &Object,
        operation: &'static str,
    ) -> Result<Chain> {
        let id = text(input, "id", "id")?.ok_or_else(|| Error::invalid("id", "is required"))?;
        self.engine.chain(call, id::references(&id)?, Purpose::Change(operation)).await
    }
}

/// Whose memories a request or a record speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// The vault's owner's.
    Own,
    /// Someone's whom only the records name.
    Other(String),
}

impl Label {
    pub(crate) fn of(identity: &Identity, owner: &str) -> Self {
        if identity.is_own(owner) {
            return Self::Own;
        }
        Self::Other(owner.to_owned())
    }
}

/// The version a caller speaks, as the request says.
pub(crate) fn wire_of(input: &Object) -> Result<Wire> {
    if let Some(client) = object(input, "client", "client")?
        && let Some(stated) = Wire::of(client)?
    {
        return Ok(stated);
    }
    let record = object(input, "record", "record")?;
    Ok(record.map_or_else(|| Wire::of(input), Wire::of)?.unwrap_or_default())
}

/// A service acts for many owners: the one that the request names is meant.
pub(crate) fn addressed(call: &Call, owner: Option<&str>) -> Call {
    let serves = call.credentials.bearer.as_ref().map(shape);
    match (owner, &call.vault, serves) {
        (Some(owner), VaultRef::Default, Some(Ok(Shape::Service(_)))) => {
            Call { vault: VaultRef::Owner(owner.to_owned()), ..call.clone() }
        }
        _ => call.clone(),
    }
}

/// What the caller wishes besides: that a person decides first.
pub(crate) fn wish(input: &Object) -> Result<Wish> {
    let approval = match input.get("approval") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(ask)) => *ask,
        Some(_) => return Err(Error::invalid("approval", "must be true or false")),
    };
    Ok(Wish { approval, ..Wish::default() })
}

/// A digest of a request, to tell a repeated one from another under the same operation id.
pub(crate) fn digest(input: &Object) -> String {
    Blake3::of(jcs::canonical_without(input, &["client"])).to_base32()
}

fn asked_filter(given: Option<&Object>) -> Result<Filter> {
    let mut filter =
        Filter { statuses: vec![Status::Active, Status::Candidate], ..Filter::default() };
    let Some(given) = given else { return Ok(filter) };
    let listed = |name: &str, path: &str| match given.get(name) {
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        _ => texts(given, name, path),
    };
    for word in listed("kind", "filter.kind")? {
        filter.kinds.push(kind("filter.kind", &word)?);
    }
    let statuses = listed("status", "filter.status")?;
    if !statuses.is_empty() {
        filter.statuses.clear();
    }
    for word in statuses {
        filter.statuses.push(match word.as_str() {
            "active" => Status::Active,
            "candidate" => Status::Candidate,
            "tombstoned" => continue,
            _ => {
                let known = "must be active, candidate or tombstoned";
                return Err(Error::invalid("filter.status", known));
            }
        });
    }
    filter.valid_at = text(given, "valid_at", "filter.valid_at")?
        .map(|at| at.parse())
        .transpose()
        .map_err(|_| Error::invalid("filter.valid_at", "not a date and time"))?;
    Ok(filter)
}

fn limit(given: Option<&Value>) -> Result<usize> {
    let wrong = || Error::invalid("limit", "must be a whole number from 1 on");
    match given {
        None | Some(Value::Null) => Ok(DEFAULT_RECALL),
        Some(value) => {
            let whole = value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 1.0);
            let most = MAX_RECALL as f64;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 50")]
            whole.map(|number| number.min(most) as usize).ok_or_else(wrong)
        }
    }
}

fn preferences(given: Option<&Object>) -> Result<Vec<Hint>> {
    let Some(given) = given else { return Ok(Vec::new()) };
    let preferred = texts(given, "prefer", "ranking_hints.prefer")?;
    // A steer that is not known does not steer.
    Ok(preferred
        .iter()
        .filter_map(|word| match word.as_str() {
            "recency" => Some(Hint::Recency),
            "salience" => Some(Hint::Salience),
            "confidence" => Some(Hint::Confidence),
            "scope_match" | "scope" => Some(Hint::ScopeMatch),
            "provenance_depth" | "provenance" => Some(Hint::Provenance),
            "similarity" => Some(Hint::Similarity),
            _ => None,
        })
        .collect())
}

fn signals(hit: &Hit) -> Value {
    let mut named = Object::new();
    for signal in SIGNALS {
        let value = hit.signals.iter().find(|(name, _)| name == signal).map(|(_, value)| *value);
        if let Some(value) = value {
            named.insert(signal.to_owned(), rounded(value));
        }
    }
    if let Found::Memory { version, .. } = &hit.found {
        let provenance = &version.content.provenance;
        let depth = provenance.evidence.len() + usize::from(provenance.source.is_some());
        named.insert("provenance_depth".to_owned(), depth.into());
    }
    named.into()
}

fn rounded(value: f32) -> Value {
    ((f64::from(value) * 1e6).round() / 1e6).into()
}
