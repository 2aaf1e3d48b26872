//! Access tokens of authorisation servers elsewhere (OAuth 2.1, RFC 9068), read into the one grant.
//!
//! Only servers that the operator names count, and only for the people the operator names or who
//! own a vault under the token's subject. Keys come from where the server publishes them, under
//! the rules for everything that is fetched, and are kept for a while.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use yore_canon::encode::from_base64url;
use yore_canon::hash::Sha256;
use yore_canon::key::{Algorithm, Signature, VerifyingKey};
use yore_domain::class::Sensitivity;
use yore_domain::grant::{Grant, Labels, Verbs};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Span, Timestamp};
use yore_engine::{Claims, Issuers, Proof, Published, Shown, Thumbprint, grant_named};
use yore_uamp::Fetch;

/// The longest token that is read.
const LONGEST: usize = 16 << 10;
/// How far clocks may be apart.
const SKEW: Span = Span::seconds(60);
/// How long keys count, and how soon they are fetched again for one that is not among them.
const GOOD: Duration = Duration::from_secs(600);
const SOON: Duration = Duration::from_secs(30);
/// How long a fetch may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// An authorisation server whose access tokens count.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issuer {
    /// Its name, as its tokens state it in `iss`: an https address.
    pub issuer: String,
    /// Where it publishes its keys: an https address, or a file. Default: where its own metadata
    /// says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks: Option<String>,
    /// What its tokens for this server state in `aud`. Default: one of `trust.audiences`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// Whose vault the tokens of a subject open, by the owner's name or DID. A subject that is
    /// not here opens the vault whose owner has its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub people: BTreeMap<String, String>,
    /// The highest sensitivity that its tokens reach. Default: confidential.
    #[serde(default = "confidential")]
    pub ceiling: Sensitivity,
}

impl Issuer {
    /// One of which only the keys count, which it publishes where its metadata says.
    pub(crate) fn named(issuer: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            jwks: None,
            audience: None,
            people: BTreeMap::new(),
            ceiling: Sensitivity::Public,
        }
    }
}

const fn confidential() -> Sensitivity {
    Sensitivity::Confidential
}

/// All of them, with their keys.
pub(crate) struct Known {
    issuers: Vec<Issuer>,
    fetch: Arc<dyn Fetch>,
    keys: tokio::sync::Mutex<HashMap<String, Kept>>,
}

struct Kept {
    at: Instant,
    keys: Vec<Map<String, Value>>,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("issuers", &self.issuers).finish_non_exhaustive()
    }
}

impl Known {
    pub(crate) fn new(issuers: Vec<Issuer>, fetch: Arc<dyn Fetch>) -> Self {
        Self { issuers, fetch, keys: tokio::sync::Mutex::default() }
    }

    fn named(&self, issuer: &str) -> Option<&Issuer> {
        self.issuers.iter().find(|known| known.issuer == issuer)
    }

    /// The keys that an issuer publishes, of which one should fit.
    async fn keys(
        &self,
        issuer: &Issuer,
        fits: impl Fn(&Map<String, Value>) -> bool,
    ) -> Vec<Map<String, Value>> {
        // One at a time: whoever comes while they are fetched finds them fetched.
        let mut kept = self.keys.lock().await;
        let fitting = |kept: &Kept| -> Vec<Map<String, Value>> {
            kept.keys.iter().filter(|key| fits(key)).cloned().collect()
        };
        if let Some(known) = kept.get(&issuer.issuer) {
            let found = fitting(known);
            let age = known.at.elapsed();
            if (!found.is_empty() && age < GOOD) || age < SOON {
                return found;
            }
        }
        let fetched = tokio::time::timeout(PATIENCE, self.fetched(issuer)).await;
        match fetched.unwrap_or_else(|_| Err("it took too long".to_owned())) {
            Ok(keys) => {
                kept.insert(issuer.issuer.clone(), Kept { at: Instant::now(), keys });
            }
            Err(reason) => {
                tracing::warn!(
                    issuer = issuer.issuer,
                    reason,
                    "keys of an issuer were not fetched"
                );
                // What was known stays known, and nobody asks again at once.
                let known = kept.entry(issuer.issuer.clone());
                let now = Instant::now();
                known.or_insert(Kept { at: now, keys: Vec::new() }).at = now;
            }
        }
        kept.get(&issuer.issuer).map(fitting).unwrap_or_default()
    }

