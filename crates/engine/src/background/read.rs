//! Reading attachments, so that messages are found by what is written in them.
//!
//! What waits is read from the vault each time, newest first. A file that cannot be read, or that
//! runs into a bound, is read once and never again.

use std::time::{Duration, Instant};

use yore_domain::conversation::Attachment;
use yore_domain::{BlobHash, Result, VaultId};
use yore_policy::Permit;
use yore_store::Write;
use yore_store::inside::{Inside, Unread, gist};
use yore_text::{Bounds, Form, form_of, text_of};

use super::Left;
use crate::engine::{Engine, blocking};
use crate::ops::text_indexing;
use crate::run::Trace;

/// Messages per commit, and when a commit is made before there are as many.
const MESSAGES: usize = 64;
const TEXT: usize = 2 << 20;
const TURN: Duration = Duration::from_secs(5);
/// Bytes of a file that is read: one that must be whole, and how much of one that need not.
const WHOLE: u64 = 32 << 20;
const BEGINNING: usize = 4 << 20;

impl Engine {
    /// Reads the attachments of some messages.
    pub(super) async fn read_attachments(&self, vault: VaultId) -> Result<Left> {
        let permit = self.system(vault, "read attachments")?;
        let waiting = self.store().snapshot(&permit).await?.unread(MESSAGES).await?;
        if waiting.is_empty() {
            return Ok(Left::Nothing);
        }
        let begun = Instant::now();
        let (mut writes, mut length) = (Vec::new(), 0);
        for Unread { row, message } in waiting {
            let mut inside: Vec<Inside> = Vec::new();
            for attachment in &message.attachments {
                let Some(blob) = attachment.blob else { continue };
                let left = TEXT.saturating_sub(inside.iter().map(|one| one.text.len()).sum());
                if left == 0 || inside.iter().any(|one| one.blob == blob) {
                    continue;
                }
                if let Some(text) = self.inside_of(&permit, blob, attachment, left).await? {
                    inside.push(Inside { blob, text });
                }
            }
            length += inside.iter().map(|one| one.text.len()).sum::<usize>();
            let indexing = text_indexing(self, &gist(&message.text, &inside));
            writes.push(Write::Inside { row, inside, indexing });
            if length >= TEXT || begun.elapsed() >= TURN {
                break;
            }
        }
        let trace = Trace::count(writes.len());
        self.commit_own(&permit, writes, Vec::new(), trace).await
    }

    /// The text of an attachment, if it is of a kind that has any.
    async fn inside_of(
        &self,
        permit: &Permit,
        blob: BlobHash,
        attachment: &Attachment,
        most: usize,
    ) -> Result<Option<String>> {
        // The server sees every message, but one that was erased meanwhile took its bytes along.
        let Some(size) = self.store().snapshot(permit).await?.blob(blob).await? else {
            return Ok(None);
        };
        let mut bytes = self.piece_of(permit, blob, 0).await?.unwrap_or_default();
        let wanted = match form_of(&bytes, &attachment.media_type) {
            None => return Ok(None),
            Some(Form::Pdf | Form::Packed) if size > WHOLE => return Ok(None),
            Some(Form::Pdf | Form::Packed) => usize::MAX,
            Some(Form::Markup | Form::Plain) => BEGINNING,
        };
        let mut number = 1;
        while (bytes.len() as u64) < size && bytes.len() < wanted {
            let Some(piece) = self.piece_of(permit, blob, number).await? else { break };
            bytes.extend(piece);
            number += 1;
        }
        let media_type = attachment.media_type.clone();
        let usual = Bounds::default();
        let bounds = Bounds { text: usual.text.min(most), ..usual };
        blocking(move || text_of(&bytes, &media_type, &bounds)).await
    }

    async fn piece_of(
        &self,
        permit: &Permit,
        blob: BlobHash,
        number: u32,
    ) -> Result<Option<Vec<u8>>> {
        self.store().snapshot(permit).await?.blob_chunk(blob, number).await
    }
}
