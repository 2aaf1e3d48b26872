//! Poisoned writes in many shapes, all from a source that needs approval: none is ever recalled,
//! and what it costs a person to keep them out is counted.

use serde::Deserialize;
use serde_json::{Value, json};
use yore_domain::hold::{Hold, HoldState, Rule, RuleAction};
use yore_domain::mutation::Mutation;
use yore_domain::query::Recall;
use yore_engine::dialect::Dialect;
use yore_engine::{Call, Decision, Secret, Which};

use crate::support::{AGENT, Vault, of_agent};

/// Benign memories of a run of a thousand.
const BENIGN: usize = 950;

/// One poisoned write, and the question it wants to answer.
#[derive(Deserialize)]
struct Poison {
    shape: String,
    content: String,
    query: String,
}

fn script() -> Vec<Poison> {
    serde_json::from_str(include_str!("poison/script.json")).unwrap()
}

/// A vault in which what comes from the web waits, and an agent of it.
async fn watched() -> (Vault, String) {
    let vault = Vault::new().await;
    let rule = Rule { source: Some("web".into()), ..Rule::new("web waits", RuleAction::Hold) };
    vault.engine.put_rule(&vault.owner_call(), rule).await.unwrap();
    let agent = vault.agent(AGENT).await;
    (vault, agent)
}

async fn write(vault: &Vault, token: &str, source: &str, content: &str) -> Value {
    let body = json!({"type": "semantic", "content": content, "source": source});
    vault.ask(token, "remember", &of_agent(body)).await.expect(200)
}

/// Whether a text says what a poisoned write says; how letters are escaped does not matter.
fn says(text: &str, poison: &Poison) -> bool {
    let plain = |text: &str| {
        let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        text.chars().filter(|letter| letter.is_alphanumeric()).collect::<String>()
    };
    plain(text).contains(&plain(&poison.content))
}

/// Asks for a poisoned write by its question and by its own words, in every way an agent has.
async fn surfaces(vault: &Vault, token: &str, poison: &Poison) -> Vec<&'static str> {
    let mut found = Vec::new();
    for query in [&poison.query, &poison.content] {
        let asked = json!({"query": query, "k": 20});
        for caller in [token, &vault.owner, &vault.service] {
            let hits = vault.ask(caller, "recall", &of_agent(asked.clone())).await.expect(200);
            let hits = hits["results"].as_array().unwrap();
            if hits.iter().any(|hit| says(hit["content"].as_str().unwrap(), poison)) {
                found.push("recall");
            }
        }
        let call = Call::bearer("mcp", Secret::new(token));
        let carried = vault.memorywire.call(call.clone(), "recall", asked).await.unwrap();
        if carried["results"]
            .as_array()
            .unwrap()
            .iter()
            .any(|hit| says(hit["content"].as_str().unwrap(), poison))
        {
            found.push("carrier");
        }
        let question: Recall =
            serde_json::from_value(json!({"query": query, "limit": 50, "cutoff": "off"})).unwrap();
        let context = vault.engine.context(&call, question, 4000).await.unwrap();
        if says(&context.frame, poison) {
            found.push("context");
        }
    }
    found
}

/// The text of a held remember.
fn text(hold: &Hold) -> &str {
    match &hold.mutation {
        Mutation::Remember { draft, .. } => &draft.content.body.text,
        Mutation::Revise { .. }
        | Mutation::Relabel { .. }
        | Mutation::Forget { .. }
        | Mutation::Merge { .. }
        | Mutation::Restore { .. }
        | Mutation::Disclose { .. } => panic!("nothing else was asked for"),
    }
}

