//! Which memories a request names, by id, by entity or by filter.
//!
//! Only live memories of the request's agent, and of its person where it names one, are ever
//! found; everything else is as good as absent, whoever asks. What belongs to no agent is found by
//! its id; no filter and no policy of an agent sweeps it up.

use std::collections::BTreeSet;

use yore_domain::memory::{Memory, Version};
use yore_domain::query::PageRequest;
use yore_domain::{Error, HoldId, MemoryId, Result, Timestamp, limits};
use yore_engine::{Call, Chain, Purpose, Reference};

use crate::Memorywire;
use crate::filter::Narrowed;
use crate::map::confidence;
use crate::wire::Object;

/// The member of the metadata by which a memory is found as an entity.
pub(crate) const ENTITY: &str = "entity_name";

/// A memory that a request names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: MemoryId,
    pub(crate) user: Option<String>,
    pub(crate) confidence: f64,
    /// When its chain began.
    pub(crate) since: Timestamp,
}

impl Row {
    fn of(head: &Version, since: Timestamp) -> Self {
        Self {
            id: head.memory,
            user: head.content.scope.user.clone(),
            confidence: confidence(&head.content),
            since,
        }
    }
}

/// Whose memories a request is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whose<'a> {
    pub(crate) agent: &'a str,
    pub(crate) user: Option<&'a str>,
    /// What the caller is about to do: whoever may not do it need not look.
    pub(crate) purpose: Purpose,
}

impl Whose<'_> {
    /// Whether a memory with this head is one of them or nobody's, and live.
    pub(crate) fn is(self, head: &Version, now: Timestamp) -> bool {
        let scope = &head.content.scope;
        head.status.is_live()
            && head.content.lifecycle.expires.is_none_or(|end| now < end)
            && scope.agent.as_deref().is_none_or(|agent| agent == self.agent)
            && self.user.is_none_or(|user| scope.user.as_deref() == Some(user))
    }
}

impl Memorywire {
    /// The rows of some ids and of a filter, each once.
    pub(crate) async fn rows(
        &self,
        call: &Call,
        whose: Whose<'_>,
        ids: &[String],
        filter: Option<&Object>,
    ) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for id in ids {
            rows.extend(self.row(call, whose, id).await?);
        }
        if let Some(members) = filter.filter(|members| !members.is_empty())
            && let Some(narrowed) = Narrowed::of(whose.agent, whose.user).by(members)
        {
            rows.extend(self.matching(call, whose, &narrowed).await?);
        }
        once(&mut rows);
        Ok(rows)
    }

    /// The rows of some keys: an id of one, or the name of an entity that several may have.
    pub(crate) async fn keyed(
        &self,
        call: &Call,
        whose: Whose<'_>,
        keys: &[String],
    ) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for key in keys {
            if let Some(row) = self.row(call, whose, key).await? {
                rows.push(row);
                continue;
            }
            let mut narrowed = Narrowed::of(whose.agent, whose.user);
            narrowed.filter.members.insert(ENTITY.to_owned(), key.as_str().into());
            rows.extend(self.matching(call, whose, &narrowed).await?);
        }
        once(&mut rows);
        Ok(rows)
    }

    async fn row(&self, call: &Call, whose: Whose<'_>, id: &str) -> Result<Option<Row>> {
        let found = self.found(call, whose, id).await?;
        Ok(found.map(|chain| {
            let first = chain.versions.first().unwrap_or(&chain.asked);
            Row::of(&chain.asked, first.time.created)
        }))
    }

    /// The memory of an id. The name that a write had while it waited means what became of it.
    pub(crate) async fn found(
        &self,
        call: &Call,
        whose: Whose<'_>,
        id: &str,
    ) -> Result<Option<Chain>> {
        let Ok(id) = id.parse::<MemoryId>() else { return Ok(None) };
        let found = match self.chain(call, whose, id).await? {
            Some(found) => Some(found),
            None => match self.approved(call, HoldId::from_bytes(id.bytes())).await? {
                Some(memory) => self.chain(call, whose, memory).await?,
                None => None,
            },
        };
        let now = self.engine.now();
        Ok(found.filter(|chain| whose.is(&chain.asked, now)))
    }

    async fn chain(&self, call: &Call, whose: Whose<'_>, id: MemoryId) -> Result<Option<Chain>> {
        match self.engine.chain(call, vec![Reference::Memory(id)], whose.purpose).await {
            Ok(chain) => Ok(Some(chain)),
            Err(Error::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The memory that the approval of a hold made.
    async fn approved(&self, call: &Call, hold: HoldId) -> Result<Option<MemoryId>> {
        match self.engine.hold(call, hold).await {
            Ok(hold) => Ok(hold.outcome),
            Err(Error::NotFound | Error::Forbidden { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn matching(
        &self,
        call: &Call,
        whose: Whose<'_>,
        narrowed: &Narrowed,
    ) -> Result<Vec<Row>> {
        let row = |memory: &Memory| Some(Row::of(&memory.head, memory.since));
        self.each(call, whose, narrowed, row).await
    }

    /// Goes through all that is narrowed to and keeps something of each.
    pub(crate) async fn each<T>(
        &self,
        call: &Call,
        whose: Whose<'_>,
        narrowed: &Narrowed,
        keep: impl Fn(&Memory) -> Option<T>,
    ) -> Result<Vec<T>> {
        let mut kept = Vec::new();
        let mut page = PageRequest { limit: limits::PAGE, ..PageRequest::default() };
        loop {
            let some = self.engine.list(call, narrowed.filter.clone(), page.clone()).await?;
            let now = self.engine.now();
            let fits = |head: &Version| whose.is(head, now) && narrowed.passes(&head.content);
            let found = some.items.iter().filter(|memory| fits(&memory.head));
            kept.extend(found.filter_map(&keep));
            match some.next {
                Some(next) => page.after = Some(next),
                None => return Ok(kept),
            }
        }
    }
}

/// Leaves each row in once, the first time.
fn once(rows: &mut Vec<Row>) {
    let mut seen = BTreeSet::new();
    rows.retain(|row| seen.insert(row.id));
}
