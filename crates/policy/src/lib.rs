//! Decides who is calling, what they may do and see, and what happens to an operation.
//!
//! Everything here is a pure function of its arguments: the engine gathers the evidence and
//! the facts, this crate judges, the engine acts. Nothing in this crate can touch a store or
//! a clock. [`verify`] is the only maker of a [`Principal`] and [`authorise`] the only maker
//! of a [`Permit`]; the store asks for a permit, so a handler that forgets the check does
//! not compile. Start at [`verify`], then [`permit`], [`lens`] and [`mod@judge`].

pub mod detect;
pub mod elsewhere;
pub mod evidence;
pub mod judge;
pub mod learning;
pub mod lens;
pub mod orders;
pub mod permit;
pub mod principal;
pub mod redact;
pub mod regulated;
pub mod rules;
pub mod talk;

pub use evidence::{Evidence, Passkey, Presented, Standing};
pub use judge::{Facts, Unasked, Verdict, careful_labels, judge};
pub use lens::{Lens, visible};
pub use permit::{Need, Permit, authorise};
pub use principal::{Principal, verify};
pub use regulated::Gate;
pub use talk::{Protection, careful_talk, may_erase};
