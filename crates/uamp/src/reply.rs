//! What the server itself says: envelopes that it signs.

use serde_json::{Value, json};
use yore_canon::hash::Sha256;
use yore_canon::json::Object;
use yore_canon::jws::{self, Unsigned};
use yore_canon::key::Algorithm;
use yore_canon::{did, jcs};
use yore_domain::stream::Letter;
use yore_domain::{MessageId, Result};
use yore_engine::{Call, Putting, Spoken};

use crate::delta::stamp;
use crate::envelope::Rejected;
use crate::intent::Intent;
use crate::receive::{Receipt, inbox_key};
use crate::refusal::Code;
use crate::{Core, NAME, Uamp};

/// What an envelope of ours says.
pub(crate) struct Reply<'a> {
    pub(crate) to: &'a str,
    pub(crate) intent: Intent,
    pub(crate) reply_to: Option<&'a str>,
    pub(crate) stream: Option<&'a str>,
    pub(crate) content: &'a Value,
}

impl Uamp {
    /// Writes to a registered agent in the server's name, for the owner; returns the message's id.
    pub async fn write_to(&self, call: &Call, to: &str, text: &str) -> Result<String> {
        let core = &self.0;
        let body = json!({ "type": "text/plain", "content": text });
        let (intent, reply_to, stream) = (Intent::Inform, None, None);
        let signed = core.written(Reply { to, intent, reply_to, stream, content: &body }, &body);
        let (id, digest, message) = signed.await?;
        let about = json!({
            "uamp_id": format!("urn:uuid:{id}"),
            "uamp_intent": intent.as_str(),
            "uamp_to": to,
            "uamp_digest": digest,
        });
        let at = core.engine.now();
        let said = Spoken { id: MessageId::random(), text: text.to_owned(), at, about };
        let (inbox, bytes) = (to.to_owned(), message.into_bytes());
        let put = Putting { protocol: NAME, inbox, id: id.to_string(), digest, bytes, said };
        core.engine.put_letter(call, put).await?;
        core.hub.moved(&inbox_key(to));
        Ok(format!("urn:uuid:{id}"))
    }
}

impl Uamp {
    /// Tells a sender of letters that lapsed before anybody fetched them, each once.
    pub(crate) async fn tell_lapsed(&self, call: &Call, sender: &str) -> Result<()> {
        let core = &self.0;
        for letter in core.engine.lapsed_letters(call, sender).await? {
            let id = letter.id.split(' ').next().unwrap_or_default();
            let content = json!({
                "code": Code::Unknown.as_str(),
                "message": "expired: the message was not fetched in time",
                "retry": false,
            });
            let reply_to = format!("urn:uuid:{id}");
            let (to, intent, reply_to, stream) = (sender, Intent::Error, Some(&*reply_to), None);
            let body = json!({ "type": "application/json", "content": content.to_string() });
            let reply = Reply { to, intent, reply_to, stream, content: &content };
            let (id, digest, message) = core.written(reply, &body).await?;
            let at = core.engine.now();
            let said =
                Spoken { id: MessageId::random(), text: String::new(), at, about: Value::Null };
            let (inbox, bytes) = (sender.to_owned(), message.into_bytes());
            let told = Putting { protocol: NAME, inbox, id: id.to_string(), digest, bytes, said };
            core.engine.return_letter(call, &letter, told).await?;
        }
        Ok(())
    }

    /// Hands out the letters of an inbox, after those about letters of its own that lapsed.
    pub(crate) async fn letters(
        &self,
        call: &Call,
        inbox: &str,
        limit: usize,
    ) -> Result<Vec<Letter>> {
        self.tell_lapsed(call, inbox).await?;
        self.0.engine.take_letters(call, inbox, limit).await
    }
}

impl Core {
    /// Writes and signs an envelope.
    pub(crate) async fn envelope(&self, reply: Reply<'_>) -> Result<String> {
        let content = reply.content.to_string();
        let body = json!({ "type": "application/json", "content": content });
        Ok(self.written(reply, &body).await?.2)
    }

    /// Writes and signs an envelope with a body; returns its id and digest, too.
    async fn written(&self, reply: Reply<'_>, body: &Value) -> Result<(MessageId, String, String)> {
        let id = MessageId::random();
        let mut object = Object::new();
        let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
        put("id", format!("urn:uuid:{id}").into());
        put("ts", stamp(self.engine.now()).into());
        put("from", self.engine.server_did().await?.into());
        put("to", json!([reply.to]));
        put("intent", reply.intent.as_str().into());
        if let Some(id) = reply.reply_to {
            put("reply_to", id.into());
        }
        if let Some(stream) = reply.stream {
            put("stream_id", stream.into());
        }
        put("body", body.clone());
        let digest = Sha256::of(jcs::canonical_object(&object));
        let payload = jws::digest_payload(&digest);
        let unsigned =
            Unsigned::new(Algorithm::Ed25519, &self.kid().await?, None, payload.as_bytes());
        let signature = self.engine.sign_as_server(unsigned.input()).await?;
        object.insert("sig".into(), unsigned.detached(&signature).into());
        Ok((id, digest.to_hex(), jcs::canonical_object(&object)))
    }

    /// Writes the receipt of a message that was taken in.
    pub(crate) async fn accepted(&self, receipt: &Receipt) -> Result<String> {
        self.envelope(Reply {
            to: &receipt.from,
            intent: Intent::Progress,
            reply_to: Some(&receipt.id),
            stream: receipt.stream.as_deref(),
            content: &json!({ "state": "accepted", "duplicate": receipt.duplicate }),
        })
        .await
    }

    /// Writes the error that answers a message. Who cannot be named is answered all the same.
    pub(crate) async fn error(&self, rejected: &Rejected) -> Result<String> {
        self.envelope(Reply {
            to: rejected.from.as_deref().unwrap_or("did:web:unknown.invalid"),
            intent: Intent::Error,
            reply_to: rejected.id.as_deref(),
            stream: rejected.stream.as_deref(),
            content: &rejected.refusal.content(),
        })
        .await
    }

    /// Signs a document that is served as it is.
    pub(crate) async fn signed(&self, typ: &str, document: &Value) -> Result<String> {
        let payload = jcs::canonical(document);
        let unsigned =
            Unsigned::new(Algorithm::Ed25519, &self.kid().await?, Some(typ), payload.as_bytes());
        let signature = self.engine.sign_as_server(unsigned.input()).await?;
        Ok(unsigned.attached(&signature))
    }

    /// The name of the server's key.
    pub(crate) async fn kid(&self) -> Result<String> {
        let did = self.engine.server_did().await?;
        if did.starts_with("did:web:") {
            return Ok(format!("{did}#{KEY}"));
        }
        Ok(did::KeyId::of_key(&self.engine.server_key().await?).to_string())
    }
}

/// What the server's key is called in its DID document.
pub(crate) const KEY: &str = "key-1";
