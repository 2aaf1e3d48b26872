//! One backend among many: its name, its mapping, and the ids that are the same everywhere.
//!
//! A slot turns places into canonical ids, keeps what the backend cannot hold, writes so that a
//! retry after a crash doubles nothing, and checks every condition of a question itself, whatever
//! the backend did about it. So every backend has the same meaning.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::sync::Mutex;
use yore_canon::hash::Sha256;
use yore_canon::key::VerifyingKey;
use yore_domain::class::Sensitivity;
use yore_domain::limits;

use crate::breaker::{Breaker, Patience};
use crate::envelope::Claim;
use crate::error::{Error, Result};
use crate::fuse::Lane;
use crate::mapping::{Kept, Mapping};
use crate::record::{Found, Object, Question, Record, Whose};
use crate::store::{Keeps, MemoryStore};

/// What ranking leaves of the score of a memory that was demoted.
const DEMOTION: f64 = 0.25;
/// Locks for writes; ids that share one wait for each other.
const STRIPES: usize = 16;

/// How thoroughly something is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Out of recall; the row may stay.
    Tombstone,
    /// Nothing of it is left.
    Erase,
}

/// Whether a person decides first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Nobody needs to.
    NotNeeded,
    /// It waits.
    Required,
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The store did not have it.
    Created,
    /// It took the place of an older state.
    Replaced,
    /// The store had it already.
    Same,
    /// It waits for a person.
    Pending,
}

/// What to forget.
#[derive(Clone, Debug)]
pub struct Forget {
    /// Whose memories.
    pub whose: Whose,
    /// These.
    pub ids: Vec<String>,
    /// And those a filter finds.
    pub filter: Object,
    /// How thoroughly.
    pub depth: Depth,
    /// The time it is asked at.
    pub now: i64,
}

impl Forget {
    /// Checks that it says what to forget: what says nothing would mean everything (MW-031).
    pub(crate) fn check(&self) -> Result<()> {
        if self.ids.is_empty() && self.filter.is_empty() {
            return Err(Error::invalid("ids", "ids or a filter must say what to forget"));
        }
        Ok(())
    }
}

/// What the operator decides about a store.
#[derive(Clone, Debug)]
pub struct Terms {
    /// How long an operation may take.
    pub deadline: Duration,
    /// How much it counts in weighted fusion.
    pub weight: f32,
    /// The most sensitive memories it is given.
    pub ceiling: Sensitivity,
    /// The key it signs its answers with. Where there is one, unsigned answers do not count.
    pub key: Option<VerifyingKey>,
    /// How much it may fail before it is left alone.
    pub patience: Patience,
    /// Whether it is only asked, and nothing in it is ever changed.
    pub read_only: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(2),
            weight: 1.0,
            ceiling: Sensitivity::default(),
            key: None,
            patience: Patience::default(),
            read_only: false,
        }
    }
}

/// A backend with its name, its mapping and its terms.
#[derive(Debug)]
pub struct Slot {
    name: String,
    pub(crate) store: Arc<dyn MemoryStore>,
    pub(crate) mapping: Arc<dyn Mapping>,
    terms: Terms,
    breaker: Breaker,
    stripes: [Mutex<()>; STRIPES],
}

