//! Conversations: they only grow, keep every message once, and can be erased.

#![expect(clippy::missing_panics_doc, reason = "a story panics when the guarantee does not hold")]

use std::sync::Arc;

use serde_json::json;
use yore_domain::class::{Governance, Label};
use yore_domain::conversation::{Attachment, Conversation, Message, Role};
use yore_domain::grant::{Grant, Labels};
use yore_domain::query::{Corpus, Filter, PageRequest};
use yore_domain::{BlobHash, ConversationId, MessageId};

use super::{Scene, gather, grant, indexing};
use crate::inside::Inside;
use crate::plan::{AliasTarget, Grave};
use crate::search::{RowKey, Vector};
use crate::snapshot::Buried;
use crate::{CommitError, Precondition, Snapshot, Write};

/// Makes and commits an empty conversation.
pub async fn talk(scene: &Scene<'_>, platform: &str) -> Conversation {
    let now = scene.tick();
    let conversation = Conversation {
        id: ConversationId::random(),
        title: Some("a talk".into()),
        platform: platform.into(),
        model: None,
        created: now,
        updated: now,
        scope: yore_domain::scope::Scope::default(),
        governance: Governance::default(),
        tags: Vec::new(),
        summary: None,
        language: None,
        foreign: yore_domain::memory::Foreign::new(),
    };
    scene.commit(vec![Write::Conversation(Box::new(conversation.clone()))]).await;
    conversation
}

/// Commits a message at the end of a conversation.
pub async fn say(scene: &Scene<'_>, conversation: &Conversation, text: &str) -> Message {
    let message = message(scene, text);
    scene.commit(vec![saying(conversation.id, &message)]).await;
    message
}

/// The write that appends a message, findable by its words.
#[must_use]
pub fn saying(conversation: ConversationId, message: &Message) -> Write {
    let indexing = indexing(&message.text);
    Write::Message { conversation, message: Arc::new(message.clone()), indexing }
}

/// A message that nobody has said yet.
pub fn message(scene: &Scene<'_>, text: &str) -> Message {
    Message {
        id: MessageId::random(),
        role: Role::User,
        content: json!(text),
        text: text.into(),
        at: scene.tick(),
        model: None,
        platform: None,
        parent: None,
        off_path: false,
        attachments: Vec::new(),
        foreign: yore_domain::memory::Foreign::new(),
    }
}

