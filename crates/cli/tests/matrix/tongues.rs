//! The six protocols, each with its own words for the same five things.

use serde_json::{Map, Value, json};
use yore_domain::{MemoryId, Timestamp};

use crate::world::{Caller, Reply, World};

/// What a memory says, whichever protocol is asked: by a name that all of them share.
pub(crate) type Traits = Map<String, Value>;

/// When the stories' memories were made, and until when some of them hold.
const MADE: &str = "2026-01-02T03:04:05Z";
const ENDS: &str = "2031-01-01T00:00:00Z";

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Done,
    Held,
    Denied,
    Missing,
    /// Nothing of that sort.
    Odd(String),
}

/// A memory that a request is about, in every protocol's spelling.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) memory: MemoryId,
    /// The statement that UMP knows it by.
    pub(crate) urn: String,
}

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tongue {
    Ump,
    Memorywire,
    Oamp,
    Omp,
    Uamp,
    Mcp,
}

impl Tongue {
    pub(crate) const ALL: [Self; 6] =
        [Self::Ump, Self::Memorywire, Self::Oamp, Self::Omp, Self::Uamp, Self::Mcp];

    /// Its name in the audit chain.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ump => "ump",
            Self::Memorywire => "memorywire",
            Self::Oamp => "oamp",
            Self::Omp => "omp",
            Self::Uamp => "uamp",
            Self::Mcp => "mcp",
        }
    }

    /// Writes something with everything that the protocol can say of it.
    pub(crate) fn write(
        self,
        world: &World,
        caller: &Caller,
        agent: &str,
        text: &str,
    ) -> (Verdict, Value) {
        match self {
            Self::Ump | Self::Uamp | Self::Mcp => {
                self.ump(world, caller, "remember", &json!({ "record": record(agent, text) }))
            }
            Self::Memorywire => {
                let reply = world.post(caller, "/memorywire/v0/remember", &note(agent, text));
                (wire_verdict(&reply, |body| body["id"].is_string()), reply.json())
            }
            Self::Oamp => rest(&world.post(caller, "/v1/knowledge", &entry(text))),
            Self::Omp => rest(&world.post(caller, "/memories", &memory(text))),
        }
    }

    /// The same for what must be found. Vectors are made after a write was answered, and until then
    /// older memories that are much alike may stand before it.
    pub(crate) fn find_soon(
        self,
        world: &World,
        caller: &Caller,
        agent: &str,
        text: &str,
    ) -> Option<Value> {
        (0..30).find_map(|attempt| {
            if attempt > 0 {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            self.find(world, caller, agent, text)
        })
    }

    /// Finds a memory by its text and returns it as the protocol shows it.
    pub(crate) fn find(
        self,
        world: &World,
        caller: &Caller,
        agent: &str,
        text: &str,
    ) -> Option<Value> {
        let says = |found: &&Value, at: &str| {
            found.pointer(at).and_then(Value::as_str).is_some_and(|found| found.starts_with(text))
        };
        match self {
            Self::Ump | Self::Uamp | Self::Mcp => {
                // Few results, so that they fit one frame of a stream; and the last word, which no
                // other story has.
                let last = text.rsplit(' ').next().unwrap_or(text);
                [text, last].into_iter().find_map(|query| {
                    let question = json!({"query": query, "scope": {"agent": agent}, "limit": 8});
                    let (_, answer) = self.ump(world, caller, "recall", &question);
                    let results = answer["results"].as_array().cloned().unwrap_or_default();
                    let found = results.iter().find(|hit| says(hit, "/record/body/text"));
                    found.map(|hit| hit["record"].clone())
                })
            }
            Self::Memorywire => {
                let question = json!({"agent_id": agent, "query": text, "k": 50});
                let answer = world.post(caller, "/memorywire/v0/recall", &question).json();
                let results = answer["results"].as_array().cloned().unwrap_or_default();
                results.iter().find(|hit| says(hit, "/content")).cloned()
            }
            Self::Oamp => {
                let path = format!("/v1/knowledge?user_id=owner&query={}", escaped(text));
                let found = world.http(caller, "GET", &path, &[], "").json();
                let found = found.as_array().cloned().unwrap_or_default();
                found.iter().find(|entry| says(entry, "/content")).cloned()
            }
            Self::Omp => {
                let path = format!("/search?type=memory&limit=50&q={}", escaped(text));
                let found = world.http(caller, "GET", &path, &[], "").json();
                let found = found["data"].as_array().cloned().unwrap_or_default();
                let of = |hit: &Value| {
                    let id = ["/memory_id", "/id", "/memory/id"];
                    id.iter().find_map(|at| hit.pointer(at)?.as_str().map(str::to_owned))
                };
                let each = found.iter().filter_map(of);
                let mut each = each.map(|id| {
                    world.http(caller, "GET", &format!("/memories/{id}"), &[], "").json()
                });
                each.find(|memory| says(&memory, "/content"))
            }
        }
    }

    /// Reads a memory by its id.
    pub(crate) fn get(
        self,
        world: &World,
        caller: &Caller,
        agent: &str,
        target: &Target,
        text: &str,
    ) -> (Verdict, Value) {
        match self {
            Self::Ump | Self::Uamp | Self::Mcp => {
                self.ump(world, caller, "get", &json!({"id": target.urn}))
            }
            // The protocol reads by question alone.
            Self::Memorywire => match self.find(world, caller, agent, text) {
                Some(found) => (Verdict::Done, found),
                None => (Verdict::Missing, Value::Null),
            },
            Self::Oamp => {
                let path = format!("/v1/knowledge/{}?user_id=owner", target.memory);
                rest(&world.http(caller, "GET", &path, &[], ""))
            }
            Self::Omp => {
                let path = format!("/memories/{}", target.memory);
                rest(&world.http(caller, "GET", &path, &[], ""))
            }
        }
    }

    /// Changes a memory as far as the protocol can: its text gets a word more or, where no
    /// text can be changed, it becomes less sure.
    pub(crate) fn revise(
        self,
        world: &World,
        caller: &Caller,
        agent: &str,
        target: &Target,
        text: &str,
    ) -> (Verdict, Value) {
        match self {
            Self::Ump | Self::Uamp | Self::Mcp => {
                let patch = json!({"body": {"text": text, "structured": {"plot": "north"}}});
                self.ump(world, caller, "revise", &json!({"id": target.urn, "patch": patch}))
            }
            Self::Memorywire => {
                // What joins it must be there before.
                let text = format!("It was looked at, {}, and is so now", target.memory);
                let fresh = json!({
                    "agent_id": agent, "type": "semantic", "content": text, "confidence": SURE,
                    "expires_at": millis(ENDS),
                });
                let fresh = world.post(&world.owner, "/memorywire/v0/remember", &fresh).json();
                let merge = json!({
                    "agent_id": agent, "canonical": target.memory, "duplicates": [fresh["id"]],
                    "strategy": "merge_content",
                });
                let reply = world.post(caller, "/memorywire/v0/merge", &merge);
                let done = |body: &Value| body["merged_count"].as_u64().unwrap_or(0) > 0;
                (wire_verdict(&reply, done), reply.json())
            }
            Self::Oamp => {
                let path = format!("/v1/knowledge/{}?user_id=owner", target.memory);
                let change = json!({"confidence": LESS}).to_string();
                rest(&world.http(caller, "PATCH", &path, &[], &change))
            }
            Self::Omp => {
                let path = format!("/memories/{}", target.memory);
                let change = json!({"content": text}).to_string();
                rest(&world.http(caller, "PATCH", &path, &[], &change))
            }
        }
    }

    /// Removes a memory for good.
    pub(crate) fn erase(
        self,
        world: &World,
        caller: &Caller,
        agent: &str,
        target: &Target,
    ) -> (Verdict, Value) {
        match self {
            Self::Ump | Self::Uamp | Self::Mcp => {
                let forget = json!({"id": target.urn, "reason": "asked to", "hard": true});
                self.ump(world, caller, "forget", &forget)
            }
            Self::Memorywire => {
                let ids = [target.memory];
                let forget = json!({"agent_id": agent, "ids": ids, "hard_delete": true});
                let reply = world.post(caller, "/memorywire/v0/forget", &forget);
                let done = |body: &Value| {
                    body["forgotten_ids"].as_array().is_some_and(|ids| !ids.is_empty())
                };
                (wire_verdict(&reply, done), reply.json())
            }
            Self::Oamp => {
                let path = format!("/v1/knowledge/{}?user_id=owner", target.memory);
                rest(&world.http(caller, "DELETE", &path, &[], ""))
            }
            Self::Omp => {
                let path = format!("/memories/{}", target.memory);
                rest(&world.http(caller, "DELETE", &path, &[], ""))
            }
        }
    }

    /// What a memory says in this protocol, by the names that all share.
    pub(crate) fn traits(self, shown: &Value) -> Traits {
        let mut traits = Traits::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                traits.insert(name.to_owned(), value);
            }
        };
        let at = |path: &str| shown.pointer(path).cloned();
        let moment = |path: &str| at(path).as_ref().and_then(Value::as_str).map(millis);
        match self {
            Self::Ump | Self::Uamp | Self::Mcp => {
                put("text", at("/body/text"));
                put("members", at("/body/structured"));
                put("kind", at("/kind"));
                put("confidence", at("/lifecycle/confidence"));
                put("salience", at("/lifecycle/salience"));
                put("half_life", at("/lifecycle/decay").as_ref().and_then(days));
                put("agent", at("/scope/agent"));
                put("session", at("/scope/session"));
                put("source", at("/provenance/source/ref"));
                put("retention", at("/consent/retention").as_ref().and_then(days));
                put("made", moment("/time/created"));
            }
            Self::Memorywire => {
                put("text", at("/content"));
                put("members", at("/metadata"));
                put("kind", at("/type"));
                put("confidence", at("/confidence"));
                put("salience", at("/importance"));
                put("agent", at("/agent_id"));
                put("source", at("/source"));
                put("retention", at("/privacy_intent/retain").as_ref().and_then(days));
                put("ends", at("/expires_at"));
                put("made", at("/created_at"));
            }
            Self::Oamp => {
                put("text", at("/content"));
                put("facet", at("/category"));
                put("confidence", at("/confidence"));
                put("half_life", at("/decay/half_life_days").map(|days| whole(&days)));
                put("session", at("/source/session_id"));
                put("tags", at("/tags"));
                put("made", moment("/source/timestamp"));
            }
            Self::Omp => {
                put("text", at("/content"));
                put("facet", at("/record_type"));
                put("confidence", at("/confidence"));
                put("tags", at("/tags"));
                put("ends", moment("/expires_at"));
                put("made", moment("/created_at"));
            }
        }
        traits
    }

    /// What only this protocol has, and nobody's revision may cost.
    pub(crate) fn own(self, shown: &Value) -> Value {
        let members: &[&str] = match self {
            Self::Ump | Self::Uamp | Self::Mcp => &[
                "/kind",
                "/scope",
                "/consent",
                "/relations",
                "/lifecycle/decay",
                "/body/structured",
            ],
            Self::Memorywire => &[
                "/type",
                "/agent_id",
                "/metadata",
                "/source",
                "/importance",
                "/expires_at",
                "/privacy_intent",
                "/sentiment",
            ],
            Self::Oamp => &["/id", "/category", "/governance", "/decay", "/tags", "/metadata"],
            Self::Omp => &[
                "/id",
                "/record_type",
                "/tags",
                "/platform",
                "/expires_at",
                "/created_at",
                "/x_colour",
            ],
        };
        members.iter().map(|at| shown.pointer(at).cloned().unwrap_or_default()).collect()
    }

    /// Runs an operation of UMP, over HTTP or by a carrier.
    fn ump(
        self,
        world: &World,
        caller: &Caller,
        operation: &str,
        input: &Value,
    ) -> (Verdict, Value) {
        match self {
            Self::Uamp => {
                let content = json!({"op": operation, "input": input}).to_string();
                let body = json!({"type": "application/vnd.ump+json", "content": content});
                let (reply, frames) = world.say(caller, "ask", &body);
                let Some(answer) = frames.first().map(|frame| &frame["payload"]) else {
                    return (Verdict::Odd(reply.text.clone()), reply.json());
                };
                match (&answer["record"]["ok"], &answer["record"]["refused"]) {
                    (Value::Null, Value::Null) => match answer["code"].as_str() {
                        Some("4.03") => (Verdict::Denied, answer.clone()),
                        Some("4.04") => (Verdict::Missing, answer.clone()),
                        Some(_) | None => (Verdict::Odd(answer.to_string()), answer.clone()),
                    },
                    (Value::Null, refused) => (ump_verdict(refused), refused.clone()),
                    (ok, _) => (ump_verdict(ok), ok.clone()),
                }
            }
            Self::Mcp => {
                let answer = tool(world, caller, &format!("ump.{operation}"), input);
                let said = answer["result"]["structuredContent"].clone();
                (ump_verdict(&said), said)
            }
            Self::Ump | Self::Memorywire | Self::Oamp | Self::Omp => {
                let reply = match operation {
                    "get" => {
                        let path = format!("/ump/memory/{}", input["id"].as_str().unwrap());
                        world.http(caller, "GET", &path, &[], "")
                    }
                    _ => world.post(caller, &format!("/ump/{operation}"), input),
                };
                let said = reply.json();
                (ump_verdict(&said), said)
            }
        }
    }
}

