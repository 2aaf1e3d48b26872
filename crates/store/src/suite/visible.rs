//! What a lens hides is absent: every answer equals what `policy::visible` allows, and no byte of
//! any answer depends on what is hidden.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use yore_domain::class::{Governance, Handling, Label, Sensitivity};
use yore_domain::conversation::{Conversation, Message, Role};
use yore_domain::grant::{Grant, Labels};
use yore_domain::memory::{Cause, Draft, Foreign, Status, Version};
use yore_domain::query::{Corpus, Filter, Order, PageRequest};
use yore_domain::scope::{Scope, ScopeRule};
use yore_domain::{ConversationId, MemoryId, MessageId, Timestamp, VersionId};
use yore_policy::{Permit, visible};

use super::{Scene, gather, grant, indexing, time, write};
use crate::plan::AliasTarget;
use crate::{Candidate, Keeper, Search, Snapshot, Store, Write};

const WORDS: [&str; 8] =
    ["marzipan", "harbour", "bicycle", "fountain", "violin", "lantern", "pepper", "glacier"];
const LABELS: [&[&str]; 5] = [&[], &["health"], &["health.sleep"], &["work"], &["work", "health"]];
const LATE: i64 = 100_000;

/// Where something belongs.
#[derive(Clone, Debug)]
struct Place {
    labels: usize,
    sensitivity: usize,
    open: bool,
    project: usize,
}

#[derive(Clone, Debug)]
enum Step {
    Revise(Vec<usize>),
    Move(Place),
    Tombstone,
    Restore,
}

#[derive(Clone, Debug)]
struct Story {
    place: Place,
    words: Vec<usize>,
    session: usize,
    made: i64,
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
struct Talk {
    place: Place,
    turns: Vec<Vec<usize>>,
}

#[derive(Clone, Debug)]
struct Reach {
    labels: Option<Vec<usize>>,
    ceiling: usize,
    project: usize,
}

fn place() -> impl Strategy<Value = Place> {
    (0..LABELS.len(), 0..4usize, prop::bool::weighted(0.1), 0..3usize).prop_map(
        |(labels, sensitivity, open, project)| Place { labels, sensitivity, open, project },
    )
}

fn words() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..WORDS.len(), 1..5)
}

fn story() -> impl Strategy<Value = Story> {
    let step = prop_oneof![
        words().prop_map(Step::Revise),
        place().prop_map(Step::Move),
        Just(Step::Tombstone),
        Just(Step::Restore),
    ];
    (place(), words(), 0..3usize, 0..4i64, prop::collection::vec(step, 0..4)).prop_map(
        |(place, words, session, made, steps)| Story { place, words, session, made, steps },
    )
}

fn talk() -> impl Strategy<Value = Talk> {
    (place(), prop::collection::vec(words(), 0..4)).prop_map(|(place, turns)| Talk { place, turns })
}

fn reach() -> impl Strategy<Value = Reach> {
    let labels = prop::option::weighted(0.8, prop::collection::vec(0..4usize, 0..3));
    (labels, 0..4usize, 0..3usize).prop_map(|(labels, ceiling, project)| Reach {
        labels,
        ceiling,
        project,
    })
}

impl Place {
    fn governance(&self) -> Governance {
        let labels = LABELS[self.labels].iter().map(|label| Label::new(*label).unwrap()).collect();
        Governance {
            sensitivity: Some(Sensitivity::ALL[self.sensitivity]),
            labels,
            handling: self.open.then(|| Handling { open_retrieval: true, ..Handling::default() }),
        }
    }

    fn project(&self) -> Option<String> {
        (self.project > 0).then(|| format!("project {}", self.project))
    }
}

impl Reach {
    fn grant(&self) -> Grant {
        let names = ["health", "work", "behaviour", "health.sleep"];
        let read = self.labels.as_ref().map_or(Labels::Any, |labels| {
            Labels::Under(labels.iter().map(|at| Label::new(names[*at]).unwrap()).collect())
        });
        let project = (self.project > 0).then(|| format!("project {}", self.project));
        Grant {
            read,
            ceiling: Sensitivity::ALL[self.ceiling],
            scope: ScopeRule { project, ..ScopeRule::default() },
            ..grant("reader")
        }
    }
}

fn text(words: &[usize]) -> String {
    words.iter().map(|at| WORDS[*at]).collect::<Vec<_>>().join(" ")
}

