//! The protocol against a real, encrypted vault, through the real router.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod access;
mod carriers;
mod consent;
mod demands;
mod exchange;
mod operations;
mod records;
mod support;
