//! Capability tokens, read into the one grant.
//!
//! What is wrong with a token's form, signature or time is found here. Whether its issuer has any
//! standing, and whether it was revoked, is for the engine to say.

use serde_json::Value;
use yore_canon::did::Did;
use yore_canon::encode;
use yore_canon::hash::Sha256;
use yore_canon::json::Object;
use yore_canon::jws::{self, Compact};
use yore_domain::class::Sensitivity;
use yore_domain::grant::{Grant, Labels, Verbs};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Span, Timestamp};
use yore_engine::{Claims, Proof, grant_named};

use crate::refusal::{Code, Refusal, Result};

/// The longest token that is read.
const LONGEST: usize = 16 << 10;
/// How far clocks may be apart.
const SKEW: Span = Span::seconds(60);

/// Reads the token that a sender presents at a time.
pub(crate) fn claims(token: &str, sender: &str, now: Timestamp) -> Result<Claims> {
    let refused = |reason: &str| Refusal::new(Code::Unauthenticated, reason);
    if token.len() > LONGEST || token.bytes().filter(|byte| *byte == b'.').count() != 2 {
        return Err(refused("unsupported_token: the capability token is not a JWT"));
    }
    let compact =
        Compact::parse(token).map_err(|_| refused("the capability token is not a signed token"))?;
    let payload = compact.unverified_payload();
    let payload = payload.ok_or_else(|| refused("the capability token has no claims"))?;
    let claims =
        jws::claims(payload).map_err(|_| refused("the capability token's claims are malformed"))?;
    let issuer = text(&claims, "iss")?.ok_or_else(|| refused("the token names no issuer"))?;
    let signer = compact.header().kid.as_deref().unwrap_or(issuer);
    let signer = signer.split('#').next().unwrap_or(signer);
    let key = signer.parse::<Did>().ok().and_then(|did| did.key().ok());
    let key = key.filter(|_| signer == issuer);
    let key = key.ok_or_else(|| refused("the token does not name the key that signed it"))?;
    compact
        .verify(&key)
        .map_err(|_| refused("the capability token's signature does not verify"))?;
    let expires = moment(&claims, "exp")?;
    let expires = expires.ok_or_else(|| refused("the capability token does not expire"))?;
    let expires = expires.plus(SKEW);
    let not_before = moment(&claims, "nbf")?.map(|from| from.minus(SKEW));
    if expires <= now || not_before.is_some_and(|from| now < from) {
        return Err(refused("the capability token does not hold at this time"));
    }
    let audience = audience(&claims)?;
    if text(&claims, "sub")? != Some(sender) {
        return Err(Refusal::new(Code::Forbidden, "the capability token is somebody else's"));
    }
    let verbs = Verbs::of_scope(text(&claims, "scope")?.unwrap_or_default());
    if verbs == Verbs::NONE {
        return Err(Refusal::new(Code::Forbidden, "the capability token allows nothing"));
    }
    let id = match text(&claims, "jti")? {
        Some(name) => grant_named(name),
        None => grant_named(&Sha256::of(token).to_hex()),
    };
    let (message, signature) = token.rsplit_once('.').unwrap_or((token, ""));
    let signature = encode::from_base64url(signature)
        .map_err(|_| refused("the capability token is not a signed token"))?;
    Ok(Claims {
        grant: Grant {
            id,
            agent: AgentId::new(sender)?,
            issuer: issuer.to_owned(),
            verbs,
            read: Labels::Any,
            write: Labels::Any,
            ceiling: Sensitivity::Restricted,
            scope: ScopeRule::default(),
            not_before,
            expires: Some(expires),
            issued: moment(&claims, "iat")?.unwrap_or(Timestamp::MIN),
            revoked: None,
            note: None,
        },
        audience,
        subject: None,
        proof: Proof::Signature { key, message: message.as_bytes().to_vec(), signature },
    })
}

/// What a transcript may say of a token.
pub(crate) fn thumbprint(token: &str) -> String {
    Sha256::of(token).to_hex()
}

fn text<'a>(claims: &'a Object, name: &str) -> Result<Option<&'a str>> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(malformed()),
    }
}

fn audience(claims: &Object) -> Result<Vec<String>> {
    match claims.get("aud") {
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        Some(Value::Array(list)) if !list.is_empty() => {
            list.iter().map(|one| one.as_str().map(str::to_owned).ok_or_else(malformed)).collect()
        }
        Some(_) | None => Err(malformed()),
    }
}

fn moment(claims: &Object, name: &str) -> Result<Option<Timestamp>> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let seconds = value.as_i64().ok_or_else(malformed)?;
            Ok(Some(Timestamp::from_millis(seconds.saturating_mul(1000))))
        }
    }
}

fn malformed() -> Refusal {
    Refusal::new(Code::Unauthenticated, "a claim of the capability token is malformed")
}

#[cfg(test)]
mod tests {
    use yore_domain::grant::Verb;

    use super::*;

    fn vectors() -> Value {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/uamp/vectors.json");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    #[test]
    fn uamp_071_uamp_072_the_vectors_are_judged_up_to_the_issuer() {
        let vectors = vectors();
        for case in vectors["cap_tokens"].as_array().unwrap() {
            let name = case["name"].as_str().unwrap();
            let at = case["at"].as_str().unwrap().parse().unwrap();
            let by = case["presented_by"].as_str().unwrap();
            let read = claims(case["token"].as_str().unwrap(), by, at);
            match (name, case["expect"].as_str().unwrap()) {
                // Audience and standing are the engine's to judge; the form holds.
                ("ok" | "wrong-audience" | "issuer-not-owner", _) => {
                    let read = read.unwrap();
                    assert_eq!(read.grant.agent.as_str(), by, "{name}");
                    let all = [Verb::Read, Verb::Write, Verb::Derive];
                    assert_eq!(read.grant.verbs, Verbs::of(&all), "{name}");
                }
                (_, code) => assert_eq!(read.unwrap_err().code.as_str(), code, "{name}"),
            }
        }
    }

    #[test]
    fn uamp_071_clocks_may_be_a_minute_apart() {
        let vectors = vectors();
        let case = &vectors["cap_tokens"][1];
        let (token, by) = (case["token"].as_str().unwrap(), case["presented_by"].as_str().unwrap());
        let ends = 1_767_322_801_000;
        assert!(claims(token, by, Timestamp::from_millis(ends + 59_000)).is_ok());
        assert!(claims(token, by, Timestamp::from_millis(ends + 61_000)).is_err());
        let begins = 1_767_322_800_000;
        assert!(claims(token, by, Timestamp::from_millis(begins - 59_000)).is_ok());
        assert!(claims(token, by, Timestamp::from_millis(begins - 61_000)).is_err());
    }

    #[test]
    fn uamp_071_other_forms_are_not_supported() {
        let refused = claims("2D3DhEOhASagWQ", "did:web:a.example", Timestamp::MIN).unwrap_err();
        assert_eq!(refused.code, Code::Unauthenticated);
        assert!(refused.message.contains("unsupported_token"));
    }
}
