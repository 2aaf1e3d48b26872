//! Asks many stores at once and answers with one voice.
//!
//! Every store has its own deadline; one that hangs, lies or dies costs nobody else anything, and
//! the answer says which it was.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use serde::Serialize;
use yore_domain::limits;

use crate::error::{Error, Result};
use crate::fuse::{Fusion, Hit, Lane, Link, Rules, boost, fuse};
use crate::record::{Object, Question, Record, Whose};
use crate::slot::{Approval, Forget, Put, Slot};
use crate::store::{Capabilities, Capability, Health};
use crate::upkeep::{Expire, Merge, Merged};

/// How many times more a store is asked for than the caller wants.
const MORE: usize = 4;
/// The furthest relations are followed.
const HOPS: u8 = 3;
/// How many of the best are asked for what is related to them.
pub const ANCHORS: usize = 20;

/// Which stores a write goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WritePolicy {
    /// All that can hold it.
    #[default]
    All,
    /// The first that can hold it.
    PrimaryOnly,
}

/// What the operator decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How lists become one when the caller does not say.
    pub fusion: Fusion,
    /// The constant of `rrf`.
    pub rrf_k: f32,
    /// How much relations lift.
    pub boost: f64,
    /// Which stores a write goes to.
    pub write: WritePolicy,
}

impl Default for Options {
    fn default() -> Self {
        Self { fusion: Fusion::Rrf, rrf_k: 60.0, boost: 0.1, write: WritePolicy::All }
    }
}

/// What a recall asks of all stores.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The question.
    pub question: Question,
    /// How lists become one.
    pub fusion: Option<Fusion>,
    /// How many stores must have a fact before it counts.
    pub quorum: usize,
    /// How far relations lift, from 0 to 3.
    pub hops: u8,
}

impl Ask {
    /// Asks with the operator's choices.
    #[must_use]
    pub fn new(question: Question) -> Self {
        Self { question, fusion: None, quorum: 1, hops: 0 }
    }
}

/// How one store did in an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The store.
    pub store: String,
    /// How many memories it returned or changed.
    pub count: usize,
    /// Why it failed.
    pub error: Option<Error>,
    /// How long it took.
    pub took: Duration,
}

/// What a recall found.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalled {
    /// The best first.
    pub hits: Vec<Hit>,
    /// How lists became one.
    pub fusion: Fusion,
    /// How each store did.
    pub stores: Vec<Report>,
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Remembered {
    /// The stores that have it now.
    pub stores: Vec<String>,
    /// Whether it waits for a person.
    pub pending: bool,
    /// How each store did.
    pub reports: Vec<Report>,
}

/// What became of a forget or an expiry.
#[derive(Clone, Debug, PartialEq)]
pub struct Forgotten {
    /// What any store had, each id once.
    pub ids: Vec<String>,
    /// How each store did.
    pub stores: Vec<Report>,
}

/// How all stores are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterHealth {
    /// `ok` when all are, `degraded` when some are, `error` when none is.
    pub status: &'static str,
    /// What sort of store it is.
    pub backend: &'static str,
    /// Each store with its name, or why it did not answer.
    pub stores: Vec<(String, std::result::Result<Health, String>)>,
}

/// Many stores behind one door.
#[derive(Clone, Debug)]
pub struct Router {
    slots: Arc<[Arc<Slot>]>,
    options: Options,
}

impl Router {
    /// Puts stores behind one door; there must be at least one, and no two of one name.
    pub fn new(slots: Vec<Arc<Slot>>, options: Options) -> Result<Self> {
        let names: BTreeSet<&str> = slots.iter().map(|slot| slot.name()).collect();
        if slots.is_empty() || names.len() < slots.len() {
            return Err(Error::invalid("stores", "must be at least one, each with its own name"));
        }
        Ok(Self { slots: slots.into(), options })
    }

    /// The stores, in their order.
    #[must_use]
    pub fn slots(&self) -> &[Arc<Slot>] {
        &self.slots
    }

