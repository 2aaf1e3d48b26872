//! The books of a vault: holds, grants, tokens, operations, profiles, procedures, jobs, post.

#![expect(clippy::missing_panics_doc, reason = "a story panics when the guarantee does not hold")]

use std::slice::from_ref;

use serde_json::json;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Bearer, Grant, Labels, Token};
use yore_domain::hold::{Hold, HoldReason, HoldState, Rule, RuleAction};
use yore_domain::job::{Job, JobState};
use yore_domain::kind::Kind;
use yore_domain::memory::Draft;
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::procedure::{Machine, Procedure};
use yore_domain::profile::Profile;
use yore_domain::stream::{Frame, Letter, LetterState, Pending, Stream, StreamState};
use yore_domain::{Error, HoldId, JobId, TokenId};

use super::{Scene, grant, time};
use crate::plan::Operation;
use crate::snapshot::Concern;
use crate::{CommitError, Plan, Precondition, Write};

fn hold(scene: &Scene<'_>, agent: Option<&str>) -> Hold {
    Hold {
        id: HoldId::random(),
        mutation: Mutation::Forget {
            memories: vec![yore_domain::MemoryId::random()],
            depth: Depth::Tombstone,
            reason: None,
        },
        reason: HoldReason::Requested,
        reasoning: None,
        diff: Vec::new(),
        judged: Vec::new(),
        agent: agent.map(Into::into),
        grant: None,
        protocol: "suite".into(),
        asked: scene.tick(),
        expires: None,
        state: HoldState::Pending,
        decided_by: None,
        decided: None,
        note: None,
        outcome: None,
        cluster: None,
        learned: None,
    }
}

/// Holds are listed oldest first, to the owner all and to an agent its own; deciding is once.
pub async fn holds_are_for_the_owner_and_the_asker(scene: &Scene<'_>) {
    let (mine, other) = (hold(scene, Some("scheduler")), hold(scene, Some("other")));
    scene
        .commit(vec![Write::Hold(Box::new(other.clone())), Write::Hold(Box::new(mine.clone()))])
        .await;
    let owner = scene.look().await;
    let pending = owner.holds(HoldState::Pending, 10).await.unwrap();
    assert_eq!(pending, [mine.clone(), other.clone()], "by when they were asked");
    assert_eq!(owner.holds(HoldState::Pending, 1).await.unwrap().len(), 1);
    let agent = scene.look_as(&scene.agent(&[grant("scheduler")])).await;
    assert_eq!(agent.holds(HoldState::Pending, 10).await.unwrap(), from_ref(&mine));
    assert_eq!(agent.hold(other.id).await.unwrap(), None);
    assert_eq!(agent.hold(mine.id).await.unwrap(), Some(mine.clone()));

    let decided = Hold { state: HoldState::Approved, ..mine.clone() };
    let deciding = || {
        let mut plan = scene.plan(vec![Write::Hold(Box::new(decided.clone()))]);
        plan.preconditions.push(Precondition::Pending(mine.id));
        plan
    };
    scene.run(deciding()).await.unwrap();
    assert!(matches!(scene.run(deciding()).await, Err(CommitError::Stale(_))));
    let after = scene.look().await;
    assert_eq!(after.holds(HoldState::Pending, 10).await.unwrap(), [other]);
    assert_eq!(after.holds(HoldState::Approved, 10).await.unwrap(), [decided]);
}

