//! Changing what only the stores beside the vault have. Who may is policy's to say, and the audit
//! chain tells of it; a person decides about it at once or not at all, for what waits is about the
//! vault.

use std::collections::BTreeSet;

use yore_domain::mutation;
use yore_domain::{Error, Result};
use yore_engine::{Call, ChangedElsewhere, Elsewhere};
use yore_router::{Depth, Report, Whose};

use super::{Stores, refused};
use crate::Memorywire;
use crate::wire::{Forget, Object};

/// What became of memories that only other stores have.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    /// What is left of several.
    pub(crate) survivor: Option<String>,
    /// Which memories.
    pub(crate) ids: Vec<String>,
    /// The stores that had them.
    pub(crate) stores: Vec<String>,
}

/// What the keys of a merge name that only other stores have.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) canonical: BTreeSet<String>,
    pub(crate) duplicates: BTreeSet<String>,
}

impl Named {
    pub(crate) fn is_empty(&self) -> bool {
        self.canonical.is_empty() && self.duplicates.is_empty()
    }
}

impl Memorywire {
    /// What a forget names, by id or by filter, that only the other stores have.
    pub(super) async fn forgettable(
        &self,
        call: &Call,
        stores: &Stores,
        whose: &Whose,
        gone: &[String],
        request: &Forget,
    ) -> Result<BTreeSet<String>> {
        let ids = request.ids.as_deref().unwrap_or_default();
        let mut asked: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        let matching = match &request.filter {
            Some(filter)
                if !filter.is_empty()
                    && self.engine.may_change_elsewhere(call, how(request)).await? =>
            {
                stores.router.matching(whose, filter, self.engine.now().millis()).await.ids
            }
            Some(_) | None => Vec::new(),
        };
        asked.extend(matching.iter().map(String::as_str));
        asked.retain(|id| !gone.iter().any(|it| it == id));
        let strange = self.strangers(call, stores, &whose.agent, &asked).await?;
        if request.approval_required && !strange.is_empty() {
            return Err(cannot_wait());
        }
        Ok(strange)
    }

    /// Forgets what only the other stores have. Where the caller may not, nothing is forgotten,
    /// and that is no failure: to the vault there is no such memory.
    pub(super) async fn forget_there(
        &self,
        call: &Call,
        stores: &Stores,
        whose: Whose,
        ids: BTreeSet<String>,
        request: &Forget,
    ) -> Result<(Vec<String>, Vec<Report>)> {
        if ids.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let (ids, now) = (ids.into_iter().collect(), self.engine.now().millis());
        let depth = if request.hard_delete { Depth::Erase } else { Depth::Tombstone };
        let forget = yore_router::Forget { whose, ids, filter: Object::new(), depth, now };
        let work = async {
            let done = stores.router.forget(&forget).await.map_err(refused)?;
            Ok(changed((done.ids.clone(), done.stores), &done.ids))
        };
        match self.engine.change_elsewhere(call, how(request), work).await {
            Err(Error::Forbidden { .. }) => Ok((Vec::new(), Vec::new())),
            done => done,
        }
    }

    /// Lets expire what only the other stores have.
    pub(crate) async fn expire_there(
        &self,
        call: &Call,
        mut expire: yore_router::Expire,
    ) -> Result<Changed> {
        let Some(stores) = self.beside(call).await? else { return Ok(Changed::default()) };
        if !self.engine.may_change_elsewhere(call, Elsewhere::Expire).await? {
            return Ok(Changed::default());
        }
        let taken = stores.router.expiring(&expire).await.map_err(refused)?.ids;
        let taken = taken.iter().map(String::as_str).collect();
        let strange = self.strangers(call, stores, &expire.whose.agent, &taken).await?;
        if strange.is_empty() {
            return Ok(Changed::default());
        }
        expire.only = Some(strange);
        let work = async {
            let done = stores.router.expire(&expire).await.map_err(refused)?;
            let ids = done.ids.clone();
            Ok(changed(Changed { survivor: None, ids, stores: who(&done.stores) }, &done.ids))
        };
        self.engine.change_elsewhere(call, Elsewhere::Expire, work).await
    }

