//! Pull sync: what changed since the last time, so that a copy elsewhere can follow.

use serde_json::json;
use yore_domain::change::What;
use yore_engine::Event;

use crate::Omp;
use crate::error::Result;
use crate::map::Object;
use crate::routes::{Asking, Sheet};

impl Omp {
    /// Lists changes after a cursor. The cursor to go on from is always told, even where nothing
    /// is new.
    pub(crate) async fn changes(&self, asking: &Asking) -> Result<(Sheet, bool)> {
        let Asking { call, params, .. } = asking;
        let after = params.one("cursor").map(|cursor| self.engine.seq_at(cursor)).transpose()?;
        let found = self.engine.changed_since(call, after, params.limit()?).await?;
        let data = found.events.iter().filter_map(event_out).collect();
        Ok((Sheet { data, next: Some(found.cursor) }, found.more))
    }
}

fn event_out(event: &Event) -> Option<Object> {
    let (kind, id, conversation) = match &event.change {
        What::Conversation { conversation, .. } => {
            ("conversation.changed", conversation.to_string(), None)
        }
        What::Message { conversation, message, .. } => {
            ("message.created", message.to_string(), Some(conversation))
        }
        What::ConversationErased { conversation, message: None, .. } => {
            ("conversation.deleted", conversation.to_string(), None)
        }
        What::ConversationErased { conversation, message: Some(message), .. } => {
            ("message.deleted", message.to_string(), Some(conversation))
        }
        What::Memory { memory, .. } => ("memory.changed", memory.to_string(), None),
        What::Erased { memory, .. } => ("memory.deleted", memory.to_string(), None),
        What::Profile { .. } | What::Hold { .. } | What::Grant { .. } | What::Job { .. } => {
            return None;
        }
    };
    let mut out = Object::new();
    out.insert("type".into(), kind.into());
    out.insert("id".into(), id.into());
    if let Some(conversation) = conversation {
        out.insert("conversation_id".into(), json!(conversation));
    }
    out.insert("timestamp".into(), event.at.to_string().into());
    Some(out)
}
