//! Generated exports come back deep-equal from what was read, whatever their tree looks like.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use yore_archive::omp::{conversation_from, conversation_json};
use yore_archive::residue::native;
use yore_archive::{Item, Limits, Source, Talk, read};

/// Reads an export that lies in a file.
fn talks(export: &Value) -> Vec<Talk> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("conversations.json");
    std::fs::write(&path, export.to_string()).unwrap();
    let source = Source::open(&[path], Limits::default()).unwrap();
    let mut found = Vec::new();
    let report = read(&source, &mut |item| {
        match item {
            Item::Conversation(talk) => found.push(*talk),
            Item::Memory(_) => {}
            Item::Skipped(skip) => panic!("{skip:?}"),
        }
        Ok(())
    });
    report.unwrap();
    found
}

/// What was read gives the export back, before and after a way through an archive.
fn check(export: &Value, conversations: &[Value]) -> Result<(), TestCaseError> {
    let found = talks(export);
    prop_assert_eq!(found.len(), conversations.len());
    for (talk, original) in found.iter().zip(conversations) {
        prop_assert_eq!(&native(&talk.head, &talk.messages).unwrap(), original);
        let json = conversation_json(&talk.head, &talk.messages, &|_| None);
        let text = json.to_string();
        let Value::Object(again) = serde_json::from_str(&text).unwrap() else { panic!() };
        let mut wrong = Vec::new();
        let (head, messages) = conversation_from(again, &mut wrong).unwrap();
        prop_assert!(wrong.is_empty(), "{:?}", wrong);
        prop_assert_eq!(&native(&head, &messages).unwrap(), original);
        let shape = |list: &[yore_domain::conversation::Message]| {
            list.iter().map(|m| (m.id, m.parent, m.off_path)).collect::<Vec<_>>()
        };
        prop_assert_eq!(shape(&messages), shape(&talk.messages));
    }
    Ok(())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z é🐝]{0,20}", "[a-z ]{40,80}", Just(String::new())]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (1_600_000_000_f64..1_800_000_000.0).prop_map(Value::from),
        text().prop_map(Value::from),
    ]
}

/// Members that nobody knows, in any form.
fn members() -> impl Strategy<Value = Map<String, Value>> {
    let value = scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[$a-c]{1,2}", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    prop::collection::vec(("z_[a-e$]", value), 0..4).prop_map(|all| all.into_iter().collect())
}

fn id(seed: u64) -> String {
    format!("{:08x}-0000-4000-8000-{:012x}", seed as u32, seed)
}

fn merge(mut base: Value, more: Map<String, Value>) -> Value {
    base.as_object_mut().unwrap().extend(more);
    base
}

/// A turn of a tree: its parent among the turns before it, or a stranger, or none.
#[derive(Clone, Debug)]
struct Turn {
    parent: Option<u8>,
    role: u8,
    text: String,
    kind: u8,
    at: Option<u32>,
    more: Map<String, Value>,
    silent: bool,
}

fn turn() -> impl Strategy<Value = Turn> {
    (
        prop::option::weighted(0.9, any::<u8>()),
        0_u8..4,
        text(),
        0_u8..8,
        prop::option::of(1_600_000_000_u32..1_800_000_000),
        members(),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(parent, role, text, kind, at, more, silent)| Turn {
            parent,
            role,
            text,
            kind,
            at,
            more,
            silent,
        })
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    prop::collection::vec(turn(), 0..12)
}

/// Most parents are earlier turns; a few are later ones, so that cycles happen, or missing.
fn parent(turn: &Turn, count: usize) -> Option<String> {
    let place = usize::from(turn.parent?) % (count + 2);
    Some(id(place as u64 + 1))
}

