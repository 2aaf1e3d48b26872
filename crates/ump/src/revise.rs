//! Replacing a statement by another, without losing it.

use serde_json::{Value, json};
use yore_domain::grant::Verb;
use yore_domain::memory::{Cause, Lifecycle, Status, Version};
use yore_domain::mutation::{Mutation, Patch};
use yore_domain::provenance::{ActorKind, Provenance};
use yore_domain::{Error, Result};
use yore_engine::{Call, Chain, Identity};

use crate::emit::standing;
use crate::map::{self, Kept, Place, id_of, succession};
use crate::operations::{digest, wish};
use crate::remember::waiting;
use crate::wire::{self, Object, Wire, object, text};
use crate::{NAME, Ump, id};

/// How often it is tried again when the chain grew meanwhile.
const ATTEMPTS: usize = 3;
/// What a patch may hold.
const PATCHABLE: [&str; 4] = ["body", "lifecycle", "relations", "time"];

impl Ump {
    pub(crate) async fn revise(&self, call: &Call, input: &Object) -> Result<Value> {
        let patch = object(input, "patch", "patch")?
            .ok_or_else(|| Error::invalid("patch", "is required"))?;
        if let Some(other) = patch.keys().find(|name| !PATCHABLE.contains(&name.as_str())) {
            let known = "only body, lifecycle, relations and time can be revised";
            return Err(Error::invalid(format!("patch.{other}"), known));
        }
        let identity = self.engine.identify(call, Verb::Write).await?;
        match self.engine.answered(call, "revise").await {
            Ok(None) => {}
            Ok(Some(mutated)) => return self.repeated(call, input, &mutated).await,
            Err(Error::Held { hold }) => return Ok(waiting(hold)),
            Err(error) => return Err(error),
        }
        let mut last = Error::NotFound;
        for _ in 0..ATTEMPTS {
            let chain = self.named(call, input, "revise").await?;
            match self.succeed(call, &identity, input, patch, &chain).await {
                Err(error @ Error::Conflict { .. }) => last = error,
                answer => return answer,
            }
        }
        Box::pin(self.overtaken(call, "revise", input, last)).await
    }

    async fn succeed(
        &self,
        call: &Call,
        identity: &Identity,
        input: &Object,
        patch: &Object,
        chain: &Chain,
    ) -> Result<Value> {
        let prior = standing(chain);
        let head = chain.versions.last().unwrap_or(prior);
        let (mut change, successor) = self.change(identity, input, patch, prior, head)?;
        let supersedes = succession(head);
        let hidden = identity.viewer().withheld(&prior.content.consent);
        let kept = match hidden.is_empty() {
            true => Some(self.kept(call, identity, input, &successor, &supersedes)),
            false => {
                spare(hidden, patch, &mut change)?;
                None
            }
        };
        if let Some(kept) = &kept {
            change.version = kept.id.as_deref().map(id::version_of);
            change.foreign = kept.foreign();
        }
        let mutation = Mutation::Revise {
            memory: head.memory,
            patch: Box::new(change),
            expected: Some(head.number),
        };
        let mut answer = match self.engine.mutate_as(NAME, call, mutation, wish(input)?).await {
            Ok(done) => {
                // Of what is not seen whole no hash can be made: its version spells its id.
                let spelled = || done.memories.first().map(|head| id::of_version(head.version));
                let id = kept.and_then(|kept| kept.id).or_else(spelled);
                json!({"id": id, "supersedes": supersedes})
            }
            Err(Error::Held { hold }) => waiting(hold),
            Err(error) => return Err(error),
        };
        if prior.origin() != head.origin() {
            let (old, now) = (id_of(prior), id_of(head));
            answer["note"] = format!("{old} was superseded by {now}, which this replaces").into();
        }
        Ok(answer)
    }

    /// What is kept of a successor beside the model, with the id that follows from what it says.
    fn kept(
        &self,
        call: &Call,
        identity: &Identity,
        input: &Object,
        successor: &Version,
        supersedes: &[String],
    ) -> Kept {
        let (place, now) = (Place::default(), self.engine.now());
        let mut record = map::record(successor, &place, identity.did(), Wire::V1_0, now);
        record.insert("supersedes".into(), supersedes.into());
        Kept {
            id: Some(id::of_content(&record)),
            supersedes: supersedes.to_vec(),
            asked: call.operation.is_some().then(|| digest(input)),
            ..Kept::of(&successor.content)
        }
    }

