//! Conversations and memories from other platforms, and archives, as streams of domain values.
//!
//! A [`Source`] is what the person named: files, folders and zips, opened safely and never
//! unpacked to disk. [`read`] asks every [`Connector`] which files it knows by their content,
//! and lets it hand over [`Item`]s one conversation at a time: what cannot be read is named and
//! skipped, never the file around it. Whatever the model has no place for is kept beside each
//! message in a packed form, so that [`residue::native`] rebuilds what the platform exported.
//!
//! [`omp`] reads and writes `.omp.zip` archives, in the clear and under a password.
//!
//! Nothing here knows a vault, a grant or a clock: ids follow from what was read, so that reading
//! the same export again yields the same values. Start at [`connector`].

pub mod connector;
pub mod connectors;
mod content;
mod error;
mod html;
mod ids;
mod item;
mod json;
mod limits;
pub mod omp;
mod propose;
pub mod residue;
mod scan;
mod shape;
mod sniff;
mod source;
mod sqlite;
mod thread;
mod time;
mod tree;
mod wrap;

pub use connector::{Connector, Known, Sink, read, read_unknown};
pub use error::{Error, Result};
pub use item::{Blob, Item, Note, Report, Skip, Standing, Talk};
pub use limits::Limits;
pub use propose::proposals;
pub use scan::{Piece, Pieces};
pub use source::{File, Source};
pub use wrap::Wrapped;