impl Slot {
    /// Gives a backend a name.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        store: Arc<dyn MemoryStore>,
        mapping: Arc<dyn Mapping>,
        terms: Terms,
    ) -> Self {
        Self {
            name: name.into(),
            store,
            mapping,
            breaker: Breaker::new(terms.patience),
            terms,
            stripes: Default::default(),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the operator decided.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The backend itself.
    #[must_use]
    pub fn store(&self) -> &dyn MemoryStore {
        &*self.store
    }

    /// Whether it is being left alone.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.breaker.is_open()
    }

    /// Runs something within the deadline, and lets the breaker know how it went.
    pub async fn within<'a, T>(&'a self, work: BoxFuture<'a, Result<T>>) -> Result<T> {
        if !self.breaker.admits(Instant::now()) {
            return Err(Error::Open);
        }
        let done = match tokio::time::timeout(self.terms.deadline, work).await {
            Ok(done) => done,
            Err(_) => Err(Error::Deadline(self.terms.deadline)),
        };
        match &done {
            Err(error) if error.blames_store() => self.breaker.failed(Instant::now()),
            Ok(_) | Err(_) => self.breaker.succeeded(),
        }
        done
    }

    /// Writes a record, or keeps it until a person has decided.
    pub async fn remember(&self, record: &Record, approval: Approval) -> Result<Put> {
        match approval {
            Approval::NotNeeded => self.put(record).await,
            Approval::Required => {
                record.check()?;
                self.mapping.stage(&self.name, record.clone()).await?;
                Ok(Put::Pending)
            }
        }
    }

    /// Writes what waited. Returns `None` when nothing of this id waits.
    pub async fn approve(&self, id: &str) -> Result<Option<Put>> {
        let Some(record) = self.mapping.unstage(&self.name, id).await? else { return Ok(None) };
        match self.put(&record).await {
            Ok(put) => Ok(Some(put)),
            Err(error) => {
                // A store that is away must not cost the write that a person has approved.
                self.mapping.stage(&self.name, record).await?;
                Err(error)
            }
        }
    }

    /// Drops what waited. Returns whether there was anything.
    pub async fn reject(&self, id: &str) -> Result<bool> {
        Ok(self.mapping.unstage(&self.name, id).await?.is_some())
    }

    /// Makes the store hold exactly this state of a record. Done again, it changes nothing.
    pub async fn put(&self, record: &Record) -> Result<Put> {
        record.check()?;
        let _one_at_a_time = self.stripe(&record.id).lock().await;
        let kept = self.mapping.get(&self.name, &record.id).await?;
        let digest = record.digest();
        let known = kept.as_ref().and_then(|kept| kept.place.clone());
        if known.is_some() && kept.as_ref().and_then(|kept| kept.digest.as_ref()) == Some(&digest) {
            if let Some(kept) = kept.filter(|kept| kept.leaving) {
                // It came back before the store let it go.
                self.mapping.put(&self.name, &record.id, Kept { leaving: false, ..kept }).await?;
            }
            return Ok(Put::Same);
        }
        let demoted = kept.as_ref().is_some_and(|kept| kept.demoted);
        let known = match (&kept, known) {
            // It was somebody else's: nothing of it may stay where they look.
            (Some(Kept { agent: Some(agent), user, .. }), Some(place))
                if *agent != record.agent_id || *user != record.user_id =>
            {
                let whose = Whose { agent: agent.clone(), user: user.clone() };
                self.store.forget(&whose, &place, Depth::Erase).await?;
                None
            }
            (_, known) => known,
        };
        let earlier = match &kept {
            Some(kept) if kept.digest.is_some() => known,
            // An earlier write ended without an answer, or what was known of it is lost: it may
            // be there.
            Some(_) | None => self.store.locate(&record.whose(), &record.id).await?.or(known),
        };
        // First of all, that there is a write under way: what comes after may find it there.
        let under_way = Kept {
            place: earlier.clone(),
            agent: Some(record.agent_id.clone()),
            user: record.user_id.clone(),
            demoted,
            ..Kept::default()
        };
        self.mapping.put(&self.name, &record.id, under_way).await?;
        let (place, put) = match earlier {
            Some(place) => (self.store.replace(&place, record).await?, Put::Replaced),
            None => (self.store.remember(record).await?, Put::Created),
        };
        let kept = Kept {
            place: Some(place),
            agent: Some(record.agent_id.clone()),
            user: record.user_id.clone(),
            hash: Some(record.hash()),
            digest: Some(digest),
            side: (self.store.keeps() != Keeps::Everything).then(|| record.without_content()),
            demoted,
            leaving: false,
        };
        self.mapping.put(&self.name, &record.id, kept).await?;
        Ok(put)
    }

    /// Finds answers, the best first, all of which fit the question.
    pub async fn recall(&self, question: &Question) -> Result<Lane> {
        question.check()?;
        let mut ask = question.clone();
        let mut hits = loop {
            let found = self.store.recall(&ask).await?;
            let (returned, asked) = (found.len(), ask.k);
            let hits = self.believed(question, &ask, found).await?;
            // Conditions that the backend does not know of cost places: ask for more.
            if hits.len() >= question.k || returned < asked || asked >= limits::RESULTS {
                break hits;
            }
            ask.k = (asked * 4).min(limits::RESULTS);
        };
        hits.sort_by(|a, b| b.1.total_cmp(&a.1));
        hits.truncate(question.k);
        Ok(Lane { store: self.name.clone(), weight: self.terms.weight, hits })
    }

    /// What fits the question and is what the store was given, with canonical ids.
    async fn believed(
        &self,
        question: &Question,
        asked: &Question,
        found: Vec<Found>,
    ) -> Result<Vec<(Record, f64)>> {
        let mut hits = Vec::with_capacity(found.len());
        for (place, found) in found.into_iter().enumerate() {
            if let Some(key) = &self.terms.key {
                let (record, score) = (&found.record, found.score);
                let claim = Claim { store: &self.name, question: asked, place, record, score };
                if let Err(refused) = claim.verify(found.envelope.as_ref(), key, question.now) {
                    tracing::warn!(store = %self.name, %refused, "a hit was left out");
                    continue;
                }
            }
            let score = found.score;
            let Some((record, kept)) = self.resolved(found).await? else { continue };
            if kept.hash.as_ref().is_some_and(|hash| *hash != record.hash()) {
                tracing::warn!(store = %self.name, id = %record.id, "a hit says what was not written");
                continue;
            }
            if question.admits(&record) {
                let score = if kept.demoted { score * DEMOTION } else { score };
                hits.push((record, if score.is_nan() { 0.0 } else { score }));
            }
        }
        Ok(hits)
    }

    /// Gives what a store returned its canonical id and what was kept beside it. A second row that
    /// claims the id of something delivered is left out: it is a copy that went astray.
    pub(crate) async fn resolved(&self, found: Found) -> Result<Option<(Record, Kept)>> {
        let Found { place, mut record, .. } = found;
        if let Some(id) = self.mapping.canonical(&self.name, &place).await? {
            let kept = self.mapping.get(&self.name, &id).await?.unwrap_or_default();
            if let Some(side) = &kept.side
                && let Ok(whole) = serde_json::from_value::<Record>(side.clone())
            {
                record = match self.store.keeps() {
                    Keeps::Everything => record,
                    Keeps::Columns => completed(record, whole),
                    Keeps::Words => Record { content: record.content, ..whole },
                };
            }
            record.id = id;
            return Ok(Some((record, kept)));
        }
        if record.id.is_empty() {
            record.id = self.derived(&place);
            return Ok(Some((record, Kept::default())));
        }
        match self.mapping.get(&self.name, &record.id).await? {
            None => Ok(Some((record, Kept::default()))),
            // A write that got no answer is where the store says it is.
            Some(kept) if kept.place.is_none() => Ok(Some((record, kept))),
            Some(_) => Ok(None),
        }
    }

    /// The canonical id of what was in a store before Yore came: always the same one.
    pub(crate) fn derived(&self, place: &str) -> String {
        let said = format!("yore place\0{}\0{place}", self.name);
        Sha256::of(said).to_hex()[..32].to_owned()
    }

    /// Forgets, and returns the ids of what was there.
    pub async fn forget(&self, forget: &Forget) -> Result<Vec<String>> {
        forget.check()?;
        let mut gone = Vec::new();
        let mut unknown = Vec::new();
        for id in &forget.ids {
            match self.forget_known(&forget.whose, id, forget.depth).await? {
                Some(true) => gone.push(id.clone()),
                Some(false) => {}
                None => unknown.push(id.clone()),
            }
        }
        if !unknown.is_empty() || !forget.filter.is_empty() {
            for (record, place) in self.all(&forget.whose, forget.now).await? {
                let named = unknown.contains(&record.id);
                let filtered =
                    !forget.filter.is_empty() && crate::filter::passes(&forget.filter, &record);
                if (named || filtered)
                    && self.forget_at(&forget.whose, &record.id, &place, forget.depth).await?
                {
                    gone.push(record.id);
                }
            }
        }
        gone.dedup();
        Ok(gone)
    }

    /// Whether the store has a memory as it was delivered.
    pub async fn has(&self, id: &str) -> Result<bool> {
        let kept = self.mapping.get(&self.name, id).await?;
        Ok(kept.is_some_and(|kept| kept.digest.is_some()))
    }

    /// Whether a memory was ever on its way to the store, and was not taken back since.
    pub async fn knows(&self, id: &str) -> Result<bool> {
        let kept = self.mapping.get(&self.name, id).await?;
        Ok(kept.is_some_and(|kept| kept.agent.is_some()))
    }

    /// Takes back what was delivered. What never was is left alone, whatever the store has. Where
    /// the store refuses, that is kept in mind.
    pub async fn withdraw(&self, id: &str, depth: Depth) -> Result<bool> {
        let Some(kept) = self.mapping.get(&self.name, id).await? else { return Ok(false) };
        let Some(agent) = kept.agent.clone() else { return Ok(false) };
        let whose = Whose { agent, user: kept.user.clone() };
        match self.forget_known(&whose, id, depth).await {
            Ok(was) => {
                self.mapping.remove(&self.name, id).await?;
                Ok(was.unwrap_or(false))
            }
            Err(error) => {
                self.mapping.put(&self.name, id, Kept { leaving: true, ..kept }).await?;
                Err(error)
            }
        }
    }

    /// Asks once more for what the store refused to let go; returns how much it lets go now.
    pub async fn withdraw_again(&self) -> Result<u64> {
        let mut gone = 0;
        for id in self.mapping.leaving(&self.name).await? {
            match self.withdraw(&id, Depth::Erase).await {
                Ok(was) => gone += u64::from(was),
                Err(error) if error.is_passing() => return Err(error),
                Err(error) => {
                    tracing::warn!(store = %self.name, id, %error, "a store lets nothing go");
                }
            }
        }
        Ok(gone)
    }

    /// Forgets what the mapping or the store knows by its id; `None` when neither does.
    async fn forget_known(&self, whose: &Whose, id: &str, depth: Depth) -> Result<Option<bool>> {
        let kept = self.mapping.get(&self.name, id).await?;
        // Not every backend looks whose it is before it deletes.
        let strange = kept.as_ref().is_some_and(|kept| {
            kept.agent.as_ref().is_some_and(|agent| *agent != whose.agent)
                || (kept.agent.is_some() && whose.user.is_some() && kept.user != whose.user)
        });
        if strange {
            return Ok(Some(false));
        }
        let place = match kept {
            Some(Kept { place: Some(place), digest: Some(_), .. }) => Some(place),
            Some(kept) => self.store.locate(whose, id).await?.or(kept.place),
            None => self.store.locate(whose, id).await?,
        };
        let Some(place) = place else { return Ok(None) };
        self.forget_at(whose, id, &place, depth).await.map(Some)
    }

    pub(crate) async fn forget_at(
        &self,
        whose: &Whose,
        id: &str,
        place: &str,
        depth: Depth,
    ) -> Result<bool> {
        let _one_at_a_time = self.stripe(id).lock().await;
        let was = self.store.forget(whose, place, depth).await?;
        if was {
            self.mapping.remove(&self.name, id).await?;
        }
        Ok(was)
    }

    /// Everything live of an agent, with its places.
    pub(crate) async fn all(&self, whose: &Whose, now: i64) -> Result<Vec<(Record, String)>> {
        let rows = self.rows(whose, now).await?;
        Ok(rows.into_iter().map(|row| (row.record, row.place)).collect())
    }

    pub(crate) async fn rows(&self, whose: &Whose, now: i64) -> Result<Vec<Row>> {
        let any = Question::new(whose.clone(), "*", 1, now);
        let mut rows = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.store.list(whose, after.as_deref()).await?;
            for found in page.items {
                let (place, recalled_at) = (found.place.clone(), found.recalled_at);
                let Some((record, kept)) = self.resolved(found).await? else { continue };
                if any.admits(&record) {
                    rows.push(Row { record, place, recalled_at, kept });
                }
            }
            match page.next {
                Some(next) if after.as_ref() != Some(&next) => after = Some(next),
                Some(_) | None => return Ok(rows),
            }
        }
    }

    /// Notes that memories were recalled.
    pub async fn touch(&self, ids: &[String], at: i64) -> Result<()> {
        let mut places = Vec::with_capacity(ids.len());
        for id in ids {
            let kept = self.mapping.get(&self.name, id).await?;
            places.push(kept.and_then(|kept| kept.place).unwrap_or_else(|| id.clone()));
        }
        self.store.touch(&places, at).await
    }

    fn stripe(&self, id: &str) -> &Mutex<()> {
        let sum = id.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31) + usize::from(byte));
        &self.stripes[sum % STRIPES]
    }
}

/// Adds what columns cannot hold. What they can hold may have been changed there since.
fn completed(record: Record, whole: Record) -> Record {
    let rounded = record.confidence as f32 == whole.confidence as f32;
    let confidence = if rounded { whole.confidence } else { record.confidence };
    Record { confidence, extra: whole.extra, ..record }
}

/// A live memory in a store.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) record: Record,
    pub(crate) place: String,
    pub(crate) recalled_at: Option<i64>,
    pub(crate) kept: Kept,
}