/// How sure a memory is at first, and after a protocol that can change nothing else.
pub(crate) const SURE: f64 = 0.75;
pub(crate) const LESS: f64 = 0.25;

/// Calls a tool of MCP, in a request that stands alone.
pub(crate) fn tool(world: &World, caller: &Caller, name: &str, arguments: &Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({
        "jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": name, "arguments": arguments, "_meta": meta},
    });
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", name),
    ];
    let reply = world.http(caller, "POST", "/mcp", &headers, &call.to_string());
    match reply.events().pop() {
        Some(last) => last,
        None => reply.json(),
    }
}

fn record(agent: &str, text: &str) -> Value {
    json!({
        "kind": "semantic",
        "body": {"text": text, "structured": {"plot": "north"}},
        "scope": {"owner": "owner", "agent": agent, "session": "s-7", "visibility": "private"},
        "time": {"created": MADE, "valid_from": MADE},
        "lifecycle": {"confidence": SURE, "salience": 0.5, "decay": "half_life:P90D"},
        "relations": [{"type": "about", "target": "entity:roses"}],
        "provenance": {
            "actor": "owner", "actor_kind": "user", "method": "stated",
            "source": {"ref": "chat-12"},
        },
        "consent": {"retention": "P3650D"},
    })
}

fn note(agent: &str, text: &str) -> Value {
    json!({
        "agent_id": agent, "type": "semantic", "content": text, "metadata": {"plot": "north"},
        "confidence": SURE, "importance": 0.5, "source": "chat-12", "expires_at": millis(ENDS),
        "privacy_intent": {"retain": "3650d"}, "sentiment": "glad",
    })
}

