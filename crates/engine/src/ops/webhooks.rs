//! Who is told of changes over the web.
//!
//! Registrations stand in one setting of the vault, how far each has been told in another, so
//! that both outlive the server.

use serde::Serialize;
use serde_json::{Value, json};
use yore_domain::grant::Verb;
use yore_domain::webhook::{Progress, Topic, Webhook};
use yore_domain::{Error, Result, VaultId, WebhookId};
use yore_policy::Need;
use yore_store::{Precondition, Snapshot, Write};

use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Session, Trace};
use crate::token::Seed;

/// The setting that holds the registrations.
const REGISTERED: &str = "webhooks";
/// How many a vault has at most.
const MOST: usize = 16;
/// Bytes of an address.
const ADDRESS: usize = 2048;

#[derive(Debug, Serialize)]
struct Register {
    url: String,
    topics: Vec<Topic>,
    #[serde(skip)]
    seed: Seed,
}

impl Engine {
    /// Registers an address that is told of changes from now on. Its secret is in the answer, and
    /// in no other.
    pub async fn add_webhook(
        &self,
        call: &Call,
        url: String,
        topics: Vec<Topic>,
    ) -> Result<Webhook> {
        let seed = self.seed(call, "webhook")?;
        let secret = seed.bytes();
        let need = Need::one("webhook.add", Verb::Admin);
        let input = Register { url, topics, seed };
        let plan = self.change(call, need, input, |engine, session, snapshot, input| {
            Box::pin(async move {
                only_keepers(session)?;
                register(engine, session, snapshot, input).await
            })
        });
        // The answer that is kept for retries holds no secret.
        let (told, vault): (Webhook, VaultId) = plan.await?;
        self.0.work.listens(vault);
        Ok(Webhook { secret, ..told })
    }

    /// Lists who is told, and how far each has been.
    pub async fn webhooks(&self, call: &Call) -> Result<Vec<(Webhook, Progress)>> {
        self.look(call, Need::one("webhook.list", Verb::Admin), (), |_, session, snapshot, ()| {
            Box::pin(async move {
                only_keepers(session)?;
                let mut found = Vec::new();
                for webhook in registered(snapshot).await? {
                    let progress = progress(snapshot, webhook.id).await?.unwrap_or_default();
                    found.push((webhook, progress));
                }
                let trace = Trace::count(found.len());
                Ok((found, trace))
            })
        })
        .await
    }

    /// Removes a registration.
    pub async fn remove_webhook(&self, call: &Call, id: WebhookId) -> Result<()> {
        let need = Need::one("webhook.remove", Verb::Admin);
        self.change(call, need, id, |_, session, snapshot, id| {
            Box::pin(async move {
                only_keepers(session)?;
                let mut all = registered(snapshot).await?;
                let before = json!(all);
                let count = all.len();
                all.retain(|webhook| webhook.id != *id);
                if all.len() == count {
                    return Err(Error::NotFound);
                }
                let writes = vec![
                    Write::Setting(REGISTERED.to_owned(), json!(all)),
                    Write::Setting(place(*id), Value::Null),
                ];
                let trace = Trace::default().with("webhook", id.to_string());
                let mut planned = Planned::done((), writes).traced(trace);
                planned
                    .preconditions
                    .push(Precondition::Setting(REGISTERED.to_owned(), Some(before)));
                Ok(planned)
            })
        })
        .await
    }

    /// Switches a registration off, or on again: what waited is then told.
    pub async fn switch_webhook(&self, call: &Call, id: WebhookId, on: bool) -> Result<()> {
        let need = Need::one("webhook.switch", Verb::Admin);
        let switched = self.change(call, need, (id, on), |_, session, snapshot, (id, on)| {
            Box::pin(async move {
                only_keepers(session)?;
                let known = registered(snapshot).await?.iter().any(|webhook| webhook.id == *id);
                let stored = snapshot.setting(&place(*id)).await?;
                let before = progress(snapshot, *id).await?.filter(|_| known);
                let before = before.ok_or(Error::NotFound)?;
                let after = Progress { off: !on, attempts: 0, next: None, error: None, ..before };
                let trace = Trace::default().with("webhook", id.to_string()).with("on", *on);
                let write = Write::Setting(place(*id), json!(after));
                let mut planned = Planned::done((), vec![write]).traced(trace);
                planned.preconditions.push(Precondition::Setting(place(*id), stored));
                Ok(planned)
            })
        });
        switched.await?;
        self.0.work.listen_again();
        Ok(())
    }
}

/// Whoever listens learns of everything, so nobody registers who sees less.
fn only_keepers(session: &Session) -> Result<()> {
    match session.permit.principal().keeps() {
        true => Ok(()),
        false => Err(Error::forbidden("only who looks after the whole vault decides who is told")),
    }
}

async fn register(
    engine: &Engine,
    session: &Session,
    snapshot: &dyn Snapshot,
    input: &Register,
) -> Result<Planned<(Webhook, VaultId)>> {
    let Register { url, topics, seed } = input;
    if url.len() > ADDRESS {
        return Err(Error::too_large("url", ADDRESS as u64));
    }
    if topics.is_empty() {
        return Err(Error::invalid("events", "must name at least one"));
    }
    let mut all = registered(snapshot).await?;
    if all.len() >= MOST {
        return Err(Error::conflict(format!("there are {MOST} webhooks already")));
    }
    let before = snapshot.setting(REGISTERED).await?;
    let mut topics = topics.clone();
    topics.sort();
    topics.dedup();
    let webhook = Webhook {
        id: WebhookId::random(),
        url: url.clone(),
        topics,
        secret: seed.bytes(),
        created: session.now,
    };
    let newest = *engine.store().watch(&session.permit).await?.borrow();
    all.push(webhook.clone());
    let progress = Progress { after: newest, ..Progress::default() };
    let writes = vec![
        Write::Setting(REGISTERED.to_owned(), json!(all)),
        Write::Setting(place(webhook.id), json!(progress)),
    ];
    let trace = Trace::default().with("webhook", webhook.id.to_string());
    let told = (Webhook { secret: [0; 32], ..webhook }, session.permit.vault());
    let mut planned = Planned::done(told, writes).traced(trace);
    planned.preconditions.push(Precondition::Setting(REGISTERED.to_owned(), before));
    Ok(planned)
}

/// Who is registered.
pub(crate) async fn registered(snapshot: &dyn Snapshot) -> Result<Vec<Webhook>> {
    match snapshot.setting(REGISTERED).await? {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(stored) => serde_json::from_value(stored).map_err(Error::internal),
    }
}

/// How far one has been told.
pub(crate) async fn progress(snapshot: &dyn Snapshot, id: WebhookId) -> Result<Option<Progress>> {
    match snapshot.setting(&place(id)).await? {
        None | Some(Value::Null) => Ok(None),
        Some(stored) => serde_json::from_value(stored).map(Some).map_err(Error::internal),
    }
}

/// The setting that says how far one has been told.
pub(crate) fn place(id: WebhookId) -> String {
    format!("webhook:{id}")
}
