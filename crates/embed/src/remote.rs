//! A client for endpoints that speak OpenAI's `/v1/embeddings`.
//!
//! Calls block; the caller chooses the thread. Texts go out in batches, an answer is bounded in
//! time and size and checked before it is used. The key appears in no error and no debug print.

use std::{fmt, io::Read, time::Duration};

use serde::{Deserialize, Serialize};
use ureq::{Agent, http::Uri};
use zeroize::Zeroizing;

use crate::model::{Embedder, Error, ModelId};

/// Where and how to ask for embeddings.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address of the interface up to and including its version, such as `http://localhost:11434/v1`.
    pub base_url: String,
    /// The model to name in requests.
    pub model: String,
    /// The number of dimensions every vector must have.
    pub dims: usize,
    /// The bearer key, if the endpoint wants one.
    pub key: Option<Key>,
    /// How long one request may take from connecting to the last byte.
    pub timeout: Duration,
    /// How many texts go into one request.
    pub batch: usize,
}

impl Config {
    /// Describes an endpoint with no key, a timeout of 30 seconds and 64 texts a request.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>, dims: usize) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            dims,
            key: None,
            timeout: Duration::from_secs(30),
            batch: 64,
        }
    }
}

/// A key that prints as dots and is wiped when dropped.
#[derive(Clone)]
pub struct Key(Zeroizing<String>);

impl Key {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(Zeroizing::new(key.into()))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// A model behind an OpenAI-compatible endpoint.
#[derive(Debug)]
pub struct Remote {
    config: Config,
    url: String,
    agent: Agent,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [&'a str],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

impl Remote {
    /// Prepares a client; nothing is sent yet.
    ///
    /// # Errors
    /// If the address is not `http` or `https` with a host, holds a user or password, or a number is zero.
    pub fn new(config: Config) -> Result<Self, Error> {
        let url = format!("{}/embeddings", config.base_url.trim_end_matches('/'));
        check_address(&url)?;
        if config.dims == 0 || config.batch == 0 {
            return Err(Error::Config("dims and batch must be positive".to_owned()));
        }
        let agent = Agent::config_builder()
            .timeout_global(Some(config.timeout))
            .http_status_as_error(false)
            // A redirect could carry the texts, or the key, somewhere nobody configured.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .build()
            .into();
        Ok(Self { config, url, agent })
    }

    fn embed_batch(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let body = serde_json::to_vec(&Request {
            model: &self.config.model,
            input: texts,
            encoding_format: "float",
        })
        .map_err(|error| Error::Config(error.to_string()))?;
        let mut request = self.agent.post(&self.url).header("content-type", "application/json");
        if let Some(key) = &self.config.key {
            let value = Zeroizing::new(format!("Bearer {}", key.0.as_str()));
            request = request.header("authorization", value.as_str());
        }
        let mut response = request.send(&body[..]).map_err(|error| unreachable(&error))?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(Error::Refused { status });
        }
        let bytes = read_limited(response.body_mut().as_reader(), self.limit(texts.len()))?;
        let answer = serde_json::from_slice(&bytes).map_err(|error| {
            // The text of a parse error quotes the answer; its place is enough.
            Error::Answer(format!("not the expected json at byte {}", error.column()))
        })?;
        self.vectors_from(answer, texts.len())
    }

    /// The largest answer accepted: generous for any way of writing the expected numbers.
    fn limit(&self, texts: usize) -> u64 {
        const NUMBER: usize = 32;
        const REST: usize = 64 * 1024;
        (texts * self.config.dims * NUMBER + REST) as u64
    }

    fn vectors_from(&self, answer: Answer, texts: usize) -> Result<Vec<Vec<f32>>, Error> {
        if answer.data.len() != texts {
            let found = answer.data.len();
            return Err(Error::Answer(format!("{found} vectors for {texts} texts")));
        }
        let mut vectors = vec![Vec::new(); texts];
        for item in answer.data {
            let place = vectors
                .get_mut(item.index)
                .filter(|place| place.is_empty())
                .ok_or_else(|| Error::Answer(format!("unexpected index {}", item.index)))?;
            if item.embedding.len() != self.config.dims {
                return Err(Error::Dimensions {
                    expected: self.config.dims,
                    found: item.embedding.len(),
                });
            }
            if item.embedding.iter().any(|value| !value.is_finite()) {
                return Err(Error::Answer(format!("vector {} is not finite", item.index)));
            }
            *place = item.embedding;
            yore_kernels::normalise(place);
        }
        Ok(vectors)
    }
}

impl Embedder for Remote {
    fn id(&self) -> ModelId {
        ModelId::new(format!("remote:{}@{}", self.config.model, self.config.dims))
    }

    fn dims(&self) -> usize {
        self.config.dims
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(self.config.batch) {
            vectors.extend(self.embed_batch(batch)?);
        }
        Ok(vectors)
    }
}

fn check_address(url: &str) -> Result<(), Error> {
    let uri: Uri = url.parse().map_err(|_| Error::Config("not an address".to_owned()))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(Error::Config("address is neither http nor https".to_owned()));
    }
    match uri.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            Err(Error::Config("address holds a user name; use the key instead".to_owned()))
        }
        Some(authority) if !authority.host().is_empty() => Ok(()),
        _ => Err(Error::Config("address has no host".to_owned())),
    }
}

fn read_limited(reader: impl Read, limit: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    reader
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Error::Unreachable(error.to_string()))?;
    if bytes.len() as u64 > limit {
        return Err(Error::TooLarge { limit });
    }
    Ok(bytes)
}

fn unreachable(error: &ureq::Error) -> Error {
    Error::Unreachable(error.to_string())
}
