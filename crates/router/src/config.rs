//! Which stores there are: one block of configuration each.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use yore_canon::key::VerifyingKey;
use yore_domain::class::Sensitivity;
use yore_engine::Secret;

use crate::adapters::{Edition, Embedder, Server, open};
use crate::error::{Error, Result};
use crate::mapping::Mapping;
use crate::slot::{Slot, Terms};

/// Where mem0's open server listens unless something else is said.
const MEM0: &str = "http://127.0.0.1:8888";
const MEM0_PLATFORM: &str = "https://api.mem0.ai";
const LETTA: &str = "http://127.0.0.1:8283";
const COGNEE: &str = "http://127.0.0.1:8000/api/v1";
/// What archives, datasets and the schema are called unless something else is said.
const NAME: &str = "memorywire";

/// One store, as the operator describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// What it is called in answers and in the mapping. It must not change.
    pub name: String,
    /// Where it is, such as `sqlite-vec://./memory.db`.
    pub url: String,
    /// The address of its interface, where the URL does not say.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The key or password it wants.
    #[serde(default, deserialize_with = "secret")]
    pub token: Option<Secret>,
    /// A file of the certificates that vouch for a server, where the system's do not: another
    /// Yore's own is `ca.pem` in its data directory.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// How much it counts in weighted fusion.
    #[serde(default = "whole")]
    pub weight: f32,
    /// How many milliseconds an operation may take.
    #[serde(default = "two_seconds")]
    pub deadline_ms: u64,
    /// The most sensitive memories it is given.
    #[serde(default)]
    pub ceiling: Sensitivity,
    /// Whether it is only asked, and nothing in it is ever changed.
    #[serde(default)]
    pub read_only: bool,
    /// The Ed25519 key, in multibase, that it signs its answers with.
    #[serde(default)]
    pub public_key: Option<String>,
    /// For PostgreSQL, the schema its tables are in.
    #[serde(default)]
    pub schema: Option<String>,
    /// For Letta, what it embeds with: a model's handle, or a whole `embedding_config`.
    #[serde(default)]
    pub embedding: Value,
}

/// What a URL means.
#[derive(Clone, Debug)]
pub enum Target {
    /// A file of memorywire's.
    SqliteVec {
        /// The file, or `:memory:`.
        path: PathBuf,
    },
    /// A PostgreSQL database with pgvector.
    Pgvector {
        /// Its address, which may hold a password.
        dsn: String,
        /// The schema.
        schema: String,
    },
    /// A mem0.
    Mem0 {
        /// Where.
        server: Server,
        /// Which.
        edition: Edition,
    },
    /// A Letta server.
    Letta {
        /// Where.
        server: Server,
        /// What archives are called.
        archive: String,
        /// What it embeds with.
        embedding: Value,
    },
    /// A Cognee server.
    Cognee {
        /// Where.
        server: Server,
        /// What datasets are called.
        dataset: String,
    },
    /// Another Yore.
    Yore {
        /// Where.
        server: Server,
        /// The name that its signatures are for, where its key is known.
        sign_as: Option<String>,
    },
}

fn whole() -> f32 {
    1.0
}

fn two_seconds() -> u64 {
    2000
}

fn secret<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<Secret>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map(Secret::new))
}

impl StoreConfig {
    /// A store with a name and a URL and nothing else said about it.
    #[must_use]
    pub fn new(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            base_url: None,
            token: None,
            ca_file: None,
            weight: whole(),
            deadline_ms: two_seconds(),
            ceiling: Sensitivity::default(),
            read_only: false,
            public_key: None,
            schema: None,
            embedding: Value::Null,
        }
    }

    /// What the URL means (MW-074). Where it says `default`, `base_url` says where.
    pub fn target(&self) -> Result<Target> {
        let wrong = || Error::invalid("url", "must begin with the name of a store and ://");
        let (scheme, rest) = self.url.split_once("://").ok_or_else(wrong)?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let said = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let mut values = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value);
            values.next().map(|value| percent_decode_str(value).decode_utf8_lossy().into_owned())
        };
        let server = |fallback: &str| Server {
            base_url: said("base_url")
                .or_else(|| self.base_url.clone())
                .unwrap_or_else(|| fallback.to_owned()),
            token: said("token").map(Secret::new).or_else(|| self.token.clone()),
            ca_file: said("ca_file").map(PathBuf::from).or_else(|| self.ca_file.clone()),
        };
        let named = |place: &str| match place {
            "" | "default" => NAME.to_owned(),
            other => other.to_owned(),
        };
        let schema = self.schema.clone().unwrap_or_else(|| NAME.to_owned());
        Ok(match scheme {
            "sqlite-vec" | "sqlite+vec" | "sqlitevec" => {
                if place.is_empty() {
                    return Err(Error::invalid("url", "must name a file"));
                }
                Target::SqliteVec { path: place.into() }
            }
            "pgvector" if matches!(place, "" | "default") => {
                let dsn = self.base_url.clone();
                let dsn = dsn.ok_or_else(|| Error::invalid("base_url", "must be the database"))?;
                Target::Pgvector { dsn, schema }
            }
            "pgvector" | "pgvector+postgres" | "pgvector+postgresql" => {
                Target::Pgvector { dsn: format!("postgresql://{rest}"), schema }
            }
            "mem0" => match place {
                "platform" => {
                    Target::Mem0 { server: server(MEM0_PLATFORM), edition: Edition::Platform }
                }
                place => {
                    Target::Mem0 { server: server(&host(place, MEM0)), edition: Edition::Server }
                }
            },
            "letta" => Target::Letta {
                server: server(&host(place, LETTA)),
                archive: NAME.to_owned(),
                embedding: self.embedding.clone(),
            },
            "cognee" => Target::Cognee { server: server(COGNEE), dataset: named(place) },
            "yore" => self.yore(server(&elsewhere(place))),
            "http" | "https" => self.yore(server(&format!("{scheme}://{place}"))),
            _ => return Err(Error::invalid("url", "names no store that is known")),
        })
    }

    fn yore(&self, server: Server) -> Target {
        let sign_as = self.public_key.as_ref().map(|_| self.name.clone());
        Target::Yore { server, sign_as }
    }

    /// What the operator decides about it.
    pub fn terms(&self) -> Result<Terms> {
        if !(self.weight.is_finite() && self.weight >= 0.0) {
            return Err(Error::invalid("weight", "must be a number from 0 on"));
        }
        let key = self.public_key.as_deref().map(VerifyingKey::from_multibase).transpose();
        Ok(Terms {
            deadline: Duration::from_millis(self.deadline_ms),
            weight: self.weight,
            ceiling: self.ceiling,
            read_only: self.read_only,
            key: key.map_err(|_| Error::invalid("public_key", "is not a key in multibase"))?,
            ..Terms::default()
        })
    }

    /// Opens it.
    pub fn slot(&self, mapping: Arc<dyn Mapping>, embedder: Arc<dyn Embedder>) -> Result<Slot> {
        if self.name.is_empty() {
            return Err(Error::invalid("name", "must not be empty"));
        }
        Ok(Slot::new(self.name.as_str(), open(self, embedder)?, mapping, self.terms()?))
    }
}

