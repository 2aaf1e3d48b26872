//! `yore proxy` between a program and a provider that is played here.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::Home;

/// Plays a provider: answers each request, and tells what came.
fn provider() -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while let Some((head, body)) = request(&mut reader) {
                    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                    let answer = answer(&head, &body);
                    sender.send((head, body)).unwrap_or_default();
                    for piece in answer {
                        if stream.write_all(piece.as_bytes()).is_err() {
                            return;
                        }
                        std::thread::sleep(Duration::from_millis(30));
                    }
                }
            });
        }
    });
    (format!("http://{address}"), receiver)
}

fn request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(number) = line.to_lowercase().strip_prefix("content-length:") {
            length = number.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// What the provider says, in the pieces it says it in.
fn answer(head: &str, body: &Value) -> Vec<String> {
    let chunked = |pieces: Vec<String>| {
        let mut all = vec![
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                .to_owned(),
        ];
        all.extend(pieces.iter().map(|piece| format!("{:x}\r\n{piece}\r\n", piece.len())));
        all.push("0\r\n\r\n".to_owned());
        all
    };
    let plain = |status: &str, value: Value| {
        let text = value.to_string();
        vec![format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        )]
    };
    if !head.to_lowercase().contains("key-of-the-program") {
        return plain("401 Unauthorized", json!({"error": {"message": "no key"}}));
    }
    if head.starts_with("POST /v1/chat/completions") && body["stream"] == true {
        let piece = |text: &str| {
            let chunk = json!({"id": "c", "model": "m-1", "choices": [{"index": 0, "delta": {"content": text}}]});
            format!("data: {chunk}\n\n")
        };
        let mut pieces: Vec<String> = ["Forty ", "thousand ", "bees."].map(piece).into();
        pieces.push("data: [DONE]\n\n".to_owned());
        return chunked(pieces);
    }
    if head.starts_with("POST /v1/chat/completions") {
        return plain(
            "200 OK",
            json!({"id": "c", "model": "m-1", "usage": {"total_tokens": 7},
            "choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": "Many bees."}}]}),
        );
    }
    if head.starts_with("POST /v1/responses") {
        let words = format!("You asked: {}", body["input"].as_str().unwrap_or("?"));
        let number = if body["previous_response_id"].is_null() { 1 } else { 2 };
        let response = |output: Value| json!({"id": format!("resp_{number}"), "model": "m-1", "output": output});
        let item = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]});
        if body["stream"] != true {
            return plain("200 OK", response(json!([item])));
        }
        let events = [
            json!({"type": "response.created", "response": response(json!([]))}),
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": words}),
            json!({"type": "response.completed", "response": response(json!([item]))}),
        ];
        return chunked(
            events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect(),
        );
    }
    if head.starts_with("POST /v1/messages") {
        let events = [
            json!({"type": "message_start", "message": {"id": "x", "role": "assistant", "model": "c-1", "content": []}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "A queen."}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        ];
        return chunked(
            events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect(),
        );
    }
    plain("200 OK", json!({"object": "list", "data": []}))
}

/// A proxy under test; it is ended with it.
struct Proxy {
    child: Child,
    url: String,
}

impl Proxy {
    fn start(home: &Home, provider: &str, more: &[&str]) -> Self {
        let args = ["proxy", "--json", "--provider", provider, "--listen", "127.0.0.1:0"];
        let mut command = home.command(&[&args[..], more].concat());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut text = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        while serde_json::from_str::<Value>(&text).is_err() {
            assert!(out.read_line(&mut text).unwrap() > 0, "it ended: {text}");
        }
        let ready: Value = serde_json::from_str(&text).unwrap();
        Self { child, url: ready["listen"].as_str().unwrap().to_owned() }
    }

    fn ask(&self, path: &str, more: &str, body: &Value) -> (u16, String) {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer key-of-the-program\r\n\
             {more}content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().unwrap();
    }
}