    /// What any of them can do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.slots.iter().flat_map(|slot| slot.store.capabilities()).collect()
    }

    /// Writes a record to the stores that can hold it. It fails only when all of them do, with
    /// the first one's reason.
    pub async fn remember(&self, record: &Record, approval: Approval) -> Result<Remembered> {
        record.check()?;
        let needed = Capability::of(record.kind);
        let mut able = self.able(|capabilities| capabilities.contains(&needed));
        able.retain(|slot| !slot.terms().read_only);
        let able = match self.options.write {
            WritePolicy::All => able,
            WritePolicy::PrimaryOnly => able.into_iter().take(1).collect(),
        };
        if able.is_empty() {
            return Err(Error::Unsupported(format!("no store holds {}", record.kind.as_str())));
        }
        let done = each(&able, |slot| slot.remember(record, approval).boxed()).await;
        let has = |put: &Put| *put != Put::Pending;
        let stores = done.iter().filter(|(_, put)| put.as_ref().is_some_and(has));
        let stores: Vec<String> = stores.map(|(report, _)| report.store.clone()).collect();
        let pending = done.iter().any(|(_, put)| put.as_ref() == Some(&Put::Pending));
        let reports = reports(done, |_| 1);
        match reports.iter().all(|report| report.error.is_some()) {
            true => Err(reports.into_iter().find_map(|report| report.error).unwrap_or(Error::Open)),
            false => Ok(Remembered { stores, pending, reports }),
        }
    }

    /// Asks the stores that hold what is asked for, and makes one list of theirs. What the caller
    /// found itself stands before them.
    pub async fn recall(&self, ask: &Ask, own: Vec<Lane>) -> Result<Recalled> {
        let (theirs, stores) = self.gather(ask).await?;
        let lanes: Vec<Lane> = own.into_iter().chain(theirs).collect();
        let hits = self.lifted(ask, self.fused(ask, &lanes), Vec::new()).await;
        Ok(Recalled { hits, fusion: ask.fusion.unwrap_or(self.options.fusion), stores })
    }

    /// Asks the stores that hold what is asked for, and returns the list of each and how it did.
    pub async fn gather(&self, ask: &Ask) -> Result<(Vec<Lane>, Vec<Report>)> {
        ask.question.check()?;
        if ask.hops > HOPS {
            return Err(Error::invalid("hops", "must be from 0 to 3"));
        }
        let able = self.asked(ask);
        let question = wide(ask);
        let done = each(&able, |slot| slot.recall(&question).boxed()).await;
        let mut lanes = Vec::with_capacity(done.len());
        let mut stores = Vec::with_capacity(done.len());
        for (mut report, lane) in done {
            report.count = lane.as_ref().map_or(0, |lane| lane.hits.len());
            stores.push(report);
            lanes.extend(lane);
        }
        Ok((lanes, stores))
    }

    /// Makes one list of several, the best first.
    #[must_use]
    pub fn fused(&self, ask: &Ask, lanes: &[Lane]) -> Vec<Hit> {
        let fusion = ask.fusion.unwrap_or(self.options.fusion);
        fuse(lanes, Rules { fusion, rrf_k: self.options.rrf_k, quorum: ask.quorum })
    }

    /// Lifts what is related to others of a list, by what the stores and the caller know of it,
    /// and leaves as many as are wanted. Each store is told what was returned of it.
    pub async fn lifted(&self, ask: &Ask, mut hits: Vec<Hit>, own: Vec<Link>) -> Vec<Hit> {
        let able = self.asked(ask);
        if ask.hops > 0 {
            let mut links = self.links(&able, &wide(ask), &hits, ask.hops).await;
            links.extend(own);
            boost(&mut hits, &links, self.options.boost, ask.hops);
        }
        hits.truncate(ask.question.k);
        self.touch(&able, &hits, ask.question.now).await;
        hits
    }

    /// The stores that hold what is asked for.
    fn asked(&self, ask: &Ask) -> Vec<&Slot> {
        let types = &ask.question.types;
        self.able(|capabilities| {
            types.is_empty()
                || types.iter().any(|kind| capabilities.contains(&Capability::of(*kind)))
        })
    }

    /// Forgets in all stores.
    pub async fn forget(&self, forget: &Forget) -> Result<Forgotten> {
        forget.check()?;
        Ok(union(each(&self.writable(), |slot| slot.forget(forget).boxed()).await))
    }

    /// What a filter finds in any store.
    pub async fn matching(&self, whose: &Whose, filter: &Object, now: i64) -> Forgotten {
        union(each(&self.writable(), |slot| slot.matching(whose, filter, now).boxed()).await)
    }

    /// What keys name in any store, each an id or an entity's name.
    pub async fn named(&self, whose: &Whose, keys: &[String], now: i64) -> Forgotten {
        union(each(&self.writable(), |slot| slot.named(whose, keys, now).boxed()).await)
    }

    /// Expires in all stores that can tell what the policy asks about.
    pub async fn expire(&self, expire: &Expire) -> Result<Forgotten> {
        expire.check()?;
        Ok(union(each(&self.telling(expire), |slot| slot.expire(expire).boxed()).await))
    }

    /// What an expiry would take in any store.
    pub async fn expiring(&self, expire: &Expire) -> Result<Forgotten> {
        expire.check()?;
        Ok(union(each(&self.telling(expire), |slot| slot.expiring(expire).boxed()).await))
    }

    /// The stores that can tell what a policy asks about.
    fn telling(&self, expire: &Expire) -> Vec<&Slot> {
        let tracking = expire.policy.no_recall_in_days.is_some();
        let mut able = self.writable();
        able.retain(|slot| {
            !tracking || slot.store.capabilities().contains(&Capability::RecallTracking)
        });
        able
    }

    /// The stores in which anything may be changed.
    fn writable(&self) -> Vec<&Slot> {
        let mut slots = self.all();
        slots.retain(|slot| !slot.terms().read_only);
        slots
    }

    fn all(&self) -> Vec<&Slot> {
        self.slots.iter().map(|slot| &**slot).collect()
    }

    /// Merges in all stores. What several of them merged counts once.
    pub async fn merge(&self, merge: &Merge) -> Result<(Merged, Vec<Report>)> {
        let done = each(&self.writable(), |slot| slot.merge(merge).boxed()).await;
        let mut all = Merged::default();
        for merged in done.iter().filter_map(|(_, merged)| merged.as_ref()) {
            all.survivor = all.survivor.or_else(|| merged.survivor.clone());
            all.absorbed.extend(merged.absorbed.clone());
        }
        all.absorbed.sort();
        all.absorbed.dedup();
        let reports = reports(done, |merged| merged.absorbed.len());
        let invalid = reports.iter().filter_map(|report| report.error.clone());
        if let Some(error @ Error::Invalid { .. }) = invalid.into_iter().next() {
            return Err(error);
        }
        Ok((all, reports))
    }

    /// How all stores are.
    pub async fn health(&self) -> RouterHealth {
        let done = each(&self.all(), |slot| slot.store.health()).await;
        let stores: Vec<_> = done
            .into_iter()
            .map(|(report, health)| match (health, report.error) {
                (Some(health), _) => (report.store, Ok(health)),
                (None, error) => (report.store, Err(error.unwrap_or(Error::Open).to_string())),
            })
            .collect();
        let well = |(_, health): &&(_, std::result::Result<Health, String>)| {
            health.as_ref().is_ok_and(|health| health.status == "ok")
        };
        let status = match stores.iter().filter(well).count() {
            0 => "error",
            some if some < stores.len() => "degraded",
            _ => "ok",
        };
        RouterHealth { status, backend: "memory-router", stores }
    }

    fn able(&self, can: impl Fn(&Capabilities) -> bool) -> Vec<&Slot> {
        self.slots
            .iter()
            .map(|slot| &**slot)
            .filter(|slot| can(&slot.store.capabilities()))
            .collect()
    }

    /// The relations between the best, from the stores that know any.
    async fn links(
        &self,
        able: &[&Slot],
        question: &Question,
        hits: &[Hit],
        hops: u8,
    ) -> Vec<Link> {
        let graphs: Vec<&Slot> = able
            .iter()
            .copied()
            .filter(|slot| slot.store.capabilities().contains(&Capability::Graph))
            .collect();
        let anchors: Vec<&str> =
            hits.iter().take(ANCHORS).map(|hit| hit.record.id.as_str()).collect();
        let done = each(&graphs, |slot| slot.links(question, &anchors, hops).boxed()).await;
        done.into_iter().filter_map(|(_, links)| links).flatten().collect()
    }

    /// Notes in each store what was returned of it. A store that fails at it costs nobody an answer.
    async fn touch(&self, able: &[&Slot], hits: &[Hit], at: i64) {
        let tracking: Vec<(&Slot, Vec<String>)> = able
            .iter()
            .filter(|slot| slot.store.capabilities().contains(&Capability::RecallTracking))
            .map(|slot| {
                let its = hits.iter().filter(|hit| hit.stores.iter().any(|it| it == slot.name()));
                (*slot, its.map(|hit| hit.record.id.clone()).collect::<Vec<_>>())
            })
            .filter(|(_, ids)| !ids.is_empty())
            .collect();
        let noted = tracking.iter().map(|(slot, ids)| slot.within(slot.touch(ids, at).boxed()));
        for ((slot, _), noted) in tracking.iter().zip(join_all(noted).await) {
            if let Err(error) = noted {
                tracing::debug!(store = slot.name(), %error, "a recall was not noted");
            }
        }
    }
}