    /// What the engine is to change, and the version that will come of it.
    fn change(
        &self,
        identity: &Identity,
        input: &Object,
        patch: &Object,
        prior: &Version,
        head: &Version,
    ) -> Result<(Patch, Version)> {
        let now = self.engine.now();
        let body = match object(patch, "body", "patch.body")? {
            Some(body) => wire::body(Some(body))?,
            None => prior.content.body.clone(),
        };
        let relations = match patch.get("relations") {
            Some(relations) => wire::relations(Some(relations))?,
            None => prior.content.relations.clone(),
        };
        let given = object(patch, "lifecycle", "patch.lifecycle")?;
        let (lifecycle, status) = merged(given, &prior.content.lifecycle)?;
        if status == Some(Status::Tombstoned) {
            return Err(Error::invalid("patch.lifecycle.status", "forget tombstones"));
        }
        let time = wire::time(object(patch, "time", "patch.time")?)?;
        let provenance = stamped(identity, input, prior)?;
        let mut successor = head.next(Cause::Revised, now, identity.agent().map(str::to_owned));
        let content = &mut successor.content;
        content.body = body.clone();
        content.relations = relations.clone();
        content.lifecycle = lifecycle.clone();
        content.provenance = provenance.clone();
        content.seal = None;
        if let Some(status) = status {
            successor.status = status;
        }
        successor.time.created = now;
        successor.time.observed = Some(now);
        successor.time.valid_from = time.valid_from.unwrap_or(now);
        successor.time.valid_to = time.valid_to;
        let mut kept = Kept::of(&successor.content);
        kept.id = None;
        kept.supersedes = Vec::new();
        kept.said = note(kept.said, patch, &lifecycle);
        successor.content.foreign.extend(kept.foreign());
        // Only what changes: the rest stays as the vault has it, seen or not.
        let was = &head.content;
        let change = Patch {
            body: (body != was.body).then_some(body),
            lifecycle: (lifecycle != was.lifecycle).then_some(lifecycle),
            relations: (relations != was.relations).then_some(relations),
            provenance: (provenance != was.provenance).then_some(provenance),
            valid_from: Some(successor.time.valid_from),
            valid_to: time.valid_to,
            status,
            created: Some(now),
            ..Patch::default()
        };
        Ok((change, successor))
    }
}

/// Refuses to replace what consent keeps from the caller, at least in part: it would be lost.
fn spare(hidden: &[String], patch: &Object, change: &mut Patch) -> Result<()> {
    let touched = |name: &str| {
        let below =
            |path: &String| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        hidden.iter().any(|path| path == name || below(path))
    };
    let replaced = [
        ("body", change.body.is_some()),
        ("lifecycle", change.lifecycle.is_some()),
        ("relations", change.relations.is_some()),
    ];
    if let Some((name, _)) = replaced.iter().find(|(name, replaced)| *replaced && touched(name)) {
        let reason = format!("a part of {name} is kept from you, so only the owner replaces it");
        return Err(Error::consent(reason));
    }
    let decay = patch.get("lifecycle").and_then(|given| given.get("decay"));
    let kept = change.lifecycle.as_ref().is_some_and(|lifecycle| lifecycle.half_life.is_some());
    if decay.is_some_and(|decay| !decay.is_null()) && !kept {
        return Err(Error::invalid("patch.lifecycle.decay", "must be half_life: and a duration"));
    }
    if touched("provenance") {
        // Who wrote it is in the version; where it came from stays as it is.
        change.provenance = None;
    }
    Ok(())
}

/// The prior's lifecycle with what the patch says of it.
fn merged(given: Option<&Object>, prior: &Lifecycle) -> Result<(Lifecycle, Option<Status>)> {
    let (patch, status) = wire::lifecycle(given)?;
    let says = |name: &str| given.is_some_and(|given| given.contains_key(name));
    let lifecycle = Lifecycle {
        confidence: if says("confidence") { patch.confidence } else { prior.confidence },
        salience: if says("salience") { patch.salience } else { prior.salience },
        half_life: if says("decay") { patch.half_life } else { prior.half_life },
        ..prior.clone()
    };
    Ok((lifecycle, status))
}

/// Keeps how the prior said what is still so, and how the patch says what the model does not keep.
fn note(mut said: Object, patch: &Object, lifecycle: &Lifecycle) -> Object {
    said.retain(|name, _| {
        !name.starts_with("time.") && name != "supersedes" && name != "superseded_by"
    });
    let decay = patch.get("lifecycle").and_then(|given| given.get("decay"));
    if let Some(decay) = decay {
        let meant = lifecycle.half_life.map(|span| Value::from(wire::decay_of(span)));
        said.shift_remove("lifecycle.decay");
        if meant.as_ref() != Some(decay) {
            said.insert("lifecycle.decay".into(), json!([meant, decay]));
        }
    }
    said
}

/// Who made the successor. An agent is who its credential says; the owner may say.
fn stamped(identity: &Identity, input: &Object, prior: &Version) -> Result<Provenance> {
    let actor = object(input, "actor", "actor")?;
    let stated = match actor {
        None => None,
        Some(actor) => {
            let kind = text(actor, "kind", "actor.kind")?;
            let kind =
                kind.map_or(Ok(ActorKind::User), |kind| wire::actor_kind("actor.kind", &kind))?;
            text(actor, "did", "actor.did")?.map(|did| (did, kind))
        }
    };
    let who = match identity.agent() {
        Some(agent) => Some((agent.to_owned(), ActorKind::Agent)),
        None => stated,
    };
    let Some((actor, actor_kind)) = who else { return Ok(prior.content.provenance.clone()) };
    Ok(Provenance {
        actor,
        actor_kind,
        method: "revise".to_owned(),
        source: Some(id_of(prior)),
        provider: None,
        ..prior.content.provenance.clone()
    })
}
