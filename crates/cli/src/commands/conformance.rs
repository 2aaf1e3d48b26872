//! `yore conformance`: asks a server what it does and compares that with its protocol.

use std::path::PathBuf;

use clap::Subcommand;
use yore_client::{Client, Target};

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::file;
use crate::output::{BAD, GOOD, HEAD, Table, WARN, cell, styled};
use crate::probe::{Level, Outcome, Probe, Report};

/// Options of `yore conformance`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore conformance ump --url http://127.0.0.1:7070 --token \"$TOKEN\" --owner owner
  yore conformance ump --url https://memory.example --token \"$TOKEN\" --badge badge.svg

The probe makes a few memories in a project of its own, and takes them back. It ends with 0 when
the server keeps the level it claims, or the one that --level names, and with 1 when it does not.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Check a server of the Universal Memory Protocol, over HTTP, MCP and files
    Ump(Box<Ump>),
}

#[derive(Debug, clap::Args)]
struct Ump {
    /// A token that may only read: checks redaction and refused writes
    #[arg(long, value_name = "TOKEN")]
    reader: Option<String>,
    /// Whose memories to make [default: a new did:key]
    #[arg(long, value_name = "DID")]
    owner: Option<String>,
    /// Where MCP is spoken
    #[arg(long, default_value = "/mcp", value_name = "PATH")]
    mcp: String,
    /// The level that is wanted [default: the one the server claims]
    #[arg(long, value_name = "LEVEL", value_parser = Level::parse)]
    level: Option<Level>,
    /// Write the badge there, as SVG
    #[arg(long, value_name = "FILE")]
    badge: Option<PathBuf>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let What::Ump(args) = args.what;
    let args = *args;
    let client = server(app)?;
    let token = app.token();
    let probe = Probe::new(client, token, args.reader.as_deref(), args.mcp, args.owner);
    let report = probe.run().await?;
    if let Some(path) = &args.badge {
        file::write(path, svg(&report).as_bytes())?;
    }
    app.out.either(&report, |report| show(app, report))?;
    let wanted = args.level.or_else(|| Level::parse(&report.claimed).ok()).unwrap_or(Level::L1);
    if report.level.is_some_and(|level| level >= wanted) {
        return Ok(());
    }
    let kept = report.level.map_or("no level", Level::as_str);
    Err(Failure::failed(format!("the server keeps {kept}, not {}", wanted.as_str())))
}

fn server(app: &App) -> Result<Client> {
    let url = app.url().ok_or_else(|| {
        Failure::usage("which server?").hint("name it with --url; yore serve says where it listens")
    })?;
    let mut target: Target = url.parse()?;
    if let Some(ca) = app.authority() {
        target = target.trusting(ca);
    }
    Ok(Client::new(target)?)
}

fn show(app: &App, report: &Report) -> Result {
    let mut table = Table::new(&["LEVEL", "CHECK", "ON", "", "DEMAND"]);
    for check in &report.checks {
        for (way, outcome) in &check.outcomes {
            let (word, style, what) = match outcome {
                Outcome::Passed => ("ok", GOOD, check.what.to_owned()),
                Outcome::Failed(why) => ("FAILED", BAD, format!("{}: {why}", check.what)),
                Outcome::Skipped(why) => ("skipped", WARN, format!("{}: {why}", check.what)),
            };
            table.push([
                cell(check.level.as_str()),
                cell(check.name),
                cell(*way),
                styled(word, style),
                cell(what),
            ]);
        }
    }
    app.out.table(&table)?;
    app.out.line("")?;
    app.out.line(format!("{HEAD}{}{HEAD:#}", report.badge()))
}

/// The badge as a picture: a grey half with the protocol, a coloured one with the level.
fn svg(report: &Report) -> String {
    let colour = match report.level {
        Some(Level::L3) => "#2e7d32",
        Some(Level::L2) => "#558b2f",
        Some(Level::L1 | Level::L0) => "#9e9d24",
        None => "#b71c1c",
    };
    let badge = report.badge();
    let (left, right) = badge.split_once(" / ").unwrap_or((&badge, "none"));
    let clean = |text: &str| -> String {
        text.chars().filter(|c| c.is_ascii_alphanumeric() || " ./+?".contains(*c)).collect()
    };
    let (left, right) = (clean(left), clean(right));
    let (a, b) = (left.len() * 7 + 12, right.len() * 7 + 12);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"20\" role=\"img\" \
         aria-label=\"{left} / {right}\"><rect width=\"{a}\" height=\"20\" fill=\"#424242\"/>\
         <rect x=\"{a}\" width=\"{b}\" height=\"20\" fill=\"{colour}\"/>\
         <g fill=\"#fff\" font-family=\"monospace\" font-size=\"11\">\
         <text x=\"6\" y=\"14\">{left}</text><text x=\"{at}\" y=\"14\">{right}</text></g></svg>\n",
        w = a + b,
        at = a + 6,
    )
}
