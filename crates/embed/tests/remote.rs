//! The remote client against a small HTTP server.

#![cfg(feature = "remote")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use yore_embed::{
    Embedder, Error,
    remote::{Config, Key, Remote},
};

#[test]
fn texts_travel_in_batches_and_come_back_in_order() {
    let server = Server::answering(|request| (200, vectors(&request.body, 3).to_string()));
    let mut config = server.config(3);
    config.batch = 2;
    config.key = Some(Key::new("sk-secret"));
    let remote = Remote::new(config).unwrap();

    let found = remote.embed(&["a", "bb", "ccc", "dddd", "eeeee"]).unwrap();

    // The server gives each text the vector (length, 0, 1) and lists them in reverse.
    let expected: Vec<Vec<f32>> = (1..=5u8)
        .map(|length| {
            let length = f32::from(length);
            let norm = (length * length + 1.0).sqrt();
            vec![length / norm, 0.0, 1.0 / norm]
        })
        .collect();
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((found - expected).abs() < 1e-6);
    }
    let requests = server.requests();
    let sizes: Vec<usize> =
        requests.iter().map(|request| request.body["input"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [2, 2, 1]);
    for request in &requests {
        assert_eq!(request.line, "POST /v1/embeddings HTTP/1.1");
        assert_eq!(request.body["model"], "test-model");
        let authorization = request.header("authorization");
        assert_eq!(authorization, Some("Bearer sk-secret"));
    }
    assert_eq!((remote.dims(), remote.id().as_str()), (3, "remote:test-model@3"));
}

#[test]
fn no_texts_send_no_request() {
    let server = Server::answering(|_| (500, String::new()));
    let remote = Remote::new(server.config(3)).unwrap();
    assert_eq!(remote.embed(&[]).unwrap(), Vec::<Vec<f32>>::new());
    assert!(server.requests().is_empty());
}

#[test]
fn bad_answers_are_refused_with_a_reason() {
    let item = |index: usize, vector: Value| json!({"index": index, "embedding": vector});
    let table = [
        (
            200,
            json!({"data": [item(0, json!([1.0, 2.0]))]}),
            "embedding has 2 dimensions, expected 3",
        ),
        (200, json!({"data": []}), "invalid embedding answer: 0 vectors for 1 texts"),
        (
            200,
            json!({"data": [item(7, json!([1, 2, 3]))]}),
            "invalid embedding answer: unexpected index 7",
        ),
        (200, json!({"data": [item(0, json!([1, 2, 1e39]))]}), "invalid embedding answer: "),
        (200, json!({"oops": "quoted text"}), "invalid embedding answer: not the expected json"),
        (
            401,
            json!({"error": "your key sk-secret is wrong"}),
            "embedding endpoint answered status 401",
        ),
        (302, json!({}), "embedding endpoint answered status 302"),
        (503, json!({}), "embedding endpoint answered status 503"),
    ];
    for (status, body, expected) in table {
        let text = body.to_string();
        let server = Server::answering(move |_| (status, text.clone()));
        let mut config = server.config(3);
        config.key = Some(Key::new("sk-secret"));
        let error = Remote::new(config).unwrap().embed(&["x"]).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error} for {body}");
        assert!(!format!("{error} {error:?}").contains("secret"));
        assert!(!error.to_string().contains("quoted text"));
    }
}

#[test]
fn two_vectors_for_one_text_do_not_pass() {
    let server = Server::answering(|_| {
        let item = json!({"index": 0, "embedding": [1, 2, 3]});
        (200, json!({"data": [item, item]}).to_string())
    });
    let remote = Remote::new(server.config(3)).unwrap();
    let error = remote.embed(&["x", "y"]).unwrap_err();
    assert_eq!(error.to_string(), "invalid embedding answer: unexpected index 0");
}

#[test]
fn an_endless_answer_is_cut_off() {
    let server = Server::answering(|_| (200, "[".repeat(1 << 20)));
    let error = Remote::new(server.config(3)).unwrap().embed(&["x"]).unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit } if limit < 1 << 20), "{error}");
}

#[test]
fn a_silent_endpoint_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = config(listener.local_addr().unwrap(), 3);
    config.timeout = Duration::from_millis(200);
    let start = Instant::now();
    let error = Remote::new(config).unwrap().embed(&["x"]).unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_closed_port_is_unreachable() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Remote::new(config(address, 3)).unwrap().embed(&["x"]).unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error}");
}

#[test]
fn only_plain_web_addresses_are_accepted() {
    for address in
        ["", "localhost", "ftp://host/v1", "http://", "https://me:pw@host/v1", "http://a b/"]
    {
        let error = Remote::new(Config::new(address, "m", 3)).unwrap_err();
        assert!(matches!(error, Error::Config(_)), "{address}: {error}");
        assert!(!error.to_string().contains("pw"));
    }
    assert!(Remote::new(Config::new("https://host/v1/", "m", 3)).is_ok());
    assert!(Remote::new(Config::new("https://host/v1", "m", 0)).is_err());
}

#[test]
fn the_key_is_never_printed() {
    let mut config = Config::new("http://localhost:1/v1", "m", 3);
    config.key = Some(Key::new("sk-secret"));
    assert!(!format!("{:?}", Remote::new(config).unwrap()).contains("secret"));
}

/// Gives each text the vector (length, 0, …, 1), last text first.
fn vectors(request: &Value, dims: usize) -> Value {
    let texts = request["input"].as_array().unwrap();
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .rev()
        .map(|(index, text)| {
            let mut vector = vec![0; dims];
            vector[0] = text.as_str().unwrap().len();
            vector[dims - 1] = 1;
            json!({"object": "embedding", "index": index, "embedding": vector})
        })
        .collect();
    json!({"object": "list", "data": data, "model": "test-model"})
}

fn config(address: SocketAddr, dims: usize) -> Config {
    Config::new(format!("http://{address}/v1"), "test-model", dims)
}

struct Request {
    line: String,
    headers: Vec<String>,
    body: Value,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

struct Server {
    address: SocketAddr,
    requests: mpsc::Receiver<Request>,
}

impl Server {
    fn answering(answer: impl Fn(&Request) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(request) = read_request(&stream) else {
                    continue;
                };
                let (status, body) = answer(&request);
                // The test may be gone, or the client may have read enough.
                let _ = sender.send(request);
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status} Test\r\ncontent-type: application/json\r\n\
                     location: http://127.0.0.1:1/\r\nconnection: close\r\n\
                     content-length: {}\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        Self { address, requests }
    }

    fn config(&self, dims: usize) -> Config {
        config(self.address, dims)
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let mut request = Request { line: lines.remove(0), headers: lines, body: Value::Null };
    let mut body = vec![0; request.header("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    request.body = serde_json::from_slice(&body).ok()?;
    Some(request)
}
