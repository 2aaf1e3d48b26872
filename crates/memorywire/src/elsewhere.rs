//! Other stores beside the vault.
//!
//! They are asked together with it, and given what it holds. The vault alone decides about its
//! own memories: a copy of one is shown only where the vault itself answered with it, and always
//! in the vault's words, so that no store can show what a grant or consent hides. What only
//! another store has counts as what is remembered here, and is shown to whoever would see that.

mod change;
mod follow;
mod keep;

pub(crate) use change::{Changed, Named, cannot_wait};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::Mutex;
use yore_domain::memory::Draft;
use yore_domain::{Error, MemoryId, Result, limits};
use yore_engine::Call;
use yore_router::deliver::{Caller, Delivery};
use yore_router::fuse::{self, Fusion as Fused, Lane, Link};
use yore_router::{
    ANCHORS, Ask, Options, Record, Report, Router, RouterHealth, Slot, Type as Kind, Whose,
};

use crate::filter::Narrowed;
use crate::map::id;
use crate::rows::ENTITY;
use crate::speaker::Speaker;
use crate::wire::{Answered, Fusion, Hit, Recall, StoreStatus, Type};
use crate::{Memorywire, STORE};

/// How many times more is asked for than the caller wants.
const MORE: usize = 4;
/// For how long what is known of the stores is fresh.
const FRESH: Duration = Duration::from_secs(5);

/// A recall on its way through the stores.
#[derive(Clone, Copy)]
struct Asking<'a> {
    call: &'a Call,
    speaker: &'a Speaker,
    request: &'a Recall,
    ask: &'a Ask,
    stores: Option<&'a Stores>,
}

