//! The audit chain in the words of the protocol.
//!
//! Events are entries of the vault's own chain: their hashes are over those entries and say so
//! by their prefix. What was asked or said is in no event, only what it was about.

use serde_json::{Value, json};
use yore_domain::audit::{Actor, Entry, Outcome};
use yore_domain::{Error, Result, Timestamp, limits};
use yore_engine::{AuditQuery, Call, Purpose};

use crate::wire::{Object, Wire, text, texts};
use crate::{Ump, id};

impl Ump {
    /// Lists the latest events that fit, oldest first.
    pub(crate) async fn audit(&self, call: &Call, input: &Object, wire: Wire) -> Result<Value> {
        let mut operations = texts(input, "ops", "ops")?;
        operations.extend(text(input, "op", "op")?);
        let memory = match text(input, "target", "target")? {
            None => None,
            Some(target) => {
                let wanted = id::references(&target)?;
                Some(self.engine.chain(call, wanted, Purpose::Reading).await?.asked.memory)
            }
        };
        let query = AuditQuery {
            agent: text(input, "actor", "actor")?,
            memory,
            from: moment(input, "since")?,
            until: moment(input, "until")?,
            limit: limit(input.get("limit"))?,
            newest_first: true,
            ..AuditQuery::default()
        };
        let mut entries: Vec<Entry> = Vec::new();
        if operations.is_empty() {
            entries = self.engine.audit(call, query.clone()).await?;
        }
        for operation in operations {
            let query = AuditQuery { operation: Some(operation), ..query.clone() };
            entries.extend(self.engine.audit(call, query).await?);
        }
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.seq));
        entries.truncate(query.limit);
        let events: Vec<Value> = entries.iter().rev().map(|entry| event(entry, wire)).collect();
        Ok(json!({"events": events}))
    }

    /// Verifies the whole chain.
    pub(crate) async fn verify_audit(&self, call: &Call) -> Result<Value> {
        let report = self.engine.verify_audit(call).await?;
        let mut answer = json!({"ok": report.faults.is_empty(), "count": report.entries});
        if let Some(fault) = report.faults.first() {
            answer["brokenAt"] = fault.seq.0.into();
            answer["reason"] = fault.what.as_str().into();
        }
        Ok(answer)
    }
}

fn event(entry: &Entry, wire: Wire) -> Value {
    let said = &entry.draft;
    let actor = match &said.actor {
        Actor::Owner => json!({"kind": "user"}),
        Actor::Agent { agent, grant } => json!({"kind": "agent", "name": agent, "token": grant}),
        Actor::Service { name } => json!({"kind": "service", "name": name}),
        Actor::System { reason } => json!({"kind": "system", "name": reason}),
        Actor::Anonymous => json!({"kind": "anonymous"}),
        Actor::Unknown => json!({"kind": "unknown"}),
    };
    let result = match &said.outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::Held { hold } => crate::error::held(*hold),
        Outcome::Refused { code } => format!("refused:{code}"),
    };
    let targets: Vec<String> =
        said.targets.iter().map(|target| id::of_memory(target.memory)).collect();
    let hash = |hex: &str| format!("sha256:{hex}");
    let before = Some(&entry.previous).filter(|previous| !previous.is_empty());
    json!({
        "ump": wire.as_str(),
        "seq": entry.seq.0,
        "ts": said.at.to_string(),
        "op": said.operation,
        "actor": actor,
        "targets": targets,
        "result": result,
        "meta": {"protocol": said.protocol, "detail": said.detail},
        "prev": before.map(|previous| hash(previous)),
        "hash": hash(&entry.hash),
    })
}

fn moment(input: &Object, name: &'static str) -> Result<Option<Timestamp>> {
    let read = text(input, name, name)?.map(|text| text.parse()).transpose();
    read.map_err(|_| Error::invalid(name, "not a date and time"))
}

fn limit(given: Option<&Value>) -> Result<usize> {
    match given {
        None | Some(Value::Null) => Ok(limits::PAGE),
        Some(value) => {
            let whole = value.as_u64().filter(|number| *number > 0);
            let whole = whole.and_then(|number| usize::try_from(number).ok());
            let wrong = || Error::invalid("limit", "must be a whole number from 1 on");
            Ok(whole.ok_or_else(wrong)?.min(limits::PAGE))
        }
    }
}