    async fn fetched(&self, issuer: &Issuer) -> Result<Vec<Map<String, Value>>, String> {
        let place = match &issuer.jwks {
            Some(place) => place.clone(),
            None => {
                let base = issuer.issuer.trim_end_matches('/');
                let metadata = format!("{base}/.well-known/openid-configuration");
                let metadata = self.json(&metadata).await?;
                if metadata["issuer"] != issuer.issuer.as_str() {
                    return Err("its metadata is somebody else's".to_owned());
                }
                let place = metadata["jwks_uri"].as_str().ok_or("its metadata names no keys")?;
                place.to_owned()
            }
        };
        let document = self.json(&place).await?;
        let keys = document["keys"].as_array().ok_or("there are no keys")?;
        Ok(keys.iter().filter_map(|key| key.as_object().cloned()).take(64).collect())
    }

    async fn json(&self, place: &str) -> Result<Value, String> {
        let bytes = match place.contains("://") {
            true => self.fetch.fetch(place).await?,
            false => crate::fetch::read(place.into()).await?,
        };
        serde_json::from_slice(&bytes).map_err(|_| "what is there is not JSON".to_owned())
    }
}

impl Issuers for Known {
    fn read(&self, token: &str, shown: Shown) -> Option<Result<Claims, &'static str>> {
        if token.len() > LONGEST {
            return None;
        }
        let mut parts = token.split('.');
        let (head, payload, signature, None) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next())
        else {
            return None;
        };
        let claims: Map<String, Value> =
            serde_json::from_slice(&from_base64url(payload).ok()?).ok()?;
        let issuer = self.named(claims.get("iss")?.as_str()?)?;
        let head: Map<String, Value> = serde_json::from_slice(&from_base64url(head).ok()?).ok()?;
        let read = || {
            let signature = from_base64url(signature).map_err(|_| "the token has no signature")?;
            if head.contains_key("crit") {
                return Err("the token demands what is not understood");
            }
            let text = |name: &str| head.get(name).and_then(Value::as_str).map(str::to_owned);
            let message = token.rsplit_once('.').map_or(token, |(message, _)| message);
            let published = Published {
                algorithm: text("alg").ok_or("the token names no algorithm")?,
                key: text("kid"),
                message: message.as_bytes().to_vec(),
                signature,
            };
            granted(issuer, &claims, token, shown, published)
        };
        Some(read())
    }

    fn vouch<'a>(&'a self, issuer: &'a str, proof: &'a Published) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let Some(issuer) = self.named(issuer) else { return false };
            if !["RS256", "ES256", "EdDSA", "Ed25519"].contains(&proof.algorithm.as_str()) {
                return false;
            }
            let fits = |key: &Map<String, Value>| {
                let same = |name: &str, wanted: &str| {
                    key.get(name).is_none_or(|value| value.as_str() == Some(wanted))
                };
                let named = proof.key.as_deref();
                named.is_none_or(|kid| key.get("kid").and_then(Value::as_str) == Some(kid))
                    && same("use", "sig")
            };
            let keys = self.keys(issuer, fits).await;
            keys.into_iter().any(|key| verifies(key, proof))
        })
    }
}

