//! Other stores beside the vault.
//!
//! They are asked together with it, and given what it holds. The vault alone decides about its
//! own memories: a copy of one is shown only where the vault itself answered with it, and always
//! in the vault's words, so that no store can show what a grant or consent hides. What only
//! another store has counts as what is remembered here, and is shown to whoever would see that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use yore_domain::class::Sensitivity;
use yore_domain::grant::Verb;
use yore_domain::memory::Draft;
use yore_domain::{Error, MemoryId, Result, limits};
use yore_engine::Call;
use yore_router::deliver::{Caller, Delivered, Delivery};
use yore_router::fuse::{Fusion as Fused, Lane};
use yore_router::{
    Ask, Capability, Depth, Question, Record, Router, RouterHealth, Slot, Type as Kind, Whose,
};

use crate::speaker::Speaker;
use crate::wire::{Fusion, Hit, Object, Recall, Remember, StoreCount, Type};
use crate::{Memorywire, STORE};

/// How many times more is asked for than the caller wants.
const MORE: usize = 4;
/// How often it is looked whether a delivery has arrived.
const LOOK: Duration = Duration::from_millis(5);
/// For how long what is known of the stores is fresh.
const FRESH: Duration = Duration::from_secs(5);
/// How long nothing must come before a repair has seen everything.
const QUIET: Duration = Duration::from_millis(500);

/// The stores beside the vault, and the way to them.
#[derive(Clone)]
pub struct Stores {
    router: Router,
    caller: Caller,
    /// How the stores were when somebody last asked.
    health: Arc<Mutex<Option<(Instant, RouterHealth)>>>,
}

impl std::fmt::Debug for Stores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stores").field("router", &self.router).finish_non_exhaustive()
    }
}

impl Stores {
    /// Stores that are brought up to date under the owner's calls.
    #[must_use]
    pub fn new(router: Router, caller: Caller) -> Self {
        Self { router, caller, health: Arc::default() }
    }

    /// How the stores are, or were a moment ago: whoever asks often asks nobody else.
    async fn health(&self) -> RouterHealth {
        let mut last = self.health.lock().await;
        match &*last {
            Some((at, health)) if at.elapsed() < FRESH => health.clone(),
            Some(_) | None => {
                let health = self.router.health().await;
                *last = Some((Instant::now(), health.clone()));
                health
            }
        }
    }

    /// The ways to all stores; each must be run for a store to be brought up to date.
    #[must_use]
    pub fn deliveries(&self, engine: &yore_engine::Engine) -> Vec<Delivery> {
        let to =
            |slot: &Arc<Slot>| Delivery::new(engine.clone(), self.caller.clone(), slot.clone());
        self.router.slots().iter().map(to).collect()
    }

    fn names(&self) -> impl Iterator<Item = String> {
        self.router.slots().iter().map(|slot| slot.name().to_owned())
    }
}

impl Memorywire {
    /// The stores beside the vault that a caller means; other vaults have none.
    pub(crate) async fn beside(&self, call: &Call) -> Result<Option<&Stores>> {
        match &self.stores {
            Some(stores) if self.engine.means_default_vault(call).await? => Ok(Some(stores)),
            Some(_) | None => Ok(None),
        }
    }

    /// The names of all stores that were asked, the vault first.
    pub(crate) async fn asked(&self, call: &Call) -> Result<Vec<String>> {
        let others = self.beside(call).await?.into_iter().flat_map(Stores::names);
        Ok(std::iter::once(STORE.to_owned()).chain(others).collect())
    }

    /// How many answers the vault is asked for: with other stores, what they have may push some
    /// of them out and lift others.
    pub(crate) fn wanted(&self, k: usize) -> usize {
        if self.stores.is_some() { (k * MORE).min(limits::RESULTS) } else { k }
    }