/// Grants, tokens and rules move their epochs, so that a judgement made before is stale.
pub async fn grants_and_tokens_move_the_epoch(scene: &Scene<'_>) {
    let given = grant("scheduler");
    let token = Token {
        id: TokenId::random(),
        hash: "ab".repeat(32),
        bearer: Bearer::Grant(given.id),
        issued: time(0),
        expires: None,
        revoked: None,
        note: None,
    };
    let start = scene.look().await.epochs().await.unwrap();
    scene.commit(vec![Write::Grant(Box::new(given.clone()))]).await;
    scene.commit(vec![Write::Token(Box::new(token.clone()))]).await;
    let view = scene.look().await;
    let epochs = view.epochs().await.unwrap();
    assert!(epochs.grants > start.grants && epochs.rules == start.rules);
    assert_eq!(view.grant(given.id).await.unwrap(), Some(given.clone()));
    assert_eq!(view.grants().await.unwrap(), from_ref(&given));
    assert_eq!(view.token(&token.hash).await.unwrap(), Some(token.clone()));
    assert_eq!(view.token("unknown").await.unwrap(), None);
    let agent = scene.look_as(&scene.agent(from_ref(&given))).await;
    assert!(agent.grants().await.unwrap().is_empty() && agent.tokens().await.unwrap().is_empty());
    assert_eq!(agent.grant(given.id).await.unwrap(), None);
    assert_eq!(agent.token(&token.hash).await.unwrap(), None);

    let at = scene.tick();
    scene.commit(vec![Write::RevokeGrant(given.id, at), Write::RevokeToken(token.id, at)]).await;
    let view = scene.look().await;
    assert_eq!(view.grant(given.id).await.unwrap().unwrap().revoked, Some(at));
    assert_eq!(view.tokens().await.unwrap()[0].revoked, Some(at));
    let mut plan = scene.plan(vec![]);
    plan.preconditions.push(Precondition::GrantEpoch(epochs.grants));
    assert!(matches!(scene.run(plan).await, Err(CommitError::Stale(_))));

    let rule = |name: &str| Rule::new(name, RuleAction::Hold);
    scene.commit(vec![Write::Rule(Box::new(rule("b"))), Write::Rule(Box::new(rule("a")))]).await;
    let stricter = Rule { action: RuleAction::Refuse, ..rule("b") };
    scene.commit(vec![Write::Rule(Box::new(stricter.clone()))]).await;
    let view = scene.look().await;
    assert_eq!(view.rules().await.unwrap(), [stricter, rule("a")], "in the order they were made");
    assert!(view.epochs().await.unwrap().rules > epochs.rules);
    let mut plan = scene.plan(vec![Write::RemoveRule("a".into())]);
    plan.preconditions.push(Precondition::RuleEpoch(epochs.rules));
    assert!(matches!(scene.run(plan).await, Err(CommitError::Stale(_))));
    scene.commit(vec![Write::RemoveRule("a".into())]).await;
    assert_eq!(scene.look().await.rules().await.unwrap().len(), 1);
}

/// An operation id is answered with the first result; another request under it is refused.
pub async fn an_operation_happens_once(scene: &Scene<'_>) {
    let operation = |fingerprint: &str| Operation {
        caller: "owner".into(),
        id: "op-1".into(),
        fingerprint: fingerprint.into(),
        result: json!({"answer": 42}),
    };
    let attempt = |fingerprint: &str| {
        let mut plan = scene.plan(vec![]);
        plan.operation = Some(operation(fingerprint));
        plan
    };
    scene.run(attempt("f1")).await.unwrap();
    assert!(matches!(scene.run(attempt("f1")).await, Err(CommitError::Stale(_))));
    let other = scene.run(attempt("f2")).await;
    assert!(matches!(other, Err(CommitError::Failed(Error::Conflict { .. }))), "{other:?}");
    let view = scene.look().await;
    let known = view.operation("owner", "op-1").await.unwrap().unwrap();
    assert_eq!((known.fingerprint.as_str(), known.result), ("f1", json!({"answer": 42})));
    assert!(view.operation("someone", "op-1").await.unwrap().is_none());
}

