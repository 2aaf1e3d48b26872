//! What an identity provider states about a person (an ID token), and when it counts.

use serde_json::{Map, Value};
use yore_canon::encode::from_base64url;
use yore_domain::{Span, Timestamp};
use yore_engine::Published;

use super::Provider;

/// The longest statement that is read.
const LONGEST: usize = 32 << 10;
/// How far clocks may be apart.
const SKEW: Span = Span::seconds(60);
/// How many groups of a person are looked at.
const MOST: usize = 1000;

/// A person, as a provider names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Person {
    /// Its name at the provider, which never means somebody else.
    pub(super) subject: String,
    /// A name for people.
    pub(super) name: String,
    /// Its groups.
    pub(super) groups: Vec<String>,
}

/// A statement that was read and is not believed yet.
#[derive(Debug)]
pub(super) struct Statement {
    claims: Map<String, Value>,
    /// The signature, which a key of the provider must have made.
    pub(super) published: Published,
}

impl Statement {
    pub(super) fn read(token: &str) -> Result<Self, &'static str> {
        let wrong = "what is said of the person is not a signed statement";
        let parts: Vec<&str> = token.split('.').collect();
        let [head, payload, signature] = parts.as_slice() else { return Err(wrong) };
        if token.len() > LONGEST {
            return Err(wrong);
        }
        let object = |part: &str| -> Option<Map<String, Value>> {
            serde_json::from_slice(&from_base64url(part).ok()?).ok()
        };
        let (head, claims) = (object(head).ok_or(wrong)?, object(payload).ok_or(wrong)?);
        if head.contains_key("crit") {
            return Err("the statement demands what is not understood");
        }
        let text = |name: &str| head.get(name).and_then(Value::as_str).map(str::to_owned);
        let message = token.rsplit_once('.').map_or(token, |(message, _)| message);
        let published = Published {
            algorithm: text("alg").ok_or(wrong)?,
            key: text("kid"),
            message: message.as_bytes().to_vec(),
            signature: from_base64url(signature).map_err(|_| wrong)?,
        };
        Ok(Self { claims, published })
    }

    /// Whom it is about, if it is meant for us, now, and by this provider.
    pub(super) fn about(
        &self,
        provider: &Provider,
        nonce: &str,
        now: Timestamp,
    ) -> Result<Person, &'static str> {
        let text = |name: &str| self.claims.get(name).and_then(Value::as_str);
        if text("iss") != Some(provider.issuer.as_str()) {
            return Err("somebody else states it");
        }
        let ours = |value: &Value| value.as_str() == Some(provider.client_id.as_str());
        let (meant, several) = match self.claims.get("aud") {
            Some(Value::Array(list)) => (list.iter().any(ours), list.len() > 1),
            Some(one) => (ours(one), false),
            None => (false, false),
        };
        let party = self.claims.get("azp");
        if !meant || (several && party.is_none()) || party.is_some_and(|party| !ours(party)) {
            return Err("it is meant for somebody else");
        }
        if text("nonce") != Some(nonce) {
            return Err("it answers another question");
        }
        let moment = |name: &str| {
            let seconds = self.claims.get(name).and_then(Value::as_i64)?;
            Some(Timestamp::from_millis(seconds.saturating_mul(1000)))
        };
        let expires = moment("exp").ok_or("it does not say how long it counts")?;
        let issued = moment("iat").ok_or("it does not say when it was made")?;
        if expires.plus(SKEW) <= now || issued > now.plus(SKEW) {
            return Err("it counts no longer, or not yet");
        }
        let subject = text("sub").filter(|subject| !subject.is_empty());
        let subject = subject.ok_or("it is about nobody")?.to_owned();
        let name = text("preferred_username").or_else(|| text("email")).unwrap_or(&subject);
        let groups = match self.claims.get(&provider.groups) {
            Some(Value::Array(list)) => {
                list.iter().take(MOST).filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(Value::String(one)) => vec![one.clone()],
            Some(_) | None => Vec::new(),
        };
        Ok(Person { name: plain(name), subject, groups })
    }
}

/// A name as the audit chain and lists carry it.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(100).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use yore_canon::encode::base64url;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn provider() -> Provider {
        serde_json::from_value(json!({
            "name": "Corp", "issuer": "https://id.example", "client_id": "yore", "roles": [],
        }))
        .unwrap()
    }

    fn token(claims: &Value) -> String {
        let head = base64url(br#"{"alg":"ES256","kid":"1"}"#);
        format!("{head}.{}.{}", base64url(claims.to_string().as_bytes()), base64url(b"signature"))
    }

    fn claims() -> Value {
        json!({
            "iss": "https://id.example", "aud": "yore", "sub": "u1", "nonce": "n",
            "exp": 1_800_000_300, "iat": 1_800_000_000, "groups": ["a", "b", 3],
            "preferred_username": "kim",
        })
    }

    #[test]
    fn a_statement_for_us_names_the_person_and_its_groups() {
        let statement = Statement::read(&token(&claims())).unwrap();
        let person = statement.about(&provider(), "n", NOW).unwrap();
        let groups = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(person, Person { subject: "u1".into(), name: "kim".into(), groups });
        let mut several = claims();
        several["aud"] = json!(["yore", "other"]);
        several["azp"] = json!("yore");
        assert!(Statement::read(&token(&several)).unwrap().about(&provider(), "n", NOW).is_ok());
    }

    #[test]
    fn a_statement_for_others_or_for_another_time_counts_for_nothing() {
        let cases: [(&str, Value); 10] = [
            ("iss", json!("https://evil.example")),
            ("aud", json!("other")),
            ("aud", json!(["yore", "other"])),
            ("azp", json!("other")),
            ("nonce", json!("another")),
            ("nonce", Value::Null),
            ("exp", json!(1_799_999_900)),
            ("exp", Value::Null),
            ("iat", json!(1_800_000_900)),
            ("sub", json!("")),
        ];
        for (name, value) in cases {
            let mut claims = claims();
            claims[name] = value;
            let statement = Statement::read(&token(&claims)).unwrap();
            assert!(statement.about(&provider(), "n", NOW).is_err(), "{claims}");
        }
        for wrong in ["", "a.b", "a.b.c", &format!("{}.x", token(&claims()))] {
            assert!(Statement::read(wrong).is_err(), "{wrong}");
        }
    }
}
