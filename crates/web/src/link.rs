//! Links that sign a browser in, once.

use yore_domain::Span;

/// The note of a token that stands in a link. Only such a token is taken from an address, and
/// it is taken back when it was used.
pub const SIGN_IN_NOTE: &str = "a link to the web app";
/// How long such a token lives.
pub const SIGN_IN_LIFE: Span = Span::seconds(300);

/// Returns the address that signs a browser in with a token of that note.
#[must_use]
pub fn sign_in(base: &str, token: &str) -> String {
    format!("{}/app/enter?key={token}", base.trim_end_matches('/'))
}
