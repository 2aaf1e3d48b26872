//! An S3-compatible bucket that objects are put into, read from and, where they are not locked,
//! removed.
//!
//! Requests are signed with AWS Signature Version 4. What is locked is put with a retention in
//! compliance mode and only where none of that name is there.

use std::io::Read as _;
use std::path::Path;

use axum::http::{Method, Request, Uri};
use bytes::{Bytes, BytesMut};
use futures::TryStreamExt as _;
use yore_canon::encode::{base64, hex};
use yore_canon::hash::{Sha256, hmac_sha256};
use yore_client::{Client, Target};
use yore_domain::{Span, Timestamp};

const SERVICE: &str = "s3";
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// Where buckets are that say nothing about it.
const REGION: &str = "us-east-1";
/// Bytes of one request; a larger file goes in parts.
const PART: usize = 16 << 20;
/// Bytes of an answer that is read as text.
const ANSWER: usize = 16 << 20;

/// Why a bucket did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The address is of another form.
    #[error("write the place as https://host/bucket/prefix")]
    Address,
    /// A key is missing in the environment.
    #[error("{0} is not set")]
    Unset(&'static str),
    /// It must not be overwritten.
    #[error("an object of that name is there")]
    Taken,
    /// The keys are not good there.
    #[error("the bucket refuses the keys")]
    Keys,
    /// Another refusal.
    #[error("the bucket answered {0}")]
    Status(u16),
    /// The answer makes no sense.
    #[error("the bucket's answer is not understood")]
    Answer,
    /// No answer came.
    #[error(transparent)]
    Client(#[from] yore_client::Error),
    /// The file to put cannot be read.
    #[error(transparent)]
    File(#[from] std::io::Error),
}

type Result<T, E = BucketError> = std::result::Result<T, E>;

/// A bucket, by its address in path style: `https://host/bucket/prefix`.
#[derive(Debug)]
pub struct Bucket {
    client: Client,
    host: String,
    bucket: String,
    /// What the names of objects begin with; empty or ending in a slash.
    prefix: String,
    keys: Keys,
}

/// Who asks.
struct Keys {
    id: String,
    secret: String,
    region: String,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Bucket {
    /// A bucket that is asked with the keys of the environment.
    pub fn new(address: &str) -> Result<Self> {
        let variable =
            |name: &'static str| std::env::var(name).map_err(|_| BucketError::Unset(name));
        let keys = Keys {
            id: variable("AWS_ACCESS_KEY_ID")?,
            secret: variable("AWS_SECRET_ACCESS_KEY")?,
            region: std::env::var("AWS_REGION").unwrap_or_else(|_| REGION.to_owned()),
        };
        Self::with(address, keys)
    }

    /// Refuses an address that no bucket has.
    pub fn check(address: &str) -> Result<()> {
        let none = || String::new();
        Self::with(address, Keys { id: none(), secret: none(), region: none() }).map(drop)
    }

    fn with(address: &str, keys: Keys) -> Result<Self> {
        let wrong = || BucketError::Address;
        let uri: Uri = address.parse().map_err(|_| wrong())?;
        let (scheme, authority) = uri.scheme_str().zip(uri.authority()).ok_or_else(wrong)?;
        let target: Target =
            format!("{scheme}://{authority}").parse().map_err(|_| BucketError::Address)?;
        let path = uri.path().trim_matches('/');
        let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
        if bucket.is_empty() || uri.query().is_some() || !path.bytes().all(is_plain) {
            return Err(wrong());
        }
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(Self {
            client: Client::new(target)?,
            host: authority.to_string(),
            bucket: bucket.to_owned(),
            prefix,
            keys,
        })
    }

    fn path(&self, name: &str) -> String {
        format!("/{}/{}{name}", self.bucket, self.prefix)
    }

    /// Lists the names of objects, without the prefix.
    pub async fn names(&self, now: Timestamp) -> Result<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        loop {
            let after = names.last().map(|name| format!("{}{name}", self.prefix));
            let mut query = vec![("list-type", "2"), ("prefix", &self.prefix)];
            if let Some(after) = &after {
                query.push(("start-after", after));
            }
            let path = format!("/{}", self.bucket);
            let text = self.told(now, Method::GET, &path, &query, &[], Bytes::new()).await?;
            let known = names.len();
            let found = keys(&text).filter_map(|key| key.strip_prefix(&self.prefix));
            names.extend(found.map(str::to_owned));
            if names.len() == known || !text.contains("<IsTruncated>true</IsTruncated>") {
                return Ok(names);
            }
        }
    }

    /// Puts an object that nobody can change or remove until its time is over.
    pub async fn lock(&self, now: Timestamp, name: &str, bytes: Vec<u8>, lock: Span) -> Result<()> {
        let until = Timestamp::from_millis(now.plus(lock).millis() / 1000 * 1000).to_string();
        let sum = base64(Sha256::of(&bytes).as_bytes());
        let headers = [
            ("if-none-match", "*"),
            // A locked object is taken only with a sum of what it holds.
            ("x-amz-checksum-sha256", &*sum),
            ("x-amz-object-lock-mode", "COMPLIANCE"),
            ("x-amz-object-lock-retain-until-date", &until),
        ];
        self.told(now, Method::PUT, &self.path(name), &[], &headers, bytes.into()).await.map(drop)
    }

    /// Puts a file, in parts where it is large; no more than one part lies in memory.
    pub async fn put(&self, now: Timestamp, name: &str, file: &Path) -> Result<()> {
        let path = self.path(name);
        let mut source = std::fs::File::open(file)?;
        let mut part = next(&mut source)?;
        if part.len() < PART {
            return self.told(now, Method::PUT, &path, &[], &[], part).await.map(drop);
        }
        let begun = self.told(now, Method::POST, &path, &[("uploads", "")], &[], Bytes::new());
        let begun = begun.await?;
        let upload = within(&begun, "UploadId").ok_or(BucketError::Answer)?.to_owned();
        let mut list = String::from("<CompleteMultipartUpload>");
        for number in 1.. {
            if part.is_empty() {
                break;
            }
            let number = u32::to_string(&number);
            let query = [("partNumber", number.as_str()), ("uploadId", &upload)];
            let answer = self.ask(now, Method::PUT, &path, &query, &[], part).await?;
            let tag = answer.headers().get("etag").and_then(|tag| tag.to_str().ok());
            let tag = tag.ok_or(BucketError::Answer)?;
            list.push_str(&format!(
                "<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
            ));
            part = next(&mut source)?;
        }
        list.push_str("</CompleteMultipartUpload>");
        let query = [("uploadId", upload.as_str())];
        let done = self.told(now, Method::POST, &path, &query, &[], list.into()).await?;
        // The status may say success while the answer says that it failed.
        if done.contains("<Error>") { Err(BucketError::Answer) } else { Ok(()) }
    }

    /// Reads an object and returns the digest of what it holds.
    pub async fn digest(&self, now: Timestamp, name: &str) -> Result<String> {
        let answer = self.ask(now, Method::GET, &self.path(name), &[], &[], Bytes::new()).await?;
        let mut body = answer.into_body();
        let mut hasher = Sha256::hasher();
        while let Some(piece) = body.try_next().await? {
            hasher.update(&piece);
        }
        Ok(hasher.finish().to_hex())
    }

    /// Removes an object.
    pub async fn remove(&self, now: Timestamp, name: &str) -> Result<()> {
        let path = self.path(name);
        self.told(now, Method::DELETE, &path, &[], &[], Bytes::new()).await.map(drop)
    }

    async fn told(
        &self,
        now: Timestamp,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        headers: &[(&'static str, &str)],
        body: Bytes,
    ) -> Result<String> {
        let answer = self.ask(now, method, path, query, headers, body).await?;
        let mut body = answer.into_body();
        let mut read = BytesMut::new();
        while let Some(piece) = body.try_next().await? {
            if read.len() + piece.len() > ANSWER {
                return Err(BucketError::Answer);
            }
            read.extend_from_slice(&piece);
        }
        Ok(String::from_utf8_lossy(&read).into_owned())
    }

    async fn ask(
        &self,
        now: Timestamp,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        headers: &[(&'static str, &str)],
        body: Bytes,
    ) -> Result<Answer> {
        let mut pairs: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        pairs.sort_unstable();
        let query = pairs.join("&");
        let hash = Sha256::of(&body).to_hex();
        let time = compact(now);
        let mut signed = headers.to_vec();
        signed.extend([("host", &*self.host), ("x-amz-content-sha256", &hash)]);
        signed.push(("x-amz-date", &time));
        signed.sort_unstable();
        let authorization = self.keys.authorization(&method, path, &query, &signed, &hash);
        signed.push(("authorization", &authorization));
        let place = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        let mut request = Request::builder().method(method).uri(place);
        for (name, value) in &signed {
            request = request.header(*name, *value);
        }
        let request = request.body(body).map_err(|_| BucketError::Address)?;
        let answer = self.client.forward(request).await?;
        match answer.status().as_u16() {
            200..=299 => Ok(answer),
            409 | 412 => Err(BucketError::Taken),
            401 | 403 => Err(BucketError::Keys),
            status => Err(BucketError::Status(status)),
        }
    }
}

type Answer = axum::http::Response<futures::stream::BoxStream<'static, std::io::Result<Bytes>>>;

/// The next part of a file; an empty one at its end.
fn next(file: &mut std::fs::File) -> std::io::Result<Bytes> {
    let mut part = Vec::new();
    file.take(PART as u64).read_to_end(&mut part)?;
    Ok(part.into())
}

/// What stands in the first element of a name.
fn within<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once('<').map(|(inside, _)| inside)
}

impl Keys {
    /// The header that proves who asks for what; the headers must be sorted by name.
    fn authorization(
        &self,
        method: &Method,
        path: &str,
        query: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> String {
        let Self { id, secret, region } = self;
        let time = headers.iter().find(|(name, _)| *name == "x-amz-date").map_or("", |it| it.1);
        let day = time.split('T').next().unwrap_or_default();
        let lines: String =
            headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let asked = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{body}");
        let scope = format!("{day}/{region}/{SERVICE}/aws4_request");
        let digest = Sha256::of(asked.as_bytes()).to_hex();
        let message = format!("{ALGORITHM}\n{time}\n{scope}\n{digest}");
        let mut key = hmac_sha256(format!("AWS4{secret}").as_bytes(), day.as_bytes());
        for part in [region.as_str(), SERVICE, "aws4_request"] {
            key = hmac_sha256(&key, part.as_bytes());
        }
        let signature = hex(&hmac_sha256(&key, message.as_bytes()));
        format!("{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}")
    }
}

/// The names in a list of objects.
fn keys(text: &str) -> impl Iterator<Item = &str> {
    text.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>").map(|(key, _)| key))
}

/// A time as the signature wants it: `20260115T080000Z`.
fn compact(now: Timestamp) -> String {
    let text = now.to_string();
    let whole = text.split(['.', 'Z']).next().unwrap_or_default();
    format!("{}Z", whole.replace(['-', ':'], ""))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte)
}

fn escaped(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'/' => "%2F".to_owned(),
        byte if is_plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the service's own documentation: GET of an object with a range.
    #[test]
    fn mw_203_requests_are_signed_as_published() {
        let keys = Keys {
            id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            region: "us-east-1".into(),
        };
        let empty = Sha256::of(b"").to_hex();
        let headers = [
            ("host", "examplebucket.s3.amazonaws.com"),
            ("range", "bytes=0-9"),
            ("x-amz-content-sha256", empty.as_str()),
            ("x-amz-date", "20130524T000000Z"),
        ];
        let said = keys.authorization(&Method::GET, "/test.txt", "", &headers, &empty);
        assert!(
            said.ends_with("f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
            "{said}"
        );
    }

    #[test]
    fn times_names_and_addresses_have_their_forms() {
        let at = Timestamp::from_millis(1_800_000_000_123);
        assert_eq!(compact(at), "20270115T080000Z");
        assert_eq!(escaped("a/b c"), "a%2Fb%20c");
        let listed = "<Contents><Key>p/a</Key></Contents><Contents><Key>p/b</Key></Contents>";
        assert_eq!(keys(listed).collect::<Vec<_>>(), ["p/a", "p/b"]);
        let with = |address: &str| {
            let keys = Keys { id: "i".into(), secret: "s".into(), region: "r".into() };
            Bucket::with(address, keys).map(|bucket| (bucket.bucket, bucket.prefix))
        };
        assert_eq!(with("http://h:1/b").unwrap(), ("b".into(), String::new()));
        assert_eq!(with("https://h/b/c/d/").unwrap(), ("b".into(), "c/d/".into()));
        for wrong in ["https://h", "https://h/", "h/b", "https://h/b?x=1", "https://h/b%20"] {
            assert!(with(wrong).is_err(), "{wrong}");
        }
    }
}
