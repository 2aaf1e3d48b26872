//! The shipped binary, run as a person or a script would run it, on temporary directories.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod approval;
mod archives;
mod backups;
mod bad_input;
mod capability;
mod common;
mod consolidate;
mod copies;
mod daemon;
mod database;
mod deleting;
mod disk;
mod exports;
mod first_use;
mod folder;
mod following;
mod governance;
mod governed;
mod keeping;
mod keys;
mod killed;
mod many_clients;
mod messages;
mod poison;
mod portable;
mod probe;
mod procedures;
mod proxying;
mod published;
mod shape;
mod sight;
mod sources;
mod stores;
