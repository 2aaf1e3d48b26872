//! The whole run: limits, writes, recalls, lens, vectors, processes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use crate::corpus::Corpus;
use crate::meter::pin;
use crate::report::{self, Report};
use crate::world::{World, is_rare};
use crate::{limits, mcp, oamp, process, recall, vectors, write};

const SEED: u64 = 20_261_115;

/// Arguments of `yore-bench engine`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where vaults are made; must lie on a disk.
    #[arg(long)]
    work: PathBuf,
    /// The `yore` binary whose size is taken.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// The commit that is measured.
    #[arg(long, default_value = "unknown")]
    commit: String,
    /// Small sizes and few repetitions: shows that it runs, proves no bar.
    #[arg(long)]
    quick: bool,
    /// Sizes of the vaults, in memories.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000])]
    sizes: Vec<usize>,
    /// Up to this size memories get the transformer's vectors too, at some 10 ms each.
    #[arg(long, default_value_t = 10_000)]
    dense: usize,
    /// Measure this part only; may be given several times.
    #[arg(long, value_enum)]
    only: Vec<Part>,
}

/// A part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Writes,
    Recall,
    Vectors,
    Mcp,
    Oamp,
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
    let mut bench = Bench {
        work: arguments.work.clone(),
        sizes: if arguments.quick { vec![2_000] } else { arguments.sizes.clone() },
        dense: if arguments.quick { 0 } else { arguments.dense },
        repeats: if arguments.quick { 100 } else { 1_000 },
        corpus: Corpus::new(SEED),
        report: Report::default(),
    };
    bench.report.figure("run", json!({ "core": core, "quick": arguments.quick, "seed": SEED }));
    let done = runtime.block_on(bench.all(arguments));
    std::fs::remove_dir_all(&arguments.work)?;
    done?;
    print!("{}", bench.report.table());
    if arguments.quick {
        println!("a quick run shows that it runs; its verdicts prove nothing");
    }
    if let Some(path) = &arguments.json {
        report::write(path, &bench.report.to_json(&arguments.commit))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

struct Bench {
    work: PathBuf,
    sizes: Vec<usize>,
    dense: usize,
    repeats: usize,
    corpus: Corpus,
    report: Report,
}

impl Bench {
    async fn all(&mut self, arguments: &Arguments) -> Result<()> {
        let wanted = |part| arguments.only.is_empty() || arguments.only.contains(&part);
        if wanted(Part::Writes) {
            self.writes().await?;
        }
        if wanted(Part::Recall) {
            let statics = self.embedding();
            let sizes = self.sizes.clone();
            for size in [10_000, 100_000, 1_000_000].into_iter().filter(|s| !sizes.contains(s)) {
                self.bar_of_size(size, None);
            }
            for size in sizes {
                self.recalls(size, statics).await?;
            }
        }
        if wanted(Part::Vectors) {
            self.vectors(arguments.quick)?;
        }
        if wanted(Part::Mcp) {
            let size = if arguments.quick { 500 } else { 10_000 };
            self.tool_calls(arguments.binary.as_deref(), size).await?;
        }
        if wanted(Part::Oamp) {
            self.oamp(if arguments.quick { 2_000 } else { 100_000 }).await?;
        }
        if let Some(path) = &arguments.binary {
            let bytes = std::fs::metadata(path)
                .with_context(|| format!("no binary at {}", path.display()))?
                .len();
            let found = bytes as f64 / 1e6;
            self.report.at_most("size of the yore binary", "MB", 60.0, Some(found));
        }
        Ok(())
    }

    async fn writes(&mut self) -> Result<()> {
        let plain = limits::plain_insert(&self.work, &self.corpus, self.repeats)?;
        let folder = self.work.join("writes");
        let world = World::open(&folder).await?;
        // A vault that is in use, not an empty one.
        world.load(&self.corpus, 0..self.repeats).await?;
        let first = self.repeats;
        let one = write::sequential(&world, &self.corpus, first, self.repeats).await?;
        let crowd =
            write::crowd(&world, &self.corpus, first + self.repeats, 4 * self.repeats).await?;
        world.close().await?;
        let (found, limit) = (one.cpu(0.5), plain.cpu(0.5));
        self.report.figure("plain encrypted insert", plain.to_json());
        self.report.figure("remember, one after the other", one.to_json());
        self.report.figure("remember, 8 at once", crowd.to_json());
        self.report.at_most("remember, CPU p50", "ms", 1.0, Some(found));
        self.report.at_most(
            "remember, CPU p50, against 3 plain inserts",
            "ms",
            3.0 * limit,
            Some(found),
        );
        self.report.at_most(
            "remember, 8 at once, CPU a write",
            "ms",
            0.2,
            Some(crowd.cpu_per_write),
        );
        Ok(())
    }

    /// A tool call over stdio, against the engine's own cost in the same vault.
    async fn tool_calls(&mut self, binary: Option<&Path>, size: usize) -> Result<()> {
        let what = format!("tool call over stdio on {size}, CPU beside the engine's, mean");
        let Some(binary) = binary else {
            self.report.at_most(what, "ms", 1.0, None);
            return Ok(());
        };
        let folder = self.work.join("mcp");
        let world = World::open_with(&folder, mcp::EFFORT).await?;
        world.load(&self.corpus, 0..size).await?;
        // Whatever is left to do later would be counted as part of a call.
        world.engine.settle().await?;
        world.close().await?;
        let questions = recall::questions(&self.corpus, size, self.repeats);
        let cost = mcp::cost(binary, &folder, &questions).await?;
        std::fs::remove_dir_all(&folder)?;
        let figure = json!({ "engine_cpu_ms": cost.engine, "tool_call_cpu_ms": cost.call });
        self.report.figure("recall, by the engine and by a tool call", figure);
        self.report.at_most(what, "ms", 1.0, Some(cost.call - cost.engine));
        Ok(())
    }

    /// Search by how much matches, and the export of everything.
    async fn oamp(&mut self, size: usize) -> Result<()> {
        let folder = self.work.join("oamp");
        let world = World::open(&folder).await?;
        oamp::fill(&world, &self.corpus, size).await?;
        let desk = oamp::Desk::open(&world).await?;
        desk.searches(20).await?;
        let (seldom, often) = desk.searches(self.repeats.min(200)).await?;
        let exported = desk.export().await?;
        world.close().await?;
        std::fs::remove_dir_all(&folder)?;
        self.report.figure(format!("OAMP search of {size}, 0.1 % match"), seldom.to_json());
        self.report.figure(format!("OAMP search of {size}, 10 % match"), often.to_json());
        let (limit, found) = (2.0 * seldom.cpu(0.5), often.cpu(0.5));
        let what = format!("OAMP search of {size}, 10 % match, CPU p50, against 0.1 %");
        self.report.at_most(what, "ms", limit, Some(found));
        let figure = json!({
            "entries": exported.entries, "bytes": exported.bytes,
            "grown_mb": exported.grown_mb,
            "cpu_s": exported.took.cpu.as_secs_f64(), "wall_s": exported.took.wall.as_secs_f64(),
        });
        self.report.figure(format!("OAMP export of {size}"), figure);
        let missing = size as f64 - exported.entries as f64;
        self.report.at_most("OAMP export, entries left out", "entries", 0.0, Some(missing));
        let grown = Some(exported.grown_mb);
        self.report.at_most("OAMP export, memory it takes", "MB", 32.0, grown);
        Ok(())
    }

    /// Measures query embedding and returns what the static table costs.
    fn embedding(&mut self) -> f64 {
        // As a server does it when it starts.
        let took = crate::meter::start();
        yore_embed::builtin().statics.meet_kin();
        let took = serde_json::json!({ "cpu_ms": took().cpu.as_secs_f64() * 1e3 });
        self.report.figure("kin of all tokens, once per process", took);
        let questions = recall::questions(&self.corpus, 10_000, self.repeats.min(300));
        let (statics, transformer) = recall::embedding(&questions);
        self.report.figure("query embedding, instant", statics.to_json());
        self.report.figure("query embedding, balanced", transformer.to_json());
        let (instant, balanced) = (statics.cpu(0.5), transformer.cpu(0.5));
        self.report.at_most("query embedding, instant, CPU p50", "ms", 0.05, Some(instant));
        self.report.at_most(
            "query embedding, balanced, CPU p50",
            "ms",
            6.0,
            Some(instant + balanced),
        );
        instant
    }

    async fn recalls(&mut self, size: usize, statics: f64) -> Result<()> {
        let scan = limits::plain_scan(size, self.repeats.min(200));
        self.report.figure(format!("plain int8 scan of {size}"), scan.to_json());
        let folder = self.work.join(format!("recall-{size}"));
        let world = World::open(&folder).await?;
        world.load(&self.corpus, 0..size).await?;
        if size <= self.dense {
            world.engine.settle().await?;
        }
        let questions = recall::questions(&self.corpus, size, self.repeats.min(500));
        let series = recall::instant(&world, &world.owner, &questions).await?;
        self.report.figure(format!("recall of {size}, instant"), series.to_json());
        self.bar_of_size(size, Some((series.cpu(0.5) - statics, series.cpu(0.99) - statics)));
        if size <= self.dense {
            let series = recall::balanced(&world, &world.owner, &questions).await?;
            self.report.figure(
                format!("recall of {size}, balanced, embedding excluded"),
                series.to_json(),
            );
            let found = Some(series.cpu(0.5));
            self.report.at_most(format!("recall of {size}, balanced, CPU p50"), "ms", 0.6, found);
        }
        self.lens(&world, size).await?;
        world.close().await?;
        if size == 100_000 || size == 2_000 {
            self.process(&folder, size)?;
        }
        std::fs::remove_dir_all(&folder)?;
        Ok(())
    }

    /// The bars that name a size.
    fn bar_of_size(&mut self, size: usize, found: Option<(f64, f64)>) {
        let (which, bar) = match size {
            10_000 => ("p50", 0.6),
            100_000 => ("p50", 2.0),
            1_000_000 => ("p99", 10.0),
            _ => return,
        };
        let found = found.map(|(p50, p99)| if which == "p50" { p50 } else { p99 });
        let what = format!("recall of {size}, embedding excluded, CPU {which}");
        self.report.at_most(what, "ms", bar, found);
    }

    /// A lens on one memory in a hundred, against a vault that holds nothing else.
    async fn lens(&mut self, world: &World, size: usize) -> Result<()> {
        let rare: Vec<usize> = (0..size).filter(|number| is_rare(*number)).collect();
        let questions: Vec<String> = recall::questions(&self.corpus, size, self.repeats.min(300));
        let narrow = recall::instant(world, &world.scheduler().await?, &questions).await?;
        let folder = self.work.join("small");
        let small = World::open(&folder).await?;
        small.load(&self.corpus, rare.iter().copied()).await?;
        let alone = recall::instant(&small, &small.scheduler().await?, &questions).await?;
        small.close().await?;
        std::fs::remove_dir_all(&folder)?;
        self.report.figure(format!("recall of {size} through a 1 % lens"), narrow.to_json());
        self.report.figure(format!("recall of {} alone", rare.len()), alone.to_json());
        self.report.at_most(
            format!("1 % lens on {size}, CPU p50, against {} alone", rare.len()),
            "ms",
            2.0 * alone.cpu(0.5) + 0.1,
            Some(narrow.cpu(0.5)),
        );
        Ok(())
    }

    fn vectors(&mut self, quick: bool) -> Result<()> {
        let sizes = if quick { vec![2_000] } else { vec![10_000, 100_000] };
        for size in sizes {
            let (bases, asked) = if quick { (50, 20) } else { (1_000, 200) };
            let shares = vectors::recall_at_10(&self.corpus, size, bases, asked)?;
            let what = format!("nearest 10 of {size}, share of the exact ones");
            self.report.figure(&what, json!({ "index": shares.index, "int8": shares.int8 }));
            self.report.at_least(what, "share", 0.99, Some(shares.index));
        }
        Ok(())
    }

    fn process(&mut self, folder: &Path, size: usize) -> Result<()> {
        let needs = process::needs(folder, size, SEED)?;
        self.report.figure(format!("a process on {size}"), needs.to_json());
        if size == 100_000 {
            let found = Some(needs.resident_mb);
            self.report.at_most("resident memory at 100000", "MB", 250.0, found);
            let found = Some(needs.start.as_secs_f64());
            self.report.at_most("cold start to the first answer at 100000", "s", 1.0, found);
        }
        Ok(())
    }
}
