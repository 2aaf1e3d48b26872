//! Searching very many messages: time of the first page, and memory with the index.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde_json::json;
use yore_domain::class::Governance;
use yore_domain::conversation::{Conversation, Message, Role};
use yore_domain::memory::Foreign;
use yore_domain::query::{Corpus as Where, Cutoff, Effort, Filter, Recall};
use yore_domain::scope::Scope;
use yore_domain::{ConversationId, MessageId, Timestamp};
use yore_engine::{Item, Sought};

use crate::corpus::Corpus;
use crate::meter::{Series, pin, round, start};
use crate::process::resident;
use crate::world::World;

const SEED: u64 = 20_261_118;
/// Messages of a conversation, and conversations of a batch.
const TURNS: usize = 20;
const TALKS: usize = 50;
/// Searches that are measured, and those before the clock starts.
const SEARCHES: usize = 400;
const WARM: usize = 30;
/// Results of the first page.
const PAGE: usize = 10;

/// Arguments of `yore-bench messages`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where the vault is made; must lie on a disk.
    #[arg(long)]
    work: PathBuf,
    /// How many messages, averaging 120 words.
    #[arg(long, default_value_t = 1_000_000)]
    size: usize,
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// The commit that is measured.
    #[arg(long, default_value = "unknown")]
    commit: String,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    pin()?;
    let work = arguments.work.join(format!("messages-{}", std::process::id()));
    std::fs::create_dir_all(&work)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measured = runtime.block_on(measure(arguments, &work));
    std::fs::remove_dir_all(&work)?;
    let measured = measured?;
    println!("{}", serde_json::to_string_pretty(&measured)?);
    if let Some(path) = &arguments.json {
        std::fs::write(path, measured.to_string())?;
    }
    Ok(())
}

async fn measure(arguments: &Arguments, work: &std::path::Path) -> Result<serde_json::Value> {
    let corpus = Corpus::new(SEED);
    let world = World::open(work).await?;
    let empty = resident()?;
    let took = start();
    let talks = arguments.size.div_ceil(TURNS);
    for first in (0..talks).step_by(TALKS) {
        let items = (first..talks.min(first + TALKS)).map(|number| talk(&corpus, number));
        let done = world.engine.import(&world.owner, items.collect()).await?;
        ensure!(done.rejected.is_empty(), "a conversation was turned down");
    }
    let filled = took();
    let held = resident()?;
    let questions: Vec<String> =
        (0..SEARCHES + WARM).map(|number| corpus.asked(arguments.size, number)).collect();
    let mut found = 0;
    for question in &questions[SEARCHES..] {
        found += world.engine.search(&world.owner, sought(question)).await?.seen.len();
    }
    ensure!(found > 0, "no question was answered, so nothing would be measured");
    let series = Series::of_each(&questions[..SEARCHES], async |question| {
        world.engine.search(&world.owner, sought(question)).await?;
        Ok(())
    })
    .await?;
    let after = resident()?;
    world.close().await?;
    let megabytes = |kib: u64| round(kib as f64 * 1024.0 / 1e6);
    let report = |held: bool| match held {
        _ if arguments.size < 1_000_000 => "not measured",
        true => "held",
        false => "missed",
    };
    let (p50, p99) = (series.cpu(0.5), series.cpu(0.99));
    Ok(json!({
        "commit": arguments.commit,
        "messages": arguments.size,
        "filled": {"cpu_s": round(filled.cpu.as_secs_f64()), "wall_s": round(filled.wall.as_secs_f64())},
        "resident_mb": {"empty": megabytes(empty), "filled": megabytes(held), "searched": megabytes(after)},
        "search": series.to_json(),
        "bars": {
            "first_page_p50_10_ms": {"value": round(p50), "bar": report(p50 <= 10.0)},
            "first_page_p99_40_ms": {"value": round(p99), "bar": report(p99 <= 40.0)},
            "resident_1200_mb": {
                "value": megabytes(after),
                "bar": report(after * 1024 <= 1_200_000_000),
            },
        },
    }))
}

fn sought(question: &str) -> Sought {
    Sought {
        recall: Recall {
            query: question.to_owned(),
            corpus: Where::Messages,
            filter: Filter::default(),
            near: Scope::default(),
            limit: PAGE,
            effort: Effort::Instant,
            prefer: Vec::new(),
            cutoff: Cutoff::Off,
        },
        by_word: false,
        inside: false,
        branches: false,
        once_each: false,
        after: None,
    }
}

/// The conversation of a number.
fn talk(corpus: &Corpus, number: usize) -> Item {
    let began = Timestamp::from_millis(1_600_000_000_000 + 600_000 * number as i64);
    let messages = (0..TURNS).map(|turn| {
        let text = corpus.message(number * TURNS + turn);
        Message {
            id: MessageId::random(),
            role: if turn % 2 == 0 { Role::User } else { Role::Assistant },
            content: text.as_str().into(),
            text,
            at: began,
            model: None,
            platform: None,
            parent: None,
            off_path: false,
            attachments: Vec::new(),
            foreign: Foreign::new(),
        }
    });
    Item::Conversation {
        messages: messages.collect(),
        conversation: Box::new(Conversation {
            id: ConversationId::random(),
            title: None,
            platform: "bench".to_owned(),
            model: None,
            created: began,
            updated: began,
            scope: Scope::default(),
            governance: Governance::default(),
            tags: Vec::new(),
            summary: None,
            language: None,
            foreign: Foreign::new(),
        }),
    }
}
