//! The protocol over a real vault and the real router.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

mod admin;
mod backup;
mod conditions;
mod conversations;
mod deletions;
mod described;
mod governed;
mod import;
mod memories;
mod pages;
mod resumed;
mod search;
mod support;
mod surface;
mod sync;
mod tenants;
mod walls;
mod webhooks;
