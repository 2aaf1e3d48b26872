//! The backends: two that are databases, four that are servers.
//!
//! An adapter translates and nothing else: deadlines, canonical ids, conditions and retries are
//! the slot's.

mod cognee;
mod letta;
mod mem0;
mod pgvector;
mod rest;
mod sqlite_vec;
mod vectors;
mod yore;

pub use cognee::Cognee;
pub use letta::Letta;
pub use mem0::{Edition, Mem0};
pub use pgvector::Pgvector;
pub use sqlite_vec::SqliteVec;
pub use vectors::{DIMENSIONS, Embedder};
pub use yore::{Yore, read_hit};

pub use crate::http::Server;

use std::sync::Arc;

use serde_json::Value;

use crate::config::{StoreConfig, Target};
use crate::error::{Error, Result};
use crate::record::Object;
use crate::store::MemoryStore;

/// Opens the store that a configuration describes.
pub fn open(config: &StoreConfig, embedder: Arc<dyn Embedder>) -> Result<Arc<dyn MemoryStore>> {
    Ok(match config.target()? {
        Target::SqliteVec { path } => Arc::new(SqliteVec::open(&path, embedder)?),
        Target::Pgvector { dsn, schema } => Arc::new(Pgvector::new(&dsn, &schema, embedder)?),
        Target::Mem0 { server, edition } => Arc::new(Mem0::new(server, edition)?),
        Target::Letta { server, archive, embedding } => {
            Arc::new(Letta::new(server, &archive, embedding)?)
        }
        Target::Cognee { server, dataset } => Arc::new(Cognee::new(server, &dataset)?),
        Target::Yore { server, sign_as } => Arc::new(Yore::new(server, sign_as)?),
    })
}

/// A text at a member of an answer.
fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

/// A text that an answer must have.
fn must<'a>(value: &'a Value, name: &'static str) -> Result<&'a str> {
    text(value, name).ok_or_else(|| Error::Garbage(format!("{name} is missing")))
}

/// A list that an answer must be, or have at `results`.
fn rows(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(rows) => Ok(rows),
        Value::Object(mut members) => match members.remove("results") {
            Some(Value::Array(rows)) => Ok(rows),
            Some(_) | None => Err(Error::Garbage("results is not a list".into())),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(Error::Garbage("the answer is not a list".into()))
        }
    }
}

/// An object that is one, or the text of one.
fn object(value: Option<&Value>) -> Object {
    match value {
        Some(Value::Object(members)) => members.clone(),
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) | None => {
            Object::new()
        }
    }
}

/// Milliseconds of a time that is written out; 0 where it is not one.
fn millis(text: Option<&str>) -> i64 {
    let stamp = text.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    stamp.map_or(0, jiff::Timestamp::as_millisecond)
}

/// A time written out.
fn written(millis: i64) -> String {
    jiff::Timestamp::from_millisecond(millis).map_or_else(|_| String::new(), |at| at.to_string())
}