/// Whether a published key made a signature.
fn verifies(key: Map<String, Value>, proof: &Published) -> bool {
    let Published { algorithm, message, signature, .. } = proof;
    if algorithm == "RS256" {
        let part = |name: &str| from_base64url(key.get(name)?.as_str()?).ok();
        let (Some("RSA"), Some(n), Some(e)) =
            (key.get("kty").and_then(Value::as_str), part("n"), part("e"))
        else {
            return false;
        };
        let public = RsaPublicKeyComponents { n, e };
        return public.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok();
    }
    let wanted = match algorithm.as_str() {
        "ES256" => Algorithm::P256,
        _ => Algorithm::Ed25519,
    };
    VerifyingKey::from_jwk(&Value::Object(key)).is_ok_and(|key| {
        key.algorithm() == wanted
            && Signature::from_slice(wanted, signature)
                .is_ok_and(|signature| key.verify(message, &signature).is_ok())
    })
}

/// What the claims of a token grant, if they are true.
fn granted(
    issuer: &Issuer,
    claims: &Map<String, Value>,
    token: &str,
    shown: Shown,
    published: Published,
) -> Result<Claims, &'static str> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    bound(claims, shown)?;
    let subject = text("sub").ok_or("the token names no subject")?;
    let expires = moment(claims, "exp")?.ok_or("the token does not expire")?.plus(SKEW);
    let mut audience: Vec<String> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(list)) => {
            list.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
        }
        Some(_) | None => Vec::new(),
    };
    if audience.is_empty() {
        return Err("the token names no audience");
    }
    if issuer.audience.as_ref().is_some_and(|ours| audience.contains(ours)) {
        // It is ours; nobody else has to recognise it.
        audience.clear();
    }
    let verbs = Verbs::of_scope(text("scope").unwrap_or_default());
    // Whoever got the token acts; a person's own program may have no name.
    let agent = text("client_id").or_else(|| text("azp")).unwrap_or(subject);
    let id = text("jti").map_or_else(|| Sha256::of(token).to_hex(), str::to_owned);
    Ok(Claims {
        grant: Grant {
            id: grant_named(&format!("{} {id}", issuer.issuer)),
            agent: AgentId::new(agent).map_err(|_| "the token's client has no usable name")?,
            issuer: issuer.issuer.clone(),
            verbs,
            read: Labels::Any,
            write: Labels::Any,
            ceiling: issuer.ceiling,
            scope: ScopeRule::default(),
            not_before: moment(claims, "nbf")?.map(|from| from.minus(SKEW)),
            expires: Some(expires),
            issued: moment(claims, "iat")?.unwrap_or(Timestamp::MIN),
            revoked: None,
            note: None,
        },
        audience,
        subject: Some(issuer.people.get(subject).map_or(subject, String::as_str).to_owned()),
        proof: Proof::Published(published),
    })
}

/// A token that is bound to a certificate or a key is good only with that; and whoever proves a key
/// comes with a token of that key.
fn bound(claims: &Map<String, Value>, shown: Shown) -> Result<(), &'static str> {
    let Some(binding) = claims.get("cnf") else {
        return match shown.key {
            None => Ok(()),
            Some(_) => Err("the token is not bound to a key"),
        };
    };
    let one = binding.as_object().filter(|members| members.len() == 1);
    let one = one.and_then(|members| members.iter().next());
    let wanted = |value: &Value| from_base64url(value.as_str().unwrap_or_default()).ok();
    let same = |value: &Value, shown: Option<Thumbprint>| {
        wanted(value).zip(shown).is_some_and(|(wanted, shown)| wanted == shown.0)
    };
    match one.map(|(name, value)| (name.as_str(), value)) {
        Some(("x5t#S256", value)) if shown.key.is_none() => match same(value, shown.certificate) {
            true => Ok(()),
            false => Err("the token is bound to another certificate"),
        },
        Some(("jkt", value)) => match same(value, shown.key) {
            true => Ok(()),
            false => Err("the token is bound to a key that is not proven"),
        },
        Some(_) | None => Err("the token is bound in a way that is not understood"),
    }
}

