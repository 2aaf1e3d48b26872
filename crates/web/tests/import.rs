//! Files that are uploaded and read.

use std::time::Duration;

use axum::http::Method;
use axum::http::header::COOKIE;
use serde_json::json;
use yore_domain::query::{Filter, PageRequest};
use yore_web::Options;

use crate::support::{Browser, Reply, Vault};

const KIND: (&str, &str) = ("content-type", "multipart/form-data; boundary=mark");

/// A form with a file, its fields in this order.
fn written(fields: &[(&str, &str)], name: &str, file: &str) -> String {
    let mut body = String::new();
    for (field, value) in fields {
        body += "--mark\r\ncontent-disposition: form-data; name=\"";
        body += &format!("{field}\"\r\n\r\n{value}\r\n");
    }
    body += "--mark\r\ncontent-disposition: form-data; name=\"export\"; filename=\"";
    body + &format!("{name}\"\r\ncontent-type: application/json\r\n\r\n{file}\r\n--mark--\r\n")
}

/// What ChatGPT exports, with one question and one answer.
fn export() -> String {
    let said = |id: &str, parent: Option<&str>, child: &[&str], role: &str, text: &str| {
        json!({ "id": id, "parent": parent, "children": child, "message": {
            "id": id, "author": { "role": role }, "create_time": 1_700_000_000.0,
            "content": { "content_type": "text", "parts": [text] },
        } })
    };
    json!([{
        "id": "b1e6", "conversation_id": "b1e6", "title": "Soup for a cold day",
        "create_time": 1_700_000_000.0, "update_time": 1_700_000_100.0, "current_node": "n2",
        "mapping": {
            "n1": said("n1", None, &["n2"], "user", "What warm soup is quick?"),
            "n2": said("n2", Some("n1"), &[], "assistant", "Lentils, in twenty minutes."),
        },
    }])
    .to_string()
}

async fn send(vault: &Vault, browser: &Browser<'_>, body: String) -> Reply {
    let cookie = browser.cookie();
    let lines = [KIND, (COOKIE.as_str(), cookie.as_str())];
    vault.send(Method::POST, "/app/import", &lines, body).await
}

/// Uploads a file and waits until it is read.
async fn upload(
    vault: &Vault,
    browser: &Browser<'_>,
    more: &[(&str, &str)],
    name: &str,
    file: &str,
) -> String {
    let mut fields = vec![("csrf", browser.mark.as_str())];
    fields.extend(more);
    let reply = send(vault, browser, written(&fields, name, file)).await;
    assert_eq!(reply.status, 303, "{}", reply.text);
    awaited(browser, reply.place()).await
}

/// The page of an import that has ended.
async fn awaited(browser: &Browser<'_>, place: &str) -> String {
    for _ in 0..400 {
        let page = browser.get(place).await.expect(200);
        if !page.contains("Read so far") {
            return page;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the import does not end");
}

async fn conversations(vault: &Vault) -> usize {
    let page = PageRequest { limit: 10, ..PageRequest::default() };
    let call = vault.owner_call();
    vault.engine.conversations(&call, Filter::default(), page).await.unwrap().items.len()
}

#[tokio::test]
async fn an_export_is_read_once_and_its_file_is_gone_then() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let page = browser.get("/app/import").await.expect(200);
    assert!(page.contains("multipart/form-data") && page.contains("drop it here"), "{page}");
    let page = upload(&vault, &browser, &[], "conversations.json", &export()).await;
    assert!(page.contains("Done.") && page.contains("chatgpt 1"), "{page}");
    assert!(page.contains("<dt>new</dt><dd>1</dd>"), "{page}");
    assert_eq!((conversations(&vault).await, vault.spooled()), (1, 0));
    let page = browser.get("/app/conversations").await.expect(200);
    assert!(page.contains("Soup for a cold day"), "{page}");
    let page = upload(&vault, &browser, &[], "conversations.json", &export()).await;
    assert!(page.contains("<dt>known already</dt><dd>1</dd>"), "{page}");
    assert_eq!(conversations(&vault).await, 1);
    let page = browser.get("/app/import").await.expect(200);
    assert_eq!(page.matches(">conversations.json</a>").count(), 2, "{page}");
}

#[tokio::test]
async fn it_can_be_said_first_what_would_come_in() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let page = upload(&vault, &browser, &[("dry_run", "yes")], "c.json", &export()).await;
    assert!(page.contains("Nothing was changed.") && page.contains("<dt>new</dt><dd>1"), "{page}");
    assert_eq!((conversations(&vault).await, vault.spooled()), (0, 1));
    // Then it comes in without being sent again, once.
    let (_, rest) = page.split_once("action=\"/app/import/").expect("it can be brought in");
    let place = format!("/app/import/{}", rest.split('"').next().unwrap());
    assert_eq!(browser.post_bare(&place, &[]).await.status, 403);
    let reply = browser.post(&place, &[]).await;
    assert_eq!(reply.status, 303, "{}", reply.text);
    let page = awaited(&browser, reply.place()).await;
    assert!(page.contains("Done.") && page.contains("<dt>new</dt><dd>1"), "{page}");
    assert_eq!((conversations(&vault).await, vault.spooled()), (1, 0));
    assert_eq!(browser.post(&place, &[]).await.status, 409);
}

