//! The body of an envelope: first decoded, then unpacked, never beyond its limits.

use std::io::Read;

use serde_json::Value;
use yore_canon::encode;
use yore_canon::json::{self, Limits, Object};

use crate::refusal::{Code, Refusal, Result};

/// Bytes of a body once it is unpacked, and how many times more than packed.
const UNPACKED: usize = 8 << 20;
const RATIO: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Base64,
    Base64Url,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Its media type, in lower case and without parameters.
    pub kind: String,
    content: String,
    encoding: Encoding,
    compression: Compression,
}

impl Body {
    /// Reads the member `body`. What else stands in it is signed, and means nothing here.
    pub(crate) fn of(body: &Object) -> Result<Self> {
        let text = |name: &str| match body.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(Refusal::malformed("body", "its members are texts")),
        };
        let kind = text("type")?.ok_or_else(|| Refusal::malformed("body.type", "is required"))?;
        let content = text("content")?;
        let content = content.ok_or_else(|| Refusal::malformed("body.content", "is required"))?;
        let encoding = match folded(text("encoding")?.unwrap_or("utf-8")).as_str() {
            "utf8" => Encoding::Utf8,
            "base64" => Encoding::Base64,
            "base64url" => Encoding::Base64Url,
            _ => {
                let known = "must be utf-8, base64 or base64url";
                return Err(Refusal::malformed("body.encoding", known));
            }
        };
        let compression = match text("compression")?.unwrap_or("none") {
            "none" => Compression::None,
            "gzip" => Compression::Gzip,
            "zstd" => Compression::Zstd,
            _ => {
                return Err(Refusal::malformed("body.compression", "must be none, gzip or zstd"));
            }
        };
        if compression != Compression::None && encoding == Encoding::Utf8 {
            return Err(Refusal::malformed("body.encoding", "what is packed must be base64"));
        }
        let essence = kind.split(';').next().unwrap_or(kind).trim().to_ascii_lowercase();
        Ok(Self { kind: essence, content: content.to_owned(), encoding, compression })
    }

    /// Returns what it says.
    pub(crate) fn decoded(&self) -> Result<Vec<u8>> {
        let wrong = |_| Refusal::malformed("body.content", "is not what body.encoding says");
        let bytes = match self.encoding {
            Encoding::Utf8 => self.content.as_bytes().to_vec(),
            Encoding::Base64 => encode::from_base64(&self.content).map_err(wrong)?,
            Encoding::Base64Url => {
                encode::from_base64url(self.content.trim_end_matches('=')).map_err(wrong)?
            }
        };
        match self.compression {
            Compression::None => Ok(bytes),
            Compression::Gzip => {
                unpacked(flate2::read::GzDecoder::new(bytes.as_slice()), bytes.len())
            }
            Compression::Zstd => {
                let source = ruzstd::decoding::StreamingDecoder::new(bytes.as_slice());
                let source = source.map_err(|_| broken())?;
                unpacked(source, bytes.len())
            }
        }
    }

    /// Returns it as text.
    pub(crate) fn text(&self) -> Result<String> {
        String::from_utf8(self.decoded()?)
            .map_err(|_| Refusal::malformed("body.content", "is not text"))
    }

    /// Returns it as a JSON object.
    pub(crate) fn object(&self) -> Result<Object> {
        let limits = Limits { bytes: UNPACKED, depth: 32, nodes: 500_000 };
        json::parse_object(&self.decoded()?, limits)
            .map_err(|error| Refusal::malformed("body.content", &error.to_string()))
    }
}

fn folded(word: &str) -> String {
    word.to_ascii_lowercase().replace('-', "")
}

fn broken() -> Refusal {
    Refusal::malformed("body.content", "is not what body.compression says")
}

fn unpacked(source: impl Read, packed: usize) -> Result<Vec<u8>> {
    let most = UNPACKED.min(packed.saturating_mul(RATIO));
    let mut bytes = Vec::new();
    let read = source.take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|_| broken())?;
    if bytes.len() > most {
        return Err(Refusal::new(Code::TooLarge, "the body is too large once it is unpacked"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use serde_json::json;

    use super::*;

    fn body(value: &Value) -> Result<Body> {
        Body::of(value.as_object().unwrap())
    }

    fn gzip(bytes: &[u8]) -> String {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(bytes).unwrap();
        encode::base64(&packed.finish().unwrap())
    }

    #[test]
    fn uamp_012_content_is_decoded_and_then_unpacked() {
        for (given, said) in [
            (json!({"type": "text/plain", "content": "grüße"}), "grüße"),
            (json!({"type": "TEXT/Plain; charset=x", "content": "a", "encoding": "UTF8"}), "a"),
            (json!({"type": "text/plain", "content": "w6k=", "encoding": "base64"}), "é"),
            (json!({"type": "text/plain", "content": "w6k", "encoding": "base64url"}), "é"),
            (
                json!({"type": "text/plain", "content": gzip(b"hello"), "encoding": "base64",
                       "compression": "gzip"}),
                "hello",
            ),
        ] {
            let body = body(&given).unwrap();
            assert_eq!((body.kind.as_str(), body.text().unwrap().as_str()), ("text/plain", said));
        }
    }

    #[test]
    fn uamp_012_what_cannot_be_read_is_malformed() {
        for given in [
            json!({"type": "text/plain"}),
            json!({"content": "x"}),
            json!({"type": 1, "content": "x"}),
            json!({"type": "text/plain", "content": "x", "encoding": "latin1"}),
            json!({"type": "text/plain", "content": "x", "compression": "br"}),
            json!({"type": "text/plain", "content": "x", "compression": "gzip"}),
        ] {
            assert_eq!(body(&given).unwrap_err().code, Code::Malformed, "{given}");
        }
        for given in [
            json!({"type": "text/plain", "content": "!", "encoding": "base64"}),
            json!({"type": "text/plain", "content": "AAAA", "encoding": "base64", "compression": "gzip"}),
            json!({"type": "text/plain", "content": "AAAA", "encoding": "base64", "compression": "zstd"}),
        ] {
            let refused = body(&given).unwrap().decoded().unwrap_err();
            assert_eq!(refused.code, Code::Malformed, "{given}");
        }
    }

    #[test]
    fn uamp_077_a_bomb_is_not_unpacked() {
        let bomb = json!({"type": "text/plain", "content": gzip(&vec![b'a'; 16 << 20]),
                          "encoding": "base64", "compression": "gzip"});
        assert_eq!(body(&bomb).unwrap().decoded().unwrap_err().code, Code::TooLarge);
    }
}
