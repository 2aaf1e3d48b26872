//! The pages over a real vault and the real router.

#![expect(clippy::unwrap_used, reason = "a test that fails here has failed")]

mod access;
mod backup;
mod conversations;
mod forms;
mod hostile;
mod import;
mod memory;
mod oauth;
mod passkeys;
mod review;
mod roles;
mod search;
mod sign_in;
mod support;
mod upkeep;
