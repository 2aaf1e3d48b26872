//! A small HTTP server on the loopback interface that answers as it is told.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a request was.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub(crate) fn param(&self, name: &str) -> Option<String> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        let mut values = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value);
        values.next().map(plain)
    }
}

pub(crate) fn plain(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let two: String = bytes.by_ref().take(2).map(char::from).collect();
            plain.push(u8::from_str_radix(&two, 16).unwrap());
        } else {
            plain.push(byte);
        }
    }
    String::from_utf8(plain).unwrap()
}

/// How a server answers.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Properly.
    Json(u16, Value),
    /// Properly, with a text.
    Text(String),
    /// Never.
    Hang,
    /// With these bytes, and goes away.
    Raw(&'static [u8]),
}

/// Serves until the test ends.
pub(crate) async fn serve(answer: impl Fn(Asked) -> Reply + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move { one(stream, &*answer).await });
        }
    });
    address
}

async fn one(mut stream: TcpStream, answer: &(impl Fn(Asked) -> Reply + Send + Sync)) {
    let Some(asked) = read(&mut stream).await else { return };
    let bytes = match answer(asked) {
        Reply::Hang => {
            tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
            return;
        }
        Reply::Raw(bytes) => bytes.to_vec(),
        Reply::Text(text) => written(200, &text),
        Reply::Json(204, _) => b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_vec(),
        Reply::Json(status, body) => written(status, &body.to_string()),
    };
    // The other side may have gone: that is what some tests are about.
    if stream.write_all(&bytes).await.is_ok() {
        stream.shutdown().await.ok();
    }
}

fn written(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
        .into_bytes()
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    while bytes.len() < end + 4 + length.unwrap_or(0) {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let mut words = head.lines().next()?.split(' ');
    let method = words.next()?.to_owned();
    let target = words.next()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let body = String::from_utf8(bytes[end + 4..].to_vec()).ok()?;
    Some(Asked { method, path: plain(path), query: query.to_owned(), body })
}
