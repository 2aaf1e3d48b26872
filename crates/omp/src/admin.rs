//! Administration: delegates, holds, the audit chain, keys.
//!
//! Each is an operation of the engine under the protocol's words. Nothing here is more than the
//! caller's own authority allows: nobody gives more than they hold.

use serde_json::{Map, Value, json};
use yore_domain::audit::{Actor, Entry, Outcome};
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Grant, Labels, Verb};
use yore_domain::regulated::{Regulated, is_regulated};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, ConversationId, Error, GrantId, MemoryId, Seq, Timestamp};
use yore_engine::{AuditQuery, GrantRequest};

use crate::Omp;
use crate::conversations::texts;
use crate::error::{Refusal, Result};
use crate::map::Object;
use crate::routes::{Asking, Sheet};
use crate::scope::Scope;

impl Omp {
    /// Gives a delegate scopes, and a token that is told once.
    pub(crate) async fn give(&self, asking: &Asking, asked: &Object) -> Result<(GrantId, Value)> {
        let request = request(asked, self.engine.now())?;
        let issued = self.engine.issue_grant(&asking.call, request).await?;
        let mut body = grant_out(&issued.grant);
        body["token"] = issued.token.into();
        Ok((issued.grant.id, body))
    }

    pub(crate) async fn given(&self, asking: &Asking) -> Result<Value> {
        let grants = self.engine.grants(&asking.call).await?;
        let data: Vec<Value> = grants.iter().map(grant_out).collect();
        Ok(json!({"data": data, "has_more": false, "next_cursor": null}))
    }

    /// Takes a grant back, from the next request on.
    pub(crate) async fn take_back(&self, asking: &Asking, id: &str) -> Result<Value> {
        let id: GrantId = id.parse().map_err(|_| Error::NotFound)?;
        self.engine.revoke_grant(&asking.call, id).await?;
        Ok(json!({"revoked": true, "id": id}))
    }

    /// Protects a conversation or a record from every deletion, or releases it.
    pub(crate) async fn hold(&self, asking: &Asking, asked: &Object) -> Result<Value> {
        let call = &asking.call;
        let held = match asked.get("hold") {
            None => true,
            Some(Value::Bool(held)) => *held,
            Some(_) => return Err(Refusal::invalid("hold", "must be true or false")),
        };
        let named = |name: &str| asked.get(name).and_then(Value::as_str);
        match (named("conversation_id"), named("memory_id")) {
            (Some(id), None) => {
                let id: ConversationId = id.parse().map_err(|_| Error::NotFound)?;
                self.engine.hold_conversation(call, id, held).await?;
                Ok(json!({"conversation_id": id, "x_regulatory_hold": held}))
            }
            (None, Some(id)) => {
                let id: MemoryId = id.parse().map_err(|_| Error::NotFound)?;
                self.engine.legal_hold(call, id, held).await?;
                Ok(json!({"memory_id": id, "x_regulatory_hold": held}))
            }
            (Some(_), Some(_)) | (None, None) => {
                Err(Refusal::invalid("conversation_id", "name either it or memory_id"))
            }
        }
    }

    pub(crate) async fn rotate(&self, asking: &Asking) -> Result<Value> {
        let (key, done) = self.engine.rotate_keys(&asking.call).await?;
        Ok(json!({"rotated": true, "key_id": key, "message": done}))
    }

    /// Lists the audit chain, newest first.
    pub(crate) async fn audit(&self, asking: &Asking) -> Result<Sheet> {
        let Asking { call, params, .. } = asking;
        let filter = params.filter()?;
        let (operation, agent) = (params.one("operation"), params.one("agent"));
        let identity = self.engine.identify(call, Verb::Audit).await?;
        let list = json!([operation, agent, filter.from, filter.until]);
        let roll = self.roll(&identity, format!("audit {list}"));
        let limit = params.limit()?;
        let query = AuditQuery {
            before: params.one("cursor").map(|cursor| roll.number(cursor)).transpose()?.map(Seq),
            operation: operation.map(str::to_owned),
            agent: agent.map(str::to_owned),
            from: filter.from,
            until: filter.until,
            limit: limit + 1,
            newest_first: true,
            ..AuditQuery::default()
        };
        let mut entries = self.engine.audit(call, query).await?;
        let more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| more).map(|last| roll.numbered(last.seq.0));
        Ok(Sheet { data: entries.iter().map(line).collect(), next })
    }
}

