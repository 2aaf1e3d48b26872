//! Going through every conversation, for reports that count.

use yore_domain::class::Surface;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::query::{Filter, Order, PageRequest};
use yore_domain::{Result, limits};
use yore_policy::Need;

use super::talk::{Talk, whole};
use crate::call::Call;
use crate::engine::Engine;
use crate::run::Trace;

impl Engine {
    /// Shows every conversation the caller sees, one after the other. The audit chain has one
    /// entry for the whole.
    pub async fn survey(&self, call: &Call, mut visit: impl FnMut(&Talk) + Send) -> Result<()> {
        let verbs = Verbs::of(&[Verb::Read, Verb::Admin]);
        let need = Need::of("survey", verbs, Surface::Retrieval);
        let session = self.enter(call, need).await?;
        let looked = async {
            let snapshot = self.store().snapshot(&session.permit).await?;
            let (filter, order) = (Filter::default(), Order::OldestFirst);
            let mut page = PageRequest { limit: limits::PAGE, order, ..PageRequest::default() };
            let mut count = 0;
            loop {
                let some = snapshot.conversations(&filter, &page).await?;
                for (head, _) in &some.items {
                    visit(&whole(&*snapshot, head.id).await?);
                    count += 1;
                }
                match some.next {
                    Some(next) => page.after = Some(next),
                    None => return Ok(((), Trace::count(count))),
                }
            }
        };
        let looked = looked.await;
        self.leave(call, &session, looked).await
    }
}