/// What the vault and the stores beside it answer together.
#[derive(Debug)]
pub(crate) struct Together {
    pub(crate) hits: Vec<Hit>,
    /// How each store did, the vault first.
    pub(crate) stores: Vec<StoreStatus>,
}

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
        self.kept().map(to).collect()
    }

    /// The stores that are kept up to date.
    fn kept(&self) -> impl Iterator<Item = &Arc<Slot>> {
        self.router.slots().iter().filter(|slot| !slot.terms().read_only)
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

    /// How many answers the vault is asked for: where others or relations may lift some and push
    /// some out, more than are wanted.
    pub(crate) fn wanted(&self, request: &Recall) -> usize {
        let k = request.k as usize;
        let more = self.stores.is_some() || request.hops > 0;
        if more { (k * MORE).min(limits::RESULTS) } else { k }
    }

    /// Asks the other stores and makes one list of theirs and the vault's.
    pub(crate) async fn together(
        &self,
        call: &Call,
        speaker: &Speaker,
        request: &Recall,
        own: Vec<Hit>,
    ) -> Result<Together> {
        let stores = self.beside(call).await?;
        if stores.is_none() && request.hops == 0 {
            return Ok(alone(request, own));
        }
        let mut ask = Ask::new(self.question(request, self.wanted(request)));
        ask.fusion = Some(fusion(request.fusion));
        (ask.quorum, ask.hops) = (request.quorum_k as usize, request.hops);
        let (mut theirs, reports) = match stores {
            Some(stores) => stores.router.gather(&ask).await.map_err(refused)?,
            None => (Vec::new(), Vec::new()),
        };
        let strangers = match stores {
            Some(stores) => {
                let ids = theirs.iter().flat_map(|lane| &lane.hits).map(|(found, _)| &*found.id);
                let unknown = ids.filter(|id| !own.iter().any(|hit| hit.id == *id)).collect();
                self.strangers(call, stores, &speaker.agent, &unknown).await?
            }
            None => BTreeSet::new(),
        };
        // What may not be shown must not be weighed either, and who tells of a memory of the
        // vault's something else than the vault does tells nothing of it.
        let hashes: BTreeMap<&str, String> =
            own.iter().map(|hit| (hit.id.as_str(), record(hit).hash())).collect();
        for lane in &mut theirs {
            lane.hits.retain(|(found, _)| match hashes.get(found.id.as_str()) {
                Some(hash) => found.hash() == *hash,
                None => strangers.contains(&found.id),
            });
        }
        let statuses = statuses(own.len(), &reports, &theirs);
        let lane = Lane {
            store: STORE.to_owned(),
            weight: 1.0,
            hits: own.iter().map(|hit| (record(hit), hit.score)).collect(),
        };
        let lanes: Vec<Lane> = std::iter::once(lane).chain(theirs).collect();
        let asking = Asking { call, speaker, request, ask: &ask, stores };
        let settled = self.settled(asking, &own, &lanes).await?;
        let mut own: BTreeMap<String, Hit> =
            own.into_iter().map(|hit| (hit.id.clone(), hit)).collect();
        let mut hits = Vec::new();
        for found in settled {
            let mut shown = match own.remove(&found.record.id) {
                Some(shown) => shown,
                None if strangers.contains(&found.record.id) => foreign(found.record, found.stores),
                None => continue,
            };
            (shown.score, shown.supporting) = (found.score, found.supporting);
            hits.push(shown);
        }
        hits.truncate(request.k as usize);
        Ok(Together { hits, stores: statuses })
    }

    /// One list of several, lifted by what is known of relations. Where nobody stands beside the
    /// vault, its own scores stand.
    async fn settled(
        &self,
        asking: Asking<'_>,
        own: &[Hit],
        lanes: &[Lane],
    ) -> Result<Vec<fuse::Hit>> {
        let ask = asking.ask;
        let mut hits = match asking.stores {
            Some(stores) => stores.router.fused(ask, lanes),
            None if ask.quorum > 1 => Vec::new(),
            None => lanes.iter().flat_map(as_it_stands).collect(),
        };
        let links = if ask.hops > 0 { self.links(asking, own, &hits).await? } else { Vec::new() };
        if let Some(stores) = asking.stores {
            return Ok(stores.router.lifted(ask, hits, links).await);
        }
        if ask.hops > 0 {
            fuse::boost(&mut hits, &links, Options::default().boost, ask.hops);
        }
        Ok(hits)
    }

    /// What the vault knows of the relations between the best: links, merges, and entities that
    /// memories share.
    async fn links(
        &self,
        Asking { call, speaker, request, .. }: Asking<'_>,
        own: &[Hit],
        hits: &[fuse::Hit],
    ) -> Result<Vec<Link>> {
        let entities: BTreeMap<&str, Option<&str>> = own
            .iter()
            .map(|hit| (hit.id.as_str(), hit.metadata.get(ENTITY).and_then(Value::as_str)))
            .collect();
        let best = hits.iter().take(ANCHORS).map(|hit| hit.record.id.as_str());
        let anchors: Vec<&str> = best.filter(|id| entities.contains_key(id)).collect();
        let memories: Vec<MemoryId> = anchors.iter().filter_map(|id| id.parse().ok()).collect();
        let scope = Narrowed::of(&speaker.agent, request.user_id.as_deref()).filter.scope;
        let near = self.engine.neighbours(call, memories, scope, request.hops).await?;
        let mut links: Vec<Link> = near
            .iter()
            .map(|near| Link { from: id(near.of), to: id(near.memory), distance: near.distance })
            .collect();
        for from in anchors {
            let Some(Some(shared)) = entities.get(from) else { continue };
            let others = entities.iter().filter(|(to, it)| **to != from && **it == Some(*shared));
            let link = |to: &str| Link { from: from.to_owned(), to: to.to_owned(), distance: 1 };
            links.extend(others.map(|(to, _)| link(to)));
        }
        Ok(links)
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
}

pub(crate) const fn kind(of: Type) -> Kind {
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

/// How each store did. Only what the caller may see is counted.
fn statuses(own: usize, reports: &[Report], theirs: &[Lane]) -> Vec<StoreStatus> {
    let vault = StoreStatus { store: STORE.to_owned(), status: Answered::Ok, count: own as u64 };
    let status = |report: &Report| {
        let lane = theirs.iter().find(|lane| lane.store == report.store);
        StoreStatus {
            store: report.store.clone(),
            status: report.error.as_ref().map_or(Answered::Ok, answered),
            count: lane.map_or(0, |lane| lane.hits.len() as u64),
        }
    };
    std::iter::once(vault).chain(reports.iter().map(status)).collect()
}

const fn answered(error: &yore_router::Error) -> Answered {
    match error {
        yore_router::Error::Deadline(_) => Answered::Late,
        yore_router::Error::Open => Answered::LeftAlone,
        yore_router::Error::Invalid { .. }
        | yore_router::Error::Unsupported(_)
        | yore_router::Error::Unreachable(_)
        | yore_router::Error::Status(_)
        | yore_router::Error::Garbage(_)
        | yore_router::Error::Database(_)
        | yore_router::Error::Vault(_) => Answered::Failed,
    }
}

/// What the vault answers by itself. With nobody beside it, there is nobody to agree.
fn alone(request: &Recall, mut hits: Vec<Hit>) -> Together {
    let stores = statuses(hits.len(), &[], &[]);
    hits.truncate(if request.quorum_k > 1 { 0 } else { request.k as usize });
    Together { hits, stores }
}

/// The list of one store as it stands.
fn as_it_stands(lane: &Lane) -> impl Iterator<Item = fuse::Hit> {
    lane.hits.iter().map(|(record, score)| fuse::Hit {
        record: record.clone(),
        score: *score,
        stores: vec![lane.store.clone()],
        supporting: Vec::new(),
    })
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
        last_recalled_at: None,
        envelope: None,
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
