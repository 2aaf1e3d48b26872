//! Streams: windows, acknowledgements, resuming, and what a stranger learns of them.

use serde_json::{Value, json};
use yore_canon::hash::Sha256;
use yore_domain::stream::{Pending, StreamState};
use yore_domain::{MessageId, Span};
use yore_engine::{Appending, Call, Incoming, Opening, Secret};

use crate::support::{Agent, NOW, SERVER, Vault, kinds};

fn call(agent: &Agent) -> Call {
    Call::bearer("uamp", Secret::new(agent.token.clone()))
}

fn frame(stream: &str, number: u64, kind: &str) -> Vec<u8> {
    let frame = json!({"delta_seq": number, "payload": {"index": number}, "stream_id": stream,
                       "ts": "2026-01-02T03:05:00Z", "type": kind});
    yore_canon::jcs::canonical(&frame).into_bytes()
}

/// A stream of so many frames that has ended.
pub(crate) async fn ended(vault: &Vault, agent: &Agent, stream: &str, frames: u64, window: u32) {
    let id = MessageId::random().to_string();
    let incoming = Incoming {
        sender: agent.did.clone(),
        id,
        digest: "d".into(),
        sent: NOW,
        tolerance: Span::seconds(300),
        to: vec![SERVER.into()],
        reply_to: None,
        context: Vec::new(),
        opens: Some(Opening {
            id: stream.into(),
            window,
            pending: Pending::Answer { until: NOW.plus(Span::days(1)) },
        }),
        unsettled: true,
        expires: NOW.plus(Span::days(1)),
        bytes: Vec::new(),
        said: None,
    };
    let ticket = vault.engine.accept(&call(agent), incoming).await.unwrap().ticket;
    let numbers: Vec<u64> = (0..frames).collect();
    for batch in numbers.chunks(1000) {
        let last = *batch.last().unwrap() == frames - 1;
        let kind = |number: u64| if number == frames - 1 { "done" } else { "chunk" };
        let appending = Appending {
            first: batch[0],
            frames: batch.iter().map(|number| frame(stream, *number, kind(*number))).collect(),
            ends: last.then_some(StreamState::Completed),
            pending: None,
            said: None,
        };
        assert!(vault.engine.append_frames(&ticket, stream, appending).await.unwrap());
    }
}

