//! The protocol over a real vault and the real router.

mod agents;
mod approval;
mod carriers;
mod conformance;
mod expire;
mod forget;
mod merge;
mod procedures;
mod published;
mod recall;
mod remember;
mod support;
