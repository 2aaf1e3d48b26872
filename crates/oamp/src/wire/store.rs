//! A knowledge store: what an export writes and an import reads.

use serde_json::Value;
use yore_domain::{Error, Result};

use super::{Object, named, object, only, spoken, text, time};

const MEMBERS: [&str; 7] =
    ["oamp_version", "type", "user_id", "entries", "exported_at", "agent_id", "metadata"];

/// The envelope of a store that passed every check; its entries are checked one by one.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    /// The version of entries that state none.
    pub version: String,
    /// Whose entries they are.
    pub user: String,
    /// The entries, as they were sent.
    pub entries: Vec<Value>,
    /// The model of the person, when one is enclosed.
    pub model: Option<Value>,
}

impl Store {
    /// Reads the envelope. When it was exported need not be said: the published suite does not.
    pub fn read(mut document: Object) -> Result<Self> {
        only(&document, "", &MEMBERS)?;
        let version = named(&document, "", "oamp_version")?;
        spoken(&version)?;
        if named(&document, "", "type")? != "knowledge_store" {
            return Err(Error::invalid("type", "must be knowledge_store"));
        }
        time(&document, "", "exported_at")?;
        text(&document, "", "agent_id")?;
        let metadata = object(&document, "", "metadata")?;
        let user = named(&document, "", "user_id")?;
        let entries = match document.remove("entries") {
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(Error::invalid("entries", "must be a list of entries")),
            None => return Err(Error::invalid("entries", "is required")),
        };
        let model = metadata.and_then(|mut metadata| metadata.remove("user_model"));
        Ok(Self { version, user, entries, model })
    }
}
