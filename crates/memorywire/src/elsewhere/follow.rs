//! What the stores beside the vault make of a change in it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use yore_domain::Result;
use yore_domain::class::Sensitivity;
use yore_engine::Call;
use yore_router::{Capability, Slot, Whose};

use super::kind;
use crate::map::{kind_of, type_of};
use crate::wire::{Forget, Remember, StoreCount};
use crate::{Memorywire, STORE};

/// How often it is looked whether a delivery has arrived.
const LOOK: Duration = Duration::from_millis(5);

impl Memorywire {
    /// Waits until the other stores have a new memory, each as long as its deadline allows, and
    /// names those that do. The others get it later.
    pub(crate) async fn arrived(
        &self,
        call: &Call,
        request: &Remember,
        id: &str,
    ) -> Result<Vec<String>> {
        let needed = Capability::of(kind(type_of(kind_of(request))));
        let able = |slot: &&Arc<Slot>| {
            slot.store().capabilities().contains(&needed)
                && slot.terms().ceiling >= Sensitivity::Internal
                && request.privacy_intent.as_ref().is_none_or(|it| it.share_with.is_none())
        };
        let mut names = vec![STORE.to_owned()];
        let Some(stores) = self.beside(call).await? else { return Ok(names) };
        let id = [id.to_owned()];
        let slots: Vec<&Arc<Slot>> = stores.kept().filter(able).collect();
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
        request: &Forget,
    ) -> Result<(Vec<String>, Vec<StoreCount>)> {
        let Some(stores) = self.beside(call).await? else {
            return Ok((Vec::new(), Vec::new()));
        };
        let strange = self.forgettable(call, stores, &whose, gone, request).await?;
        let (forgotten, counts) = self.forget_there(call, stores, whose, strange, request).await?;
        let slots: Vec<&Arc<Slot>> = stores.kept().collect();
        let waiting: Vec<_> = slots.iter().map(|slot| until(slot, gone, false)).collect();
        let left = join_all(waiting).await;
        let row = |(slot, left): (&&Arc<Slot>, bool)| {
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
