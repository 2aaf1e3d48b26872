//! The vault as an agent: what each intent makes it do.

use serde_json::{Value, json};
use yore_domain::conversation::{Attachment, Conversation, Message, Role};
use yore_domain::grant::Verb;
use yore_domain::hold::HoldState;
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{BlobHash, ConversationId, MessageId};
use yore_engine::Decision;

use crate::support::{NOW, Vault, kinds};

#[tokio::test(flavor = "multi_thread")]
async fn uamp_112_a_question_in_plain_words_is_answered_from_memory_as_data() {
    let vault = Vault::new().await;
    vault.remembers("I am allergic to peanuts").await;
    let agent = vault.agent("cook", 1).await;
    let frames = vault.answer(&agent, &agent.ask("what am I allergic to?")).await;
    assert_eq!(kinds(&frames), ["chunk", "done"]);
    let text = frames[0]["payload"]["text"].as_str().unwrap();
    assert!(text.contains("peanuts") && text.contains("untrusted-data"), "{text}");
    assert_eq!(frames[1]["payload"]["count"], 1);
    // Whoever may not read is told so on the stream, and learns nothing else.
    let writer = vault.agent_with("writer", 2, &[Verb::Write]).await;
    let frames = vault.answer(&writer, &writer.ask("what am I allergic to?")).await;
    assert_eq!(kinds(&frames), ["error"]);
    assert_eq!(frames[0]["payload"]["code"], "4.03");
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_111_a_typed_body_runs_the_operation_of_its_dialect() {
    let vault = Vault::new().await;
    vault.remembers("I am allergic to peanuts").await;
    let agent = vault.agent("cook", 1).await;
    let typed = |op: &str, input: Value| {
        let content = json!({ "op": op, "input": input }).to_string();
        json!({"type": "application/vnd.ump+json", "content": content})
    };
    let recall = typed("recall", json!({"query": "what am I allergic to?"}));
    let frames = vault.answer(&agent, &agent.envelope("ask", &recall)).await;
    assert_eq!(kinds(&frames), ["chunk", "done"]);
    assert!(frames[0]["payload"]["record"]["ok"].to_string().contains("peanuts"), "{frames:?}");
    let unknown = typed("dance", json!({}));
    let frames = vault.answer(&agent, &agent.envelope("ask", &unknown)).await;
    assert_eq!((kinds(&frames), &frames[0]["payload"]["code"]), (vec!["error"], &json!("4.00")));
    let foreign = json!({"type": "application/vnd.nobody+json", "content": "{}"});
    let refused = vault.say(&agent, &agent.envelope("ask", &foreign)).await.expect(415);
    assert_eq!(refused.refusal()["code"], "4.15");
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_113_what_is_told_is_remembered_and_what_is_proposed_waits() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    let told = json!({"type": "text/plain", "content": "the plumber comes on Friday"});
    let reply = vault.say(&agent, &agent.envelope("inform", &told)).await.expect(202);
    assert!(!reply.headers.contains_key("location"));
    let call = vault.owner_call();
    assert_eq!(vault.engine.census(&call).await.unwrap().memories, 1);
    for (decision, outcome, intent) in
        [(Decision::Approve, "confirmed", "confirm"), (Decision::Reject, "denied", "deny")]
    {
        let plan = json!({"type": "text/markdown", "content": format!("buy {outcome} tea")});
        let reply = vault.say(&agent, &agent.envelope("propose", &plan)).await.expect(202);
        let mut waiting = Vec::new();
        while waiting.is_empty() {
            waiting = vault.engine.holds(&call, HoldState::Pending, 9).await.unwrap();
        }
        vault.engine.review(&call, waiting[0].id, decision, None).await.unwrap();
        let frames = vault.all(&agent, &reply.location()).await;
        assert_eq!(kinds(&frames), ["progress", "done"], "{frames:?}");
        assert_eq!(frames[0]["payload"]["state"], "pending_approval");
        assert_eq!(frames[1]["payload"]["outcome"], outcome);
        assert_eq!(frames[1]["payload"]["envelope"]["intent"], intent);
    }
    assert_eq!(vault.engine.census(&call).await.unwrap().memories, 2);
    // An agent that may not write cannot tell.
    let reader = vault.agent_with("reader", 2, &[Verb::Read]).await;
    vault.say(&reader, &reader.envelope("inform", &told)).await.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_114_changes_are_told_through_the_grant_and_go_on_after_a_restart() {
    let vault = Vault::new().await;
    let agent = vault.agent("watcher", 1).await;
    let body = json!({"type": "text/plain", "content": ""});
    let mut subscribe = agent.envelope("subscribe", &body);
    subscribe["stream_id"] = "s".into();
    vault.say(&agent, &subscribe).await.expect(202);
    vault.remembers("one").await;
    // Above the grant's ceiling: not even a number is missing.
    let mut secret = yore_domain::memory::Draft::text("hidden");
    secret.content.governance.sensitivity = Some(yore_domain::class::Sensitivity::Restricted);
    let hidden = yore_domain::mutation::Mutation::Remember { draft: Box::new(secret), id: None };
    let call = vault.owner_call();
    vault.engine.mutate(&call, hidden, yore_engine::Wish::default()).await.unwrap();
    vault.remembers("two").await;
    let mut frames = Vec::new();
    while frames.len() < 2 {
        frames = vault.get(&agent.token, "/v1/stream/s", &[]).await.expect(200).frames();
    }
    assert_eq!(kinds(&frames), ["chunk", "chunk"]);
    assert_eq!(frames[1]["delta_seq"], 1);
    let vault = vault.restarted().await;
    vault.remembers("three").await;
    let mut more = Vec::new();
    while more.is_empty() {
        let seen = [("last-event-id", "1")];
        more = vault.get(&agent.token, "/v1/stream/s", &seen).await.expect(200).frames();
    }
    assert_eq!(more[0]["delta_seq"], 2, "{more:?}");
}

/// Bytes that look like noise and are the same each time.
pub(crate) fn noise(length: u32) -> Vec<u8> {
    (0..length).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Attaches bytes to a message; returns the body of a question for them.
pub(crate) async fn attached(vault: &Vault, bytes: &[u8]) -> Value {
    let call = vault.owner_call();
    let bytes = bytes.to_vec();
    let blob: BlobHash = vault.engine.attach(&call, bytes).await.unwrap();
    let conversation = Conversation {
        id: ConversationId::random(),
        title: None,
        platform: "test".into(),
        model: None,
        created: NOW,
        updated: NOW,
        scope: Default::default(),
        governance: Default::default(),
        tags: Vec::new(),
        summary: None,
        language: None,
        foreign: Default::default(),
    };
    let message = Message {
        id: MessageId::random(),
        role: Role::User,
        content: "see the file".into(),
        text: "see the file".into(),
        at: NOW,
        model: None,
        platform: None,
        parent: None,
        off_path: false,
        attachments: vec![Attachment {
            filename: "noise".into(),
            media_type: "application/octet-stream".into(),
            blob: Some(blob),
            size: None,
            foreign: Default::default(),
        }],
        foreign: Default::default(),
    };
    vault.engine.converse(&call, conversation, vec![message]).await.unwrap();
    let hash = yore_canon::encode::hex(&blob.0);
    let content = json!({ "attachment": hash }).to_string();
    json!({"type": "application/json", "content": content})
}

/// Puts the pieces of an attachment together.
pub(crate) fn joined(frames: &[Value]) -> Vec<u8> {
    let mut joined = Vec::new();
    for frame in &frames[..frames.len() - 1] {
        let piece = frame["payload"]["chunk_b64"].as_str().unwrap();
        joined.extend(yore_canon::encode::from_base64(piece).unwrap());
    }
    joined
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_057_an_attachment_comes_in_pieces_and_is_whole_again() {
    let vault = Vault::new().await;
    let bytes = noise(700_000);
    let body = attached(&vault, &bytes).await;
    let agent = vault.agent("reader", 1).await;
    let mut ask = agent.envelope("ask", &body);
    ask["delta_window"] = 8.into();
    let frames = vault.answer(&agent, &ask).await;
    assert!(joined(&frames) == bytes, "the file arrived changed");
    assert_eq!(frames.last().unwrap()["payload"]["bytes"], bytes.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_074_uamp_116_what_was_said_is_kept_as_a_conversation_without_tokens() {
    let vault = Vault::new().await;
    vault.remembers("I am allergic to peanuts").await;
    let agent = vault.agent("cook", 1).await;
    let ask = agent.ask("what am I allergic to?");
    vault.answer(&agent, &ask).await;
    let mut thanks =
        agent.envelope("inform", &json!({"type": "text/plain", "content": "thank you"}));
    thanks["reply_to"] = ask["id"].clone();
    vault.say(&agent, &thanks).await.expect(202);
    let call = vault.owner_call();
    let filter = Filter { platform: Some("uamp".into()), ..Filter::default() };
    let page = PageRequest { limit: 10, ..PageRequest::default() };
    let talks = vault.engine.conversations(&call, filter, page).await.unwrap().items;
    assert_eq!(talks.len(), 1, "one thread, one conversation");
    let messages = vault.engine.messages(&call, talks[0].0.id, 0, 10).await.unwrap();
    let said: Vec<(Role, &str)> =
        messages.iter().map(|message| (message.role, message.text.as_str())).collect();
    assert_eq!(said[0], (Role::Assistant, "what am I allergic to?"));
    assert!(said[1].0 == Role::Tool && said[1].1.contains("peanuts"), "{said:?}");
    assert_eq!(said[2], (Role::Assistant, "thank you"));
    let about = &messages[0].foreign["uamp"];
    assert_eq!(about["uamp_from"], agent.did);
    assert_eq!(about["uamp_verdict"], "verified");
    assert_eq!(about["uamp_intent"], "ask");
}
