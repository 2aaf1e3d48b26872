use yore_domain::class::{Governance, Sensitivity};
use yore_domain::conversation::{Attachment, Conversation, Message, Role};
use yore_domain::grant::{Verb, Verbs};
use yore_domain::memory::Draft;
use yore_domain::provenance::MessageRef;
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{BlobHash, ConversationId, Error, MemoryId, MessageId, Span};
use yore_engine::Proposal;

use crate::support::{NOW, Vault, label, refused, under};

pub(crate) fn conversation(name: &str) -> Conversation {
    Conversation {
        id: ConversationId::random(),
        title: None,
        platform: "test".into(),
        model: None,
        created: NOW,
        updated: NOW,
        scope: Default::default(),
        governance: Governance { labels: vec![label(name)], ..Governance::default() },
        tags: vec![],
        summary: None,
        language: None,
        foreign: Default::default(),
    }
}

pub(crate) fn message(text: &str) -> Message {
    Message {
        id: MessageId::random(),
        role: Role::User,
        content: text.into(),
        text: text.into(),
        at: NOW,
        model: None,
        platform: None,
        parent: None,
        off_path: false,
        attachments: vec![],
        foreign: Default::default(),
    }
}

#[tokio::test]
async fn messages_are_appended_once() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let talk = conversation("work");
    let [one, two, mut three] = ["one", "two", "three"].map(message);
    three.at = NOW.plus(Span::days(1));
    let said = vec![one.clone(), two.clone(), one.clone()];
    let first = vault.engine.converse(&owner, talk.clone(), said).await.unwrap();
    assert_eq!((first.conversation, first.appended, first.duplicates), (talk.id, 2, 1));
    let edited = Message { text: "changed".into(), ..one.clone() };
    let more =
        vault.engine.converse(&owner, talk.clone(), vec![edited, three.clone()]).await.unwrap();
    assert_eq!((more.appended, more.duplicates), (1, 1));

    let messages = vault.engine.messages(&owner, talk.id, 0, 10).await.unwrap();
    assert_eq!(messages, [one, two, three.clone()], "what was said stays as it was said");
    let (head, count) = vault.engine.conversation(&owner, talk.id).await.unwrap();
    assert_eq!((count, head.updated), (3, three.at));
    let tail = vault.engine.messages(&owner, talk.id, 2, 10).await.unwrap();
    assert_eq!(tail, [three]);
}

#[tokio::test]
async fn hidden_conversations_are_missing_and_their_ids_cannot_be_asked_about() {
    let vault = Vault::new().await;
    let secret = conversation("health");
    let said = vec![message("hidden words")];
    vault.engine.converse(&vault.owner(), secret.clone(), said).await.unwrap();
    let agent = vault.agent(|grant| grant.read = under("work")).await;
    for id in [secret.id, ConversationId::random()] {
        let found = vault.engine.conversation(&agent.call, id).await;
        assert!(matches!(found, Err(Error::NotFound)));
        let found = vault.engine.messages(&agent.call, id, 0, 10).await;
        assert!(matches!(found, Err(Error::NotFound)));
    }
    let own = Conversation { id: secret.id, ..conversation("work") };
    let made =
        vault.engine.converse(&agent.call, own.clone(), vec![message("mine")]).await.unwrap();
    assert_ne!(made.conversation, secret.id);
    let more = vault.engine.converse(&agent.call, own, vec![message("more")]).await.unwrap();
    assert_eq!(more.conversation, made.conversation);
    let mine = vault.engine.messages(&agent.call, secret.id, 0, 10).await.unwrap();
    assert_eq!(mine.len(), 2);
    let page = PageRequest { limit: 10, ..PageRequest::default() };
    let listed = vault.engine.conversations(&agent.call, Filter::default(), page).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    let theirs = vault.engine.messages(&vault.owner(), secret.id, 0, 10).await.unwrap();
    assert_eq!(theirs[0].text, "hidden words");
}

#[tokio::test]
async fn a_grant_bounds_where_an_agent_may_talk() {
    let vault = Vault::new().await;
    let agent = vault.agent(|grant| grant.ceiling = Sensitivity::Internal).await;
    let mut talk = conversation("work");
    talk.governance.sensitivity = Some(Sensitivity::Confidential);
    let said = vault.engine.converse(&agent.call, talk, vec![message("x")]).await;
    assert!(matches!(said, Err(Error::Forbidden { .. })));
    assert_eq!(refused(&vault.last().await), Some("forbidden"));
}