/// A profile's version only rises; what it was can be read.
pub async fn profiles_only_rise(scene: &Scene<'_>) {
    let profile = |user: Option<&str>, version: u64| Profile {
        user: user.map(Into::into),
        version,
        document: json!({"version": version}).as_object().cloned().unwrap(),
        recorded: scene.tick(),
    };
    let (first, second) = (profile(None, 1), profile(None, 5));
    scene.commit(vec![Write::Profile(Box::new(first.clone()))]).await;
    scene.commit(vec![Write::Profile(Box::new(second.clone()))]).await;
    let stale = scene.run(scene.plan(vec![Write::Profile(Box::new(profile(None, 5)))])).await;
    assert!(stale.is_err());
    for (version, holds) in [(Some(1), false), (None, false), (Some(5), true)] {
        let mut plan = scene.plan(vec![]);
        plan.preconditions.push(Precondition::Profile(None, version));
        assert_eq!(scene.run(plan).await.is_ok(), holds, "{version:?}");
    }
    scene.commit(vec![Write::Profile(Box::new(profile(Some("ada"), 1)))]).await;
    let view = scene.look().await;
    assert_eq!(view.profile(None, None).await.unwrap(), Some(second));
    assert_eq!(view.profile(None, Some(first.recorded)).await.unwrap(), Some(first));
    assert_eq!(view.profile(Some("ada"), None).await.unwrap().unwrap().version, 1);
    // A profile is of its own class: whoever sees that class sees it.
    let wide = grant("biographer");
    let low = Grant { ceiling: Sensitivity::Internal, ..grant("scheduler") };
    let work = Labels::Under(vec![Label::new("work").unwrap()]);
    let narrow = Grant { read: work, ..grant("clerk") };
    for (grant, seen) in [(wide, true), (low, false), (narrow, false)] {
        let agent = scene.look_as(&scene.agent(&[grant])).await;
        assert_eq!(agent.profile(None, None).await.unwrap().is_some(), seen);
    }
    scene.commit(vec![Write::EraseProfile(None)]).await;
    assert_eq!(scene.look().await.profile(None, None).await.unwrap(), None);
}

/// A procedure is seen by whoever sees the memory that carries it.
pub async fn procedures_follow_their_memory(scene: &Scene<'_>) {
    let mut draft = Draft::new(Kind::Procedural, "deploy");
    draft.content.governance.labels = vec![Label::new("work").unwrap()];
    let memory = scene.remember(draft).await.memory;
    let machine = Machine {
        name: "deploy".into(),
        initial: "idle".into(),
        states: vec!["idle".into(), "live".into()],
        transitions: Vec::new(),
        current: None,
        metadata: serde_json::Map::new(),
    };
    let procedure = Procedure { memory, machine, history: Vec::new() };
    scene.commit(vec![Write::Procedure(Box::new(procedure.clone()))]).await;
    let view = scene.look().await;
    assert_eq!(view.procedure(memory).await.unwrap(), Some(procedure.clone()));
    assert_eq!(view.procedures(Some("deploy")).await.unwrap(), from_ref(&procedure));
    assert_eq!(view.procedures(None).await.unwrap().len(), 1);
    assert!(view.procedures(Some("other")).await.unwrap().is_empty());
    for (label, seen) in [("work", true), ("health", false)] {
        let reads = Labels::Under(vec![Label::new(label).unwrap()]);
        let agent = scene.agent(&[Grant { read: reads, ..grant("scheduler") }]);
        let view = scene.look_as(&agent).await;
        assert_eq!(view.procedure(memory).await.unwrap().is_some(), seen);
        assert_eq!(view.procedures(None).await.unwrap().len(), usize::from(seen));
    }
}