impl Slot {
    /// The relations that start at some memories, by canonical ids.
    async fn links(&self, question: &Question, anchors: &[&str], hops: u8) -> Result<Vec<Link>> {
        let mut links = Vec::new();
        for anchor in anchors {
            let kept = self.mapping.get(self.name(), anchor).await?;
            let Some(place) = kept.and_then(|kept| kept.place) else { continue };
            for neighbour in self.store.neighbours(&question.whose, &place, hops).await? {
                let to = self.mapping.canonical(self.name(), &neighbour.place).await?;
                let to = to.unwrap_or_else(|| self.derived(&neighbour.place));
                let distance = neighbour.distance;
                links.push(Link { from: (*anchor).to_owned(), to, distance });
            }
        }
        Ok(links)
    }
}

/// The question as each store is asked it: for more than the caller wants.
fn wide(ask: &Ask) -> Question {
    let mut question = ask.question.clone();
    question.k = (question.k * MORE).min(limits::RESULTS);
    question
}

/// Does something in each store at once, each within its own deadline.
async fn each<'a, T>(
    slots: &[&'a Slot],
    work: impl Fn(&'a Slot) -> BoxFuture<'a, Result<T>>,
) -> Vec<(Report, Option<T>)> {
    let running = slots.iter().map(|slot| {
        let work = slot.within(work(slot));
        async move {
            let begun = Instant::now();
            let done = work.await;
            let (value, error) = match done {
                Ok(value) => (Some(value), None),
                Err(error) => (None, Some(error)),
            };
            if let Some(error) = &error {
                tracing::warn!(store = slot.name(), %error, "a store failed");
            }
            let store = slot.name().to_owned();
            (Report { store, count: 0, error, took: begun.elapsed() }, value)
        }
    });
    join_all(running).await
}

fn reports<T>(done: Vec<(Report, Option<T>)>, count: impl Fn(&T) -> usize) -> Vec<Report> {
    done.into_iter()
        .map(|(report, value)| Report { count: value.as_ref().map_or(0, &count), ..report })
        .collect()
}

fn union(done: Vec<(Report, Option<Vec<String>>)>) -> Forgotten {
    let mut ids = Vec::new();
    let mut seen = BTreeSet::new();
    for id in done.iter().filter_map(|(_, ids)| ids.as_ref()).flatten() {
        if seen.insert(id.clone()) {
            ids.push(id.clone());
        }
    }
    Forgotten { ids, stores: reports(done, Vec::len) }
}
