//! Speaks UAMP: signs messages, and follows the streams on which they are answered.
//!
//! A stream that breaks off is taken up where it was, as the protocol promises; whoever reads it
//! sees every frame once and in order, or is told that one is missing.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http::header::LOCATION;
use http::{Method, Request, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use yore_canon::did::{Did, KeyId};
use yore_canon::hash::Sha256;
use yore_canon::key::SigningKey;
use yore_canon::{jcs, jws};
use yore_domain::{MessageId, Timestamp};

use crate::client::Client;
use crate::error::{Error, Refusal, Result};
use crate::sse::Lines;

/// How often a stream is taken up again without a frame in between.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// The most bytes of an answer that is no stream.
const ANSWER: usize = 1 << 20;

type Pieces = BoxStream<'static, std::io::Result<Bytes>>;

/// An agent: a key, and a server it talks to.
#[derive(Clone, Debug)]
pub struct Agent {
    client: Client,
    key: std::sync::Arc<SigningKey>,
    did: String,
}

/// What an agent says.
#[derive(Clone, Debug)]
pub struct Saying {
    /// `ask`, `inform`, `propose`, `subscribe` or another intent.
    pub intent: &'static str,
    /// Whom it is for.
    pub to: Vec<String>,
    /// The media type of the content.
    pub kind: String,
    /// The content.
    pub content: String,
    /// The stream that it opens or is about.
    pub stream: Option<String>,
    /// The message that it answers.
    pub reply_to: Option<String>,
}

/// A message that was taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its id.
    pub id: String,
    /// The stream on which it is answered, as a path of the server.
    pub stream: Option<String>,
}

/// A frame of a stream.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Delta {
    /// Its number.
    pub delta_seq: u64,
    /// `chunk`, `patch`, `progress`, `done`, `error` or `cancel`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it says.
    #[serde(default)]
    pub payload: Value,
}

impl Delta {
    /// Whether nothing comes after it.
    #[must_use]
    pub fn ends(&self) -> bool {
        ["done", "error", "cancel"].contains(&self.kind.as_str())
    }
}

impl Agent {
    /// An agent that signs with a key and presents the client's credential.
    #[must_use]
    pub fn new(client: Client, key: SigningKey) -> Self {
        let did = Did::of_key(&key.verifying_key()).as_str().to_owned();
        Self { client, key: std::sync::Arc::new(key), did }
    }

    /// Returns the DID by which it is known.
    #[must_use]
    pub fn did(&self) -> &str {
        &self.did
    }

    /// Asks the server for its own DID.
    pub async fn server(&self) -> Result<String> {
        let request = Request::get("/.well-known/did.json").body(Bytes::new());
        let (status, text) = read(self.client.forward(request.map_err(odd)?).await?).await?;
        let document: Value = serde_json::from_str(&text).unwrap_or_default();
        let did = document["id"].as_str().map(str::to_owned);
        did.ok_or_else(|| Error::Answer(format!("status {status} and no DID")))
    }

    /// Signs a message, at a time.
    #[must_use]
    pub fn sign(&self, saying: &Saying, now: Timestamp) -> (String, String) {
        let id = format!("urn:uuid:{}", MessageId::random());
        let mut envelope = json!({
            "id": id, "ts": Timestamp::from_millis(now.millis()).to_string(), "from": self.did,
            "to": saying.to, "intent": saying.intent,
            "body": { "type": saying.kind, "content": saying.content },
        });
        let optional = [("stream_id", &saying.stream), ("reply_to", &saying.reply_to)];
        for (name, value) in optional {
            if let Some(value) = value {
                envelope[name] = value.as_str().into();
            }
        }
        let digest = Sha256::of(jcs::canonical(&envelope));
        let kid = KeyId::of_key(&self.key.verifying_key()).to_string();
        let payload = jws::digest_payload(&digest);
        envelope["sig"] = jws::sign_detached(&self.key, &kid, payload.as_bytes()).into();
        (id, envelope.to_string())
    }

    /// Signs and sends a message. When this returns the server has it on disk.
    pub async fn send(&self, saying: &Saying, now: Timestamp) -> Result<Sent> {
        let (id, body) = self.sign(saying, now);
        let request = Request::builder().method(Method::POST).uri("/v1/messages");
        let answer = self.client.forward(request.body(body.into()).map_err(odd)?).await?;
        let stream = answer.headers().get(LOCATION).and_then(|place| place.to_str().ok());
        let stream = stream.map(str::to_owned);
        match answer.status().as_u16() {
            202 => Ok(Sent { id, stream }),
            _ => Err(refused(read(answer).await?)),
        }
    }