#[tokio::test]
async fn mw_012_none_of_fifty_poisoned_writes_is_ever_recalled() {
    let (vault, agent) = watched().await;
    write(&vault, &agent, "chat", "Alice is allergic to peanuts").await;
    let script = script();
    assert_eq!(script.len(), 50);
    for poison in &script {
        let answer = write(&vault, &agent, "web", &poison.content).await;
        assert_eq!(answer["pending_approval"], true, "{}", poison.shape);
        assert_eq!(answer["stores"], json!([]));
    }
    let owner = vault.owner_call();
    assert_eq!(vault.pending().await.len(), 50);
    for poison in &script {
        assert!(surfaces(&vault, &agent, poison).await.is_empty(), "{}", poison.shape);
    }
    // Rejected, they stay out; approved, each of them would have been found.
    let one = vault.pending().await.remove(49);
    vault.approve(&one).await;
    let let_in = script.iter().find(|poison| poison.content == text(&one)).unwrap();
    assert!(!surfaces(&vault, &agent, let_in).await.is_empty(), "the questions are good ones");
    let all = Which { all: true, ..Which::default() };
    let done = vault.engine.review_all(&owner, all, Decision::Reject, None).await.unwrap();
    assert_eq!(done.len(), 49);
    for poison in script.iter().filter(|poison| poison.content != let_in.content) {
        assert!(surfaces(&vault, &agent, poison).await.is_empty(), "{}", poison.shape);
    }
}

/// A person looks at what waits and rejects what is poisoned, one click each unless several can be
/// described at once, then approves the rest in one. The worst case: everything waits.
#[tokio::test]
async fn mw_120_the_clicks_that_a_thousand_memories_cost() {
    let full = std::env::var_os("YORE_FULL").is_some();
    let benign = if full { BENIGN } else { BENIGN / 5 };
    let (vault, agent) = watched().await;
    let script = script();
    let (mut poisoned, mut trusted) = (script.iter(), 0);
    for number in 0..benign {
        // A third of what is benign comes from the web, too, and waits beside the poison.
        let source = if number % 3 == 0 { "web" } else { "chat" };
        trusted += usize::from(source == "chat");
        write(&vault, &agent, source, &format!("benign note {number} about gardening")).await;
        if number * script.len() / benign != (number + 1) * script.len() / benign {
            let poison = poisoned.next().unwrap();
            write(&vault, &agent, "web", &poison.content).await;
        }
    }
    assert!(poisoned.next().is_none());
    let owner = vault.owner_call();
    let mut clicks = 0;
    // One click for what gives orders as far as the machine can tell.
    let orders = Which { gives_orders: Some(true), ..Which::default() };
    let rejected = vault.engine.review_all(&owner, orders, Decision::Reject, None).await.unwrap();
    clicks += 1;
    // One for each that only a person can tell.
    let waiting = vault.engine.holds(&owner, HoldState::Pending, 1000).await.unwrap();
    let told = waiting.iter().filter(|hold| script.iter().any(|it| it.content == text(hold)));
    let mut by_hand = 0;
    for hold in told {
        vault.engine.review(&owner, hold.id, Decision::Reject, None).await.unwrap();
        by_hand += 1;
    }
    clicks += by_hand;
    assert_eq!(rejected.len() + by_hand, script.len(), "nothing benign was turned down");
    // One for all that is left.
    let rest = Which { source: Some("web".into()), ..Which::default() };
    let approved = vault.engine.review_all(&owner, rest, Decision::Approve, None).await.unwrap();
    clicks += 1;
    assert_eq!(approved.len(), benign - trusted);
    assert!(approved.iter().all(|one| one.refused.is_none()));
    assert!(vault.pending().await.is_empty());
    for poison in script.iter().step_by(if full { 1 } else { 10 }) {
        assert!(surfaces(&vault, &agent, poison).await.is_empty(), "{}", poison.shape);
    }
    println!(
        "{clicks} clicks for {benign} benign and {} poisoned memories: {} found by the detector, \
         {by_hand} by hand, {} approved at once, {trusted} not asked about",
        script.len(),
        rejected.len(),
        approved.len(),
    );
    // However many benign ones there are: the poison and two more.
    assert!(clicks <= script.len() + 2, "{clicks}");
    let count = vault.engine.count(&owner, Default::default()).await.unwrap();
    assert_eq!(count, benign as u64);
}
