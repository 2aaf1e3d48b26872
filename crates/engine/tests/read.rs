//! Text inside attachments: found with the message, under its class, and gone with it.

use yore_domain::conversation::{Attachment, Message};
use yore_domain::query::{Corpus, Cutoff, Effort, Filter, Recall};
use yore_domain::{BlobHash, ConversationId};
use yore_engine::{Call, Recalled, Sought};

use crate::conversations::{conversation, message};
use crate::support::{Vault, under};

const FILES: [(&str, &str, &[u8]); 6] = [
    ("standard.pdf", "application/pdf", include_bytes!("../../text/tests/files/standard.pdf")),
    (
        "letter.docx",
        "application/octet-stream",
        include_bytes!("../../text/tests/files/letter.docx"),
    ),
    ("table.xlsx", "", include_bytes!("../../text/tests/files/table.xlsx")),
    ("slides.pptx", "", include_bytes!("../../text/tests/files/slides.pptx")),
    ("letter.odt", "", include_bytes!("../../text/tests/files/letter.odt")),
    ("page.html", "text/html", include_bytes!("../../text/tests/files/page.html")),
];

async fn attached(vault: &Vault, text: &str, name: &str, media: &str, bytes: &[u8]) -> Message {
    let blob = vault.engine.attach(&vault.owner(), bytes.to_vec()).await.unwrap();
    let mut said = message(text);
    said.attachments = vec![Attachment {
        filename: name.to_owned(),
        media_type: media.to_owned(),
        blob: Some(blob),
        size: None,
        foreign: Default::default(),
    }];
    said
}

async fn recalled(vault: &Vault, call: &Call, query: &str) -> Recalled {
    vault.engine.recall(call, asking(query)).await.unwrap()
}

fn asking(query: &str) -> Recall {
    Recall {
        query: query.to_owned(),
        corpus: Corpus::Both,
        filter: Filter::default(),
        near: Default::default(),
        limit: 20,
        effort: Effort::Balanced,
        prefer: Vec::new(),
        cutoff: Cutoff::Off,
    }
}

#[tokio::test]
async fn omp_095_every_kind_of_attachment_is_found_by_its_words() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let talk = conversation("work");
    let mut messages = vec![message("good morning"), message("nothing to see")];
    for (name, media, bytes) in FILES {
        messages.push(attached(&vault, "please look at this", name, media, bytes).await);
    }
    vault.engine.converse(&owner, talk.clone(), messages).await.unwrap();
    let before = recalled(&vault, &owner, "marzipan kestrel").await;
    assert!(before.results.iter().all(|hit| hit.inside.is_none()), "nothing waits for reading");
    vault.engine.settle().await.unwrap();
    let after = recalled(&vault, &owner, "marzipan kestrel").await;
    let mut named: Vec<&str> =
        after.results.iter().filter_map(|hit| Some(&*hit.inside.as_ref()?.filename)).collect();
    named.sort_unstable();
    let mut all = FILES.map(|(name, ..)| name);
    all.sort_unstable();
    assert_eq!(named, all);
    for hit in &after.results[..FILES.len()] {
        assert!(hit.text().to_lowercase().contains("kestrel"), "{}", hit.text());
    }
    let context = vault.engine.context(&owner, asking("where does the kestrel nest"), 2000);
    let frame = context.await.unwrap().frame;
    assert!(frame.contains("standard.pdf: ") && frame.contains("above the harbour"), "{frame}");
    let sought = |platform: Option<&str>| Sought {
        recall: Recall {
            filter: Filter { platform: platform.map(str::to_owned), ..Filter::default() },
            ..asking("marzipan")
        },
        by_word: true,
        branches: false,
        inside: true,
        once_each: false,
        after: None,
    };
    let found = vault.engine.search(&owner, sought(Some("test"))).await.unwrap();
    assert_eq!(found.seen.len(), FILES.len(), "filters hold for attachments, too");
    assert!(vault.engine.search(&owner, sought(Some("other"))).await.unwrap().seen.is_empty());
}