    /// Asks the other stores and makes one list of theirs and the vault's.
    pub(crate) async fn fused(
        &self,
        call: &Call,
        speaker: &Speaker,
        request: &Recall,
        own: Vec<Hit>,
    ) -> Result<Vec<Hit>> {
        let most = request.k as usize;
        let Some(stores) = self.beside(call).await? else {
            let mut own = own;
            own.truncate(most);
            return Ok(own);
        };
        let whose = Whose { agent: speaker.agent.clone(), user: request.user_id.clone() };
        let now = self.engine.now().millis();
        let mut question = Question::new(whose, &request.query, self.wanted(most), now);
        question.types = request.types.iter().flatten().copied().map(kind).collect();
        question.filter = request.filter.clone().unwrap_or_default();
        if let Some(days) = request.fresher_than_days {
            question = question.fresher_than_days(days);
        }
        let ask =
            Ask { question, fusion: Some(fusion(request.fusion)), quorum: 1, hops: request.hops };
        let (mut theirs, _) = stores.router.gather(&ask).await.map_err(refused)?;
        let mut own: BTreeMap<String, Hit> =
            own.into_iter().map(|hit| (hit.id.clone(), hit)).collect();
        let unknown: BTreeSet<&str> = theirs
            .iter()
            .flat_map(|lane| &lane.hits)
            .map(|(record, _)| record.id.as_str())
            .filter(|id| !own.contains_key(*id))
            .collect();
        let strangers = self.strangers(call, stores, &speaker.agent, &unknown).await?;
        // What may not be shown must not be weighed either.
        for lane in &mut theirs {
            lane.hits.retain_mut(|(found, _)| match own.get(&found.id) {
                Some(hit) => {
                    *found = record(hit);
                    true
                }
                None => strangers.contains(&found.id),
            });
        }
        let lane = Lane {
            store: STORE.to_owned(),
            weight: 1.0,
            hits: best_first(&own).iter().map(|hit| (record(hit), hit.score)).collect(),
        };
        let lanes = std::iter::once(lane).chain(theirs).collect();
        let mut hits = Vec::new();
        for found in stores.router.settle(&ask, lanes).await {
            let mut shown = match own.remove(&found.record.id) {
                Some(shown) => shown,
                None if strangers.contains(&found.record.id) => foreign(found.record, found.stores),
                None => continue,
            };
            (shown.score, shown.supporting) = (found.score, found.supporting);
            hits.push(shown);
        }
        hits.truncate(most);
        Ok(hits)
    }

    /// Those of some ids that are no memories of the vault, nor were any that is kept track of,
    /// where the caller would see such.
    async fn strangers(
        &self,
        call: &Call,
        stores: &Stores,
        agent: &str,
        ids: &BTreeSet<&str>,
    ) -> Result<BTreeSet<String>> {
        let mut like = Draft::text("elsewhere");
        like.content.scope.agent = Some(agent.to_owned());
        if ids.is_empty() || !self.engine.would_show(call, &like).await? {
            return Ok(BTreeSet::new());
        }
        let named: Vec<(&str, MemoryId)> =
            ids.iter().filter_map(|id| id.parse().ok().map(|parsed| (*id, parsed))).collect();
        let parsed: Vec<MemoryId> = named.iter().map(|(_, id)| *id).collect();
        let held: BTreeSet<MemoryId> =
            self.engine.held_here(call, &parsed).await?.into_iter().collect();
        let here =
            |id: &str| named.iter().any(|(name, parsed)| *name == id && held.contains(parsed));
        let mut strangers = BTreeSet::new();
        for id in ids.iter().filter(|id| !here(id)) {
            let mut delivered = false;
            for slot in stores.router.slots() {
                delivered |= slot.knows(id).await.map_err(refused)?;
            }
            if !delivered {
                strangers.insert((*id).to_owned());
            }
        }
        Ok(strangers)
    }

    /// Waits until the other stores have a new memory, each as long as its deadline allows, and
    /// names those that do. The others get it later.
    pub(crate) async fn arrived(
        &self,
        call: &Call,
        request: &Remember,
        id: &str,
    ) -> Result<Vec<String>> {
        let needed = Capability::of(kind(crate::map::type_of(crate::map::kind_of(request))));
        let able = |slot: &&Arc<Slot>| {
            slot.store().capabilities().contains(&needed)
                && slot.terms().ceiling >= Sensitivity::Internal
                && request.privacy_intent.as_ref().is_none_or(|it| it.share_with.is_none())
        };
        let mut names = vec![STORE.to_owned()];
        let Some(stores) = self.beside(call).await? else { return Ok(names) };
        let id = [id.to_owned()];
        let slots: Vec<&Arc<Slot>> = stores.router.slots().iter().filter(able).collect();
        let waiting: Vec<_> = slots.iter().map(|slot| until(slot, &id, true)).collect();
        let arrived = join_all(waiting).await;
        let those = slots.iter().zip(arrived).filter(|(_, arrived)| *arrived);
        names.extend(those.map(|(slot, _)| slot.name().to_owned()));
        Ok(names)
    }