impl Story {
    /// The chain of versions it tells; the number of the story keeps the times apart.
    fn chain(&self, number: usize) -> Vec<Version> {
        let mut clock = 10 * i64::try_from(number).unwrap();
        let mut draft = Draft::text(text(&self.words));
        draft.content.governance = self.place.governance();
        draft.content.scope.project = self.place.project();
        draft.content.scope.session = (self.session > 0).then(|| format!("s{}", self.session));
        draft.time.created = Some(time(-self.made));
        let mut chain = vec![Version::first(MemoryId::random(), draft, time(clock), None)];
        for step in &self.steps {
            clock += 1;
            let last = chain.last().unwrap();
            let mut next = last.next(Cause::Revised, time(clock), None);
            match step {
                Step::Revise(words) => next.content.body.text = text(words),
                Step::Move(place) => {
                    next.content.governance = place.governance();
                    next.content.scope.project = place.project();
                }
                Step::Tombstone => next.status = Status::Tombstoned,
                Step::Restore => next.status = Status::Active,
            }
            chain.push(next);
        }
        chain
    }
}

impl Talk {
    fn told(&self, number: usize) -> (Conversation, Vec<Message>) {
        let at = time(5000 + i64::try_from(number).unwrap());
        let conversation = Conversation {
            id: ConversationId::random(),
            title: None,
            platform: "chatgpt".into(),
            model: None,
            created: at,
            updated: at,
            scope: Scope { project: self.place.project(), ..Scope::default() },
            governance: self.place.governance(),
            tags: Vec::new(),
            summary: None,
            language: None,
            foreign: Foreign::new(),
        };
        let message = |words: &Vec<usize>| Message {
            id: MessageId::random(),
            role: Role::User,
            content: text(words).into(),
            text: text(words),
            at,
            model: None,
            platform: None,
            parent: None,
            off_path: false,
            attachments: Vec::new(),
            foreign: Foreign::new(),
        };
        (conversation, self.turns.iter().map(message).collect())
    }
}

/// Everything a vault is filled with.
struct Content {
    chains: Vec<Vec<Version>>,
    talks: Vec<(Conversation, Vec<Message>)>,
}

impl Content {
    /// Commits all, or only what passes; interleaved, as memories grow in life.
    async fn fill(
        &self,
        scene: &Scene<'_>,
        kept: impl Fn(&Version) -> bool,
        heard: impl Fn(&Conversation) -> bool,
    ) {
        let chains: Vec<_> =
            self.chains.iter().filter(|chain| kept(chain.last().unwrap())).collect();
        let longest = chains.iter().map(|chain| chain.len()).max().unwrap_or(0);
        let mut writes = Vec::new();
        for at in 0..longest {
            writes.extend(chains.iter().filter_map(|chain| chain.get(at)).map(write));
        }
        for chain in chains {
            let memory = chain[0].memory;
            let target = AliasTarget::Memory(memory);
            writes.push(Write::Alias {
                namespace: String::new(),
                name: format!("n-{memory}"),
                target,
                instead_of: None,
            });
            let target = AliasTarget::Version(memory, 1);
            writes.push(Write::Alias {
                namespace: String::new(),
                name: format!("v-{memory}"),
                target,
                instead_of: None,
            });
        }
        for (talk, messages) in self.talks.iter().filter(|(talk, _)| heard(talk)) {
            writes.push(Write::Conversation(Box::new(talk.clone())));
            writes.extend(messages.iter().map(|message| Write::Message {
                conversation: talk.id,
                message: Arc::new(message.clone()),
                indexing: indexing(&message.text),
            }));
            let target = AliasTarget::Conversation(talk.id);
            writes.push(Write::Alias {
                namespace: String::new(),
                name: format!("c-{}", talk.id),
                target,
                instead_of: None,
            });
        }
        scene.commit(writes).await;
    }
}

/// A store of whichever kind.
trait Both: Store + Keeper {}

impl<T: Store + Keeper> Both for T {}

/// So many random vaults, unless the long run wants more.
fn run<S: Store + Keeper, K>(
    open: impl AsyncFnOnce() -> Option<(S, K)>,
    cases: u32,
    check: impl AsyncFn(&dyn Both, &Content, &Grant, i64),
) {
    let cases = if std::env::var_os("YORE_FULL").is_some() { cases * 20 } else { cases };
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let Some((store, _kept)) = runtime.block_on(open()) else { return };
    let strategy = (
        prop::collection::vec(story(), 0..14),
        prop::collection::vec(talk(), 0..4),
        reach(),
        -5..150i64,
    );
    let tell = |(stories, talks, reach, then): (Vec<Story>, Vec<Talk>, Reach, i64)| {
        let chains = stories.iter().enumerate().map(|(at, story)| story.chain(at)).collect();
        let talks = talks.iter().enumerate().map(|(at, talk)| talk.told(at)).collect();
        runtime.block_on(check(&store, &Content { chains, talks }, &reach.grant(), then));
        Ok(())
    };
    runner.run(&strategy, tell).unwrap();
}

