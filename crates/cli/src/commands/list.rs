//! `yore list`: lists memories.

use yore_client::{api, input};
use yore_domain::limits;
use yore_domain::query::{Order, PageRequest};

use crate::app::App;
use crate::failure::Result;
use crate::filter::Which;
use crate::output::count;
use crate::show;

/// Options of `yore list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore list
  yore list --kind procedural --project yore
  yore list --status tombstoned --since 30d
  yore list --all --json | wc -l

With --json one memory a line.")]
pub(crate) struct Args {
    /// How many
    #[arg(long, short = 'n', default_value_t = 20, value_name = "N")]
    limit: usize,
    /// Every one
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Oldest first
    #[arg(long)]
    oldest: bool,
    /// Only say how many there are
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    which: Which,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    let filter = args.which.filter(app.out.now);
    if args.count {
        let number = session.call::<api::Count>(input::Count { filter }).await?;
        return app.out.either(&number, |number| app.out.line(number.to_string()));
    }
    let mut left = if args.all { usize::MAX } else { args.limit };
    let order = if args.oldest { Order::OldestFirst } else { Order::NewestFirst };
    let (mut after, mut shown) = (None, 0);
    while left > 0 {
        let page = PageRequest { limit: left.min(limits::PAGE), after, offset: 0, order };
        let request = input::List { filter: filter.clone(), page };
        let found = session.call::<api::List>(request).await?;
        for memory in &found.items {
            if app.out.json {
                app.out.row(memory)?;
            } else {
                show::brief(&app.out, &memory.head, "")?;
            }
        }
        shown += found.items.len();
        left = left.saturating_sub(found.items.len());
        after = found.next;
        if after.is_none() || found.items.is_empty() {
            break;
        }
    }
    match (shown, after) {
        (0, _) => app.out.remark("nothing is remembered that fits; yore remember stores something"),
        (_, Some(_)) => app.out.remark(format!(
            "{} shown, there are more: -n {} or --all",
            count(shown, "memory", "memories"),
            shown * 5
        )),
        (_, None) => app.out.remark(count(shown, "memory", "memories")),
    }
    Ok(())
}
