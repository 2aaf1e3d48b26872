//! `yore traces`: looks for a text in everything the vault keeps on disk.

use yore_client::{api, input as asked};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::{BAD, GOOD, bytes, count};
use crate::{input, progress};

/// Options of `yore traces`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore traces \"I am allergic to peanuts\"
  yore forget --erase --yes 4f2a && yore traces \"what it said\"

Every page, journal, saved index and attachment of the vault is decrypted and looked through, also
what no query would show: free pages and the unused part of others. The command ends with 0 when
the text is nowhere and with 6 when it is somewhere, so it proves that an erasure was one.")]
pub(crate) struct Args {
    /// The text, to the letter; read from standard input if none is given
    text: Vec<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let text = input::text(&args.text, "text")?;
    let mut session = app.session().await?;
    let spinner = progress::spinner(&app.out, "decrypting and looking");
    let traces = session.call::<api::Traces>(asked::Traces { text }).await;
    spinner.finish_and_clear();
    let traces = traces?;
    app.out.either(&traces, |traces| {
        for place in &traces.found {
            app.out.line(format!("{BAD}found{BAD:#}  {place}"))?;
        }
        let scanned = bytes(traces.scanned);
        match traces.found.is_empty() {
            true => {
                app.out.line(format!("{GOOD}nowhere{GOOD:#}  {scanned} decrypted and searched"))
            }
            false => Ok(()),
        }
    })?;
    match traces.found.len() {
        0 => Ok(()),
        places => Err(Failure::new(
            Exit::Conflict,
            format!("the text is in {}", count(places, "place", "places")),
        )
        .hint("what is remembered is there, of course; erase it first (yore forget --erase)")),
    }
}
