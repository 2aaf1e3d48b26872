//! Hearing what other servers commit, so that feeds wake on every one of them.
//!
//! A commit is told by NOTIFY after it is done: a notification inside the transaction would make
//! all commits of the database wait for each other. One that is lost is made up for by asking
//! from time to time, and after every interruption. Vaults are named by keyed digests.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client};
use yore_domain::{Seq, VaultId};

use crate::error::{Error, Result};
use crate::pool::Setup;
use crate::store::Inner;
use crate::transfer;

/// The channel of notifications.
const CHANNEL: &str = "yore";
/// The name under which the database lists the connection.
const NAME: &str = "yore listen";
/// How long a broken connection is left alone at first, and at most.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// What was committed here and is to be told.
pub(crate) type News = (VaultId, Seq);

/// Listens and tells until the store is gone.
pub(crate) async fn run(
    setup: Setup,
    inner: Weak<Inner>,
    mut news: mpsc::Receiver<News>,
    poll: Duration,
) {
    let mut pause = PAUSE;
    loop {
        match connect(&setup).await {
            Ok((client, mut heard)) => {
                pause = PAUSE;
                if !attend(&client, &mut heard, &inner, &mut news, poll).await {
                    return;
                }
            }
            Err(error) => tracing::warn!(%error, "other servers are not heard at the moment"),
        }
        if inner.strong_count() == 0 || news.is_closed() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// A connection that listens, and what it hears; the channel closes when it breaks.
async fn connect(setup: &Setup) -> Result<(Client, mpsc::Receiver<String>)> {
    let mut config = setup.config.clone();
    config.application_name(NAME);
    let (client, mut connection) = config.connect(setup.connector.clone()).await?;
    let (send, heard) = mpsc::channel(256);
    tokio::spawn(async move {
        let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(note) = message
                && send.send(note.payload().to_owned()).await.is_err()
            {
                return;
            }
        }
    });
    client.batch_execute(&format!("SET ROLE {}; LISTEN {CHANNEL}", setup.role)).await?;
    // Whoever wants to move vaults sees by this that a server is there.
    if !transfer::shares(&client).await? {
        return Err(Error::InUse("vaults are being moved out of it or into it"));
    }
    Ok((client, heard))
}

/// Serves one connection. Says whether another one is wanted when it breaks.
async fn attend(
    client: &Client,
    heard: &mut mpsc::Receiver<String>,
    inner: &Weak<Inner>,
    news: &mut mpsc::Receiver<News>,
    poll: Duration,
) -> bool {
    // Whatever was told while nobody listened is asked for at once.
    let mut due = tokio::time::interval(poll);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            note = heard.recv() => {
                let Some(note) = note else { return true };
                let Some(inner) = inner.upgrade() else { return false };
                if let Some((name, seq)) = note.split_once(':')
                    && let Ok(seq) = seq.parse()
                {
                    inner.heard(name, Seq(seq));
                }
            }
            one = news.recv() => {
                let Some((vault, seq)) = one else { return false };
                let Some(inner) = inner.upgrade() else { return false };
                let note = format!("{}:{}", inner.root.notice(vault), seq.0);
                drop(inner);
                let sql = "SELECT pg_notify($1, $2)";
                if let Err(error) = client.execute(sql, &[&CHANNEL, &note]).await {
                    tracing::debug!(%error, "a change was not told to other servers");
                    return true;
                }
            }
            _ = due.tick() => {
                let Some(inner) = inner.upgrade() else { return false };
                ask(&inner).await;
            }
        }
    }
}

/// Asks for the last change of every vault that is watched here.
async fn ask(inner: &Arc<Inner>) {
    for vault in inner.watched() {
        match inner.last_change(vault).await {
            Ok(seq) => inner.tell(vault, seq),
            Err(error) => {
                tracing::debug!(%vault, %error, "what changed in vault {vault} is not known");
            }
        }
    }
}
