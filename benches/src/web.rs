//! How long the pages of the web app take and how much they send, over a large vault.
//!
//! Pages are asked from the real router in this process, so the time is the server's own: no
//! network, no browser. What a page transfers uncached is itself with every file it loads.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_TYPE, COOKIE, HOST, SET_COOKIE};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::query::{Filter, PageRequest};
use yore_engine::Item;
use yore_engine::dialect::Registry;
use yore_http::Surface;
use yore_web::Options;

use crate::corpus::Corpus;
use crate::meter::{Series, pin, start};
use crate::report::{self, Report};
use crate::world::World;

const SEED: u64 = 20_261_115;
/// What says that a vault that was left is whole.
const FILLED: &str = "filled";
/// Messages of one conversation, and conversations that are taken in at once.
const MESSAGES: usize = 100;
const BATCH: usize = 20;
/// The bars: milliseconds of a page, bytes of a page with everything it loads.
const MILLISECONDS: f64 = 20.0;
const KILOBYTES: f64 = 100.0;
const PLATFORMS: [&str; 3] = ["chatgpt", "claude", "gemini"];
const FILES: [&str; 3] = ["app.css", "app.js", "htmx.js"];

/// Arguments of `yore-bench web`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where the vault is made; must lie on a disk.
    #[arg(long)]
    work: PathBuf,
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// The commit that is measured.
    #[arg(long, default_value = "unknown")]
    commit: String,
    /// A small vault and few repetitions: shows that it runs, proves no bar.
    #[arg(long)]
    quick: bool,
    /// Memories; there are ten times as many messages.
    #[arg(long, value_delimiter = ',', default_values_t = [100_000])]
    sizes: Vec<usize>,
    /// Leave the vault there, and use the one that is: filling it takes longer than all the rest.
    #[arg(long)]
    keep: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let core = pin()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let sizes = if arguments.quick { vec![1_000] } else { arguments.sizes.clone() };
    let repeats = if arguments.quick { 10 } else { 100 };
    let mut report = Report::default();
    report.figure("run", json!({ "core": core, "quick": arguments.quick, "seed": SEED }));
    for size in sizes {
        let data = arguments.work.join(format!("web-{size}"));
        let filled = arguments.keep && data.join(FILLED).exists();
        if data.exists() && !filled {
            std::fs::remove_dir_all(&data)?;
        }
        std::fs::create_dir_all(&data)?;
        let done = runtime.block_on(measure(&data, (size, filled), repeats, &mut report));
        if arguments.keep {
            std::fs::write(data.join(FILLED), "")?;
        } else {
            std::fs::remove_dir_all(&data)?;
        }
        done?;
    }
    print!("{}", report.table());
    match &arguments.json {
        Some(path) => report::write(path, &report.to_json(&arguments.commit)),
        None => Ok(()),
    }
}

async fn measure(
    data: &std::path::Path,
    (size, filled): (usize, bool),
    repeats: usize,
    report: &mut Report,
) -> Result<()> {
    let world = World::open(data).await?;
    let corpus = Corpus::new(SEED);
    let filling = start();
    if !filled {
        world.load(&corpus, 0..size).await?;
        talk(&world, &corpus, size * 10).await?;
    }
    let took = filling();
    // What is measured is what is there, not what was asked for.
    let held = world.engine.census(&world.owner).await?;
    report.figure(
        "filled",
        json!({
            "memories": held.memories, "messages": held.messages, "unembedded": held.unembedded,
            "wall_s": took.wall.as_secs(), "cpu_s": took.cpu.as_secs(),
        }),
    );
    ensure!(
        held.memories == size as u64 && held.messages == size as u64 * 10,
        "{} memories and {} messages are there instead of {size} and {}",
        held.memories,
        held.messages,
        size * 10
    );
    let surface = Surface::new(world.engine.clone(), std::sync::Arc::new(Registry::default()));
    let router = yore_web::routes(surface, Options::default());
    let owner = world.owner.credentials.bearer.clone().context("the owner has a token")?;
    let session = signed_in(&router, owner.expose()).await?;
    let mut files = 0;
    for file in FILES {
        files += ask(&router, &session, &format!("/app/assets/{file}")).await?;
    }
    for (name, addresses) in pages(&world, &corpus, size, repeats).await? {
        // The first look of all opens files and counts what is kept for a minute; it is told apart.
        let first = start();
        let mut bytes = ask(&router, &session, &addresses[0]).await?;
        let first = first();
        let mut series = Series::default();
        for address in &addresses {
            let took = start();
            bytes = bytes.max(ask(&router, &session, address).await?);
            series.push(took());
        }
        let whole = (bytes + files) as f64 / 1e3;
        let mut figure = series.to_json();
        figure["kilobytes"] = Value::from(whole);
        figure["first_ms"] = Value::from(first.wall.as_secs_f64() * 1e3);
        report.figure(format!("{name} of {size}"), figure);
        report.at_most(
            format!("{name}, {size} memories, p95"),
            "ms",
            MILLISECONDS,
            Some(series.wall(0.95)),
        );
        report.at_most(format!("{name}, {size} memories, uncached"), "kB", KILOBYTES, Some(whole));
    }
    world.close().await
}

