//! What a backend must do to be one of many.

use std::collections::BTreeSet;
use std::fmt::Debug;

use futures::future::{BoxFuture, FutureExt};
use serde::Serialize;
use serde_json::Value;

use crate::error::Result;
use crate::record::{Found, Object, Question, Record, Type, Whose};
use crate::slot::Depth;

/// Something a store can do, in the protocol's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Holds what is so.
    Semantic,
    /// Holds what happened.
    Episodic,
    /// Holds how something is done.
    Procedural,
    /// Holds how something felt.
    Emotional,
    /// Searches by words.
    Fts,
    /// Searches by meaning.
    Vector,
    /// Knows which memories are related.
    Graph,
    /// Keeps what waits for a person apart.
    Governance,
    /// Knows when a memory was last recalled.
    RecallTracking,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Semantic,
        Self::Episodic,
        Self::Procedural,
        Self::Emotional,
        Self::Fts,
        Self::Vector,
        Self::Graph,
        Self::Governance,
        Self::RecallTracking,
    ];

    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Episodic => "episodic",
            Self::Procedural => "procedural",
            Self::Emotional => "emotional",
            Self::Fts => "fts",
            Self::Vector => "vector",
            Self::Graph => "graph",
            Self::Governance => "governance",
            Self::RecallTracking => "recall_tracking",
        }
    }

    /// What a store needs to hold a type.
    #[must_use]
    pub const fn of(kind: Type) -> Self {
        match kind {
            Type::Semantic => Self::Semantic,
            Type::Episodic => Self::Episodic,
            Type::Procedural => Self::Procedural,
            Type::Emotional => Self::Emotional,
        }
    }
}

/// What a store can do.
pub type Capabilities = BTreeSet<Capability>;

/// How a store is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Health {
    /// `ok`, or what else it says of itself.
    pub status: String,
    /// What sort of store it is.
    pub backend: &'static str,
    /// What else it tells.
    #[serde(flatten)]
    pub detail: Object,
}

impl Health {
    /// A store that is well.
    #[must_use]
    pub fn ok(backend: &'static str) -> Self {
        Self { status: "ok".into(), backend, detail: Object::new() }
    }

    /// Tells something more.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.detail.insert(name.to_owned(), value.into());
        self
    }
}

/// How much of a record a backend returns as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// All of it.
    Everything,
    /// What memorywire's tables have columns for; confidence perhaps rounded.
    Columns,
    /// The words; the rest cannot be relied on.
    Words,
}

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What is in this part.
    pub items: Vec<Found>,
    /// Where the next part begins, when there is one.
    pub next: Option<String>,
}

/// A memory that is related to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// What the backend calls it.
    pub place: String,
    /// How many steps away, at least 1.
    pub distance: u8,
}

/// A backend that holds memories. It knows places, which are its own ids; canonical ids are the
/// [`Slot`](crate::Slot)'s matter, which also checks everything a backend returns: a backend may
/// apply the conditions of a question, and should where that finds more, but need not.
pub trait MemoryStore: Debug + Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// How it is.
    fn health(&self) -> BoxFuture<'_, Result<Health>>;

    /// How much of a record it returns as it was given. The rest is kept in the mapping.
    fn keeps(&self) -> Keeps;

    /// Writes a record and returns its place.
    fn remember<'a>(&'a self, record: &'a Record) -> BoxFuture<'a, Result<String>>;

    /// Writes a record in place of an older state of it and returns its place, which may change.
    fn replace<'a>(&'a self, place: &'a str, record: &'a Record) -> BoxFuture<'a, Result<String>> {
        async move {
            self.forget(&record.whose(), place, Depth::Erase).await?;
            self.remember(record).await
        }
        .boxed()
    }

    /// Looks for a record by its canonical id, where an earlier write may or may not have arrived.
    fn locate<'a>(&'a self, whose: &'a Whose, id: &'a str)
    -> BoxFuture<'a, Result<Option<String>>>;

    /// Finds answers, the best first. It may return more than was asked for and some that do not
    /// fit; it returns fewer only when there are no more.
    fn recall<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Found>>>;

    /// Lists what is live, in any order that stays.
    fn list<'a>(&'a self, whose: &'a Whose, after: Option<&'a str>) -> BoxFuture<'a, Result<Page>>;

    /// Takes a record out of recall, for good where the depth says so or the backend knows no
    /// other way. Returns whether there was one.
    fn forget<'a>(
        &'a self,
        whose: &'a Whose,
        place: &'a str,
        depth: Depth,
    ) -> BoxFuture<'a, Result<bool>>;

    /// Notes that records were recalled.
    fn touch<'a>(&'a self, _places: &'a [String], _at: i64) -> BoxFuture<'a, Result<()>> {
        async { Ok(()) }.boxed()
    }

    /// Names what is related to a record, up to some steps away.
    fn neighbours<'a>(
        &'a self,
        _whose: &'a Whose,
        _place: &'a str,
        _hops: u8,
    ) -> BoxFuture<'a, Result<Vec<Neighbour>>> {
        async { Ok(Vec::new()) }.boxed()
    }
}