fn entry(text: &str) -> Value {
    json!({
        "oamp_version": "1.2.0", "type": "knowledge_entry", "id": MemoryId::random(),
        "user_id": "owner", "category": "preference", "content": text, "confidence": SURE,
        "source": {"session_id": "s-7", "timestamp": MADE}, "decay": {"half_life_days": 90},
        "governance": {"sensitivity_class": "internal", "labels": ["preferences"]},
        "tags": ["garden", "roses"], "metadata": {"colour": "red"},
    })
}

fn memory(text: &str) -> Value {
    json!({
        "id": MemoryId::random(), "record_type": "preference", "content": text,
        "created_at": MADE, "updated_at": MADE, "confidence": SURE, "expires_at": ENDS,
        "tags": ["garden", "roses"], "platform": "chatgpt", "active": true, "x_colour": "red",
    })
}

fn millis(text: &str) -> Value {
    text.parse::<Timestamp>().map_or(Value::Null, |time| time.millis().into())
}

/// A length of time in days: `half_life:P90D`, `P90D` or `90d`.
fn days(text: &Value) -> Option<Value> {
    let digits: String = text.as_str()?.chars().filter(char::is_ascii_digit).collect();
    digits.parse::<u64>().ok().map(Value::from)
}

fn whole(days: &Value) -> Value {
    days.as_f64().map_or(Value::Null, |days| json!(days.round() as u64))
}

