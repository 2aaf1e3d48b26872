//! Tells webhooks what happened, from the outbox.
//!
//! A notice is sent until it is taken, and only then the next: a listener that was away gets
//! everything, in order, and the same notice has the same id each time. How far each has come is
//! kept in its vault, so a restart loses nothing; at worst a notice comes twice. One that is
//! refused for three days switches its webhook off.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use yore_canon::encode::hex;
use yore_canon::hash::hmac_sha256;
use yore_domain::change::{Change, What};
use yore_domain::class::Surface;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::memory::Cause;
use yore_domain::webhook::{Progress, Topic, Webhook};
use yore_domain::{Result, Seq, Span, Timestamp, VaultId, WebhookId};
use yore_policy::{Need, Permit, Principal, authorise};
use yore_store::{Precondition, Snapshot, Write};

use super::Background;
use crate::engine::Engine;
use crate::ops::webhooks::{place, progress, registered};
use crate::ops::work::Work;
use crate::run::Trace;

/// How often it is looked for something new.
const LOOK: Duration = Duration::from_secs(1);
/// How often vaults are looked at whose webhooks another server took in.
const ROUND: Duration = Duration::from_secs(600);
/// What telling is called among servers, and how long one that says nothing more has it: longer
/// than an attempt may take.
const TELLING: &str = "tell";
const TURN: Duration = Duration::from_secs(60);
/// How many changes are read at once.
const BATCH: usize = 256;
/// After how many changes that concern nobody the place is written down.
const PASSED: u64 = 4096;
/// How long each attempt waits for the next, in seconds.
const RESTS: [u64; 9] = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];

/// One thing that somebody is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The same for each attempt.
    pub id: String,
    /// What happened.
    pub topic: Topic,
    /// The id of what it happened to.
    pub subject: String,
    /// When it happened.
    pub at: Timestamp,
    /// When this attempt is made.
    pub sent: Timestamp,
}

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// It was taken.
    Taken,
    /// Nobody listens there any more.
    Gone,
    /// It was not; why is told to the owner.
    Failed(String),
}

/// Sends notices.
pub trait Post: Send + Sync {
    /// Sends one, and says what became of it within a bounded time.
    fn post<'a>(&'a self, webhook: &'a Webhook, notice: &'a Notice) -> BoxFuture<'a, Answered>;
}

/// How far each webhook was looked for, past what is written down.
#[derive(Debug, Default)]
struct Looked(BTreeMap<WebhookId, Seq>);

/// What became of one look at a webhook.
enum Step {
    /// There is nothing to tell up to here.
    Nothing(Seq),
    /// It was tried.
    Tried(Progress),
}

impl Engine {
    /// Starts telling webhooks.
    #[must_use]
    pub fn start_telling(&self, post: Arc<dyn Post>) -> Background {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(run(self.clone(), post, stopped));
        Background { stop, task }
    }

    /// Tells every webhook of every vault what is due now.
    pub async fn tell_all(&self, post: &dyn Post) -> Result<()> {
        let mut looked = Looked::default();
        for vault in self.all_vaults().await? {
            self.tell(vault, post, &mut looked).await?;
        }
        Ok(())
    }

    /// Tells the webhooks of a vault; says whether there are any.
    async fn tell(&self, vault: VaultId, post: &dyn Post, looked: &mut Looked) -> Result<bool> {
        let permit = self.telling(vault)?;
        let webhooks = {
            let snapshot = self.store().snapshot(&permit).await?;
            registered(&*snapshot).await?
        };
        // Of several servers one tells, so that everything is told once and in order.
        if !webhooks.is_empty() && !self.takes(vault, TELLING, TURN).await? {
            return Ok(true);
        }
        for webhook in &webhooks {
            self.tell_one(&permit, webhook, post, looked).await?;
        }
        Ok(!webhooks.is_empty())
    }

    /// A permit to read what may be told live.
    fn telling(&self, vault: VaultId) -> Result<Permit> {
        let (operation, verbs) = ("webhook.tell", Verbs::of(&[Verb::Admin]));
        let need = Need::of(operation, verbs, Surface::Stream);
        authorise(&Principal::system(vault, operation), need, self.now())
    }

    async fn tell_one(
        &self,
        permit: &Permit,
        webhook: &Webhook,
        post: &dyn Post,
        looked: &mut Looked,
    ) -> Result<()> {
        loop {
            let snapshot = self.store().snapshot(permit).await?;
            let Some(known) = progress(&*snapshot, webhook.id).await? else { return Ok(()) };
            if known.off || known.next.is_some_and(|next| self.now() < next) {
                return Ok(());
            }
            let from = looked.0.get(&webhook.id).copied().unwrap_or_default().max(known.after);
            let found = self.next_notice(permit, &*snapshot, webhook, from).await?;
            drop(snapshot);
            let step = match found {
                Err(passed) => Step::Nothing(passed),
                Ok((seq, notice)) => {
                    let answered = post.post(webhook, &notice).await;
                    Step::Tried(after(&known, seq, answered, self.now()))
                }
            };
            let moved = match step {
                Step::Nothing(passed) if passed.0 < known.after.0 + PASSED => {
                    looked.0.insert(webhook.id, passed);
                    return Ok(());
                }
                Step::Nothing(passed) => Progress { after: passed, ..known.clone() },
                Step::Tried(moved) => moved,
            };
            // Whoever switched or removed it meanwhile has the last word.
            let unmoved = Precondition::Setting(place(webhook.id), Some(json!(known)));
            let write = Write::Setting(place(webhook.id), json!(moved));
            let trace = Trace::default()
                .with("webhook", webhook.id.to_string())
                .with("delivered", moved.delivered - known.delivered)
                .with("attempts", moved.attempts);
            self.commit_own(permit, vec![write], vec![unmoved], trace).await?;
            looked.0.remove(&webhook.id);
        }
    }

