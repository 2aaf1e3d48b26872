//! Who is at work on a stream, and who waits for it, in this process.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::writer::Writer;

/// A stream: its sender and its id.
pub(crate) type Key = (String, String);

/// Work on a stream.
#[derive(Debug)]
pub(crate) struct Running {
    /// Writes its frames, one batch after the other.
    pub(crate) writer: tokio::sync::Mutex<Writer>,
    /// Cancelled when the stream was taken back.
    pub(crate) stop: CancellationToken,
}

/// Everybody who works or waits.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    waiting: Mutex<HashMap<Key, watch::Sender<u64>>>,
    running: Mutex<HashMap<Key, Arc<Running>>>,
    closing: CancellationToken,
    working: watch::Sender<usize>,
}

impl Hub {
    /// Waits for frames or acknowledgements from now on.
    pub(crate) fn wait(&self, key: &Key) -> watch::Receiver<u64> {
        let mut waiting = self.waiting.lock();
        waiting.retain(|_, sender| sender.receiver_count() > 0);
        waiting.entry(key.clone()).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Tells whoever waits that something moved.
    pub(crate) fn moved(&self, key: &Key) {
        if let Some(sender) = self.waiting.lock().get(key) {
            sender.send_modify(|count| *count += 1);
        }
    }

    /// Counts a task while it works.
    pub(crate) fn working(&self) -> &watch::Sender<usize> {
        &self.working
    }

    /// Cancelled when all work is to end.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Begins work, unless somebody is at it.
    pub(crate) fn begin(&self, key: &Key, writer: Writer) -> Option<Arc<Running>> {
        let mut running = self.running.lock();
        if running.contains_key(key) {
            return None;
        }
        let work = Arc::new(Running {
            writer: tokio::sync::Mutex::new(writer),
            stop: CancellationToken::new(),
        });
        running.insert(key.clone(), Arc::clone(&work));
        Some(work)
    }

    /// Returns the work on a stream.
    pub(crate) fn at_work(&self, key: &Key) -> Option<Arc<Running>> {
        self.running.lock().get(key).cloned()
    }

    /// Ends work.
    pub(crate) fn end(&self, key: &Key) {
        self.running.lock().remove(key);
    }
}
