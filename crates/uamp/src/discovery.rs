//! How others find this server and learn what it can do.

use serde_json::{Value, json};
use yore_canon::did::{Did, Document};
use yore_canon::key::Algorithm;
use yore_domain::{Error, Result};

use crate::Core;
use crate::intent::Intent;
use crate::reply::KEY;

/// How long a published document counts, in seconds.
pub(crate) const AGE: u64 = 300;

impl Core {
    /// What the server understands, in the protocol's closed form.
    pub(crate) fn manifest(&self) -> Value {
        let typed =
            self.registry.iter().map(|dialect| format!("application/vnd.{}+json", dialect.name()));
        let mut types: Vec<String> =
            ["text/plain", "text/markdown", "application/json"].map(str::to_owned).to_vec();
        types.extend(typed);
        let mut limits = json!({ "max_body_kb": self.options.largest / 1024 });
        if let Some(messages) = self.engine.settings().messages_per_hour {
            limits["rate_lph"] = messages.into();
        }
        json!({
            "agent": "uamp/1.0",
            "description": "User-owned memory server",
            "intents": Intent::ALL.map(Intent::as_str),
            "body_types": types,
            "auth": ["oauth2", "mtls"],
            "limits": limits,
        })
    }

    /// Which agents can be found here: the server itself. Whose agents a vault knows is private.
    pub(crate) async fn hub_document(&self) -> Result<Value> {
        let did = self.engine.server_did().await?;
        let mut key = self.engine.server_key().await?.to_jwk();
        key["kid"] = self.kid().await?.into();
        key["alg"] = Algorithm::Ed25519.jose().into();
        key["use"] = "sig".into();
        let now = self.engine.now().millis() / 1000;
        Ok(json!({
            "hub": "uamp/1.0",
            "manifests": [{
                "did": did,
                "url": format!("{}/.well-known/agent-manifest.json", self.url()),
            }],
            "trust_anchors": { "dids": [did], "jwks": { "keys": [key] } },
            "iat": now,
            "exp": now + 24 * 3600,
        }))
    }

    /// The document of the server's DID.
    pub(crate) async fn did_document(&self) -> Result<Value> {
        let did: Did = self.engine.server_did().await?.parse().map_err(Error::internal)?;
        let key = self.engine.server_key().await?;
        let document = match did.method() {
            "web" => Document::new(did, [(KEY, key)]),
            _ => Document::of_key_did(&did),
        };
        Ok(document.map_err(Error::internal)?.to_json())
    }

    /// The same for those who speak A2A: where the server is and what it does.
    pub(crate) fn agent_card(&self) -> Value {
        json!({
            "protocolVersion": "1.0",
            "name": "Yore",
            "description": "User-owned memory server",
            "version": env!("CARGO_PKG_VERSION"),
            "supportedInterfaces": [{
                "url": format!("{}/v1/messages", self.url()),
                "protocolBinding": "uamp/1.0",
            }],
            "capabilities": { "streaming": true, "pushNotifications": false },
            "securitySchemes": {
                "bearer": { "httpAuthSecurityScheme": { "scheme": "Bearer" } },
            },
            "securityRequirements": [{ "schemes": { "bearer": { "list": [] } } }],
            "defaultInputModes": ["text/plain", "application/json"],
            "defaultOutputModes": ["text/plain", "application/json"],
            "skills": [{
                "id": "recall",
                "name": "Recall",
                "description": "Finds what is remembered that answers a question",
                "tags": ["memory"],
            }],
        })
    }

    fn url(&self) -> &str {
        self.options.url.as_deref().unwrap_or_default().trim_end_matches('/')
    }
}