#[tokio::test]
async fn what_was_asked_to_be_remembered_is_proposed() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let file = export().replace("What warm soup is quick?", "Remember that I hate coriander.");
    let page = upload(&vault, &browser, &[("propose", "yes")], "c.json", &file).await;
    assert!(page.contains("Decide what is remembered"), "{page}");
    let page = browser.get("/app/review").await.expect(200);
    assert!(page.contains("coriander"), "{page}");
}

#[tokio::test]
async fn files_that_are_no_export_are_named_and_their_names_stay_text() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let name = "<img src=x onerror=alert(1)>.bin";
    let page = upload(&vault, &browser, &[], name, "neither one nor the other").await;
    assert!(page.contains("It could not be imported"), "{page}");
    for page in [page, browser.get("/app/import").await.expect(200)] {
        assert!(!page.contains("<img") && page.contains("onerror"), "{page}");
    }
    assert_eq!((conversations(&vault).await, vault.spooled()), (0, 0));
}

#[tokio::test]
async fn nothing_is_stored_before_the_mark_of_the_form_is_seen() {
    let vault = Vault::new().await;
    let (browser, other) = (vault.browser().await, vault.browser().await);
    let own = ("csrf", browser.mark.as_str());
    let late = written(&[], "c.json", &export()).replace(
        "\r\n--mark--",
        &format!(
            "\r\n--mark\r\ncontent-disposition: form-data; name=\"csrf\"\r\n\r\n{}\r\n--mark--",
            own.1
        ),
    );
    for body in [
        written(&[], "c.json", &export()),
        written(&[("csrf", "00")], "c.json", &export()),
        written(&[("csrf", &other.mark)], "c.json", &export()),
        late,
    ] {
        assert_eq!(send(&vault, &browser, body).await.status, 403);
    }
    let stranger =
        vault.send(Method::POST, "/app/import", &[KIND], written(&[own], "c", "x")).await;
    assert_eq!((stranger.status, stranger.place()), (303, "/app/login"));
    // Without a file, or with half of one.
    assert_eq!(send(&vault, &browser, written(&[own], "", "")).await.status, 400);
    let half = written(&[own], "c.json", &export());
    assert_eq!(send(&vault, &browser, half[..half.len() - 40].to_owned()).await.status, 400);
    assert_eq!(browser.post("/app/import", &[]).await.status, 400);
    assert_eq!((conversations(&vault).await, vault.spooled()), (0, 0));
}

#[tokio::test]
async fn too_much_is_refused_and_leaves_nothing_behind() {
    let options = Options { upload_bytes: 2000, ..Options::default() };
    let vault = Vault::with(options).await;
    let browser = vault.browser().await;
    let body = written(&[("csrf", &browser.mark)], "c.json", &"x".repeat(5000));
    assert_eq!(send(&vault, &browser, body).await.status, 413);
    assert_eq!(vault.spooled(), 0);
    let page = browser.get("/app/import").await.expect(200);
    assert!(page.contains("2.0 KB") || page.contains("1.9 KB"), "{page}");
}

#[tokio::test]
async fn imports_of_another_vault_are_missing() {
    let vault = Vault::new().await;
    let stranger = vault.stranger().await;
    let asked = json!({ "name": "theirs" });
    let job = vault.engine.begin_work(&stranger, yore_engine::Work::Import, asked).await.unwrap();
    let browser = vault.browser().await;
    assert_eq!(browser.get(&format!("/app/import/{}", job.id)).await.status, 404);
    assert_eq!(browser.get("/app/import/none").await.status, 404);
    assert!(!browser.get("/app/import").await.expect(200).contains("theirs"));
}

#[tokio::test]
async fn omp_131_a_file_that_waits_in_the_spool_is_encrypted() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let page = upload(&vault, &browser, &[("dry_run", "yes")], "c.json", &export()).await;
    assert!(page.contains("This would come in"), "{page}");
    let kept = vault.spooled_bytes();
    assert!(kept.len() > export().len(), "the file waits: {} bytes", kept.len());
    for word in ["Lentils", "mapping", "Soup for a cold day"] {
        let clear = kept.windows(word.len()).any(|bytes| bytes == word.as_bytes());
        assert!(!clear, "{word} lies in clear");
    }
    let place = page.split("action=\"/app/import/").nth(1).unwrap().split('"').next().unwrap();
    let reply = browser.post(&format!("/app/import/{place}"), &[]).await;
    let page = awaited(&browser, reply.place()).await;
    assert!(page.contains("Done."), "{page}");
    assert_eq!((conversations(&vault).await, vault.spooled()), (1, 0));
}