    /// The next thing to tell, or how far there is none.
    async fn next_notice(
        &self,
        permit: &Permit,
        snapshot: &dyn Snapshot,
        webhook: &Webhook,
        from: Seq,
    ) -> Result<Result<(Seq, Notice), Seq>> {
        let mut passed = from;
        loop {
            let changes = snapshot.changes(passed, BATCH).await?;
            if changes.is_empty() {
                return Ok(Err(passed));
            }
            for change in changes {
                passed = change.seq;
                let told = about(permit, snapshot, &change).await?;
                let Some((topic, subject)) = told.filter(|(t, _)| webhook.topics.contains(t))
                else {
                    continue;
                };
                let said = json!([webhook.id, change.seq, change.at]).to_string();
                let tag =
                    hmac_sha256(&*self.0.parts.local_key, format!("notice {said}").as_bytes());
                let id = format!("msg_{}", hex(&tag[..16]));
                let (at, sent) = (change.at, self.now());
                return Ok(Ok((change.seq, Notice { id, topic, subject, at, sent })));
            }
        }
    }
}

/// Where a webhook stands after an attempt.
fn after(known: &Progress, seq: Seq, answered: Answered, now: Timestamp) -> Progress {
    match answered {
        Answered::Taken => {
            Progress { after: seq, delivered: known.delivered + 1, ..Progress::default() }
        }
        Answered::Gone => {
            Progress { off: true, error: Some("nobody listens there".into()), ..known.clone() }
        }
        Answered::Failed(reason) => {
            let rest = RESTS.get(known.attempts as usize);
            Progress {
                attempts: known.attempts + 1,
                next: rest.map(|seconds| now.plus(Span::seconds(*seconds))),
                off: rest.is_none(),
                error: Some(reason),
                ..known.clone()
            }
        }
    }
}

/// What a change is to those who listen.
async fn about(
    permit: &Permit,
    snapshot: &dyn Snapshot,
    change: &Change,
) -> Result<Option<(Topic, String)>> {
    let is_told = |class| permit.lens().sees(class);
    Ok(match &change.what {
        What::Conversation { conversation, class, made: true } if is_told(class) => {
            Some((Topic::ConversationCreated, conversation.to_string()))
        }
        What::Memory { memory, cause: Cause::Created, class, .. } if is_told(class) => {
            Some((Topic::MemoryCreated, memory.to_string()))
        }
        What::Grant { grant, revoked: true } => Some((Topic::AccessRevoked, grant.to_string())),
        What::Job { job, completed: true } => {
            let found = snapshot.job(*job).await?;
            let ready = found.is_some_and(|job| job.kind == Work::Archive.kind());
            ready.then(|| (Topic::BackupCompleted, job.to_string()))
        }
        What::Conversation { .. }
        | What::Memory { .. }
        | What::Erased { .. }
        | What::Message { .. }
        | What::ConversationErased { .. }
        | What::Profile { .. }
        | What::Hold { .. }
        | What::Grant { .. }
        | What::Job { .. } => None,
    })
}

async fn run(engine: Engine, post: Arc<dyn Post>, mut stopped: watch::Receiver<bool>) {
    let mut looked = Looked::default();
    let mut listening: BTreeSet<VaultId> = BTreeSet::new();
    let mut round: Option<Instant> = None;
    loop {
        if round.is_none_or(|last| last.elapsed() >= ROUND) {
            match engine.all_vaults().await {
                Ok(all) => listening.extend(all),
                Err(error) => tracing::error!(%error, "the vaults could not be listed"),
            }
            round = Some(Instant::now());
        }
        listening.extend(engine.0.work.newly_listening());
        for vault in listening.clone() {
            let told = tokio::select! {
                _ = stopped.wait_for(|stop| *stop) => return,
                told = engine.tell(vault, &*post, &mut looked) => told,
            };
            match told {
                Ok(true) => {}
                Ok(false) => {
                    listening.remove(&vault);
                }
                Err(error) => tracing::error!(%vault, %error, "webhooks could not be told"),
            }
        }
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return,
            () = engine.0.work.heard.notified() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// What a listener is told, without a word of what is stored.
impl Notice {
    /// The body that is sent.
    #[must_use]
    pub fn body(&self) -> Value {
        json!({
            "id": self.id,
            "type": self.topic.as_str(),
            "timestamp": self.at.to_string(),
            "data": {"id": self.subject},
        })
    }
}
