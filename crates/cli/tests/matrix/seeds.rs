//! What the five texts show as examples, sent to a server as it comes out of the box.
//!
//! Typography and ellipses are repaired, keys and signatures supplied. What is refused is refused
//! for a reason that `docs/protocols/` states; the stories here say which.

use serde_json::{Value, json};
use yore_canon::did::Did;
use yore_canon::key::{Algorithm, SigningKey};
use yore_domain::{MemoryId, MessageId, Timestamp};

use crate::tongues::tool;
use crate::world::{Caller, Plain, World, now, signed};

/// The stories, by name.
pub(crate) const ALL: [Plain; 20] = [
    ("seeds::ump_capabilities", capabilities),
    ("seeds::ump_whole_record", whole_record),
    ("seeds::ump_record_in_markdown", in_markdown),
    ("seeds::ump_remember_a_part", remember_a_part),
    ("seeds::ump_recall_revise_get_forget", recall_revise_get_forget),
    ("seeds::ump_tools_of_mcp", tools_of_mcp),
    ("seeds::memorywire_four_types", four_types),
    ("seeds::memorywire_approval", approval),
    ("seeds::memorywire_guards", guards),
    ("seeds::memorywire_microbenchmark_question", microbenchmark_question),
    ("seeds::uamp_envelope", envelope),
    ("seeds::uamp_minimal_ask", minimal_ask),
    ("seeds::uamp_streamed_picture", streamed_picture),
    ("seeds::uamp_manifest", manifest),
    ("seeds::omp_conversation", conversation),
    ("seeds::omp_memory_and_errors", memory_and_errors),
    ("seeds::omp_archive_and_manifest", archive_and_manifest),
    ("seeds::omp_declaration", declaration),
    ("seeds::oamp_governance_and_provenance", governance_and_provenance),
    ("seeds::oamp_grant", grant),
];

fn ump(world: &World, operation: &str, input: &Value) -> Value {
    let reply = world.post(&world.owner, &format!("/ump/{operation}"), input);
    assert_eq!(reply.status, 200, "{operation}: {}", reply.text);
    reply.json()
}

/// UMP 3.1.
fn capabilities(world: &World) {
    let asked = json!({"client": {"name": "claude-code", "ump": "0.1"}});
    let told = ump(world, "capabilities", &asked);
    assert_eq!(told["ump"], "0.1", "the version that was asked for: {told}");
    assert_eq!(told["conformance"], "L3");
    assert_eq!(told["kinds"].as_array().unwrap().len(), 5);
    for signal in ["similarity", "recency", "salience", "scope_match", "provenance_depth"] {
        assert!(told["retrieval_signals"].as_array().unwrap().contains(&json!(signal)), "{told}");
    }
    assert_eq!(told["writable"], true);
}

/// UMP 2: every member of the record, under ids that the grammar allows (`9f2c…` has a 9).
fn whole_record(world: &World) {
    let did = world.native("whoami", &json!({}))["did"].as_str().unwrap().to_owned();
    let record = json!({
        "ump": "0.1", "id": "urn:ump:af2caf2caf2caf2caf2caf2caf", "kind": "semantic",
        "body": {"text": "Use pnpm, never npm, in this repo.", "structured": {"token": "t"}},
        "scope": {
            "owner": did, "user": did, "project": "github.com/example/project",
            "agent": "claude-code", "session": "sess_abc", "visibility": "private",
        },
        "time": {
            "created": "2026-06-04T10:00:00Z", "observed": "2026-06-04T09:58:00Z",
            "valid_from": "2026-06-04T00:00:00Z", "valid_to": null,
        },
        "lifecycle": {
            "confidence": 0.82, "salience": 0.6, "decay": "half_life:P90D", "status": "active",
        },
        "supersedes": ["urn:ump:aaaa"], "superseded_by": [],
        "relations": [
            {"type": "contradicts", "target": "urn:ump:7b7b"},
            {"type": "about", "target": "entity:pnpm"},
        ],
        "provenance": {
            "actor": did, "actor_kind": "user", "method": "user_correction",
            "source": {"ref": "sess_abc#turn_12"},
            "evidence": [{"ref": "sess_abc#turn_12", "weight": 1.0}],
        },
        "consent": {
            "retention": "P365D", "exportable": true, "redact": ["body.structured.token"],
        },
    });
    let done = ump(world, "remember", &json!({ "record": record }));
    assert_eq!(done["result"], "created", "{done}");
    let path = format!("/ump/v0.1/memory/{}", done["id"].as_str().unwrap());
    let kept = world.http(&world.owner, "GET", &path, &[], "").json()["record"].clone();
    for member in ["kind", "body", "scope", "lifecycle", "relations", "provenance", "consent"] {
        assert_eq!(kept[member], record[member], "{member}: {kept}");
    }
    assert_eq!(kept["time"]["valid_from"], record["time"]["valid_from"]);
    assert!(kept["integrity"]["signature"].as_str().unwrap().starts_with("ed25519:"));
}

