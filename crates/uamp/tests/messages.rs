//! Messages over HTTP: who may send them, and what happens when they come again.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use yore_canon::did::Document;
use yore_canon::hash::Sha256;
use yore_canon::{jcs, jws};
use yore_domain::Span;
use yore_domain::grant::Verb;
use yore_http::{Peer, Way};

use crate::support::{SERVER, Vault, kinds};

#[tokio::test(flavor = "multi_thread")]
async fn uamp_076_the_same_message_counts_once() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    let body = json!({"type": "text/plain", "content": "the plumber comes on Friday"});
    let inform = agent.sign(&agent.envelope("inform", &body));
    let ask = agent.sign(&agent.ask("when does the plumber come?"));
    for message in [&inform, &ask] {
        let first = vault.post(&agent.token, message.clone()).await.expect(202);
        // It is exempt from freshness: that was judged when it came first.
        vault.clock.advance(Span::seconds(400));
        let again = vault.post(&agent.token, message.clone()).await.expect(202);
        assert_eq!(first.headers.get("location"), again.headers.get("location"));
        vault.clock.set(crate::support::NOW);
    }
    let counts = vault.engine.census(&vault.owner_call()).await.unwrap();
    assert_eq!(counts.memories, 1, "told twice, remembered once");
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_076_another_message_under_the_same_id_is_refused_and_audited() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    let first = agent.ask("one");
    vault.say(&agent, &first).await.expect(202);
    let mut second = first.clone();
    second["body"]["content"] = "two".into();
    let refused = vault.say(&agent, &second).await.expect(400);
    assert!(refused.refusal()["message"].as_str().unwrap().contains("id_reuse"));
    let audit = vault.audit().await;
    let (_, outcome) = audit.iter().rfind(|(operation, _)| operation == "accept").unwrap();
    assert!(outcome.to_string().contains("conflict"), "{outcome}");
    // Another spelling of the id is the same id.
    let mut spelt = first.clone();
    spelt["id"] = first["id"].as_str().unwrap().replace("urn:uuid:", "").to_uppercase().into();
    vault.say(&agent, &spelt).await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_075_messages_are_fresh_when_they_come_first() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    for (ts, status) in [
        ("2026-01-02T02:59:59Z", 401),
        ("2026-01-02T03:00:00Z", 202),
        ("2026-01-02T03:10:00Z", 202),
        ("2026-01-02T03:10:01Z", 401),
    ] {
        let mut envelope = agent.ask("x");
        envelope["ts"] = ts.into();
        let reply = vault.say(&agent, &envelope).await;
        assert_eq!(reply.status, status, "{ts}: {}", reply.text);
        if status == 401 {
            assert!(reply.refusal()["message"].as_str().unwrap().starts_with("stale"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_070_the_credential_must_speak_for_the_sender() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    let other = vault.agent("writer", 2).await;
    let message = agent.sign(&agent.ask("x"));
    assert_eq!(vault.post("", message.clone()).await.refusal()["code"], "4.01");
    assert_eq!(vault.post("nonsense", message.clone()).await.refusal()["code"], "4.01");
    let refused = vault.post(&other.token, message.clone()).await.expect(403);
    assert_eq!(refused.refusal()["code"], "4.03");
    // The owner's own token speaks for the owner's agents alone.
    assert_eq!(vault.post(&vault.owner, message.clone()).await.refusal()["code"], "4.03");
    vault.post(&agent.token, message).await.expect(202);
    let own = vault.agent("unused", 3).await;
    vault.register(&own.did, None).await;
    vault.post(&vault.owner, own.sign(&own.ask("x"))).await.expect(202);
    // A grant that names the DID itself needs no register.
    let key = crate::support::key(4);
    let did = crate::support::did_of(&key);
    let token = vault.token(&did, &[Verb::Read]).await;
    let named = crate::support::Agent { key, did, token };
    vault.say(&named, &named.ask("x")).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_006_uamp_092_a_stranger_among_the_recipients_refuses_the_whole() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    let mut envelope = agent.ask("x");
    envelope["to"] = json!([SERVER, "did:web:nobody.example"]);
    assert_eq!(vault.say(&agent, &envelope).await.expect(404).refusal()["code"], "4.04");
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_060_clear_text_is_refused_unless_the_operator_allows_it_here() {
    let plain = |agent: &crate::support::Agent, from: &str| {
        let mut request = Request::post("/v1/messages")
            .header("authorization", format!("Bearer {}", agent.token))
            .body(Body::from(agent.sign(&agent.ask("x"))))
            .unwrap();
        let address = Some(from.parse().unwrap());
        request.extensions_mut().insert(Peer { way: Way::Plain, address });
        request
    };
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    let refused = vault.send_as_is(plain(&agent, "127.0.0.1:9")).await.expect(403);
    assert!(refused.refusal()["message"].as_str().unwrap().contains("TLS"));
    let vault = Vault::with(|options| options.clear_text = yore_uamp::ClearText::Loopback).await;
    let agent = vault.agent("scheduler", 1).await;
    vault.send_as_is(plain(&agent, "127.0.0.1:9")).await.expect(202);
    vault.send_as_is(plain(&agent, "192.0.2.1:9")).await.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_013_uamp_077_kind_and_size_are_checked_first() {
    let vault = Vault::with(|options| options.largest = 4096).await;
    let agent = vault.agent("scheduler", 1).await;
    let message = agent.sign(&agent.ask("x"));
    let request = Request::post("/v1/messages")
        .header("content-type", "text/html")
        .header("authorization", format!("Bearer {}", agent.token))
        .body(Body::from(message.clone()))
        .unwrap();
    assert_eq!(vault.send(request).await.expect(415).refusal()["code"], "4.15");
    let long = agent.sign(&agent.ask(&"x".repeat(5000)));
    assert_eq!(vault.post(&agent.token, long).await.expect(413).refusal()["code"], "4.13");
    let request = Request::post("/v1/messages")
        .header("content-type", "application/json; charset=utf-8")
        .header("authorization", format!("Bearer {}", agent.token))
        .body(Body::from(message))
        .unwrap();
    vault.send(request).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_029_uamp_042_uamp_084_replies_are_signed_by_the_key_that_did_json_shows() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    let document = vault.get("", "/.well-known/did.json", &[]).await.expect(200);
    let did = SERVER.parse().unwrap();
    let document = Document::parse(document.text.as_bytes(), &did).unwrap();
    let message = agent.sign(&agent.ask("x"));
    let wanted = [("accept", "application/uamp+json")];
    let accepted = vault.post_with(&agent.token, message, &wanted).await.expect(202);
    let refused = vault.post("", agent.sign(&agent.ask("y"))).await.expect(401);
    assert!(refused.headers.contains_key("www-authenticate"));
    for (reply, intent) in [(accepted, "progress"), (refused, "error")] {
        let envelope = reply.json();
        assert_eq!(reply.headers["content-type"], "application/uamp+json;v=1");
        assert_eq!((&envelope["from"], &envelope["intent"]), (&json!(SERVER), &json!(intent)));
        assert_eq!(envelope["to"], json!([agent.did]));
        assert!(envelope["id"].as_str().unwrap().starts_with("urn:uuid:"));
        let object = envelope.as_object().unwrap();
        let digest = Sha256::of(jcs::canonical_without(object, &["sig"]));
        let compact = jws::Compact::parse(envelope["sig"].as_str().unwrap()).unwrap();
        let kid = compact.header().kid.as_ref().unwrap().parse().unwrap();
        let payload = jws::digest_payload(&digest);
        let key = document.key(&kid).unwrap();
        compact.verify_detached(payload.as_bytes(), key).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_041_uamp_043_the_stream_is_named_and_may_be_waited_for() {
    let vault = Vault::new().await;
    vault.remembers("I am allergic to peanuts").await;
    let agent = vault.agent("cook", 1).await;
    let mut named = agent.ask("what am I allergic to?");
    named["stream_id"] = "str/1 ü".replace([' ', 'ü'], "x").into();
    let reply = vault.say(&agent, &named).await.expect(202);
    assert_eq!(reply.location(), "/v1/stream/str%2F1xx");
    let minted = vault.say(&agent, &agent.ask("x")).await.expect(202).location();
    assert!(minted.len() >= "/v1/stream/str-".len() + 22, "{minted}");
    let waiting = agent.sign(&agent.ask("what am I allergic to?"));
    let wish = [("prefer", "respond-async, wait=10")];
    let reply = vault.post_with(&agent.token, waiting, &wish).await.expect(200).json();
    assert_eq!(reply["intent"], "confirm");
    assert!(reply["body"]["content"].as_str().unwrap().contains("peanuts"));
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_102_work_that_a_restart_cut_off_ends_with_an_error_and_is_not_done_twice() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    let body = json!({"type": "text/plain", "content": "tea at four"});
    let mut propose = agent.envelope("propose", &body);
    propose["stream_id"] = "p-1".into();
    let propose = agent.sign(&propose);
    vault.post(&agent.token, propose.clone()).await.expect(202);
    let mut waiting = Vec::new();
    while waiting.is_empty() {
        let waits = yore_domain::hold::HoldState::Pending;
        waiting = vault.engine.holds(&vault.owner_call(), waits, 9).await.unwrap();
    }
    let vault = vault.restarted().await;
    // The proposal waits on; a person decides, and the stream that is taken up again tells it.
    vault.post(&agent.token, propose).await.expect(202);
    let approve = yore_engine::Decision::Approve;
    vault.engine.review(&vault.owner_call(), waiting[0].id, approve, None).await.unwrap();
    let frames = vault.all(&agent, "/v1/stream/p-1").await;
    assert_eq!(kinds(&frames), ["progress", "done"]);
    assert_eq!(frames[1]["payload"]["outcome"], "confirmed");
    assert_eq!(frames[1]["payload"]["envelope"]["intent"], "confirm");
    let counts = vault.engine.census(&vault.owner_call()).await.unwrap();
    assert_eq!(counts.memories, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_078_a_sender_has_so_many_messages_an_hour_and_the_manifest_says_so() {
    let vault = Vault::limited(3).await;
    let agent = vault.agent("scheduler", 1).await;
    let first = agent.ask("one?");
    vault.say(&agent, &first).await.expect(202);
    for text in ["two?", "three?"] {
        vault.say(&agent, &agent.ask(text)).await.expect(202);
    }
    let refused = vault.say(&agent, &agent.ask("four?")).await.expect(429);
    assert_eq!(
        (&refused.refusal()["code"], &refused.refusal()["retry"]),
        (&json!("5.04"), &json!(true))
    );
    let wait: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1190..=1200).contains(&wait), "{wait}");
    // What came before comes again without counting, and another sender has its own.
    vault.say(&agent, &first).await.expect(202);
    let other = vault.agent("coder", 2).await;
    vault.say(&other, &other.ask("one?")).await.expect(202);
    vault.clock.advance(yore_domain::Span::seconds(1201));
    let mut later = agent.ask("four?");
    later["ts"] = "2026-01-02T03:25:01Z".into();
    vault.say(&agent, &later).await.expect(202);
    let manifest = vault.get("", "/.well-known/agent-manifest.json", &[]).await.expect(200);
    let payload = manifest.text.split('.').nth(1).unwrap().to_owned();
    let payload = yore_canon::encode::from_base64url(&payload).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!(manifest["limits"]["rate_lph"], 3);
}