fn numbers(frames: &[Value]) -> Vec<u64> {
    frames.iter().map(|frame| frame["delta_seq"].as_u64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_051_uamp_052_uamp_055_no_more_than_a_window_goes_out_unacknowledged() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    ended(&vault, &agent, "s", 20, 8).await;
    let first = vault.get(&agent.token, "/v1/stream/s", &[]).await.expect(200);
    assert!(first.text.starts_with("retry: 2000\n\n"), "{}", first.text);
    assert_eq!(numbers(&first.frames()), (0..8).collect::<Vec<_>>());
    // Nothing was acknowledged, so the same window comes again.
    let again = vault.get(&agent.token, "/v1/stream/s", &[]).await.expect(200);
    assert_eq!(numbers(&again.frames()), (0..8).collect::<Vec<_>>());
    vault.say(&agent, &agent.ack("s", 3)).await.expect(202);
    let more = vault.get(&agent.token, "/v1/stream/s", &[("last-event-id", "7")]).await;
    assert_eq!(numbers(&more.frames()), (8..16).collect::<Vec<_>>());
    let all = numbers(&vault.all(&agent, "/v1/stream/s").await);
    assert_eq!(all, (0..20).collect::<Vec<_>>(), "every frame is kept until a day after the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_047_uamp_056_any_cut_and_resume_gives_the_same_stream() {
    let full = std::env::var_os("YORE_FULL").is_some();
    let (frames, cuts) = if full { (10_000, 100) } else { (1000, 25) };
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    ended(&vault, &agent, "s", frames, 1024).await;
    let call = call(&agent);
    // A generator of our own, so that a failure can be repeated.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let patience = Some(std::time::Duration::from_millis(50));
    let (mut read, mut last) = (Vec::new(), None);
    let mut rounds = 0;
    while read.len() < usize::try_from(frames).unwrap() {
        let mut delivery = vault.uamp.follow(&call, "s", last, patience).await.unwrap();
        let cut = random(2 * frames / cuts) + 1;
        for _ in 0..cut {
            let Some(next) = delivery.next().await else { break };
            let next = next.unwrap();
            last = Some(next.number);
            read.push(next.bytes);
        }
        rounds += 1;
    }
    assert!(rounds > cuts / 4, "{rounds} cuts");
    let expected = (0..frames)
        .map(|number| frame("s", number, if number == frames - 1 { "done" } else { "chunk" }));
    assert!(read.into_iter().eq(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_054_acknowledgements_add_up_and_never_reach_beyond_what_was_sent() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    ended(&vault, &agent, "s", 20, 8).await;
    for (ack, status) in [(5, 202), (5, 202), (2, 202), (13, 202), (22, 409), (8, 202)] {
        let reply = vault.say(&agent, &agent.ack("s", ack)).await;
        assert_eq!(reply.status, status, "{ack}: {}", reply.text);
        if status == 409 {
            let refusal = reply.refusal();
            assert_eq!((&refusal["code"], &refusal["retry"]), (&json!("4.09"), &json!(true)));
            assert_eq!((&refusal["first"], &refusal["last"]), (&json!(0), &json!(19)));
        }
    }
    let beyond = vault.get(&agent.token, "/v1/stream/s?after=30", &[]).await.expect(409);
    assert_eq!(beyond.refusal()["last"], 19);
    let text = [("last-event-id", "seven")];
    vault.get(&agent.token, "/v1/stream/s", &text).await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_010_uamp_017_uamp_048_a_stream_is_its_senders_alone() {
    let vault = Vault::new().await;
    let (one, two) = (vault.agent("one", 1).await, vault.agent("two", 2).await);
    ended(&vault, &one, "shared", 3, 8).await;
    let stranger = vault.get(&two.token, "/v1/stream/shared", &[]).await.expect(404);
    let nothing = vault.get(&two.token, "/v1/stream/nothing", &[]).await.expect(404);
    let plain = |reply: &crate::support::Reply| reply.refusal();
    assert_eq!(plain(&stranger), plain(&nothing), "another's and none look alike");
    vault.get("", "/v1/stream/shared", &[]).await.expect(401);
    for message in [two.ack("shared", 1), {
        let mut cancel = two.envelope("cancel", &json!({"type": "text/plain", "content": ""}));
        cancel["stream_id"] = "shared".into();
        cancel
    }] {
        let theirs = vault.say(&two, &message).await.expect(403).refusal();
        let mut other = message.clone();
        other["stream_id"] = "nothing".into();
        other["id"] = format!("urn:uuid:{}", MessageId::random()).into();
        assert_eq!(theirs, vault.say(&two, &other).await.expect(403).refusal());
    }
    // Two senders may choose the same id; each has a stream of its own.
    let mut ask = two.ask("x");
    ask["stream_id"] = "shared".into();
    vault.say(&two, &ask).await.expect(202);
    assert_eq!(vault.all(&one, "/v1/stream/shared").await.len(), 3);
    // One sender may not have two streams of one id.
    let mut again = two.ask("y");
    again["stream_id"] = "shared".into();
    vault.say(&two, &again).await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_049_whoever_has_everything_is_told_to_stop() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    ended(&vault, &agent, "s", 3, 8).await;
    let tail = vault.get(&agent.token, "/v1/stream/s", &[("last-event-id", "1")]).await;
    assert_eq!(numbers(&tail.expect(200).frames()), [2]);
    let done = vault.get(&agent.token, "/v1/stream/s", &[("last-event-id", "2")]).await;
    assert_eq!((done.status, done.text.as_str()), (204, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_030_uamp_046_uamp_050_the_end_says_what_came_before() {
    let vault = Vault::new().await;
    vault.remembers("I am allergic to peanuts").await;
    let agent = vault.agent("cook", 1).await;
    let place = vault.say(&agent, &agent.ask("what am I allergic to?")).await.location();
    let mut reply = vault.get(&agent.token, &place, &[]).await;
    while reply.frames().last().is_none_or(|last| last["type"] != "done") {
        reply = vault.get(&agent.token, &place, &[]).await;
    }
    let lines = reply.text.lines().filter_map(|line| line.strip_prefix("data: "));
    let lines: Vec<&str> = lines.collect();
    let earlier = lines[..lines.len() - 1].join("\n");
    let done: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!(done["payload"]["transcript_sha256"], Sha256::of(earlier).to_hex());
    let schema = yore_uamp::schema::named("delta").unwrap();
    for (number, line) in lines.iter().enumerate() {
        let frame: Value = serde_json::from_str(line).unwrap();
        assert!(jsonschema::is_valid(&schema, &frame), "{line}");
        assert_eq!(frame["delta_seq"], number);
        assert!(reply.text.contains(&format!("id: {number}\ndata: {line}\n\n")));
    }
    assert!(!reply.text.contains("event:"));
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_100_uamp_101_what_is_taken_back_ends_and_what_has_ended_stays() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    let body = json!({"type": "text/plain", "content": ""});
    let mut subscribe = agent.envelope("subscribe", &body);
    subscribe["stream_id"] = "s".into();
    vault.say(&agent, &subscribe).await.expect(202);
    let mut by_request = agent.envelope("cancel", &body);
    by_request["reply_to"] = subscribe["id"].clone();
    vault.say(&agent, &by_request).await.expect(202);
    assert_eq!(kinds(&vault.all(&agent, "/v1/stream/s").await), ["cancel"]);
    // Nothing follows, and a second cancel changes nothing.
    vault.remembers("tea").await;
    let mut again = agent.envelope("cancel", &body);
    again["stream_id"] = "s".into();
    vault.say(&agent, &again).await.expect(202);
    let frames = vault.get(&agent.token, "/v1/stream/s?after=0", &[]).await;
    assert_eq!(frames.status, 204);
    // Of a cancel and an end at the same time one counts.
    for _ in 0..10 {
        let ask = agent.ask("x");
        let place = vault.say(&agent, &ask).await.location();
        let mut cancel = agent.envelope("cancel", &body);
        cancel["reply_to"] = ask["id"].clone();
        vault.say(&agent, &cancel).await.expect(202);
        let frames = vault.all(&agent, &place).await;
        let ends =
            frames.iter().filter(|frame| frame["type"] == "done" || frame["type"] == "cancel");
        assert_eq!(ends.count(), 1, "{frames:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_102_a_question_that_a_restart_cut_off_ends_with_busy() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    // As a process leaves it that is killed between taking a question in and answering it.
    let incoming = Incoming {
        sender: agent.did.clone(),
        id: MessageId::random().to_string(),
        digest: "d".into(),
        sent: NOW,
        tolerance: Span::seconds(300),
        to: vec![SERVER.into()],
        reply_to: None,
        context: Vec::new(),
        opens: Some(Opening {
            id: "s".into(),
            window: 8,
            pending: Pending::Answer { until: NOW.plus(Span::seconds(900)) },
        }),
        unsettled: true,
        expires: NOW.plus(Span::days(1)),
        bytes: Vec::new(),
        said: None,
    };
    vault.engine.accept(&call(&agent), incoming).await.unwrap();
    let vault = vault.restarted().await;
    let frames = vault.all(&agent, "/v1/stream/s").await;
    assert_eq!(kinds(&frames), ["error"]);
    assert_eq!(frames[0]["payload"]["code"], "5.04");
    assert_eq!(frames[0]["payload"]["retry"], true);
}
