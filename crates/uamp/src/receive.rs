//! From bytes to a message that was taken in: every check, in the order the protocol fixes.

use serde_json::{Value, json};
use yore_canon::encode;
use yore_canon::hash::Sha256;
use yore_canon::json::Object;
use yore_domain::grant::Verb;
use yore_domain::stream::Pending;
use yore_domain::{MessageId, Span};
use yore_engine::{Acceptance, Accepted, Acknowledged, Call, Incoming, Opening, Spoken};

use crate::envelope::{Envelope, Rejected};
use crate::hub::Key;
use crate::intent::Intent;
use crate::refusal::{Code, Refusal, Result};
use crate::token;
use crate::work::Request;
use crate::{Core, Uamp, signature};

/// How long a letter waits in an inbox.
const LETTER: Span = Span::days(7);

/// What a sender is told at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The message's id, as it was sent.
    pub id: String,
    /// Its sender.
    pub from: String,
    /// The stream on which it is answered.
    pub stream: Option<String>,
    /// Whether it was taken in before.
    pub duplicate: bool,
}

impl Uamp {
    /// Takes a message in and begins to work on it. When this returns it is on disk.
    pub async fn receive(&self, call: &Call, bytes: &[u8]) -> Result<Receipt, Rejected> {
        let Core { options, .. } = &*self.0;
        let envelope = Envelope::parse(bytes, options.largest, options.ids)?;
        self.take(call, envelope, bytes).await
    }

    /// The same for an envelope whose form was read already.
    pub(crate) async fn take(
        &self,
        call: &Call,
        envelope: Envelope,
        bytes: &[u8],
    ) -> Result<Receipt, Rejected> {
        let (id, stream) = (Some(envelope.spelt().to_owned()), envelope.stream.clone());
        let from = Some(envelope.from.as_str().to_owned());
        let taken = self.judge(call, envelope, bytes).await;
        taken.map_err(|refusal| Rejected { refusal: Box::new(refusal), id, stream, from })
    }

    async fn judge(&self, call: &Call, envelope: Envelope, bytes: &[u8]) -> Result<Receipt> {
        let core = &self.0;
        if call.credentials.bearer.is_none()
            && call.credentials.claims.is_empty()
            && call.credentials.certificate.is_none()
            && call.credentials.unreadable.is_none()
        {
            return Err(Refusal::new(Code::Unauthenticated, "no credential was presented"));
        }
        let identity = core.engine.identify(call, Verb::Read).await?;
        let digest = envelope.digest();
        let key = signature::verify(&envelope, &digest, &core.documents).await?;
        let server = core.engine.server_did().await?;
        if envelope.to.iter().any(|to| *to == server || to == identity.did()) {
            core.understood(&envelope)?;
        }
        let narrowed = core.narrowed(call, &envelope)?;
        let message = core.incoming(&envelope, &digest, &key, bytes)?;
        let accepted = match core.engine.accept(&narrowed, message).await {
            Ok(accepted) => accepted,
            // Form, signature and time of the token hold: what is left is whether it counts here.
            Err(error) if envelope.cap_token.is_some() => {
                let refusal = Refusal::from(error);
                let foreign = refusal.code == Code::Unauthenticated;
                let code = if foreign { Code::Forbidden } else { refusal.code };
                return Err(Refusal { code, ..refusal });
            }
            Err(error) => return Err(error.into()),
        };
        self.dispatch(narrowed, envelope, accepted).await
    }

