//! Search: by word and by meaning, narrowed, with snippets and neighbours.

use serde_json::{Value, json};

use crate::support::{Vault, each, record, said, talk};

async fn filled() -> Vault {
    let vault = Vault::new().await;
    let mut tea = talk("Tea", "How long does green tea steep?", "Green tea steeps three minutes");
    tea["tags"] = json!(["kitchen"]);
    let left = said("assistant", "Green tea steeps a fortnight", "2026-03-15T09:30:04Z");
    tea["extensions"] = json!({"chatgpt_branches": [left]});
    vault.holds(&tea).await;
    let mut bike = talk("Bike", "My bicycle chain squeaks", "Oil the chain");
    bike["platform"] = "claude".into();
    bike["created_at"] = "2026-05-01T00:00:00Z".into();
    bike["updated_at"] = "2026-05-01T00:00:00Z".into();
    for message in bike["messages"].as_array_mut().unwrap() {
        message["timestamp"] = "2026-05-01T00:00:00Z".into();
    }
    vault.holds(&bike).await;
    vault.post("/memories", &record("preference", "Likes green tea")).await.expect(201);
    vault
}

async fn found(vault: &Vault, query: &str) -> Vec<String> {
    each(&vault.get(&format!("/search?{query}")).await.expect(200), "snippet")
}

#[tokio::test]
async fn omp_121_omp_095_words_are_found_in_everything_and_where_they_stand_is_told() {
    let vault = filled().await;
    let page = vault.get("/search?q=green+tea").await.expect(200);
    let hits = page["data"].as_array().unwrap();
    assert_eq!(hits.len(), 3, "{page}");
    let answer = hits.iter().find(|hit| hit["role"] == "assistant").unwrap();
    for (name, value) in [
        ("type", "message"),
        ("conversation_title", "Tea"),
        ("platform", "chatgpt"),
        ("model", "gpt-5"),
        ("timestamp", "2026-03-15T09:30:05Z"),
        ("snippet", "Green tea steeps three minutes"),
    ] {
        assert_eq!(answer[name], value, "{name}");
    }
    assert_eq!(answer["context"]["before"]["text"], "How long does green tea steep?");
    let memory = hits.iter().find(|hit| hit["type"] == "memory").unwrap();
    assert_eq!(memory["snippet"], "Likes green tea");
    assert!(hits.iter().all(|hit| hit["score"].is_f64()));
    assert_eq!(found(&vault, "q=xylophone").await, [""; 0]);
    assert!(vault.audited().await.contains(&"search".to_owned()));
}

#[tokio::test]
async fn omp_124_filters_narrow_and_branches_are_left_out_unless_asked_for() {
    let vault = filled().await;
    assert_eq!(found(&vault, "q=chain&platform=chatgpt").await, [""; 0]);
    assert_eq!(found(&vault, "q=chain&platform=claude").await.len(), 2);
    assert_eq!(found(&vault, "q=chain&from=2026-06-01").await, [""; 0]);
    assert_eq!(found(&vault, "q=tea&tags=kitchen").await.len(), 2);
    assert_eq!(found(&vault, "q=tea&type=memory").await, ["Likes green tea"]);
    assert_eq!(found(&vault, "q=tea&type=message").await.len(), 2);
    assert_eq!(found(&vault, "q=steeps&model=gpt-5").await.len(), 1);
    let once = vault.get("/search?q=tea&type=conversation").await.expect(200);
    assert_eq!(each(&once, "conversation_title"), ["Tea"]);
    assert_eq!(once["data"][0]["id"], once["data"][0]["conversation_id"]);
    assert_eq!(found(&vault, "q=fortnight").await, [""; 0]);
    assert_eq!(found(&vault, "q=fortnight&include=branches").await.len(), 1);
    for query in ["", "q=", "q=+", "q=a&type=mood", "q=a&include=thinking"] {
        let reply = vault.get(&format!("/search?{query}")).await;
        assert_eq!(reply.refusal(), (400, "invalid_request"), "{query}");
    }
}

#[tokio::test]
async fn omp_122_meaning_finds_what_shares_no_word() {
    let vault = filled().await;
    let by_meaning = found(&vault, "q=cycling+repair&semantic=true").await;
    assert!(by_meaning.iter().any(|text| text.contains("chain")), "{by_meaning:?}");
    assert_eq!(found(&vault, "q=cycling+repair").await, [""; 0]);
}

#[tokio::test]
async fn omp_125_results_come_in_pages_that_join_to_the_whole() {
    let vault = Vault::new().await;
    for number in 0..9 {
        let words = "needle ".repeat(number % 3 + 1);
        vault.holds(&talk(&format!("t{number}"), &format!("{words} {number}"), "no")).await;
    }
    let whole = vault.get("/search?q=needle").await.expect(200);
    assert_eq!((each(&whole, "id").len(), &whole["has_more"]), (9, &json!(false)));
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = vault.get(&format!("/search?q=needle&limit=4{cursor}")).await.expect(200);
        ids.extend(each(&page, "id"));
        let Value::String(next) = &page["next_cursor"] else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(ids, each(&whole, "id"));
}

#[tokio::test]
async fn omp_095_omp_124_what_is_written_in_attachments_is_found_and_the_attachment_named() {
    let vault = filled().await;
    let letter = include_bytes!("../../text/tests/files/letter.docx");
    let mut sent = talk("Post", "Please read this letter", "Done");
    let data = yore_canon::encode::base64(letter);
    sent["messages"][0]["attachments"] = json!([
        {"filename": "letter.docx", "media_type": "application/x-unknown", "data": data},
    ]);
    let conversation = vault.holds(&sent).await;
    assert_eq!(found(&vault, "q=kestrel").await, [""; 0], "nobody waits for reading");
    vault.engine.settle().await.unwrap();
    let page = vault.get("/search?q=kestrel+harbour").await.expect(200);
    let hit = &page["data"][0];
    assert_eq!((&hit["type"], &hit["conversation_title"]), (&json!("attachment"), &json!("Post")));
    assert_eq!(hit["attachment"]["filename"], "letter.docx");
    assert!(hit["snippet"].as_str().unwrap().contains("The kestrel nests above"), "{hit}");
    let id = hit["id"].as_str().unwrap();
    assert_eq!(vault.get(&format!("/attachments/{id}")).await.status, 200);
    let message = vault.get("/search?q=kestrel&type=message").await.expect(200);
    assert_eq!(message["data"][0]["id"], hit["message_id"]);
    for (query, count) in [
        ("q=kestrel&type=attachment", 1),
        ("q=green+tea&type=attachment", 0),
        ("q=letter&type=attachment&platform=claude", 0),
        ("q=kestrel&type=memory", 0),
        ("q=kestrel&type=conversation", 1),
    ] {
        assert_eq!(found(&vault, query).await.len(), count, "{query}");
    }
    vault.delete(&conversation).await.expect(200);
    assert_eq!(found(&vault, "q=kestrel").await, [""; 0]);
}
