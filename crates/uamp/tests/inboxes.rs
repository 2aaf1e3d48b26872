//! Inboxes: letters wait for registered agents.

use serde_json::{Value, json};
use yore_domain::Span;
use yore_domain::stream::Letter;
use yore_engine::{Call, Secret};

use crate::support::{Agent, Vault};

fn call(agent: &Agent) -> Call {
    Call::bearer("uamp", Secret::new(agent.token.clone()))
}

fn letter_to(from: &Agent, to: &Agent, text: &str) -> Value {
    let mut envelope = from.envelope("inform", &json!({"type": "text/plain", "content": text}));
    envelope["to"] = json!([to.did]);
    envelope
}

fn texts(letters: &[Letter]) -> Vec<String> {
    let text = |letter: &Letter| {
        let envelope: Value = serde_json::from_slice(&letter.bytes).unwrap();
        envelope["body"]["content"].as_str().unwrap().to_owned()
    };
    letters.iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_115_letters_wait_come_in_order_and_come_again_until_acknowledged() {
    let vault = Vault::new().await;
    let (one, two) = (vault.agent("one", 1).await, vault.agent("two", 2).await);
    let sent = letter_to(&one, &two, "first");
    let exact = one.sign(&sent);
    vault.post(&one.token, exact.clone()).await.expect(202);
    vault.say(&one, &letter_to(&one, &two, "second")).await.expect(202);
    let taken = vault.engine.take_letters(&call(&two), &two.did, 10).await.unwrap();
    assert_eq!(texts(&taken), ["first", "second"]);
    assert_eq!(taken[0].bytes, exact.as_bytes(), "to the byte");
    let again = vault.engine.take_letters(&call(&two), &two.did, 10).await.unwrap();
    assert!(again.is_empty(), "both are out");
    let body = json!({"type": "text/plain", "content": "got it"});
    let mut confirm = two.envelope("confirm", &body);
    confirm["reply_to"] = sent["id"].clone();
    vault.say(&two, &confirm).await.expect(202);
    vault.clock.advance(Span::seconds(31));
    let again = vault.engine.take_letters(&call(&two), &two.did, 10).await.unwrap();
    assert_eq!(texts(&again), ["second"], "what was not acknowledged comes again");
    vault.clock.advance(Span::days(8));
    let late = vault.engine.take_letters(&call(&two), &two.did, 10).await.unwrap();
    assert!(late.is_empty(), "and lapses");
    // Nothing that went to somebody else is remembered as told to the vault.
    let counts = vault.engine.census(&vault.owner_call()).await.unwrap();
    assert_eq!(counts.memories, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_115_an_inbox_is_its_agents_alone_and_has_a_quota() {
    let vault = Vault::new().await;
    let (one, two) = (vault.agent("one", 1).await, vault.agent("two", 2).await);
    assert!(vault.engine.take_letters(&call(&one), &two.did, 10).await.is_err());
    let path = format!("/uamp/1/inbox?did={}", two.did);
    vault.get(&one.token, &path, &[]).await.expect(403);
    for number in 0..100 {
        vault.say(&one, &letter_to(&one, &two, &number.to_string())).await.expect(202);
    }
    let full = vault.say(&one, &letter_to(&one, &two, "one too many")).await.expect(429);
    assert_eq!(full.refusal()["code"], "5.04");
    assert!(full.headers.contains_key("retry-after"));
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_115_letters_that_lapsed_count_against_nobody_and_are_still_told() {
    let vault = Vault::new().await;
    let (one, two) = (vault.agent("one", 1).await, vault.agent("two", 2).await);
    let short = |number: usize| {
        let mut letter = letter_to(&one, &two, &format!("by noon {number}"));
        letter["ext"] = json!({"x-expires": "2026-01-02T03:06:00Z"});
        letter
    };
    for number in 0..100 {
        vault.say(&one, &short(number)).await.expect(202);
    }
    vault.say(&one, &short(100)).await.expect(429);
    // Neither of them looks into its inbox; the time of all of them passes.
    vault.clock.advance(Span::seconds(61));
    for number in 0..3 {
        vault.say(&one, &letter_to(&one, &two, &number.to_string())).await.expect(202);
    }
    let taken = vault.engine.take_letters(&call(&two), &two.did, 10).await.unwrap();
    assert_eq!(texts(&taken), ["0", "1", "2"]);
    let lapsed = vault.engine.lapsed_letters(&call(&one), &one.did).await.unwrap();
    assert_eq!(lapsed.len(), 100, "its sender is told of each");
    assert!(lapsed.iter().all(|letter| letter.bytes.is_empty()), "without what they said");
    let path = format!("/uamp/1/inbox?did={}", one.did);
    let told = vault.get(&one.token, &path, &[]).await.expect(200).frames();
    assert!(!told.is_empty() && told.iter().all(|notice| notice["intent"] == "error"), "{told:?}");
    let lapsed = vault.engine.lapsed_letters(&call(&one), &one.did).await.unwrap();
    assert!(lapsed.is_empty(), "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_115_a_sender_is_told_once_of_what_nobody_fetched() {
    let vault = Vault::new().await;
    let (one, two) = (vault.agent("one", 1).await, vault.agent("two", 2).await);
    let mut sent = letter_to(&one, &two, "come at noon");
    sent["ext"] = json!({"x-expires": "2026-01-02T04:05:00Z"});
    vault.say(&one, &sent).await.expect(202);
    vault.clock.advance(Span::seconds(3601));
    let path = |agent: &Agent| format!("/uamp/1/inbox?did={}", agent.did);
    let late = vault.get(&two.token, &path(&two), &[]).await.expect(200);
    assert!(late.frames().is_empty(), "{}", late.text);
    let told = vault.get(&one.token, &path(&one), &[]).await.expect(200).frames();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["intent"], &told[0]["reply_to"]), (&json!("error"), &sent["id"]));
    let content: serde_json::Value =
        serde_json::from_str(told[0]["body"]["content"].as_str().unwrap()).unwrap();
    assert!(content["message"].as_str().unwrap().starts_with("expired"), "{content}");
    // Acknowledged as any other letter, it does not come again.
    let body = json!({"type": "text/plain", "content": "I see"});
    let mut confirm = one.envelope("confirm", &body);
    confirm["reply_to"] = told[0]["id"].clone();
    confirm["ts"] = "2026-01-02T04:05:30Z".into();
    vault.say(&one, &confirm).await.expect(202);
    vault.clock.advance(Span::seconds(60));
    let again = vault.get(&one.token, &path(&one), &[]).await.expect(200);
    assert!(again.frames().is_empty(), "{}", again.text);
}
