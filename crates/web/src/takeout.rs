//! A vault as an archive that is packed while it is sent: nothing of it lies on a disk.

use std::io::{self, BufWriter, Write};

use axum::body::{Body, Bytes};
use tokio::sync::mpsc;
use yore_archive::omp;
use yore_domain::Timestamp;
use yore_engine::{Part, Takeout};

/// What waits between the vault and the archive.
const WAITING: usize = 4;
/// Bytes that are sent at once.
const PIECE: usize = 256 << 10;

/// Sends pieces to whoever takes the archive.
struct Sender(mpsc::Sender<io::Result<Bytes>>);

impl Write for Sender {
    fn write(&mut self, some: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(some)));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(some.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Packs a vault. An archive that could not be finished breaks off, so that nobody takes half of
/// it for the whole.
pub(crate) fn packed(takeout: Takeout, password: Option<String>) -> Body {
    let (sender, mut receiver) = mpsc::channel(WAITING);
    let (parts, taken) = mpsc::channel(WAITING);
    // The time of the archive is that of the newest thing in it: the same content, the same bytes.
    let latest = takeout.contents.latest.unwrap_or(Timestamp::from_micros(0));
    tokio::spawn(async move {
        let out = sender.clone();
        let packing =
            tokio::task::spawn_blocking(move || pack(out, latest, password.as_deref(), taken));
        let fed = feed(&takeout, parts).await;
        let failed = match (packing.await, fed) {
            (Ok(Ok(())), Ok(())) => return,
            (Ok(Err(error)), _) => error.to_string(),
            (Err(error), _) => error.to_string(),
            (Ok(Ok(())), Err(error)) => error.to_string(),
        };
        tracing::warn!(error = failed, "an archive was not finished");
        // Who went away needs not be told.
        let _ = sender.send(Err(io::Error::other("the archive was not finished"))).await;
    });
    Body::from_stream(futures::stream::poll_fn(move |context| receiver.poll_recv(context)))
}

/// Hands everything over in the order of the archive; `None` is its end.
async fn feed(takeout: &Takeout, parts: mpsc::Sender<Option<Part>>) -> yore_domain::Result<()> {
    for step in takeout.steps(omp::entry_id) {
        let Some(part) = takeout.take(step).await? else { continue };
        if parts.send(Some(part)).await.is_err() {
            return Ok(());
        }
    }
    // A packer that is gone says itself why.
    let _ = parts.send(None).await;
    Ok(())
}

fn pack(
    sender: mpsc::Sender<io::Result<Bytes>>,
    latest: Timestamp,
    password: Option<&str>,
    parts: mpsc::Receiver<Option<Part>>,
) -> yore_archive::Result<()> {
    let out = BufWriter::with_capacity(PIECE, Sender(sender));
    let mut out = match password {
        None => written(out, latest, parts)?,
        Some(password) => written(omp::seal(out, password)?, latest, parts)?.finish()?.0,
    };
    out.flush().map_err(|source| yore_archive::Error::Io { path: "archive".to_owned(), source })
}

fn written<W: Write>(
    out: W,
    latest: Timestamp,
    mut parts: mpsc::Receiver<Option<Part>>,
) -> yore_archive::Result<W> {
    let mut writer = omp::Writer::new(out, latest, None);
    loop {
        match parts.blocking_recv() {
            Some(Some(Part::Attachment(blob, kind, bytes))) => {
                writer.attachment(blob, &kind, &mut bytes.as_slice())?;
            }
            Some(Some(Part::Talk(talk))) => writer.conversation(&talk.head, &talk.messages)?,
            Some(Some(Part::Memory(versions))) => writer.history(&versions)?,
            Some(None) => return Ok(writer.finish()?.0),
            None => return Err(yore_archive::Error::Stopped("the vault ended early".to_owned())),
        }
    }
}
