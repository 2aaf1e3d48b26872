//! `yore stores`: shows and mends the stores beside the vault.

use clap::Subcommand;
use serde_json::{Value, json};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::{BAD, GOOD, HEAD, Table, WARN, cell, clean, styled};

/// Options of `yore stores`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore stores list
  yore stores check
  yore stores repair notes

A running server keeps the stores of its configuration up to date with the vault, and memorywire
asks them together with it:

  [[stores]]
  name = \"notes\"
  url = \"sqlite-vec:///home/me/notes.db\"

A URL begins with sqlite-vec, pgvector, mem0, letta or cognee; docs/protocols/memorywire.md says
what else a store may need.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the stores and how they are
    List,
    /// The same, and fail where one does not answer
    Check,
    /// Deliver everything once more, where it is not as it should be
    Repair {
        /// Which store [default: all]
        name: Option<String>,
    },
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    match args.what {
        What::List => {
            let listed = session.post("/memorywire/v0/stores/list", &json!({})).await?;
            app.out.either(&listed["stores"], |stores| table(app, stores))
        }
        What::Check => {
            let listed = session.post("/memorywire/v0/stores/list", &json!({})).await?;
            app.out.either(&listed["stores"], |stores| table(app, stores))?;
            let ill = rows(&listed["stores"]).iter().filter(|one| one["status"] != "ok").count();
            match ill {
                0 => Ok(()),
                ill => Err(Failure::new(
                    Exit::Unreachable,
                    format!("{ill} of the stores are not well"),
                )
                .hint("they catch up by themselves once they answer again")),
            }
        }
        What::Repair { name } => {
            let asked = json!({ "store": name });
            let done = session.post("/memorywire/v0/stores/repair", &asked).await?;
            app.out.either(&done["stores"], |stores| repaired(app, stores))
        }
    }
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    clean(value.as_str().unwrap_or_default())
}

fn none(app: &App) -> Result {
    app.out.remark("no stores stand beside the vault of a running server (yore stores --help)");
    Ok(())
}

fn table(app: &App, stores: &Value) -> Result {
    if rows(stores).is_empty() {
        return none(app);
    }
    let mut table = Table::new(&["STORE", "STATUS", "KIND", "WEIGHT", "DEADLINE", "WHAT IS WRONG"]);
    for store in rows(stores) {
        let status = match (text(&store["status"]).as_str(), &store["left_alone"]) {
            (_, Value::Bool(true)) => styled("left alone", WARN),
            ("ok", _) => styled("ok", GOOD),
            (other, _) => styled(other, BAD),
        };
        table.push([
            styled(text(&store["store"]), HEAD),
            status,
            cell(text(&store["detail"]["backend"])),
            cell(store["weight"].to_string()),
            cell(format!("{} ms", store["deadline_ms"])),
            cell(text(&store["error"])),
        ]);
    }
    app.out.table(&table)
}

fn repaired(app: &App, stores: &Value) -> Result {
    if rows(stores).is_empty() {
        return none(app);
    }
    let mut table =
        Table::new(&["STORE", "CREATED", "REPLACED", "WITHDRAWN", "UNCHANGED", "REFUSED", "ERROR"]);
    for store in rows(stores) {
        let count =
            |name: &str| cell(store[name].as_u64().map_or_else(String::new, |n| n.to_string()));
        table.push([
            styled(text(&store["store"]), HEAD),
            count("created"),
            count("replaced"),
            count("withdrawn"),
            count("unchanged"),
            count("refused"),
            styled(text(&store["error"]), BAD),
        ]);
    }
    app.out.table(&table)
}
