//! What all requests share.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::task::AbortHandle;
use yore_domain::hold::HoldState;
use yore_domain::{Error, HoldId, Result};
use yore_engine::{Asked, Call, Decision, Engine};
use yore_http::Surface;

use crate::Options;
use crate::intake::Intakes;
use crate::numbers::Book;
use crate::oauth::cards::Cards;
use crate::oauth::codes::Codes;
use crate::pages::api::Described;
use crate::pages::operators::{Away, Choice};
use crate::questions::Questions;
use crate::timing::Timing;

/// The engine as pages see it, and the decisions that can still be taken back.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    pub(crate) surface: Surface,
    /// Codes of agents that were let in a moment ago.
    pub(crate) codes: Arc<Codes>,
    /// What clients that have an address say of themselves.
    pub(crate) cards: Arc<Cards>,
    /// What the operator decided.
    pub(crate) options: Arc<Options>,
    /// Imports that are under way.
    pub(crate) intakes: Intakes,
    /// What was counted.
    pub(crate) book: Book,
    /// How long pages took.
    pub(crate) timing: Timing,
    /// What is said of the API.
    pub(crate) described: Arc<OnceLock<Described>>,
    /// What was asked of browsers about passkeys.
    pub(crate) questions: Arc<Questions<Asked>>,
    /// Who was sent to an identity provider and did not come back yet.
    pub(crate) away: Arc<Questions<Away>>,
    /// Who came back and may choose as what to sign in.
    pub(crate) choosing: Arc<Questions<Choice>>,
    waiting: Arc<Mutex<HashMap<HoldId, Waiting>>>,
}

/// A decision that is carried out in a moment.
#[derive(Debug)]
struct Waiting {
    /// Which sign-in made it.
    by: String,
    approves: bool,
    timer: AbortHandle,
}

impl Desk {
    pub(crate) fn new(surface: Surface, options: Options) -> Self {
        Self {
            surface,
            codes: Arc::default(),
            cards: Arc::default(),
            options: Arc::new(options),
            intakes: Intakes::default(),
            book: Book::default(),
            timing: Timing::default(),
            described: Arc::default(),
            questions: Arc::default(),
            away: Arc::default(),
            choosing: Arc::default(),
            waiting: Arc::default(),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.surface.engine
    }

    /// Carries a decision out once the time to take it back is over. A server that ends before
    /// then leaves the operation undecided.
    pub(crate) async fn decide(
        &self,
        call: Call,
        by: &str,
        hold: HoldId,
        decision: Decision,
    ) -> Result<()> {
        if self.options.undo.is_zero() {
            return self.engine().review(&call, hold, decision, None).await.map(drop);
        }
        if self.engine().hold(&call, hold).await?.state != HoldState::Pending {
            return Err(Error::conflict("it has been decided already"));
        }
        let approves = match decision {
            Decision::Approve | Decision::Edit(_) | Decision::Instead(_) => true,
            Decision::Reject => false,
        };
        let mut waiting = self.waiting.lock();
        if waiting.contains_key(&hold) {
            return Err(Error::conflict("it has been decided already"));
        }
        let (engine, list, undo) =
            (self.engine().clone(), Arc::clone(&self.waiting), self.options.undo);
        let task = tokio::spawn(async move {
            tokio::time::sleep(undo).await;
            // From here on it cannot be taken back, so nothing is stopped half-way.
            if list.lock().remove(&hold).is_none() {
                return;
            }
            if let Err(error) = engine.review(&call, hold, decision, None).await {
                tracing::warn!(%hold, code = error.code(), "a decision could not be carried out");
            }
        });
        let entry = Waiting { by: by.to_owned(), approves, timer: task.abort_handle() };
        waiting.insert(hold, entry);
        Ok(())
    }

    /// Takes decisions back that this sign-in made; answers how many.
    pub(crate) fn take_back(&self, by: &str, holds: &[HoldId]) -> usize {
        let mut waiting = self.waiting.lock();
        let mut taken = 0;
        for hold in holds {
            if waiting.get(hold).is_some_and(|one| one.by == by)
                && let Some(one) = waiting.remove(hold)
            {
                one.timer.abort();
                taken += 1;
            }
        }
        taken
    }

    /// What is decided about a hold but not carried out: whether it is approved.
    pub(crate) fn decided(&self, hold: HoldId) -> Option<bool> {
        self.waiting.lock().get(&hold).map(|one| one.approves)
    }
}
