//! `cargo xtask bench`: builds the measuring programs in release and runs them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::{cargo, output, root, target_dir};

/// Arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Measure writes, recalls, memory and start against their bars.
    Engine(Engine),
    /// Measure how well recall finds what it should; needs `YORE_TESTDATA`.
    RecallQuality,
}

#[derive(Debug, clap::Args)]
struct Engine {
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Small sizes and few repetitions: shows that it runs, proves no bar.
    #[arg(long)]
    quick: bool,
    /// Sizes of the vaults, in memories.
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<usize>,
    /// Measure this part only: writes, recall, vectors or mcp.
    #[arg(long)]
    only: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.what {
        What::Engine(engine) => engine.run(),
        What::RecallQuality => recall_quality(),
    }
}

impl Engine {
    fn run(&self) -> Result<()> {
        let build = ["build", "--release", "-p", "yore-bench", "-p", "yore"];
        succeed(cargo().args(build))?;
        let target = target_dir()?;
        let git = |arguments: &[&str]| {
            output(Command::new("git").current_dir(root()).args(arguments))
                .map(|text| text.trim().to_owned())
        };
        let mut commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|_| "none".to_owned());
        if !git(&["status", "--porcelain"]).unwrap_or_default().is_empty() {
            commit.push_str("-dirty");
        }
        let suffix = std::env::consts::EXE_SUFFIX;
        let mut bench = Command::new(target.join("release").join(format!("yore-bench{suffix}")));
        bench.arg("engine").args(["--commit", &commit]);
        // Beside the build, not in the system's temporary directory, which may lie in memory.
        bench.arg("--work").arg(target.join("bench"));
        bench.arg("--binary").arg(target.join("release").join(format!("yore{suffix}")));
        if let Some(path) = &self.json {
            bench.arg("--json").arg(path);
        }
        if self.quick {
            bench.arg("--quick");
        }
        if !self.sizes.is_empty() {
            let sizes: Vec<String> = self.sizes.iter().map(ToString::to_string).collect();
            bench.args(["--sizes", &sizes.join(",")]);
        }
        for part in &self.only {
            bench.args(["--only", part]);
        }
        succeed(&mut bench)
    }
}

fn recall_quality() -> Result<()> {
    if std::env::var_os("YORE_TESTDATA").is_none() {
        println!("recall quality: not run: YORE_TESTDATA is not set");
        return Ok(());
    }
    succeed(cargo().args(["run", "--release", "-p", "yore-index", "--example", "quality"]))
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
