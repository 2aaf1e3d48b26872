//! `yore export`: writes everything out, one item a line.

use std::path::PathBuf;

use yore_client::{api, input};
use yore_domain::query::{Order, PageRequest};

use crate::app::App;
use crate::failure::Result;
use crate::file::Sink;
use crate::filter::Which;
use crate::progress;

const PAGE: usize = 200;

/// Options of `yore export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore export --out memories.ndjson
  yore export --project yore | gzip > yore.ndjson.gz
  yore export | yore import --data elsewhere -

Memories come with all their versions, conversations with all their messages, one item a line of
JSON. A file appears only when it is complete, and only you can read it.")]
pub(crate) struct Args {
    /// The file to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    which: Which,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    let mut sink = Sink::open(args.out.as_deref())?;
    let spinner = progress::spinner(&app.out, "exporting");
    let filter = args.which.filter(app.out.now);
    let mut after = None;
    loop {
        let page = PageRequest { limit: PAGE, after, offset: 0, order: Order::OldestFirst };
        let request = input::List { filter: filter.clone(), page };
        let found = session.call::<api::Export>(request).await?;
        for item in &found.items {
            sink.row(item)?;
        }
        spinner.inc(found.items.len() as u64);
        after = found.next;
        if after.is_none() {
            break;
        }
    }
    let (rows, place) = sink.close()?;
    spinner.finish_and_clear();
    app.out.remark(format!("{rows} items written to {place}"));
    Ok(())
}
