//! The bodies of the protocol's routes as JSON Schemas, for the description of the server.
//!
//! Documents are open, because what another host wrote into one is kept; what the server says of
//! itself is closed. The tests of this crate hold every request that was taken, and every answer,
//! against these.

mod answers;
mod documents;

use serde_json::{Map, Value, json};
use yore_http::describe::{Bodies, Form, defined};

/// What stands in the answers and requests, by the names under which [`bodies`] refers to it.
#[must_use]
pub fn definitions() -> Map<String, Value> {
    let mut all = documents::definitions();
    all.extend(answers::definitions());
    all
}

/// What a route takes and gives, by its method and its path below a prefix; nothing for a route
/// that is not there.
#[must_use]
pub fn bodies(method: &str, path: &str) -> Option<Bodies> {
    let (takes, gives) = told(method, path)?;
    let gives = gives.into_iter().map(|(status, schema)| (status, Form::json(schema)));
    let bytes = |media_type| Form { media_type, schema: None };
    let (takes, gives) = match (method, path) {
        ("get", "/attachments/{blob}") => (None, vec![(200, bytes("application/octet-stream"))]),
        ("get", "/backup/{job}/download") => {
            (None, vec![(200, bytes("application/vnd.omp.archive+zip"))])
        }
        ("post", "/restore") => (Some(bytes("application/vnd.omp.archive+zip")), gives.collect()),
        ("post", "/import/{name}") => (Some(bytes("application/octet-stream")), gives.collect()),
        _ => (takes.map(Form::json), gives.collect()),
    };
    Some(Bodies { takes, gives, refuses: Some(Form::json(defined("OmpRefusal"))) })
}

/// The schema of a request, and those of its answers by their status.
type Told = (Option<Value>, Vec<(u16, Value)>);

fn told(method: &str, path: &str) -> Option<Told> {
    let conversation = || either(["OmpConversation", "OmpId"]);
    let memory = || either(["OmpMemory", "OmpId"]);
    let begun = || vec![(202, defined("OmpBegun"))];
    Some(match (method, path) {
        ("get", "/conversations") => {
            looks(page(&either(["OmpConversation", "OmpConversationHead"])))
        }
        ("post", "/conversations") => {
            (Some(defined("OmpConversation")), vec![(201, conversation()), (200, conversation())])
        }
        ("get", "/conversations/{id}") => looks(defined("OmpConversation")),
        ("patch", "/conversations/{id}") => changes("OmpConversationPatch", 200, conversation()),
        ("delete", "/conversations/{id}" | "/conversations/{id}/messages/{message}")
        | ("delete", "/memories/{id}") => looks(defined("OmpDeleted")),
        ("post", "/conversations/{id}/messages") => {
            let messages = json!({ "type": "array", "items": defined("OmpMessage") });
            let taken = json!({ "anyOf": [defined("OmpMessage"), messages] });
            (Some(taken), vec![(200, defined("OmpAppended"))])
        }
        ("get", "/conversations/{id}/messages/{message}") => looks(defined("OmpMessage")),
        ("get", "/attachments/{blob}" | "/backup/{job}/download") => (None, Vec::new()),
        ("get", "/memories") => looks(page(&defined("OmpMemory"))),
        ("post", "/memories") => changes("OmpMemory", 201, memory()),
        ("get", "/memories/{id}") => looks(defined("OmpMemory")),
        ("put", "/memories/{id}") => {
            (Some(defined("OmpMemory")), vec![(200, memory()), (201, memory())])
        }
        ("patch", "/memories/{id}") => changes("OmpMemoryPatch", 200, memory()),
        ("get", "/search") => looks(page(&defined("OmpHit"))),
        ("get", "/changes") => looks(page(&defined("OmpChange"))),
        ("post", "/backup") => (Some(defined("OmpBackupOrder")), begun()),
        ("get", "/backup/schedules") => looks(page(&defined("OmpSchedule"))),
        ("post", "/backup/schedules") => changes("OmpSchedule", 200, defined("OmpSchedule")),
        ("get", "/backup/{job}") => looks(defined("OmpBackup")),
        ("post", "/restore" | "/import/{name}") => (None, begun()),
        ("get", "/restore/{job}" | "/import/{name}") => looks(defined("OmpRestore")),
        ("post", "/deletions/preview") => {
            changes("OmpDeletion", 200, defined("OmpDeletionPreview"))
        }
        ("post", "/deletions") => changes("OmpDeletionOrder", 200, defined("OmpDeletionDone")),
        _ => return administered(method, path),
    })
}