#[tokio::test]
async fn erased_words_are_gone_from_the_disk() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let talk = conversation("work");
    let (keep, remove) = (message("we keep these words"), message("we erase those words"));
    let said = vec![keep.clone(), remove.clone()];
    vault.engine.converse(&owner, talk.clone(), said).await.unwrap();
    let agent = vault.agent(|_| {}).await;
    let without = vault.engine.erase_message(&agent.call, talk.id, remove.id).await;
    assert!(matches!(without, Err(Error::Forbidden { .. })), "the verb is needed");
    let eraser =
        vault.agent(|grant| grant.verbs = Verbs::of(&[Verb::Read, Verb::Write, Verb::Erase])).await;
    vault.engine.erase_message(&eraser.call, talk.id, remove.id).await.unwrap();
    let found = vault.engine.traces(&owner, "we erase those".into()).await.unwrap();
    assert!(found.found.is_empty(), "{found:?}");
    let found = vault.engine.traces(&owner, "we keep these".into()).await.unwrap();
    assert!(!found.found.is_empty(), "the search finds what is there");
    assert_eq!(vault.engine.erase_conversation(&owner, talk.id, Vec::new()).await.unwrap(), 1);
    let gone = vault.engine.conversation(&owner, talk.id).await;
    assert!(matches!(gone, Err(Error::NotFound)));
}

#[tokio::test]
async fn what_was_proposed_because_of_a_message_goes_with_it() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let talk = conversation("work");
    let said = message("I keep a secret apiary");
    vault.engine.converse(&owner, talk.clone(), vec![said.clone()]).await.unwrap();
    let mut draft = Draft::text("keeps a secret apiary");
    let from = MessageRef { conversation: talk.id, message: said.id };
    draft.content.provenance.messages.push(from);
    let proposal = Proposal { id: MemoryId::random(), draft };
    vault.engine.propose(&owner, vec![proposal]).await.unwrap();
    let before = vault.engine.traces(&owner, "secret apiary".into()).await.unwrap();
    assert!(!before.found.is_empty(), "the search finds what is there");
    vault.engine.erase_message(&owner, talk.id, said.id).await.unwrap();
    let found = vault.engine.traces(&owner, "secret apiary".into()).await.unwrap();
    assert!(found.found.is_empty(), "{found:?}");
}

#[tokio::test]
async fn an_attachment_is_seen_through_a_message_that_names_it() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let bytes: Vec<u8> = (0..600_000u32).map(|n| (n % 251) as u8).collect();
    let blob = vault.engine.attach(&owner, bytes.clone()).await.unwrap();
    assert_eq!(blob, BlobHash::of(&bytes));
    let unnamed = vault.engine.attachment(&owner, blob).await;
    assert!(matches!(unnamed, Err(Error::NotFound)));
    let mut said = message("see the picture");
    said.attachments = vec![Attachment {
        filename: "a.png".into(),
        media_type: "image/png".into(),
        blob: Some(blob),
        size: None,
        foreign: Default::default(),
    }];
    vault.engine.converse(&owner, conversation("health"), vec![said]).await.unwrap();
    assert_eq!(vault.engine.attachment(&owner, blob).await.unwrap(), bytes);
    let agent = vault.agent(|grant| grant.read = under("work")).await;
    let hidden = vault.engine.attachment(&agent.call, blob).await;
    assert!(matches!(hidden, Err(Error::NotFound)));
    assert_eq!(vault.engine.attach(&owner, bytes.clone()).await.unwrap(), blob, "again");
    assert_eq!(vault.engine.attachment(&owner, blob).await.unwrap(), bytes);
    let reader = vault.agent(|grant| grant.verbs = Verbs::of(&[Verb::Read])).await;
    let refused = vault.engine.upload(&reader.call).await;
    assert!(matches!(refused, Err(Error::Forbidden { .. })));
}

