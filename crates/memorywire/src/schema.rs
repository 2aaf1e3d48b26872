//! JSON Schemas of requests and answers, made from the types that carry them.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use yore_engine::dialect::{EffectHint, OperationSchema};

pub use crate::operations::OPERATIONS;
use crate::wire::governance::{ReviewRequest, ReviewResponse};
use crate::wire::record::{Emotional, Episodic, Procedural, Semantic};
use crate::wire::{
    Expire, Expired, Forget, Forgotten, Merge, Merged, Object, Recall, Recalled, Recover,
    Recovered, Remember, Remembered, Restore, Restored, Type,
};

/// What the addresses of all schemas begin with.
pub const ID: &str = "https://memorywire.dev/schemas/v0/";
/// What the name of an answer ends with.
const RESPONSE: &str = ".response";
/// What the name of a type of records begins with.
const TYPES: &str = "types/";
/// The name of the schema of what is put before a person.
const GOVERNANCE: &str = "governance";

/// Returns a schema by its name: `remember`, `remember.response`, `types/semantic` and so on.
#[must_use]
pub fn named(name: &str) -> Option<Value> {
    let schema = match name {
        "remember" => request::<Remember>(),
        "remember.response" => response::<Remembered>(),
        "recall" => request::<Recall>(),
        "recall.response" => response::<Recalled>(),
        "forget" => request::<Forget>(),
        "forget.response" => response::<Forgotten>(),
        "merge" => request::<Merge>(),
        "merge.response" => response::<Merged>(),
        "expire" => request::<Expire>(),
        "expire.response" => response::<Expired>(),
        "recover" => request::<Recover>(),
        "recover.response" => response::<Recovered>(),
        "restore" => request::<Restore>(),
        "restore.response" => response::<Restored>(),
        GOVERNANCE => governance(),
        "governance.response" => response::<ReviewResponse>(),
        _ => record(Type::named(name.strip_prefix(TYPES)?)?),
    };
    let apart = name.starts_with(TYPES) || name.starts_with(GOVERNANCE);
    let folder = if apart { "" } else { "operations/" };
    let mut whole = Object::new();
    whole.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    whole.insert("$id".to_owned(), format!("{ID}{folder}{name}").into());
    whole.extend(schema);
    Some(whole.into())
}

/// Returns all schemas with their names.
#[must_use]
pub fn all() -> Vec<(String, Value)> {
    let names = OPERATIONS
        .into_iter()
        .flat_map(|operation| [operation.to_owned(), format!("{operation}{RESPONSE}")]);
    let types = Type::ALL.iter().map(|of| format!("{TYPES}{}", of.as_str()));
    let review = [GOVERNANCE.to_owned(), format!("{GOVERNANCE}{RESPONSE}")];
    names
        .chain(types)
        .chain(review)
        .filter_map(|name| named(&name).map(|schema| (name, schema)))
        .collect()
}

/// The operations as carriers describe them.
pub(crate) fn operations() -> Vec<OperationSchema> {
    vec![
        OperationSchema {
            name: "remember",
            title: "Remember",
            summary: "Stores something worth remembering as the agent's own memory, and returns \
                      its id.",
            input: input::<Remember>(),
            output: output::<Remembered>(),
            effect: EffectHint::Writes,
        },
        OperationSchema {
            name: "recall",
            title: "Recall",
            summary: "Finds the agent's memories that answer a question, the best first.",
            input: input::<Recall>(),
            output: output::<Recalled>(),
            effect: EffectHint::Reads,
        },
        OperationSchema {
            name: "forget",
            title: "Forget",
            summary: "Takes memories out of recall, by id or by filter; with hard_delete nothing \
                      of them is left.",
            input: input::<Forget>(),
            output: output::<Forgotten>(),
            effect: EffectHint::Removes,
        },
        OperationSchema {
            name: "merge",
            title: "Merge duplicates",
            summary: "Makes several memories one and returns the one that is left.",
            input: input::<Merge>(),
            output: output::<Merged>(),
            effect: EffectHint::WritesOnce,
        },
        OperationSchema {
            name: "expire",
            title: "Expire by policy",
            summary: "Forgets, archives or demotes memories that are old, unsure or unused.",
            input: input::<Expire>(),
            output: output::<Expired>(),
            effect: EffectHint::Removes,
        },
        OperationSchema {
            name: "recover",
            title: "Recover from poisoning",
            summary: "Looks through the agent's memories, forgets what came from sources that are \
                      not trusted and puts aside what gives orders; only reports unless dry_run \
                      is false.",
            input: input::<Recover>(),
            output: output::<Recovered>(),
            effect: EffectHint::Removes,
        },
        OperationSchema {
            name: "restore",
            title: "Restore",
            summary: "Brings back memories that were put aside or forgotten.",
            input: input::<Restore>(),
            output: output::<Restored>(),
            effect: EffectHint::WritesOnce,
        },
    ]
}

/// The schema of what is put before a person: the request is as its operation describes it.
fn governance() -> Object {
    let mut schema = response::<ReviewRequest>();
    let each = |(operation, request): (&str, Object)| {
        json!({
            "properties": {"operation": {"const": operation}, "request": request},
            "required": ["operation", "request"],
        })
    };
    let operations = [
        ("remember", request::<Remember>()),
        ("forget", request::<Forget>()),
        ("merge", request::<Merge>()),
    ];
    schema.insert("required".to_owned(), json!(["operation", "agent_id", "request"]));
    schema.insert("oneOf".to_owned(), operations.into_iter().map(each).collect());
    schema
}

