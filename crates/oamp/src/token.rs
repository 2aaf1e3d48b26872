//! Grants in the protocol's own form: the claims of a signed JWT, read into the one grant.
//!
//! Nothing is believed here. The engine checks the signature, how its key stands to the vault,
//! the audience, the time and whether the grant was revoked.

use serde_json::{Value, json};
use yore_canon::did::Did;
use yore_canon::encode;
use yore_canon::json::Object;
use yore_canon::jws::{self, Compact};
use yore_canon::key::VerifyingKey;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Grant, Labels, Verb, Verbs};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Error, GrantId, Result, Timestamp};
use yore_engine::dialect::Presented;
use yore_engine::{Call, Claims, Proof, VaultInfo, grant_named};

use crate::Oamp;

/// The longest token that is read; a longer one would not fit a header anyway.
const LONGEST: usize = 16 * 1024;

/// Reads a token; nothing when it has another form.
#[must_use]
pub fn credential(token: &str) -> Option<Presented> {
    // A compact signature is three parts, and its header an object: `eyJ` is `{"` in base64url.
    let jwt = token.starts_with("ey") && token.bytes().filter(|byte| *byte == b'.').count() == 2;
    jwt.then(|| match claims(token) {
        Ok(claims) => Presented::Claims(Box::new(claims)),
        Err(reason) => Presented::Unreadable(reason),
    })
}

fn claims(token: &str) -> Result<Claims, &'static str> {
    if token.len() > LONGEST {
        return Err("the grant is too long");
    }
    let (claims, issuer, proof) = match Compact::parse(token) {
        Ok(compact) => signed(token, &compact)?,
        Err(jws::Error::Algorithm) => shared(token)?,
        Err(_) => return Err("the grant is not a signed token"),
    };
    let grant_id = named(&claims, "oamp_grant_id")?.ok_or("the grant has no id")?;
    let agent = named(&claims, "oamp_agent_id")?.ok_or("the grant names no agent")?;
    let subject = named(&claims, "sub")?.ok_or("the grant names no user")?;
    let ceiling = named(&claims, "oamp_sensitivity_max")?.ok_or("the grant has no ceiling")?;
    let not_before = moment(&claims, "nbf")?;
    Ok(Claims {
        grant: Grant {
            id: grant_named(grant_id),
            agent: AgentId::new(agent).map_err(|_| "the grant's agent is not a name")?,
            issuer,
            verbs: Verbs::of(&[Verb::Read, Verb::Write, Verb::Derive, Verb::Export, Verb::Erase]),
            read: labels(&claims, "oamp_read_labels"),
            write: labels(&claims, "oamp_write_labels"),
            ceiling: Sensitivity::parse(ceiling).map_err(|_| "the grant's ceiling is unknown")?,
            scope: ScopeRule::default(),
            not_before,
            expires: Some(moment(&claims, "exp")?.ok_or("the grant does not expire")?),
            issued: moment(&claims, "iat")?.or(not_before).unwrap_or(Timestamp::MIN),
            revoked: None,
            note: None,
        },
        audience: audience(&claims)?,
        subject: Some(subject.to_owned()),
        proof,
    })
}

/// A token signed by a key that it names.
fn signed(token: &str, compact: &Compact) -> Result<(Object, String, Proof), &'static str> {
    let payload = compact.unverified_payload().ok_or("the grant has no claims")?;
    let claims = jws::claims(payload).map_err(|_| "the grant's claims are malformed")?;
    let key = signer(compact.header().kid.as_deref(), named(&claims, "iss")?)?;
    let (message, signature) = token.rsplit_once('.').ok_or("the grant is not a signed token")?;
    let signature = encode::from_base64url(signature).map_err(|_| "the grant is malformed")?;
    let issuer = Did::of_key(&key).as_str().to_owned();
    let proof = Proof::Signature { key, message: message.as_bytes().to_vec(), signature };
    Ok((claims, issuer, proof))
}

/// A token under a secret that issuer and server share; taken where the operator has one.
fn shared(token: &str) -> Result<(Object, String, Proof), &'static str> {
    const OTHER: &str = "the grant's algorithm is not accepted";
    let (message, tag) = token.rsplit_once('.').ok_or(OTHER)?;
    let (header, payload) = message.split_once('.').ok_or(OTHER)?;
    let decoded = |text: &str| encode::from_base64url(text).map_err(|_| "the grant is malformed");
    let header = jws::claims(&decoded(header)?).map_err(|_| OTHER)?;
    if header.get("alg").and_then(Value::as_str) != Some("HS256") || header.contains_key("crit") {
        return Err(OTHER);
    }
    let claims = jws::claims(&decoded(payload)?).map_err(|_| "the grant's claims are malformed")?;
    let proof = Proof::Shared { message: message.as_bytes().to_vec(), tag: decoded(tag)? };
    Ok((claims, "shared secret".to_owned(), proof))
}

