//! The audit chain in the protocol's vocabulary.

use serde_json::{Value, json};
use yore_domain::Seq;
use yore_domain::audit::{Actor, Entry, Outcome};
use yore_domain::grant::Verb;
use yore_engine::{AuditQuery, Call, VaultRef};

use crate::Oamp;
use crate::accept::Query;
use crate::error::{Refusal, Result};

const DEFAULT_LIMIT: usize = 100;
const MOST: usize = 1000;
const FURTHEST: usize = 100_000;
/// Entries of the chain that are read at once.
const PAGE: usize = 1000;

/// Every action there is.
const ACTIONS: [&str; 11] = [
    "create",
    "read",
    "update",
    "delete",
    "export",
    "import",
    "rotate_key",
    "grant_issue",
    "grant_revoke",
    "scope_denied_read",
    "scope_denied_write",
];

/// What an audit query asks for.
#[derive(Debug)]
pub(crate) struct Asked {
    user: Option<String>,
    action: Option<String>,
    limit: usize,
    offset: usize,
}

/// A page of lines.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) lines: Vec<Value>,
    /// How many were read; all there are when they were counted.
    pub(crate) total: usize,
}

impl Asked {
    pub(crate) fn of(query: &Query) -> Result<Self> {
        let action = query.one("action").filter(|action| !action.is_empty());
        if action.is_some_and(|action| !ACTIONS.contains(&action)) {
            let known = format!("must be one of {}", ACTIONS.join(", "));
            return Err(Refusal::invalid("action", &known));
        }
        let limit = query.number("limit", DEFAULT_LIMIT, MOST)?;
        Ok(Self {
            user: query.one("user_id").map(str::to_owned),
            action: action.map(str::to_owned),
            limit: limit.unwrap_or_default().max(1),
            offset: query.number("offset", 0, FURTHEST)?.unwrap_or_default(),
        })
    }
}

impl Oamp {
    /// Lists what was done, the newest first. A service that names no user sees all of its own.
    /// `count` reads on to the end, so that the total is told too.
    pub(crate) async fn audit(&self, call: &Call, asked: &Asked, count: bool) -> Result<Told> {
        let mut calls = Vec::new();
        if asked.user.is_none() && call.vault == VaultRef::Default {
            for vault in self.engine.served_vaults(call).await? {
                let call = Call { vault: VaultRef::Id(vault.id), ..call.clone() };
                calls.push((call, vault.owner));
            }
        }
        if calls.is_empty() {
            let user = asked.user.as_deref();
            match self.person(call, user, Verb::Read).await {
                Ok(person) => {
                    let owner = person.identity.owner().to_owned();
                    calls.push((person.call, owner));
                }
                Err(refusal) if refusal.status == 404 => {}
                Err(refusal) => return Err(refusal),
            }
        }
        let mut all = Vec::new();
        for (call, owner) in calls {
            all.extend(self.told(&call, &owner, asked, count).await?);
        }
        all.sort_by_key(|(at, seq, _)| std::cmp::Reverse((*at, *seq)));
        let total = all.len();
        let lines = all.into_iter().map(|(_, _, line)| line);
        Ok(Told { lines: lines.skip(asked.offset).take(asked.limit).collect(), total })
    }

    /// The newest lines of one vault, as many as may be wanted.
    async fn told(
        &self,
        call: &Call,
        owner: &str,
        asked: &Asked,
        count: bool,
    ) -> Result<Vec<(yore_domain::Timestamp, Seq, Value)>> {
        let mut lines = Vec::new();
        let mut before = None;
        loop {
            let query =
                AuditQuery { limit: PAGE, newest_first: true, before, ..AuditQuery::default() };
            let entries = self.engine.audit(call, query).await?;
            let read = entries.len();
            before = entries.last().map(|entry| entry.seq);
            for entry in entries {
                if let Some(line) = line(&entry, owner, asked.action.as_deref()) {
                    lines.push((entry.draft.at, entry.seq, line));
                }
            }
            let enough = if count { FURTHEST + MOST } else { asked.offset + asked.limit };
            if read < PAGE || lines.len() >= enough {
                return Ok(lines);
            }
        }
    }
}

/// An entry of the chain as a line; nothing when the protocol has no word for it.
fn line(entry: &Entry, owner: &str, wanted: Option<&str>) -> Option<Value> {
    let action = action(entry)?;
    if wanted.is_some_and(|wanted| wanted != action) {
        return None;
    }
    let draft = &entry.draft;
    let user = if action == "rotate_key" { "system" } else { owner };
    let only = match draft.targets.as_slice() {
        [one] => Some(one.memory.to_string()),
        _ => None,
    };
    let actor = match &draft.actor {
        Actor::Owner => Some(owner.to_owned()),
        Actor::Agent { agent, .. } => Some(agent.clone()),
        Actor::Service { name } => Some(name.clone()),
        Actor::System { .. } => Some("system".to_owned()),
        Actor::Anonymous | Actor::Unknown => None,
    };
    Some(json!({
        "id": entry.seq.0,
        "timestamp": draft.at.to_string(),
        "action": action,
        "user_id": user,
        "entry_id": only,
        "actor": actor,
        "detail": detail(entry),
    }))
}

fn action(entry: &Entry) -> Option<&'static str> {
    let draft = &entry.draft;
    let by_agent = matches!(draft.actor, Actor::Agent { .. });
    let plain = match draft.operation.as_str() {
        "remember" => "create",
        "get" | "list" | "recall" | "context" | "history" | "profile.get" => "read",
        "revise" | "relabel" | "restore" | "merge" | "profile.put" | "resolve" => "update",
        "forget" | "profile.erase" => "delete",
        "export" => "export",
        "import" => "import",
        "rotate" => "rotate_key",
        "grant.issue" => "grant_issue",
        "grant.revoke" => "grant_revoke",
        _ => return None,
    };
    match &draft.outcome {
        // What looking before a change found is told by the change itself.
        Outcome::Done if draft.operation == "resolve" => None,
        Outcome::Done | Outcome::Held { .. } => Some(plain),
        Outcome::Refused { code } => match (plain, code.as_str()) {
            ("read" | "export", "not_found" | "forbidden") if by_agent => Some("scope_denied_read"),
            ("create" | "update" | "delete" | "import", "not_found" | "forbidden") if by_agent => {
                Some("scope_denied_write")
            }
            _ => None,
        },
    }
}

/// Counts and flags; the chain itself holds no text.
fn detail(entry: &Entry) -> Option<String> {
    let draft = &entry.draft;
    let mut words: Vec<String> = Vec::new();
    if let Actor::Agent { grant, .. } = &draft.actor {
        words.push(format!("grant_id:{grant}"));
    }
    for (name, value) in &draft.detail {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        words.push(format!("{name}:{value}"));
    }
    match &draft.outcome {
        Outcome::Done => {}
        Outcome::Held { hold } => words.push(format!("held:{hold}")),
        Outcome::Refused { code } => words.push(format!("refused:{code}")),
    }
    (!words.is_empty()).then(|| words.join(" "))
}
