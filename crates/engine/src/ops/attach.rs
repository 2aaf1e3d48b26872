//! Attachments: bytes by their hash, stored in pieces, readable through a message that names them.

use futures::stream::{self, BoxStream, StreamExt};
use serde::Serialize;
use yore_domain::grant::Verb;
use yore_domain::{BlobHash, BlobHasher, Error, Result};
use yore_policy::Need;
use yore_store::Write;

use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Session, Trace};
use crate::token::Seed;

/// Bytes of one piece.
const PIECE: usize = 256 << 10;
/// Bytes of one commit: the writer is not held for longer, and no more wait in memory.
const BATCH: usize = 4 << 20;
/// Bytes of one attachment.
const BYTES: u64 = 256 << 20;

/// An attachment on its way in. It becomes one with [`Upload::finish`]; one that is dropped
/// before leaves pieces behind that nobody can read, until the vault is opened again.
#[derive(Debug)]
pub struct Upload {
    engine: Engine,
    call: Call,
    /// The name of the pieces until the hash of the whole is known.
    staged: BlobHash,
    hasher: BlobHasher,
    size: u64,
    number: u32,
    waiting: Vec<u8>,
}

/// An attachment on its way out.
pub struct Download {
    /// Its size in bytes.
    pub size: u64,
    /// Its bytes, piece by piece.
    pub pieces: BoxStream<'static, Result<Vec<u8>>>,
}

impl std::fmt::Debug for Download {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Download").field("size", &self.size).finish_non_exhaustive()
    }
}

#[derive(Debug, Serialize)]
enum Step {
    Pieces { staged: BlobHash, first: u32, bytes: Vec<u8> },
    Name { staged: BlobHash, blob: BlobHash, size: u64 },
}

impl Engine {
    /// Begins an attachment. It is seen once it is whole and a visible message names it.
    pub async fn upload(&self, call: &Call) -> Result<Upload> {
        let session = self.enter(call, need()).await?;
        self.leave(call, &session, Ok(((), Trace::default()))).await?;
        let staged = BlobHash(Seed::random()?.bytes());
        // A later piece under the first one's operation id would be taken for a retry.
        let call = Call { operation: None, ..call.clone() };
        Ok(Upload {
            engine: self.clone(),
            call,
            staged,
            hasher: BlobHasher::default(),
            size: 0,
            number: 0,
            waiting: Vec::new(),
        })
    }

    /// Stores an attachment that is at hand.
    pub async fn attach(&self, call: &Call, bytes: Vec<u8>) -> Result<BlobHash> {
        let mut upload = self.upload(call).await?;
        for part in bytes.chunks(BATCH) {
            upload.write(part).await?;
        }
        upload.finish().await
    }

    /// Reads an attachment that a visible message names, piece by piece.
    pub async fn download(&self, call: &Call, blob: BlobHash) -> Result<Download> {
        let session = self.enter(call, Need::one("attachment", Verb::Read)).await?;
        let size = async {
            let snapshot = self.store().snapshot(&session.permit).await?;
            let size = snapshot.blob(blob).await?.ok_or(Error::NotFound)?;
            Ok((size, Trace::default().with("bytes", size)))
        };
        let size = size.await;
        let size = self.leave(call, &session, size).await?;
        let state = (self.clone(), session, 0, 0);
        let pieces = stream::try_unfold(state, move |(engine, session, number, read)| async move {
            if read >= size {
                return Ok(None);
            }
            // No snapshot stays open between two pieces: a slow reader would hold up the journal.
            let bytes = engine.piece(&session, blob, number).await?;
            let read = read + bytes.len() as u64;
            Ok(Some((bytes, (engine, session, number + 1, read))))
        });
        Ok(Download { size, pieces: pieces.boxed() })
    }

    /// Returns the bytes of an attachment that a visible message names.
    pub async fn attachment(&self, call: &Call, blob: BlobHash) -> Result<Vec<u8>> {
        let Download { mut pieces, .. } = self.download(call, blob).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = pieces.next().await {
            bytes.extend(piece?);
        }
        Ok(bytes)
    }

    async fn piece(&self, session: &Session, blob: BlobHash, number: u32) -> Result<Vec<u8>> {
        let snapshot = self.store().snapshot(&session.permit).await?;
        let piece = snapshot.blob_chunk(blob, number).await?;
        piece.ok_or_else(|| Error::conflict("the attachment was removed meanwhile"))
    }
}

impl Upload {
    /// Takes the next bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.size += bytes.len() as u64;
        if self.size > BYTES {
            return Err(Error::too_large("attachment", "256 MiB"));
        }
        self.hasher.update(bytes);
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= BATCH {
            let whole = self.waiting.len() - self.waiting.len() % PIECE;
            let rest = self.waiting.split_off(whole);
            let bytes = std::mem::replace(&mut self.waiting, rest);
            self.store(bytes).await?;
        }
        Ok(())
    }

    /// Makes it an attachment and returns its hash.
    pub async fn finish(mut self) -> Result<BlobHash> {
        if !self.waiting.is_empty() {
            let rest = std::mem::take(&mut self.waiting);
            self.store(rest).await?;
        }
        let Self { staged, size, .. } = self;
        let blob = std::mem::take(&mut self.hasher).finish();
        self.step(Step::Name { staged, blob, size }).await?;
        Ok(blob)
    }

    async fn store(&mut self, bytes: Vec<u8>) -> Result<()> {
        let (staged, first) = (self.staged, self.number);
        let pieces = bytes.len().div_ceil(PIECE);
        self.number += u32::try_from(pieces).expect("invariant: an attachment has few pieces");
        self.step(Step::Pieces { staged, first, bytes }).await
    }

    async fn step(&self, step: Step) -> Result<()> {
        let call = self.engine.renewed(&self.call);
        self.engine
            .change(&call, need(), step, |_, session, _, step| {
                Box::pin(async move { Ok(planned(session, step)) })
            })
            .await
    }
}

fn need() -> Need {
    Need::one("attach", Verb::Write)
}

/// The setting that says an agent brought an attachment, so that its messages may name it.
pub(crate) fn brought(agent: &str, blob: BlobHash) -> String {
    format!("brought:{agent}:{blob}")
}

fn planned(session: &Session, step: &Step) -> Planned<()> {
    match step {
        Step::Pieces { staged, first, bytes } => {
            let pieces = (*first..).zip(bytes.chunks(PIECE));
            let writes: Vec<Write> = pieces
                .map(|(number, bytes)| Write::BlobChunk {
                    blob: *staged,
                    number,
                    bytes: bytes.to_vec(),
                    complete: None,
                })
                .collect();
            let trace = Trace::default().with("pieces", writes.len());
            Planned::done((), writes).traced(trace)
        }
        Step::Name { staged, blob, size } => {
            let mut writes = vec![Write::BlobNamed { staged: *staged, blob: *blob, size: *size }];
            if !session.is_owner() {
                let name = brought(session.namespace(), *blob);
                writes.push(Write::Setting(name, true.into()));
            }
            Planned::done((), writes).traced(Trace::default().with("bytes", *size))
        }
    }
}
