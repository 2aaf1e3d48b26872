//! The paper's third experiment: its sixteen scenarios, against this server over REST and against
//! every other store that is there.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};
use yore_domain::query::Effort;
use yore_domain::{Span, Timestamp};
use yore_engine::{FixedClock, Secret};
use yore_router::adapters::{Cognee, Edition, Letta, Mem0, Pgvector, Server, SqliteVec};
use yore_router::suite::{CONFORMANCE, WordHash, run as run_suite};
use yore_router::{InMemory, MemoryStore, Slot, Terms};

use super::desk::{Desk, of_agent, text};
use crate::report::Report;
use crate::world::World;

/// 2027-01-15T08:00:00Z.
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const USER: &str = "alice";

/// A store of the table: its name, the variable that says where it is, and the numbers of the
/// scenarios that the paper's adapter for it skips; nothing is published about this server.
type Store = (&'static str, Option<&'static str>, Option<&'static [usize]>);

const STORES: [Store; 6] = [
    ("yore", None, None),
    ("sqlite-vec", None, Some(&[])),
    ("mem0", Some("YORE_TEST_MEM0"), Some(&[6, 7, 8])),
    ("letta", Some("YORE_TEST_LETTA"), Some(&[2, 6, 7])),
    ("cognee", Some("YORE_TEST_COGNEE"), Some(&[2, 4, 6, 7, 8, 9])),
    ("pgvector", Some("YORE_TEST_PGVECTOR"), Some(&[])),
];

/// The scenarios that failed, each with its reason; `None` where the store was not started.
type Column = Option<Vec<String>>;

/// Runs the scenarios and prints the paper's table.
pub(crate) async fn run(work: &Path, report: &mut Report) -> Result<()> {
    std::fs::create_dir_all(work)?;
    let mut columns: Vec<Column> = Vec::new();
    for (name, variable, _) in STORES {
        let address = variable.map(|variable| std::env::var(variable).ok());
        columns.push(match (name, address) {
            ("yore", _) => Some(over_rest(work).await?),
            (_, Some(None)) => None,
            (_, address) => {
                let store = open(name, &address.flatten().unwrap_or_default(), work)?;
                let deadline = Duration::from_secs(10);
                let terms = Terms { deadline, ..Terms::default() };
                let slot = Slot::new(name, store, Arc::new(InMemory::default()), terms);
                let mark = std::process::id().to_string();
                Some(run_suite(&slot, &mark, &CONFORMANCE).await)
            }
        });
    }
    print_matrix(&columns);
    for ((name, ..), column) in STORES.iter().zip(&columns) {
        let passed = column.as_ref().map(|failed| (CONFORMANCE.len() - failed.len()) as f64);
        report.at_least(format!("conformance, {name}, of 16"), "passed", 16.0, passed);
        report.keep(
            format!("conformance, {name}"),
            json!({ "started": column.is_some(), "failed": column }),
        );
    }
    Ok(())
}

fn open(name: &str, address: &str, work: &Path) -> Result<Arc<dyn MemoryStore>> {
    let (embedder, mark) = (Arc::new(WordHash), std::process::id());
    Ok(match name {
        "mem0" => {
            let token = std::env::var("YORE_TEST_MEM0_KEY").ok().map(Secret::new);
            Arc::new(Mem0::new(Server::from(address).with_token(token), Edition::Server)?)
        }
        "letta" => {
            let model = std::env::var("YORE_TEST_LETTA_EMBEDDING").unwrap_or_default();
            let model = serde_json::from_str(&model).unwrap_or_else(|_| json!(model));
            Arc::new(Letta::new(address, "conformance", model)?)
        }
        "cognee" => Arc::new(Cognee::new(address, "conformance")?),
        "pgvector" => Arc::new(Pgvector::new(address, &format!("bench_{mark}"), embedder)?),
        _ => Arc::new(SqliteVec::open(&work.join("memory.db"), embedder)?),
    })
}

/// Prints each cell as ours/theirs.
fn print_matrix(columns: &[Column]) {
    let failed = |column: &Vec<String>, scenario: &str| {
        column.iter().any(|why| why.split(':').next() == Some(scenario))
    };
    println!("\nconformance: here/published");
    print!("{:<36}", "scenario");
    for (name, ..) in STORES {
        print!("{name:>14}");
    }
    println!();
    for (number, (scenario, _)) in (1..).zip(CONFORMANCE) {
        print!("{scenario:<36}");
        for ((_, _, skipped), column) in STORES.iter().zip(columns) {
            let here = match column {
                None => "–",
                Some(column) if failed(column, scenario) => "FAIL",
                Some(_) => "pass",
            };
            let published = match skipped {
                None => "–",
                Some(skipped) if skipped.contains(&number) => "skip",
                Some(_) => "pass",
            };
            let cell = format!("{here}/{published}");
            print!("{cell:>14}");
        }
        println!();
    }
    for ((name, variable, _), column) in STORES.iter().zip(columns) {
        match (column, variable) {
            (None, Some(variable)) => println!("{name}: not started: {variable} names none"),
            (None, None) => println!("{name}: not started"),
            (Some(failed), _) => failed.iter().for_each(|why| println!("{name}: {why}")),
        }
    }
    println!("published: 68 pass, 12 skip, 0 fail of 80\n");
}

type Scenario = for<'a> fn(&'a Stage) -> LocalBoxFuture<'a, Result<()>>;