fn chatgpt(seed: u64, turns: &[Turn], current: u8, more: Map<String, Value>) -> Value {
    let mut mapping = Map::new();
    for (place, turn) in turns.iter().enumerate() {
        let key = if turn.kind == 7 { format!("node {place}") } else { id(place as u64 + 1) };
        let content = match turn.kind {
            0 => json!({"content_type": "code", "language": "python", "text": turn.text}),
            1 => {
                json!({"content_type": "thoughts", "thoughts": [{"summary": "s", "content": turn.text}]})
            }
            2 => json!({"content_type": "multimodal_text", "parts": [
                {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_0a"},
                turn.text, null]}),
            3 => json!({"content_type": "super_widget", "z": turn.text}),
            _ => json!({"content_type": "text", "parts": [turn.text, ""]}),
        };
        let role = ["user", "assistant", "system", "tool"][usize::from(turn.role)];
        let message = json!({"id": key, "author": {"role": role, "name": null},
            "create_time": turn.at, "content": content, "weight": 1.0,
            "recipient": if turn.kind == 0 { "python" } else { "all" }, "metadata": turn.more});
        let message = if turn.silent { Value::Null } else { message };
        let mut node = json!({"id": key, "message": message, "parent": parent(turn, turns.len())});
        if seed.is_multiple_of(2) {
            node["children"] = json!([]);
        }
        mapping.insert(key, node);
    }
    merge(
        json!({"title": "t", "create_time": 1_600_000_000.5, "mapping": mapping,
            "current_node": id(u64::from(current)), "conversation_id": id(seed), "id": id(seed)}),
        more,
    )
}

fn claude(seed: u64, turns: &[Turn], more: Map<String, Value>) -> Value {
    let said = turns.iter().enumerate().map(|(place, turn)| {
        let block = match turn.kind {
            0 => json!({"type": "thinking", "thinking": turn.text}),
            1 => json!({"type": "tool_use", "id": null, "name": "t", "input": turn.more}),
            2 => json!({"type": "tool_result", "content": [{"type": "text", "text": turn.text}]}),
            3 => json!({"type": "hologram", "z": turn.text}),
            _ => json!({"type": "text", "text": turn.text, "citations": []}),
        };
        let mut message = json!({"uuid": id(place as u64 + 1), "text": turn.text,
            "content": [block], "sender": if turn.role % 2 == 0 { "human" } else { "assistant" },
            "created_at": turn.at, "attachments": [], "files": []});
        if seed.is_multiple_of(2) {
            message["parent_message_uuid"] = json!(parent(turn, turns.len()));
        }
        merge(message, turn.more.clone())
    });
    merge(
        json!({"uuid": id(seed), "name": "n", "created_at": "2026-03-14T09:26:53.589793Z",
            "chat_messages": said.collect::<Vec<_>>()}),
        more,
    )
}

fn open_webui(seed: u64, turns: &[Turn], current: u8, more: Map<String, Value>) -> Value {
    let messages: Map<String, Value> = turns
        .iter()
        .enumerate()
        .map(|(place, turn)| {
            let key = id(place as u64 + 1);
            let text = match turn.kind {
                0 => format!(
                    "<details type=\"reasoning\"><summary>s</summary>\n&gt; {}</details>x",
                    turn.text
                ),
                1 => format!("<details type=\"tool_calls\" name=\"t\">{}", turn.text),
                _ => turn.text.clone(),
            };
            let message = json!({"id": key, "parentId": parent(turn, turns.len()),
                "role": if turn.role % 2 == 0 { "user" } else { "assistant" }, "content": text,
                "timestamp": turn.at});
            (key, merge(message, turn.more.clone()))
        })
        .collect();
    let listed: Vec<Value> = messages.values().take(3).cloned().collect();
    merge(
        json!({"id": id(seed), "title": "t", "chat": {"history": {"messages": messages,
            "currentId": id(u64::from(current))}, "messages": listed}, "created_at": 1_700_000_000}),
        more,
    )
}

fn grok(seed: u64, turns: &[Turn], current: u8, more: Map<String, Value>) -> Value {
    let said = turns.iter().enumerate().map(|(place, turn)| {
        let response = json!({"_id": id(place as u64 + 1), "message": turn.text,
            "sender": if turn.role % 2 == 0 { "human" } else { "ASSISTANT" },
            "create_time": {"$date": {"$numberLong": turn.at.map(|at| format!("{at}000"))}},
            "parent_response_id": parent(turn, turns.len())});
        let response = merge(response, turn.more.clone());
        if turn.kind == 0 { response } else { json!({"response": response, "share_link": null}) }
    });
    merge(
        json!({"conversation": {"id": id(seed), "title": "t", "leaf_response_id": id(u64::from(current)),
            "create_time": "2026-03-14T09:26:53Z"}, "responses": said.collect::<Vec<_>>()}),
        more,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn omp_060_chatgpt_trees_come_back(
        all in prop::collection::vec((turns(), any::<u8>(), members()), 1..3),
    ) {
        let made: Vec<Value> = all.iter().enumerate()
            .map(|(n, (turns, current, more))| chatgpt(100 + n as u64, turns, *current, more.clone()))
            .collect();
        check(&json!(made), &made)?;
    }

    #[test]
    fn omp_060_claude_trees_come_back(
        all in prop::collection::vec((turns(), members()), 1..3),
    ) {
        let made: Vec<Value> = all.iter().enumerate()
            .map(|(n, (turns, more))| claude(100 + n as u64, turns, more.clone()))
            .collect();
        check(&json!(made), &made)?;
    }

    #[test]
    fn omp_060_open_webui_trees_come_back(turns in turns(), current: u8, more in members()) {
        let made = open_webui(100, &turns, current, more);
        check(&json!([made.clone()]), &[made])?;
    }

    #[test]
    fn omp_060_grok_trees_come_back(turns in turns(), current: u8, more in members()) {
        let made = grok(100, &turns, current, more);
        check(&json!({"conversations": [made.clone()], "projects": []}), &[made])?;
    }
}
