//! From a request's head to the engine's call.

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use yore_client::api;
use yore_domain::{Error, Result};
use yore_engine::dialect::{Presented, Registry};
use yore_engine::{Call, Claims, Credentials, Secret, Shown, Thumbprint, VaultRef};

use crate::peer::{Peer, Proven, RequestId};
use crate::surface::Surface;

/// The longest header of ours that is taken.
const HEADER: usize = 256;

impl Surface {
    /// Builds the engine's call from a request's head, for the audit chain under the name of
    /// the protocol.
    pub fn call(&self, parts: &Parts, protocol: &'static str) -> Result<Call> {
        let vault = match header(&parts.headers, api::VAULT)? {
            None => VaultRef::Default,
            Some(text) => text.parse().map_or_else(|_| VaultRef::Owner(text.into()), VaultRef::Id),
        };
        let certificate = parts.extensions.get::<Thumbprint>().copied();
        let proven = parts.extensions.get::<Proven>().copied();
        let mut credentials = credentials(&self.registry, &parts.headers, proven, |token, key| {
            self.engine.settings().published.as_ref()?.read(token, Shown { certificate, key })
        });
        credentials.certificate = certificate;
        Ok(Call {
            credentials,
            vault,
            protocol,
            request: parts.extensions.get::<RequestId>().map(|id| id.0.clone()),
            source: parts.extensions.get::<Peer>().map(Peer::source),
            operation: header(&parts.headers, api::OPERATION_ID)?.map(str::to_owned),
        })
    }
}

/// All that is presented. A credential in a header of its own narrows the bearer token's.
fn credentials(
    registry: &Registry,
    headers: &HeaderMap,
    proven: Option<Proven>,
    published: impl Fn(&str, Option<Thumbprint>) -> Option<Result<Claims, &'static str>>,
) -> Credentials {
    let mut all = bearer(registry, headers, proven, published);
    for (name, dialect) in registry.headers() {
        let mut lines = headers.get_all(HeaderName::from_static(name)).iter();
        let Some(line) = lines.next() else { continue };
        let token = line.to_str().ok().map(str::trim).filter(|_| lines.next().is_none());
        match token.and_then(|token| dialect.credential(token)) {
            Some(Presented::Claims(claims)) => all.claims.push(*claims),
            Some(Presented::Unreadable(reason)) => all.unreadable = Some(reason),
            None => all.unreadable = Some("the grant header does not hold one grant"),
        }
    }
    all
}

fn bearer(
    registry: &Registry,
    headers: &HeaderMap,
    proven: Option<Proven>,
    published: impl Fn(&str, Option<Thumbprint>) -> Option<Result<Claims, &'static str>>,
) -> Credentials {
    let unreadable = |reason| Credentials { unreadable: Some(reason), ..Credentials::default() };
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let Some(line) = lines.next() else { return Credentials::default() };
    let said = line.to_str().ok().and_then(|line| line.split_once(' '));
    let said = said.map(|(scheme, token)| (scheme, token.trim()));
    let one = said.filter(|(scheme, token)| {
        let known = ["bearer", "dpop"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        known && !token.is_empty() && lines.next().is_none()
    });
    let Some((scheme, token)) = one else {
        return unreadable("the authorization header is not one bearer token");
    };
    // Whoever comes with a token of the one kind gets nothing of the other: a bound token that is
    // shown as a bearer's was taken from somebody.
    let signed = if scheme.eq_ignore_ascii_case("dpop") {
        let signed = match proven {
            Some(Proven(Ok(key))) => published(token, Some(key)),
            Some(Proven(Err(reason))) => Some(Err(reason)),
            None => Some(Err("the token comes without a proof of its key")),
        };
        Some(signed.unwrap_or(Err("the token is not bound to a key")))
    } else {
        published(token, None)
    };
    let signed = match signed {
        Some(Ok(claims)) => Some(Presented::Claims(Box::new(claims))),
        Some(Err(reason)) => Some(Presented::Unreadable(reason)),
        None => registry.credential(token),
    };
    match signed {
        None => Credentials { bearer: Some(Secret::new(token)), ..Credentials::default() },
        Some(Presented::Claims(claims)) => {
            Credentials { claims: vec![*claims], ..Credentials::default() }
        }
        Some(Presented::Unreadable(reason)) => unreadable(reason),
    }
}

/// Returns the one value of a header, when it is there.
pub fn header<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>> {
    let mut values = headers.get_all(HeaderName::from_static(name)).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes())
        .ok()
        .filter(|text| (1..=HEADER).contains(&text.len()) && !text.contains(char::is_control));
    match (text, values.next()) {
        (Some(text), None) => Ok(Some(text)),
        _ => Err(Error::invalid(name, format!("must be one text of 1 to {HEADER} bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_one_bearer_token_or_unreadable() {
        let read = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(AUTHORIZATION, line.parse().unwrap());
            }
            credentials(&Registry::default(), &headers, None, |_, _| None)
        };
        assert!(read(&[]).bearer.is_none() && read(&[]).unreadable.is_none());
        for line in ["Bearer x", "bearer  x", "BEARER x "] {
            assert_eq!(read(&[line]).bearer.unwrap().expose(), "x", "{line}");
        }
        for lines in
            [&["Basic x"][..], &["Bearer"], &["Bearer "], &["Bearer a", "Bearer b"], &["DPoP x"]]
        {
            assert!(read(lines).bearer.is_none() && read(lines).unreadable.is_some(), "{lines:?}");
        }
    }
}
