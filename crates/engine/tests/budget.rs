use yore_domain::memory::Draft;
use yore_domain::{AgentId, Error, Span};

use crate::support::{Vault, recall, refused};

#[tokio::test]
async fn mw_204_an_agent_that_asks_too_often_waits() {
    let vault = Vault::with(|settings| {
        settings.reads_per_minute = Some(5);
        settings.recalls_per_minute = Some(2);
        settings.writes_per_minute = Some(1);
    })
    .await;
    let agent = vault.agent(|_| {}).await;
    for _ in 0..2 {
        assert!(vault.engine.recall(&agent.call, recall("tea")).await.is_ok());
    }
    let third = vault.engine.recall(&agent.call, recall("tea")).await;
    assert!(matches!(third, Err(Error::RateLimited { .. })));
    assert_eq!(refused(&vault.last().await), Some("rate_limited"));
    for _ in 0..2 {
        assert!(vault.engine.count(&agent.call, Default::default()).await.is_ok());
    }
    let sixth = vault.engine.count(&agent.call, Default::default()).await;
    assert!(matches!(sixth, Err(Error::RateLimited { .. })));
    assert!(vault.remember(&agent.call, Draft::text("one")).await.is_ok(), "another bucket");
    let again = vault.agent(|_| {}).await;
    let fourth = vault.engine.recall(&again.call, recall("tea")).await;
    assert!(matches!(fourth, Err(Error::RateLimited { .. })), "another grant of the same agent");
    let other = vault.agent(|grant| grant.agent = AgentId::new("planner").unwrap()).await;
    assert!(vault.engine.recall(&other.call, recall("tea")).await.is_ok(), "another agent");
    for _ in 0..20 {
        assert!(vault.engine.count(&vault.owner(), Default::default()).await.is_ok(), "the owner");
    }
    vault.clock.advance(Span::seconds(60));
    assert!(vault.engine.recall(&agent.call, recall("tea")).await.is_ok());
}
