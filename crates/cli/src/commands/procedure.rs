//! `yore procedure`: shows and moves the state machines that agents remember.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::{Map, Value, json};
use yore_domain::Timestamp;
use yore_domain::procedure::Machine;
use yore_memorywire::draw;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{DIM, GOOD, HEAD, ID, Table, WARN, cell, clean, short, styled};

/// Options of `yore procedure`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore procedure list
  yore procedure show deploy --agent releaser
  yore procedure show deploy --svg deploy.svg
  yore procedure trigger deploy approve --guard reviewed
  yore procedure history deploy

A procedure is a memory whose text is a state machine in JSON: name, initial, states and
transitions. It moves only along its transitions, and only as far as the guards you name hold;
every move is a version of the memory.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// The agent whose procedures they are
    #[arg(long, global = true, default_value = "mcp", value_name = "NAME")]
    agent: String,
    /// Only those of this person
    #[arg(long, global = true, value_name = "NAME")]
    user: Option<String>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List an agent's procedures and where they stand
    List,
    /// Draw a procedure: its states, and what leads from one to another
    Show {
        /// Its name, or the id of its memory
        name: String,
        /// Write a picture into this file; - for standard output
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
    /// Move a procedure
    Trigger {
        /// Its name, or the id of its memory
        name: String,
        /// What moves it
        trigger: String,
        /// A guard that holds; those not named do not
        #[arg(long, value_name = "NAME")]
        guard: Vec<String>,
    },
    /// Show how a procedure moved
    History {
        /// Its name, or the id of its memory
        name: String,
    },
    /// Say where triggers would lead from the start; nothing moves
    Replay {
        /// Its name, or the id of its memory
        name: String,
        /// What would move it, in order [default: the moves so far]
        triggers: Vec<String>,
    },
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let Args { what, agent, user } = args;
    let mut asked = Map::new();
    asked.insert("agent_id".to_owned(), agent.into());
    asked.extend(user.map(|user| ("user_id".to_owned(), user.into())));
    let mut ask = async |operation: &str, more: Value| {
        asked.extend(more.as_object().cloned().unwrap_or_default());
        let path = format!("/memorywire/v0/procedures/{operation}");
        app.session().await?.post(&path, &Value::Object(asked.clone())).await
    };
    match what {
        What::List => {
            let listed = ask("list", json!({})).await?;
            app.out.either(&listed["procedures"], |procedures| table(app, procedures))
        }
        What::Show { name, svg } => {
            let shown = ask("show", json!({ "procedure": name })).await?;
            match svg {
                Some(path) => picture(app, &shown, &path),
                None => app.out.either(&shown, |shown| drawing(app, shown)),
            }
        }
        What::Trigger { name, trigger, guard } => {
            let guards: Map<String, Value> =
                guard.into_iter().map(|name| (name, true.into())).collect();
            let more = json!({ "procedure": name, "trigger": trigger, "guards": guards });
            let moved = ask("trigger", more).await?;
            app.out.either(&moved, |moved| {
                let [from, to] = [&moved["from"], &moved["current"]].map(text);
                if moved["pending_approval"] == true {
                    let at = text(&moved["approval_url"]);
                    let hold = at.rsplit('/').next().unwrap_or_default();
                    app.out.line(format!("{WARN}waits for approval{WARN:#}  {from}"))?;
                    app.out.remark(format!("decide with: yore review approve {hold}"));
                    return Ok(());
                }
                app.out.line(format!("{GOOD}moved{GOOD:#}  {from} → {HEAD}{to}{HEAD:#}"))
            })
        }
        What::History { name } => {
            let told = ask("history", json!({ "procedure": name })).await?;
            app.out.either(&told["steps"], |steps| moves(app, steps))
        }
        What::Replay { name, triggers } => {
            let mut more = json!({ "procedure": name });
            if !triggers.is_empty() {
                more["triggers"] = triggers.into();
            }
            let replayed = ask("replay", more).await?;
            app.out.either(&replayed, |replayed| {
                app.out.line(format!("{HEAD}{}{HEAD:#}", text(&replayed["current"])))
            })
        }
    }
}

fn text(value: &Value) -> String {
    clean(value.as_str().unwrap_or_default())
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn table(app: &App, procedures: &Value) -> Result {
    if rows(procedures).is_empty() {
        app.out.remark("the agent has no procedures; --agent names another");
        return Ok(());
    }
    let mut table = Table::new(&["ID", "NAME", "STATE", "MAY"]);
    for one in rows(procedures) {
        let may: Vec<String> = rows(&one["available"]).iter().map(text).collect();
        table.push([
            styled(short(text(&one["id"])), ID),
            cell(text(&one["name"])),
            styled(text(&one["current"]), HEAD),
            cell(may.join(", ")),
        ]);
    }
    app.out.table(&table)
}

fn machine(shown: &Value) -> Result<Machine> {
    serde_json::from_value(shown["machine"].clone())
        .map_err(|error| Failure::failed(format!("unexpected answer: {error}")))
}

fn picture(app: &App, shown: &Value, path: &std::path::Path) -> Result {
    let drawn = draw::svg(&machine(shown)?);
    if path == std::path::Path::new("-") {
        return crate::output::plain(&drawn);
    }
    std::fs::write(path, drawn).map_err(Failure::file(path.display()))?;
    app.out.remark(format!("wrote {}", path.display()));
    Ok(())
}

/// States with the ways out of them, the one it stands in marked.
fn drawing(app: &App, shown: &Value) -> Result {
    let machine = machine(shown)?;
    let name = clean(&machine.name);
    let id = text(&shown["id"]);
    app.out.line(format!("{HEAD}{name}{HEAD:#}  {ID}{}{ID:#}", short(id)))?;
    let any = machine.transitions.iter().any(|way| way.source == "*").then_some("*");
    for state in machine.states.iter().map(String::as_str).chain(any) {
        let stands = state == machine.state();
        let mark = if stands { "●" } else { "○" };
        let shown = if state == "*" { "any state".to_owned() } else { clean(state) };
        let note =
            if state == machine.initial { format!(" {DIM}start{DIM:#}") } else { String::new() };
        let line = if stands {
            format!("{GOOD}{mark} {shown}{GOOD:#}{note}")
        } else {
            format!("{mark} {shown}{note}")
        };
        app.out.line(line)?;
        let ways: Vec<_> = machine.transitions.iter().filter(|way| way.source == state).collect();
        for (at, way) in ways.iter().enumerate() {
            let corner = if at + 1 == ways.len() { "└" } else { "├" };
            let (said, dest) = (clean(&draw::words(way)), clean(&way.dest));
            app.out.line(format!("  {DIM}{corner}─{DIM:#} {said} {DIM}→{DIM:#} {dest}"))?;
        }
    }
    Ok(())
}

fn moves(app: &App, steps: &Value) -> Result {
    if rows(steps).is_empty() {
        app.out.remark("it has not moved yet");
        return Ok(());
    }
    let mut table = Table::new(&["VERSION", "WHEN", "BY", "TRIGGER", "FROM", "TO"]);
    for step in rows(steps) {
        let at = Timestamp::from_millis(step["at"].as_i64().unwrap_or_default());
        table.push([
            cell(step["number"].to_string()),
            cell(app.out.ago(at)),
            cell(text(&step["agent_id"])),
            cell(text(&step["trigger"])),
            cell(text(&step["from"])),
            styled(text(&step["to"]), HEAD),
        ]);
    }
    app.out.table(&table)
}
