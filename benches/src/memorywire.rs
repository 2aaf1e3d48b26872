//! memorywire: the three experiments of its paper with what it published beside what we find, and
//! the same work done by its reference implementation.
//!
//! The reference runs in a process of its own on the same core, with the packages that
//! `cargo xtask bench memorywire` installs; without them it is called not measured.

mod adversarial;
mod compare;
mod conformance;
mod desk;
mod microbench;
mod waiting;

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;

use crate::corpus::Corpus;
use crate::meter::{Took, pin, round, start};
use crate::report::{self, Report};

use compare::Reference;

const SEED: u64 = 20_261_116;

/// Arguments of `yore-bench memorywire`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where vaults are made; must lie on a disk.
    #[arg(long)]
    work: PathBuf,
    /// The directory with `memorywire/microbench.json`.
    #[arg(long)]
    data: Option<PathBuf>,
    /// The directory with the Python packages of the reference.
    #[arg(long)]
    reference: Option<PathBuf>,
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// The commit that is measured.
    #[arg(long, default_value = "unknown")]
    commit: String,
    /// The smallest size and few repetitions.
    #[arg(long)]
    quick: bool,
    /// Sizes at which the reference is compared, in memories.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000])]
    sizes: Vec<usize>,
    /// Up to this size our memories get the transformer's vectors too, at some 10 ms each.
    #[arg(long, default_value_t = 10_000)]
    dense: usize,
    /// CPU seconds after which the reference stops filling its store.
    #[arg(long, default_value_t = 600)]
    patience: u64,
    /// Measure this part only; may be given several times.
    #[arg(long, value_enum)]
    only: Vec<Part>,
}

/// A part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Microbench,
    Adversarial,
    Conformance,
    Waiting,
    Compare,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let core = pin()?;
    // What an interrupted run left behind would be measured as part of this one.
    if arguments.work.exists() {
        std::fs::remove_dir_all(&arguments.work)?;
    }
    std::fs::create_dir_all(&arguments.work)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut bench = Bench { arguments, corpus: Corpus::new(SEED), report: Report::default() };
    let run = json!({ "core": core, "quick": arguments.quick, "seed": SEED });
    bench.report.figure("run", run);
    let done = runtime.block_on(bench.all());
    std::fs::remove_dir_all(&arguments.work)?;
    done?;
    print!("{}", bench.report.table());
    if let Some(path) = &arguments.json {
        report::write(path, &bench.report.to_json(&arguments.commit))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

struct Bench<'a> {
    arguments: &'a Arguments,
    corpus: Corpus,
    report: Report,
}

impl Bench<'_> {
    async fn all(&mut self) -> Result<()> {
        let only = self.arguments.only.clone();
        let wanted = |part| only.is_empty() || only.contains(&part);
        if wanted(Part::Microbench) {
            let took = start();
            let (work, data) = (self.arguments.work.join("micro"), self.arguments.data.as_deref());
            microbench::run(&work, data, &mut self.report).await?;
            self.took("microbenchmark", took());
        }
        if wanted(Part::Adversarial) {
            let took = start();
            adversarial::run(&mut self.report);
            self.took("adversarial fusion", took());
        }
        if wanted(Part::Conformance) {
            let took = start();
            conformance::run(&self.arguments.work.join("conformance"), &mut self.report).await?;
            self.took("conformance", took());
        }
        if wanted(Part::Waiting) {
            let took = start();
            let (live, pending) = if self.arguments.quick { (200, 500) } else { (2_000, 10_000) };
            let work = self.arguments.work.join("waiting");
            waiting::run(&work, &self.corpus, live, pending, &mut self.report).await?;
            self.took("writes that wait", took());
        }
        if wanted(Part::Compare) {
            let took = start();
            self.compare().await?;
            self.took("comparison with the reference", took());
        }
        Ok(())
    }

    async fn compare(&mut self) -> Result<()> {
        let arguments = self.arguments;
        let quick = arguments.quick;
        let sizes = if quick { vec![1_000] } else { arguments.sizes.clone() };
        let questions = if quick { 50 } else { 200 };
        let reference = arguments.reference.as_deref().map(|packages| Reference {
            packages,
            work: &arguments.work,
            patience: if quick { 60 } else { arguments.patience },
        });
        if reference.is_none() {
            println!("the reference implementation is not installed: NOT RUN");
        }
        for size in sizes {
            let place = arguments.work.join(format!("compare-{size}"));
            let scene = compare::Scene {
                corpus: &self.corpus,
                size,
                questions,
                dense: size <= arguments.dense,
            };
            let ours = scene.ours(&place).await?;
            let theirs = reference.as_ref().map(|reference| scene.theirs(reference)).transpose()?;
            compare::judge(size, &ours, theirs.as_ref(), &mut self.report);
        }
        Ok(())
    }

    fn took(&mut self, what: &str, took: Took) {
        let (cpu, wall) = (took.cpu.as_secs_f64(), took.wall.as_secs_f64());
        let figure = json!({ "cpu_s": round(cpu), "wall_s": round(wall) });
        self.report.figure(format!("{what}, whole run"), figure);
    }
}
