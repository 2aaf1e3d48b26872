//! Clients whose id says what they registered.

use serde_json::{Value, json};
use yore_canon::encode::{base64url, from_base64url};

/// What every id begins with.
const PREFIX: &str = "yore-client.";
/// The longest id that is read.
const ID_BYTES: usize = 4096;
const REDIRECTS: usize = 8;
const NAME_CHARACTERS: usize = 80;
/// Schemes that would run something instead of leading somewhere.
const DANGEROUS: [&str; 8] =
    ["javascript", "data", "vbscript", "file", "blob", "about", "filesystem", "view-source"];

/// A program that wants to be let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Client {
    name: String,
    redirects: Vec<String>,
}

impl Client {
    /// Reads a registration.
    pub(super) fn registered(said: &Value) -> Result<Self, &'static str> {
        let redirects = said["redirect_uris"].as_array().ok_or("redirect_uris must be a list")?;
        let redirects: Vec<String> =
            redirects.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let name = said["client_name"].as_str().unwrap_or("An agent");
        let name = name.chars().filter(|c| !c.is_control()).take(NAME_CHARACTERS).collect();
        let client = Self { name, redirects };
        if client.redirects.is_empty() || client.redirects.len() > REDIRECTS {
            return Err("there must be one to eight redirect_uris");
        }
        if !client.redirects.iter().all(|place| is_acceptable(place)) {
            return Err("a redirect_uri must be https, on this machine, or an app's own scheme");
        }
        if client.id().len() > ID_BYTES {
            return Err("the registration is too long");
        }
        Ok(client)
    }

    /// Reads an id.
    pub(super) fn named(id: &str) -> Option<Self> {
        let said = id.strip_prefix(PREFIX).filter(|said| said.len() < ID_BYTES)?;
        let said: Value = serde_json::from_slice(&from_base64url(said).ok()?).ok()?;
        Self::registered(&said).ok().filter(|client| client.id() == id)
    }

    pub(super) fn id(&self) -> String {
        let said = json!({ "client_name": self.name, "redirect_uris": self.redirects });
        format!("{PREFIX}{}", base64url(said.to_string().as_bytes()))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn redirects(&self) -> &[String] {
        &self.redirects
    }

    /// Whether an answer may go there: exactly where it registered, on this machine at any port.
    pub(super) fn may_be_answered_at(&self, place: &str) -> bool {
        is_acceptable(place)
            && self.redirects.iter().any(|known| {
                known == place
                    || matches!((local(known), local(place)), (Some(a), Some(b)) if a == b)
            })
    }
}

fn is_acceptable(place: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && !"\"'<>\\^`{|}#;,".contains(c);
    let Some((scheme, rest)) = place.split_once(':') else { return false };
    if place.len() > 1024 || !place.chars().all(plain) || rest.is_empty() {
        return false;
    }
    let mut letters = scheme.chars();
    let is_scheme = letters.next().is_some_and(|c| c.is_ascii_lowercase())
        && letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+.-".contains(c));
    match scheme {
        "https" => authority(rest).is_some_and(|host| !host.is_empty() && !host.contains('@')),
        "http" => local(place).is_some(),
        scheme => is_scheme && !DANGEROUS.contains(&scheme),
    }
}

fn authority(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix("//")?;
    rest.split(['/', '?']).next()
}

/// Host and path of an address on this machine, without its port: programs choose a free one.
fn local(place: &str) -> Option<(&str, &str)> {
    let rest = place.strip_prefix("http://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = match authority.strip_prefix('[') {
        Some(inner) => inner.split(']').next()?,
        None => authority.split(':').next()?,
    };
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    let port = if authority.ends_with(']') { "" } else { port };
    let own = ["127.0.0.1", "localhost", "::1"].contains(&host);
    (own && port.chars().all(|c| c.is_ascii_digit())).then_some((host, path))
}

/// Where an answer goes, as the policy of a page names it.
pub(super) fn origin(place: &str) -> String {
    match place.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => {
            let host = rest.split(['/', '?']).next().unwrap_or_default();
            format!("{scheme}://{host}")
        }
        _ => format!("{}:", place.split(':').next().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(places: &[&str]) -> Result<Client, &'static str> {
        Client::registered(&json!({ "client_name": "Host", "redirect_uris": places }))
    }

    #[test]
    fn an_id_says_what_was_registered() {
        let made = client(&["http://127.0.0.1:9/cb", "cursor://auth/done"]).unwrap();
        assert_eq!(Client::named(&made.id()), Some(made.clone()));
        for odd in ["", "x", "yore-client.", "yore-client.!!", "yore-client.e30"] {
            assert_eq!(Client::named(odd), None, "{odd}");
        }
        let said = json!({ "redirect_uris": ["https://a.example/"], "more": 1 });
        let padded = format!("{PREFIX}{}", base64url(said.to_string().as_bytes()));
        assert_eq!(Client::named(&padded), None, "an id has one spelling");
    }

    #[test]
    fn places_that_run_something_or_are_in_clear_are_refused() {
        for place in [
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "data:text/html,x",
            "http://evil.example/cb",
            "http://127.0.0.1.evil.example/cb",
            "http://localhost@evil.example/cb",
            "http://127.0.0.1:9@evil.example/cb",
            "https://user@evil.example/cb",
            "https:///cb",
            "https://a.example/#x",
            "https://a.example/;script-src *",
            "ftp//x",
            "",
            "https://a.example/\r\nx",
        ] {
            assert!(client(&[place]).is_err(), "{place}");
        }
        assert!(client(&[]).is_err());
        for place in ["https://a.example/cb", "http://localhost:7/x", "http://[::1]:7/x", "app:/x"]
        {
            assert!(client(&[place]).is_ok(), "{place}");
        }
    }

    #[test]
    fn answers_go_where_they_were_registered_for() {
        let made = client(&["http://127.0.0.1:9/cb", "https://a.example/cb"]).unwrap();
        for place in ["http://127.0.0.1:9/cb", "http://127.0.0.1:12345/cb", "https://a.example/cb"]
        {
            assert!(made.may_be_answered_at(place), "{place}");
        }
        for place in [
            "http://127.0.0.1:9/other",
            "http://localhost:9/cb",
            "https://a.example/cb2",
            "https://a.example:8443/cb",
            "https://b.example/cb",
        ] {
            assert!(!made.may_be_answered_at(place), "{place}");
        }
        assert_eq!(origin("https://a.example:1/cb?x"), "https://a.example:1");
        assert_eq!(origin("cursor://auth/done"), "cursor:");
    }
}
