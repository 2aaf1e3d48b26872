//! Frames that were changed on the way: whatever comes is answered by a message, and a session
//! and a server go on.

use axum::http::StatusCode;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::bad_input::{Door, json_of};

/// How many frames are tried.
fn rounds() -> usize {
    if std::env::var_os("YORE_FULL").is_some() { 50_000 } else { 300 }
}

/// What happens to a frame at one place.
#[derive(Clone, Debug)]
enum Change {
    Flip(u8),
    Cut(usize),
    Put(&'static [u8]),
}

const WORDS: [&[u8]; 10] =
    [b"{", b"]", b"\"", b"\\ud800", b"null", b"1e400", b",", b"\xff", b"-32700", b"\"id\":{},"];

fn changes() -> impl Strategy<Value = Vec<(u16, Change)>> {
    let change = prop_oneof![
        (0..8u8).prop_map(|bit| Change::Flip(1 << bit)),
        (1..40usize).prop_map(Change::Cut),
        select(&WORDS[..]).prop_map(Change::Put),
        Just(Change::Put(b"")),
    ];
    vec((any::<u16>(), change), 1..5)
}

fn changed(mut frame: Vec<u8>, changes: &[(u16, Change)]) -> Vec<u8> {
    for (at, change) in changes {
        let at = usize::from(*at) % (frame.len() + 1);
        match change {
            Change::Flip(bits) => frame.get_mut(at).into_iter().for_each(|byte| *byte ^= bits),
            Change::Cut(length) => drop(frame.drain(at..(at + length).min(frame.len()))),
            Change::Put(word) => drop(frame.splice(at..at, word.iter().copied())),
        }
    }
    frame
}

#[tokio::test]
async fn a_frame_that_was_changed_on_the_way_is_answered_or_refused() {
    let door = Door::new().await;
    let frames = [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "note.recall", "arguments": { "query": "tea" } })),
        ("tools/call", json!({ "name": "search", "arguments": { "query": "tea" } })),
        ("resources/read", json!({ "uri": "note://1" })),
        ("server/discover", json!({})),
    ];
    let mut runner = TestRunner::deterministic();
    let (mut answered, mut refused) = (0, 0);
    for round in 0..rounds() {
        let (method, params) = &frames[round % frames.len()];
        let (parts, body) = door.alone(method, params.clone()).into_parts();
        let body = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
        let changes = changes().new_tree(&mut runner).unwrap().current();
        let frame = changed(body.to_vec(), &changes);
        let said = String::from_utf8_lossy(&frame).into_owned();
        let request = axum::http::Request::from_parts(parts, frame.into());
        let (status, _, body) = door.knock(request).await;
        assert!(!status.is_server_error(), "{status}: {said}");
        if status == StatusCode::ACCEPTED {
            assert!(body.is_empty(), "{said}");
            continue;
        }
        let answer: Value = json_of(&body);
        assert_eq!(answer["jsonrpc"], "2.0", "{said}: {answer}");
        match answer["error"]["code"].as_i64() {
            None => {
                assert!(answer["result"].is_object(), "{said}: {answer}");
                answered += 1;
            }
            Some(_) => refused += 1,
        }
    }
    assert!(answered > 0 && refused > rounds() / 2, "{answered} answered, {refused} refused");
    let (status, _, body) = door.knock(door.alone("tools/list", json!({}))).await;
    assert_eq!(status, StatusCode::OK);
    assert!(json_of(&body)["result"]["tools"].is_array());
}
