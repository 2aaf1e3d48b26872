//! What changed since a place, for those who ask from time to time instead of listening.

use yore_domain::change::What;
use yore_domain::class::Surface;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::{Result, Seq};
use yore_policy::Need;

use crate::call::Call;
use crate::engine::Engine;
use crate::feed::{Event, told};
use crate::run::Trace;

/// How many changes are read at once.
const BATCH: usize = 256;

/// Some changes, and where to ask from the next time.
#[derive(Clone, Debug)]
pub struct Since {
    /// What changed, oldest first.
    pub events: Vec<Event>,
    /// Where to go on. It moves only with what is told, so that it tells nothing of the rest.
    pub cursor: String,
    /// Whether there is more already.
    pub more: bool,
}

impl Engine {
    /// Tells what changed of conversations and memories after a place, or from the beginning, as
    /// far as the caller may know.
    pub async fn changed_since(
        &self,
        call: &Call,
        after: Option<Seq>,
        limit: usize,
    ) -> Result<Since> {
        let verbs = Verbs::of(&[Verb::Read]);
        let need = Need::of("changes", verbs, Surface::Stream);
        self.look(call, need, (after, limit), |engine, session, snapshot, (after, limit)| {
            Box::pin(async move {
                let from = after.unwrap_or_default();
                let (mut read, mut events, mut more) = (from, Vec::new(), false);
                let mut cursor = engine.cursor(from);
                'all: loop {
                    let changes = snapshot.changes(read, BATCH).await?;
                    if changes.is_empty() {
                        break;
                    }
                    for change in changes {
                        let (seq, at) = (change.seq, change.at);
                        read = seq;
                        let Some(change) = told(session, snapshot, change).await? else { continue };
                        if !is_content(&change) {
                            continue;
                        }
                        if events.len() == *limit {
                            more = true;
                            break 'all;
                        }
                        cursor = engine.cursor(seq);
                        events.push(Event { cursor: cursor.clone(), change, at });
                    }
                }
                let trace = Trace::count(events.len());
                Ok((Since { events, cursor, more }, trace))
            })
        })
        .await
    }
}

/// Whether a change is one of what was said or is remembered.
const fn is_content(what: &What) -> bool {
    match what {
        What::Memory { .. }
        | What::Erased { .. }
        | What::Conversation { .. }
        | What::Message { .. }
        | What::ConversationErased { .. } => true,
        What::Profile { .. } | What::Hold { .. } | What::Grant { .. } | What::Job { .. } => false,
    }
}
