//! `yore watch`: follows what changes in the vault.

use futures::StreamExt;
use yore_client::api::{Event, What};
use yore_server::interrupted;

use crate::app::App;
use crate::failure::Result;
use crate::output::{DIM, ID, short};

/// Options of `yore watch`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore watch
  yore watch --json | jq -r .change.memory
  yore watch --after \"$CURSOR\" --count 10

One line a change, without its text, and one JSON value a line with --json. Every event carries a
cursor: --after goes on behind it, so that nothing is missed between two runs. A token sees the
changes it may see, and the stream ends when its grant does.")]
pub(crate) struct Args {
    /// Go on after the event with this cursor [default: from now on]
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// End after so many changes
    #[arg(long, short = 'n', value_name = "N")]
    count: Option<u64>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    tokio::select! {
        ended = follow(app, args) => ended,
        () = interrupted() => Ok(()),
    }
}

async fn follow(app: &App, args: Args) -> Result {
    let Args { mut after, count } = args;
    let mut left = count;
    let mut session = app.session().await?;
    while left != Some(0) {
        let mut events = session.watch(after.clone()).await?;
        // A stream ends with its server or its grant: asking again tells which.
        while let Some(Ok(event)) = events.next().await {
            if app.out.json {
                app.out.row(&event)?
            } else {
                app.out.line(said(app, &event))?
            };
            after = Some(event.cursor);
            left = left.map(|left| left - 1);
            if left == Some(0) {
                break;
            }
        }
    }
    Ok(())
}

fn said(app: &App, event: &Event) -> String {
    let what = match &event.change {
        What::Memory { memory, head, status, cause, .. } => format!(
            "{ID}{}{ID:#}  {} · {} · version {head}",
            short(memory),
            word(cause),
            status.as_str()
        ),
        What::Erased { memory, .. } => format!("{ID}{}{ID:#}  erased", short(memory)),
        What::Conversation { conversation, .. } => {
            format!("{ID}{}{ID:#}  conversation", short(conversation))
        }
        What::Message { conversation, message, .. } => {
            format!("{ID}{}{ID:#}  message in {}", short(message), short(conversation))
        }
        What::ConversationErased { conversation, message, .. } => match message {
            Some(message) => format!("{ID}{}{ID:#}  message erased", short(message)),
            None => format!("{ID}{}{ID:#}  conversation erased", short(conversation)),
        },
        What::Profile { .. } => "profile".to_owned(),
        What::Hold { hold } => format!("{ID}{}{ID:#}  approval", short(hold)),
        What::Grant { grant } => format!("{ID}{}{ID:#}  grant", short(grant)),
        What::Job { job } => format!("{ID}{}{ID:#}  job", short(job)),
    };
    format!("{what}  {DIM}{}{DIM:#}", app.out.ago(event.at))
}

fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => "changed".to_owned(),
    }
}
