//! Proof of possession for access tokens of other authorisation servers (DPoP, RFC 9449).
//!
//! A token that is bound to a key comes with a proof: a short signed note that names this very
//! request and this very token. It is looked at once, before anything else reads the request;
//! whether the token is bound to the key that is proven here is for whoever reads the token.

use std::collections::HashMap;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use yore_canon::encode::{base64url, from_base64url};
use yore_canon::hash::Sha256;
use yore_canon::jws::{self, Compact};
use yore_canon::key::VerifyingKey;
use yore_domain::{Span, Timestamp};
use yore_engine::Thumbprint;
use yore_http::{Peer, Proven, Way};

use crate::app::App;

const DPOP: &str = "dpop";
/// The longest proof that is read.
const LONGEST: usize = 8 << 10;
/// How old a proof may be, and how far it may lie ahead: clocks differ.
const FRESH: Span = Span::seconds(300);
const AHEAD: Span = Span::seconds(60);
/// How many proofs are remembered, so that none counts twice.
const REMEMBERED: usize = 100_000;

/// The proofs that counted, until they are too old to count again.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<HashMap<Sha256, Timestamp>>);

impl Seen {
    /// Notes a proof; `false` when it came before.
    fn first(&self, proof: Sha256, now: Timestamp) -> bool {
        let mut seen = self.0.lock();
        if seen.len() >= REMEMBERED {
            seen.retain(|_, until| *until > now);
            if seen.len() >= REMEMBERED {
                // Who floods the server with proofs is let in no sooner than the first grow old.
                return false;
            }
        }
        seen.insert(proof, now.plus(FRESH).plus(AHEAD)).is_none_or(|until| until <= now)
    }
}

/// Looks at the proof of a request, if it has one.
pub(crate) async fn look(State(app): State<App>, request: Request, next: Next) -> Response {
    if !request.headers().contains_key(DPOP) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let proven = proven(&parts, app.engine().now(), app.proofs());
    parts.extensions.insert(Proven(proven));
    next.run(Request::from_parts(parts, body)).await
}

fn proven(parts: &Parts, now: Timestamp, seen: &Seen) -> Result<Thumbprint, &'static str> {
    let mut lines = parts.headers.get_all(DPOP).iter();
    let proof = lines.next().and_then(|line| line.to_str().ok());
    let proof = proof.filter(|proof| lines.next().is_none() && proof.len() <= LONGEST);
    let proof = proof.ok_or("the DPoP header does not hold one proof")?;
    let malformed = "the proof of the key cannot be read";
    let compact = Compact::parse(proof).map_err(|_| malformed)?;
    if compact.header().typ.as_deref() != Some("dpop+jwt") {
        return Err("the proof of the key is of another type");
    }
    let header = proof.split('.').next().and_then(|header| from_base64url(header).ok());
    let header: Map<String, Value> =
        header.and_then(|header| serde_json::from_slice(&header).ok()).ok_or(malformed)?;
    let key = header.get("jwk").and_then(|jwk| VerifyingKey::from_jwk(jwk).ok());
    let key = key.filter(|key| key.algorithm() == compact.header().algorithm);
    let key = key.ok_or("the proof names no key of its algorithm")?;
    let payload = compact.verify(&key).map_err(|_| "the proof of the key does not verify")?;
    let claims = jws::claims(payload).map_err(|_| malformed)?;
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("htm") != Some(parts.method.as_str())
        || !text("htu").is_some_and(|at| is_here(parts, at))
    {
        return Err("the proof is for another request");
    }
    let token = parts.headers.get(AUTHORIZATION).and_then(|line| line.to_str().ok());
    let token = token.and_then(|line| line.split_once(' ')).map_or("", |(_, token)| token.trim());
    if text("ath") != Some(&base64url(Sha256::of(token).as_bytes())) {
        return Err("the proof is for another token");
    }
    let made = claims.get("iat").and_then(Value::as_i64).ok_or(malformed)?;
    let made = Timestamp::from_millis(made.saturating_mul(1000));
    if made < now.minus(FRESH) || made > now.plus(AHEAD) {
        return Err("the proof is too old, or not yet made");
    }
    let id = text("jti").filter(|id| !id.is_empty()).ok_or(malformed)?;
    let print = *key.thumbprint().as_bytes();
    if !seen.first(Sha256::of([&print[..], id.as_bytes()].concat()), now) {
        return Err("the proof was used before");
    }
    Ok(Thumbprint(print))
}

