//! A host that speaks OMP over REST: the vault of this command, or one elsewhere.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::header::{ETAG, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Method, Request, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;
use yore_archive::omp::attachment_path;
use yore_canon::encode::base64;
use yore_client::{Client, Target, api, input};
use yore_domain::BlobHash;
use yore_engine::Secret;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// What is read of one answer.
const ANSWER: usize = 512 << 20;
/// How often a host that is busy is asked again.
const TRIES: usize = 30;
/// How long it is left alone when it does not say.
const REST: Duration = Duration::from_secs(1);
/// The largest attachment that travels inside a message.
const INSIDE: usize = 8 << 20;

/// Where another host is and how to be let in.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Elsewhere {
    /// The owner's token at the other host
    #[arg(long, env = "YORE_PEER_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub(crate) peer_token: Option<String>,
    /// A certificate authority to trust there, in PEM
    #[arg(long, env = "YORE_PEER_CA", value_name = "FILE", hide_env_values = true)]
    pub(crate) peer_ca: Option<PathBuf>,
    /// Whose vault there, for credentials that reach several
    #[arg(long, env = "YORE_PEER_VAULT", value_name = "OWNER", hide_env_values = true)]
    pub(crate) peer_vault: Option<String>,
}

/// A host.
#[derive(Debug)]
pub(crate) struct Peer {
    client: Client,
    /// What it is called in messages.
    pub(crate) name: String,
    /// The DID of its vault, where the host is one of ours.
    pub(crate) did: Option<String>,
}

/// What a host answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) tag: Option<String>,
    pub(crate) body: Value,
}

impl Answer {
    /// Why it is no good answer.
    pub(crate) fn reason(&self) -> String {
        match self.body["error"]["message"].as_str() {
            Some(message) => message.to_owned(),
            None => format!("status {}", self.status.as_u16()),
        }
    }

    /// A detail of a refusal.
    pub(crate) fn detail(&self, name: &str) -> Option<&str> {
        self.body["error"]["details"][name].as_str()
    }

    /// Whether the host told that it was deleted there.
    pub(crate) fn is_deleted(&self) -> bool {
        self.status == StatusCode::CONFLICT && self.detail("reason") == Some("deleted")
    }

    /// The answer, or a failure.
    pub(crate) fn good(self, peer: &Peer) -> Result<Self> {
        if self.status.is_success() {
            return Ok(self);
        }
        let exit = match self.status.as_u16() {
            401 | 403 => Exit::NotAuthorised,
            404 => Exit::NotFound,
            409 | 412 => Exit::Conflict,
            _ => Exit::Failed,
        };
        Err(Failure::new(exit, format!("{}: {}", peer.name, self.reason())))
    }
}

impl Peer {
    /// The vault of this command.
    pub(crate) async fn here(app: &App) -> Result<Self> {
        let client = app.link().await?;
        let who = client.call::<api::Whoami>(input::Nothing {}).await?;
        if !who.is_owner {
            return Err(not_the_owner("this vault"));
        }
        Ok(Self { client, name: "this vault".to_owned(), did: Some(who.did) })
    }

    /// The host at an address.
    pub(crate) async fn there(url: &str, way: &Elsewhere) -> Result<Self> {
        let mut target: Target = url.trim_end_matches('/').parse()?;
        if let Some(ca) = &way.peer_ca {
            target = target.trusting(ca.as_path());
        }
        let token = way.peer_token.as_ref().ok_or_else(|| {
            Failure::new(Exit::NotAuthorised, format!("{url} wants a token"))
                .hint("pass --peer-token or YORE_PEER_TOKEN; yore token owner makes one there")
        })?;
        let client = Client::new(target)?.with_token(Secret::new(token));
        let client = match &way.peer_vault {
            Some(vault) => client.with_vault(vault)?,
            None => client,
        };
        let mut peer = Self { client, name: url.to_owned(), did: None };
        // Hosts of others have no such operation; ours says whether ids stay what they are.
        match peer.client.call::<api::Whoami>(input::Nothing {}).await {
            Ok(who) if who.is_owner => peer.did = Some(who.did),
            Ok(_) => return Err(not_the_owner(url)),
            Err(error @ yore_client::Error::Unreachable { .. }) => {
                return Err(Failure::from(error).hint(
                    "is yore serve running there? a certificate made by yore wants --peer-ca \
                     DIR/tls/ca.pem",
                ));
            }
            Err(error) => {
                if error.refusal().is_some_and(|refusal| refusal.status == 401) {
                    return Err(Failure::from(error).at(url));
                }
            }
        }
        peer.ask(Method::GET, "/.well-known/omp", &[], None).await?.good(&peer)?;
        Ok(peer)
    }

    /// What the host says of itself.
    pub(crate) async fn described(&self) -> Result<Value> {
        Ok(self.ask(Method::GET, "/.well-known/omp", &[], None).await?.good(self)?.body)
    }

