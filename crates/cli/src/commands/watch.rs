//! `yore watch`: follows what changes in the vault, or keeps the vault in step with local sources.

mod sources;

use futures::StreamExt;
use yore_client::api::{Event, What};
use yore_server::interrupted;

use crate::app::App;
use crate::failure::Result;
use crate::output::{DIM, ID, short};

/// Options of `yore watch`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  yore watch
  yore watch sources --downloads ~/Downloads
  yore watch sources --once
  yore watch --json | jq -r .change.memory
  yore watch --after \"$CURSOR\" --count 10

One line a change, without its text, and one JSON value a line with --json. Every event carries a
cursor: --after goes on behind it, so that nothing is missed between two runs. A token sees the
changes it may see, and the stream ends when its grant does.

yore watch sources takes in what Claude Code, Codex, Cursor, LM Studio, Ollama and VS Code keep on
this machine, again and again, and the exports that appear in a folder for downloads. What is known
already changes nothing, so it can be stopped and started at any time."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Go on after the event with this cursor [default: from now on]
    #[arg(long, value_name = "CURSOR", allow_hyphen_values = true)]
    after: Option<String>,
    /// End after so many changes
    #[arg(long, short = 'n', value_name = "N")]
    count: Option<u64>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Take in, again and again, what programs on this machine keep, and new exports
    Sources(sources::Args),
}

impl Args {
    /// Whether it goes on until it is told to stop.
    pub(crate) fn stays(&self) -> bool {
        match &self.command {
            Some(Command::Sources(args)) => !args.once,
            None => false,
        }
    }
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    if let Some(Command::Sources(args)) = args.command {
        return sources::run(app, args).await;
    }
    tokio::select! {
        ended = follow(app, args) => ended,
        () = interrupted() => Ok(()),
    }
}

async fn follow(app: &App, args: Args) -> Result {
    let Args { mut after, count, command: _ } = args;
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
        What::Grant { grant, .. } => format!("{ID}{}{ID:#}  grant", short(grant)),
        What::Job { job, .. } => format!("{ID}{}{ID:#}  job", short(job)),
    };
    format!("{what}  {DIM}{}{DIM:#}", app.out.ago(event.at))
}

fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => "changed".to_owned(),
    }
}
