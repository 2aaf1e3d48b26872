//! What agents said to each other, kept as conversations.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use yore_canon::hash::Sha256;
use yore_domain::class::{Governance, Label, Sensitivity};
use yore_domain::conversation::{Conversation, Message, Role};
use yore_domain::memory::Foreign;
use yore_domain::scope::Scope;
use yore_domain::{ConversationId, MessageId, Result, Timestamp, VaultId};
use yore_store::{Precondition, Snapshot, Write};

use super::remember::text_indexing;
use crate::engine::Engine;

/// Bytes of a message that a transcript keeps.
const LONGEST: usize = 256 << 10;

/// One message of a transcript.
#[derive(Clone, Debug, Serialize)]
pub struct Spoken {
    /// Its id.
    pub id: MessageId,
    /// Its words.
    pub text: String,
    /// When it was said.
    pub at: Timestamp,
    /// What the protocol says about it; never a secret.
    pub about: Value,
}

/// Whose message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// An agent of the owner's.
    Own,
    /// Anybody else's agent.
    Other,
    /// The vault itself.
    Vault,
}

/// What keeps a message, and what must be so for it. The view must hide nothing: the transcript is
/// the owner's, and what a sender may see does not decide what is kept.
pub(crate) async fn record(
    engine: &Engine,
    view: &dyn Snapshot,
    vault: VaultId,
    protocol: &str,
    thread: &str,
    speaker: Speaker,
    said: &Spoken,
) -> Result<(Vec<Write>, Precondition)> {
    let known = view.conversation(conversation_of(vault, protocol, thread)).await?;
    let known = known.map(|(known, _)| known);
    Ok(added(engine, known, vault, protocol, thread, speaker, said))
}

/// The same for a conversation that is known, or taken to be new: the precondition finds out.
pub(crate) fn added(
    engine: &Engine,
    known: Option<Conversation>,
    vault: VaultId,
    protocol: &str,
    thread: &str,
    speaker: Speaker,
    said: &Spoken,
) -> (Vec<Write>, Precondition) {
    let id = conversation_of(vault, protocol, thread);
    let exists = known.is_some();
    let mut head = known.unwrap_or_else(|| Conversation {
        id,
        title: None,
        platform: protocol.to_owned(),
        model: None,
        created: said.at,
        updated: said.at,
        scope: Scope::default(),
        governance: governance(protocol),
        tags: Vec::new(),
        summary: None,
        language: None,
        foreign: Foreign::from([(protocol.to_owned(), serde_json::json!({ "thread": thread }))]),
    });
    head.updated = head.updated.max(said.at);
    let role = match speaker {
        Speaker::Own => Role::User,
        Speaker::Other => Role::Assistant,
        Speaker::Vault => Role::Tool,
    };
    let text = clipped(&said.text);
    let message = Message {
        id: said.id,
        role,
        content: Value::from(text),
        text: text.to_owned(),
        at: said.at,
        model: None,
        platform: Some(protocol.to_owned()),
        parent: None,
        off_path: false,
        attachments: Vec::new(),
        foreign: Foreign::from([(protocol.to_owned(), said.about.clone())]),
    };
    let writes = vec![
        Write::Conversation(Box::new(head)),
        Write::Message {
            conversation: id,
            indexing: text_indexing(engine, text),
            message: Arc::new(message),
        },
    ];
    (writes, Precondition::Conversation(id, exists))
}

/// Whoever reads along must be trusted with what agents confide to the vault.
fn governance(protocol: &str) -> Governance {
    Governance {
        sensitivity: Some(Sensitivity::Confidential),
        labels: Label::new(protocol).into_iter().collect(),
        handling: None,
    }
}

fn conversation_of(vault: VaultId, protocol: &str, thread: &str) -> ConversationId {
    let named = [&vault.bytes()[..], protocol.as_bytes(), b"\n", thread.as_bytes()].concat();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::of(named).as_bytes()[..16]);
    ConversationId::from_bytes(bytes)
}

fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}
