//! The protocols in which clients write, and how each says that something is kept.

use serde_json::{Value, json};

use super::journal::Fact;
use super::wire::{Reply, Request};

/// The header with a client's own id for an operation.
const OPERATION: &str = "yore-operation-id";
/// When things were made, as protocols want it said. Order does not follow it.
const MADE: &str = "2026-01-02T03:04:05Z";

/// A way to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tongue {
    Native,
    Ump,
    Oamp,
    Memorywire,
    /// Memory records of OMP.
    Memories,
    /// Conversations of OMP.
    Talks,
    Mcp,
}

/// What an answer to a write means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is kept, under this id.
    Kept(String),
    /// The id is taken: by the first try, or by somebody else.
    Taken,
    /// It may or may not be done; the same again.
    Again,
    /// It is not done and will not be.
    Refused(String),
}

/// Who writes: one of the clients.
#[derive(Clone, Debug)]
pub(super) struct Speaker {
    pub(super) client: usize,
    /// The name its grant is for.
    pub(super) agent: &'static str,
    pub(super) tongue: Tongue,
    /// The only label it may touch, if its grant names one.
    pub(super) confined: Option<&'static str>,
}

/// The clients, each with a grant of its own. The last one may see one label only.
pub(super) const SPEAKERS: [Speaker; 8] = [
    free(0, "native", Tongue::Native),
    free(1, "ump", Tongue::Ump),
    free(2, "oamp", Tongue::Oamp),
    free(3, "memorywire", Tongue::Memorywire),
    free(4, "records", Tongue::Memories),
    free(5, "talks", Tongue::Talks),
    free(6, "mcp", Tongue::Mcp),
    Speaker { client: 7, agent: "confined", tongue: Tongue::Native, confined: Some("work") },
];

const fn free(client: usize, agent: &'static str, tongue: Tongue) -> Speaker {
    Speaker { client, agent, tongue, confined: None }
}

impl Speaker {
    /// How it says a fact. The same each time it is asked.
    pub(super) fn write(&self, fact: &Fact) -> Request {
        let text = fact.text();
        match self.tongue {
            Tongue::Native => {
                let labels: Vec<&str> = self.confined.into_iter().collect();
                let draft = json!({
                    "body": {"text": text}, "kind": "semantic", "facet": "fact", "scope": {},
                    "lifecycle": {}, "provenance": {}, "governance": {"labels": labels},
                    "consent": {},
                });
                let request = Request::post("/api/v1/remember", &json!({"draft": draft}));
                request.with(OPERATION, &fact.operation)
            }
            Tongue::Ump => {
                let record = json!({"record": record(&text)});
                Request::post("/ump/remember", &record).with(OPERATION, &fact.operation)
            }
            Tongue::Mcp => tool("ump.remember", &record(&text), Some(&fact.operation)),
            Tongue::Memorywire => {
                let note = json!({"agent_id": self.agent, "type": "semantic", "content": text});
                let request = Request::post("/memorywire/v0/remember", &note);
                request.with(OPERATION, &fact.operation)
            }
            // The others have no ids of operations: what is written has the client's id instead.
            Tongue::Oamp => {
                let entry = json!({
                    "oamp_version": "1.2.0", "type": "knowledge_entry", "id": fact.id,
                    "user_id": "owner", "category": "preference", "content": text,
                    "confidence": 0.8, "source": {"session_id": "s-1", "timestamp": MADE},
                    "governance": {"sensitivity_class": "internal", "labels": ["preferences"]},
                });
                Request::post("/v1/knowledge", &entry)
            }
            Tongue::Memories => {
                let memory = json!({
                    "id": fact.id, "record_type": "preference", "content": text,
                    "created_at": MADE, "updated_at": MADE, "active": true,
                });
                Request::post("/memories", &memory)
            }
            Tongue::Talks => {
                let message = json!({
                    "id": fact.id, "role": "user", "timestamp": MADE, "content": text,
                });
                match &fact.talk {
                    Some((talk, false)) => {
                        Request::post(format!("/conversations/{talk}/messages"), &message)
                    }
                    Some((talk, true)) => Request::post("/conversations", &begun(talk, message)),
                    // A message always has a place: this one is refused.
                    None => Request::post("/conversations", &message),
                }
            }
        }
    }

    /// How it reads a fact again, by the id it knows it by.
    pub(super) fn read(&self, fact: &Fact, kept: &str) -> Request {
        match self.tongue {
            Tongue::Native | Tongue::Memorywire => {
                Request::post("/api/v1/get", &json!({"reference": {"memory": kept}}))
            }
            Tongue::Ump => Request::get(format!("/ump/memory/{kept}")),
            Tongue::Mcp => tool("ump.get", &json!({"id": kept}), None),
            Tongue::Oamp => Request::get(format!("/v1/knowledge/{}?user_id=owner", fact.id)),
            Tongue::Memories => Request::get(format!("/memories/{}", fact.id)),
            Tongue::Talks => {
                let talk = fact.talk.as_ref().map_or("", |(talk, _)| talk);
                Request::get(format!("/conversations/{talk}/messages/{}", fact.id))
            }
        }
    }

