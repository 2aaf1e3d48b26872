//! The bytes that came with messages, on their way to the vault.

use std::io::Read;

use bytes::Bytes;
use tokio::sync::mpsc;
use yore_archive::Blob;
use yore_client::api;
use yore_client::input::Nothing;

use crate::app::Session;
use crate::failure::{Failure, Result};

/// Bytes that are sent at once.
const PIECE: usize = 256 << 10;

/// Where an attachment was.
pub(super) enum Stored {
    /// It was sent.
    Now,
    /// The vault had it.
    Before,
}

/// Stores an attachment, unless the vault has it. One that cannot be read or is refused for what
/// it is comes back with the reason.
pub(super) async fn store(
    session: &mut Session<'_>,
    blob: &Blob,
) -> Result<std::result::Result<Stored, String>> {
    if session.client().attachment(blob.hash).await.is_ok() {
        return Ok(Ok(Stored::Before));
    }
    let sent = match send(session, blob).await {
        Err(yore_client::Error::Unreachable { .. }) => {
            // The process that served the vault may have ended: this finds the next one.
            session.call::<api::Whoami>(Nothing {}).await?;
            send(session, blob).await
        }
        sent => sent,
    };
    match sent {
        Ok(hash) if hash == blob.hash => Ok(Ok(Stored::Now)),
        Ok(_) => Ok(Err("it changed while it was read".to_owned())),
        Err(error) => match error.refusal().map(|refusal| refusal.code.as_str()) {
            Some("too_large" | "invalid") => Ok(Err(Failure::from(error).message)),
            Some(_) | None => Err(Failure::from(error).at("an attachment")),
        },
    }
}

async fn send(session: &Session<'_>, blob: &Blob) -> yore_client::Result<yore_domain::BlobHash> {
    let (sender, mut receiver) = mpsc::channel(4);
    let blob = blob.clone();
    // It ends by itself: with the bytes, or when nobody takes them any more.
    tokio::task::spawn_blocking(move || {
        let mut reader = match blob.open() {
            Ok(reader) => reader,
            Err(error) => {
                let failed = std::io::Error::other(error.to_string());
                return sender.blocking_send(Err(failed)).unwrap_or_default();
            }
        };
        loop {
            let mut piece = vec![0; PIECE];
            let (piece, ended) = match reader.read(&mut piece) {
                Ok(0) => return,
                Ok(count) => (Ok(Bytes::from(piece).slice(..count)), false),
                Err(error) => (Err(error), true),
            };
            if sender.blocking_send(piece).is_err() || ended {
                return;
            }
        }
    });
    let pieces = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
    session.client().attach(pieces).await.map(|attached| attached.blob)
}
