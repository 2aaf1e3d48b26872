//! What the servers have in common.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::sync::Mutex;
use yore_canon::hash::Sha256;

use super::object;
use crate::error::{Error, Result};
use crate::http::Answer;
use crate::record::{Object, Record, Type, Whose};

/// The header that most servers find a key in, and the word before it.
pub(super) const BEARER: (&str, &str) = ("authorization", "Bearer ");
/// The header that some servers find a key in.
pub(super) const API_KEY: (&str, &str) = ("x-api-key", "");
/// The member of a backend's metadata that holds the record.
pub(super) const RECORD: &str = "yore_record";

/// Whether there was something to delete.
pub(super) fn deleted(answer: &Answer) -> Result<bool> {
    match answer.status {
        404 => Ok(false),
        200..=299 => Ok(true),
        status => Err(Error::Status(status)),
    }
}

/// The record that metadata hold, as an object or in writing. Its words lie beside it.
pub(super) fn record_in(metadata: &Object, content: &str) -> Option<Record> {
    let said = Value::Object(object(metadata.get(RECORD)));
    let record = serde_json::from_value::<Record>(said).ok()?;
    Some(Record { content: content.to_owned(), ..record })
}

/// What others wrote, without a word about it.
pub(super) fn unexplained(whose: &Whose, content: &str, created: i64) -> Record {
    Record {
        id: String::new(),
        agent_id: whose.agent.clone(),
        user_id: whose.user.clone(),
        kind: Type::Semantic,
        content: content.to_owned(),
        metadata: Object::new(),
        confidence: 1.0,
        source: None,
        created_at: created,
        updated_at: created,
        expires_at: None,
        extra: Object::new(),
    }
}

/// A place is a home and what lies in it.
pub(super) fn place(home: &str, row: &str) -> String {
    format!("{home}/{row}")
}

/// Archives and datasets, of which each agent and person has one. Names of people come from
/// anywhere; hashes are safe ones.
#[derive(Debug)]
pub(super) struct Homes {
    prefix: String,
    /// Their ids, by name.
    known: Mutex<BTreeMap<String, String>>,
}

impl Homes {
    /// Those whose names begin like this.
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), known: Mutex::default() }
    }

    fn of_agent(&self, agent: &str) -> String {
        format!("{}-{}-", self.prefix, &Sha256::of(agent).to_hex()[..16])
    }

    /// The name of the one that a record belongs in.
    pub(super) fn name(&self, whose: &Whose) -> String {
        let user = match &whose.user {
            Some(user) => Sha256::of(format!("user {user}")).to_hex()[..16].to_owned(),
            None => "all".into(),
        };
        format!("{}{user}", self.of_agent(&whose.agent))
    }

    /// Whether one holds what a request is about: one person's, or all of the agent's.
    fn holds(&self, name: &str, whose: &Whose) -> bool {
        match whose.user {
            Some(_) => name == self.name(whose),
            None => name.starts_with(&self.of_agent(&whose.agent)),
        }
    }

    /// The names and ids of those that hold what a request is about. The server is asked for all
    /// it has where that is not known.
    pub(super) async fn of(
        &self,
        whose: &Whose,
        listed: impl Future<Output = Result<Vec<(String, String)>>>,
    ) -> Result<Vec<(String, String)>> {
        let mut known = self.known.lock().await;
        if whose.user.is_none() || !known.contains_key(&self.name(whose)) {
            known.extend(listed.await?);
        }
        let fitting = known.iter().filter(|(name, _)| self.holds(name, whose));
        Ok(fitting.map(|(name, id)| (name.clone(), id.clone())).collect())
    }

    /// The id of the one that a record belongs in, made where it is not known. Nobody else makes
    /// it meanwhile: names need not be unique over there.
    pub(super) async fn own(
        &self,
        whose: &Whose,
        made: impl Future<Output = Result<String>>,
    ) -> Result<String> {
        let mut known = self.known.lock().await;
        let name = self.name(whose);
        if let Some(id) = known.get(&name) {
            return Ok(id.clone());
        }
        let id = made.await?;
        known.insert(name, id.clone());
        Ok(id)
    }

    /// Notes the id of one.
    pub(super) async fn note(&self, name: String, id: String) {
        self.known.lock().await.insert(name, id);
    }
}

/// Names and ids of a list.
pub(super) fn named(rows: &[Value]) -> Result<Vec<(String, String)>> {
    let one = |row: &Value| {
        Ok((super::must(row, "name")?.to_owned(), super::must(row, "id")?.to_owned()))
    };
    rows.iter().map(one).collect()
}