    /// The way to it, for what is not one question and one answer.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Asks something; a host that is busy is asked again.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, String)],
        body: Option<&Value>,
    ) -> Result<Answer> {
        let bytes = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let mut tries = 0;
        loop {
            let answer = self.once(method.clone(), path, headers, bytes.clone()).await?;
            tries += 1;
            let (wait, answer) = match answer {
                (Some(wait), answer) if tries < TRIES => (wait, answer),
                (_, answer) => return Ok(answer),
            };
            if answer.status != StatusCode::TOO_MANY_REQUESTS
                && answer.status != StatusCode::SERVICE_UNAVAILABLE
            {
                return Ok(answer);
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn once(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, String)],
        body: Bytes,
    ) -> Result<(Option<Duration>, Answer)> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() =
            path.parse().map_err(|_| Failure::failed(format!("{path} is no path")))?;
        for (name, value) in headers {
            let value = HeaderValue::from_str(value)
                .map_err(|_| Failure::failed(format!("{name} cannot have that value")))?;
            request.headers_mut().insert(name, value);
        }
        let response = self.client.forward(request).await?;
        let (parts, mut pieces) = response.into_parts();
        let mut bytes = Vec::new();
        while let Some(piece) = pieces.next().await {
            bytes.extend_from_slice(&piece.map_err(|error| {
                Failure::new(Exit::Unreachable, format!("{}: {error}", self.name))
            })?);
            if bytes.len() > ANSWER {
                return Err(Failure::failed(format!("{}: an answer is too large", self.name)));
            }
        }
        let text = |name: HeaderName| {
            parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok())
        };
        let wait = text(RETRY_AFTER).and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let answer = Answer {
            status: parts.status,
            tag: text(ETAG).map(str::to_owned),
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
        };
        Ok((wait.or(Some(REST)), answer))
    }

    /// Takes an attachment over from another host and returns what a message calls it here.
    pub(crate) async fn take_over(
        &self,
        from: &Self,
        blob: BlobHash,
        media_type: &str,
    ) -> Result<String> {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = format!("/attachments/{blob}")
            .parse()
            .map_err(|_| Failure::failed("an attachment has no path"))?;
        let mut response = from.client.forward(request).await?;
        if !response.status().is_success() {
            let status = response.status().as_u16();
            return Err(Failure::failed(format!("{}: attachment {blob}: {status}", from.name)));
        }
        if self.did.is_none() {
            let mut bytes = Vec::new();
            while let Some(piece) = response.body_mut().next().await {
                bytes.extend_from_slice(&piece.map_err(Failure::file(&from.name))?);
                if bytes.len() > INSIDE {
                    return Err(Failure::failed(format!("attachment {blob} is too large to send")));
                }
            }
            return Ok(base64(&bytes));
        }
        let (sender, mut pieces) = mpsc::channel(4);
        tokio::spawn(async move {
            while let Some(piece) = response.body_mut().next().await {
                if sender.send(piece).await.is_err() {
                    break;
                }
            }
        });
        let stream = futures::stream::poll_fn(move |context| pieces.poll_recv(context));
        let stored = self.client.attach(stream).await?;
        if stored.blob != blob {
            return Err(Failure::failed(format!("attachment {blob} is not what it is called")));
        }
        Ok(attachment_path(blob, media_type))
    }

    /// Brings the attachments that a document names to this host, and names them as it does.
    /// Those that cannot be had are returned; the document then says where they were.
    pub(crate) async fn bring(
        &self,
        from: &Self,
        document: &mut Value,
        known: &mut HashSet<BlobHash>,
    ) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        let mut named = Vec::new();
        places(document, &mut named);
        let mut called = std::collections::HashMap::new();
        for (blob, media_type) in named {
            if called.contains_key(&blob) {
                continue;
            }
            if self.did.is_some() && known.contains(&blob) {
                called.insert(blob, attachment_path(blob, &media_type));
                continue;
            }
            match self.take_over(from, blob, &media_type).await {
                Ok(name) => {
                    known.insert(blob);
                    called.insert(blob, name);
                }
                Err(failure) if failure.exit == Exit::Unreachable => return Err(failure),
                Err(failure) => missing.push(failure.message),
            }
        }
        rename(document, &called);
        Ok(missing)
    }
}

fn not_the_owner(place: &str) -> Failure {
    Failure::new(Exit::NotAuthorised, format!("{place}: the token is not the owner's"))
        .hint("what agents store gets ids of the server's own; yore token owner makes one there")
}

/// The attachment that an address at a host means.
fn blob_in(data: &str) -> Option<BlobHash> {
    let (_, hash) = data.rsplit_once("/attachments/")?;
    hash.parse().ok()
}

/// Finds everything that names an attachment.
fn places(value: &Value, found: &mut Vec<(BlobHash, String)>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| places(value, found)),
        Value::Object(object) => {
            if let Some(blob) = object.get("data").and_then(Value::as_str).and_then(blob_in) {
                let kind = object.get("media_type").and_then(Value::as_str).unwrap_or_default();
                found.push((blob, kind.to_owned()));
            }
            object.values().for_each(|value| places(value, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn rename(value: &mut Value, called: &std::collections::HashMap<BlobHash, String>) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| rename(value, called)),
        Value::Object(object) => {
            let blob = object.get("data").and_then(Value::as_str).and_then(blob_in);
            if let Some(name) = blob.and_then(|blob| called.get(&blob)) {
                object.insert("data".into(), name.clone().into());
            }
            object.values_mut().for_each(|value| rename(value, called));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
