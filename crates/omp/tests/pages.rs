//! Lists: pages that stay put while others write, and cursors that fit one list only.

use serde_json::{Value, json};

use crate::support::{Vault, each, record, talk};

async fn filled(count: usize) -> Vault {
    let vault = Vault::new().await;
    for number in 0..count {
        let mut sent = talk(&format!("t{number}"), "a", "b");
        let at = format!("2026-03-{:02}T10:00:00Z", number + 1);
        sent["created_at"] = at.as_str().into();
        sent["updated_at"] = at.as_str().into();
        for message in sent["messages"].as_array_mut().unwrap() {
            message["timestamp"] = at.as_str().into();
        }
        sent["platform"] = if number % 2 == 0 { "chatgpt" } else { "claude" }.into();
        sent["tags"] = json!([format!("tag{}", number % 3)]);
        vault.holds(&sent).await;
    }
    vault
}

/// All titles, a page at a time.
async fn walked(vault: &Vault, query: &str) -> Vec<String> {
    let (mut titles, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = vault.get(&format!("/conversations?{query}{cursor}")).await.expect(200);
        titles.extend(each(&page, "title"));
        let Some(next) = page["next_cursor"].as_str() else {
            assert_eq!(page["has_more"], false);
            assert_eq!(page["next_cursor"], Value::Null);
            return titles;
        };
        assert_eq!(page["has_more"], true);
        cursor = format!("&cursor={next}");
    }
}

#[tokio::test]
async fn omp_112_omp_125_pages_join_to_the_whole_list_without_messages() {
    let vault = filled(7).await;
    let all = ["t6", "t5", "t4", "t3", "t2", "t1", "t0"];
    assert_eq!(walked(&vault, "limit=3").await, all);
    assert_eq!(walked(&vault, "limit=7").await, all);
    assert_eq!(walked(&vault, "limit=2&platform=claude").await, ["t5", "t3", "t1"]);
    assert_eq!(walked(&vault, "limit=1&tags=tag0").await, ["t6", "t3", "t0"]);
    assert_eq!(walked(&vault, "from=2026-03-03&to=2026-03-04").await, ["t3", "t2"]);
    let page = vault.get("/conversations?limit=1").await.expect(200);
    assert!(page["data"][0].get("messages").is_none());
    assert_eq!(page["data"][0]["message_count"], 2);
    let whole = vault.get("/conversations?limit=1&include=messages").await.expect(200);
    assert_eq!(whole["data"][0]["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn omp_125_a_page_stays_put_while_others_write() {
    let vault = filled(4).await;
    let first = vault.get("/conversations?limit=2").await.expect(200);
    vault.holds(&talk("new", "a", "b")).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = vault.get(&format!("/conversations?limit=2&cursor={cursor}")).await.expect(200);
    assert_eq!(each(&second, "title"), ["t1", "t0"]);
}

#[tokio::test]
async fn omp_125_cursors_of_other_lists_callers_and_makers_are_refused() {
    let vault = filled(4).await;
    let first = vault.get("/conversations?limit=2&platform=chatgpt&limit=1").await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap().to_owned();
    let same = format!("/conversations?limit=1&platform=chatgpt&cursor={cursor}");
    vault.get(&same).await.expect(200);
    let mut forged = cursor.clone();
    forged.replace_range(..1, if cursor.starts_with('A') { "B" } else { "A" });
    for path in [
        format!("/conversations?limit=1&cursor={cursor}"),
        format!("/conversations?limit=1&platform=claude&cursor={cursor}"),
        format!("/memories?cursor={cursor}"),
        format!("/conversations?platform=chatgpt&cursor={forged}"),
        "/conversations?cursor=x".to_owned(),
        "/conversations?cursor=".to_owned(),
        format!("/search?q=a&cursor={cursor}"),
    ] {
        assert_eq!(vault.get(&path).await.refusal(), (400, "invalid_request"), "{path}");
    }
    let reader = vault.agent("reader", &[yore_domain::grant::Verb::Read]).await;
    let theirs = vault.ask(axum::http::Method::GET, &reader, &same, &[], &Value::Null).await;
    assert_eq!(theirs.refusal(), (400, "invalid_request"));
    for limit in ["0", "-1", "many"] {
        let path = format!("/conversations?limit={limit}");
        assert_eq!(vault.get(&path).await.refusal(), (400, "invalid_request"), "{limit}");
    }
}

#[tokio::test]
async fn omp_115_memories_are_listed_in_pages_by_type_platform_tags_and_state() {
    let vault = Vault::new().await;
    for (kind, content) in [("fact", "one"), ("preference", "two"), ("fact", "three")] {
        let mut sent = record(kind, content);
        sent["platform"] = if content == "three" { "claude" } else { "chatgpt" }.into();
        sent["tags"] = json!([content]);
        sent["active"] = json!(content != "one");
        vault.post("/memories", &sent).await.expect(201);
    }
    let listed = async |query: &str| {
        let page = vault.get(&format!("/memories?{query}")).await.expect(200);
        let mut contents = each(&page, "content");
        contents.sort();
        contents
    };
    assert_eq!(listed("").await, ["one", "three", "two"]);
    assert_eq!(listed("record_type=fact").await, ["one", "three"]);
    assert_eq!(listed("type=preference").await, ["two"]);
    assert_eq!(listed("platform=claude").await, ["three"]);
    assert_eq!(listed("tags=two").await, ["two"]);
    assert_eq!(listed("active=false").await, ["one"]);
    assert_eq!(listed("active=true").await, ["three", "two"]);
    assert_eq!(vault.get("/memories?type=mood").await.refusal(), (400, "invalid_request"));
    let page = vault.get("/memories?limit=2").await.expect(200);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = vault.get(&format!("/memories?limit=2&cursor={cursor}")).await.expect(200);
    assert_eq!(rest["data"].as_array().unwrap().len(), 1);
    assert_eq!(rest["has_more"], false);
}