/// Reads what a delegate is to be given.
fn request(asked: &Object, now: Timestamp) -> Result<GrantRequest> {
    let text = |name: &str| asked.get(name).and_then(Value::as_str);
    let agent = text("agent").ok_or_else(|| Refusal::invalid("agent", "must be a text"))?;
    let scopes = asked.get("scopes").cloned().unwrap_or_default();
    let mut verbs = Vec::new();
    for word in texts("scopes", scopes)? {
        let scope = Scope::parse(&word);
        let scope =
            scope.ok_or_else(|| Refusal::invalid("scopes", "names one that is not known"))?;
        verbs.extend(scope.verbs());
    }
    if verbs.is_empty() {
        return Err(Refusal::invalid("scopes", "must name at least one"));
    }
    let labels = match asked.get("labels") {
        None | Some(Value::Null) => match regulated(asked)? {
            sorts if sorts.is_empty() => Labels::Any,
            sorts => Labels::AnyWith(sorts),
        },
        Some(list) => {
            let words = texts("labels", list.clone())?;
            let mut labels: Vec<Label> =
                words.into_iter().map(Label::new).collect::<Result<_, _>>()?;
            labels.extend(regulated(asked)?);
            Labels::Under(labels)
        }
    };
    let ceiling = text("max_sensitivity").map(Sensitivity::parse).transpose()?;
    let expires = match text("expires_at") {
        None => None,
        Some(text) => Some(text.parse::<Timestamp>().map_err(|_| not_a_time())?),
    };
    let ttl = match expires {
        None => None,
        Some(expires) if expires > now => {
            let seconds = (expires.micros() - now.micros()) / 1_000_000;
            Some(yore_domain::Span::seconds(seconds.unsigned_abs()))
        }
        Some(_) => return Err(not_a_time()),
    };
    Ok(GrantRequest {
        agent: AgentId::new(agent)?,
        verbs: yore_domain::grant::Verbs::of(&verbs),
        read: labels.clone(),
        write: labels,
        ceiling: ceiling.unwrap_or_default(),
        scope: ScopeRule::default(),
        ttl,
        note: text("note").map(str::to_owned),
    })
}

/// What a law protects is given by its name alone.
fn regulated(asked: &Object) -> Result<Vec<Label>> {
    let words = asked.get("regulated").filter(|words| !words.is_null()).cloned();
    let words = words.map_or(Ok(Vec::new()), |words| texts("regulated", words))?;
    let unknown = || Refusal::invalid("regulated", "must be phi, npi or child");
    let sorts = words.iter().map(|word| Regulated::parse(word).ok_or_else(unknown));
    sorts.map(|sort| sort.map(Regulated::label)).collect()
}

fn not_a_time() -> Refusal {
    Refusal::invalid("expires_at", "must be a time to come")
}

fn grant_out(grant: &Grant) -> Value {
    let scopes: Vec<&str> =
        Scope::ALL.into_iter().filter(|scope| scope.given_by(grant)).map(Scope::as_str).collect();
    let mut body = json!({
        "id": grant.id,
        "agent": grant.agent.as_str(),
        "scopes": scopes,
        "max_sensitivity": grant.ceiling.as_str(),
        "created_at": grant.issued.to_string(),
    });
    let (named, every) = grant.read.named();
    let (sorts, topics): (Vec<&Label>, Vec<&Label>) =
        named.iter().partition(|label| is_regulated(label));
    if !every {
        body["labels"] = topics.into_iter().map(Label::as_str).collect::<Vec<_>>().into();
    }
    if !sorts.is_empty() {
        let said = |label: &Label| label.as_str().split('.').next_back().map(str::to_owned);
        body["regulated"] = sorts.into_iter().filter_map(said).collect::<Vec<_>>().into();
    }
    for (name, at) in [("expires_at", grant.expires), ("revoked_at", grant.revoked)] {
        if let Some(at) = at {
            body[name] = at.to_string().into();
        }
    }
    body
}