/// The sixteen over REST, in the order of the suite.
const OVER_REST: [Scenario; 16] = [
    |stage| stage.basic().boxed_local(),
    |stage| stage.by_user().boxed_local(),
    |stage| stage.by_type().boxed_local(),
    |stage| stage.forget_ids().boxed_local(),
    |stage| stage.refuses("forget", json!({})).boxed_local(),
    |stage| stage.refuses("expire", json!({})).boxed_local(),
    |stage| stage.refuses("expire", json!({ "policy": {} })).boxed_local(),
    |stage| stage.expire_age().boxed_local(),
    |stage| stage.merge().boxed_local(),
    |stage| stage.pending().boxed_local(),
    |stage| stage.capabilities().boxed_local(),
    |stage| stage.capabilities().boxed_local(),
    |stage| stage.serves_all().boxed_local(),
    |stage| stage.score().boxed_local(),
    |stage| stage.fresher().boxed_local(),
    |stage| stage.many().boxed_local(),
];

/// Plays each scenario on a vault of its own.
async fn over_rest(work: &Path) -> Result<Vec<String>> {
    let mut failed = Vec::new();
    for ((name, _), scenario) in CONFORMANCE.iter().zip(OVER_REST) {
        let clock = Arc::new(FixedClock::at(NOW));
        let world = World::open_at(&work.join(name), Effort::default(), clock.clone()).await?;
        let stage = Stage { desk: Desk::open(&world).await?, clock };
        if let Err(why) = scenario(&stage).await {
            failed.push(format!("{name}: {why}"));
        }
        world.close().await?;
    }
    Ok(failed)
}

/// An empty vault, and its clock.
struct Stage {
    desk: Desk,
    clock: Arc<FixedClock>,
}

impl Stage {
    async fn say(&self, content: &str) -> Result<String> {
        let body = json!({ "type": "semantic", "content": content, "user_id": USER });
        self.desk.remember(body).await
    }

    async fn told(&self, query: &str, k: usize) -> Result<Vec<String>> {
        let hits = self.desk.recall(json!({ "query": query, "k": k, "user_id": USER })).await?;
        Ok(hits.iter().map(|hit| text(&hit["content"])).collect())
    }

    async fn basic(&self) -> Result<()> {
        self.say("The capital of France is Paris.").await?;
        let told = self.told("capital France", 3).await?;
        ensure!(has(&told, "Paris"), "{told:?}");
        Ok(())
    }

    async fn by_user(&self) -> Result<()> {
        self.say("My favorite color is blue.").await?;
        let content = "My favorite color is purple.";
        let body = json!({ "type": "semantic", "content": content, "user_id": "bob" });
        self.desk.remember(body).await?;
        let told = self.told("favorite color", 5).await?;
        ensure!(has(&told, "blue") && !has(&told, "purple"), "{told:?}");
        Ok(())
    }

    async fn by_type(&self) -> Result<()> {
        self.say("Tax season is in April.").await?;
        let content = "Had a meeting about taxes last Tuesday.";
        let body = json!({ "type": "episodic", "content": content, "user_id": USER });
        self.desk.remember(body).await?;
        let body =
            json!({ "query": "meeting taxes", "types": ["semantic"], "k": 5, "user_id": USER });
        let hits = self.desk.recall(body).await?;
        ensure!(hits.len() == 1 && hits[0]["type"] == "semantic", "{hits:?}");
        Ok(())
    }

    async fn forget_ids(&self) -> Result<()> {
        let mut ids = Vec::new();
        for content in ["The sky is blue.", "Water is wet.", "Trees are green."] {
            ids.push(self.say(content).await?);
        }
        self.say("The tree house is painted sky blue.").await?;
        self.desk.ok("forget", json!({ "ids": ids })).await?;
        let told = self.told("sky water tree", 5).await?;
        ensure!(told == ["The tree house is painted sky blue."], "{told:?}");
        Ok(())
    }