/// UMP 6.3: the projection, as a file that comes in.
fn in_markdown(world: &World) {
    let text = "---\nump: \"0.1\"\nid: urn:ump:bf2cbf2cbf2cbf2cbf2cbf2cbf\nkind: procedural\n\
        scope: { owner: did:key:z6Mk, project: example/recall, visibility: private }\n\
        time: { observed: 2026-06-04T09:58:00Z, valid_from: 2026-06-04T00:00:00Z }\n\
        provenance: { actor_kind: user, method: user_correction }\n---\n\n\
        Always run `pnpm gate` before handoff.\n";
    let file = world.home.path("gate.ump.md");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    // The projection leaves out who the actor is, which a record with provenance must say. That is
    // named and refused; with it, it comes in.
    let report = world.home.run(&["import", file, "--json"]);
    assert!(report.out.contains("provenance.actor: is required"), "{report:?}");
    let whole = text.replace("actor_kind: user", "actor: owner, actor_kind: user");
    std::fs::write(file, whole).unwrap();
    let report = world.home.json(&["import", file]);
    let head = world.head_of("Always run `pnpm gate` before handoff.");
    assert!(head.is_some(), "{report}");
}

/// UMP 3.3: a part of a record, without a visibility.
fn remember_a_part(world: &World) {
    let record = json!({
        "kind": "procedural", "body": {"text": "run pnpm gate before handoff"},
        "scope": {"owner": "owner", "project": "example/recall"},
        "provenance": {"actor": "owner", "actor_kind": "user", "method": "user_correction"},
    });
    let done = ump(world, "remember", &json!({ "record": record }));
    assert_eq!(done["result"], "created", "{done}");
    assert!(done["id"].as_str().unwrap().starts_with("urn:ump:"));
}

/// UMP 3.2, 3.4, 3.5 and 3.6.
fn recall_revise_get_forget(world: &World) {
    let record = json!({
        "kind": "semantic", "body": {"text": "The package manager for this repo is pnpm."},
        "scope": {"owner": "owner", "project": "example/recall", "agent": "claude-code"},
    });
    let id = ump(world, "remember", &json!({ "record": record }))["id"].clone();
    // In whole milliseconds it might be asked for before it was said.
    let soon = Timestamp::from_millis(now().millis() + 1);
    let question = json!({
        "query": "package manager for this repo",
        "scope": {"owner": "owner", "project": "example/recall", "agent": "claude-code"},
        "filter": {"kind": ["semantic", "procedural"], "valid_at": soon.to_string()},
        "limit": 8, "ranking_hints": {"prefer": ["recency"]},
    });
    let found = ump(world, "recall", &question);
    let first = &found["results"][0];
    assert_eq!(first["record"]["id"], id, "{found}");
    assert!(first["score"].is_number() && first["signals"]["similarity"].is_number());
    let patch = json!({
        "body": {"text": "Use bun, not pnpm."}, "time": {"valid_from": "2026-06-04T10:00:00Z"},
    });
    let revised = ump(world, "revise", &json!({"id": id, "patch": patch}));
    assert_eq!(revised["supersedes"][0], id, "{revised}");
    let path = format!("/ump/memory/{}", id.as_str().unwrap());
    let before = world.http(&world.owner, "GET", &path, &[], "").json();
    assert_eq!(before["record"]["superseded_by"][0], revised["id"], "{before}");
    let forget = json!({"id": revised["id"], "reason": "user_revoked", "hard": false});
    assert_eq!(ump(world, "forget", &forget), json!({"result": "tombstoned"}));
    let missing =
        world.post(&world.owner, "/ump/forget", &json!({"id": "urn:ump:zzzz", "reason": "x"}));
    assert_eq!(missing.json()["error"]["code"], "not_found", "{}", missing.text);
}

