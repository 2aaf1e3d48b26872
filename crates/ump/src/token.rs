//! Capability tokens, read into the one grant. The engine judges them.

use serde_json::{Value, json};
use yore_canon::captoken::Token;
use yore_canon::did::Did;
use yore_canon::hash::Blake3;
use yore_canon::json::Object;
use yore_domain::class::Sensitivity;
use yore_domain::grant::{Grant, Labels, Verb, Verbs};
use yore_domain::scope::{ScopeRule, Visibility};
use yore_domain::{AgentId, Error, GrantId, Timestamp};
use yore_engine::dialect::Presented;
use yore_engine::{Call, Claims, Engine, GrantRequest, Issued, Proof};

/// What every token of this protocol begins with.
const PREFIX: &str = "umpcap.";
/// The versions of claims that are understood.
const VERSIONS: [&str; 2] = ["ump-cap/0.1", "ump-cap/1.0"];
/// The verbs that a token may carry; others exist here, but not in this protocol.
const VERBS: [Verb; 4] = [Verb::Read, Verb::Write, Verb::Derive, Verb::Export];

/// Reads a token; nothing when it is none of this protocol.
#[must_use]
pub fn credential(token: &str) -> Option<Presented> {
    token.starts_with(PREFIX).then(|| match claims(token) {
        Ok(claims) => Presented::Claims(Box::new(claims)),
        Err(reason) => Presented::Unreadable(reason),
    })
}

/// Returns the id under which a token is revoked.
#[must_use]
pub fn grant_id(jti: &str) -> GrantId {
    jti.parse().unwrap_or_else(|_| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&Blake3::of(jti).as_bytes()[..16]);
        GrantId::from_bytes(bytes)
    })
}

/// Gives an agent a grant as a capability token, signed by the vault. What a token of this
/// protocol cannot say is refused, not dropped: it would allow more than was meant.
pub async fn issue(
    engine: &Engine,
    call: &Call,
    request: GrantRequest,
    audience: Vec<String>,
) -> yore_domain::Result<Issued> {
    let cannot = |path: &str| {
        Err(Error::invalid(path, "a capability token cannot say this; issue a token of the server"))
    };
    if request.verbs.iter().any(|verb| !VERBS.contains(&verb)) {
        return cannot("verbs");
    }
    if request.read != Labels::Any || request.write != Labels::Any {
        return cannot("labels");
    }
    if request.ceiling != Sensitivity::Restricted {
        return cannot("ceiling");
    }
    if request.scope.user.is_some() {
        return cannot("scope.user");
    }
    if request.ttl.is_none() {
        return Err(Error::invalid("ttl", "a capability token must end"));
    }
    engine.issue_capability(call, request, |grant| stated(grant, audience)).await
}

/// The claims that state a grant.
fn stated(grant: &Grant, audience: Vec<String>) -> Object {
    let mut scope = Object::new();
    scope.insert("owner".to_owned(), grant.issuer.as_str().into());
    let ScopeRule { user: _, project, agent, visibility } = &grant.scope;
    let visibility = visibility.map(|visibility| visibility.as_str().to_owned());
    for (name, value) in [("project", project), ("agent", agent), ("visibility", &visibility)] {
        if let Some(value) = value {
            scope.insert(name.to_owned(), value.as_str().into());
        }
    }
    let verbs: Vec<&str> = grant.verbs.iter().map(Verb::as_str).collect();
    let claims = json!({
        "v": VERSIONS[1],
        "iss": grant.issuer,
        "verbs": verbs,
        "scope": scope,
        "exp": grant.expires.map(|at| at.to_string()),
        "jti": grant.id.to_string(),
    });
    let Value::Object(mut claims) = claims else { return Object::new() };
    match &audience[..] {
        [] => {}
        [one] => _ = claims.insert("aud".to_owned(), one.as_str().into()),
        several => _ = claims.insert("aud".to_owned(), several.into()),
    }
    claims
}