    /// A request that names nothing is refused, and nothing is lost.
    async fn refuses(&self, operation: &str, body: Value) -> Result<()> {
        self.say("It stays where it is.").await?;
        let (status, answer) = self.desk.ask(operation, Some(&of_agent(body))).await?;
        ensure!(status == 400, "{status}: {answer}");
        let told = self.told("stays where", 1).await?;
        ensure!(has(&told, "stays"), "{told:?}");
        Ok(())
    }

    async fn expire_age(&self) -> Result<()> {
        self.say("An ancient fact from long ago.").await?;
        self.clock.advance(Span::days(365));
        self.say("A fresh fact from today.").await?;
        self.desk.ok("expire", json!({ "policy": { "older_than_days": 180 } })).await?;
        let told = self.told("ancient fresh fact", 5).await?;
        ensure!(has(&told, "fresh") && !has(&told, "ancient"), "{told:?}");
        Ok(())
    }

    async fn merge(&self) -> Result<()> {
        let mut ids = Vec::new();
        for number in ["one", "two", "three"] {
            ids.push(self.say(&format!("Paris is the duplicate fact {number}.")).await?);
        }
        let body = json!({ "canonical": ids[0], "duplicates": ids[1..] });
        self.desk.ok("merge", body).await?;
        let told = self.told("duplicate fact", 10).await?;
        ensure!(told == ["Paris is the duplicate fact one."], "{told:?}");
        Ok(())
    }

    async fn pending(&self) -> Result<()> {
        self.say("An approved fact of the governance test.").await?;
        let content = "A pending fact of the governance test.";
        let body = json!({
            "type": "semantic", "content": content, "user_id": USER, "approval_required": true,
        });
        let answer = self.desk.ok("remember", body).await?;
        ensure!(answer["pending_approval"] == true, "{answer}");
        let told = self.told(content, 5).await?;
        ensure!(told == ["An approved fact of the governance test."], "{told:?}");
        Ok(())
    }

    async fn capabilities(&self) -> Result<()> {
        let (status, health) = self.desk.ask("health", None).await?;
        ensure!(status == 200 && health["status"] == "ok", "{health}");
        let declared = health["capabilities"].as_array().map_or(&[][..], Vec::as_slice);
        let known = yore_router::Capability::ALL.map(|one| one.as_str());
        ensure!(declared.contains(&json!("semantic")), "{health}");
        ensure!(declared.iter().all(|one| known.contains(&text(one).as_str())), "{health}");
        Ok(())
    }

    /// The interface of another language's scenario: here, every operation has its schemas.
    async fn serves_all(&self) -> Result<()> {
        for operation in ["remember", "recall", "forget", "merge", "expire"] {
            for name in [operation.to_owned(), format!("{operation}.response")] {
                let (status, schema) = self.desk.ask(&format!("schemas/{name}"), None).await?;
                ensure!(status == 200 && schema.is_object(), "{name}: {status}");
            }
            let (status, _) = self.desk.ask(operation, Some(&json!({}))).await?;
            ensure!(status == 400, "{operation} of nobody: {status}");
        }
        Ok(())
    }

    async fn score(&self) -> Result<()> {
        self.say("The sun shines bright over the field.").await?;
        let body = json!({ "query": "sun bright shines", "k": 3, "user_id": USER });
        let hits = self.desk.recall(body).await?;
        let whole = hits.first().is_some_and(|hit| {
            hit["score"].is_number()
                && hit["type"] == "semantic"
                && hit["source_store"].is_string()
                && text(&hit["content"]).contains("sun")
        });
        ensure!(whole, "{hits:?}");
        Ok(())
    }

    async fn fresher(&self) -> Result<()> {
        self.say("ancient news from long ago.").await?;
        self.clock.advance(Span::days(365));
        self.say("fresh news from today.").await?;
        let body = json!({
            "query": "ancient news fresh news", "k": 5, "user_id": USER, "fresher_than_days": 30,
        });
        let hits = self.desk.recall(body).await?;
        let told: Vec<String> = hits.iter().map(|hit| text(&hit["content"])).collect();
        ensure!(told == ["fresh news from today."], "{told:?}");
        Ok(())
    }

    async fn many(&self) -> Result<()> {
        for number in 0..10 {
            self.say(&format!("city fact number {number:02} about somewhere.")).await?;
        }
        let told = self.told("city fact", 10).await?;
        ensure!(told.len() == 10, "{told:?}");
        Ok(())
    }
}

fn has(told: &[String], words: &str) -> bool {
    told.iter().any(|one| one.contains(words))
}