    /// Waits until the other stores have lost memories of the vault's, and forgets in them what
    /// only they have; ids of the second sort are returned, too.
    pub(crate) async fn left(
        &self,
        call: &Call,
        whose: Whose,
        gone: &[String],
        asked: &[String],
        depth: Depth,
    ) -> Result<(Vec<String>, Vec<StoreCount>)> {
        let Some(stores) = self.beside(call).await? else {
            return Ok((Vec::new(), Vec::new()));
        };
        // Rules and approval are about the vault: what lies elsewhere, only people take away.
        let person = self.engine.identify(call, Verb::Write).await?.agent().is_none();
        let asked: BTreeSet<&str> = asked
            .iter()
            .map(String::as_str)
            .filter(|id| person && !gone.iter().any(|it| it == id))
            .collect();
        let strange: Vec<String> = if asked.is_empty() {
            Vec::new()
        } else {
            self.strangers(call, stores, &whose.agent, &asked).await?.into_iter().collect()
        };
        let mut counts = Vec::new();
        let mut forgotten = Vec::new();
        if !strange.is_empty() {
            let verb = if depth == Depth::Erase { Verb::Erase } else { Verb::Write };
            self.engine.demand(call, "forget", verb).await?;
            let now = self.engine.now().millis();
            let forget =
                yore_router::Forget { whose, ids: strange, filter: Object::new(), depth, now };
            let done = stores.router.forget(&forget).await.map_err(refused)?;
            forgotten = done.ids;
            counts = done.stores;
        }
        let slots = stores.router.slots();
        let waiting: Vec<_> = slots.iter().map(|slot| until(slot, gone, false)).collect();
        let left = join_all(waiting).await;
        let row = |(slot, left): (&Arc<Slot>, bool)| {
            let report = counts.iter().find(|report| report.store == slot.name());
            let forgot = report.map_or(0, |report| report.count as u64);
            let error = report.and_then(|report| report.error.as_ref()).map(ToString::to_string);
            let store = slot.name().to_owned();
            if left {
                StoreCount { store, count: forgot + gone.len() as u64, error }
            } else {
                StoreCount { store, count: forgot, error: Some("will follow".to_owned()) }
            }
        };
        let rows = slots.iter().zip(left).map(row).collect();
        Ok((forgotten, rows))
    }

    /// Says how every store is, and nothing more: anybody may ask.
    pub(crate) async fn health(&self) -> Value {
        let own = json!({"status": "ok", "backend": STORE, "capabilities": crate::CAPABILITIES});
        let Some(stores) = &self.stores else { return own };
        let health = stores.health().await;
        let mut capabilities: BTreeSet<&str> = crate::CAPABILITIES.into_iter().collect();
        capabilities.extend(stores.router.capabilities().iter().map(|one| one.as_str()));
        let one = |(name, health): &(String, std::result::Result<_, String>)| {
            let status = if health.is_ok() { "ok" } else { "error" };
            json!({"store": name, "status": status})
        };
        let mut rows = vec![json!({"store": STORE, "status": "ok"})];
        rows.extend(health.stores.iter().map(one));
        let status = if health.status == "ok" { "ok" } else { "degraded" };
        json!({"status": status, "backend": health.backend, "capabilities": capabilities, "stores": rows})
    }

