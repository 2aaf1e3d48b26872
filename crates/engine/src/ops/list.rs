//! Listing and counting what the caller may see.

use yore_domain::class::Surface;
use yore_domain::grant::Verb;
use yore_domain::memory::Memory;
use yore_domain::query::{Filter, Page, PageRequest};
use yore_domain::{Error, Result, limits};
use yore_policy::Need;

use super::get::target;
use super::shown::{shown_memory, standing_of};
use crate::call::Call;
use crate::engine::Engine;
use crate::run::Trace;

impl Engine {
    /// Lists memories that pass a filter, a page at a time.
    pub async fn list(
        &self,
        call: &Call,
        filter: Filter,
        page: PageRequest,
    ) -> Result<Page<Memory>> {
        self.list_on(call, filter, page, Surface::Retrieval).await
    }

    /// Lists memories to go out on another surface: handling may differ between them.
    pub async fn list_on(
        &self,
        call: &Call,
        filter: Filter,
        page: PageRequest,
        surface: Surface,
    ) -> Result<Page<Memory>> {
        let need = Need { surface, ..Need::one("list", Verb::Read) };
        self.look(call, need, (filter, page), |_, session, snapshot, (filter, page)| {
            Box::pin(async move {
                let page = snapshot.memories(filter, &bounded(page)?).await?;
                let mut items = Vec::with_capacity(page.items.len());
                for memory in page.items {
                    let standing = standing_of(session, snapshot, filter, &memory).await?;
                    items.extend(shown_memory(session, memory, &standing));
                }
                let targets = items.iter().map(|memory: &Memory| target(&memory.head)).collect();
                let trace = Trace { targets, ..Trace::count(items.len()) };
                Ok((Page { items, next: page.next }, trace))
            })
        })
        .await
    }

    /// Counts the memories that pass a filter.
    pub async fn count(&self, call: &Call, filter: Filter) -> Result<u64> {
        let need = Need::one("count", Verb::Read);
        self.look(call, need, filter, |_, _, snapshot, filter| {
            Box::pin(async move {
                let found = snapshot.count(filter).await?;
                Ok((found, Trace::default().with("count", found)))
            })
        })
        .await
    }
}

/// A page of at least one row and at most as many as are allowed.
pub(crate) fn bounded(page: &PageRequest) -> Result<PageRequest> {
    if page.limit == 0 {
        return Err(Error::invalid("limit", "must be at least 1"));
    }
    Ok(PageRequest { limit: page.limit.min(limits::PAGE), ..page.clone() })
}