fn administered(method: &str, path: &str) -> Option<Told> {
    Some(match (method, path) {
        ("get", "/admin/grants") => looks(page(&defined("OmpGrant"))),
        ("post", "/admin/grants") => changes("OmpGrantOrder", 201, defined("OmpGrant")),
        ("delete", "/admin/grants/{id}") => looks(defined("OmpRevoked")),
        ("post", "/admin/holds") => changes("OmpHoldOrder", 200, defined("OmpHold")),
        ("get", "/admin/audit") => looks(page(&defined("OmpAuditLine"))),
        ("get", "/admin/tenants") => looks(page(&defined("OmpTenant"))),
        ("post", "/admin/tenants") => changes("OmpNamed", 201, defined("OmpTenant")),
        ("get", "/admin/tenants/{tenant}/users") => looks(page(&defined("OmpUser"))),
        ("post", "/admin/tenants/{tenant}/users") => changes("OmpNamed", 201, defined("OmpUser")),
        ("get", "/admin/tenants/{tenant}/users/{user}") => looks(defined("OmpUser")),
        ("delete", "/admin/tenants/{tenant}/users/{user}") => looks(defined("OmpUserDeleted")),
        ("get", "/admin/retention") => looks(defined("OmpRetention")),
        ("post", "/admin/retention") => changes("OmpRetention", 200, defined("OmpRetention")),
        ("get", "/admin/reports/models") => looks(page(&defined("OmpModelImpact"))),
        ("get", "/admin/webhooks") => looks(page(&defined("OmpWebhook"))),
        ("post", "/admin/webhooks") => changes("OmpWebhookOrder", 201, defined("OmpWebhook")),
        ("delete", "/admin/webhooks/{id}") => looks(defined("OmpWebhookDeleted")),
        ("patch", "/admin/webhooks/{id}") => {
            changes("OmpWebhookSwitch", 200, defined("OmpWebhook"))
        }
        ("post", "/admin/keys/rotate") => looks(defined("OmpRotated")),
        ("get", "/admin/guardianship") => looks(defined("OmpGuardianship")),
        ("post", "/admin/guardianship") => {
            changes("OmpGuardianshipOrder", 200, defined("OmpGuardianship"))
        }
        ("post", "/admin/guardianship/stop") => changes("OmpStop", 200, defined("OmpStop")),
        ("get", "/.well-known/omp") => looks(defined("OmpDiscovery")),
        _ => return None,
    })
}

/// A route without a body.
fn looks(gives: Value) -> Told {
    (None, vec![(200, gives)])
}

fn changes(takes: &str, status: u16, gives: Value) -> Told {
    (Some(defined(takes)), vec![(status, gives)])
}

fn either<const N: usize>(names: [&str; N]) -> Value {
    json!({ "anyOf": names.map(defined).to_vec() })
}

/// One page of a list.
fn page(item: &Value) -> Value {
    closed(
        &["data", "has_more", "next_cursor"],
        &json!({
            "data": { "type": "array", "items": item },
            "has_more": { "type": "boolean" },
            "next_cursor": { "type": ["string", "null"] },
        }),
    )
}

/// An object with these members and no others.
fn closed(required: &[&str], members: &Value) -> Value {
    json!({
        "type": "object",
        "required": required,
        "properties": members,
        "additionalProperties": false,
    })
}

/// An object that may have other members besides.
fn open(required: &[&str], members: &Value) -> Value {
    json!({ "type": "object", "required": required, "properties": members })
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// A text that may be absent or null.
fn maybe_text() -> Value {
    json!({ "type": ["string", "null"] })
}

fn texts() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

/// An id that the server made.
fn uuid() -> Value {
    json!({ "type": "string", "format": "uuid" })
}

/// A time as it is written here: RFC 3339 in UTC.
fn moment() -> Value {
    json!({ "type": "string", "format": "date-time" })
}
