//! What the server says of itself, and what it is told to do.

use serde_json::{Map, Value, json};
use yore_domain::webhook::Topic;

use super::{closed, count, flag, maybe_text, moment, open, text, texts, uuid};
use crate::flags::RISKS;
use crate::scope::Scope;

pub(super) fn definitions() -> Map<String, Value> {
    let all =
        [content(), work(), deletions(), administration(), governance()].into_iter().flatten();
    all.map(|(name, schema)| (name.to_owned(), schema)).collect()
}

type Definitions = Vec<(&'static str, Value)>;

fn content() -> Definitions {
    let around = |schema: Value| json!({ "anyOf": [schema, { "type": "null" }] });
    let neighbour =
        closed(&["id", "role", "text"], &json!({ "id": uuid(), "role": text(), "text": text() }));
    let hit = closed(
        &["type", "id", "timestamp", "snippet", "score"],
        &json!({
            "type": { "enum": ["message", "conversation", "memory", "attachment"] },
            "id": text(),
            "conversation_id": uuid(),
            "conversation_title": text(),
            "platform": text(),
            "model": text(),
            "role": text(),
            "timestamp": moment(),
            "attachment": closed(
                &["id", "filename", "media_type"],
                &json!({ "id": text(), "filename": text(), "media_type": text() }),
            ),
            "message_id": uuid(),
            "context": closed(
                &["before", "after"],
                &json!({ "before": around(neighbour.clone()), "after": around(neighbour) }),
            ),
            "snippet": text(),
            "score": { "type": "number" },
        }),
    );
    let change = closed(
        &["type", "id", "timestamp"],
        &json!({
            "type": { "enum": [
                "conversation.changed", "conversation.deleted", "message.created",
                "message.deleted", "memory.changed", "memory.deleted",
            ] },
            "id": uuid(),
            "conversation_id": uuid(),
            "timestamp": moment(),
        }),
    );
    let appended = closed(
        &["conversation_id", "message_ids", "appended", "skipped", "conflicts"],
        &json!({
            "conversation_id": uuid(),
            "message_ids": { "type": "array", "items": uuid() },
            "appended": count(),
            "skipped": count(),
            "conflicts": count(),
        }),
    );
    let error = closed(
        &["code", "message", "details"],
        &json!({ "code": text(), "message": text(), "details": { "type": "object" } }),
    );
    vec![
        ("OmpRefusal", closed(&["error"], &json!({ "error": error }))),
        // All that is told of something that its writer may not see.
        ("OmpId", closed(&["id"], &json!({ "id": uuid() }))),
        ("OmpHit", hit),
        ("OmpChange", change),
        ("OmpAppended", appended),
    ]
}

/// What lists, backups and deletions may be narrowed by.
fn filter() -> Value {
    let one_or_more = json!({ "anyOf": [text(), texts()] });
    let names = ["platform", "model", "tags", "from", "to", "conversation_id"];
    let members: Map<String, Value> =
        names.into_iter().map(|name| (name.to_owned(), one_or_more.clone())).collect();
    let mut filter = closed(&[], &Value::Object(members));
    filter["type"] = json!(["object", "null"]);
    filter
}

fn work() -> Definitions {
    let state = |more: Value| {
        let mut members = json!({
            "job_id": uuid(),
            "status": { "enum": ["queued", "running", "completed", "failed"] },
            "progress": { "type": "integer", "minimum": 0, "maximum": 100 },
            "error": text(),
        });
        for (name, schema) in more.as_object().into_iter().flatten() {
            members[name] = schema.clone();
        }
        closed(&["job_id", "status", "progress"], &members)
    };
    let counts = closed(
        &["conversations", "messages"],
        &json!({
            "conversations": count(), "messages": count(), "memories": count(),
            "attachments": count(), "x_branch_messages": count(),
        }),
    );
    let became = closed(
        &["imported", "merged", "skipped"],
        &json!({
            "imported": count(), "merged": count(), "skipped": count(), "conflicts": count(),
            "deleted": count(), "pending": count(),
        }),
    );
    let fault =
        closed(&["reason"], &json!({ "path": text(), "id": maybe_text(), "reason": text() }));
    let summary = closed(
        &["conversations", "messages", "memories", "attachments", "errors"],
        &json!({
            "conversations": became, "messages": became, "memories": became,
            "attachments": became, "errors": { "type": "array", "items": fault },
        }),
    );
    let schedule = json!({
        "every": { "enum": ["off", "daily", "weekly", "monthly"] },
        "keep": { "type": ["integer", "null"], "minimum": 0 },
    });
    let order = json!({
        "password": { "type": ["string", "null"], "minLength": 1 },
        "filter": filter(),
    });
    vec![
        ("OmpBackupOrder", open(&[], &order)),
        (
            "OmpBegun",
            closed(
                &["job_id", "status"],
                &json!({ "job_id": uuid(), "status": { "const": "queued" } }),
            ),
        ),
        (
            "OmpBackup",
            state(json!({
                "counts": counts, "checksum": text(), "size_bytes": count(),
                "expires_at": moment(), "download_url": text(),
            })),
        ),
        ("OmpRestore", state(json!({ "summary": summary }))),
        ("OmpSchedule", closed(&["every"], &schedule)),
    ]
}

fn deletions() -> Definitions {
    let mut wanted = json!({
        "filter": filter(),
        "vault": { "type": ["boolean", "null"] },
        "type": { "enum": ["all", "conversation", "memory"] },
    });
    let asked = open(&[], &wanted);
    wanted["token"] = text();
    let ordered = open(&["token"], &wanted);
    let scope =
        closed(&[], &json!({ "conversations": count(), "messages": count(), "memories": count() }));
    let left = json!({ "type": "array", "items": closed(
        &["type", "id"],
        &json!({ "type": { "enum": ["conversation", "memory"] }, "id": uuid(), "hold": uuid() }),
    ) });
    vec![
        ("OmpDeletion", asked),
        ("OmpDeletionOrder", ordered),
        (
            "OmpDeletionPreview",
            closed(
                &["scope", "token", "expires_at"],
                &json!({ "scope": scope, "token": text(), "expires_at": moment() }),
            ),
        ),
        (
            "OmpDeletionDone",
            closed(
                &["deleted", "scope", "held"],
                &json!({ "deleted": flag(), "scope": scope, "held": left, "pending": left }),
            ),
        ),
        (
            "OmpDeleted",
            closed(&["deleted", "scope"], &json!({ "deleted": flag(), "scope": scope })),
        ),
    ]
}

fn administration() -> Definitions {
    let scopes = json!({ "type": "array", "items": { "enum": Scope::ALL.map(Scope::as_str) } });
    let sorts = json!({ "type": ["array", "null"], "items": { "enum": ["phi", "npi", "child"] } });
    let labels = json!({ "type": ["array", "null"], "items": text() });
    let grant = json!({
        "id": uuid(), "agent": text(), "scopes": scopes, "labels": labels, "regulated": sorts,
        "max_sensitivity": text(), "created_at": moment(), "expires_at": moment(),
        "revoked_at": moment(),
        "token": { "type": "string", "description": "Told once, when the grant is given" },
    });
    let order = json!({
        "agent": text(), "scopes": scopes, "labels": labels, "regulated": sorts,
        "max_sensitivity": maybe_text(), "expires_at": maybe_text(), "note": maybe_text(),
    });
    let line = json!({
        "id": count(), "timestamp": moment(),
        "who": { "type": "object", "required": ["role"], "properties": { "role": text() } },
        "action": { "enum": [
            "read", "write", "delete", "backup", "restore", "export", "grant", "revoke",
        ] },
        "operation": text(), "protocol": text(),
        "target": { "description": "An id, several, or the whole vault" },
        "success": flag(), "code": text(), "source": text(), "members": text(),
        "prev_hash": text(), "hash": text(),
    });
    let user = json!({
        "name": text(), "tenant_id": uuid(), "vault_id": uuid(), "did": text(),
        "created_at": moment(),
    });
    let held = json!({
        "conversation_id": uuid(), "memory_id": uuid(), "x_regulatory_hold": flag(),
    });
    let to_hold = json!({ "conversation_id": text(), "memory_id": text(), "hold": flag() });
    vec![
        ("OmpGrant", closed(&["id", "agent", "scopes", "max_sensitivity", "created_at"], &grant)),
        ("OmpGrantOrder", open(&["agent", "scopes"], &order)),
        ("OmpRevoked", closed(&["revoked", "id"], &json!({ "revoked": flag(), "id": uuid() }))),
        ("OmpHoldOrder", open(&[], &to_hold)),
        ("OmpHold", closed(&["x_regulatory_hold"], &held)),
        (
            "OmpAuditLine",
            closed(
                &[
                    "id",
                    "timestamp",
                    "who",
                    "action",
                    "operation",
                    "protocol",
                    "target",
                    "success",
                    "prev_hash",
                    "hash",
                ],
                &line,
            ),
        ),
        ("OmpNamed", open(&["name"], &json!({ "name": text() }))),
        (
            "OmpTenant",
            closed(&["id", "users"], &json!({ "id": uuid(), "name": text(), "users": count() })),
        ),
        ("OmpUser", closed(&["name", "tenant_id", "vault_id", "did", "created_at"], &user)),
        (
            "OmpUserDeleted",
            closed(&["deleted", "name"], &json!({ "deleted": flag(), "name": text() })),
        ),
    ]
}

fn governance() -> Definitions {
    let days = json!({ "type": ["integer", "null"], "minimum": 0 });
    let retention = json!({
        "conversations_days": days, "memories_days": days, "children_days": days,
    });
    let impact = json!({
        "model": text(), "conversations": count(), "messages": count(), "platforms": texts(),
        "first_used": maybe_text(), "last_used": maybe_text(),
        "risk_levels": {
            "type": "object",
            "propertyNames": { "enum": RISKS },
            "additionalProperties": count(),
        },
        "human_reviewed": count(), "contains_phi": count(), "contains_npi": count(),
    });
    let topics = json!({ "enum": Topic::ALL.map(Topic::as_str) });
    let topics = json!({ "type": ["array", "null"], "items": topics });
    let webhook = json!({
        "id": uuid(), "url": text(), "events": topics, "created_at": moment(), "active": flag(),
        "delivered": count(), "attempts": count(), "next_attempt_at": moment(), "error": text(),
        "secret": { "type": "string", "description": "Told once, when it is registered" },
    });
    let guarded = json!({
        "child": { "type": ["boolean", "null"] }, "parental_consent_id": maybe_text(),
        "guardian": maybe_text(), "stopped": flag(), "grant_id": uuid(), "token": text(),
    });
    let to_guard = json!({
        "child": flag(), "parental_consent_id": maybe_text(), "guardian": maybe_text(),
    });
    let discovery = json!({
        "omp_version": text(),
        "conformance_level": { "enum": ["portable", "connected", "enterprise"] },
        "implementation": closed(
            &["name", "version"],
            &json!({ "name": text(), "version": text() }),
        ),
        "capabilities": texts(), "connectors": texts(), "compliance_profiles": texts(),
        "baa_available": flag(), "data_residency_regions": texts(),
    });
    vec![
        ("OmpRetention", closed(&[], &retention)),
        (
            "OmpModelImpact",
            closed(&["model", "conversations", "messages", "platforms", "risk_levels"], &impact),
        ),
        (
            "OmpWebhook",
            closed(
                &["id", "url", "events", "created_at", "active", "delivered", "attempts"],
                &webhook,
            ),
        ),
        ("OmpWebhookOrder", open(&["url"], &json!({ "url": text(), "events": topics }))),
        ("OmpWebhookSwitch", closed(&["active"], &json!({ "active": flag() }))),
        (
            "OmpWebhookDeleted",
            closed(&["deleted", "id"], &json!({ "deleted": flag(), "id": uuid() })),
        ),
        (
            "OmpRotated",
            closed(
                &["rotated", "key_id", "message"],
                &json!({ "rotated": flag(), "key_id": text(), "message": text() }),
            ),
        ),
        (
            "OmpGuardianship",
            closed(&["child", "parental_consent_id", "guardian", "stopped"], &guarded),
        ),
        ("OmpGuardianshipOrder", open(&["child"], &to_guard)),
        ("OmpStop", open(&[], &json!({ "stopped": flag() }))),
        (
            "OmpDiscovery",
            closed(
                &[
                    "omp_version",
                    "implementation",
                    "capabilities",
                    "connectors",
                    "compliance_profiles",
                    "baa_available",
                    "data_residency_regions",
                ],
                &discovery,
            ),
        ),
    ]
}