const ALL_STATUSES: [Status; 2] = [Status::Active, Status::Tombstoned];

fn every_status() -> Filter {
    Filter { statuses: ALL_STATUSES.to_vec(), ..Filter::default() }
}

async fn found(view: &dyn Snapshot, corpus: Corpus, filter: &Filter) -> BTreeSet<[u8; 16]> {
    let found = gather(view, &WORDS.join(" "), corpus, filter, time(LATE)).await;
    found.iter().map(|one| one.signals.id).collect()
}

/// The version of a chain that stood at a time, if it was recalled then.
fn stood(chain: &[Version], at: Timestamp) -> Option<&Version> {
    chain.iter().rev().find(|version| version.recorded <= at).filter(|it| it.status.is_live())
}

/// Every answer equals what the lens allows.
pub fn answers_are_exactly_what_the_lens_allows<S: Store + Keeper, K>(
    open: impl AsyncFnOnce() -> Option<(S, K)>,
    cases: u32,
) {
    run(open, cases, async |store, content, grant, then| {
        let scene = Scene::new(store, store).await;
        content.fill(&scene, |_| true, |_| true).await;
        for permit in [scene.agent(std::slice::from_ref(grant)), scene.owner()] {
            let view = scene.look_as(&permit).await;
            memories_are_exact(content, &permit, &*view, time(then)).await;
            talks_are_exact(content, &permit, &*view).await;
        }
    });
}

async fn memories_are_exact(
    content: &Content,
    permit: &Permit,
    view: &dyn Snapshot,
    then: Timestamp,
) {
    let sees = |version: &Version| visible(permit.lens(), &version.class());
    let (mut all, mut live, mut past) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for chain in &content.chains {
        let head = chain.last().unwrap();
        let id = head.memory;
        let seen = sees(head);
        let history: Vec<Version> =
            chain.iter().filter(|version| seen && sees(version)).cloned().collect();
        assert_eq!(view.history(id).await.unwrap(), history);
        assert_eq!(
            view.memory(id).await.unwrap().map(|memory| memory.head),
            seen.then(|| head.clone())
        );
        for version in chain {
            let shown = view.version(version.id).await.unwrap();
            assert_eq!(shown.is_some(), seen && sees(version));
        }
        let name = view.resolve("", &format!("n-{id}")).await.unwrap();
        assert_eq!(name, seen.then_some(AliasTarget::Memory(id)));
        let name = view.resolve("", &format!("v-{id}")).await.unwrap();
        assert_eq!(name, (seen && sees(&chain[0])).then_some(AliasTarget::Version(id, 1)));
        assert_eq!(view.aliases(id).await.unwrap().len(), usize::from(seen));
        if seen {
            all.insert(head.memory);
            live.extend(head.status.is_live().then(|| head.id.bytes()));
            past.extend(stood(chain, then).filter(|it| sees(it)).map(|it| it.id.bytes()));
        }
    }
    let page = PageRequest { limit: 1000, ..PageRequest::default() };
    let listed = view.memories(&every_status(), &page).await.unwrap().items;
    assert_eq!(listed.iter().map(|memory| memory.head.memory).collect::<BTreeSet<_>>(), all);
    assert_eq!(view.count(&every_status()).await.unwrap(), all.len() as u64);
    assert_eq!(found(view, Corpus::Memories, &Filter::default()).await, live);
    let as_of = Filter { as_of: Some(then), ..Filter::default() };
    assert_eq!(found(view, Corpus::Memories, &as_of).await, past, "as of {then}");
    let listed = view.memories(&as_of, &page).await.unwrap().items;
    assert_eq!(listed.iter().map(|memory| memory.head.id.bytes()).collect::<BTreeSet<_>>(), past);
}

async fn talks_are_exact(content: &Content, permit: &Permit, view: &dyn Snapshot) {
    let (mut talks, mut said) = (BTreeSet::new(), BTreeSet::new());
    for (talk, messages) in &content.talks {
        let seen = visible(permit.lens(), &talk.class());
        let shown = view.messages(talk.id, 0, 100).await.unwrap();
        assert_eq!(shown.len(), if seen { messages.len() } else { 0 });
        assert_eq!(view.conversation(talk.id).await.unwrap().is_some(), seen);
        let name = view.resolve("", &format!("c-{}", talk.id)).await.unwrap();
        assert_eq!(name.is_some(), seen);
        for message in messages {
            assert_eq!(view.message(talk.id, message.id).await.unwrap().is_some(), seen);
        }
        if seen {
            talks.insert(talk.id);
            said.extend(messages.iter().map(|message| message.id.bytes()));
        }
    }
    let page = PageRequest { limit: 1000, ..PageRequest::default() };
    let listed = view.conversations(&Filter::default(), &page).await.unwrap().items;
    assert_eq!(listed.iter().map(|(talk, _)| talk.id).collect::<BTreeSet<_>>(), talks);
    assert_eq!(found(view, Corpus::Messages, &Filter::default()).await, said);
}