    /// Lists the other stores and how they are, or delivers everything to them once more.
    pub(crate) async fn keep(&self, call: &Call, what: &str, input: Object) -> Result<Value> {
        let identity = self.engine.identify(call, Verb::Admin).await?;
        if !identity.is_owner() {
            return Err(Error::forbidden("only the owner keeps the stores beside a vault"));
        }
        let Some(stores) = self.beside(call).await? else { return Ok(json!({"stores": []})) };
        let named = input.get("store").and_then(Value::as_str);
        if named.is_some_and(|name| !stores.names().any(|one| one == name)) {
            return Err(Error::NotFound);
        }
        let rows = match what {
            "list" => {
                let health = stores.router.health().await;
                let slots = stores.router.slots().iter().zip(health.stores);
                slots
                    .map(|(slot, (name, health))| {
                        let capabilities = slot.store().capabilities();
                        json!({
                            "store": name,
                            "status": health.as_ref().map_or("error", |health| health.status.as_str()),
                            "detail": health.as_ref().ok(),
                            "error": health.as_ref().err(),
                            "left_alone": slot.is_open(),
                            "weight": slot.terms().weight,
                            "deadline_ms": slot.terms().deadline.as_millis() as u64,
                            "capabilities": capabilities,
                        })
                    })
                    .collect()
            }
            "repair" => {
                let mut rows = Vec::new();
                for (slot, delivery) in
                    stores.router.slots().iter().zip(stores.deliveries(&self.engine))
                {
                    if named.is_none_or(|name| name == slot.name()) {
                        let done = delivery.repair(QUIET).await;
                        rows.push(repaired(slot.name(), &done.map_err(|error| error.to_string())));
                    }
                }
                rows
            }
            _ => return Err(Error::NotFound),
        };
        Ok(json!({"stores": rows}))
    }
}

fn repaired(store: &str, done: &std::result::Result<Delivered, String>) -> Value {
    match done {
        Ok(done) => json!({
            "store": store,
            "created": done.created,
            "replaced": done.replaced,
            "withdrawn": done.withdrawn,
            "unchanged": done.unchanged,
            "refused": done.refused,
        }),
        Err(error) => json!({"store": store, "error": error}),
    }
}

/// Waits until a store has all of some memories, or none of them, as long as its deadline allows.
/// A store that is left alone is looked at once.
async fn until(slot: &Slot, ids: &[String], there: bool) -> bool {
    let looks = async {
        loop {
            let mut as_wished = true;
            for id in ids {
                as_wished &= slot.has(id).await.is_ok_and(|has| has == there);
            }
            if as_wished || slot.is_open() {
                return as_wished;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(slot.terms().deadline, looks).await.unwrap_or(false)
}

const fn kind(of: Type) -> Kind {
    match of {
        Type::Semantic => Kind::Semantic,
        Type::Episodic => Kind::Episodic,
        Type::Procedural => Kind::Procedural,
        Type::Emotional => Kind::Emotional,
    }
}

const fn type_of(kind: Kind) -> Type {
    match kind {
        Kind::Semantic => Type::Semantic,
        Kind::Episodic => Type::Episodic,
        Kind::Procedural => Type::Procedural,
        Kind::Emotional => Type::Emotional,
    }
}

const fn fusion(of: Fusion) -> Fused {
    match of {
        Fusion::Rrf => Fused::Rrf,
        Fusion::Max => Fused::Max,
        Fusion::Weighted => Fused::Weighted,
    }
}

/// What the vault found, in its own order.
fn best_first(own: &BTreeMap<String, Hit>) -> Vec<&Hit> {
    let mut hits: Vec<&Hit> = own.values().collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    hits
}

/// What the vault found, as other stores hold it.
fn record(hit: &Hit) -> Record {
    let whose = Whose { agent: hit.agent_id.clone(), user: hit.user_id.clone() };
    let mut record =
        Record::new(hit.id.as_str(), &whose, kind(hit.kind), &hit.content, hit.created_at);
    record.updated_at = hit.updated_at;
    record
}

/// What only another store has.
fn foreign(record: Record, stores: Vec<String>) -> Hit {
    Hit {
        extra: record.extra,
        id: record.id,
        agent_id: record.agent_id,
        kind: type_of(record.kind),
        content: record.content,
        score: 0.0,
        metadata: record.metadata,
        created_at: record.created_at,
        updated_at: record.updated_at,
        supporting: Vec::new(),
        source_store: stores.into_iter().next().unwrap_or_default(),
        confidence: record.confidence,
        user_id: record.user_id,
        source: record.source,
        expires_at: record.expires_at,
        importance: None,
        short_term: false,
    }
}

fn refused(error: yore_router::Error) -> Error {
    match error {
        yore_router::Error::Invalid { path, reason } => Error::invalid(path, reason),
        yore_router::Error::Unsupported(what) => Error::Unsupported { what },
        other @ (yore_router::Error::Unreachable(_)
        | yore_router::Error::Deadline(_)
        | yore_router::Error::Open
        | yore_router::Error::Status(_)
        | yore_router::Error::Garbage(_)
        | yore_router::Error::Database(_)
        | yore_router::Error::Vault(_)) => Error::internal(other.to_string()),
    }
}