/// Whether an address is the one of this request, without its query.
fn is_here(parts: &Parts, address: &str) -> bool {
    let Some((scheme, rest)) = address.split_once("://") else { return false };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let named = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let here = named.or_else(|| parts.uri.authority().map(|authority| authority.as_str()));
    let tls = parts.extensions.get::<Peer>().is_none_or(|peer| peer.way == Way::Tls);
    // In clear text a proxy may stand before us that takes TLS off.
    let port = match scheme.to_ascii_lowercase().as_str() {
        "https" => ":443",
        "http" if !tls => ":80",
        _ => return false,
    };
    let bare = |host: &str| {
        let host = host.to_ascii_lowercase();
        host.strip_suffix(port).map(str::to_owned).unwrap_or(host)
    };
    here.is_some_and(|here| bare(here) == bare(host)) && path == parts.uri.path()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use yore_canon::key::{Algorithm, SigningKey};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn key() -> SigningKey {
        SigningKey::generate(Algorithm::P256, &[9; 32])
    }

    fn proof(header: &Value, claims: &Value) -> String {
        let part = |value: &Value| base64url(value.to_string().as_bytes());
        let input = format!("{}.{}", part(header), part(claims));
        format!("{input}.{}", base64url(key().sign(input.as_bytes()).as_bytes()))
    }

    fn header() -> Value {
        json!({ "alg": "ES256", "typ": "dpop+jwt", "jwk": key().verifying_key().to_jwk() })
    }

    fn claims() -> Value {
        json!({
            "jti": "one", "htm": "POST", "htu": "https://Memory.example:443/v1/messages",
            "iat": NOW.millis() / 1000, "ath": base64url(Sha256::of("the-token").as_bytes()),
        })
    }

    fn judged(proof: &str, seen: &Seen) -> Result<Thumbprint, &'static str> {
        let request = Request::post("/v1/messages?x=1")
            .header("host", "memory.example")
            .header("authorization", "DPoP the-token")
            .header("dpop", proof);
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(Peer { way: Way::Tls, address: None });
        proven(&parts, NOW, seen)
    }

    #[test]
    fn uamp_070_a_proof_for_this_request_and_token_counts_once() {
        let seen = Seen::default();
        let good = proof(&header(), &claims());
        let print = Thumbprint(*key().verifying_key().thumbprint().as_bytes());
        assert_eq!(judged(&good, &seen), Ok(print));
        assert_eq!(judged(&good, &seen), Err("the proof was used before"));
    }

    #[test]
    fn uamp_070_a_proof_of_anything_else_counts_for_nothing() {
        let seen = Seen::default();
        let changed = |name: &str, value: Value| {
            let mut claims = claims();
            claims[name] = value;
            proof(&header(), &claims)
        };
        let seconds = NOW.millis() / 1000;
        for (what, proof) in [
            ("another method", changed("htm", "GET".into())),
            ("another path", changed("htu", "https://memory.example/v1/stream/s".into())),
            ("another host", changed("htu", "https://evil.example/v1/messages".into())),
            ("clear text", changed("htu", "http://memory.example/v1/messages".into())),
            ("another token", changed("ath", base64url(Sha256::of("x").as_bytes()).into())),
            ("no token", changed("ath", Value::Null)),
            ("too old", changed("iat", (seconds - 301).into())),
            ("not yet made", changed("iat", (seconds + 61).into())),
            ("no id", changed("jti", "".into())),
        ] {
            assert!(judged(&proof, &seen).is_err(), "{what}");
        }
        let other = SigningKey::generate(Algorithm::P256, &[8; 32]).verifying_key().to_jwk();
        for (what, name, value) in [
            ("another key", "jwk", other),
            ("a private key", "jwk", json!({ "kty": "OKP", "crv": "Ed25519", "d": "x", "x": "y" })),
            ("no key", "jwk", Value::Null),
            ("another type", "typ", "JWT".into()),
            ("no signature at all", "alg", "none".into()),
            ("a secret", "alg", "HS256".into()),
        ] {
            let mut header = header();
            header[name] = value;
            assert!(judged(&proof(&header, &claims()), &seen).is_err(), "{what}");
        }
        assert!(judged("", &seen).is_err() && judged("a.b.c", &seen).is_err());
        assert!(judged(&proof(&header(), &claims()), &seen).is_ok(), "none of them was taken");
    }
}