/// UMP 4.1: the reserved names.
fn tools_of_mcp(world: &World) {
    let record = json!({
        "kind": "identity", "body": {"text": "operator prefers concise handoffs"},
        "scope": {"owner": "owner", "visibility": "private"},
    });
    let done = tool(world, &world.owner, "ump.remember", &json!({ "record": record }));
    let id = done["result"]["structuredContent"]["id"].clone();
    assert!(id.is_string(), "{done}");
    for (name, input) in [
        ("ump.capabilities", json!({})),
        ("ump.recall", json!({"query": "how does the operator like handoffs?"})),
        ("ump.get", json!({ "id": id })),
        ("ump.feedback", json!({"id": id, "outcome": "followed"})),
        ("ump.revise", json!({"id": id, "patch": {"lifecycle": {"confidence": 0.9}}})),
    ] {
        let answer = tool(world, &world.owner, name, &input);
        assert_ne!(answer["result"]["isError"], true, "{name}: {answer}");
        assert!(answer["result"]["structuredContent"].is_object(), "{name}: {answer}");
    }
}

fn wire(world: &World, operation: &str, input: &Value) -> (u16, Value) {
    let reply = world.post(&world.owner, &format!("/memorywire/v0/{operation}"), input);
    (reply.status, reply.json())
}

/// memorywire 3.3: an example of each type, and a machine that books a flight.
fn four_types(world: &World) {
    let machine = json!({
        "name": "book a flight", "initial": "searching", "states": ["searching", "paying", "booked"],
        "transitions": [
            {"trigger": "choose", "source": "searching", "dest": "paying"},
            {"trigger": "pay", "source": "paying", "dest": "booked", "conditions": "card_holds"},
        ],
    });
    for (kind, content) in [
        ("semantic", "Alice is allergic to peanuts".to_owned()),
        ("episodic", "On 2026-05-20 Alice told me she was nervous about her flight".to_owned()),
        ("procedural", machine.to_string()),
        ("emotional", "Alice expressed anxiety when discussing flights".to_owned()),
    ] {
        let remember =
            json!({"agent_id": "agent-a", "user_id": "alice", "type": kind, "content": content});
        let (status, done) = wire(world, "remember", &remember);
        assert_eq!(status, 200, "{kind}: {done}");
        let question = json!({"agent_id": "agent-a", "query": content, "types": [kind], "k": 5});
        let (_, found) = wire(world, "recall", &question);
        assert_eq!(found["results"][0]["type"], kind, "the type comes back: {found}");
    }
}

/// memorywire 2.5 and 6.7.
fn approval(world: &World) {
    let waits = json!({
        "agent_id": "agent-a", "type": "semantic", "content": "Alice moved to Lisbon",
        "approval_required": true,
    });
    let (_, held) = wire(world, "remember", &waits);
    assert_eq!(held["pending_approval"], true, "{held}");
    let question = json!({"agent_id": "agent-a", "query": "where did Alice move?", "k": 5});
    let (_, found) = wire(world, "recall", &question);
    assert!(!found.to_string().contains("Lisbon"), "{found}");
    let sure = json!({
        "agent_id": "agent-a", "type": "semantic", "content": "Alice is in the building",
        "confidence": 1.0,
    });
    assert_eq!(wire(world, "remember", &sure).0, 200);
}