/// Everything a view answers, as text; rows become the ids they stand for.
async fn told(content: &Content, view: &dyn Snapshot, then: i64) -> String {
    let mut told = String::new();
    let mut tell = |what: &str, answer: &dyn std::fmt::Debug| {
        told += &format!("{what}: {answer:?}\n");
    };
    for order in [Order::NewestFirst, Order::OldestFirst] {
        let mut after = None;
        loop {
            let page = PageRequest { limit: 3, after, offset: 0, order };
            let page = view.memories(&every_status(), &page).await.unwrap();
            tell("page", &page);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    let page = PageRequest { limit: 2, offset: 1, ..PageRequest::default() };
    tell("offset", &view.memories(&Filter::default(), &page).await.unwrap());
    tell("talks", &view.conversations(&Filter::default(), &page).await.unwrap());
    tell("count", &view.count(&Filter::default()).await.unwrap());
    tell("ended", &view.ended(time(LATE), 100).await.unwrap());
    tell("waiting", &{
        let waiting = view.unembedded("any", 1000).await.unwrap();
        waiting.into_iter().map(|(_, text)| text).collect::<BTreeSet<_>>()
    });
    for chain in &content.chains {
        tell("memory", &view.memory(chain[0].memory).await.unwrap());
        tell("history", &view.history(chain[0].memory).await.unwrap());
        tell("version", &view.version(chain[0].id).await.unwrap());
        tell("related", &view.related(chain[0].memory).await.unwrap());
    }
    tell("stranger", &view.version(VersionId::random()).await.unwrap());
    let filters = [
        Filter::default(),
        every_status(),
        Filter { as_of: Some(time(then)), ..Filter::default() },
        Filter { session: Some("s1".into()), ..Filter::default() },
    ];
    for filter in &filters {
        for query in ["marzipan", "harbour bicycle", "fountain violin lantern pepper glacier"] {
            for depth in [2, 50] {
                let candidates = searched(view, query, filter, depth).await;
                tell("candidates", &candidates.iter().map(unrowed).collect::<Vec<_>>());
            }
        }
    }
    told
}

async fn searched(
    view: &dyn Snapshot,
    text: &str,
    filter: &Filter,
    depth: usize,
) -> Vec<Candidate> {
    let made = indexing(text);
    let search = Search {
        text,
        tokens: &made.tokens,
        statics: made.statics.as_ref(),
        dense: None,
        corpus: Corpus::Both,
        filter,
        depth,
        now: time(LATE),
    };
    view.search(&search).await.unwrap()
}

/// A candidate without its row, which counts hidden rows too and never leaves the engine.
fn unrowed(candidate: &Candidate) -> String {
    let mut signals = candidate.signals.clone();
    signals.key = 0;
    format!("{:?} {signals:?} {:?} {:?}", candidate.row.source, candidate.standing, candidate.class)
}

/// A vault answers as if what the lens hides had never been written.
pub fn no_byte_depends_on_what_is_hidden<S: Store + Keeper, K>(
    open: impl AsyncFnOnce() -> Option<(S, K)>,
    cases: u32,
) {
    run(open, cases, async |store, content, grant, then| {
        let (whole, bare) = (Scene::new(store, store).await, Scene::new(store, store).await);
        let lens = whole.agent(std::slice::from_ref(grant)).lens().clone();
        content.fill(&whole, |_| true, |_| true).await;
        let seen = |version: &Version| visible(&lens, &version.class());
        content.fill(&bare, seen, |talk| visible(&lens, &talk.class())).await;
        let mut answers = Vec::new();
        for scene in [&whole, &bare] {
            let view = scene.look_as(&scene.agent(std::slice::from_ref(grant))).await;
            answers.push(told(content, &*view, then).await);
        }
        let differ =
            answers[0].lines().zip(answers[1].lines()).find(|(with, without)| with != without);
        assert_eq!(differ, None, "with and without what is hidden");
        assert_eq!(answers[0].len(), answers[1].len());
    });
}
