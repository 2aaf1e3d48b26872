//! Random attempts to learn of what is hidden or belongs to somebody else.

use axum::http::Method;
use serde_json::{Value, json};
use yore_domain::class::Sensitivity;

use super::{Dice, presented, trusting};
use crate::support::{NOW, USER, Vault, claims, governed, id, jwt, key};

/// Stands in every text that no prober may see.
const CANARY: &str = "vermilion";
/// Probes when nobody says how many.
const FEW: usize = 20_000;
/// Tasks that probe at once.
const TASKS: usize = 4;

struct World {
    vault: Vault,
    /// Ids of hidden entries, and of entries of somebody else.
    hidden: Vec<String>,
    tokens: Vec<String>,
}

async fn world() -> World {
    let vault = trusting(false).await;
    let mut hidden = Vec::new();
    let mut entries = Vec::new();
    for number in 0..60 {
        let (label, class) = match number % 4 {
            0 => ("health.condition", "restricted"),
            1 => ("finance.holdings", "confidential"),
            2 => ("work.matter", "restricted"),
            _ => ("identity", "internal"),
        };
        let entry = governed(&format!("{CANARY} note {number}"), class, &[label]);
        hidden.push(entry["id"].as_str().unwrap().to_owned());
        entries.push(entry);
    }
    for number in 0..60 {
        entries.push(governed(&format!("harbour note {number}"), "internal", &["work.calendar"]));
    }
    vault.post(&vault.owner, "/v1/import", &crate::support::store(&entries)).await.expect(201);
    let mut theirs = crate::support::store(&[]);
    theirs["user_id"] = "anna".into();
    for number in 0..30 {
        let mut entry =
            governed(&format!("{CANARY} of Anna {number}"), "public", &["work.calendar"]);
        entry["user_id"] = "anna".into();
        hidden.push(entry["id"].as_str().unwrap().to_owned());
        theirs["entries"].as_array_mut().unwrap().push(entry);
    }
    vault.post(&vault.service, "/v1/import", &theirs).await.expect(201);
    let mut tokens = vec![
        jwt(&key(1), &claims("scheduler", &["work.calendar"], "internal")),
        jwt(&key(1), &claims("narrow", &["work.calendar", "health.appointment"], "confidential")),
        jwt(&key(1), &claims("nothing", &[], "restricted")),
        jwt(&key(1), &claims("low", &["work", "finance", "health"], "public")),
    ];
    tokens.push(vault.agent("own", &["work.calendar"], Sensitivity::Restricted).await);
    World { vault, hidden, tokens }
}

impl World {
    /// One probe; says what leaked, if anything did.
    async fn probe(&self, dice: &mut Dice) -> Option<String> {
        let token = dice.one(&self.tokens).clone();
        let one = dice.one(&self.hidden).clone();
        let vault = &self.vault;
        let label = *dice.one(&["health", "finance.holdings", "work.matter", "identity"]);
        let get = |path: String| async move { (path.clone(), vault.get(&token, &path).await) };
        let token = dice.one(&self.tokens).clone();
        let (asked, reply) = match dice.below(18) {
            0 => get(format!("/v1/knowledge/{one}")).await,
            1 => get(format!("/v1/knowledge/{one}?user_id={USER}")).await,
            2 => get(format!("/v1/knowledge/{one}?as_of={NOW}")).await,
            3 => get(format!("/v1/knowledge?user_id={USER}&query={CANARY}")).await,
            4 => get(format!("/v1/knowledge?user_id={USER}&governance_label={label}")).await,
            5 => get(format!("/v1/knowledge?user_id={USER}&sensitivity_class=restricted")).await,
            6 => {
                let offset = dice.below(80);
                get(format!("/v1/knowledge?user_id={USER}&limit=5&offset={offset}")).await
            }
            7 => get("/v1/knowledge?user_id=anna".to_owned()).await,
            8 => get(format!("/v1/knowledge/{one}?user_id=anna")).await,
            9 => get(format!("/ump/memory/{one}")).await,
            10 => {
                let change = json!({"confidence": 0.01});
                ("patch".into(), vault.patch(&token, &one, &change).await)
            }
            11 => ("delete".into(), vault.delete(&token, &one).await),
            12 => {
                let user = *dice.one(&[USER, "anna"]);
                let body = json!({"user_id": user});
                ("export".into(), vault.ask(Method::POST, &token, "/v1/export", &body).await)
            }
            13 => return self.taken(dice, &one).await,
            14 => {
                let mut entry = governed("probe", "internal", &[label]);
                entry["id"] = one.clone().into();
                let sent = crate::support::store(&[entry]);
                let reply = vault.post(&token, "/v1/import", &sent).await;
                let kept = reply.status == 403 || reply.body["imported"] == 0;
                let fine = kept && !reply.text.contains(CANARY);
                return (!fine).then(|| format!("import: {} {}", reply.status, reply.text));
            }
            15 => get(format!("/v1/user-model/{}", dice.one(&[USER, "anna"]))).await,
            16 => get(format!("/v1/admin/audit?user_id={USER}&limit=1000")).await,
            _ => {
                let mut entry = governed("probe", "internal", &[label]);
                entry["id"] = one.clone().into();
                ("post".into(), vault.post(&token, "/v1/knowledge", &entry).await)
            }
        };
        let fine = match reply.status {
            200 => !reply.text.contains(CANARY) && !reply.text.contains(&one),
            403 | 404 => !reply.text.contains(CANARY) && !reply.text.contains(&one),
            _ => false,
        };
        (!fine).then(|| format!("{asked}: {} {}", reply.status, reply.text))
    }
}

