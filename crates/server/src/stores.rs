//! The stores beside the default vault, as the configuration names them.

use std::sync::Arc;

use yore_canon::hash::Blake3;
use yore_memorywire::Stores;
use yore_router::adapters::{DIMENSIONS, Embedder};
use yore_router::deliver::Caller;
use yore_router::{Lasting, Mapping, Options, Router};

use crate::config::Config;
use crate::error::{Error, Result};

/// The file that remembers what other stores hold.
const FILE: &str = "stores.db";
/// What its key is derived for.
const PURPOSE: &str = "yore stores v1";

/// The vectors that memorywire databases hold are those of the built-in transformer.
#[derive(Debug)]
struct Builtin;

impl Embedder for Builtin {
    fn embed(&self, text: &str) -> Vec<f32> {
        let vector = yore_embed::builtin().transformer.vector(text);
        debug_assert_eq!(vector.len(), DIMENSIONS, "invariant: one model, one width");
        vector.to_vec()
    }
}

/// Opens the stores of the configuration; none when it names none.
pub(crate) fn open(config: &Config, key: &[u8; 32], caller: Caller) -> Result<Option<Stores>> {
    if config.stores.is_empty() {
        return Ok(None);
    }
    let wrong =
        |name: &str, error: yore_router::Error| Error::Config(format!("stores: {name}: {error}"));
    let key = Blake3::hasher_for(PURPOSE).update(key).finish();
    let lasting = Lasting::open(&config.data.join(FILE), key.as_bytes())
        .map_err(|error| wrong(FILE, error))?;
    let names: Vec<&str> = config.stores.iter().map(|store| store.name.as_str()).collect();
    lasting.keep_only(&names).map_err(|error| wrong(FILE, error))?;
    let mapping: Arc<dyn Mapping> = Arc::new(lasting);
    let mut slots = Vec::new();
    for store in &config.stores {
        if store.name == yore_memorywire::STORE {
            return Err(Error::Config(format!("stores: the name {} is the vault's", store.name)));
        }
        let slot = store.slot(Arc::clone(&mapping), Arc::new(Builtin));
        slots.push(Arc::new(slot.map_err(|error| wrong(&store.name, error))?));
    }
    let router = Router::new(slots, Options::default()).map_err(|error| wrong("all", error))?;
    Ok(Some(Stores::new(router, caller)))
}
