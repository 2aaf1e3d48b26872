//! What waits for a decision.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use futures::StreamExt;
use serde_json::Value;
use yore_domain::change::What;
use yore_domain::hold::{DiffLine, Hold, HoldReason, HoldState};
use yore_domain::memory::Body;
use yore_domain::mutation::{Depth, MergeStrategy, Mutation, Patch};
use yore_domain::{Error, HoldId, Result, Timestamp};
use yore_engine::{Decision, Reference};
use yore_http::SentEvent;

use super::back;
use crate::diff::{self, Part};
use crate::markup::minute;
use crate::trouble::{Page, shown};
use crate::visit::{Posted, Shell, Visit};

/// How many are shown at once.
const SHOWN: usize = 50;

#[derive(Template)]
#[template(path = "review.html")]
struct ReviewPage {
    shell: Shell,
    waiting: Vec<Waiting>,
    decided: Vec<Decided>,
    more: bool,
}

/// A change that waits.
struct Waiting {
    id: String,
    what: &'static str,
    who: String,
    /// Whether that is the owner, who is spoken to.
    own: bool,
    protocol: String,
    asked: Timestamp,
    why: String,
    /// What a proposal of the server rests on.
    reasoning: Option<String>,
    /// The memory that it resembles or speaks against.
    beside: Option<String>,
    fields: Vec<Field>,
    /// The text, where it can be changed before it is approved.
    editable: Option<String>,
    /// What can be done in its place.
    instead: Vec<Instead>,
}

/// What can be done in the place of what waits.
struct Instead {
    /// What the form says.
    what: &'static str,
    label: &'static str,
    /// The text that a memory would have; absent where none is asked for.
    text: Option<String>,
    /// Whether another memory must be named.
    other: bool,
}

/// A member before and after.
struct Field {
    name: String,
    before: Option<Vec<Part>>,
    after: Option<Vec<Part>>,
}

/// A decision that can still be taken back.
struct Decided {
    id: String,
    approved: bool,
    what: &'static str,
}

pub(crate) async fn show(visit: Visit) -> Page {
    let mut holds = visit.engine().holds(&visit.call, HoldState::Pending, SHOWN + 1).await?;
    let more = holds.len() > SHOWN;
    holds.truncate(SHOWN);
    listed(&visit, holds, more)
}

/// The one change that an address given to its asker names. One that is decided leads to all.
pub(crate) async fn one(Path(id): Path<String>, visit: Visit) -> Page {
    let hold = visit.engine().hold(&visit.call, named(&id)?).await?;
    if hold.state != HoldState::Pending {
        return Ok(back("/app/review", ""));
    }
    listed(&visit, vec![hold], false)
}

fn listed(visit: &Visit, holds: Vec<Hold>, more: bool) -> Page {
    let (mut waiting, mut decided) = (Vec::new(), Vec::new());
    for hold in holds {
        match visit.desk.decided(hold.id) {
            None => waiting.push(Waiting::from(hold)),
            Some(approved) => decided.push(Decided {
                id: hold.id.to_string(),
                approved,
                what: what(&hold.mutation),
            }),
        }
    }
    Ok(shown(&ReviewPage { shell: visit.shell("review"), waiting, decided, more }))
}

impl From<Hold> for Waiting {
    fn from(hold: Hold) -> Self {
        let (why, beside) = reason(&hold.reason);
        let ways = instead(&hold.mutation, beside.is_some());
        let editable = match &hold.mutation {
            Mutation::Remember { draft, .. } => Some(draft.content.body.text.clone()),
            Mutation::Revise { .. }
            | Mutation::Relabel { .. }
            | Mutation::Forget { .. }
            | Mutation::Merge { .. }
            | Mutation::Restore { .. }
            | Mutation::Disclose { .. } => None,
        };
        Self {
            id: hold.id.to_string(),
            what: what(&hold.mutation),
            own: hold.agent.is_none(),
            who: hold.agent.clone().unwrap_or_else(|| "you".into()),
            protocol: hold.protocol,
            asked: hold.asked,
            why,
            reasoning: hold.reasoning,
            beside,
            instead: ways,
            fields: hold.diff.into_iter().map(Field::from).filter(Field::says).collect(),
            editable,
        }
    }
}

impl Field {
    /// Whether there is anything to see on either side.
    fn says(&self) -> bool {
        let mut parts = self.before.iter().chain(&self.after).flatten();
        parts.any(|part| !part.text.is_empty())
    }
}