    /// What the keys of a merge name that only the other stores have; nothing where the caller may
    /// not change it.
    pub(crate) async fn named_there(
        &self,
        call: &Call,
        whose: &Whose,
        canonical: &str,
        duplicates: &[String],
    ) -> Result<Named> {
        let Some(stores) = self.beside(call).await? else { return Ok(Named::default()) };
        if !self.engine.may_change_elsewhere(call, Elsewhere::Merge).await? {
            return Ok(Named::default());
        }
        let now = self.engine.now().millis();
        let key = [canonical.to_owned()];
        let canonical = stores.router.named(whose, &key, now).await.ids;
        let duplicates = stores.router.named(whose, duplicates, now).await.ids;
        let both = canonical.iter().chain(&duplicates).map(String::as_str).collect();
        let strange = self.strangers(call, stores, &whose.agent, &both).await?;
        let canonical: BTreeSet<String> =
            canonical.into_iter().filter(|id| strange.contains(id)).collect();
        let duplicates = duplicates.into_iter();
        let duplicates =
            duplicates.filter(|id| strange.contains(id) && !canonical.contains(id)).collect();
        Ok(Named { canonical, duplicates })
    }

    /// Merges what only the other stores have, each store what it has.
    pub(crate) async fn merge_there(
        &self,
        call: &Call,
        merge: yore_router::Merge,
    ) -> Result<Changed> {
        let Some(stores) = self.beside(call).await? else { return Ok(Changed::default()) };
        let work = async {
            let (done, reports) = stores.router.merge(&merge).await.map_err(refused)?;
            let (survivor, ids) = (done.survivor, done.absorbed);
            let touched = ids.clone();
            Ok(changed(Changed { survivor, ids, stores: who(&reports) }, &touched))
        };
        self.engine.change_elsewhere(call, Elsewhere::Merge, work).await
    }

    /// Forgets what became part of a memory of the vault's.
    pub(crate) async fn absorb_there(
        &self,
        call: &Call,
        whose: Whose,
        ids: BTreeSet<String>,
    ) -> Result<Changed> {
        let Some(stores) = self.beside(call).await? else { return Ok(Changed::default()) };
        if ids.is_empty() {
            return Ok(Changed::default());
        }
        let (ids, now) = (ids.into_iter().collect(), self.engine.now().millis());
        let (filter, depth) = (Object::new(), Depth::Tombstone);
        let forget = yore_router::Forget { whose, ids, filter, depth, now };
        let work = async {
            let done = stores.router.forget(&forget).await.map_err(refused)?;
            let ids = done.ids.clone();
            Ok(changed(Changed { survivor: None, ids, stores: who(&done.stores) }, &done.ids))
        };
        self.engine.change_elsewhere(call, Elsewhere::Merge, work).await
    }
}

/// The refusal to let wait what only another store has.
pub(crate) fn cannot_wait() -> Error {
    let reason = "cannot be true for what only another store has: its changes cannot wait";
    Error::invalid("approval_required", reason)
}

fn how(request: &Forget) -> Elsewhere {
    Elsewhere::Forget(match request.hard_delete {
        true => mutation::Depth::Erase,
        false => mutation::Depth::Tombstone,
    })
}

fn changed<T>(answer: T, ids: &[String]) -> ChangedElsewhere<T> {
    let memories = ids.iter().filter_map(|id| id.parse().ok()).collect();
    ChangedElsewhere { answer, count: ids.len(), memories }
}

/// The stores that had something to change.
fn who(reports: &[Report]) -> Vec<String> {
    reports.iter().filter(|report| report.count > 0).map(|report| report.store.clone()).collect()
}