/// One line of the audit chain in the protocol's words.
fn line(entry: &Entry) -> Object {
    let draft = &entry.draft;
    let who = match &draft.actor {
        Actor::Owner => json!({"role": "user"}),
        Actor::Agent { agent, grant } => {
            json!({"role": "delegate", "agent": agent, "grant": grant})
        }
        Actor::Service { name } => json!({"role": "admin", "service": name}),
        Actor::System { reason } => json!({"role": "system", "reason": reason}),
        Actor::Anonymous | Actor::Unknown => json!({"role": "anonymous"}),
    };
    let (success, code) = match &draft.outcome {
        Outcome::Done => (true, None),
        Outcome::Held { .. } => (false, Some("pending_approval".to_owned())),
        Outcome::Refused { code } => (false, Some(code.clone())),
    };
    let mut out = Map::new();
    out.insert("id".into(), entry.seq.0.into());
    out.insert("timestamp".into(), draft.at.to_string().into());
    out.insert("who".into(), who);
    out.insert("action".into(), action(&draft.operation).into());
    out.insert("operation".into(), draft.operation.as_str().into());
    out.insert("protocol".into(), draft.protocol.as_str().into());
    out.insert("target".into(), target(entry));
    out.insert("success".into(), success.into());
    if let Some(code) = code {
        out.insert("code".into(), code.into());
    }
    if let Some(source) = &draft.source {
        out.insert("source".into(), source.as_str().into());
    }
    // Names alone, so that a review is told from any other change.
    if let Some(members) = draft.detail.get("members") {
        out.insert("members".into(), members.clone());
    }
    out.insert("prev_hash".into(), entry.previous.as_str().into());
    out.insert("hash".into(), entry.hash.as_str().into());
    out
}

/// The protocol's word for an operation.
fn action(operation: &str) -> &'static str {
    match operation {
        "remember" | "revise" | "relabel" | "restore" | "merge" | "converse" | "attach"
        | "amend-conversation" | "import" | "propose" | "feedback" | "profile.put" | "undo"
        | "hold-conversation" | "legal-hold" | "rule.put" | "rule.remove" | "rule.switch"
        | "rule.learn" | "consolidate" | "rotate" | "job.begin" | "job.move" | "job.cancel"
        | "webhook.add" | "webhook.remove" | "webhook.switch" | "tenant.add" | "user.add"
        | "user.remove" | "retention.set" | "guardian.set" | "guardian.stop" | "schedule.set" => {
            "write"
        }
        "forget"
        | "expire"
        | "erase-conversation"
        | "erase-message"
        | "erase-rest"
        | "profile.erase"
        | "stores.forget"
        | "retention"
        | "erase-when-released" => "delete",
        "takeout" | "backup" => "backup",
        "restore-backup" => "restore",
        "export" | "profile.export" => "export",
        "grant.issue" | "grant.extend" | "grant.capability" | "grant.sign" | "token.issue" => {
            "grant"
        }
        "grant.revoke" | "token.revoke" => "revoke",
        _ => "read",
    }
}

/// What an entry is about: an id, several, or the whole vault.
fn target(entry: &Entry) -> Value {
    let draft = &entry.draft;
    for name in ["conversation", "grant", "job", "webhook"] {
        if let Some(id) = draft.detail.get(name) {
            return id.clone();
        }
    }
    match draft.targets.as_slice() {
        [] => "full vault".into(),
        [one] => json!(one.memory),
        several => several.iter().map(|target| json!(target.memory)).collect(),
    }
}