/// Jobs move and are listed newest first; the census counts; settings are kept.
pub async fn jobs_are_kept(scene: &Scene<'_>) {
    let job = |kind: &str| Job {
        id: JobId::random(),
        kind: kind.into(),
        state: JobState::Queued,
        input: json!({"file": "a.zip"}),
        checkpoint: json!(null),
        report: json!(null),
        done: 0,
        total: None,
        error: None,
        created: scene.tick(),
        updated: time(0),
    };
    let (first, second) = (job("import"), job("embed"));
    scene
        .commit(vec![Write::Job(Box::new(first.clone())), Write::Job(Box::new(second.clone()))])
        .await;
    let moved = Job { state: JobState::Running, done: 7, ..first.clone() };
    let setting = Write::Setting("greeting".into(), json!("hello"));
    scene.commit(vec![Write::Job(Box::new(moved.clone())), setting]).await;
    let view = scene.look().await;
    assert_eq!(view.job(first.id).await.unwrap(), Some(moved.clone()));
    assert_eq!(view.jobs(10).await.unwrap(), [second.clone(), moved]);
    assert_eq!(view.setting("greeting").await.unwrap(), Some(json!("hello")));
    assert_eq!(view.setting("absent").await.unwrap(), None);
    scene.commit(vec![Write::RemoveJob(first.id)]).await;
    scene.remember(Draft::text("tea")).await;
    let view = scene.look().await;
    assert_eq!(view.jobs(10).await.unwrap(), [second]);
    let census = view.census().await.unwrap();
    assert_eq!((census.memories, census.versions, census.unembedded), (1, 1, 1));
    assert!(census.bytes > 0);
    let agent = scene.look_as(&scene.agent(&[grant("scheduler")])).await;
    assert!(agent.jobs(10).await.unwrap().is_empty());
    assert_eq!(agent.census().await.unwrap(), crate::snapshot::Census::default());
    let all = Concern::Unused(scene.tick());
    let (count, first) = view.concerning(all, 5).await.unwrap();
    assert_eq!((count, first.len()), (1, 1));
    assert_eq!(view.concerning(Concern::Stale(scene.tick()), 0).await.unwrap(), (1, Vec::new()));
    assert_eq!(view.concerning(Concern::Changing(1), 5).await.unwrap().0, 0);
    let ending = Concern::Ending(time(0), scene.tick());
    assert_eq!(view.concerning(ending, 5).await.unwrap().0, 0);
    assert_eq!(agent.concerning(all, 5).await.unwrap(), (0, Vec::new()), "none of their business");
    assert!(agent.tally().await.unwrap().is_empty());
}

/// Frames and letters come back byte for byte, in order, until they are acknowledged.
pub async fn streams_and_letters_are_kept(scene: &Scene<'_>) {
    let stream = Stream {
        sender: "did:a".into(),
        id: "s-1".into(),
        state: StreamState::InProgress,
        window: 4,
        next: 3,
        acknowledged: 0,
        request: "r-1".into(),
        pending: Pending::Answer { until: time(60) },
        revision: 1,
        opened: time(0),
        updated: time(0),
    };
    let frame = |number: u64| Frame { number, bytes: vec![u8::try_from(number).unwrap(); 3] };
    let mut writes = vec![Write::Stream(Box::new(stream.clone()))];
    writes.extend((0..3).map(|number| Write::Frame {
        sender: "did:a".into(),
        stream: "s-1".into(),
        frame: frame(number),
    }));
    scene.commit(writes).await;
    let view = scene.look().await;
    assert_eq!(view.stream("did:a", "s-1").await.unwrap(), Some(stream));
    assert_eq!(view.stream("did:b", "s-1").await.unwrap(), None);
    assert_eq!(view.frames("did:a", "s-1", 1, 10).await.unwrap(), [frame(1), frame(2)]);
    scene
        .commit(vec![Write::DropFrames { sender: "did:a".into(), stream: "s-1".into(), below: 2 }])
        .await;
    let view = scene.look().await;
    assert_eq!(view.frames("did:a", "s-1", 0, 10).await.unwrap(), [frame(2)]);

    let letter = |id: &str| Letter {
        inbox: "scheduler".into(),
        sender: "did:a".into(),
        id: id.into(),
        digest: "d".into(),
        thread: "t".into(),
        stream: None,
        bytes: id.as_bytes().to_vec(),
        state: LetterState::Queued,
        received: time(0),
        expires: time(100),
        delivered: None,
    };
    scene
        .commit(vec![
            Write::Letter(Box::new(letter("l-2"))),
            Write::Letter(Box::new(letter("l-1"))),
        ])
        .await;
    let read = Letter { state: LetterState::Acknowledged, ..letter("l-2") };
    let view = scene.look().await;
    assert_eq!(view.letters("scheduler", 10).await.unwrap(), [letter("l-2"), letter("l-1")]);
    scene.commit(vec![Write::Letter(Box::new(read.clone()))]).await;
    let view = scene.look().await;
    assert_eq!(view.letters("scheduler", 10).await.unwrap(), [letter("l-1")]);
    assert_eq!(view.letter("did:a", "l-2").await.unwrap(), Some(read));
    assert!(view.letters("other", 10).await.unwrap().is_empty());
    assert_eq!(view.waiting("scheduler").await.unwrap(), [("did:a".to_owned(), 1)]);
}

