//! `yore migrate-store`: moves all vaults of a host between a data directory and a PostgreSQL.

use indicatif::ProgressBar;
use serde::Serialize;
use yore_engine::transfer::{Fate, Moved, Told, compare, survey, transfer};
use yore_server::transfer::{Vaults, source, target};
use yore_server::{Config, Error};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::{BAD, GOOD, Table, WARN, cell, styled};
use crate::progress;

/// Options of `yore migrate-store`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore migrate-store /var/lib/yore postgres://yore@db.example/yore --dry-run
  yore migrate-store /var/lib/yore postgres://yore@db.example/yore
  yore migrate-store /var/lib/yore postgres://yore@db.example/yore --check
  yore migrate-store postgres://yore@db.example/yore ~/yore-back

All vaults go, and what the server keeps of them: versions, conversations, attachments, vectors,
grants, tokens, rules, holds, jobs and streams, and the audit chain with its numbers, hashes and
signatures. No server may run on either side. Both are under the same master key. FROM is only read
and stays as it is; TO must be empty, or the rest of a move from the same FROM.

Every vault is read back and compared, row by row, before it counts. A move that was cut off is run
again: vaults that are there are passed over, a half of one is thrown away. Until all is moved, TO
is not served. --check compares both sides later, and changes nothing.

Certificates, proofs and archives under way are no part of it: serve a database with the data
directory that was served before (yore serve --data FROM --database TO).")]
pub(crate) struct Args {
    /// Where the vaults are: a data directory, or the address of a PostgreSQL
    #[arg(value_name = "FROM")]
    from: String,
    /// Where they are to be
    #[arg(value_name = "TO")]
    to: String,
    /// Say what would be moved, and change nothing
    #[arg(long, conflicts_with = "check")]
    dry_run: bool,
    /// Compare both sides, row by row, and change nothing
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Serialize)]
struct Done {
    from: String,
    to: String,
    dry_run: bool,
    vaults: Vec<Moved>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    if !app.is_local() {
        return Err(Failure::usage("vaults are moved where they lie, not through a server")
            .hint("leave out --url, or unset YORE_URL"));
    }
    let (from, to) = (Vaults::named(&args.from), Vaults::named(&args.to));
    if from.to_string() == to.to_string() {
        return Err(Failure::usage("FROM and TO are the same"));
    }
    let config = config(app, &from, &to)?;
    let vaults = if args.dry_run {
        let from = source(&config, &from).await.map_err(refused)?;
        survey(&*from.store).await?
    } else {
        carry(app, &config, &from, &to, args.check).await?
    };
    let done = Done { from: from.to_string(), to: to.to_string(), dry_run: args.dry_run, vaults };
    app.out.either(&done, |done| show(app, done))?;
    let different = done.vaults.iter().filter(|one| one.fate == Fate::Different).count();
    if different > 0 {
        return Err(Failure::new(Exit::Damaged, format!("{different} vaults are not the same"))
            .hint("if FROM was used after the move, TO lacks what was done there"));
    }
    Ok(())
}

/// The configuration of the side that is a directory: it says what the master key is.
fn config(app: &App, from: &Vaults, to: &Vaults) -> Result<Config> {
    let mut layers = app.layers()?;
    let made =
        |vaults: &&Vaults| vaults.directory().is_some_and(|data| data.join("master.json").exists());
    let known = [from, to].into_iter().find(made).unwrap_or(from);
    if let Some(data) = known.directory() {
        let text = data.to_str().ok_or_else(|| Failure::usage("the path is not UTF-8 text"))?;
        layers = layers.set("data", text);
    }
    app.unlocked(Config::load(layers)?)
}

async fn carry(
    app: &App,
    config: &Config,
    from: &Vaults,
    to: &Vaults,
    check: bool,
) -> Result<Vec<Moved>> {
    let from = source(config, from).await.map_err(refused)?;
    let bar = progress::spinner(&app.out, "reading the catalog");
    let mut told = |told: Told<'_>| tell(&bar, check, told);
    let moved = if check {
        let to = source(config, to).await.map_err(refused)?;
        compare(&*from.store, &*to.store, &mut told).await
    } else {
        let to = target(config, to).await.map_err(refused)?;
        transfer(&*from.store, &*to.store, &mut told).await
    };
    bar.finish_and_clear();
    moved.map_err(|error| {
        let failure = Failure::from(error);
        if failure.exit == Exit::Conflict {
            return failure.hint("name a TO that holds nothing");
        }
        if failure.exit == Exit::Failed {
            return failure.hint(
                "FROM is as it was; run the same command again, the vaults that are there stay",
            );
        }
        failure
    })
}

fn tell(bar: &ProgressBar, check: bool, told: Told<'_>) {
    let doing = if check { "comparing" } else { "moving" };
    match told {
        Told::Vault(number, of, Some(owner)) => {
            bar.set_message(format!("{doing} vault {number} of {of} ({owner}), rows:"));
        }
        Told::Vault(_, _, None) => bar.set_message(format!("{doing} the catalog, rows:")),
        Told::Rows(more) => bar.inc(more),
    }
}

/// Says what to do about a server that is in the way.
fn refused(error: Error) -> Failure {
    let held = matches!(error, Error::InUse { .. });
    let failure = Failure::from(error);
    if held { failure.hint("stop yore serve on both sides, then move the vaults") } else { failure }
}

fn show(app: &App, done: &Done) -> Result {
    let mut table = Table::new(&["VAULT", "STATE", "ROWS", "DIGEST"]);
    for one in &done.vaults {
        let (word, style) = match one.fate {
            Fate::Waits => ("would be moved", WARN),
            Fate::Moved => ("moved", GOOD),
            Fate::There => ("there already", GOOD),
            Fate::Same => ("the same", GOOD),
            Fate::Different => ("different", BAD),
        };
        let rows: Vec<String> =
            one.rows.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let mut notes = vec![rows.join(", ")];
        let left = one.left.iter().map(|(what, count)| format!("stays behind: {count} {what}"));
        notes.extend(left);
        notes.extend(one.differences.iter().map(|what| format!("differs: {what}")));
        if one.broken > 0 {
            notes.push(format!("{} audit entries do not follow, as in FROM", one.broken));
        }
        notes.retain(|note| !note.is_empty());
        let digest = one.digest.as_deref().map_or("", |digest| &digest[..16]);
        let owner = one.owner.as_deref().unwrap_or("(catalog)");
        table.push([cell(owner), styled(word, style), cell(notes.join("\n")), cell(digest)]);
    }
    app.out.table(&table)?;
    let moved = done.vaults.iter().any(|one| one.fate == Fate::Moved);
    if moved {
        app.out.remark(format!("{} holds everything now; {} is as it was", done.to, done.from));
    }
    Ok(())
}