fn ump_verdict(said: &Value) -> Verdict {
    let held = said["reason"].as_str().is_some_and(|why| why.starts_with("pending_approval"));
    match said["error"]["code"].as_str() {
        None if held => Verdict::Held,
        None if said.is_object() => Verdict::Done,
        Some("forbidden_scope") => Verdict::Denied,
        Some("not_found") => Verdict::Missing,
        Some(_) | None => Verdict::Odd(said.to_string()),
    }
}

/// memorywire says nothing of what it does not find; that counts as missing.
fn wire_verdict(reply: &Reply, done: impl Fn(&Value) -> bool) -> Verdict {
    let body = reply.json();
    match reply.status {
        200 if body["pending_approval"] == true => Verdict::Held,
        200 if done(&body) => Verdict::Done,
        200 | 404 => Verdict::Missing,
        403 => Verdict::Denied,
        status => Verdict::Odd(format!("{status} {body}")),
    }
}

fn rest(reply: &Reply) -> (Verdict, Value) {
    let verdict = match reply.status {
        200 | 201 | 204 => Verdict::Done,
        202 => Verdict::Held,
        403 => Verdict::Denied,
        404 => Verdict::Missing,
        status => Verdict::Odd(format!("{status} {}", reply.text)),
    };
    (verdict, reply.json())
}

/// Escapes a text for a query.
pub(crate) fn escaped(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric();
    text.bytes()
        .map(
            |byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") },
        )
        .collect()
}
