use axum::http::Method;
use serde_json::json;
use yore_domain::conversation::{Attachment, Conversation, Message, Role};
use yore_domain::{ConversationId, MessageId};

use crate::support::{NOW, Vault};

pub(crate) fn conversation(title: &str, platform: &str) -> Conversation {
    Conversation {
        id: ConversationId::random(),
        title: Some(title.into()),
        platform: platform.into(),
        model: None,
        created: NOW,
        updated: NOW,
        scope: Default::default(),
        governance: Default::default(),
        tags: Vec::new(),
        summary: None,
        language: None,
        foreign: Default::default(),
    }
}

pub(crate) fn message(role: Role, text: &str) -> Message {
    Message {
        id: MessageId::random(),
        role,
        content: json!(text),
        text: text.into(),
        at: NOW,
        model: None,
        platform: None,
        parent: None,
        off_path: false,
        attachments: Vec::new(),
        foreign: Default::default(),
    }
}

#[tokio::test]
async fn conversations_are_listed_counted_and_read() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    assert!(browser.get("/app/conversations").await.expect(200).contains("No conversations here"));
    let talk = conversation("Soup for winter", "chatgpt");
    let id = talk.id;
    let mut call = message(Role::Assistant, "Let me look.\n\n```\nlet a = 1 < 2;\n```");
    call.content = json!([{ "type": "tool_use", "name": "weather", "input": { "city": "Oslo" } }]);
    let mut left = message(Role::Assistant, "an answer that was left");
    left.off_path = true;
    let said =
        vec![message(Role::User, "A **warm** soup?"), call, message(Role::Tool, "cold"), left];
    vault.converse(talk, said).await;
    vault.converse(conversation("Taxes", "claude"), vec![message(Role::User, "when?")]).await;
    let page = browser.get("/app/conversations").await.expect(200);
    assert!(page.contains("Soup for winter") && page.contains("Taxes"), "{page}");
    let page = browser.get("/app/conversations?platform=claude").await.expect(200);
    assert!(page.contains("Taxes") && !page.contains("Soup"), "{page}");
    let page = browser.get("/app/conversations?view=statistics").await.expect(200);
    assert!(page.contains("over 2 conversations") && page.contains("2027-01"), "{page}");
    let page = browser.get(&format!("/app/conversations/{id}")).await.expect(200);
    assert!(page.contains("<p>A <strong>warm</strong> soup?</p>"), "{page}");
    assert!(page.contains("<pre><code>let a = 1 &lt; 2;\n</code></pre>"), "{page}");
    assert!(page.contains("<details class=\"call\"><summary>weather</summary>"), "{page}");
    assert!(page.contains("a branch that was left"), "{page}");
}

#[tokio::test]
async fn long_conversations_are_read_in_pages_and_found_by_message() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let talk = conversation("Long", "claude");
    let id = talk.id;
    let said: Vec<Message> =
        (0..150).map(|n| message(Role::User, &format!("turn number {n}."))).collect();
    let sought = said[120].id;
    vault.converse(talk, said).await;
    let place = format!("/app/conversations/{id}");
    let page = browser.get(&place).await.expect(200);
    assert!(page.contains("turn number 0.") && !page.contains("turn number 60."), "{page}");
    assert!(page.contains(&format!("{place}?from=60")), "{page}");
    let page = browser.get(&format!("{place}?from=60")).await.expect(200);
    assert!(page.contains("turn number 60.") && page.contains(&format!("{place}?from=120")));
    for query in [format!("message={sought}"), "at=120".to_owned()] {
        let page = browser.get(&format!("{place}?{query}")).await.expect(200);
        assert!(page.contains("id=\"m120\"") && page.contains("id=\"m116\""), "{page}");
        assert!(!page.contains("id=\"m115\""), "{page}");
    }
    let gone = format!("{place}?message={}", MessageId::random());
    assert_eq!(browser.get(&gone).await.status, 404);
}

