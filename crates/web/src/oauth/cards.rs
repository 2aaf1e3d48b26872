//! Clients whose id is the address of a document that describes them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

use super::client::Client;
use crate::Options;

/// How long a document may take to come, how long it counts, and how many are kept.
const PATIENCE: Duration = Duration::from_secs(3);
const FRESH: Duration = Duration::from_secs(300);
const MOST: usize = 256;
/// How long a document may be.
const BYTES: usize = 16 << 10;

/// The documents that were fetched lately.
#[derive(Debug, Default)]
pub(crate) struct Cards(Mutex<HashMap<String, (Instant, Client)>>);

impl Cards {
    /// The client that an address describes, or what a person is told instead.
    pub(super) async fn client(&self, options: &Options, id: &str) -> Result<Client, String> {
        let unknown = || "The client is not registered here.".to_owned();
        let Some(fetch) = options.fetch.as_ref().filter(|_| is_address(id)) else {
            return Err(unknown());
        };
        if let Some(client) = self.kept(id) {
            return Ok(client);
        }
        let fetched = tokio::time::timeout(PATIENCE, (fetch.0)(id.to_owned())).await;
        let wrong =
            |reason: &str| format!("What the client says of itself is of no use: {reason}.");
        let text = match fetched {
            Ok(Ok(text)) if text.len() <= BYTES => text,
            Ok(Ok(_)) => return Err(wrong("it is too long")),
            Ok(Err(reason)) => return Err(wrong(&reason)),
            Err(_) => return Err(wrong("it did not come in time")),
        };
        let said: Value = serde_json::from_slice(&text).map_err(|_| wrong("it is not JSON"))?;
        let client = described(id, &said).map_err(wrong)?;
        let mut cards = self.0.lock();
        if cards.len() >= MOST {
            cards.clear();
        }
        cards.insert(id.to_owned(), (Instant::now(), client.clone()));
        Ok(client)
    }

    /// What was fetched a moment ago.
    fn kept(&self, id: &str) -> Option<Client> {
        let cards = self.0.lock();
        cards.get(id).filter(|(at, _)| at.elapsed() < FRESH).map(|(_, client)| client.clone())
    }
}

/// Reads a document. It speaks for its own address only, and for clients without secrets.
fn described(id: &str, said: &Value) -> Result<Client, &'static str> {
    if said["client_id"].as_str() != Some(id) {
        return Err("it is about another client");
    }
    match said["token_endpoint_auth_method"].as_str() {
        None | Some("none") => {}
        Some(_) => return Err("it wants to prove itself in a way that is not spoken here"),
    }
    if said.get("client_secret").is_some() {
        return Err("it has a secret, which a public document must not");
    }
    Client::registered(said)
}

/// Whether an id is an address that may describe a client: https, with a path, and plain.
fn is_address(id: &str) -> bool {
    let Some(rest) = id.strip_prefix("https://") else { return false };
    let Some((host, path)) = rest.split_once('/') else { return false };
    let plain = |c: char| c.is_ascii_graphic() && !"\"'<>\\^`{|}#?@;,".contains(c);
    let dots = path.split('/').any(|part| part == "." || part == "..");
    id.len() <= 512 && !host.is_empty() && !path.is_empty() && id.chars().all(plain) && !dots
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "https://host.example/client.json";

    #[test]
    fn an_address_is_plain_and_encrypted() {
        assert!(is_address(ID));
        for other in [
            "http://host.example/client.json",
            "https://host.example",
            "https://host.example/",
            "https://user@host.example/c",
            "https://host.example/a/../c",
            "https://host.example/c#x",
            "https:///c",
            "",
        ] {
            assert!(!is_address(other), "{other}");
        }
    }

    #[test]
    fn a_document_speaks_for_itself_only() {
        let said = json!({ "client_id": ID, "redirect_uris": ["https://host.example/cb"] });
        assert!(described(ID, &said).is_ok());
        assert!(described("https://host.example/other.json", &said).is_err());
        for (member, value) in [
            ("token_endpoint_auth_method", json!("client_secret_basic")),
            ("client_secret", json!("x")),
            ("redirect_uris", json!(["http://evil.example/cb"])),
        ] {
            let mut said = said.clone();
            said[member] = value;
            assert!(described(ID, &said).is_err(), "{member}");
        }
    }
}
