//! What every HTTP surface shares.
//!
//! The native API and each protocol have routes and error forms of their own, but one way to
//! learn who calls ([`Surface::call`]), one way to take a body in ([`body`] and [`input`]:
//! limits come before parsing) and one way to write a stream of events ([`events`]). The
//! server fills [`Surface`] once and hands it to every crate with routes.
//!
//! Requests of the server's own go through [`Outward`], which keeps them out of private networks.
//!
//! Nothing here decides anything: credentials are translated, never judged.

mod body;
mod call;
pub mod describe;
mod events;
pub mod multipart;
mod outward;
mod peer;
mod surface;

pub use body::{body, input, is_json, parse};
pub use call::header;
pub use events::{BEAT, SentEvent, events, events_with_retry};
pub use outward::{Outward, Reach, is_public};
pub use peer::{Peer, Proven, RequestId, Way};
pub use surface::{Limits, Surface};
