//! Attachments: bytes by their hash, stored in pieces, readable through a message that names them.

use yore_domain::grant::Verb;
use yore_domain::{BlobHash, Error, Result};
use yore_policy::Need;
use yore_store::Write;

use crate::call::Call;
use crate::engine::{Engine, blocking};
use crate::run::{Planned, Trace};

/// Bytes of one piece.
const PIECE: usize = 256 << 10;
/// Pieces of one commit: the writer is not held for longer.
const PIECES: usize = 32;
/// Bytes of one attachment.
const BYTES: usize = 256 << 20;

impl Engine {
    /// Stores an attachment. It is seen once a visible message names it.
    pub async fn attach(&self, call: &Call, bytes: Vec<u8>) -> Result<BlobHash> {
        if bytes.len() > BYTES {
            return Err(Error::too_large("attachment", "256 MiB"));
        }
        let size = bytes.len() as u64;
        let (blob, bytes) = blocking(move || (BlobHash::of(&bytes), bytes)).await?;
        let mut pieces: Vec<(u32, Vec<u8>)> =
            (0..).zip(bytes.chunks(PIECE).map(<[u8]>::to_vec)).collect();
        if pieces.is_empty() {
            pieces.push((0, Vec::new()));
        }
        let last = pieces.len() - 1;
        for (at, batch) in pieces.chunks(PIECES).enumerate() {
            let complete = (at * PIECES + batch.len() - 1 == last).then_some(size);
            let input = (blob, batch.to_vec(), complete);
            // A later piece under the first one's operation id would be taken for a retry.
            let piece = Call { operation: None, ..call.clone() };
            let need = Need::one("attach", Verb::Write);
            self.change(&piece, need, input, |_, _, _, (blob, batch, complete)| {
                Box::pin(async move {
                    let end = batch.last().map(|(number, _)| *number);
                    let writes = batch
                        .iter()
                        .map(|(number, bytes)| Write::BlobChunk {
                            blob: *blob,
                            number: *number,
                            bytes: bytes.clone(),
                            complete: complete.filter(|_| Some(*number) == end),
                        })
                        .collect();
                    let trace = Trace::default().with("pieces", batch.len());
                    Ok(Planned::done((), writes).traced(trace))
                })
            })
            .await?;
        }
        Ok(blob)
    }

    /// Returns the bytes of an attachment that a visible message names.
    pub async fn attachment(&self, call: &Call, blob: BlobHash) -> Result<Vec<u8>> {
        self.look(call, Need::one("attachment", Verb::Read), blob, |_, _, snapshot, blob| {
            Box::pin(async move {
                let size = snapshot.blob(*blob).await?.ok_or(Error::NotFound)?;
                let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0).min(BYTES));
                let mut number = 0;
                while (bytes.len() as u64) < size {
                    let piece = snapshot.blob_chunk(*blob, number).await?;
                    bytes.extend(piece.ok_or_else(|| Error::internal("a piece is missing"))?);
                    number += 1;
                }
                Ok((bytes, Trace::default().with("bytes", size)))
            })
        })
        .await
    }
}
