//! MCP as clients meet it: real clients, a real vault, every way in.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::wildcard_enum_match_arm, reason = "tests look at what they are about")]

mod bad_input;
mod frames;
mod host;
mod lines;
mod notes;
mod restart;
mod story;
mod vault;