/// The key that a token names: in its header, or as the issuer itself.
fn signer(kid: Option<&str>, issuer: Option<&str>) -> Result<VerifyingKey, &'static str> {
    const NOBODY: &str = "the grant does not name the key that signed it";
    let key_of = |text: &str| {
        let did = text.split('#').next().unwrap_or(text);
        did.parse::<Did>().ok().and_then(|did| did.key().ok())
    };
    let named = kid.and_then(key_of);
    let issued = issuer.filter(|issuer| issuer.starts_with("did:key:")).and_then(key_of);
    match (named, issued) {
        (Some(key), Some(issuer)) if key != issuer => {
            Err("the grant's issuer is not the key that signed it")
        }
        (Some(key), _) | (None, Some(key)) => Ok(key),
        (None, None) => Err(NOBODY),
    }
}

/// The labels of a grant. What is no list of labels reaches nothing.
fn labels(claims: &Object, name: &str) -> Labels {
    let list = claims.get(name).and_then(Value::as_array);
    let words = list.into_iter().flatten().filter_map(Value::as_str);
    Labels::Under(words.filter_map(|word| Label::new(word).ok()).collect())
}

fn audience(claims: &Object) -> Result<Vec<String>, &'static str> {
    const WRONG: &str = "the grant's audience is neither a text nor a list of texts";
    match claims.get("aud") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        // An empty list would be for nobody, but read like one for everybody.
        Some(Value::Array(list)) if !list.is_empty() => {
            list.iter().map(|one| one.as_str().map(str::to_owned).ok_or(WRONG)).collect()
        }
        Some(_) => Err(WRONG),
    }
}

fn moment(claims: &Object, name: &str) -> Result<Option<Timestamp>, &'static str> {
    /// The year 9999, as seconds.
    const LATEST: f64 = 253_402_300_799.0;
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let seconds = value.as_f64().filter(|seconds| (0.0..=LATEST).contains(seconds));
            let seconds = seconds.ok_or("a time of the grant is no numeric date")?;
            #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
            Ok(Some(Timestamp::from_millis((seconds * 1000.0) as i64)))
        }
    }
}

fn named<'a>(claims: &'a Object, name: &str) -> Result<Option<&'a str>, &'static str> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
        Some(_) => Err("a claim of the grant is not a text"),
    }
}

impl Oamp {
    /// Writes a grant of the vault as a token that the vault's own key signed.
    pub async fn signed_grant(&self, call: &Call, grant: GrantId) -> Result<String> {
        self.engine.sign_grant(call, grant, written).await
    }
}

/// The text of a token that is to be signed.
fn written(grant: &Grant, vault: &VaultInfo) -> Result<String> {
    let list = |labels: &Labels| match labels {
        Labels::Under(labels) => {
            Ok(labels.iter().map(|label| Value::from(label.as_str())).collect::<Value>())
        }
        Labels::Any | Labels::AnyWith(_) => Err(Error::invalid(
            "labels",
            "a signed grant names its labels: it cannot reach every one",
        )),
    };
    let Some(expires) = grant.expires else {
        return Err(Error::invalid("ttl", "a signed grant must end by itself"));
    };
    if !grant.scope.is_open() {
        return Err(Error::invalid("scope", "a signed grant cannot be bound to a scope"));
    }
    let none = Labels::Under(Vec::new());
    let covered = |verb, labels| if grant.verbs.has(verb) { labels } else { &none };
    let claims = json!({
        "iss": vault.did,
        "sub": vault.owner,
        "oamp_agent_id": grant.agent.as_str(),
        "oamp_grant_id": grant.id.to_string(),
        "oamp_read_labels": list(covered(Verb::Read, &grant.read))?,
        "oamp_write_labels": list(covered(Verb::Write, &grant.write))?,
        "oamp_sensitivity_max": grant.ceiling.as_str(),
        "oamp_export_full": false,
        "iat": grant.issued.millis() / 1000,
        "exp": expires.millis() / 1000,
    });
    let header = json!({"alg": "EdDSA", "kid": vault.did, "typ": "JWT"});
    let part = |value: Value| encode::base64url(value.to_string().as_bytes());
    Ok(format!("{}.{}", part(header), part(claims)))
}

#[cfg(test)]
mod tests;
