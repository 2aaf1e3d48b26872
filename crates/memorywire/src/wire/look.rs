//! What a router asks of this server besides recalling: ours, beside the protocol.

use serde::{Deserialize, Serialize};
use yore_domain::{Error, Result};

use super::{HOPS, Hit, Object, names};

/// Lists what an agent remembers.
#[derive(Clone, Debug, Deserialize)]
pub struct List {
    /// The agent whose memory it is.
    pub agent_id: String,
    /// Only what is this person's.
    pub user_id: Option<String>,
    /// Members that must be equal, as in recall; also those a request had beyond the protocol's.
    pub filter: Option<Object>,
    /// Where to go on, from the answer before.
    pub after: Option<String>,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed {
    /// The memories, without a score.
    pub results: Vec<Hit>,
    /// Where the next part begins, when there is one.
    pub next: Option<String>,
}

/// Asks what is related to a memory.
#[derive(Clone, Debug, Deserialize)]
pub struct Neighbours {
    /// The agent whose memory it is.
    pub agent_id: String,
    /// Only what is this person's.
    pub user_id: Option<String>,
    /// The memory.
    pub id: String,
    /// How many steps away at most.
    #[serde(default = "one_step")]
    pub hops: u8,
}

/// What is related to a memory, the nearest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Near {
    /// The memories.
    pub results: Vec<Neighbour>,
}

/// A memory that is related to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Neighbour {
    /// The memory.
    pub id: String,
    /// The least number of steps to it.
    pub distance: u8,
}

fn one_step() -> u8 {
    1
}

impl List {
    pub(crate) fn check(&self) -> Result<()> {
        names(&self.agent_id, self.user_id.as_deref())
    }
}

impl Neighbours {
    pub(crate) fn check(&self) -> Result<()> {
        names(&self.agent_id, self.user_id.as_deref())?;
        if !(1..=HOPS).contains(&self.hops) {
            return Err(Error::invalid("hops", "must be from 1 to 3"));
        }
        Ok(())
    }
}