fn moment(claims: &Map<String, Value>, name: &str) -> Result<Option<Timestamp>, &'static str> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let seconds = value.as_i64().ok_or("a time of the token is malformed")?;
            Ok(Some(Timestamp::from_millis(seconds.saturating_mul(1000))))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rsa_signatures_of_others_verify_and_changed_ones_do_not() {
        // Made with another library.
        let n = "vBF85lXk28X5uURIkXg1DW4Lamvpdh4myPtDiWx5Qd7t3R87Mo143XFXp1NwQrhdc10ZVjuNGFwUQDYFJNEL\
                 BfYzSUYhpQUWC8Bt2igTfllPfNaJpw3K43nA3lqwUs_-e5Gx3aZ-nCc93r5Y0gF6OcLJqWjTJ7taIlbRDVYl\
                 Cfi3mOH6Kq4KrcGOHaiX0YVI9eaL2C0pIg3eA8A4QgKKjbj_Al3rzg0Iye4TkhBmpjfwhbrFl9rRw-UvcTC_\
                 empnJ0PoVDal5t5VUgW01ySUzggPLV-atApXFEjmaQOkrwTlsY9YRUGIJ4QDhK2sPSLD2pd6twL_2zyV0r0R\
                 JWlb0Q";
        let signature = "SE96J0Ag78ga98zi7HXmy0nO_sIe9NsUkPsxZkNY9XNMnbfFNrrummqtlvSnX0d8gNj-FHUPrmjV\
                         izPAleSS2EvtpqEYbiQLPdV5LAj98SZO6C7zW4-yMZXdXFl_koqS_lSut64MId8Mo0xEbg3_bUUi\
                         LL-wKPvdcYipVjZswtN4g3oNch4G1jx6tJsOihFvBUSYcV2Qcykfavt-hSfpMzl83VaiKuCCRTXC\
                         eKUknkKOQfRV9hb4m3k-mEnUY3bFxILsy_X7CijaZyg_33WDuOG3w76EGtmXO9BLsvnxdDxb2LaE\
                         2iYua_FjIG_IpqWWQyBYTiTHxvPW4pkCl69_7A";
        let key = json!({ "kty": "RSA", "n": n, "e": "AQAB" });
        let key = key.as_object().unwrap();
        let mut proof = Published {
            algorithm: "RS256".into(),
            key: None,
            message: b"header.payload".to_vec(),
            signature: from_base64url(signature).unwrap(),
        };
        assert!(verifies(key.clone(), &proof));
        proof.message.push(b'!');
        assert!(!verifies(key.clone(), &proof));
        proof.algorithm = "ES256".into();
        assert!(!verifies(key.clone(), &proof), "a key of another kind");
    }

    #[test]
    fn a_token_bound_to_a_key_needs_that_key() {
        let shown = |certificate: Option<u8>, key: Option<u8>| {
            let print = |byte| Thumbprint([byte; 32]);
            Shown { certificate: certificate.map(print), key: key.map(print) }
        };
        let bound_to = |binding: Value| json!({ "cnf": binding }).as_object().unwrap().clone();
        let seven = yore_canon::encode::base64url(&[7; 32]);
        let certificate = bound_to(json!({ "x5t#S256": seven }));
        assert!(bound(&certificate, shown(Some(7), None)).is_ok());
        assert!(bound(&certificate, shown(Some(8), None)).is_err());
        assert!(bound(&certificate, shown(None, None)).is_err());
        assert!(bound(&certificate, shown(None, Some(7))).is_err());
        let key = bound_to(json!({ "jkt": seven }));
        assert!(bound(&key, shown(None, Some(7))).is_ok());
        assert!(bound(&key, shown(Some(7), Some(7))).is_ok());
        assert!(bound(&key, shown(Some(7), None)).is_err());
        assert!(bound(&key, shown(None, Some(8))).is_err());
        let both = bound_to(json!({ "jkt": seven, "x5t#S256": seven }));
        assert!(bound(&both, shown(Some(7), Some(7))).is_err(), "of two it is not said which");
        assert!(bound(&bound_to(json!("x")), shown(Some(7), Some(7))).is_err());
        assert!(bound(&Map::new(), shown(None, Some(7))).is_err(), "a proof for a plain token");
        assert!(bound(&Map::new(), shown(Some(7), None)).is_ok());
    }
}