#[tokio::test]
async fn a_grant_that_hides_the_conversation_hides_what_its_attachments_say() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let agent = vault.agent(|grant| grant.read = under("work")).await.call;
    let open = conversation("work");
    vault.engine.converse(&owner, open, vec![message("the harbour is open")]).await.unwrap();
    vault.engine.settle().await.unwrap();
    let before = recalled(&vault, &agent, "kestrel above the harbour").await;
    let (name, media, bytes) = FILES[0];
    let said = attached(&vault, "my x-ray", name, media, bytes).await;
    let mut talk = conversation("health");
    vault.engine.converse(&owner, talk.clone(), vec![said]).await.unwrap();
    vault.engine.settle().await.unwrap();
    let strip = |found: Recalled| Recalled { embedded_us: 0, ..found };
    let after = recalled(&vault, &agent, "kestrel above the harbour").await;
    assert_eq!(strip(after), strip(before), "not a byte differs");
    let own = recalled(&vault, &owner, "kestrel above the harbour").await;
    assert!(own.results.iter().any(|hit| hit.inside.is_some()));
    // It moves with the class of its conversation.
    talk.governance.labels = conversation("work").governance.labels;
    vault.engine.converse(&owner, talk, Vec::new()).await.unwrap();
    let moved = recalled(&vault, &agent, "kestrel above the harbour").await;
    assert!(moved.results.iter().any(|hit| hit.inside.is_some()));
}

#[tokio::test]
async fn erasing_the_message_erases_what_its_attachments_say() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let (one, other) = (conversation("work"), conversation("work"));
    let (name, media, bytes) = FILES[1];
    let first = attached(&vault, "see this", name, media, bytes).await;
    let second = attached(&vault, "and here again", "copy.docx", media, bytes).await;
    let blob = first.attachments[0].blob.unwrap();
    vault.engine.converse(&owner, one.clone(), vec![first.clone()]).await.unwrap();
    vault.engine.converse(&owner, other.clone(), vec![second]).await.unwrap();
    vault.engine.settle().await.unwrap();
    let traces =
        async || vault.engine.traces(&owner, "kestrel nests above".into()).await.unwrap().found;
    assert!(!traces().await.is_empty(), "the control: a packed file shows it only once it is read");
    erased(&vault, one.id, &first).await;
    assert!(!traces().await.is_empty(), "the other message still names the file");
    assert_eq!(vault.engine.attachment(&owner, blob).await.unwrap(), bytes);
    vault.engine.erase_conversation(&owner, other.id, Vec::new()).await.unwrap();
    assert_eq!(traces().await, [""; 0]);
    let found = recalled(&vault, &owner, "kestrel above the harbour").await;
    assert!(found.results.is_empty(), "{found:?}");
}

async fn erased(vault: &Vault, talk: ConversationId, said: &Message) {
    vault.engine.erase_message(&vault.owner(), talk, said.id).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_read_is_tried_once() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let mut messages = Vec::new();
    for (name, bytes) in [
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec()),
        ("broken.pdf", b"%PDF-1.7 and no more".to_vec()),
        ("broken.docx", b"PK\x03\x04 and no more".to_vec()),
        ("deep.html", "<div>".repeat(1_000_000).into_bytes()),
        ("empty.txt", b" ".to_vec()),
    ] {
        messages.push(attached(&vault, "look", name, "application/octet-stream", &bytes).await);
    }
    let mut lost = message("its bytes never came");
    lost.attachments = messages[0].attachments.clone();
    lost.attachments[0].blob = Some(BlobHash::of(b"never stored"));
    messages.push(lost);
    vault.engine.converse(&owner, conversation("work"), messages).await.unwrap();
    vault.engine.settle().await.unwrap();
    let reads = async || {
        let entries = vault.audit().await;
        entries.iter().filter(|entry| entry.draft.operation == "read attachments").count()
    };
    let first = reads().await;
    assert_eq!(first, 1, "one commit for all of them");
    vault.engine.settle().await.unwrap();
    assert_eq!(reads().await, first);
}
