//! The signals that end a program which stays.

use std::io;

/// Listens for the signals that end a program, from now on; what is returned waits for one.
///
/// Whoever starts a server may end it as soon as it is said to be ready, and even before. So the
/// signals are caught before anything else is done, and not only when somebody waits for them:
/// until then they would end the process in the middle of what it does.
pub fn interrupted() -> impl Future<Output = ()> + Send {
    let signals = listen();
    async move {
        match signals {
            Ok(signals) => signals.wait().await,
            Err(error) => {
                tracing::error!(%error, "no signal can be waited for");
                std::future::pending().await
            }
        }
    }
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
fn listen() -> io::Result<Signals> {
    use tokio::signal::unix::{SignalKind, signal};
    Ok(Signals {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
    })
}

#[cfg(unix)]
impl Signals {
    async fn wait(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
fn listen() -> io::Result<Signals> {
    tokio::signal::windows::ctrl_c().map(Signals)
}

#[cfg(windows)]
impl Signals {
    async fn wait(mut self) {
        self.0.recv().await;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_signal_that_comes_before_anybody_waits_is_not_lost() {
        let interrupted = interrupted();
        let own = std::process::id().to_string();
        assert!(Command::new("kill").args(["-TERM", &own]).status().unwrap().success());
        tokio::time::timeout(Duration::from_secs(30), interrupted).await.unwrap();
    }
}
