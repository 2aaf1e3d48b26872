//! How well recall finds what it should, without a judge: by evidence that others labelled.
//!
//! Everything is asked of the engine, on real vaults. The data lies outside of the project, because
//! much of it may be measured with but not passed on; what is written into the report is counts.
//! Which memories came back for which question is written beside the build, for anyone who wants to
//! score it again.

mod locomo;
mod precision;
mod probes;
mod score;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::report::{self, Report};

/// Arguments of `yore-bench quality`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where vaults are made.
    #[arg(long)]
    work: PathBuf,
    /// The directory with `bench` and `memorywire`; without it only our own probes run.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where the ranked ids of every question are written.
    #[arg(long)]
    ids: Option<PathBuf>,
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// The commit that is measured.
    #[arg(long, default_value = "unknown")]
    commit: String,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let work = arguments.work.join("quality");
    if work.exists() {
        std::fs::remove_dir_all(&work)?;
    }
    std::fs::create_dir_all(&work)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::default();
    let done = runtime.block_on(all(arguments, &work, &mut report));
    std::fs::remove_dir_all(&work)?;
    done?;
    print!("{}", report.table());
    if let Some(path) = &arguments.json {
        report::write(path, &report.to_json(&arguments.commit))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

async fn all(arguments: &Arguments, work: &Path, report: &mut Report) -> Result<()> {
    probes::run(work, report).await?;
    let mut written: Vec<(&str, Vec<Value>)> = Vec::new();
    match &arguments.data {
        Some(data) => {
            written.push(("memorywire", probes::facts(data, work, report).await?));
            written.push(("precisionmembench", precision::run(data, work, report).await?));
            written.push(("locomo", locomo::run(data, work, report).await?));
        }
        None => report.figure("labelled data", json!("not run: YORE_TESTDATA is not set")),
    }
    report.figure(
        "LongMemEval",
        json!("not run: its files are not here, and nothing reads them yet"),
    );
    report.figure("answer quality", json!("not run: it needs a model that grades"));
    if let Some(path) = &arguments.ids {
        let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
        for (set, lines) in &written {
            for line in lines {
                let mut line = line.clone();
                line["set"] = (*set).into();
                writeln!(file, "{line}")?;
            }
        }
        file.flush()?;
        println!("ranked ids of every question: {}", path.display());
    }
    Ok(())
}