/// The schema of what is stored of one type.
fn record(of: Type) -> Object {
    let mut schema = match of {
        Type::Semantic => request::<Semantic>(),
        Type::Episodic => request::<Episodic>(),
        Type::Procedural => request::<Procedural>(),
        Type::Emotional => request::<Emotional>(),
    };
    if let Some(kind) = schema.get_mut("properties").and_then(|all| all.get_mut("type")) {
        *kind = json!({"const": of.as_str()});
    }
    schema
}

/// The schema of what is taken.
fn request<T: JsonSchema>() -> Object {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    members::<T>(settings)
}

/// The schema of what is answered.
fn response<T: JsonSchema>() -> Object {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    members::<T>(settings)
}

fn members<T: JsonSchema>(settings: SchemaSettings) -> Object {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    schema.as_object().cloned().unwrap_or_default()
}

/// A request over a carrier: the agent's name may be left out.
fn input<T: JsonSchema>() -> Value {
    let mut schema = request::<T>();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name != "agent_id");
    }
    if let Some(agent) = schema.get_mut("properties").and_then(|all| all.get_mut("agent_id")) {
        agent["description"] = json!("The agent whose memory it is; may be left out");
    }
    schema.into()
}

fn output<T: JsonSchema>() -> Value {
    response::<T>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mw_003_schemas_have_the_protocols_addresses_and_answers_are_closed() {
        let all = all();
        assert_eq!(all.len(), 20);
        for (name, schema) in &all {
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
            let apart = name.starts_with(TYPES) || name.starts_with(GOVERNANCE);
            let place = if apart { name } else { &format!("operations/{name}") };
            assert_eq!(schema["$id"], format!("{ID}{place}"));
            assert_eq!(schema["type"], "object", "{name}");
        }
        for name in ["remember.response", "recall.response", "forget.response"] {
            assert_eq!(named(name).unwrap()["additionalProperties"], false, "{name}");
        }
        let hits = &named("recall.response").unwrap()["properties"]["results"]["items"];
        assert_ne!(hits["additionalProperties"], false);
        let counts = &named("forget.response").unwrap()["properties"]["stores"]["items"];
        assert_eq!(counts["additionalProperties"], false);
        for name in ["recovery", "types/working", "semantic", "remember.request"] {
            assert!(named(name).is_none(), "{name}");
        }
    }

    #[test]
    fn mw_211_what_is_put_before_a_person_has_the_form_of_its_operation() {
        let schema = named(GOVERNANCE).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let with = |operation: &str, request: Value| {
            json!({
                "id": "1", "operation": operation, "agent_id": "a", "request": request,
                "diff": {"added": [], "removed": [], "modified": []},
                "reasoning": "asked", "approval_url": "/app/review/1",
            })
        };
        let remember = json!({"agent_id": "a", "type": "semantic", "content": "x"});
        let forget = json!({"agent_id": "a", "ids": ["1"]});
        let merge = json!({"agent_id": "a", "canonical": "1", "duplicates": ["2"]});
        for (operation, request) in
            [("remember", &remember), ("forget", &forget), ("merge", &merge)]
        {
            assert!(validator.is_valid(&with(operation, request.clone())), "{operation}");
        }
        for (operation, request) in [
            ("remember", &merge),
            ("merge", &forget),
            ("merge", &remember),
            ("recall", &remember),
            ("expire", &forget),
        ] {
            assert!(!validator.is_valid(&with(operation, request.clone())), "{operation}");
        }
        let missing = json!({"operation": "remember", "agent_id": "a"});
        assert!(!validator.is_valid(&missing));
    }

    #[test]
    fn mw_006_a_record_has_what_its_type_has_and_may_have_more() {
        let table: [(Type, &[&str]); 4] = [
            (Type::Semantic, &[]),
            (Type::Episodic, &["event_time", "location", "participants"]),
            (Type::Emotional, &["sentiment", "valence", "arousal", "emotion", "target"]),
            (Type::Procedural, &[]),
        ];
        for (of, members) in table {
            let schema = Value::Object(record(of));
            assert_eq!(schema["properties"]["type"]["const"], of.as_str());
            let mut required: Vec<&str> =
                schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            required.sort_unstable();
            assert_eq!(required, ["agent_id", "content", "created_at", "id", "type"]);
            assert!(
                members.iter().all(|name| schema["properties"].get(name).is_some()),
                "{schema}"
            );
            assert_ne!(schema["additionalProperties"], false);
        }
        let content = &Value::Object(record(Type::Procedural))["properties"]["content"];
        assert_eq!(content["properties"]["transitions"]["type"], "array");
    }

    #[test]
    fn mw_010_mw_020_requests_state_their_bounds_and_defaults() {
        let remember = named("remember").unwrap();
        let properties = &remember["properties"];
        assert_eq!(remember["required"], json!(["agent_id", "type", "content"]));
        assert_eq!(properties["agent_id"]["maxLength"], 256);
        assert_eq!(properties["confidence"]["default"], 1.0);
        assert_eq!(
            properties["type"]["enum"],
            json!(["semantic", "episodic", "procedural", "emotional"])
        );
        let recall = named("recall").unwrap();
        let properties = &recall["properties"];
        assert_eq!(properties["k"]["maximum"], 1000);
        assert_eq!(
            (&properties["k"]["default"], &properties["hops"]["maximum"]),
            (&json!(5), &json!(3))
        );
        assert_eq!(properties["fusion"]["default"], "rrf");
        let expire = named("expire").unwrap();
        assert_eq!(expire["required"], json!(["agent_id", "policy"]));
    }
}