/// The address of a host, or the usual one where only a word stands for it.
fn host(place: &str, usual: &str) -> String {
    let place = place.trim_end_matches('/');
    let is_host = place.contains([':', '.']) || place == "localhost";
    if is_host { format!("http://{place}") } else { usual.to_owned() }
}

/// The address of another Yore: encrypted, unless it is on this machine.
fn elsewhere(place: &str) -> String {
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
    let here = matches!(host.trim_matches(['[', ']']), "localhost" | "127.0.0.1" | "::1");
    format!("{}://{place}", if here { "http" } else { "https" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        match StoreConfig::new("s", url).target() {
            Ok(target) => format!("{target:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn mw_074_urls_mean_what_the_protocol_says() {
        for (url, expected) in [
            ("sqlite-vec://./a.db", r#"SqliteVec { path: "./a.db" }"#),
            ("sqlite+vec:///var/a.db", r#"SqliteVec { path: "/var/a.db" }"#),
            ("sqlitevec://:memory:", r#"SqliteVec { path: ":memory:" }"#),
            (
                "pgvector://u@h:5/db?x=1",
                r#"Pgvector { dsn: "postgresql://u@h:5/db?x=1", schema: "memorywire" }"#,
            ),
            (
                "pgvector+postgresql://h/db",
                r#"Pgvector { dsn: "postgresql://h/db", schema: "memorywire" }"#,
            ),
            (
                "mem0://team",
                r#"Mem0 { server: Server { base_url: "http://127.0.0.1:8888", token: None, ca_file: None }, edition: Server }"#,
            ),
            (
                "mem0://platform",
                r#"Mem0 { server: Server { base_url: "https://api.mem0.ai", token: None, ca_file: None }, edition: Platform }"#,
            ),
            (
                "letta://h:8283?token=t%20t",
                r#"Letta { server: Server { base_url: "http://h:8283", token: Some(Secret(…)), ca_file: None }, archive: "memorywire", embedding: Null }"#,
            ),
            (
                "cognee://default",
                r#"Cognee { server: Server { base_url: "http://127.0.0.1:8000/api/v1", token: None, ca_file: None }, dataset: "memorywire" }"#,
            ),
            (
                "yore://localhost:7411?token=t",
                r#"Yore { server: Server { base_url: "http://localhost:7411", token: Some(Secret(…)), ca_file: None }, sign_as: None }"#,
            ),
            (
                "yore://memory.example?ca_file=/etc/its.pem",
                r#"Yore { server: Server { base_url: "https://memory.example", token: None, ca_file: Some("/etc/its.pem") }, sign_as: None }"#,
            ),
            (
                "https://memory.example:8443",
                r#"Yore { server: Server { base_url: "https://memory.example:8443", token: None, ca_file: None }, sign_as: None }"#,
            ),
            ("redis://x", "invalid url: names no store that is known"),
            ("nothing", "invalid url: must begin with the name of a store and ://"),
            ("pgvector://default", "invalid base_url: must be the database"),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
    }

    #[test]
    fn a_block_is_read_and_its_token_is_never_shown() {
        let block = serde_json::json!({
            "name": "notes", "url": "mem0://localhost:1", "token": "hush", "deadline_ms": 50,
            "ceiling": "public",
        });
        let config: StoreConfig = serde_json::from_value(block).unwrap();
        assert!(!format!("{config:?} {:?}", config.target().unwrap()).contains("hush"));
        let terms = config.terms().unwrap();
        assert_eq!(terms.deadline, Duration::from_millis(50));
        assert_eq!(terms.ceiling, Sensitivity::Public);
        let unknown = serde_json::json!({"name": "n", "url": "u", "colour": "red"});
        assert!(serde_json::from_value::<StoreConfig>(unknown).is_err());
    }
}