    /// Does what the message means to do, or begins it.
    async fn dispatch(
        &self,
        call: Call,
        envelope: Envelope,
        accepted: Accepted,
    ) -> Result<Receipt> {
        let Accepted { acceptance, stream, own, ticket } = accepted;
        let duplicate = match acceptance {
            Acceptance::Reused => {
                let reason = "id_reuse: the id belongs to another message";
                return Err(Refusal::new(Code::Malformed, reason));
            }
            Acceptance::Stale => {
                let reason = "stale: the message's time is too far from now";
                return Err(Refusal::new(Code::Unauthenticated, reason));
            }
            Acceptance::New => false,
            Acceptance::Unsettled | Acceptance::Repeated => true,
        };
        let receipt = Receipt {
            id: envelope.spelt().to_owned(),
            from: envelope.from.as_str().to_owned(),
            stream: stream.clone(),
            duplicate,
        };
        let settled = acceptance == Acceptance::Repeated;
        for inbox in &envelope.to {
            self.0.hub.moved(&inbox_key(inbox));
        }
        match envelope.intent {
            Intent::Subscribe if envelope.resumes()? => {
                self.acknowledged(&call, &envelope).await?;
            }
            Intent::Ask | Intent::Propose | Intent::Subscribe => {
                if let Some(stream) = stream.filter(|_| own && !settled) {
                    self.begin(Request { call, envelope, ticket, stream, duplicate }).await?;
                }
            }
            Intent::Inform => {
                if own && !settled {
                    self.learn(&call, &envelope).await?;
                    self.0.engine.settle_message(&ticket).await?;
                }
            }
            Intent::Progress | Intent::Error => self.acknowledged(&call, &envelope).await?,
            Intent::Cancel => self.cancel(&call, &envelope).await?,
            Intent::Confirm | Intent::Deny => self.collected(&call, &envelope).await?,
            Intent::Notify => {}
        }
        Ok(receipt)
    }

    /// Takes an acknowledgement, when the message is one: how far its sender has the stream.
    async fn acknowledged(&self, call: &Call, envelope: &Envelope) -> Result<()> {
        let Some(stream) = &envelope.stream else { return Ok(()) };
        match envelope.has_below()? {
            None => Ok(()),
            Some(below) => self.acknowledge(call, envelope.from.as_str(), stream, below).await,
        }
    }

