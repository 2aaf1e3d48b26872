//! HTTP/1.1 as somebody speaks it who must know whether an answer came.
//!
//! One connection for each request, no pool and nothing asked twice: a client of the checker
//! decides itself what it asks again. An answer that broke off is no answer.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// How long a client waits for a connection, and for the next bytes of an answer.
const CONNECT: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(20);

/// Where a server is at the moment; it changes with each start.
#[derive(Debug, Default)]
pub(super) struct Address(Mutex<String>);

impl Address {
    pub(super) fn get(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, address: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = address.to_owned();
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub(super) struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Request {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), headers: Vec::new(), body: String::new() }
    }

    pub(super) fn post(path: impl Into<String>, body: &Value) -> Self {
        Self { method: "POST", body: body.to_string(), ..Self::get(path) }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Sends it and returns the whole answer.
    pub(super) fn send(&self, address: &str, token: &str) -> Result<Reply> {
        let place: SocketAddr =
            address.parse().map_err(|_| Error::new(ErrorKind::InvalidInput, "no address"))?;
        let mut stream = TcpStream::connect_timeout(&place, CONNECT)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let Self { method, path, headers, body } = self;
        let length = body.len();
        let mut bytes = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             connection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"
        );
        for (name, value) in headers {
            bytes.push_str(&format!("{name}: {value}\r\n"));
        }
        bytes.push_str("\r\n");
        bytes.push_str(body);
        stream.write_all(bytes.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Reply::read(&answer).ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }
}

/// A whole answer.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) text: String,
}

impl Reply {
    /// Reads an answer; nothing when it broke off.
    fn read(bytes: &[u8]) -> Option<Self> {
        let cut = bytes.windows(4).position(|at| at == b"\r\n\r\n")?;
        let head = String::from_utf8(bytes[..cut].to_vec()).ok()?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let body = &bytes[cut + 4..];
        let header = |name: &str| {
            head.lines().find_map(|line| {
                let (found, value) = line.split_once(':')?;
                found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let body = match (header("transfer-encoding"), header("content-length")) {
            (Some(_), _) => unchunked(body)?,
            (None, Some(length)) if length.parse() == Ok(body.len()) => body.to_vec(),
            (None, Some(_)) => return None,
            (None, None) => body.to_vec(),
        };
        Some(Self { status, head, text: String::from_utf8(body).ok()? })
    }

    /// The document in it; the last one where it is a stream of events.
    pub(super) fn json(&self) -> Value {
        let events = self.text.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut read = events.filter_map(|line| serde_json::from_str(line.trim()).ok());
        read.next_back().or_else(|| serde_json::from_str(&self.text).ok()).unwrap_or_default()
    }
}

/// Puts the pieces of a body together; nothing when the last one is missing.
fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let cut = bytes.windows(2).position(|at| at == b"\r\n")?;
        let size = std::str::from_utf8(&bytes[..cut]).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(bytes.get(cut + 2..cut + 2 + size)?);
        bytes = bytes.get(cut + 4 + size..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_broke_off_is_none() {
        let whole = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        for cut in 1..whole.len() {
            assert!(Reply::read(&whole.as_bytes()[..cut]).is_none(), "{cut}");
        }
        assert_eq!(Reply::read(whole.as_bytes()).unwrap().status, 200);
        let pieces = "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n";
        for cut in 1..pieces.len() - 4 {
            assert!(Reply::read(&pieces.as_bytes()[..cut]).is_none(), "{cut}");
        }
        assert_eq!(Reply::read(pieces.as_bytes()).unwrap().text, "{}");
    }

    #[test]
    fn the_last_event_of_a_stream_is_the_answer() {
        let text = "event: message\ndata: {\"a\":1}\n\ndata: {\"a\":2}\n\n".to_owned();
        let reply = Reply { status: 200, head: String::new(), text };
        assert_eq!(reply.json()["a"], 2);
    }
}
