//! Webhooks: who is told, and how a notice is signed and sent (Standard Webhooks).
//!
//! What is told and when is decided by the engine; here it becomes a request.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use yore_canon::encode::base64;
use yore_canon::hash::hmac_sha256;
use yore_domain::webhook::{Progress, Topic, Webhook};
use yore_domain::{Error, WebhookId};
use yore_engine::{Answered, Notice, Post};
use yore_http::Outward;

use crate::Omp;
use crate::conversations::texts;
use crate::error::{Refusal, Result};
use crate::map::Object;
use crate::routes::Asking;

/// Sends notices over HTTPS.
#[derive(Clone, Debug, Default)]
pub struct Messenger {
    outward: Outward,
}

impl Messenger {
    /// Sends by a way of its own.
    #[must_use]
    pub fn by(outward: Outward) -> Self {
        Self { outward }
    }
}

impl Post for Messenger {
    fn post<'a>(&'a self, webhook: &'a Webhook, notice: &'a Notice) -> BoxFuture<'a, Answered> {
        async move {
            let body = notice.body().to_string();
            let headers = signed(webhook, notice, &body);
            match self.outward.post(&webhook.url, &headers, body.into_bytes()).await {
                Ok(200..300) => Answered::Taken,
                Ok(410) => Answered::Gone,
                Ok(status) => Answered::Failed(format!("status {status}")),
                Err(reason) => Answered::Failed(reason),
            }
        }
        .boxed()
    }
}

/// The headers by which a listener knows that a notice is ours, new and whole.
fn signed(webhook: &Webhook, notice: &Notice, body: &str) -> [(&'static str, String); 3] {
    let seconds = notice.sent.micros().div_euclid(1_000_000);
    let said = format!("{}.{seconds}.{body}", notice.id);
    let signature = base64(&hmac_sha256(&webhook.secret, said.as_bytes()));
    [
        ("webhook-id", notice.id.clone()),
        ("webhook-timestamp", seconds.to_string()),
        ("webhook-signature", format!("v1,{signature}")),
    ]
}

impl Omp {
    /// Registers somebody; the answer alone holds the secret.
    pub(crate) async fn listen(
        &self,
        asking: &Asking,
        asked: &Object,
    ) -> Result<(WebhookId, Value)> {
        let url = asked.get("url").and_then(Value::as_str);
        let url = url.ok_or_else(|| Refusal::invalid("url", "must be a text"))?;
        self.options.outward.check(url)?;
        let topics = match asked.get("events") {
            None | Some(Value::Null) => Topic::ALL.to_vec(),
            Some(names) => texts("events", names.clone())?
                .iter()
                .map(|name| Topic::parse(name))
                .collect::<Option<Vec<Topic>>>()
                .ok_or_else(|| Refusal::invalid("events", "names one that is not known"))?,
        };
        let webhook = self.engine.add_webhook(&asking.call, url.to_owned(), topics).await?;
        let mut body = webhook_out(&webhook, &Progress::default());
        body["secret"] = format!("whsec_{}", base64(&webhook.secret)).into();
        Ok((webhook.id, body))
    }

    pub(crate) async fn listeners(&self, asking: &Asking) -> Result<Value> {
        let found = self.engine.webhooks(&asking.call).await?;
        let data: Vec<Value> = found.iter().map(|(hook, at)| webhook_out(hook, at)).collect();
        Ok(json!({"data": data, "has_more": false, "next_cursor": null}))
    }

    pub(crate) async fn stop_listening(&self, asking: &Asking, id: &str) -> Result<Value> {
        let id: WebhookId = id.parse().map_err(|_| Error::NotFound)?;
        self.engine.remove_webhook(&asking.call, id).await?;
        Ok(json!({"deleted": true, "id": id}))
    }

    /// Switches one off or on again.
    pub(crate) async fn switch_listener(
        &self,
        asking: &Asking,
        id: &str,
        asked: &Object,
    ) -> Result<Value> {
        let id: WebhookId = id.parse().map_err(|_| Error::NotFound)?;
        let active = match asked.get("active") {
            Some(Value::Bool(active)) if asked.len() == 1 => *active,
            _ => return Err(Refusal::invalid("active", "alone may be changed: true or false")),
        };
        self.engine.switch_webhook(&asking.call, id, active).await?;
        let found = self.engine.webhooks(&asking.call).await?;
        let found = found.iter().find(|(webhook, _)| webhook.id == id);
        let (webhook, progress) = found.ok_or(Error::NotFound)?;
        Ok(webhook_out(webhook, progress))
    }
}

fn webhook_out(webhook: &Webhook, progress: &Progress) -> Value {
    let mut body = json!({
        "id": webhook.id,
        "url": webhook.url,
        "events": webhook.topics.iter().map(|topic| topic.as_str()).collect::<Vec<_>>(),
        "created_at": webhook.created.to_string(),
        "active": !progress.off,
        "delivered": progress.delivered,
        "attempts": progress.attempts,
    });
    if let Some(next) = progress.next {
        body["next_attempt_at"] = next.to_string().into();
    }
    if let Some(error) = &progress.error {
        body["error"] = error.as_str().into();
    }
    body
}

#[cfg(test)]
mod tests {
    use yore_domain::Timestamp;

    use super::*;

    #[test]
    fn omp_181_notices_are_signed_as_standard_webhooks_has_it() {
        // The example of the published libraries.
        let secret = yore_canon::encode::from_base64("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let said = r#"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}"#;
        let signature = base64(&hmac_sha256(&secret, said.as_bytes()));
        assert_eq!(signature, "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let webhook = Webhook {
            id: WebhookId::random(),
            url: "https://hooks.example.com".into(),
            topics: vec![Topic::MemoryCreated],
            secret: [7; 32],
            created: Timestamp::MIN,
        };
        let notice = Notice {
            id: "msg_1".into(),
            topic: Topic::MemoryCreated,
            subject: "x".into(),
            at: Timestamp::from_millis(1_614_265_329_000),
            sent: Timestamp::from_millis(1_614_265_330_900),
        };
        let headers = signed(&webhook, &notice, "{}");
        assert_eq!(headers[1].1, "1614265330");
        let expected = hmac_sha256(&[7; 32], b"msg_1.1614265330.{}");
        assert_eq!(headers[2].1, format!("v1,{}", base64(&expected)));
        assert_eq!(
            notice.body(),
            json!({"id": "msg_1", "type": "memory.created",
                "timestamp": "2021-02-25T15:02:09Z", "data": {"id": "x"}})
        );
    }
}