    /// Notes that a receiver has every frame below a number.
    pub(crate) async fn acknowledge(
        &self,
        call: &Call,
        sender: &str,
        stream: &str,
        below: u64,
    ) -> Result<()> {
        let core = &self.0;
        match core.engine.acknowledge(call, sender, stream, below).await {
            Ok(Acknowledged::Done(_)) => {
                core.hub.moved(&(sender.to_owned(), stream.to_owned()));
                Ok(())
            }
            Ok(Acknowledged::Beyond { first, next }) => Err(Refusal::missing(first, next)),
            // Whether somebody else has such a stream is nobody's business.
            Err(yore_domain::Error::NotFound) => {
                Err(Refusal::new(Code::Forbidden, "the stream is not the sender's"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A confirmation or a denial of a letter says that it arrived.
    async fn collected(&self, call: &Call, envelope: &Envelope) -> Result<()> {
        if let Some(id) = &envelope.reply_to {
            let inbox = envelope.from.as_str();
            self.0.engine.acknowledge_letter(call, inbox, id).await?;
        }
        Ok(())
    }
}

impl Envelope {
    /// Whether it goes on with a stream that is there, instead of opening one.
    pub(crate) fn resumes(&self) -> Result<bool> {
        Ok(self.stream.is_some() && self.has_below()?.is_some())
    }

    /// Below which frame its sender has all of a stream, if it says so.
    pub(crate) fn has_below(&self) -> Result<Option<u64>> {
        let acknowledges =
            matches!(self.intent, Intent::Progress | Intent::Error | Intent::Subscribe);
        if !acknowledges || self.body.kind != "application/json" {
            return Ok(None);
        }
        acknowledged_below(&self.body.object()?)
    }
}

/// Below which frame a receiver has everything: whoever misses a frame has those before it.
pub(crate) fn acknowledged_below(said: &Object) -> Result<Option<u64>> {
    let below = match (said.get("ack"), said.get("expected")) {
        (Some(ack), _) => ack.as_u64().and_then(|last| last.checked_add(1)),
        (None, Some(expected)) => expected.as_u64(),
        (None, None) => return Ok(None),
    };
    let wrong = || Refusal::malformed("ack", "is not the number of a frame");
    below.map(Some).ok_or_else(wrong)
}

/// Under which key those wait who empty an inbox.
pub(crate) fn inbox_key(did: &str) -> Key {
    (did.to_owned(), " inbox".to_owned())
}

impl Core {
    /// The call under the sender's capability token, too. A token never widens.
    fn narrowed(&self, call: &Call, envelope: &Envelope) -> Result<Call> {
        let mut call = call.clone();
        call.operation = None;
        if let Some(token) = &envelope.cap_token {
            let claims = token::claims(token, envelope.from.as_str(), self.engine.now())?;
            call.credentials.claims.push(claims);
        }
        Ok(call)
    }

    /// What the engine is told of a message.
    fn incoming(
        &self,
        envelope: &Envelope,
        digest: &Sha256,
        key: &str,
        bytes: &[u8],
    ) -> Result<Incoming> {
        let now = self.engine.now();
        let opening = envelope.intent.opens() && !envelope.resumes()?;
        let opens = match opening {
            false => None,
            true => Some(Opening {
                id: match &envelope.stream {
                    Some(id) => id.clone(),
                    None => minted(),
                },
                window: envelope.window,
                pending: match envelope.intent {
                    Intent::Subscribe => Pending::Changes { cursor: None },
                    Intent::Propose => Pending::Decision { hold: None },
                    Intent::Ask
                    | Intent::Inform
                    | Intent::Confirm
                    | Intent::Deny
                    | Intent::Progress
                    | Intent::Cancel
                    | Intent::Notify
                    | Intent::Error => Pending::Answer { until: now.plus(self.answer_within()) },
                },
            }),
        };
        let kept = match envelope.intent {
            // They move a stream, and say nothing.
            Intent::Progress | Intent::Cancel => None,
            Intent::Ask
            | Intent::Inform
            | Intent::Propose
            | Intent::Confirm
            | Intent::Deny
            | Intent::Subscribe
            | Intent::Notify
            | Intent::Error => Some(said(envelope, digest, key)?),
        };
        Ok(Incoming {
            sender: envelope.from.as_str().to_owned(),
            id: envelope.id.clone(),
            digest: digest.to_hex(),
            sent: envelope.ts,
            tolerance: self.options.tolerance,
            to: envelope.to.clone(),
            reply_to: envelope.reply_to.clone(),
            context: envelope.context.clone(),
            opens,
            unsettled: opening || envelope.intent == Intent::Inform,
            expires: envelope.expires.unwrap_or_else(|| now.plus(LETTER)),
            bytes: bytes.to_vec(),
            said: kept,
        })
    }

    fn answer_within(&self) -> Span {
        Span::seconds(self.options.answer_within.as_secs())
    }
}

/// An id that nobody can guess.
fn minted() -> String {
    let random = [MessageId::random().bytes(), MessageId::random().bytes()].concat();
    format!("str-{}", encode::base64url(&random))
}

/// What the transcript keeps: the words and who vouched for them, never the token.
fn said(envelope: &Envelope, digest: &Sha256, key: &str) -> Result<Spoken> {
    let text = match envelope.body.decoded() {
        Ok(bytes) => String::from_utf8(bytes).unwrap_or_default(),
        Err(refusal) => return Err(refusal),
    };
    let mut about = json!({
        "uamp_id": envelope.spelt(),
        "uamp_intent": envelope.intent.as_str(),
        "uamp_from": envelope.from.as_str(),
        "uamp_type": envelope.body.kind,
        "uamp_digest": digest.to_hex(),
        "uamp_verdict": "verified",
        "uamp_key": key,
    });
    if let Some(token) = &envelope.cap_token {
        about["uamp_cap_token_sha256"] = Value::from(token::thumbprint(token));
    }
    Ok(Spoken { id: MessageId::random(), text, at: envelope.ts, about })
}
