//! `yore consolidate`: looks through short-term memory, and shows why each item stays or goes.

use yore_client::api::{self, Consolidated, Consolidation, DryRun, Fate, Scored};
use yore_client::input;

use crate::app::App;
use crate::failure::Result;
use crate::filter::unit;
use crate::output::{BAD, DIM, GOOD, ID, Table, WARN, cell, clean, count, short, styled};

/// Options of `yore consolidate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore consolidate --dry-run
  yore consolidate --agent assistant --user anna
  yore consolidate --scorer reference --threshold 0.7 --dry-run

Short-term memory is what was remembered with the kind working. A running server looks through it
every minute, and at once when an agent has 100 items about one person: what scores enough
becomes semantic, what never does is forgotten in time (yore history shows it, and it can be
restored). With --dry-run nothing is changed: each item is shown with the parts of its score.")]
pub(crate) struct Args {
    /// Only what this agent remembers
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only what is this person's
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Who scores: balanced or reference [default: what the configuration says]
    #[arg(long, value_name = "NAME")]
    scorer: Option<String>,
    /// The score from which something is promoted [default: what the configuration says]
    #[arg(long, value_name = "NUMBER", value_parser = unit)]
    threshold: Option<f64>,
    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let Args { agent, user, scorer, threshold, dry_run } = args;
    let pass = Consolidation { agent, user, scorer, threshold };
    let dry_run = if dry_run { DryRun::Yes } else { DryRun::No };
    let mut session = app.session().await?;
    let done = session.call::<api::Consolidate>(input::Consolidate { pass, dry_run }).await?;
    app.out.either(&done, |done| told(app, done))
}

fn told(app: &App, done: &Consolidated) -> Result {
    if done.items.is_empty() {
        app.out.remark("short-term memory is empty");
        return Ok(());
    }
    let mut table = Table::new(&["MEMORY", "AGENT", "USER", "SCORE", "FATE", "WHY"]);
    for item in &done.items {
        let style = match item.fate {
            Fate::Promote | Fate::Merge => GOOD,
            Fate::Evict | Fate::Hold => WARN,
            Fate::Refuse => BAD,
            Fate::Keep | Fate::Moved => DIM,
        };
        let why = [clean(&item.why), parts(item), clean(&item.text)].join("\n");
        table.push([
            styled(short(item.memory), ID),
            cell(clean(item.agent.as_deref().unwrap_or("-"))),
            cell(clean(item.user.as_deref().unwrap_or("-"))),
            cell(format!("{:.2}", item.score)),
            styled(item.fate.as_str(), style),
            cell(why),
        ]);
    }
    app.out.table(&table)?;
    let fates = done.fates.iter().map(|(fate, count)| format!("{} {count}", fate.as_str()));
    let items = count(done.items.len(), "item", "items");
    let fates = fates.collect::<Vec<_>>().join(", ");
    app.out.remark(format!("{items}, scored by {}: {fates}", done.scorer));
    if done.dry_run {
        app.out.remark("nothing was changed");
    }
    Ok(())
}

/// What a score is made of, each value with its weight.
fn parts(item: &Scored) -> String {
    let parts = item.parts.iter();
    let parts =
        parts.map(|part| format!("{} {:.2}×{}", clean(&part.name), part.value, part.weight));
    parts.collect::<Vec<_>>().join(" + ")
}