    /// What an answer to a write means.
    pub(super) fn answer(&self, fact: &Fact, reply: &Reply) -> Answer {
        let said = reply.json();
        let refused = || Answer::Refused(format!("{} {}", reply.status, shortened(&reply.text)));
        match reply.status {
            200 | 201 => {}
            409 => return Answer::Taken,
            408 | 425 | 429 | 500..=599 => return Answer::Again,
            _ => return refused(),
        }
        let text = |at: &str| said.pointer(at).and_then(Value::as_str).map(str::to_owned);
        let kept = match self.tongue {
            Tongue::Native => text("/memories/0/memory"),
            Tongue::Ump | Tongue::Oamp | Tongue::Memories => text("/id"),
            Tongue::Memorywire => text("/id").filter(|_| said["pending_approval"] == false),
            Tongue::Mcp => text("/result/structuredContent/id"),
            Tongue::Talks if said["conflicts"].as_array().is_some_and(|all| !all.is_empty()) => {
                None
            }
            // What was sent is what is known of it.
            Tongue::Talks => Some(fact.id.clone()),
        };
        match kept {
            Some(id) => Answer::Kept(id),
            None if passes(&said) => Answer::Again,
            None => refused(),
        }
    }
}

/// Whether a refusal inside an answer is one that passes.
fn passes(said: &Value) -> bool {
    let at = ["/error/code", "/result/structuredContent/error/code"];
    let code = at.iter().find_map(|at| said.pointer(at));
    // JSON-RPC has a number for a fault of the server.
    code.is_some_and(|code| {
        *code == -32603 || code.as_str().is_some_and(|code| PASSING.contains(&code))
    })
}

const PASSING: [&str; 3] = ["busy", "internal", "rate_limited"];

fn record(text: &str) -> Value {
    json!({
        "kind": "semantic", "body": {"text": text},
        "scope": {"owner": "owner", "visibility": "private"},
    })
}

fn begun(id: &str, message: Value) -> Value {
    json!({
        "id": id, "title": "a talk", "platform": "chatgpt", "created_at": MADE,
        "updated_at": MADE, "message_count": 1, "messages": [message],
    })
}

/// A call of a tool over Streamable HTTP, in a request that stands alone.
pub(super) fn tool(name: &str, arguments: &Value, operation: Option<&str>) -> Request {
    let version = "2026-07-28";
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    if let Some(operation) = operation {
        meta["yore/operation-id"] = operation.into();
    }
    let call = json!({
        "jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": name, "arguments": arguments, "_meta": meta},
    });
    Request::post("/mcp", &call)
        .with("accept", "application/json, text/event-stream")
        .with("mcp-protocol-version", version)
        .with("mcp-method", "tools/call")
        .with("mcp-name", name)
}

/// The beginning of a text, for a line of the report.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    fn reply(status: u16, body: Value) -> Reply {
        Reply { status, head: String::new(), text: body.to_string() }
    }

    #[test]
    fn only_an_answer_with_an_id_is_an_acknowledgement() {
        let fact = Fact::new(0, 1, false, &mut Random::new(1));
        for speaker in SPEAKERS.iter().filter(|speaker| speaker.tongue != Tongue::Talks) {
            let nothing = speaker.answer(&fact, &reply(200, json!({})));
            assert!(matches!(nothing, Answer::Refused(_)), "{}: {nothing:?}", speaker.agent);
            for status in [500, 503, 429] {
                let busy = reply(status, json!({"error": {"code": "busy"}}));
                assert_eq!(speaker.answer(&fact, &busy), Answer::Again, "{}", speaker.agent);
            }
        }
        let mcp = &SPEAKERS[6];
        let said = json!({"result": {"structuredContent": {"error": {"code": "busy"}}}});
        assert_eq!(mcp.answer(&fact, &reply(200, said)), Answer::Again);
        let said = json!({"error": {"code": -32603, "message": "internal error"}});
        assert_eq!(mcp.answer(&fact, &reply(200, said)), Answer::Again);
    }

    #[test]
    fn the_same_is_sent_each_time() {
        for speaker in &SPEAKERS {
            let mut fact = Fact::new(speaker.client, 1, false, &mut Random::new(1));
            fact.talk = Some(("t".to_owned(), true));
            let said = [speaker.write(&fact), speaker.write(&fact)].map(|one| format!("{one:?}"));
            assert_eq!(said[0], said[1], "{}", speaker.agent);
            assert!(said[0].contains(&fact.mark) && said[0].contains("POST"), "{said:?}");
        }
    }
}
