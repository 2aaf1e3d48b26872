//! Lays file, environment and flags over one another.

use std::path::{Path, PathBuf};

use toml::{Table, Value};
use yore_engine::Secret;

use crate::error::{Error, Result};
use crate::key::KeySource;

/// How a variable's text becomes a value.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Number,
    Flag,
    List,
}

/// Variables of the environment and the members they set.
const VARIABLES: &[(&str, &str, Shape)] = &[
    ("YORE_DATA", "data", Shape::Text),
    ("YORE_KEY_FILE", "key_file", Shape::Text),
    ("YORE_DATABASE", "database", Shape::Text),
    ("YORE_LOG", "log", Shape::Text),
    ("YORE_STRICT_AUDIT", "strict_audit", Shape::Flag),
    ("YORE_EFFORT", "effort", Shape::Text),
    ("YORE_SENSITIVE", "sensitive", Shape::Text),
    ("YORE_METRICS", "metrics", Shape::Text),
    ("YORE_LISTEN", "listen.http", Shape::Text),
    ("YORE_TLS_LISTEN", "listen.https", Shape::Text),
    ("YORE_HTTP3", "listen.http3", Shape::Flag),
    ("YORE_SOCKET", "listen.socket", Shape::Flag),
    ("YORE_HOSTS", "listen.hosts", Shape::List),
    ("YORE_ORIGINS", "listen.origins", Shape::List),
    ("YORE_TLS_CERTIFICATE", "tls.certificate", Shape::Text),
    ("YORE_TLS_KEY", "tls.key", Shape::Text),
    ("YORE_DID", "trust.did", Shape::Text),
    ("YORE_ISSUERS", "trust.issuers", Shape::List),
    ("YORE_AUDIENCES", "trust.audiences", Shape::List),
    ("YORE_CONNECTIONS", "limits.connections", Shape::Number),
    ("YORE_REQUEST_SECONDS", "limits.request_seconds", Shape::Number),
    ("YORE_DRAIN_SECONDS", "limits.drain_seconds", Shape::Number),
];

/// Where configuration comes from, the weakest first.
#[derive(Debug, Default)]
pub struct Layers {
    file: Option<PathBuf>,
    layers: Vec<(String, Table)>,
    key: Option<KeySource>,
}

impl Layers {
    /// Nothing but defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads this file, which must be there.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = Some(path.into());
        self
    }

    /// Reads the platform's usual file if it is there.
    #[must_use]
    pub fn usual_file(self) -> Self {
        match crate::place::config().map(|place| place.join("config.toml")) {
            Ok(path) if path.exists() => self.file(path),
            Ok(_) | Err(_) => self,
        }
    }

    /// Takes the variables that `get` knows; `std::env::var` is the usual one. An empty one
    /// counts as unset, unless it is the key.
    pub fn env(mut self, get: impl Fn(&str) -> Option<String>) -> Result<Self> {
        for (name, path, shape) in VARIABLES {
            if let Some(text) = get(name).filter(|text| !text.is_empty()) {
                let value = shape.read(name, &text)?;
                self.layers.push(((*name).to_owned(), nested(path, value)));
            }
        }
        let text = get("YORE_MASTER_KEY").map(|text| KeySource::Text(Secret::new(text)));
        let phrase = get("YORE_PASSPHRASE").map(|text| KeySource::Passphrase(Secret::new(text)));
        self.key = match (text, phrase) {
            (Some(_), Some(_)) => {
                let both = "YORE_MASTER_KEY and YORE_PASSPHRASE exclude each other";
                return Err(Error::Config(both.into()));
            }
            (text, phrase) => text.or(phrase),
        };
        Ok(self)
    }

    /// Sets a member by its dotted path, over everything before.
    #[must_use]
    pub fn set(mut self, path: &str, value: impl Into<Value>) -> Self {
        if path == "key_file" {
            self.key = None;
        }
        self.layers.push((path.to_owned(), nested(path, value.into())));
        self
    }

    /// Takes the master key from here, over everything before.
    #[must_use]
    pub fn key(mut self, key: KeySource) -> Self {
        self.key = Some(key);
        self
    }

    pub(super) fn merged(self) -> Result<(Table, Option<KeySource>)> {
        let mut table = match &self.file {
            Some(path) => read(path)?,
            None => Table::new(),
        };
        for (_, layer) in self.layers {
            lay(&mut table, layer);
        }
        Ok((table, self.key))
    }
}

impl Shape {
    fn read(self, name: &str, text: &str) -> Result<Value> {
        let wrong = |what| Error::Config(format!("{name} is not {what}"));
        Ok(match self {
            Self::Text => Value::String(text.to_owned()),
            Self::Number => Value::Integer(text.parse().map_err(|_| wrong("a number"))?),
            Self::Flag => Value::Boolean(match text {
                "1" | "true" | "yes" | "on" => true,
                "0" | "false" | "no" | "off" => false,
                _ => return Err(wrong("true or false")),
            }),
            Self::List => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                Value::Array(parts.map(|part| Value::String(part.to_owned())).collect())
            }
        })
    }
}

fn read(path: &Path) -> Result<Table> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    let table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| Error::Config(format!("{}: {error}", path.display())))?;
    Ok(table)
}

fn nested(path: &str, value: Value) -> Table {
    let mut table = Table::new();
    match path.split_once('.') {
        None => table.insert(path.to_owned(), value),
        Some((head, rest)) => table.insert(head.to_owned(), Value::Table(nested(rest, value))),
    };
    table
}

fn lay(under: &mut Table, over: Table) {
    for (name, value) in over {
        match (under.get_mut(&name), value) {
            (Some(Value::Table(under)), Value::Table(over)) => lay(under, over),
            (_, value) => {
                under.insert(name, value);
            }
        }
    }
}
