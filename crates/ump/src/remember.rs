//! Taking a record in.

use serde_json::{Value, json};
use yore_domain::grant::Verb;
use yore_domain::memory::{Draft, Seal};
use yore_domain::mutation::Mutation;
use yore_domain::provenance::ActorKind;
use yore_domain::{Error, HoldId, Result, Timestamp};
use yore_engine::{Call, Effect, Identity, Mutated, Purpose, Reference, Wish};

use crate::emit::standing;
use crate::error::held;
use crate::map::{self, Kept, id_of};
use crate::operations::{addressed, digest, wish};
use crate::wire::{self, Object, Said, Wire, object};
use crate::{NAME, Strictness, Ump, id, integrity};

/// A record on its way in.
struct Inbound {
    draft: Draft,
    /// The id it will have.
    id: String,
    /// A name by which its writer alone may ask for it.
    alias: Option<String>,
    /// Whether the caller chose what the id follows from, so that it may be taken.
    chosen: bool,
    /// Whether the caller chose the id itself.
    supplied: bool,
}

impl Ump {
    pub(crate) async fn remember(&self, call: &Call, input: &Object) -> Result<Value> {
        let given = match object(input, "record", "record")? {
            Some(record) => record.clone(),
            None => {
                let mut bare = input.clone();
                bare.shift_remove("client");
                bare
            }
        };
        // The bytes as received, before anything is filled in.
        let signer = integrity::verified(&given)?;
        let said = wire::read(&given)?;
        let call = &addressed(call, Some(&said.owner));
        let identity = self.engine.identify(call, Verb::Write).await?;
        if !said.supersedes.is_empty() {
            // What replaces a record cites it.
            self.engine.demand(call, "remember", Verb::Derive).await?;
        }
        match self.engine.answered(call, "remember").await {
            Ok(None) => {}
            Ok(Some(mutated)) => return self.repeated(call, input, &mutated).await,
            Err(Error::Held { hold }) => return Ok(waiting(hold)),
            Err(error) => return Err(error),
        }
        let mut inbound = self.inbound(&identity, &given, said, signer.as_deref())?;
        self.make_free(call, &mut inbound).await?;
        if call.operation.is_some() {
            let mut kept = Kept::of(&inbound.draft.content);
            kept.asked = Some(digest(input));
            inbound.draft.content.foreign.extend(kept.foreign());
        }
        let Inbound { draft, id, alias, .. } = inbound;
        let named = draft.version.is_some();
        let wish = Wish { aliases: alias.into_iter().collect(), ..wish(input)? };
        let mutation = Mutation::Remember { draft: Box::new(draft), id: None };
        match self.engine.mutate_as(NAME, call, mutation, wish).await {
            Ok(mutated) if mutated.effect == Effect::Created && named => {
                Ok(json!({"id": id, "result": "created"}))
            }
            Ok(mutated) => self.done(call, &mutated).await,
            Err(Error::Held { hold }) => Ok(waiting(hold)),
            Err(error) => Box::pin(self.overtaken(call, "remember", input, error)).await,
        }
    }

    /// Answers a retry that came while the first try was still under way, which was answered
    /// meanwhile: what is stored holds the moment it was asked for, so that the two differ. Any
    /// other failure stays one.
    pub(crate) async fn overtaken(
        &self,
        call: &Call,
        operation: &'static str,
        input: &Object,
        error: Error,
    ) -> Result<Value> {
        if call.operation.is_none() || !matches!(error, Error::Conflict { .. }) {
            return Err(error);
        }
        match self.engine.answered(call, operation).await {
            Ok(Some(mutated)) => self.repeated(call, input, &mutated).await,
            Err(Error::Held { hold }) => Ok(waiting(hold)),
            Ok(None) | Err(_) => Err(error),
        }
    }

