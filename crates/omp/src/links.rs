//! Addresses of what lies here, as the client reached it.

use axum::http::header::HOST;
use axum::http::request::Parts;
use yore_domain::BlobHash;
use yore_http::{Peer, Way};

/// Where the surface lies, for the addresses in an answer.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    base: String,
    prefix: &'static str,
}

impl Links {
    pub(crate) fn of(parts: &Parts, prefix: &'static str) -> Self {
        let tls = parts.extensions.get::<Peer>().is_none_or(|peer| peer.way == Way::Tls);
        let scheme = if tls { "https" } else { "http" };
        let named = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = named.or_else(|| parts.uri.authority().map(|authority| authority.as_str()));
        let base = host.map(|host| format!("{scheme}://{host}{prefix}"));
        Self { base: base.unwrap_or_else(|| prefix.to_owned()), prefix }
    }

    /// The path of something, without the host.
    pub(crate) fn path(&self, collection: &str, id: impl std::fmt::Display) -> String {
        format!("{}/{collection}/{id}", self.prefix)
    }

    /// Where the bytes of an attachment are.
    pub(crate) fn attachment(&self, blob: BlobHash) -> String {
        format!("{}/attachments/{blob}", self.base)
    }

    /// The attachment that an address of ours means.
    pub(crate) fn named(&self, data: &str) -> Option<BlobHash> {
        data.strip_prefix(&self.base)?.strip_prefix("/attachments/")?.parse().ok()
    }
}
