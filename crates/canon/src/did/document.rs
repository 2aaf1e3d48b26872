//! DID documents: the keys an identifier vouches for.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Did, Error, KeyId};
use crate::json::{self, Limits, Object};
use crate::key::{Algorithm, VerifyingKey};

/// The limits under which a fetched document is parsed.
pub const DOCUMENT_LIMITS: Limits = Limits { bytes: 64 * 1024, depth: 16, nodes: 4096 };

/// The most verification methods a document may declare.
pub const MAX_METHODS: usize = 64;

/// A key that its DID lists for authentication or assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// The name of the key.
    pub id: KeyId,
    /// The key itself.
    pub key: VerifyingKey,
}

/// The keys of one DID that may sign, in the order they were declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    id: Did,
    methods: Vec<Method>,
}

impl Document {
    /// Reads the document fetched for `did`.
    ///
    /// Methods of unknown types, methods controlled by someone else and methods listed in
    /// neither `assertionMethod` nor `authentication` are passed over.
    pub fn parse(bytes: &[u8], did: &Did) -> Result<Self, Error> {
        let document = json::parse_object(bytes, DOCUMENT_LIMITS)?;
        match document.get("id") {
            Some(Value::String(id)) if id == did.as_str() => {}
            Some(Value::String(id)) => {
                return Err(Error::WrongSubject { expected: did.clone(), found: id.clone() });
            }
            Some(_) | None => return Err(Error::Document("id is not a string")),
        }

        let mut declared: Vec<&Object> = Vec::new();
        for entry in list(&document, "verificationMethod")? {
            declared.push(
                entry
                    .as_object()
                    .ok_or(Error::Document("verificationMethod entry is not an object"))?,
            );
        }
        let mut listed = HashSet::new();
        for relation in ["assertionMethod", "authentication"] {
            for entry in list(&document, relation)? {
                let id = match entry {
                    Value::String(id) => id,
                    Value::Object(method) => {
                        declared.push(method);
                        member(method, "id")?
                    }
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                        return Err(Error::Document("relation entry is not a method"));
                    }
                };
                listed.insert(absolute(did, id));
            }
        }
        if declared.len() > MAX_METHODS {
            return Err(Error::Document("too many verification methods"));
        }

        let mut seen = HashSet::new();
        let mut methods = Vec::new();
        for method in declared {
            let id = absolute(did, member(method, "id")?);
            if !seen.insert(id.clone()) {
                return Err(Error::Document("two verification methods share an id"));
            }
            let own = method.get("controller").and_then(Value::as_str) == Some(did.as_str());
            if !own || !listed.contains(&id) {
                continue;
            }
            let Ok(id) = id.parse::<KeyId>() else {
                continue;
            };
            if let Some(key) = material(method)
                && id.did() == did
            {
                methods.push(Method { id, key });
            }
        }
        Ok(Self { id: did.clone(), methods })
    }

    /// Returns the document a `did:key` implies.
    pub fn of_key_did(did: &Did) -> Result<Self, Error> {
        let key = did.key()?;
        Ok(Self { id: did.clone(), methods: vec![Method { id: KeyId::of_key(&key), key }] })
    }

    /// Makes the document of a DID from its keys, each with the fragment that names it.
    pub fn new<'a>(
        id: Did,
        keys: impl IntoIterator<Item = (&'a str, VerifyingKey)>,
    ) -> Result<Self, Error> {
        let mut methods: Vec<Method> = Vec::new();
        for (fragment, key) in keys {
            let id = KeyId::new(id.clone(), fragment)?;
            if methods.iter().any(|method| method.id == id) {
                return Err(Error::Document("two verification methods share an id"));
            }
            methods.push(Method { id, key });
        }
        if methods.len() > MAX_METHODS {
            return Err(Error::Document("too many verification methods"));
        }
        Ok(Self { id, methods })
    }

    /// Returns the identifier this document speaks for.
    pub const fn id(&self) -> &Did {
        &self.id
    }

    /// Returns every key that may sign.
    pub fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// Returns the key of that name.
    pub fn key(&self, id: &KeyId) -> Option<&VerifyingKey> {
        self.methods.iter().find_map(|method| (method.id == *id).then_some(&method.key))
    }

    /// Returns the first `most` keys that fit an algorithm, for signatures that name no key.
    pub fn candidates(&self, algorithm: Algorithm, most: usize) -> impl Iterator<Item = &Method> {
        self.methods.iter().filter(move |method| method.key.algorithm() == algorithm).take(most)
    }

    /// Returns the JSON to publish, with every key as a JSON Web Key.
    pub fn to_json(&self) -> Value {
        let ids: Vec<String> = self.methods.iter().map(|method| method.id.to_string()).collect();
        let methods: Vec<Value> = self
            .methods
            .iter()
            .map(|method| {
                json!({
                    "id": method.id.to_string(),
                    "type": "JsonWebKey2020",
                    "controller": self.id,
                    "publicKeyJwk": method.key.to_jwk(),
                })
            })
            .collect();
        json!({
            "@context": [
                "https://www.w3.org/ns/did/v1",
                "https://w3id.org/security/suites/jws-2020/v1",
            ],
            "id": self.id,
            "verificationMethod": methods,
            "authentication": ids,
            "assertionMethod": ids,
        })
    }
}

fn list<'a>(document: &'a Object, name: &'static str) -> Result<&'a [Value], Error> {
    match document.get(name) {
        None => Ok(&[]),
        Some(Value::Array(entries)) => Ok(entries),
        Some(_) => Err(Error::Document("relation is not a list")),
    }
}

fn member<'a>(method: &'a Object, name: &'static str) -> Result<&'a String, Error> {
    match method.get(name) {
        Some(Value::String(text)) => Ok(text),
        Some(_) | None => Err(Error::Document("verification method has no id")),
    }
}

/// A method may be named by its fragment alone.
fn absolute(did: &Did, id: &str) -> String {
    if id.starts_with('#') { format!("{did}{id}") } else { id.to_owned() }
}

/// Returns the key a method carries, unless it carries none, two, or one of an unknown kind.
fn material(method: &Object) -> Option<VerifyingKey> {
    match (method.get("publicKeyJwk"), method.get("publicKeyMultibase")) {
        (Some(jwk), None) => VerifyingKey::from_jwk(jwk).ok(),
        (None, Some(Value::String(text))) => VerifyingKey::from_multibase(text).ok(),
        (Some(_), Some(_)) | (None, Some(_) | None) => None,
    }
}