    /// Works out what will be stored, and under which id.
    fn inbound(
        &self,
        identity: &Identity,
        given: &Object,
        mut said: Said,
        signer: Option<&str>,
    ) -> Result<Inbound> {
        self.admit(identity, &said, signer)?;
        let now = self.engine.now();
        let evidence: Option<Seal> =
            (signer.is_some() || rewritten(given)).then(|| map::sealed(given, signer, &said.owner));
        // What its owner signed as a whole stays as it is, to the last byte.
        let verbatim = signer == Some(&said.owner) && is_whole(given);
        let mut full = if verbatim {
            given.clone()
        } else {
            if identity.is_own(&said.owner) {
                said.owner = identity.did().to_owned();
            }
            filled(given, &said, identity, now)
        };
        // Only the owner's word makes an id everyone's; an agent's is a name of its own.
        let plain = identity.is_owner() || signer == Some(identity.did());
        let supplied = said.id.is_some();
        let chosen = supplied || said.time.created.is_some();
        let (id, alias) = match said.id.clone() {
            Some(id) if plain => (id, None),
            alias => (id::of_content(&full), alias),
        };
        full.insert("id".into(), id.as_str().into());
        let mut read = wire::read(&full)?;
        if let Some(agent) = identity.agent()
            && let Some(provenance) = &mut read.provenance
            && provenance.actor_kind == ActorKind::Agent
        {
            // The token says which agent it is.
            provenance.actor = agent.to_owned();
        }
        let mut draft = map::draft(&full, &read, identity.did(), Some(id.clone()), now);
        draft.content.seal = evidence.map(|seal| Seal { by_owner: verbatim, ..seal });
        Ok(Inbound { draft, id, alias, chosen, supplied })
    }

    /// Refuses a record that claims what its sender may not claim.
    fn admit(&self, identity: &Identity, said: &Said, signer: Option<&str>) -> Result<()> {
        if !identity.speaks_for(&said.owner) {
            return Err(Error::forbidden("scope.owner is not the owner who gave the grant"));
        }
        if self.options.strict == Strictness::Strict {
            if signer.is_some_and(|signer| signer != said.owner) {
                return Err(Error::Signature { reason: "the signer is not the owner".into() });
            }
            if said.provenance.is_none() {
                return Err(Error::invalid("provenance", "is required"));
            }
        }
        Ok(())
    }

    /// Sees to it that an id the caller had a hand in is not taken.
    async fn make_free(&self, call: &Call, inbound: &mut Inbound) -> Result<()> {
        if !inbound.chosen {
            return Ok(());
        }
        let mut names = vec![Reference::Version(id::version_of(&inbound.id))];
        names.extend(inbound.alias.clone().map(Reference::Name));
        let taken = match self.engine.chain(call, names, Purpose::Change("remember")).await {
            Ok(taken) => taken,
            Err(Error::NotFound) => return Ok(()),
            Err(error) => return Err(error),
        };
        let version = standing(&taken);
        let same = version.content.body == inbound.draft.content.body;
        if inbound.supplied && !(same && version.status.is_live()) {
            return Err(Error::conflict("the id is taken"));
        }
        // Either the engine notices that it was said before and merges, or this was forgotten
        // and is said again: then it gets an id of its own.
        let mut kept = Kept::of(&inbound.draft.content);
        kept.id = None;
        inbound.draft.content.foreign.extend(kept.foreign());
        inbound.draft.version = None;
        inbound.alias = None;
        Ok(())
    }

    /// Answers what an earlier request under the same operation id was answered.
    pub(crate) async fn repeated(
        &self,
        call: &Call,
        input: &Object,
        mutated: &Mutated,
    ) -> Result<Value> {
        let head = mutated.memories.first().ok_or(Error::NotFound)?;
        let wanted = vec![Reference::Version(head.version)];
        let chain = self.engine.chain(call, wanted, Purpose::Change("repeat")).await?;
        let kept = Kept::of(&chain.asked.content);
        // A successor of what its writer could not see whole keeps what was noted of another.
        let fits = kept.id.is_none_or(|id| id::version_of(&id) == chain.asked.origin());
        let asked = kept.asked.filter(|_| fits);
        if asked.is_some_and(|asked| asked != digest(input)) && mutated.effect != Effect::Merged {
            return Err(Error::conflict("the operation id was used for another request"));
        }
        match mutated.effect {
            Effect::Revised => Ok(json!({
                "id": id_of(&chain.asked),
                "supersedes": map::lineage(&chain.asked),
            })),
            Effect::Created => Ok(json!({"id": id_of(&chain.asked), "result": "created"})),
            Effect::Merged | Effect::Tombstoned | Effect::Erased | Effect::Unchanged => {
                Ok(json!({"id": id_of(&chain.asked), "result": "merged"}))
            }
        }
    }

