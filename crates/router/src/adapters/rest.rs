//! What the servers have in common.

use yore_canon::hash::Sha256;
use yore_engine::Secret;

use crate::error::{Error, Result};
use crate::http::Answer;
use crate::record::{Object, Record, Type, Whose};

/// A header that says who we are, as most servers want it.
pub(super) fn bearer(token: Option<Secret>) -> Option<(&'static str, Secret)> {
    token.map(|token| ("authorization", Secret::new(format!("Bearer {}", token.expose()))))
}

/// Whether there was something to delete.
pub(super) fn deleted(answer: &Answer) -> Result<bool> {
    match answer.status {
        404 => Ok(false),
        200..=299 => Ok(true),
        status => Err(Error::Status(status)),
    }
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

/// The names of archives and datasets, of which each agent and person has one. Names of people
/// come from anywhere; hashes are safe ones.
#[derive(Debug)]
pub(super) struct Homes {
    prefix: String,
}

impl Homes {
    /// Names that begin like this.
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    fn of_agent(&self, agent: &str) -> String {
        format!("{}-{}-", self.prefix, &Sha256::of(agent).to_hex()[..16])
    }

    /// The one that a record belongs in.
    pub(super) fn name(&self, whose: &Whose) -> String {
        let user = match &whose.user {
            Some(user) => Sha256::of(format!("user {user}")).to_hex()[..16].to_owned(),
            None => "all".into(),
        };
        format!("{}{user}", self.of_agent(&whose.agent))
    }

    /// Whether one holds what a request is about: one person's, or all of the agent's.
    pub(super) fn holds(&self, name: &str, whose: &Whose) -> bool {
        match whose.user {
            Some(_) => name == self.name(whose),
            None => name.starts_with(&self.of_agent(&whose.agent)),
        }
    }
}
