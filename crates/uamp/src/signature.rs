//! Who signed an envelope.

use yore_canon::did::KeyId;
use yore_canon::hash::Sha256;
use yore_canon::jws::{self, Compact};
use yore_canon::key::VerifyingKey;

use crate::envelope::Envelope;
use crate::refusal::{Code, Refusal, Result};
use crate::resolve::Documents;

/// Keys that are tried when a signature names none.
const TRIED: usize = 8;

/// Checks the signature over a digest and returns the key that made it, by its spelling.
///
/// An algorithm that is not accepted is refused before a key is looked for, and a key that is
/// not the sender's before anything is fetched.
pub(crate) async fn verify(
    envelope: &Envelope,
    digest: &Sha256,
    documents: &Documents,
) -> Result<String> {
    let refused = |reason: &str| Refusal::new(Code::Unauthenticated, reason);
    let compact = Compact::parse(&envelope.sig)
        .map_err(|error| refused(&format!("the signature cannot be read: {error}")))?;
    let named = match &compact.header().kid {
        None => None,
        Some(kid) => {
            let kid: KeyId = kid.parse().map_err(|_| refused("kid does not name a key"))?;
            if *kid.did() != envelope.from {
                return Err(refused("kid is not a key of the sender"));
            }
            Some(kid)
        }
    };
    let document = documents.of(&envelope.from).await?;
    let payload = jws::digest_payload(digest);
    let algorithm = compact.header().algorithm;
    let mut tried = document
        .candidates(algorithm, document.methods().len())
        .filter(|method| named.as_ref().is_none_or(|kid| method.id == *kid))
        .take(TRIED);
    let signer =
        tried.find(|method| compact.verify_detached(payload.as_bytes(), &method.key).is_ok());
    let spelt = |key: &VerifyingKey| match envelope.from.method() {
        // A did:key is the spelling of its only key.
        "key" => envelope.from.specific().to_owned(),
        _ => key.to_multibase(),
    };
    signer.map(|method| spelt(&method.key)).ok_or_else(|| refused("the signature does not verify"))
}
