//! Operations on a real encrypted vault: given a vault and a grant, when an operation is
//! called, then its outcome, its audit entry and its change are these.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod audit;
mod background;
mod budget;
mod care;
mod consent;
mod consolidate;
mod conversations;
mod elsewhere;
mod expire;
mod export;
mod feed;
mod governance;
mod grants;
mod hidden;
mod imported;
mod interleaved;
mod keep;
mod messages;
mod neighbours;
mod nodes;
mod preview;
mod propose;
mod ranking;
mod read;
mod recall;
mod remember;
mod review;
mod stated;
mod support;
mod talks;
mod undo;
