use yore_domain::memory::{Draft, Relation};
use yore_domain::provenance::MessageRef;
use yore_domain::{ConversationId, MessageId};
use yore_engine::Reference;

use crate::support::Vault;

#[tokio::test]
async fn a_memory_shows_where_it_came_from_and_what_it_belongs_to() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let other = vault.remember(Draft::text("tea before coffee")).await;
    let (conversation, message) = (ConversationId::random(), MessageId::random());
    let mut draft = Draft::text("coffee only at nine");
    draft.content.provenance.source = Some("a diary".into());
    draft.content.provenance.messages = vec![MessageRef { conversation, message }];
    draft.content.relations =
        vec![Relation { kind: "contradicts".into(), target: other.to_string() }];
    let id = vault.remember(draft).await;
    let page = browser.get(&format!("/app/memory/{id}")).await.expect(200);
    assert!(page.contains("a diary") && page.contains("contradicts"), "{page}");
    assert!(page.contains(&format!("href=\"/app/memory/{other}\"")), "{page}");
    assert!(page.contains(&format!("/app/conversations/{conversation}?message={message}")));
    assert!(page.contains("class=\"validity\"") && page.contains("class=\"relations\""));
    assert!(page.contains("<strong>you</strong> remember over test"), "{page}");
}

#[tokio::test]
async fn who_touched_it_names_others_and_not_ones_own_looks() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let agent = vault.agent("helper").await;
    let id = vault.remember(Draft::text("the spare key lies under the fern")).await;
    vault.engine.get(&agent, Reference::Memory(id)).await.unwrap();
    for _ in 0..3 {
        browser.get(&format!("/app/memory/{id}")).await.expect(200);
    }
    let page = browser.get(&format!("/app/memory/{id}")).await.expect(200);
    assert!(page.contains("<strong>helper</strong> get over"), "{page}");
    assert!(!page.contains("over web"), "{page}");
}

#[tokio::test]
async fn an_edit_is_a_new_version_with_its_difference() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let id = vault.remember(Draft::text("I drink tea a lot")).await;
    let place = format!("/app/memory/{id}");
    let revise = format!("{place}/revise");
    let fields = [("text", "I drink coffee a lot"), ("number", "1"), ("kind", "episodic")];
    let page = browser.follow(&revise, &fields).await;
    assert!(page.contains("Saved as a new version."), "{page}");
    assert!(page.contains("<del>tea </del><ins>coffee </ins>"), "{page}");
    assert!(page.contains("kind: semantic → episodic"), "{page}");
    let late = browser.post(&revise, &fields).await;
    assert_eq!(late.status, 409, "what was seen has moved");
    let restored = browser.follow(&format!("{place}/restore"), &[("number", "1")]).await;
    assert!(restored.contains("Restored.") && restored.contains("Version 3"), "{restored}");
    assert!(restored.contains("<p class=\"said\">I drink tea a lot</p>"), "{restored}");
}

#[tokio::test]
async fn labels_decide_who_sees_it_from_then_on() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let agent = vault.agent("helper").await;
    let id = vault.remember(Draft::text("the blood pressure is fine")).await;
    assert_eq!(vault.engine.count(&agent, Default::default()).await.unwrap(), 1);
    let place = format!("/app/memory/{id}/label");
    let fields = [("labels", "health, private.diary"), ("sensitivity", "restricted")];
    let page = browser.follow(&place, &fields).await;
    assert!(page.contains("health, private.diary") && page.contains("restricted"), "{page}");
    assert!(page.contains("labels: none → health, private.diary"), "{page}");
    assert_eq!(vault.engine.count(&agent, Default::default()).await.unwrap(), 0);
    assert_eq!(browser.post(&place, &[("sensitivity", "odd")]).await.status, 400);
}

#[tokio::test]
async fn what_is_forgotten_can_come_back() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let id = vault.remember(Draft::text("forget me not")).await;
    let page = browser.follow(&format!("/app/memory/{id}/forget"), &[]).await;
    assert!(page.contains("tombstoned") && page.contains("Bring back version 1"), "{page}");
    assert!(browser.get("/app/search?q=forget+me+not").await.expect(200).contains("Nothing"));
    browser.follow(&format!("/app/memory/{id}/restore"), &[("number", "1")]).await;
    let found = browser.get("/app/search?q=forget+me+not").await.expect(200);
    assert!(found.contains(&id.to_string()), "{found}");
}

#[tokio::test]
async fn what_is_erased_is_gone_and_the_receipt_says_so() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let id = vault.remember(Draft::text("a secret quokka")).await;
    let place = format!("/app/memory/{id}/erase");
    assert_eq!(browser.post(&place, &[]).await.status, 400, "it must be meant");
    let receipt = browser.post(&place, &[("sure", "yes")]).await.expect(200);
    assert!(receipt.contains("Erased") && receipt.contains(&id.to_string()), "{receipt}");
    assert!(receipt.contains("its hash") && receipt.contains("by you"), "{receipt}");
    let traces =
        vault.engine.traces(&vault.owner_call(), "a secret quokka".to_owned()).await.unwrap();
    assert!(traces.found.is_empty(), "{traces:?}");
    let page = browser.get(&format!("/app/memory/{id}")).await;
    assert!(!page.text.contains("quokka"), "{}", page.text);
}

#[tokio::test]
async fn what_is_not_an_id_is_not_found() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    for path in ["/app/memory/x", "/app/memory/..%2f..", "/app/conversations/x", "/app/none"] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 404, "{path}");
        assert!(page.text.contains("Not found"), "{path}");
    }
}
