//! What is fetched from elsewhere: documents of DIDs and keys of issuers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use yore_canon::did::Did;
use yore_uamp::{Fetch, Web};

use crate::config::Config;

/// Looks into files first, where the operator names some, and else on the web.
struct Pinned {
    files: HashMap<String, PathBuf>,
    web: Web,
}

/// Fetches as the operator decided.
pub(crate) fn fetching(config: &Config) -> Arc<dyn Fetch> {
    let url = |did: &str| did.parse::<Did>().ok()?.web_url().ok();
    let files = config.uamp.documents.iter();
    let files = files.filter_map(|(did, path)| Some((url(did)?, path.clone()))).collect();
    Arc::new(Pinned { files, web: Web::new(config.uamp.private_hosts.clone()) })
}

impl Fetch for Pinned {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<u8>, String>> {
        let Some(path) = self.files.get(url) else { return self.web.fetch(url) };
        Box::pin(read(path.clone()))
    }
}

/// Reads a file that the operator names.
pub(crate) async fn read(path: PathBuf) -> Result<Vec<u8>, String> {
    let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await;
    read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}
