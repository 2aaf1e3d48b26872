//! Whole conversations: begun once, added to, amended, taken out, and not brought back.

use yore_domain::grant::{Verb, Verbs};
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{Error, Span};
use yore_engine::{Amendment, CONVERSATIONS, Item, Work};

use crate::conversations::{conversation, message};
use crate::support::{Vault, refused};

#[tokio::test]
async fn a_long_conversation_with_gaps_is_read_and_exported_whole() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let talk = conversation("work");
    let said: Vec<_> = (0..1200).map(|number| message(&format!("turn {number}"))).collect();
    vault.engine.begin(&owner, talk.clone(), said.clone()).await.unwrap();
    vault.engine.erase_message(&owner, talk.id, said[3].id).await.unwrap();
    let read = vault.engine.talk(&owner, talk.id).await.unwrap();
    let left: Vec<_> = said.iter().filter(|message| message.id != said[3].id).cloned().collect();
    assert_eq!(read.messages, left);
    let page = PageRequest { limit: 5, after: Some(CONVERSATIONS), ..PageRequest::default() };
    let page = vault.engine.export(&owner, Filter::default(), page).await.unwrap();
    let Item::Conversation { messages, .. } = &page.items[0] else { panic!("a conversation") };
    assert_eq!(*messages, left);
}

#[tokio::test]
async fn a_conversation_begins_once_and_what_is_there_wins() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let mut talk = conversation("work");
    talk.title = Some("first".into());
    let one = message("one");
    vault.engine.begin(&owner, talk.clone(), vec![one.clone()]).await.unwrap();
    let again = vault.engine.begin(&owner, talk.clone(), vec![]).await;
    assert!(matches!(again, Err(Error::Conflict { winner: Some(_), .. })));
    let mut otherwise = one.clone();
    otherwise.text = "otherwise".into();
    let said = vec![one.clone(), otherwise, message("two")];
    let added = vault.engine.say(&owner, talk.id, said).await.unwrap();
    assert_eq!((added.appended, added.duplicates, added.conflicts), (1, 1, 1));
    let read = vault.engine.talk(&owner, talk.id).await.unwrap();
    assert_eq!((read.head.title.as_deref(), read.messages.len()), (Some("first"), 2));
    assert_eq!(vault.engine.message(&owner, talk.id, one.id).await.unwrap(), one);
}

#[tokio::test]
async fn an_amendment_of_another_state_is_refused_and_changes_nothing() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let talk = conversation("work");
    vault.engine.begin(&owner, talk.clone(), vec![message("one")]).await.unwrap();
    let tag = vault.engine.talk(&owner, talk.id).await.unwrap().tag();
    let named = |title: &str| Amendment { title: Some(Some(title.into())), ..Amendment::default() };
    let amend = async |title: &str, tags: Vec<String>| {
        vault.engine.amend_conversation("test", &owner, talk.id, named(title), tags).await
    };
    amend("a", vec!["another".into(), tag.clone()]).await.unwrap();
    assert!(matches!(amend("b", vec![tag.clone()]).await, Err(Error::Conflict { .. })));
    let refusal = vault.engine.erase_conversation(&owner, talk.id, vec![tag.clone()]).await;
    assert!(matches!(refusal, Err(Error::Conflict { .. })));
    let read = vault.engine.talk(&owner, talk.id).await.unwrap();
    assert_eq!(read.head.title.as_deref(), Some("a"));
    vault.engine.erase_conversation(&owner, talk.id, vec![read.tag()]).await.unwrap();
}

#[tokio::test]
async fn what_was_erased_does_not_come_back_by_import() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let (gone, kept) = (conversation("work"), conversation("work"));
    let (one, two) = (message("one"), message("two"));
    for talk in [&gone, &kept] {
        let said = vec![one.clone(), two.clone()];
        vault.engine.begin(&owner, talk.clone(), said).await.unwrap();
    }
    vault.engine.erase_conversation(&owner, gone.id, Vec::new()).await.unwrap();
    vault.engine.erase_message(&owner, kept.id, two.id).await.unwrap();
    let items = [&gone, &kept].map(|talk| Item::Conversation {
        conversation: Box::new(talk.clone()),
        messages: vec![one.clone(), two.clone()],
    });
    let done = vault.engine.import(&owner, items.to_vec()).await.unwrap();
    assert_eq!((done.imported, done.merged, done.duplicates, done.erased), (0, 0, 1, 1));
    assert_eq!(done.rejected, []);
    assert!(matches!(vault.engine.talk(&owner, gone.id).await, Err(Error::NotFound)));
    assert_eq!(vault.engine.talk(&owner, kept.id).await.unwrap().messages, [one]);
    let told = vault.engine.erased_of(&owner, kept.id).await.unwrap();
    assert!(!told.whole && told.messages.contains(&two.id));
    let agent = vault.agent(|_| {}).await;
    let told = vault.engine.erased_of(&agent.call, gone.id).await.unwrap();
    assert!(!told.whole, "an agent is told nothing");
}

#[tokio::test]
async fn a_takeout_needs_its_verb_and_ends_with_the_grant() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let talk = conversation("work");
    vault.engine.begin(&owner, talk.clone(), vec![message("one")]).await.unwrap();
    let reader = vault.agent(|grant| grant.verbs = Verbs::of(&[Verb::Read])).await;
    let without = vault.engine.takeout(&reader.call, Filter::default()).await;
    assert!(matches!(without, Err(Error::Forbidden { .. })));
    assert_eq!(refused(&vault.last().await), Some("forbidden"));
    let exporter = vault.agent(|grant| grant.verbs = Verbs::of(&[Verb::Export])).await;
    let taken = vault.engine.takeout(&exporter.call, Filter::default()).await.unwrap();
    assert_eq!(vault.last().await.draft.operation, "takeout");
    let id = *taken.contents.conversations.first().unwrap();
    assert_eq!(taken.talk(id).await.unwrap().unwrap().messages.len(), 1);
    vault.engine.revoke_grant(&owner, exporter.grant).await.unwrap();
    assert!(matches!(taken.talk(id).await, Err(Error::Unauthenticated { .. })));
}

#[tokio::test]
async fn work_is_seen_by_whoever_asked_for_it_and_ends_once() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let mut job = vault.engine.begin_work(&owner, Work::Archive, true.into()).await.unwrap();
    let exporter = vault.agent(|grant| grant.verbs = Verbs::of(&[Verb::Export])).await;
    let theirs = vault.engine.work_named(&exporter.call, Work::Archive, job.id).await;
    assert!(matches!(theirs, Err(Error::NotFound)));
    let other = vault.engine.work_named(&owner, Work::Restore, job.id).await;
    assert!(matches!(other, Err(Error::NotFound)));
    vault.clock.advance(Span::seconds(5));
    job.state = yore_domain::job::JobState::Completed;
    vault.engine.move_work(&owner, Work::Archive, job.clone()).await.unwrap();
    let found = vault.engine.work_named(&owner, Work::Archive, job.id).await.unwrap();
    assert!(found.state.is_final() && found.updated > found.created);
    let again = vault.engine.move_work(&owner, Work::Archive, job).await;
    assert!(matches!(again, Err(Error::Conflict { .. })));
}