fn claims(text: &str) -> Result<Claims, &'static str> {
    let token = Token::decode(text).map_err(|_| "the capability token is malformed")?;
    let claims = token.unverified_claims();
    if !word(claims, "v")?.is_some_and(|version| VERSIONS.contains(&version)) {
        return Err("the capability token has an unknown version");
    }
    let issuer = word(claims, "iss")?.ok_or("the capability token names no issuer")?;
    let did: Did = issuer.parse().map_err(|_| "the token's issuer is not a DID")?;
    let key = did.key().map_err(|_| "the token's issuer is not a did:key")?;
    let scope = match claims.get("scope") {
        None | Some(Value::Null) => Object::new(),
        Some(Value::Object(scope)) => scope.clone(),
        Some(_) => return Err("the token's scope is not an object"),
    };
    let jti = word(claims, "jti")?.filter(|jti| !jti.is_empty());
    let jti = jti.ok_or("the capability token has no jti")?;
    let expires = moment(claims, "exp")?.ok_or("the capability token does not expire")?;
    let not_before = moment(claims, "nbf")?;
    let agent = match word(&scope, "agent")? {
        Some(agent) => agent.to_owned(),
        None => format!("ump:{jti}"),
    };
    let (digest, signature) = token.proof();
    Ok(Claims {
        grant: Grant {
            id: grant_id(jti),
            agent: AgentId::new(agent).map_err(|_| "the token's agent is not a name")?,
            issuer: issuer.to_owned(),
            verbs: verbs(claims)?,
            read: Labels::Any,
            write: Labels::Any,
            ceiling: Sensitivity::Restricted,
            scope: rule(&scope)?,
            not_before,
            // A token still holds at the very instant it states.
            expires: Some(Timestamp::from_micros(expires.micros().saturating_add(1))),
            issued: not_before.unwrap_or(Timestamp::MIN),
            revoked: None,
            note: None,
        },
        audience: audience(claims)?,
        subject: word(&scope, "owner")?.map(str::to_owned),
        proof: Proof::Signature {
            key,
            message: digest.as_bytes().to_vec(),
            signature: signature.as_bytes().to_vec(),
        },
    })
}

fn verbs(claims: &Object) -> Result<Verbs, &'static str> {
    const WRONG: &str = "the token's verbs are not a list of read, write, derive and export";
    let list = claims.get("verbs").and_then(Value::as_array).ok_or(WRONG)?;
    let verbs: Option<Vec<Verb>> = list
        .iter()
        .map(|verb| VERBS.into_iter().find(|known| Some(known.as_str()) == verb.as_str()))
        .collect();
    Ok(Verbs::of(&verbs.ok_or(WRONG)?))
}

fn rule(scope: &Object) -> Result<ScopeRule, &'static str> {
    const KNOWN: [&str; 4] = ["owner", "project", "agent", "visibility"];
    // A bound that is not understood cannot be kept.
    if scope.keys().any(|name| !KNOWN.contains(&name.as_str())) {
        return Err("the token's scope has an unknown member");
    }
    let visibility = word(scope, "visibility")?.map(Visibility::parse).transpose();
    Ok(ScopeRule {
        user: None,
        project: word(scope, "project")?.map(str::to_owned),
        agent: word(scope, "agent")?.map(str::to_owned),
        visibility: visibility.map_err(|_| "the token's visibility is unknown")?,
    })
}

fn audience(claims: &Object) -> Result<Vec<String>, &'static str> {
    const WRONG: &str = "the token's audience is neither a text nor a list of texts";
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
    word(claims, name)?.map(str::parse).transpose().map_err(|_| "a time of the token is unreadable")
}

fn word<'a>(of: &'a Object, name: &str) -> Result<Option<&'a str>, &'static str> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err("a member of the capability token is not a text"),
    }
}

#[cfg(test)]
mod tests;