/// Fills the vault with conversations.
async fn talk(world: &World, corpus: &Corpus, messages: usize) -> Result<()> {
    let now = world.engine.now();
    let conversation = |number: usize| -> Result<Item> {
        let at = now.minus(yore_domain::Span::seconds(600 * number as u64));
        let id = yore_domain::ConversationId::random();
        let head = json!({
            "id": id, "title": corpus.memory(number), "platform": PLATFORMS[number % 3],
            "created": at, "updated": at,
        });
        let head: Conversation = serde_json::from_value(head)?;
        let said = (0..MESSAGES).map(|place| {
            let text = corpus.memory(number * MESSAGES + place);
            let role = ["user", "assistant"][place % 2];
            let id = yore_domain::MessageId::random();
            serde_json::from_value::<Message>(
                json!({ "id": id, "role": role, "content": text, "text": text, "at": at }),
            )
        });
        let messages = said.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Item::Conversation { conversation: Box::new(head), messages })
    };
    let numbers: Vec<usize> = (0..messages.div_ceil(MESSAGES)).collect();
    for some in numbers.chunks(BATCH) {
        let items = some.iter().map(|number| conversation(*number)).collect::<Result<Vec<_>>>()?;
        world.engine.import(&world.owner, items).await?;
    }
    Ok(())
}

/// Every page with the addresses that are asked for.
async fn pages(
    world: &World,
    corpus: &Corpus,
    size: usize,
    repeats: usize,
) -> Result<Vec<(&'static str, Vec<String>)>> {
    let page = PageRequest { limit: repeats, ..PageRequest::default() };
    let memories = world.engine.list(&world.owner, Filter::default(), page.clone()).await?.items;
    let talks = world.engine.conversations(&world.owner, Filter::default(), page).await?.items;
    let memory = |number: usize| &memories[number % memories.len()].head;
    let each = |address: &dyn Fn(usize) -> String| (0..repeats).map(address).collect::<Vec<_>>();
    let words =
        |number: usize| corpus.question(size, number).replace([' ', '?', '&', '#', '%'], "+");
    Ok(vec![
        ("home", each(&|_| "/app".into())),
        ("search", each(&|number| format!("/app/search?q={}", words(number)))),
        ("search, nothing asked", each(&|_| "/app/search".into())),
        ("memory", each(&|number| format!("/app/memory/{}", memory(number).memory))),
        ("conversations", each(&|_| "/app/conversations".into())),
        ("statistics", each(&|_| "/app/conversations?view=statistics".into())),
        ("conversation", each(&|n| format!("/app/conversations/{}", talks[n % talks.len()].0.id))),
        ("review", each(&|_| "/app/review".into())),
        ("rules", each(&|_| "/app/rules".into())),
        ("access", each(&|_| "/app/access".into())),
        ("audit", each(&|_| "/app/audit".into())),
        ("health", each(&|_| "/app/health".into())),
        ("import", each(&|_| "/app/import".into())),
        ("backup", each(&|_| "/app/backup".into())),
        ("api", each(&|_| "/app/api".into())),
    ])
}

/// Signs in and returns the cookie.
async fn signed_in(router: &Router, token: &str) -> Result<String> {
    let request = Request::post("/app/login")
        .header(HOST, "localhost")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(format!("token={token}")))?;
    let reply = router.clone().oneshot(request).await?;
    let cookie = reply.headers().get(SET_COOKIE).context("nobody was signed in")?;
    let cookie = cookie.to_str()?.split(';').next().unwrap_or_default();
    Ok(cookie.to_owned())
}

/// Asks for a page and returns how long it is.
async fn ask(router: &Router, session: &str, address: &str) -> Result<usize> {
    let request = Request::get(address)
        .header(HOST, "localhost")
        .header(COOKIE, session)
        .header(ACCEPT_ENCODING, "gzip");
    let reply = router.clone().oneshot(request.body(Body::empty())?).await?;
    ensure!(reply.status() == 200, "{address} was answered with {}", reply.status());
    Ok(reply.into_body().collect().await?.to_bytes().len())
}
