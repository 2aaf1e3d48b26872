use yore_domain::Span;
use yore_domain::class::Label;
use yore_domain::memory::Draft;

use crate::support::Vault;

#[tokio::test]
async fn the_first_page_guides_and_then_shows_what_there_is() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let page = browser.get("/app").await.expect(200);
    assert!(page.contains("Three steps") && page.contains("mcpServers"), "{page}");
    assert!(page.contains("Nothing is remembered yet") && page.contains("Nothing waits"));
    let page = browser.follow("/app/remember", &[("text", "I am allergic to peanuts")]).await;
    assert!(page.contains("Remembered.") && page.contains("I am allergic to peanuts"), "{page}");
    assert!(!page.contains("Three steps"));
    let page = browser.follow("/app/remember", &[("text", "I am allergic to peanuts")]).await;
    assert!(page.contains("That was known already"), "{page}");
    assert_eq!(browser.post("/app/remember", &[("text", "  ")]).await.status, 400);
}

#[tokio::test]
async fn the_first_page_says_who_looked() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    assert!(browser.get("/app").await.expect(200).contains("No agent has read anything yet"));
    let agent = vault.agent("scheduler").await;
    vault.engine.count(&agent, Default::default()).await.unwrap();
    let page = browser.get("/app").await.expect(200);
    assert!(page.contains("<strong>scheduler</strong> count over test"), "{page}");
}

#[tokio::test]
async fn a_question_finds_its_answer_and_says_why() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let id = vault.remember(Draft::text("I am allergic to peanuts & hazelnuts")).await;
    vault.remember(Draft::text("The kettle stands on the blue shelf")).await;
    let page = browser.get("/app/search?q=peanut+allergy").await.expect(200);
    assert!(page.contains(&format!("/app/memory/{id}")), "{page}");
    assert!(page.contains("<mark>peanuts</mark> &#38; hazelnuts"), "{page}");
    assert!(page.contains("Why this matched") && page.contains("class=\"fill\""), "{page}");
    let page = browser.get("/app/search?q=peanut&in=messages").await.expect(200);
    assert!(page.contains("Nothing relevant") && !page.contains("allergic"), "{page}");
}

#[tokio::test]
async fn without_a_question_the_newest_are_listed() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let mut draft = Draft::text("stand-up is at nine");
    draft.content.governance.labels = vec![Label::new("work").unwrap()];
    vault.remember(draft).await;
    for number in 0..31 {
        vault.clock.advance(Span::seconds(1));
        vault.remember(Draft::text(format!("fact number {number}."))).await;
    }
    let page = browser.get("/app/search").await.expect(200);
    assert!(page.contains("fact number 30.") && !page.contains("fact number 0."), "{page}");
    let (_, rest) = page.split_once("href=\"/app/search?after=").unwrap();
    let older = format!("/app/search?after={}", rest.split('"').next().unwrap());
    let page = browser.get(&older).await.expect(200);
    assert!(page.contains("fact number 0.") && page.contains("stand-up"), "{page}");
    let page = browser.get("/app/search?label=work").await.expect(200);
    assert!(page.contains("stand-up") && !page.contains("fact number"), "{page}");
    let page = browser.get("/app/search?kind=episodic").await.expect(200);
    assert!(page.contains("Nothing is remembered here yet"), "{page}");
}

#[tokio::test]
async fn the_past_can_be_asked() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let id = vault.remember(Draft::text("Kim lives in Oslo")).await;
    vault.clock.advance(Span::days(3));
    let again =
        browser.post(&format!("/app/memory/{id}/revise"), &[("text", "Kim lives in Bergen")]).await;
    assert_eq!(again.place(), "/app/login", "the sign-in ended meanwhile");
    let browser = vault.browser().await;
    browser
        .post(&format!("/app/memory/{id}/revise"), &[("text", "Kim lives in Bergen")])
        .await
        .expect(303);
    let now = browser.get("/app/search?q=where+does+Kim+live").await.expect(200);
    assert!(now.contains("Bergen") && !now.contains("Oslo"), "{now}");
    let then = browser.get("/app/search?q=where+does+Kim+live&as_of=2027-01-16").await.expect(200);
    assert!(then.contains("Oslo") && !then.contains("Bergen"), "{then}");
    assert!(then.contains("as it was on 2027-01-16"), "{then}");
}

#[tokio::test]
async fn looking_around_is_no_use() {
    let vault = Vault::new().await;
    let id = vault.remember(Draft::text("I am allergic to peanuts")).await;
    vault.clock.advance(Span::days(40));
    let browser = vault.browser().await;
    let never = "<strong>1</strong> older than a month was never used";
    assert!(browser.get("/app/search?q=peanuts").await.expect(200).contains("allergic"));
    let reference = yore_engine::Reference::Memory(id);
    let memory = vault.engine.get(&vault.owner_call(), reference).await.unwrap();
    assert_eq!(memory.usage.recalls, 0, "a search in the app is no recall");
    assert!(browser.get("/app").await.expect(200).contains(never));
    let page = browser.get("/app/health").await.expect(200);
    assert!(page.contains("Never used") && page.contains("I am allergic to peanuts"), "{page}");
    vault.remember(Draft::text("something of today")).await;
    assert!(browser.get("/app").await.expect(200).contains(never), "what is new is not unused");
}