    /// Follows a stream by the path that [`Agent::send`] returned, after a frame or from its
    /// beginning, over as many connections as it takes.
    #[must_use]
    pub fn follow(&self, stream: &str, after: Option<u64>) -> BoxStream<'static, Result<Delta>> {
        let following = Following {
            agent: self.clone(),
            stream: stream.to_owned(),
            next: after.map_or(0, |after| after + 1),
            open: None,
            vain: 0,
            ended: false,
        };
        stream::unfold(following, |mut following| async move {
            let delta = following.delta().await?;
            following.ended |= delta.as_ref().map_or(true, Delta::ends);
            Some((delta, following))
        })
        .boxed()
    }
}

/// How far a stream was read.
struct Following {
    agent: Agent,
    stream: String,
    next: u64,
    open: Option<(Pieces, Lines)>,
    /// Connections since the last frame.
    vain: u32,
    ended: bool,
}

impl Following {
    async fn delta(&mut self) -> Option<Result<Delta>> {
        while !self.ended {
            let step = match self.open.take() {
                None => self.connect().await,
                Some(open) => self.read(open).await,
            };
            match step {
                Ok(None) => {}
                Ok(Some(delta)) => return Some(Ok(delta)),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    async fn connect(&mut self) -> Result<Option<Delta>> {
        if self.vain > 0 {
            tokio::time::sleep(PAUSE * self.vain).await;
        }
        self.vain += 1;
        let after = self.next.checked_sub(1).map(|last| format!("?after={last}"));
        let path = format!("{}{}", self.stream, after.unwrap_or_default());
        let request = Request::get(path).body(Bytes::new()).map_err(odd)?;
        let answer = match self.agent.client.forward(request).await {
            Ok(answer) => answer,
            Err(_) if self.vain < ATTEMPTS => return Ok(None),
            Err(error) => return Err(error),
        };
        match answer.status().as_u16() {
            200 => self.open = Some((answer.into_body(), Lines::default())),
            204 => self.ended = true,
            _ => return Err(refused(read(answer).await?)),
        }
        Ok(None)
    }

    async fn read(&mut self, (mut pieces, mut lines): (Pieces, Lines)) -> Result<Option<Delta>> {
        if let Some(data) = lines.next()? {
            self.open = Some((pieces, lines));
            let delta: Delta =
                serde_json::from_str(&data).map_err(|error| Error::Answer(error.to_string()))?;
            if delta.delta_seq != self.next {
                let reason = format!("frame {} where {} was due", delta.delta_seq, self.next);
                return Err(Error::Answer(reason));
            }
            (self.next, self.vain) = (self.next + 1, 0);
            return Ok(Some(delta));
        }
        match pieces.next().await {
            Some(Ok(bytes)) => {
                lines.push(&bytes);
                self.open = Some((pieces, lines));
                Ok(None)
            }
            // It broke off, or its window was full: it goes on with another connection.
            Some(Err(_)) | None if self.vain < ATTEMPTS => Ok(None),
            Some(Err(_)) | None => Err(Error::Answer("the stream brings nothing more".into())),
        }
    }
}

async fn read(answer: Response<Pieces>) -> Result<(u16, String)> {
    let status = answer.status().as_u16();
    let (mut pieces, mut text) = (answer.into_body(), Vec::new());
    while let Some(piece) = pieces.next().await {
        text.extend(piece.map_err(|error| Error::Answer(error.to_string()))?);
        if text.len() > ANSWER {
            return Err(Error::Answer("an answer that is too long".into()));
        }
    }
    Ok((status, String::from_utf8_lossy(&text).into_owned()))
}

/// What a signed error says.
fn refused((status, text): (u16, String)) -> Error {
    let envelope: Value = serde_json::from_str(&text).unwrap_or_default();
    let said = envelope["body"]["content"].as_str().unwrap_or_default();
    let said: Value = serde_json::from_str(said).unwrap_or_default();
    match (said["code"].as_str(), said["message"].as_str()) {
        (Some(code), Some(message)) => Error::Refused(Refusal {
            status,
            code: code.to_owned(),
            message: message.to_owned(),
            hold: None,
            retry_after: None,
        }),
        _ => Error::Answer(format!("status {status}")),
    }
}

fn odd(error: http::Error) -> Error {
    Error::Answer(error.to_string())
}