/// The conversations of a vault, once there are so many messages.
fn recorded(home: &Home, messages: usize) -> Vec<Value> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let out = home.ok(&["export"]);
        let items = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let talks: Vec<Value> = items.filter(|item| item["item"] == "conversation").collect();
        let count: usize =
            talks.iter().map(|talk| talk["messages"].as_array().unwrap().len()).sum();
        if count == messages {
            return talks;
        }
        assert!(count < messages && Instant::now() < deadline, "{count} of {messages}: {talks:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn texts(talk: &Value) -> Vec<&str> {
    talk["messages"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect()
}

#[test]
fn what_goes_through_is_recorded_word_for_word() {
    let home = Home::new();
    let (url, came) = provider();
    let proxy = Proxy::start(&home, &url, &[]);
    let mut said = vec![
        json!({"role": "system", "content": "be brief"}),
        json!({"role": "user", "content": "How many bees?"}),
    ];
    let (status, answer) =
        proxy.ask("/v1/chat/completions", "", &json!({"model": "m", "messages": said}));
    assert!(status == 200 && answer.contains("Many bees."), "{answer}");
    let (head, body) = came.recv().unwrap();
    assert!(
        head.contains("key-of-the-program") && !head.to_lowercase().contains("accept-encoding")
    );
    assert_eq!(body["messages"], json!(said), "the request goes on as it is");
    let talks = recorded(&home, 3);
    assert_eq!(texts(&talks[0]), ["be brief", "How many bees?", "Many bees."]);
    assert_eq!(talks[0]["messages"][2]["model"], "m-1");
    assert_eq!(talks[0]["messages"][2]["foreign"]["openai"]["answer"]["usage"]["total_tokens"], 7);

    // It goes on, in pieces this time; what is known is not stored again.
    said.push(json!({"role": "assistant", "content": "Many bees."}));
    said.push(json!({"role": "user", "content": "A number, please."}));
    let request = json!({"model": "m", "stream": true, "messages": said});
    let (status, answer) = proxy.ask("/v1/chat/completions", "", &request);
    assert!(status == 200 && answer.contains("thousand") && answer.contains("[DONE]"), "{answer}");
    let talks = recorded(&home, 5);
    assert_eq!(talks.len(), 1, "one conversation: {talks:?}");
    assert_eq!(texts(&talks[0])[3..], ["A number, please.", "Forty thousand bees."]);

    let asked = json!({"model": "c", "max_tokens": 9, "stream": true, "system": "be kind",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Who rules?"}]}]});
    let (status, answer) = proxy.ask("/v1/messages", "", &asked);
    assert!(status == 200 && answer.contains("A queen."), "{answer}");
    let talks = recorded(&home, 8);
    let other = talks.iter().find(|talk| talk["conversation"]["platform"] == "anthropic").unwrap();
    assert_eq!(texts(other), ["be kind", "Who rules?", "A queen."]);
    let found = home.json(&["search", "--in", "conversations", "who rules"]);
    assert!(found.to_string().contains("Who rules?"), "{found}");
}

#[test]
fn what_is_no_conversation_or_fails_is_passed_on_and_not_recorded() {
    let home = Home::new();
    let (url, _came) = provider();
    let proxy = Proxy::start(&home, &url, &[]);
    let asked = json!({"messages": [{"role": "user", "content": "hello"}]});
    assert_eq!(proxy.ask("/v1/embeddings", "", &json!({"input": "x"})).0, 200);
    let (status, answer) =
        proxy.ask("/v1/chat/completions", "origin: https://evil.example\r\n", &asked);
    assert_eq!(status, 403, "{answer}");
    assert_eq!(proxy.ask("/v1/chat/completions", "", &json!({"no": "messages"})).0, 200);
    drop(proxy);
    let dead = Proxy::start(&home, "http://127.0.0.1:9", &[]);
    assert_eq!(dead.ask("/v1/chat/completions", "", &asked).0, 502);
    drop(dead);
    assert_eq!(home.ok(&["export"]), "");
    home.fails(&["proxy", "--provider", "ftp://x"], 2, &["ftp"]);
    home.fails(&["proxy", "--provider", &url, "--listen", "0.0.0.0:0"], 2, &["loopback"]);
}

#[test]
fn what_is_known_is_put_before_the_question_and_only_the_question_is_stored() {
    let home = Home::new();
    home.remember(&["I am allergic to peanuts"]);
    let (url, came) = provider();
    let proxy = Proxy::start(&home, &url, &["--memories", "500"]);
    let said = json!([{"role": "user", "content": "Which food am I allergic to?"}]);
    proxy.ask("/v1/chat/completions", "", &json!({"model": "m", "messages": said}));
    let (_, body) = came.recv().unwrap();
    let framed = body["messages"][0]["content"].as_str().unwrap();
    assert!(framed.contains("untrusted-data") && framed.contains("peanuts"), "{body}");
    assert_eq!(body["messages"][1], said[0]);
    let talks = recorded(&home, 2);
    assert_eq!(texts(&talks[0]), ["Which food am I allergic to?", "Many bees."]);
}

#[test]
fn responses_are_recorded_whole_and_in_pieces_and_go_on_by_name() {
    let home = Home::new();
    let (url, came) = provider();
    let proxy = Proxy::start(&home, &url, &[]);
    let first = json!({"model": "m", "instructions": "be brief", "input": "How many bees?"});
    let (status, answer) = proxy.ask("/v1/responses", "", &first);
    assert!(status == 200 && answer.contains("You asked: How many bees?"), "{answer}");
    assert_eq!(came.recv().unwrap().1, first, "the request goes on as it is");
    assert_eq!(
        texts(&recorded(&home, 3)[0]),
        ["be brief", "How many bees?", "You asked: How many bees?"]
    );
    let next = json!({"input": "Sure?", "previous_response_id": "resp_1", "stream": true});
    let (status, _) = proxy.ask("/v1/responses", "", &next);
    assert_eq!(status, 200);
    let talks = recorded(&home, 5);
    assert_eq!(talks.len(), 1, "it is the same conversation");
    assert_eq!(texts(&talks[0])[3..], ["Sure?", "You asked: Sure?"]);
    assert_eq!(talks[0]["messages"][3]["parent"], talks[0]["messages"][2]["id"]);
    assert_eq!(talks[0]["messages"][4]["foreign"]["openai"]["previous"], "resp_1");
}
