//! What is kept beside the stores: which place a memory has in each, and what does not fit there.

mod file;

use std::collections::BTreeMap;
use std::fmt::Debug;

use futures::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Result;
use crate::record::Record;

pub use file::Lasting;

/// What is known of one memory in one store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Its place. Absent while a write is under way: after a crash, it may or may not be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The agent whose it is, where that was said when it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The person whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The hash of the words that were delivered; what the store returns must have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The digest of the whole record that was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The record without its words, where the store cannot hold all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Value>,
    /// Whether it ranks lower.
    #[serde(default)]
    pub demoted: bool,
    /// Whether the store refused to let it go: it is asked again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
}

/// The durable memory of a router, kept in the vault.
pub trait Mapping: Debug + Send + Sync {
    /// What is known of a memory in a store.
    fn get<'a>(&'a self, store: &'a str, id: &'a str) -> BoxFuture<'a, Result<Option<Kept>>>;

    /// Keeps what is known, in place of what was.
    fn put<'a>(&'a self, store: &'a str, id: &'a str, kept: Kept) -> BoxFuture<'a, Result<()>>;

    /// Forgets what is known.
    fn remove<'a>(&'a self, store: &'a str, id: &'a str) -> BoxFuture<'a, Result<()>>;

    /// The ids of everything that is known of a store.
    fn ids<'a>(&'a self, store: &'a str) -> BoxFuture<'a, Result<Vec<String>>>;

    /// The ids of what a store refused to let go.
    fn leaving<'a>(&'a self, store: &'a str) -> BoxFuture<'a, Result<Vec<String>>>;

    /// The canonical id of what has a place in a store.
    fn canonical<'a>(
        &'a self,
        store: &'a str,
        place: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>>;

    /// Where delivery to a store goes on.
    fn cursor<'a>(&'a self, store: &'a str) -> BoxFuture<'a, Result<Option<String>>>;

    /// Moves the place where delivery goes on.
    fn advance<'a>(&'a self, store: &'a str, cursor: String) -> BoxFuture<'a, Result<()>>;

    /// Keeps a write that waits for a person.
    fn stage<'a>(&'a self, store: &'a str, record: Record) -> BoxFuture<'a, Result<()>>;

    /// Takes out a write that waits, because it was decided.
    fn unstage<'a>(&'a self, store: &'a str, id: &'a str) -> BoxFuture<'a, Result<Option<Record>>>;
}

type Key = (String, String);

/// A mapping that lasts as long as the process, for tests and for stores that are asked once.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    kept: BTreeMap<Key, Kept>,
    places: BTreeMap<Key, String>,
    cursors: BTreeMap<String, String>,
    staged: BTreeMap<Key, Record>,
}

impl Tables {
    fn ids(&self, store: &str, which: impl Fn(&Kept) -> bool) -> Vec<String> {
        let its = self.kept.iter().filter(|((of, _), kept)| of == store && which(kept));
        its.map(|((_, id), _)| id.clone()).collect()
    }

    fn remove(&mut self, key: &Key) -> Option<Kept> {
        let kept = self.kept.remove(key)?;
        if let Some(place) = &kept.place {
            self.places.remove(&(key.0.clone(), place.clone()));
        }
        Some(kept)
    }
}

fn key(store: &str, name: &str) -> Key {
    (store.to_owned(), name.to_owned())
}

impl Mapping for InMemory {
    fn get<'a>(&'a self, store: &'a str, id: &'a str) -> BoxFuture<'a, Result<Option<Kept>>> {
        async move { Ok(self.0.lock().kept.get(&key(store, id)).cloned()) }.boxed()
    }

    fn put<'a>(&'a self, store: &'a str, id: &'a str, kept: Kept) -> BoxFuture<'a, Result<()>> {
        async move {
            let mut tables = self.0.lock();
            tables.remove(&key(store, id));
            if let Some(place) = &kept.place {
                tables.places.insert(key(store, place), id.to_owned());
            }
            tables.kept.insert(key(store, id), kept);
            Ok(())
        }
        .boxed()
    }

    fn remove<'a>(&'a self, store: &'a str, id: &'a str) -> BoxFuture<'a, Result<()>> {
        async move {
            self.0.lock().remove(&key(store, id));
            Ok(())
        }
        .boxed()
    }

    fn ids<'a>(&'a self, store: &'a str) -> BoxFuture<'a, Result<Vec<String>>> {
        async move { Ok(self.0.lock().ids(store, |_| true)) }.boxed()
    }

    fn leaving<'a>(&'a self, store: &'a str) -> BoxFuture<'a, Result<Vec<String>>> {
        async move { Ok(self.0.lock().ids(store, |kept| kept.leaving)) }.boxed()
    }

    fn canonical<'a>(
        &'a self,
        store: &'a str,
        place: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>> {
        async move { Ok(self.0.lock().places.get(&key(store, place)).cloned()) }.boxed()
    }

    fn cursor<'a>(&'a self, store: &'a str) -> BoxFuture<'a, Result<Option<String>>> {
        async move { Ok(self.0.lock().cursors.get(store).cloned()) }.boxed()
    }

    fn advance<'a>(&'a self, store: &'a str, cursor: String) -> BoxFuture<'a, Result<()>> {
        async move {
            self.0.lock().cursors.insert(store.to_owned(), cursor);
            Ok(())
        }
        .boxed()
    }

    fn stage<'a>(&'a self, store: &'a str, record: Record) -> BoxFuture<'a, Result<()>> {
        async move {
            self.0.lock().staged.insert(key(store, &record.id), record);
            Ok(())
        }
        .boxed()
    }

    fn unstage<'a>(&'a self, store: &'a str, id: &'a str) -> BoxFuture<'a, Result<Option<Record>>> {
        async move { Ok(self.0.lock().staged.remove(&key(store, id))) }.boxed()
    }
}
