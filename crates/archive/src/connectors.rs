//! One module per platform.

mod chatgpt;
mod claude;
mod memories;
mod omp;

use crate::Connector;

/// Returns every connector. Of two that are equally sure the first reads.
#[must_use]
pub fn all() -> Vec<Box<dyn Connector>> {
    vec![Box::new(omp::Omp), Box::new(chatgpt::ChatGpt), Box::new(claude::Claude)]
}