#[tokio::test]
async fn an_agent_names_only_attachments_it_sees_or_brought() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let secret = vault.engine.attach(&owner, b"a picture of mine".to_vec()).await.unwrap();
    let naming = |blob| {
        let mut said = message("see this");
        said.attachments = vec![Attachment {
            filename: "a.png".into(),
            media_type: "image/png".into(),
            blob: Some(blob),
            size: None,
            foreign: Default::default(),
        }];
        vec![said]
    };
    vault.engine.converse(&owner, conversation("health"), naming(secret)).await.unwrap();
    let agent = vault
        .agent(|grant| {
            grant.verbs = Verbs::of(&[Verb::Read, Verb::Write]);
            grant.read = under("work");
            grant.write = under("work");
        })
        .await;
    let missing = BlobHash::of(b"never stored");
    let told = |refused: yore_domain::Result<_>| refused.map(drop).unwrap_err().to_string();
    let hidden = vault.engine.converse(&agent.call, conversation("work"), naming(secret)).await;
    let absent = vault.engine.converse(&agent.call, conversation("work"), naming(missing)).await;
    assert_eq!(told(hidden), told(absent), "hidden and missing are the same");
    let own = vault.engine.attach(&agent.call, b"a picture of its own".to_vec()).await.unwrap();
    let talk = conversation("work");
    let said = vault.engine.converse(&agent.call, talk, naming(own)).await.unwrap();
    assert_eq!(vault.engine.attachment(&agent.call, own).await.unwrap(), b"a picture of its own");
    vault.engine.converse(&agent.call, conversation("work"), naming(own)).await.unwrap();
    let traces = async || vault.engine.traces(&owner, own.to_string()).await.unwrap().found;
    assert!(!traces().await.is_empty(), "the hash is in the note of who brought it");
    let page = PageRequest { limit: 10, ..PageRequest::default() };
    let talks = vault.engine.conversations(&owner, Filter::default(), page);
    for (talk, _) in talks.await.unwrap().items {
        vault.engine.erase_conversation(&owner, talk.id, Vec::new()).await.unwrap();
    }
    assert!(traces().await.is_empty(), "{}", said.conversation);
}

#[tokio::test]
async fn an_upload_takes_any_pieces_and_as_long_as_it_needs() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let whole: Vec<u8> = (0..9_500_000u32).map(|n| (n % 249) as u8).collect();
    let mut upload = vault.engine.upload(&vault.master()).await.unwrap();
    let mut abandoned = vault.engine.upload(&owner).await.unwrap();
    for part in whole.chunks(777_777) {
        // The proof of the master key that began it is long stale.
        vault.clock.advance(Span::seconds(60));
        upload.write(part).await.unwrap();
        abandoned.write(part).await.unwrap();
    }
    drop(abandoned);
    let blob = upload.finish().await.unwrap();
    assert_eq!(blob, BlobHash::of(&whole));
    let mut said = message("see the film");
    said.attachments = vec![Attachment {
        filename: "a.mp4".into(),
        media_type: "video/mp4".into(),
        blob: Some(blob),
        size: Some(whole.len() as u64),
        foreign: Default::default(),
    }];
    vault.engine.converse(&owner, conversation("work"), vec![said]).await.unwrap();
    assert_eq!(vault.engine.attachment(&owner, blob).await.unwrap(), whole);
    assert_eq!(vault.engine.census(&owner).await.unwrap().blobs, 1);
}

#[tokio::test]
async fn secrets_in_conversations_are_labelled_or_kept_back_as_the_operator_wants() {
    use yore_domain::class::Sensitivity;
    use yore_domain::sensitive::{Care, Finding};
    let label = Finding::Card.label();
    for care in [Care::Off, Care::Label, Care::Hold] {
        let vault = Vault::with(|settings| settings.care = care).await;
        let owner = vault.owner();
        let talk = conversation("work");
        let said = vec![message("hello"), message("the card is 4111 1111 1111 1111")];
        vault.engine.converse(&owner, talk.clone(), said).await.unwrap();
        let (head, _) = vault.engine.conversation(&owner, talk.id).await.unwrap();
        assert_eq!(head.governance.labels.contains(&label), care != Care::Off, "{care:?}");
        // What was found stays found when the conversation goes on.
        vault.engine.converse(&owner, talk.clone(), vec![message("bye")]).await.unwrap();
        let (again, _) = vault.engine.conversation(&owner, talk.id).await.unwrap();
        assert_eq!(again.governance, head.governance, "{care:?}");
        let agent = vault.agent(|_| {}).await;
        let own = Conversation { id: ConversationId::random(), ..conversation("work") };
        let said = vec![message("my card: 4111 1111 1111 1111")];
        let written = vault.engine.converse(&agent.call, own, said).await.unwrap();
        let (head, count) = vault.engine.conversation(&owner, written.conversation).await.unwrap();
        assert_eq!(count, 1, "nothing is lost");
        let restricted = head.governance.sensitivity == Some(Sensitivity::Restricted);
        assert_eq!(restricted, care == Care::Hold, "{care:?}");
        let seen = vault.engine.conversation(&agent.call, written.conversation).await;
        assert_eq!(seen.is_err(), care == Care::Hold, "{care:?}");
    }
}