impl World {
    /// An agent nobody knows yet chooses a hidden id: to it the id is free, and its own.
    async fn taken(&self, dice: &mut Dice, one: &str) -> Option<String> {
        let agent = format!("prober-{}-{}", dice.below(1 << 30), dice.below(1 << 30));
        let token = jwt(&key(1), &claims(&agent, &["work.calendar"], "internal"));
        let mut entry = governed("probe", "internal", &["work.calendar"]);
        entry["id"] = one.into();
        let made = self.vault.post(&token, "/v1/knowledge", &entry).await;
        let read = self.vault.entry(&token, one).await;
        let gone = self.vault.delete(&token, one).await;
        let fine = (made.status, read.body == entry, gone.status) == (201, true, 204);
        (!fine).then(|| format!("taken: {} {} {}", made.text, read.text, gone.text))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oamp_342_random_probes_learn_nothing() {
    let count = std::env::var("YORE_PROBES").ok().and_then(|text| text.parse().ok());
    let count: usize = count.unwrap_or(FEW);
    let begun = std::time::Instant::now();
    // Probes leave traces in the audit chain; a world that grew too old answers slowly.
    for (round, from) in (0..count).step_by(FEW).enumerate() {
        probed(round, FEW.min(count - from)).await;
        let done = count.min(from + FEW);
        println!("{done} probes, no leak, {:.1} s", begun.elapsed().as_secs_f64());
    }
}

/// Probes a world of its own.
async fn probed(round: usize, count: usize) {
    let world = std::sync::Arc::new(world().await);
    let before = everything(&world).await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let world = world.clone();
            tokio::spawn(async move {
                let mut dice = Dice::new((round * TASKS + task) as u64 + 1);
                let mut leaks = Vec::new();
                for _ in 0..count / TASKS {
                    leaks.extend(world.probe(&mut dice).await);
                }
                leaks
            })
        })
        .collect();
    let mut leaks = Vec::new();
    for task in tasks {
        leaks.extend(task.await.unwrap());
    }
    assert!(leaks.is_empty(), "{:#?}", &leaks[..leaks.len().min(5)]);
    assert_eq!(everything(&world).await, before, "and nothing was changed");
    // A hidden entry is no answer on a dialect either.
    for token in world.tokens.iter().filter(|token| token.starts_with("ey")) {
        let oamp = world.vault.registry.get("oamp").unwrap();
        let call = presented(token);
        let found = oamp.call(call, "list", json!({"query": CANARY})).await.unwrap();
        assert_eq!(found["entries"], Value::Array(vec![]));
    }
    let missing = world.vault.entry(&world.tokens[0], &id()).await;
    assert_eq!(missing.refusal(), (404, "NOT_FOUND"));
}

/// All that the owner and Anna have, in order.
async fn everything(world: &World) -> String {
    let vault = &world.vault;
    let mine = vault.export(&vault.owner).await["entries"].to_string();
    let hers = vault.post(&vault.service, "/v1/export", &json!({"user_id": "anna"})).await;
    mine + &hers.expect(200)["entries"].to_string()
}
