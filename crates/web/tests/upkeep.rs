use std::time::Duration;

use yore_domain::Span;
use yore_domain::memory::Draft;
use yore_web::Options;

use crate::support::Vault;

#[tokio::test]
async fn the_audit_chain_can_be_read_filtered_checked_and_taken_away() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let agent = vault.agent("scheduler").await;
    let id = vault.remember_as(&agent, Draft::text("nothing of this is in the chain")).await;
    let page = browser.get("/app/audit").await.expect(200);
    assert!(page.contains("remember") && page.contains("token.issue"), "{page}");
    let page = browser.get("/app/audit?agent=scheduler").await.expect(200);
    assert!(page.contains("remember") && !page.contains("token.issue"), "{page}");
    let page = browser.get(&format!("/app/audit?memory={id}")).await.expect(200);
    assert!(page.contains(&format!("/app/memory/{id}")), "{page}");
    assert!(browser.get("/app/audit?until=2020-01-01").await.expect(200).contains("No entry"));
    let checked = browser.post("/app/audit/verify", &[]).await.expect(200);
    assert!(checked.contains("The chain is whole"), "{checked}");
    let taken = browser.get("/app/audit/export?agent=scheduler").await;
    assert_eq!(taken.header("content-type"), "application/x-ndjson");
    assert!(taken.header("content-disposition").starts_with("attachment"));
    let lines: Vec<serde_json::Value> =
        taken.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]["operation"]), (1, &"remember".into()));
    assert!(!taken.text.contains("nothing of this"), "{}", taken.text);
}

#[tokio::test]
async fn long_chains_are_read_in_pages() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    for number in 0..70 {
        vault.remember(Draft::text(format!("fact {number}"))).await;
    }
    let page = browser.get("/app/audit?operation=remember").await.expect(200);
    let (_, rest) = page.split_once("href=\"/app/audit?operation=remember&#38;before=").unwrap();
    let before = rest.split('"').next().unwrap();
    let page =
        browser.get(&format!("/app/audit?operation=remember&before={before}")).await.expect(200);
    assert_eq!(page.matches("<td data-name=\"what\">remember").count(), 10, "{page}");
}

#[tokio::test]
async fn health_counts_and_checks() {
    let vault = Vault::new().await;
    let id = vault.remember(Draft::text("long unused")).await;
    vault.clock.advance(Span::days(100));
    let browser = vault.browser().await;
    let page = browser.get("/app/health").await.expect(200);
    assert!(page.contains(&format!("/app/memory/{id}")), "{page}");
    let page = browser.post("/app/health", &[]).await.expect(200);
    assert!(page.contains("are sound"), "{page}");
}

#[tokio::test]
async fn a_page_does_not_wait_until_a_large_vault_is_counted() {
    let options = || Options { patience: Duration::ZERO, ..Options::default() };
    let vault = Vault::with(options()).await;
    let browser = vault.browser().await;
    // Where there is little, it is counted first, however long that takes.
    let page = browser.get("/app").await.expect(200);
    assert!(page.contains("Three steps") && !page.contains("being counted"), "{page}");
    for number in 0..201 {
        vault.remember(Draft::text(format!("fact {number}"))).await;
    }
    for (path, again) in [
        ("/app", "hx-get=\"/app\""),
        ("/app/health", "hx-get=\"/app/health\""),
        ("/app/conversations?view=statistics", "hx-get=\"/app/conversations?view=statistics\""),
    ] {
        let page = browser.get(path).await.expect(200);
        assert!(page.contains("being counted") && page.contains(again), "{path}: {page}");
        assert!(page.contains("hx-select=\"#numbers\"") && page.contains("id=\"numbers\""));
    }
    let page = browser.get("/app").await.expect(200);
    assert!(!page.contains("Three steps") && page.contains(">fact "), "{page}");
}

#[tokio::test]
async fn the_api_is_described() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let page = browser.get("/app/api").await.expect(200);
    assert!(page.contains("/api/v1/recall") && page.contains("/openapi.json"), "{page}");
    let document = vault.bare(axum::http::Method::GET, "/openapi.json", &[]).await.expect(200);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let front = vault.bare(axum::http::Method::GET, "/", &[]).await;
    assert_eq!((front.status, front.place()), (303, "/app"));
}
