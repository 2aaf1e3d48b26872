//! Two servers on one database. In a directory there is only ever one.

use yore_domain::memory::Draft;
use yore_domain::{Error, Span};

use crate::support::{Vault, recall};

/// A second server on the vault of a first.
async fn two(change: fn(&mut yore_engine::Settings)) -> Option<(Vault, Vault)> {
    if !yore_scratch::is_postgres() {
        println!("NOT RUN: YORE_TEST_STORE is not postgres");
        return None;
    }
    let one = Vault::with(change).await;
    let other = one.beside(change).await;
    Some((one, other))
}

#[tokio::test]
async fn a_grant_that_one_server_takes_back_is_gone_at_the_other() {
    let Some((one, other)) = two(|_| {}).await else { return };
    one.holds(Draft::text("Anna drinks tea")).await;
    let agent = one.agent(|_| {}).await;
    assert_eq!(other.texts(&agent.call, "tea").await, ["Anna drinks tea"]);
    one.engine.revoke_grant(&one.owner(), agent.grant).await.unwrap();
    let refused = other.engine.recall(&agent.call, recall("tea")).await;
    assert!(
        matches!(refused, Err(Error::Unauthenticated { .. } | Error::Forbidden { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_limit_holds_across_servers() {
    let limit = |settings: &mut yore_engine::Settings| settings.recalls_per_minute = Some(4);
    let Some((one, other)) = two(limit).await else { return };
    let agent = one.agent(|_| {}).await;
    let mut answered = 0;
    for _ in 0..4 {
        for server in [&one, &other] {
            answered += usize::from(server.engine.recall(&agent.call, recall("tea")).await.is_ok());
        }
    }
    assert_eq!(answered, 4, "four, not four at each");
    one.clock.advance(Span::seconds(15));
    other.clock.advance(Span::seconds(15));
    let mut again = Vec::new();
    for server in [&one, &other] {
        again.push(server.engine.recall(&agent.call, recall("tea")).await.is_ok());
    }
    assert_eq!(again, [true, false]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn background_work_is_done_once() {
    let Some((one, other)) = two(|_| {}).await else { return };
    for number in 0..10 {
        one.holds(Draft::text(format!("Anna drinks tea number {number}"))).await;
    }
    let running = [one.engine.start(), other.engine.start()];
    let mut left = 200;
    while one.engine.census(&one.owner()).await.unwrap().unembedded > 0 {
        assert!(left > 0, "nobody does the work");
        left -= 1;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    for background in running {
        background.stop().await;
    }
    let embedded: u64 = one
        .audit()
        .await
        .iter()
        .filter(|entry| entry.draft.operation == "embed")
        .map(|entry| entry.draft.detail["count"].as_u64().unwrap())
        .sum();
    assert_eq!(embedded, 10, "each text once");
}