/// A stream that moved meanwhile and a letter that came already stop a commit.
pub async fn streams_and_letters_are_not_overtaken(scene: &Scene<'_>) {
    let stream = Stream {
        sender: "did:a".into(),
        id: "s-1".into(),
        state: StreamState::Completed,
        window: 4,
        next: 1,
        acknowledged: 0,
        request: "r-1".into(),
        pending: Pending::Changes { cursor: None },
        revision: 7,
        opened: time(0),
        updated: time(10),
    };
    let letter = Letter {
        inbox: String::new(),
        sender: "did:a".into(),
        id: "r-1".into(),
        digest: "d".into(),
        thread: "t".into(),
        stream: Some("s-1".into()),
        bytes: Vec::new(),
        state: LetterState::Acknowledged,
        received: time(10),
        expires: time(100),
        delivered: None,
    };
    let young = Letter { id: "r-2".into(), received: time(20), ..letter.clone() };
    let new = || Precondition::Stream("did:a".into(), "s-1".into(), None);
    let unsent = || Precondition::Unsent("did:a".into(), "r-1".into());
    let frame = Frame { number: 0, bytes: vec![1] };
    let writes = vec![
        Write::Stream(Box::new(stream.clone())),
        Write::Frame { sender: "did:a".into(), stream: "s-1".into(), frame },
        Write::Letter(Box::new(letter)),
        Write::Letter(Box::new(young)),
    ];
    let run = async |writes: Vec<Write>, preconditions: Vec<Precondition>| {
        scene.run(Plan { preconditions, ..scene.plan(writes) }).await
    };
    assert!(run(writes, vec![new(), unsent()]).await.is_ok());
    for stale in [new(), unsent(), Precondition::Stream("did:a".into(), "s-1".into(), Some(6))] {
        let refused = run(Vec::new(), vec![stale.clone()]).await;
        assert!(matches!(refused, Err(CommitError::Stale(_))), "{stale:?}");
    }
    let moved = Precondition::Stream("did:a".into(), "s-1".into(), Some(7));
    assert!(run(Vec::new(), vec![moved]).await.is_ok());

    scene.commit(vec![Write::DropStreams(time(10)), Write::DropLetters(time(10))]).await;
    let view = scene.look().await;
    assert_eq!(view.stream("did:a", "s-1").await.unwrap(), Some(stream));
    assert!(view.letter("did:a", "r-1").await.unwrap().is_some());
    scene.commit(vec![Write::DropStreams(time(11)), Write::DropLetters(time(11))]).await;
    let view = scene.look().await;
    assert_eq!(view.stream("did:a", "s-1").await.unwrap(), None);
    assert!(view.frames("did:a", "s-1", 0, 9).await.unwrap().is_empty());
    assert!(view.letter("did:a", "r-1").await.unwrap().is_none());
    assert!(view.letter("did:a", "r-2").await.unwrap().is_some());
    scene.commit(vec![Write::DropLetters(time(21))]).await;
    assert!(scene.look().await.letter("did:a", "r-2").await.unwrap().is_none());
}