/// Messages append in order; one that is there already stays as it is.
pub async fn conversations_only_grow(scene: &Scene<'_>) {
    let talk = talk(scene, "chatgpt").await;
    let first = say(scene, &talk, "good morning").await;
    let second = say(scene, &talk, "the bakery opens at six").await;
    let altered = Message { text: "the bakery is closed".into(), ..second.clone() };
    scene.commit(vec![saying(talk.id, &altered)]).await;

    let view = scene.look().await;
    let (found, count) = view.conversation(talk.id).await.unwrap().unwrap();
    assert_eq!((count, found.updated), (2, second.at));
    let messages = view.messages(talk.id, 0, 10).await.unwrap();
    assert_eq!(messages, [first.clone(), second.clone()]);
    assert_eq!(view.messages(talk.id, 1, 10).await.unwrap(), std::slice::from_ref(&second));
    assert_eq!(view.messages(talk.id, 0, 1).await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(view.message(talk.id, second.id).await.unwrap(), Some((1, second)));
    assert_eq!(view.message(ConversationId::random(), first.id).await.unwrap(), None);
    let any = Filter::default();
    let found = gather(&*view, "bakery", Corpus::Messages, &any, scene.tick()).await;
    assert_eq!(found.iter().filter(|one| one.signals.lexical > 0.0).count(), 1);

    let lost = saying(ConversationId::random(), &first);
    assert!(scene.run(scene.plan(vec![lost])).await.is_err());
    for (exists, holds) in [(true, true), (false, false)] {
        let mut plan = scene.plan(vec![]);
        plan.preconditions.push(Precondition::Conversation(talk.id, exists));
        match scene.run(plan).await {
            Ok(_) => assert!(holds),
            Err(error) => assert!(matches!(error, CommitError::Stale(_)) && !holds),
        }
    }
}

/// An attachment is readable once it is whole, by whoever sees a message that names it.
pub async fn attachments_follow_their_messages(scene: &Scene<'_>) {
    let bytes = b"a picture of the harbour".to_vec();
    let blob = BlobHash::of(&bytes);
    let chunk = |number: u32, part: &[u8], complete| Write::BlobChunk {
        blob,
        number,
        bytes: part.to_vec(),
        complete,
    };
    let mut talk = talk(scene, "claude").await;
    let mut picture = message(scene, "see this");
    picture.attachments = vec![Attachment {
        filename: "harbour.png".into(),
        media_type: "image/png".into(),
        blob: Some(blob),
        size: None,
        foreign: yore_domain::memory::Foreign::new(),
    }];
    scene.commit(vec![saying(talk.id, &picture), chunk(0, &bytes[..10], None)]).await;
    assert_eq!(scene.look().await.blob(blob).await.unwrap(), None, "not whole yet");
    let size = bytes.len() as u64;
    scene.commit(vec![chunk(1, &bytes[10..], Some(size))]).await;
    let view = scene.look().await;
    assert_eq!(view.blob(blob).await.unwrap(), Some(size));
    let mut read = view.blob_chunk(blob, 0).await.unwrap().unwrap();
    read.extend(view.blob_chunk(blob, 1).await.unwrap().unwrap());
    assert_eq!(read, bytes);
    assert_eq!(view.blob_chunk(blob, 2).await.unwrap(), None);

    let health = vec![Label::new("health").unwrap()];
    let reader = Grant { read: Labels::Under(health.clone()), ..grant("reader") };
    let reader = scene.agent(&[reader]);
    assert_eq!(scene.look_as(&reader).await.blob(blob).await.unwrap(), None);
    assert_eq!(scene.look_as(&reader).await.blob_chunk(blob, 0).await.unwrap(), None);
    // The messages and what hangs on them move with the conversation's class.
    talk.governance.labels = health;
    scene.commit(vec![Write::Conversation(Box::new(talk.clone()))]).await;
    let seen = scene.look_as(&reader).await;
    assert_eq!(seen.blob(blob).await.unwrap(), Some(size));
    assert_eq!(seen.messages(talk.id, 0, 10).await.unwrap().len(), 1);
    let any = Filter::default();
    assert_eq!(gather(&*seen, "see this", Corpus::Messages, &any, scene.tick()).await.len(), 1);

    // What no message names yet waits for its message, whatever is erased beside it.
    let bytes = b"on its way".to_vec();
    let (waiting, complete) = (BlobHash::of(&bytes), Some(bytes.len() as u64));
    scene.commit(vec![Write::BlobChunk { blob: waiting, number: 0, bytes, complete }]).await;
    scene.commit(vec![Write::EraseConversation(talk.id)]).await;
    let later = self::talk(scene, "claude").await;
    picture.id = MessageId::random();
    picture.attachments[0].blob = Some(waiting);
    scene.commit(vec![saying(later.id, &picture)]).await;
    let view = scene.look().await;
    assert_eq!(
        (view.blob(waiting).await.unwrap(), view.blob(blob).await.unwrap()),
        (complete, None)
    );
}

/// The messages that hold a word.
async fn said_by(scene: &Scene<'_>, view: &dyn Snapshot, words: &str) -> Vec<RowKey> {
    let found = gather(view, words, Corpus::Messages, &Filter::default(), scene.tick()).await;
    found.iter().filter(|one| one.signals.lexical > 0.0).map(|one| one.row).collect()
}

/// What attachments say is found with the message that names them, by whoever sees it, and goes
/// with it.
pub async fn what_attachments_say_belongs_to_their_message(scene: &Scene<'_>) {
    let bytes = b"the ferry to Hydra leaves at nine".to_vec();
    let (blob, size) = (BlobHash::of(&bytes), bytes.len() as u64);
    let chunk = |complete| Write::BlobChunk { blob, number: 0, bytes: bytes.clone(), complete };
    let mut talk = talk(scene, "claude").await;
    say(scene, &talk, "nothing hangs on this").await;
    let mut timetable = message(scene, "see the timetable");
    timetable.attachments = vec![Attachment {
        filename: "ferries.txt".into(),
        media_type: "text/plain".into(),
        blob: Some(blob),
        size: None,
        foreign: yore_domain::memory::Foreign::new(),
    }];
    scene.commit(vec![saying(talk.id, &timetable), chunk(None)]).await;
    assert!(scene.look().await.unread(10).await.unwrap().is_empty(), "it is not whole yet");
    scene.commit(vec![chunk(Some(size))]).await;
    let view = scene.look().await;
    let waiting = view.unread(10).await.unwrap();
    assert_eq!(waiting.iter().map(|one| &*one.message).collect::<Vec<_>>(), [&timetable]);
    assert!(view.inside(talk.id, timetable.id).await.unwrap().is_empty());
    let row = waiting[0].row;
    let (model, values) = ("sentence".to_owned(), vec![1; 384]);
    let vector = Vector { model, scale: 0.1, values };
    scene.commit(vec![Write::Vector { row, vector }]).await;

    let inside = vec![Inside { blob, text: "the ferry to Hydra leaves at nine".into() }];
    let read = Write::Inside {
        row,
        inside: inside.clone(),
        indexing: indexing("see the timetable ferry Hydra nine"),
    };
    scene.commit(vec![read.clone()]).await;
    scene.commit(vec![read]).await;
    let view = scene.look().await;
    assert!(view.unread(10).await.unwrap().is_empty());
    assert_eq!(view.inside(talk.id, timetable.id).await.unwrap(), inside);
    assert_eq!(said_by(scene, &*view, "Hydra ferry").await, [row]);
    assert_eq!(said_by(scene, &*view, "timetable").await, [row], "by its own words, too");
    let vectors = view.unembedded("sentence", 10).await.unwrap();
    let again = vectors.iter().find(|(one, _)| *one == row);
    assert!(again.is_some_and(|(_, text)| text.contains("Hydra")), "its vector is made anew");

    let health = vec![Label::new("health").unwrap()];
    let reader = scene.agent(&[Grant { read: Labels::Under(health.clone()), ..grant("reader") }]);
    let hidden = scene.look_as(&reader).await;
    assert!(hidden.inside(talk.id, timetable.id).await.unwrap().is_empty());
    assert!(hidden.unread(10).await.unwrap().is_empty());
    assert!(
        said_by(scene, &*hidden, "Hydra").await.is_empty(),
        "the conversation is of another class"
    );
    talk.governance.labels = health;
    scene.commit(vec![Write::Conversation(Box::new(talk.clone()))]).await;
    let seen = scene.look_as(&reader).await;
    assert_eq!(seen.inside(talk.id, timetable.id).await.unwrap(), inside);
    assert_eq!(said_by(scene, &*seen, "Hydra").await, [row]);

    scene.commit(vec![Write::EraseMessage(talk.id, timetable.id)]).await;
    let view = scene.look().await;
    assert!(view.inside(talk.id, timetable.id).await.unwrap().is_empty());
    assert!(said_by(scene, &*view, "Hydra").await.is_empty());
    // Whoever read it meanwhile is too late.
    let late = Write::Inside { row, inside, indexing: indexing("Hydra") };
    scene.commit(vec![late]).await;
    let view = scene.look().await;
    assert!(said_by(scene, &*view, "Hydra").await.is_empty());
}

/// Erased messages and conversations are gone from lists and searches.
pub async fn what_was_said_can_be_erased(scene: &Scene<'_>) {
    let talk = talk(scene, "chatgpt").await;
    let first = say(scene, &talk, "the safe opens with marzipan").await;
    let second = say(scene, &talk, "marzipan it is").await;
    scene.commit(vec![Write::EraseMessage(talk.id, first.id)]).await;
    let view = scene.look().await;
    assert_eq!(view.message(talk.id, first.id).await.unwrap(), None);
    assert_eq!(view.messages(talk.id, 0, 10).await.unwrap(), [second]);
    let any = Filter::default();
    let found = gather(&*view, "marzipan", Corpus::Messages, &any, scene.tick()).await;
    assert_eq!(found.len(), 1);

    let id = talk.id.to_string();
    let buried = Buried { whole: false, messages: vec![first.id] };
    assert_eq!(view.buried("", &id).await.unwrap(), buried);
    let scribe = AliasTarget::Conversation(talk.id);
    let named = |namespace: &str, name: &str| Write::Alias {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        target: scribe,
        instead_of: None,
    };
    let chosen = ConversationId::random().to_string();
    scene.commit(vec![named("scribe", &chosen), named("", "the marzipan talk")]).await;
    scene.commit(vec![Write::EraseConversation(talk.id)]).await;
    let view = scene.look().await;
    for (namespace, name, whole) in
        [("", id.as_str(), true), ("scribe", &chosen, true), ("", "the marzipan talk", false)]
    {
        let buried = view.buried(namespace, name).await.unwrap();
        assert_eq!(buried.whole, whole, "ids are kept, words are not: {namespace} {name}");
    }
    let graves = view.graves().await.unwrap();
    let graves: Vec<Grave> = graves.into_iter().map(|(grave, _)| grave).collect();
    assert_eq!(graves, [Grave::Message(talk.id, first.id), Grave::Conversation(talk.id)]);
    assert_eq!(view.conversation(talk.id).await.unwrap(), None);
    assert!(view.messages(talk.id, 0, 10).await.unwrap().is_empty());
    let found = gather(&*view, "marzipan", Corpus::Messages, &any, scene.tick()).await;
    assert!(found.is_empty());
}

/// Conversations are listed by when they were last added to, and filtered by what they state.
pub async fn conversations_are_listed(scene: &Scene<'_>) {
    let old = talk(scene, "chatgpt").await;
    let new = talk(scene, "claude").await;
    say(scene, &old, "one more thing").await;
    let view = scene.look().await;
    let page = PageRequest { limit: 1, ..PageRequest::default() };
    let first = view.conversations(&Filter::default(), &page).await.unwrap();
    assert_eq!(first.items[0].0.id, old.id, "the last that was added to");
    assert_eq!(first.items[0].1, 1);
    let page = PageRequest { limit: 1, after: first.next, ..PageRequest::default() };
    let second = view.conversations(&Filter::default(), &page).await.unwrap();
    assert_eq!((second.items[0].0.id, second.next), (new.id, None));
    let filter = Filter { platform: Some("claude".into()), ..Filter::default() };
    let page = PageRequest { limit: 9, ..PageRequest::default() };
    let found = view.conversations(&filter, &page).await.unwrap().items;
    assert_eq!(found.iter().map(|(talk, _)| talk.id).collect::<Vec<_>>(), [new.id]);
    let messages = gather(&*view, "thing", Corpus::Messages, &filter, scene.tick()).await;
    assert!(messages.is_empty(), "it was said on another platform");
}
