//! Whole exports and archives, read from files.
#![expect(clippy::unwrap_used, reason = "a test fails where something is not as it should be")]

mod given;
mod hostile;
mod known;
mod others;
mod rebuilt;
mod samples;
