//! A server that is killed while it writes or reads an archive, or deletes: what was begun is
//! done in the end, and nothing is lost or doubled.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Home, Server, ask, post};

const TALKS: usize = 120;

/// How many kills: a few, or as many as the requirement states.
fn rounds() -> u64 {
    if std::env::var_os("YORE_FULL").is_some() { 20 } else { 3 }
}

/// A moment that differs from kill to kill, spread over the time that the work takes.
fn moment(round: u64, took: Duration) -> Duration {
    let share = (round * 2_654_435_761 + 12_345) % 1000;
    Duration::from_micros(u64::try_from(took.as_micros()).unwrap() * share / 1000)
}

/// A home whose server speaks the protocol on the loopback address.
fn home() -> (Home, Server, String) {
    let home = Home::new();
    let place = home.path("config/yore");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("config.toml"), "[omp]\ninsecure_loopback = true\n").unwrap();
    let server = home.serve();
    let owner = server.ready["owner_token"].as_str().unwrap().to_owned();
    (home, server, owner)
}

fn talk(number: usize) -> Value {
    let id = |sort: usize| format!("{sort:08x}-0000-4000-8000-{number:012x}");
    let said = |sort: usize, role: &str| {
        json!({
            "id": id(sort), "role": role, "timestamp": "2026-03-15T09:30:00Z",
            "content": format!("{role} says {number} ").repeat(40),
        })
    };
    json!({
        "id": id(1), "title": format!("Talk {number}"), "platform": "chatgpt",
        "created_at": "2026-03-15T09:30:00Z", "updated_at": "2026-03-15T09:30:00Z",
        "messages": [said(2, "user"), said(3, "assistant")], "message_count": 2,
    })
}

fn filled() -> (Home, Server, String) {
    let (home, server, owner) = home();
    for number in 0..TALKS {
        let body = talk(number).to_string();
        let (status, answer) = ask(&server.url(), &owner, "POST /conversations", &body);
        assert_eq!(status, 201, "{answer}");
    }
    (home, server, owner)
}

/// Waits until a job is done and returns its state.
fn done(server: &Server, owner: &str, path: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let (status, body) = ask(&server.url(), owner, &format!("GET {path}"), "");
        assert_eq!(status, 200, "{body}");
        let state: Value = serde_json::from_str(&body).unwrap();
        if state["status"] == "completed" {
            return state;
        }
        assert_ne!(state["status"], "failed", "{state}");
        assert!(Instant::now() < deadline, "{state}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Makes a backup and returns its checksum: that of the content.
fn checksum(server: &Server, owner: &str) -> Value {
    let job = post(&server.url(), owner, "/backup", "{}");
    let path = format!("/backup/{}", job["job_id"].as_str().unwrap());
    done(server, owner, &path)["checksum"].clone()
}

#[test]
fn a_backup_goes_on_after_kills_at_any_moment() {
    let (home, mut server, owner) = filled();
    let begun = Instant::now();
    let expected = checksum(&server, &owner);
    let took = begun.elapsed();
    for round in 0..rounds() {
        let job = post(&server.url(), &owner, "/backup", "{}");
        let path = format!("/backup/{}", job["job_id"].as_str().unwrap());
        std::thread::sleep(moment(round, took));
        server.kill();
        server = home.serve();
        assert_eq!(done(&server, &owner, &path)["checksum"], expected, "round {round}");
    }
}

/// Sends bytes and returns the JSON of the answer.
fn send(server: &Server, owner: &str, path: &str, bytes: &[u8]) -> Value {
    let url = server.url();
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {owner}\r\n\
         content-type: application/zip\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        bytes.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn a_restore_goes_on_after_kills_at_any_moment() {
    let (source, server, owner) = filled();
    let expected = checksum(&server, &owner);
    let file = source.path("all.omp.zip");
    source.ok(&["backup", file.to_str().unwrap()]);
    drop(server);
    let archive = std::fs::read(&file).unwrap();
    let mut took = Duration::from_millis(500);
    for round in 0..rounds() {
        let (home, mut server, owner) = home();
        let begun = Instant::now();
        let job = send(&server, &owner, "/restore", &archive);
        let path = format!("/restore/{}", job["job_id"].as_str().unwrap());
        std::thread::sleep(moment(round, took));
        server.kill();
        let cut = begun.elapsed();
        server = home.serve();
        let again = Instant::now();
        let counts = done(&server, &owner, &path)["summary"]["conversations"].clone();
        took = cut + again.elapsed();
        let all = counts["imported"].as_u64().unwrap() + counts["skipped"].as_u64().unwrap();
        assert_eq!(all, TALKS as u64, "round {round}: {counts}");
        assert_eq!(checksum(&server, &owner), expected, "round {round}");
    }
}

#[test]
fn a_deletion_that_is_killed_and_asked_for_again_leaves_nothing() {
    let mut took = Duration::from_millis(400);
    for round in 0..rounds() {
        let (home, mut server, owner) = filled();
        let everything = json!({"vault": true});
        let preview = post(&server.url(), &owner, "/deletions/preview", &everything.to_string());
        let (url, token) = (server.url(), preview["token"].clone());
        let asked = json!({"vault": true, "token": token}).to_string();
        let asking = {
            let owner = owner.clone();
            // The server dies on it, so there may be no answer.
            std::thread::spawn(move || {
                let request =
                    std::panic::AssertUnwindSafe(|| ask(&url, &owner, "POST /deletions", &asked));
                std::panic::catch_unwind(request).is_ok()
            })
        };
        std::thread::sleep(moment(round, took));
        server.kill();
        asking.join().unwrap();
        server = home.serve();
        let preview = post(&server.url(), &owner, "/deletions/preview", &everything.to_string());
        let asked = json!({"vault": true, "token": preview["token"]}).to_string();
        let again = Instant::now();
        post(&server.url(), &owner, "/deletions", &asked);
        took = took.max(again.elapsed());
        let (_, left) = ask(&server.url(), &owner, "GET /conversations", "");
        let left: Value = serde_json::from_str(&left).unwrap();
        assert_eq!(left["data"], json!([]), "round {round}");
    }
}