#[tokio::test]
async fn pictures_are_shown_and_everything_else_is_only_saved() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let files: [(&str, &str, &[u8]); 3] = [
        ("soup.png", "image/png", b"\x89PNG\r\n\x1a\n and so on"),
        ("<b>evil</b>.svg", "image/svg+xml", b"<svg onload='alert(1)'/>"),
        ("lies.png", "image/png", b"<script>alert(1)</script>"),
    ];
    let mut said = message(Role::User, "look");
    for (name, kind, bytes) in files {
        let blob = vault.engine.attach(&vault.owner_call(), bytes.to_vec()).await.unwrap();
        said.attachments.push(Attachment {
            filename: name.into(),
            media_type: kind.into(),
            size: Some(bytes.len() as u64),
            blob: Some(blob),
            foreign: Default::default(),
        });
    }
    let blobs: Vec<String> =
        said.attachments.iter().map(|one| one.blob.unwrap().to_string()).collect();
    let talk = conversation("Pictures", "chatgpt");
    let id = talk.id;
    vault.converse(talk, vec![said]).await;
    let page = browser.get(&format!("/app/conversations/{id}")).await.expect(200);
    assert!(page.contains(&format!("<img src=\"/app/attachments/{}\"", blobs[0])), "{page}");
    assert!(
        !page.contains("<b>evil")
            && !page.contains(&format!("<img src=\"/app/attachments/{}", blobs[1])),
        "{page}"
    );
    for (blob, kind, way) in [
        (&blobs[0], "image/png", "inline"),
        (&blobs[1], "application/octet-stream", "attachment"),
        (&blobs[2], "application/octet-stream", "attachment"),
    ] {
        let reply = browser.get(&format!("/app/attachments/{blob}")).await;
        let header = |name: &str| reply.headers.get(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!((reply.status, header("content-type")), (200, kind.to_owned()));
        assert_eq!(header("content-disposition"), way);
        assert!(header("content-security-policy").contains("sandbox"));
        assert_eq!(header("x-content-type-options"), "nosniff");
    }
    assert_eq!(browser.get("/app/attachments/none").await.status, 404);
    let bare = vault.bare(Method::GET, &format!("/app/attachments/{}", blobs[0]), &[]).await;
    assert_eq!(bare.status, 303, "nobody is signed in");
}

#[tokio::test]
async fn branches_are_read_one_at_a_time_and_switched() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let talk = conversation("Soup", "chatgpt");
    let id = talk.id;
    let after = |parent: &Message, text: &str, left: bool| Message {
        parent: Some(parent.id),
        off_path: left,
        ..message(Role::Assistant, text)
    };
    let question = message(Role::User, "Which soup?");
    let (kept, left) = (after(&question, "Lentils.", false), after(&question, "Leek.", true));
    let (more, gone) = (after(&kept, "Add cumin.", false), after(&left, "Add cream.", true));
    let (sought, last) = (gone.id, left.id);
    vault.converse(talk, vec![question, kept, more, left, gone]).await;
    let place = format!("/app/conversations/{id}");
    let page = browser.get(&place).await.expect(200);
    assert!(page.contains("Lentils.") && page.contains("Add cumin."), "{page}");
    assert!(!page.contains("Leek.") && !page.contains("Add cream."), "{page}");
    assert!(page.contains("branch 1 of 2"), "{page}");
    let other = format!("{place}?branch={last}");
    assert!(page.contains(&format!("href=\"{other}#m3\"")), "{page}");
    let page = browser.get(&other).await.expect(200);
    assert!(page.contains("Leek.") && page.contains("Add cream."), "{page}");
    assert!(!page.contains("Lentils.") && page.contains("branch 2 of 2"), "{page}");
    // What a search or a memory names is shown, wherever it lies.
    for sought in [format!("message={sought}"), "at=4".to_owned()] {
        let page = browser.get(&format!("{place}?{sought}")).await.expect(200);
        assert!(page.contains("Which soup?") && page.contains("Add cream."), "{page}");
    }
    assert_eq!(browser.get(&format!("{place}?branch={}", MessageId::random())).await.status, 404);
}
