//! The ledger of what was erased: it outlives the vault's own copies.

use yore_domain::audit::Outcome;
use yore_domain::class::Surface;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::hold::HoldState;
use yore_domain::memory::Status;
use yore_domain::{ConversationId, MemoryId, Result, Timestamp, VaultId};
use yore_policy::{Need, Permit, Protection};
use yore_store::plan::Grave;
use yore_store::snapshot::Buried;
use yore_store::{CommitError, Plan, Snapshot, Write};

use super::hold_talk::protection;
use super::profile::HOLDS;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Trace};

/// Erasures of one commit.
const ERASURES: usize = 200;

impl Engine {
    /// Says when something was erased in the vault, oldest first.
    pub async fn erasures(&self, call: &Call) -> Result<Vec<Timestamp>> {
        self.look(call, Need::one("erasures", Verb::Admin), (), |_, _, snapshot, ()| {
            Box::pin(async move {
                let graves = snapshot.graves().await?;
                let times: Vec<Timestamp> = graves.into_iter().map(|(_, at)| at).collect();
                let trace = Trace::count(times.len());
                Ok((times, trace))
            })
        })
        .await
    }

    /// Says what of a conversation was erased, so that no archive brings it back. An agent is told
    /// only of what it called by a name of its own.
    pub async fn erased_of(&self, call: &Call, conversation: ConversationId) -> Result<Buried> {
        let need = Need::one("restore", Verb::Write);
        let session = self.enter_again(&self.renewed(call), need).await?;
        let snapshot = self.store().snapshot(&session.permit).await?;
        snapshot.buried(session.namespace(), &conversation.to_string()).await
    }

    /// Whether a memory was erased, so that no other host brings it back. An agent is told only
    /// of what it called by a name of its own.
    pub async fn was_erased(&self, call: &Call, memory: MemoryId) -> Result<bool> {
        let need = Need::one("restore", Verb::Write);
        let session = self.enter_again(&self.renewed(call), need).await?;
        let snapshot = self.store().snapshot(&session.permit).await?;
        Ok(snapshot.buried(session.namespace(), &memory.to_string()).await?.whole)
    }

    /// Erases what is left of a vault when its memories and conversations are gone: what waits
    /// or was decided, and the profile. Returns how much that was.
    pub async fn erase_rest(&self, call: &Call) -> Result<usize> {
        let verbs = Verbs::of(&[Verb::Admin, Verb::Erase]);
        let need = Need::of("erase-rest", verbs, Surface::Retrieval);
        self.change(call, need, (), |_, _, snapshot, ()| {
            Box::pin(async move {
                let mut writes = Vec::new();
                for state in [
                    HoldState::Pending,
                    HoldState::Approved,
                    HoldState::Rejected,
                    HoldState::Expired,
                ] {
                    let holds = snapshot.holds(state, HOLDS).await?;
                    writes.extend(holds.into_iter().map(|hold| Write::EraseHold(hold.id)));
                }
                if snapshot.profile(None, None).await?.is_some() {
                    writes.push(Write::EraseProfile(None));
                }
                let count = writes.len();
                Ok(Planned::done(count, writes).traced(Trace::count(count)))
            })
        })
        .await
    }

    /// What was erased in a vault. One that was destroyed has no ledger any more.
    pub(crate) async fn graves(&self, permit: &Permit) -> Result<Vec<(Grave, Timestamp)>> {
        if self.keeper().info(permit).await?.is_none() {
            return Ok(Vec::new());
        }
        self.store().snapshot(permit).await?.graves().await
    }

    /// Erases again what an older copy brought back, and returns how much that was.
    pub(crate) async fn bury_again(
        &self,
        vault: VaultId,
        graves: Vec<(Grave, Timestamp)>,
    ) -> Result<usize> {
        let permit = self.system(vault, "erase again")?;
        let mut gone = 0;
        for some in graves.chunks(ERASURES) {
            let mut writes = Vec::with_capacity(some.len());
            let snapshot = self.store().snapshot(&permit).await?;
            for (grave, _) in some {
                let write = erasure(&*snapshot, *grave).await?;
                gone += usize::from(!matches!(write, Write::Bury(_)));
                writes.push(write);
            }
            drop(snapshot);
            let call = Call::anonymous("background");
            let trace = Trace::count(writes.len());
            let (actor, now) = (permit.actor(), self.now());
            let audit = self.draft(&call, actor, permit.operation(), now, Outcome::Done, trace);
            match self.store().commit(&permit, Plan { writes, ..Plan::of(audit) }).await {
                Ok(_) => {}
                Err(CommitError::Stale(what)) => return Err(yore_domain::Error::internal(what)),
                Err(CommitError::Failed(error)) => return Err(error),
            }
        }
        Ok(gone)
    }
}

/// What makes it true again that something is gone. A legal hold that the copy has wins.
async fn erasure(snapshot: &dyn Snapshot, grave: Grave) -> Result<Write> {
    let protected = match grave {
        Grave::Memory(_) => Protection::None,
        Grave::Conversation(talk) | Grave::Message(talk, _) => protection(snapshot, talk).await?,
    };
    if protected == Protection::LegalHold {
        return Ok(Write::Bury(grave));
    }
    Ok(match grave {
        Grave::Memory(memory) => match snapshot.memory(memory).await? {
            Some(known) if known.head.status != Status::Erased && !known.legal_hold => {
                Write::Erase { memory }
            }
            Some(_) | None => Write::Bury(grave),
        },
        Grave::Conversation(talk) => match snapshot.conversation(talk).await? {
            Some(_) => Write::EraseConversation(talk),
            None => Write::Bury(grave),
        },
        Grave::Message(talk, message) => match snapshot.message(talk, message).await? {
            Some(_) => Write::EraseMessage(talk, message),
            None => Write::Bury(grave),
        },
    })
}
