//! `yore recover`: takes poisoned memories of an agent out, and brings back what was not.

use serde_json::{Map, Value, json};

use crate::app::App;
use crate::failure::Result;
use crate::output::{DIM, GOOD, ID, Table, WARN, cell, clean, short, styled};

/// Options of `yore recover`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore recover --agent assistant
  yore recover --agent assistant --trust user,system,calendar --apply
  yore recover --agent assistant --restore 5c1d0f6a2b7e4c8d9a0b1c2d3e4f5a6b

Without --apply nothing is changed. What a source said that is not trusted is forgotten; what
gives orders, or came from nowhere, is put aside: yore list --status quarantined shows it, and
--restore brings it back.")]
pub(crate) struct Args {
    /// The agent whose memories are looked at
    #[arg(long, default_value = "mcp", value_name = "NAME")]
    agent: String,
    /// Only those of this person
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Sources whose word counts [default: user,system]
    #[arg(long, value_delimiter = ',', value_name = "SOURCE")]
    trust: Vec<String>,
    /// Do it
    #[arg(long)]
    apply: bool,
    /// Leave nothing of what is forgotten
    #[arg(long)]
    erase: bool,
    /// Do not look at what memories say, only at where they come from
    #[arg(long)]
    no_detectors: bool,
    /// Put nothing aside
    #[arg(long)]
    no_quarantine: bool,
    /// Forget what is less sure than this, too
    #[arg(long, value_name = "NUMBER")]
    confidence_below: Option<f64>,
    /// Bring these back instead
    #[arg(long, value_delimiter = ',', value_name = "ID", conflicts_with_all = ["apply", "erase"])]
    restore: Vec<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut asked = Map::new();
    asked.insert("agent_id".to_owned(), args.agent.into());
    asked.extend(args.user.map(|user| ("user_id".to_owned(), user.into())));
    let mut session = app.session().await?;
    if !args.restore.is_empty() {
        asked.insert("ids".to_owned(), args.restore.into());
        let done = session.post("/memorywire/v0/restore", &asked.into()).await?;
        return app.out.either(&done, |done| restored(app, done));
    }
    if !args.trust.is_empty() {
        asked.insert("trusted_sources".to_owned(), args.trust.into());
    }
    if let Some(below) = args.confidence_below {
        asked.insert("mode".to_owned(), "provenance+expire".into());
        asked.insert("confidence_below".to_owned(), json!(below));
    }
    for (name, value) in [
        ("use_detectors", !args.no_detectors),
        ("quarantine", !args.no_quarantine),
        ("hard_delete", args.erase),
        ("dry_run", !args.apply),
    ] {
        asked.insert(name.to_owned(), value.into());
    }
    let report = session.post("/memorywire/v0/recover", &asked.into()).await?;
    app.out.either(&report, |report| told(app, report))
}

fn text(value: &Value) -> String {
    clean(value.as_str().unwrap_or_default())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn told(app: &App, report: &Value) -> Result {
    let mut table = Table::new(&["ID", "VERDICT", "SOURCE", "WHY"]);
    for one in list(&report["actions"]) {
        table.push([
            styled(short(text(&one["id"])), ID),
            styled(text(&one["verdict"]), WARN),
            cell(text(&one["source"])),
            cell(text(&one["reason"])),
        ]);
    }
    if !list(&report["actions"]).is_empty() {
        app.out.table(&table)?;
    }
    let would = if report["dry_run"] == true { "would be " } else { "" };
    app.out.line(format!(
        "{GOOD}{} looked at{GOOD:#}: {} {would}forgotten, {} {would}put aside, {} expired, {} kept",
        report["scanned"],
        report["purged"],
        report["quarantined"],
        report["expired"],
        report["kept"]
    ))?;
    waits(app, report);
    if report["dry_run"] == true {
        app.out.remark("nothing was changed; --apply does it");
    }
    Ok(())
}

fn restored(app: &App, done: &Value) -> Result {
    for id in list(&done["restored"]) {
        app.out.line(format!("{GOOD}restored{GOOD:#}  {ID}{}{ID:#}", text(id)))?;
    }
    for id in list(&done["missing"]) {
        app.out.line(format!("{WARN}nothing to restore{WARN:#}  {DIM}{}{DIM:#}", text(id)))?;
    }
    waits(app, done);
    Ok(())
}

fn waits(app: &App, report: &Value) {
    for at in list(&report["pending"]) {
        let at = text(at);
        let hold = at.rsplit('/').next().unwrap_or_default();
        app.out.remark(format!("a rule holds it; decide with: yore review approve {hold}"));
    }
}