    /// Answers under which id it is known. Whoever may not look is told the memory's alias.
    async fn done(&self, call: &Call, mutated: &Mutated) -> Result<Value> {
        let head = mutated.memories.first().ok_or(Error::NotFound)?;
        let wanted = vec![Reference::Version(head.version)];
        let id = match self.engine.chain(call, wanted, Purpose::Change("remember")).await {
            Ok(chain) => id_of(&chain.asked),
            Err(Error::NotFound) => id::of_memory(head.memory),
            Err(error) => return Err(error),
        };
        let result = if mutated.effect == Effect::Created { "created" } else { "merged" };
        Ok(json!({"id": id, "result": result}))
    }
}

/// The answer to a write that waits for a person.
pub(crate) fn waiting(hold: HoldId) -> Value {
    json!({"result": "rejected", "reason": held(hold)})
}

/// Whether a portable record of the older version comes in: it is rewritten, so its bytes stay.
fn rewritten(given: &Object) -> bool {
    given.contains_key("id") && given.get("ump").and_then(Value::as_str) == Some("0.1")
}

/// Whether a record needs nothing filled in to be one.
fn is_whole(given: &Object) -> bool {
    let has = |outer: &str, inner: &str| given.get(outer).is_some_and(|at| at.get(inner).is_some());
    given.contains_key("ump")
        && given.contains_key("id")
        && has("scope", "visibility")
        && has("time", "created")
}

/// The complete record: known members only, and what was left out filled in.
fn filled(given: &Object, said: &Said, identity: &Identity, now: Timestamp) -> Object {
    let mut full = Object::new();
    full.insert("ump".into(), Wire::V1_0.as_str().into());
    full.insert("id".into(), "".into());
    full.insert("kind".into(), said.kind.as_str().into());
    let mut body = json!({"text": said.body.text});
    if let Some(structured) = &said.body.structured {
        body["structured"] = structured.clone().into();
    }
    full.insert("body".into(), body);
    full.insert("scope".into(), scope(said));
    let taken = |outer: &str, names: &[&str]| {
        let outer = given.get(outer).and_then(Value::as_object);
        let members = outer.into_iter().flatten();
        let known =
            members.filter(|(name, value)| names.contains(&name.as_str()) && !value.is_null());
        known.map(|(name, value)| (name.clone(), value.clone())).collect::<Object>()
    };
    let mut time = taken("time", &["created", "observed", "valid_from", "valid_to"]);
    let created = time.get("created").cloned().unwrap_or_else(|| now.to_string().into());
    for name in ["created", "observed", "valid_from"] {
        time.entry(name).or_insert_with(|| created.clone());
    }
    time.entry("valid_to").or_insert(Value::Null);
    full.insert("time".into(), time.into());
    let mut lifecycle = taken("lifecycle", &["confidence", "salience", "decay", "status"]);
    lifecycle.entry("status").or_insert_with(|| "active".into());
    full.insert("lifecycle".into(), lifecycle.into());
    if !said.supersedes.is_empty() {
        full.insert("supersedes".into(), said.supersedes.clone().into());
    }
    full.insert("superseded_by".into(), json!([]));
    if !said.relations.is_empty() {
        full.insert("relations".into(), map::relations_of(&said.relations));
    }
    full.insert("provenance".into(), provenance(given, said, identity));
    let consent = taken("consent", &["retention", "exportable", "redact"]);
    if !consent.is_empty() {
        full.insert("consent".into(), consent.into());
    }
    full
}

fn scope(said: &Said) -> Value {
    let mut scope = json!({"owner": said.owner});
    let given = [
        ("user", &said.scope.user),
        ("project", &said.scope.project),
        ("agent", &said.scope.agent),
        ("session", &said.scope.session),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            scope[name] = value.as_str().into();
        }
    }
    scope["visibility"] = said.scope.visibility.as_str().into();
    scope
}

/// Where it came from: as stated, except that an agent is who its credential says it is.
fn provenance(given: &Object, said: &Said, identity: &Identity) -> Value {
    let Some(stated) = &said.provenance else {
        let (actor, kind) = match identity.agent() {
            Some(agent) => (agent, ActorKind::Agent),
            None => (identity.did(), ActorKind::User),
        };
        let kind = map::actor_kind_word(kind);
        return json!({"actor": actor, "actor_kind": kind, "method": "remember"});
    };
    let mut told = given.get("provenance").cloned().unwrap_or_default();
    if let Some(members) = told.as_object_mut() {
        let known = ["actor", "actor_kind", "method", "source", "evidence"];
        members.retain(|name, value| known.contains(&name.as_str()) && !value.is_null());
    }
    if stated.actor_kind == ActorKind::Agent
        && let Some(agent) = identity.agent()
    {
        told["actor"] = agent.into();
    }
    told
}
