//! Exact bytes and the keys that vouch for them.
//!
//! Strict JSON in, canonical JSON out (RFC 8785), hashes, text encodings, Ed25519 and
//! P-256 keys, DIDs, compact JWS, sealed records, capability tokens, passkeys and hash chains.
//!
//! Everything here is a pure function of its arguments. The crate reads no clock, no file
//! and no network, makes no randomness and decides no policy: it says whether a signature
//! is right, never whether the signer may. Expiry, audience, owner and replay are judged by
//! those who call it. Every parser takes untrusted bytes, bounds its work before doing it,
//! and never panics.
//!
//! Start with [`json`] and [`jcs`], then [`key`]; [`jws`], [`seal`], [`captoken`] and
//! [`chain`] are built from those.

pub mod captoken;
mod cbor;
pub mod chain;
pub mod did;
pub mod encode;
pub mod hash;
pub mod jcs;
pub mod json;
pub mod jws;
pub mod key;
pub mod seal;
pub mod webauthn;