impl From<DiffLine> for Field {
    fn from(line: DiffLine) -> Self {
        let told = |value: serde_json::Value| told(&line.field, &value);
        let (before, after) = (line.before.map(told), line.after.map(told));
        let parts = diff::words(
            before.as_deref().unwrap_or_default(),
            after.as_deref().unwrap_or_default(),
        );
        let without = |gone: diff::Fate| -> Vec<Part> {
            parts.iter().filter(|part| part.fate != gone).cloned().collect()
        };
        Self {
            name: spoken(&line.field),
            before: before.map(|_| without(diff::Fate::Added)),
            after: after.map(|_| without(diff::Fate::Removed)),
        }
    }
}

/// Members that hold a time.
const TIMES: [&str; 4] = ["at", "expires", "confirmed", "until"];

/// What a member says, for people.
fn told(field: &str, value: &Value) -> String {
    let name = field.rsplit('.').next().unwrap_or(field);
    match value {
        Value::String(text) => text.clone(),
        Value::Number(micros) if TIMES.contains(&name) => match micros.as_i64() {
            Some(micros) => minute(Timestamp::from_micros(micros)),
            None => micros.to_string(),
        },
        Value::Array(sources) if field == "provenance.messages" => match sources.len() {
            0 => String::new(),
            1 => "one message of a conversation".into(),
            count => format!("{count} messages of conversations"),
        },
        Value::Array(words) if words.iter().all(Value::is_string) => {
            words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// The name of a member as people say it.
fn spoken(field: &str) -> String {
    match field {
        "body.text" => "text".into(),
        field if field.starts_with("memory.") => "memory".into(),
        field => field.rsplit('.').next().unwrap_or(field).replace('_', " "),
    }
}

fn what(mutation: &Mutation) -> &'static str {
    match mutation {
        Mutation::Remember { .. } => "remember",
        Mutation::Revise { .. } => "change",
        Mutation::Relabel { .. } => "relabel",
        Mutation::Forget { depth: Depth::Erase, .. } => "erase for good",
        Mutation::Forget { depth: Depth::Tombstone | Depth::Quarantine, .. } => "forget",
        Mutation::Merge { .. } => "merge",
        Mutation::Restore { .. } => "restore",
        Mutation::Disclose { .. } => "read",
    }
}

fn reason(reason: &HoldReason) -> (String, Option<String>) {
    match reason {
        HoldReason::Requested => ("asked for approval".into(), None),
        HoldReason::Unhelpful => ("was of no use lately".into(), None),
        HoldReason::Rule(name) => (format!("your rule “{name}” holds it"), None),
        HoldReason::NearDuplicate(memory) => {
            ("looks like something known".into(), Some(memory.to_string()))
        }
        HoldReason::Contradiction(memory) => {
            ("speaks against something known".into(), Some(memory.to_string()))
        }
        HoldReason::SyncConflict(memory) => {
            ("two sides changed it".into(), Some(memory.to_string()))
        }
    }
}

fn named(id: &str) -> Result<HoldId> {
    id.parse().map_err(|_| Error::NotFound)
}

/// Decides one or several.
pub(crate) async fn decide(Posted { visit, form }: Posted) -> Page {
    let decision = match form.get("decision") {
        Some("approve") => Decision::Approve,
        Some("reject") => Decision::Reject,
        Some(_) | None => return Err(Error::invalid("decision", "approve or reject").into()),
    };
    let holds = form.all("hold").map(named).collect::<Result<Vec<HoldId>>>()?;
    for hold in holds {
        visit.desk.decide(visit.call.clone(), &visit.mark(), hold, decision.clone()).await?;
    }
    Ok(back("/app/review", ""))
}

/// Approves with another text.
pub(crate) async fn edit(Posted { visit, form }: Posted) -> Page {
    let id = named(form.get("hold").unwrap_or_default())?;
    let hold = visit.engine().hold(&visit.call, id).await?;
    let Mutation::Remember { mut draft, .. } = hold.mutation else {
        return Err(Error::invalid("decision", "only a held remember can be edited").into());
    };
    draft.content.body.text = form.text("text");
    draft.validate()?;
    visit.desk.decide(visit.call.clone(), &visit.mark(), id, Decision::Edit(draft)).await?;
    Ok(back("/app/review", ""))
}

/// What can be done in the place of an operation.
fn instead(mutation: &Mutation, beside: bool) -> Vec<Instead> {
    let plain = |what, label| Instead { what, label, text: None, other: false };
    match mutation {
        Mutation::Remember { draft, .. } if beside => vec![
            Instead {
                what: "change",
                label: "Merge into the known one, which then says",
                text: Some(draft.content.body.text.clone()),
                other: false,
            },
            plain("forget-known", "Forget the known one, and this too"),
        ],
        Mutation::Merge { .. } => vec![plain("forget-others", "Forget the others instead")],
        Mutation::Forget { depth: Depth::Tombstone | Depth::Quarantine, .. } => vec![Instead {
            what: "merge",
            label: "Merge into another memory instead",
            text: None,
            other: true,
        }],
        Mutation::Remember { .. }
        | Mutation::Revise { .. }
        | Mutation::Relabel { .. }
        | Mutation::Forget { .. }
        | Mutation::Restore { .. }
        | Mutation::Disclose { .. } => Vec::new(),
    }
}

/// Does something else in the place of what waits.
pub(crate) async fn replace(Posted { visit, form }: Posted) -> Page {
    let id = named(form.get("hold").unwrap_or_default())?;
    let hold = visit.engine().hold(&visit.call, id).await?;
    let known = match &hold.reason {
        HoldReason::NearDuplicate(memory)
        | HoldReason::Contradiction(memory)
        | HoldReason::SyncConflict(memory) => Some(*memory),
        HoldReason::Requested | HoldReason::Unhelpful | HoldReason::Rule(_) => None,
    };
    let forget = |memories| Mutation::Forget { memories, depth: Depth::Tombstone, reason: None };
    let mutation = match (form.get("what"), hold.mutation, known) {
        (Some("change"), Mutation::Remember { .. }, Some(memory)) => {
            let shown = visit.engine().get(&visit.call, Reference::Memory(memory)).await?;
            let structured = shown.head.content.body.structured;
            let body = Body { text: form.text("text"), structured };
            let patch = Box::new(Patch { body: Some(body), ..Patch::default() });
            Mutation::Revise { memory, patch, expected: Some(shown.head.number) }
        }
        (Some("forget-known"), Mutation::Remember { .. }, Some(memory)) => forget(vec![memory]),
        (Some("forget-others"), Mutation::Merge { duplicates, .. }, _) => forget(duplicates),
        (Some("merge"), Mutation::Forget { memories, .. }, _) => {
            let other = form.get("other").unwrap_or_default();
            // An address of the memory's page does as well as its id.
            let other = other.split(['?', '#']).next().unwrap_or_default();
            let other = other.rsplit('/').next().unwrap_or_default();
            let wrong = |_| Error::invalid("the other memory", "must be the address of its page");
            Mutation::Merge {
                canonical: other.parse().map_err(wrong)?,
                duplicates: memories,
                strategy: MergeStrategy::MergeContent,
            }
        }
        _ => return Err(Error::invalid("what", "cannot be done in its place").into()),
    };
    let decision = Decision::Instead(Box::new(mutation));
    visit.desk.decide(visit.call.clone(), &visit.mark(), id, decision).await?;
    Ok(back("/app/review", ""))
}

/// Takes decisions back that are not carried out yet.
pub(crate) async fn undo(Posted { visit, form }: Posted) -> Page {
    let holds = form.all("hold").map(named).collect::<Result<Vec<HoldId>>>()?;
    let taken = visit.desk.take_back(&visit.mark(), &holds);
    Ok(back("/app/review", if taken == 0 { "late" } else { "undone" }))
}

/// Tells a page whenever something began to wait or was decided.
pub(crate) async fn events(visit: Visit) -> Page {
    let changes = visit.engine().subscribe(&visit.call, None).await?;
    let told =
        changes.take_while(|change| std::future::ready(change.is_ok())).filter_map(|change| {
            let is_hold = change.is_ok_and(|event| matches!(event.change, What::Hold { .. }));
            let event = SentEvent { id: None, event: Some("holds"), data: "changed".into() };
            std::future::ready(is_hold.then_some(event))
        });
    let response: Response = yore_http::events(told.boxed(), &visit.desk.surface.stop);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_told_as_people_say_them() {
        let source = json!([{ "conversation": "a", "message": "b" }]);
        let two = json!([source[0], source[0]]);
        for (field, value, said) in [
            ("body.text", json!("the bees"), "the bees"),
            ("provenance.at", json!(1_773_480_413_589_793_i64), "2026-03-14 09:26 UTC"),
            ("provenance.messages", source, "one message of a conversation"),
            ("provenance.messages", two, "2 messages of conversations"),
            ("governance.labels", json!(["work", "health"]), "work, health"),
            ("tags", json!([]), ""),
            ("lifecycle.confidence", json!(0.8), "0.8"),
            ("consent.public", json!(false), "no"),
        ] {
            assert_eq!(told(field, &value), said, "{field}");
        }
    }
}