/// memorywire 3.2: a forget without a scope and an expiry without a policy are refused.
fn guards(world: &World) {
    for (operation, input) in [
        ("forget", json!({"agent_id": "agent-a"})),
        ("expire", json!({"agent_id": "agent-a"})),
        ("expire", json!({"agent_id": "agent-a", "policy": {}})),
        ("recall", json!({"agent_id": "agent-a", "query": "x", "hops": 4})),
    ] {
        assert_eq!(wire(world, operation, &input).0, 400, "{operation} {input}");
    }
    let policy = json!({"older_than_days": 180, "type": "episodic", "confidence_below": 0.4});
    let expire = json!({"agent_id": "agent-a", "policy": policy, "action": "archive"});
    assert_eq!(wire(world, "expire", &expire).0, 200);
}

/// memorywire 5.1: the paraphrase that its text quotes.
fn microbenchmark_question(world: &World) {
    let fact = json!({
        "agent_id": "bench", "user_id": "alice", "type": "semantic",
        "content": "Alice is allergic to peanuts and tree nuts",
    });
    assert_eq!(wire(world, "remember", &fact).0, 200);
    let question = json!({
        "agent_id": "bench", "query": "what foods should I avoid serving Alice?", "k": 5,
        "fusion": "rrf",
    });
    // Its vector is made after the write was answered; until then what is older may stand before it.
    let mut found = Value::Null;
    for _ in 0..100 {
        found = wire(world, "recall", &question).1;
        if found["results"][0]["content"].to_string().contains("tree nuts") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{found}");
}

/// Sends an envelope over TLS and follows its stream.
fn send(world: &World, caller: &Caller, envelope: &Value) -> (u16, Vec<Value>, String) {
    let body = signed(&caller.key, envelope).to_string();
    let kind = [("content-type", "application/uamp+json;v=1")];
    let reply = world.tls(caller, "POST", "/v1/messages", &kind, &body);
    let Some(place) = reply.header("location").map(str::to_owned) else {
        return (reply.status, Vec::new(), reply.text);
    };
    let stream = world.tls(caller, "GET", &place, &[("accept", "text/event-stream")], "");
    (reply.status, stream.events(), place)
}

fn message(world: &World, caller: &Caller, content: &str) -> Value {
    json!({
        "id": format!("urn:uuid:{}", MessageId::random()), "ts": now().to_string(),
        "from": caller.did(), "to": [world.did], "intent": "ask",
        "body": {"type": "text/plain", "content": content},
    })
}

/// UAMP 4: every member. Ids are UUIDs, digests whole, times fresh.
fn envelope(world: &World) {
    let owner = &world.owner;
    let mut envelope = message(world, owner, "# Draw me a sheep");
    envelope["context"] = json!([{
        "id": format!("urn:uuid:{}", MessageId::random()), "hash": format!("sha256:{}", "0".repeat(64)),
    }]);
    envelope["reply_to"] = format!("urn:uuid:{}", MessageId::random()).into();
    envelope["stream_id"] = "str-42".into();
    envelope["delta_window"] = 64.into();
    envelope["body"] = json!({
        "type": "text/markdown", "content": "# Draw me a sheep", "encoding": "utf-8",
        "compression": "none",
    });
    envelope["ext"] = json!({"x-trace": "b3:0"});
    let (status, frames, place) = send(world, owner, &envelope);
    assert_eq!((status, place.as_str()), (202, "/v1/stream/str-42"), "{frames:?}");
    let last = frames.last().unwrap();
    assert_eq!(last["type"], "done", "{frames:?}");
    for member in ["delta_seq", "stream_id", "ts", "type", "payload"] {
        assert!(!last[member].is_null(), "{member}: {last}");
    }
}

/// UAMP C.1: `urn:uuid:1111` is no UUID and `did:web:client` has no document to verify against;
/// with both repaired it is answered as the appendix shows, apart from what 2+2 is.
fn minimal_ask(world: &World) {
    let owner = &world.owner;
    let mut short = message(world, owner, "2+2");
    short["id"] = "urn:uuid:1111".into();
    let (status, _, why) = send(world, owner, &short);
    assert_eq!(status, 400, "{why}");
    let mut nobody = message(world, owner, "2+2");
    nobody["from"] = "did:web:client".into();
    let (status, _, why) = send(world, owner, &nobody);
    assert_eq!(status, 401, "{why}");
    let (status, frames, _) = send(world, owner, &message(world, owner, "2+2"));
    assert_eq!(
        (status, frames.last().unwrap()["type"].as_str()),
        (202, Some("done")),
        "{frames:?}"
    );
}

/// UAMP C.2: a memory draws no pictures; the stream is the one of the appendix, with its own end.
fn streamed_picture(world: &World) {
    let owner = &world.owner;
    let mut ask = message(world, owner, "512×512 cat");
    ask["stream_id"] = "str-img".into();
    let (status, frames, place) = send(world, owner, &ask);
    assert_eq!((status, place.as_str()), (202, "/v1/stream/str-img"));
    assert_eq!(frames.last().unwrap()["type"], "done", "{frames:?}");
}

/// UAMP 8 and A.3.
fn manifest(world: &World) {
    let reply = world.tls(&world.owner, "GET", "/.well-known/agent-manifest.json", &[], "");
    assert_eq!(reply.header("content-type"), Some("application/manifest+jws"), "{}", reply.text);
    let payload = reply.text.trim().split('.').nth(1).unwrap();
    let payload = yore_canon::encode::from_base64url(payload).unwrap();
    let manifest: Value = serde_json::from_slice(&payload).unwrap();
    let mut members: Vec<&String> = manifest.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(members, ["agent", "auth", "body_types", "description", "intents", "limits"]);
    assert!(manifest["agent"].as_str().unwrap().starts_with("uamp/1."));
}

/// OMP D: ids like `msg-001`, and a count that says 4 for two messages.
fn conversation(world: &World) {
    let at = "2026-03-15T09:30:00Z";
    let talk = json!({
        "id": "550e8400-e29b-41d4-a716-446655440000", "title": "Help me plan a garden",
        "created_at": at, "updated_at": "2026-03-15T09:45:00Z", "platform": "chatgpt",
        "model": "gpt-4o", "message_count": 4, "tags": ["gardening", "home"],
        "messages": [
            {
                "id": "msg-001", "role": "user", "timestamp": at, "model": null,
                "content": "I have a 10x12 backyard in Houston, TX", "platform": "chatgpt",
            },
            {
                "id": "msg-002", "role": "assistant", "timestamp": "2026-03-15T09:30:12Z",
                "content": "Great! Houston is in USDA Zone 9a", "model": "gpt-4o",
                "platform": "chatgpt",
                "attachments": [{
                    "filename": "report.pdf", "media_type": "application/pdf", "size_bytes": 4,
                    "data": "JVBERg==", "source": "user_upload",
                }],
            },
        ],
        "extensions": {"chatgpt_conversation_template_id": null},
    });
    let made = world.tls(&world.owner, "POST", "/conversations", &[], &talk.to_string());
    assert_eq!(made.status, 201, "{}", made.text);
    let path = "/conversations/550e8400-e29b-41d4-a716-446655440000";
    let kept = world.tls(&world.owner, "GET", path, &[], "").json();
    assert_eq!(kept["message_count"], 2, "{kept}");
    assert_eq!(kept["messages"][1]["content"], talk["messages"][1]["content"]);
    let file = &kept["messages"][1]["attachments"][0];
    assert_eq!(file["filename"], "report.pdf", "{kept}");
    let found = world.tls(&world.owner, "GET", "/search?q=backyard", &[], "").json();
    assert_eq!(found["data"][0]["platform"], "chatgpt", "{found}");
    let found = world.tls(&world.owner, "GET", "/search?q=lawn%20size&semantic=true", &[], "");
    assert_eq!(found.status, 200, "{}", found.text);
    let page =
        world.tls(&world.owner, "GET", "/conversations?limit=1&tags=gardening", &[], "").json();
    assert_eq!(
        (page["has_more"].as_bool(), page["data"].as_array().unwrap().len()),
        (Some(false), 1)
    );
    let asked = world.tls(&world.owner, "DELETE", &format!("{path}?dry_run=true"), &[], "").json();
    assert_eq!(asked["scope"], json!({"conversations": 1, "messages": 2}), "{asked}");
}

/// OMP 4.3 and 7.4; in clear text nothing is spoken.
fn memory_and_errors(world: &World) {
    for (kind, content) in
        [("preference", "User prefers dark mode"), ("fact", "User is vegetarian")]
    {
        let record = json!({
            "id": MemoryId::random(), "record_type": kind, "content": content,
            "created_at": "2026-04-07T12:00:00Z", "updated_at": "2026-04-07T12:00:00Z",
            "confidence": 0.9, "platform": "claude", "tags": ["style"], "active": true,
            "x_sentiment_score": 0.5,
        });
        let made = world.tls(&world.owner, "POST", "/memories", &[], &record.to_string());
        assert_eq!(made.status, 201, "{}", made.text);
        assert_eq!(made.json()["x_sentiment_score"], 0.5);
        let again = world.tls(&world.owner, "POST", "/memories", &[], &record.to_string());
        assert_eq!((again.status, again.json()["error"]["code"].as_str()), (409, Some("conflict")));
    }
    let missing =
        world.tls(&world.owner, "GET", &format!("/memories/{}", MemoryId::random()), &[], "");
    assert_eq!(missing.json()["error"]["code"], "not_found");
    let nobody =
        Caller { token: String::new(), key: SigningKey::generate(Algorithm::Ed25519, &[9; 32]) };
    let refused = world.tls(&nobody, "GET", "/memories", &[], "");
    assert_eq!(
        (refused.status, refused.json()["error"]["code"].as_str()),
        (401, Some("unauthorized"))
    );
    let plain = world.http(&world.owner, "GET", "/memories", &[], "");
    assert_eq!((plain.status, plain.json()["error"]["code"].as_str()), (403, Some("forbidden")));
}

/// OMP 4.4 and 5.1: a backup with its manifest.
fn archive_and_manifest(world: &World) {
    let begun = world.tls(&world.owner, "POST", "/backup", &[], "{}");
    assert_eq!(begun.status, 202, "{}", begun.text);
    let path = format!("/backup/{}", begun.json()["job_id"].as_str().unwrap());
    let mut state = Value::Null;
    for _ in 0..200 {
        state = world.tls(&world.owner, "GET", &path, &[], "").json();
        if state["status"] == "completed" {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(state["status"], "completed", "{state}");
    assert!(state["checksum"].as_str().unwrap().starts_with("sha256:"), "{state}");
    assert!(state["download_url"].is_string() && state["counts"]["conversations"].is_u64());
}

/// OMP 9.3. The level above is declared where the operator declares laws.
fn declaration(world: &World) {
    let told = world.tls(&world.owner, "GET", "/.well-known/omp", &[], "").json();
    assert_eq!(
        (told["omp_version"].as_str(), told["conformance_level"].as_str()),
        (Some("2.0"), Some("connected"))
    );
    for name in ["backup", "restore", "search", "semantic_search", "connectors"] {
        assert!(told["capabilities"].as_array().unwrap().contains(&json!(name)), "{name}: {told}");
    }
    assert_eq!(told["compliance_profiles"], json!([]));
}

fn entry(content: &str, labels: &[&str], class: &str) -> Value {
    json!({
        "oamp_version": "1.2.0", "type": "knowledge_entry", "id": MemoryId::random(),
        "user_id": "owner", "category": "fact", "content": content, "confidence": 0.9,
        "source": {"session_id": "sess-43", "timestamp": "2026-05-07T10:00:00Z"},
        "governance": {
            "sensitivity_class": class, "labels": labels,
            "handling": {"retrieval": "governed", "export": "governed", "stream": "governed"},
        },
    })
}

/// OAMP 1.2: both blocks come back as they were. Its sources have no time, which the schema wants.
fn governance_and_provenance(world: &World) {
    let mut entry = entry("Salaries are reviewed in March", &["finance", "hr"], "confidential");
    entry["provenance"] = json!({
        "sources": [
            {"session_id": "sess-42", "agent_id": "agent-a", "turn_id": "turn-3"},
            {"session_id": "sess-43", "agent_id": "agent-a", "turn_id": "turn-7"},
        ],
        "derived": true,
    });
    let made = world.post(&world.owner, "/v1/knowledge", &entry);
    assert_eq!(made.status, 201, "{}", made.text);
    let path = format!("/v1/knowledge/{}", entry["id"].as_str().unwrap());
    let kept = world.http(&world.owner, "GET", &path, &[], "").json();
    assert_eq!(kept["governance"], entry["governance"]);
    assert_eq!(kept["provenance"], entry["provenance"]);
    let told = world.http(&world.owner, "GET", "/v1/capabilities", &[], "").json();
    assert_eq!(told["capabilities"]["governance"]["enforcement"]["supported"], true, "{told}");
}

/// OAMP 1.3: a grant by its claims, in both places where it may stand, and what it hides.
fn grant(world: &World) {
    let portal = world.home.ok(&[
        "grant",
        "issue",
        "--agent",
        "medical-assistant-v3",
        "--read",
        "health,preferences",
        "--write",
        "health,preferences",
        "--max",
        "restricted",
        "--ttl",
        "1h",
        "--signed",
    ]);
    let portal = portal.trim().to_owned();
    let claims = portal.split('.').nth(1).unwrap();
    let claims = yore_canon::encode::from_base64url(claims).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    for (member, value) in [
        ("oamp_agent_id", json!("medical-assistant-v3")),
        ("oamp_read_labels", json!(["health", "preferences"])),
        ("oamp_write_labels", json!(["health", "preferences"])),
        ("oamp_sensitivity_max", json!("restricted")),
    ] {
        assert_eq!(claims[member], value, "{claims}");
    }
    let inside = entry("Blood pressure 120/80 in May", &["health.condition"], "restricted");
    let outside = entry("Holds 400 shares of Acme", &["finance.holdings"], "confidential");
    for one in [&inside, &outside] {
        assert_eq!(world.post(&world.owner, "/v1/knowledge", one).status, 201);
    }
    let agent =
        Caller { token: portal.clone(), key: SigningKey::generate(Algorithm::Ed25519, &[8; 32]) };
    let nobody =
        Caller { token: String::new(), key: SigningKey::generate(Algorithm::Ed25519, &[9; 32]) };
    let of = |entry: &Value| format!("/v1/knowledge/{}", entry["id"].as_str().unwrap());
    let header = [("oamp-grant", portal.as_str())];
    for (caller, headers) in [(&agent, &[][..]), (&nobody, &header[..])] {
        assert_eq!(world.http(caller, "GET", &of(&inside), headers, "").status, 200);
        assert_eq!(world.http(caller, "GET", &of(&outside), headers, "").status, 404);
    }
    let elsewhere = entry("Net worth", &["finance.income"], "internal");
    assert_eq!(world.post(&agent, "/v1/knowledge", &elsewhere).status, 403);
    let mut disguised = entry("Sleeps well", &["health"], "internal");
    disguised["source"]["agent_id"] = "somebody-else".into();
    assert_eq!(world.post(&agent, "/v1/knowledge", &disguised).status, 403);
    let _: Did = agent.did().parse().unwrap();
}
