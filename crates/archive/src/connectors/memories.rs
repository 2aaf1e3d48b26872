//! Memories as drafts: what every connector that finds one does alike.

use serde_json::Value;
use yore_domain::Timestamp;
use yore_domain::kind::Facet;
use yore_domain::memory::Draft;
use yore_domain::provenance::{ActorKind, MessageRef};

use crate::ids;
use crate::item::{Note, Standing};

/// Platforms that keep memories, and files in which people wrote them down.
const KEEPERS: [&str; 5] = ["mem0", "letta", "mcp-memory", "basic-memory", "notes"];

/// A memory of a platform.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) platform: &'static str,
    /// What tells it from others; one part is the platform's own id.
    pub(crate) key: &'a [&'a str],
    pub(crate) facet: Facet,
    pub(crate) text: &'a str,
    pub(crate) created: Option<Timestamp>,
    /// The file it was read from.
    pub(crate) source: &'a str,
    /// The native form, when there is more to it than the text.
    pub(crate) native: Option<Value>,
}

impl Found<'_> {
    /// Makes it a note.
    pub(crate) fn note(self) -> Note {
        let mut draft = Draft::new(self.facet.kind(), self.text.trim());
        draft.content.facet = self.facet;
        draft.time.created = self.created;
        let provenance = &mut draft.content.provenance;
        provenance.actor_kind = ActorKind::Import;
        provenance.method = "imported".to_owned();
        provenance.source = Some(self.source.to_owned());
        provenance.provider = Some(self.platform.to_owned());
        provenance.at = self.created;
        if let Some(native) = self.native {
            draft.content.foreign.insert(
                self.platform.to_owned(),
                Value::Object([(crate::residue::NATIVE.to_owned(), native)].into_iter().collect()),
            );
        }
        let standing =
            if KEEPERS.contains(&self.platform) { Standing::Kept } else { Standing::Proposed };
        Note {
            id: ids::memory(self.platform, self.key),
            draft,
            active: true,
            standing,
            versions: Vec::new(),
        }
    }
}

/// Links a memory to the message it was drawn from.
pub(crate) fn drawn_from(mut note: Note, from: MessageRef) -> Note {
    note.draft.content.provenance.messages.push(from);
    note
}
