//! The protocol's sixteen conformance scenarios, for any store, and some of what they leave out.
//!
//! The published predicates often hold of an empty answer; these do not: where something must be
//! gone, something else must still be there.

use std::fmt::Write as _;

use futures::future::{BoxFuture, FutureExt};
use serde_json::json;
use yore_canon::hash::Sha256;

use crate::adapters::{DIMENSIONS, Embedder};
use crate::error::Error;
use crate::record::{Object, Question, Record, Type, Whose};
use crate::slot::{Approval, Depth, Forget, Put, Slot};
use crate::store::{Capability, MemoryStore};
use crate::upkeep::{Action, Expire, Merge, Policy, Strategy};

/// When everything happens.
pub const NOW: i64 = 1_800_000_000_000;
const DAY: i64 = 86_400_000;

/// How a scenario went.
pub type Outcome = Result<(), String>;

type Scenario = for<'a> fn(&'a Stage<'a>) -> BoxFuture<'a, Outcome>;

/// The sixteen, by the names the protocol gives them.
pub const CONFORMANCE: [(&str, Scenario); 16] = [
    ("basic_remember_recall", |stage| stage.basic().boxed()),
    ("remember_recall_by_user_filter", |stage| stage.by_user().boxed()),
    ("type_filter", |stage| stage.by_type().boxed()),
    ("forget_by_ids", |stage| stage.forget_ids().boxed()),
    ("forget_no_scope_raises", |stage| stage.forget_nothing().boxed()),
    ("expire_empty_policy_raises", |stage| stage.expire_nothing().boxed()),
    ("expire_empty_policy_object_raises", |stage| stage.expire_nothing().boxed()),
    ("expire_by_age", |stage| stage.expire_age().boxed()),
    ("merge_keep_canonical", |stage| stage.merge_canonical().boxed()),
    ("approval_required_pending", |stage| stage.pending().boxed()),
    ("capabilities_declared", |stage| stage.capabilities().boxed()),
    ("health_returns_status", |stage| stage.health().boxed()),
    ("isinstance_protocol", |stage| stage.is_store().boxed()),
    ("recall_returns_score_metadata", |stage| stage.score().boxed()),
    ("fresher_than_days_filter", |stage| stage.fresher().boxed()),
    ("multi_remember_then_recall", |stage| stage.many().boxed()),
];

/// What the protocol demands and its scenarios do not look at.
pub const BEYOND: [(&str, Scenario); 8] = [
    ("mw_025_what_has_expired_is_not_recalled", |stage| stage.expired().boxed()),
    ("mw_034_forget_by_filter_takes_only_what_fits", |stage| stage.forget_filter().boxed()),
    ("mw_035_another_persons_memory_is_not_forgotten", |stage| stage.forget_other().boxed()),
    ("mw_045_merged_words_are_found_by_either", |stage| stage.merge_content().boxed()),
    ("mw_054_demoting_changes_the_order_and_not_the_row", |stage| stage.demote().boxed()),
    ("mw_060_a_filter_costs_no_places", |stage| stage.filter_first().boxed()),
    ("mw_088_every_member_comes_back_under_its_id", |stage| stage.lossless().boxed()),
    ("mw_088_written_twice_is_there_once", |stage| stage.twice().boxed()),
];

/// Runs scenarios against a store and returns those that fail. The mark keeps them apart from
/// whatever else the store holds, and must be new each time.
pub async fn run(slot: &Slot, mark: &str, scenarios: &[(&'static str, Scenario)]) -> Vec<String> {
    let mut failed = Vec::new();
    for (name, scenario) in scenarios {
        let stage = Stage { slot, mark: format!("{mark}-{name}") };
        if let Err(why) = scenario(&stage).await {
            failed.push(format!("{name}: {why}"));
        }
    }
    failed
}

/// Where a scenario plays: a store, and an agent that nobody else has.
#[derive(Debug)]
pub struct Stage<'a> {
    slot: &'a Slot,
    mark: String,
}

macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(format!($($why)+));
        }
    };
}

impl Stage<'_> {
    fn whose(&self, user: &str) -> Whose {
        Whose { agent: format!("agent-a-{}", self.mark), user: Some(user.to_owned()) }
    }

    fn record(&self, user: &str, text: &str) -> Record {
        let id = Sha256::of(format!("{} {user} {text}", self.mark)).to_hex()[..32].to_owned();
        Record::new(id, &self.whose(user), Type::Semantic, text, NOW)
    }

    async fn put(&self, record: &Record) -> Result<String, String> {
        self.slot.put(record).await.map_err(|error| error.to_string())?;
        Ok(record.id.clone())
    }

    async fn say(&self, text: &str) -> Result<String, String> {
        self.put(&self.record("alice", text)).await
    }

    fn question(&self, query: &str, k: usize) -> Question {
        Question::new(self.whose("alice"), query, k, NOW)
    }

    async fn ask(&self, question: &Question) -> Result<Vec<(Record, f64)>, String> {
        let lane = self.slot.recall(question).await.map_err(|error| error.to_string())?;
        Ok(lane.hits)
    }

    async fn told(&self, query: &str, k: usize) -> Result<Told, String> {
        Ok(Told(self.ask(&self.question(query, k)).await?))
    }

    async fn basic(&self) -> Outcome {
        self.say("The capital of France is Paris.").await?;
        let told = self.told("capital France", 3).await?;
        ensure!(told.has("Paris"), "{told}");
        Ok(())
    }

    async fn by_user(&self) -> Outcome {
        self.say("My favorite color is blue.").await?;
        self.put(&self.record("bob", "My favorite color is purple.")).await?;
        let told = self.told("favorite color", 5).await?;
        ensure!(told.has("blue") && !told.has("purple"), "{told}");
        Ok(())
    }

    async fn by_type(&self) -> Outcome {
        self.say("Tax season is in April.").await?;
        let mut meeting = self.record("alice", "Had a meeting about taxes last Tuesday.");
        meeting.kind = Type::Episodic;
        self.put(&meeting).await?;
        let question =
            Question { types: vec![Type::Semantic], ..self.question("meeting taxes", 5) };
        let told = Told(self.ask(&question).await?);
        ensure!(told.has("April") && told.0.len() == 1, "{told}");
        Ok(())
    }

    async fn forget_ids(&self) -> Outcome {
        let mut ids = Vec::new();
        for text in ["The sky is blue.", "Water is wet.", "Trees are green."] {
            ids.push(self.say(text).await?);
        }
        self.say("The sky over the sea has a bird.").await?;
        let forget = self.forgetting(ids.clone(), Object::new());
        let mut gone = self.slot.forget(&forget).await.map_err(|error| error.to_string())?;
        gone.sort();
        ids.sort();
        ensure!(gone == ids, "forgotten: {gone:?}");
        let told = self.told("sky water tree", 5).await?;
        ensure!(told.has("bird") && told.0.len() == 1, "{told}");
        Ok(())
    }

    fn forgetting(&self, ids: Vec<String>, filter: Object) -> Forget {
        Forget { whose: self.whose("alice"), ids, filter, depth: Depth::Tombstone, now: NOW }
    }

    async fn forget_nothing(&self) -> Outcome {
        self.say("It stays.").await?;
        let done = self.slot.forget(&self.forgetting(Vec::new(), Object::new())).await;
        ensure!(matches!(done, Err(Error::Invalid { .. })), "{done:?}");
        let told = self.told("stays", 1).await?;
        ensure!(told.has("stays"), "{told}");
        Ok(())
    }

    fn expiring(&self, policy: Policy, action: Action) -> Expire {
        Expire { whose: self.whose("alice"), policy, action, only: None, now: NOW }
    }

    async fn expire_nothing(&self) -> Outcome {
        self.say("It stays.").await?;
        let done = self.slot.expire(&self.expiring(Policy::default(), Action::Forget)).await;
        ensure!(matches!(done, Err(Error::Invalid { .. })), "{done:?}");
        let told = self.told("stays", 1).await?;
        ensure!(told.has("stays"), "{told}");
        Ok(())
    }

    async fn expire_age(&self) -> Outcome {
        let mut ancient = self.record("alice", "An ancient fact from long ago.");
        ancient.created_at = NOW - 365 * DAY;
        let ancient = self.put(&ancient).await?;
        self.say("A fresh fact from today.").await?;
        let policy = Policy { older_than_days: Some(180), ..Policy::default() };
        let taken = self.slot.expire(&self.expiring(policy, Action::Forget)).await;
        ensure!(taken == Ok(vec![ancient]), "{taken:?}");
        let told = self.told("ancient fresh fact", 5).await?;
        ensure!(told.has("fresh") && !told.has("ancient"), "{told}");
        Ok(())
    }

    fn merging(&self, canonical: &str, duplicates: &[String], strategy: Strategy) -> Merge {
        Merge {
            whose: self.whose("alice"),
            canonical: canonical.to_owned(),
            duplicates: duplicates.to_vec(),
            strategy,
            only: None,
            now: NOW,
        }
    }

    async fn merge_canonical(&self) -> Outcome {
        let mut ids = Vec::new();
        for number in ["one", "two", "three"] {
            ids.push(self.say(&format!("Paris is the duplicate fact {number}.")).await?);
        }
        let merge = self.merging(&ids[0], &ids[1..], Strategy::KeepCanonical);
        let merged = self.slot.merge(&merge).await.map_err(|error| error.to_string())?;
        ensure!(merged.survivor.as_ref() == Some(&ids[0]), "{merged:?}");
        ensure!(merged.absorbed.len() == 2, "{merged:?}");
        let told = self.told("duplicate fact", 10).await?;
        ensure!(told.0.len() == 1 && told.has("one"), "{told}");
        Ok(())
    }

    async fn pending(&self) -> Outcome {
        let record = self.record("alice", "A secret plan that waits.");
        let put = self.slot.remember(&record, Approval::Required).await;
        ensure!(put == Ok(Put::Pending), "{put:?}");
        let told = self.told("A secret plan that waits.", 5).await?;
        ensure!(told.0.is_empty(), "{told}");
        let approved = self.slot.approve(&record.id).await;
        ensure!(approved == Ok(Some(Put::Created)), "{approved:?}");
        let told = self.told("A secret plan that waits.", 5).await?;
        ensure!(told.has("secret plan"), "approved: {told}");
        Ok(())
    }

    async fn capabilities(&self) -> Outcome {
        let declared = self.slot.store().capabilities();
        ensure!(declared.contains(&Capability::Semantic), "{declared:?}");
        ensure!(declared.iter().all(|it| Capability::ALL.contains(it)), "{declared:?}");
        Ok(())
    }

    async fn health(&self) -> Outcome {
        let health = self.slot.store().health().await.map_err(|error| error.to_string())?;
        ensure!(health.status == "ok", "{health:?}");
        Ok(())
    }

    async fn is_store(&self) -> Outcome {
        let store: &dyn MemoryStore = self.slot.store();
        let nothing = store.locate(&self.whose("alice"), "no such id").await;
        ensure!(nothing == Ok(None), "{nothing:?}");
        let forgot = store.forget(&self.whose("alice"), "no such place", Depth::Erase).await;
        ensure!(forgot == Ok(false), "{forgot:?}");
        Ok(())
    }

    async fn score(&self) -> Outcome {
        self.say("The sun shines bright over the field.").await?;
        let hits = self.ask(&self.question("sun bright shines", 3)).await?;
        let (record, score) = hits.first().ok_or("nothing was found")?;
        ensure!(score.is_finite() && *score > 0.0, "{score}");
        ensure!(record.kind == Type::Semantic && record.content.contains("sun"), "{record:?}");
        Ok(())
    }

    async fn fresher(&self) -> Outcome {
        let mut ancient = self.record("alice", "ancient news from a year ago.");
        ancient.created_at = NOW - 365 * DAY;
        self.put(&ancient).await?;
        self.say("fresh news from today.").await?;
        let question = self.question("ancient news fresh news", 5).fresher_than_days(30);
        let told = Told(self.ask(&question).await?);
        ensure!(told.has("fresh") && !told.has("ancient"), "{told}");
        Ok(())
    }

    async fn many(&self) -> Outcome {
        for number in 0..10 {
            self.say(&format!("city fact number {number:02} about somewhere.")).await?;
        }
        let told = self.told("city fact", 10).await?;
        ensure!(told.0.len() == 10, "{told}");
        Ok(())
    }

    async fn expired(&self) -> Outcome {
        for (text, end) in [("the offer ended", NOW), ("the offer goes on", NOW + 1)] {
            let mut record = self.record("alice", text);
            record.expires_at = Some(end);
            self.put(&record).await?;
        }
        let told = self.told("the offer", 5).await?;
        ensure!(told.0.len() == 1 && told.has("goes on"), "{told}");
        Ok(())
    }

    async fn forget_filter(&self) -> Outcome {
        for (text, topic) in [("apples are red", "fruit"), ("carrots are orange", "roots")] {
            let mut record = self.record("alice", text);
            record.metadata = json!({"topic": topic}).as_object().cloned().unwrap_or_default();
            self.put(&record).await?;
        }
        let filter = json!({"topic": "fruit"}).as_object().cloned().unwrap_or_default();
        let gone = self.slot.forget(&self.forgetting(Vec::new(), filter)).await;
        ensure!(gone.as_ref().is_ok_and(|gone| gone.len() == 1), "{gone:?}");
        let told = self.told("apples carrots", 5).await?;
        ensure!(told.0.len() == 1 && told.has("carrots"), "{told}");
        Ok(())
    }

    async fn forget_other(&self) -> Outcome {
        let bobs = self.put(&self.record("bob", "bob plays chess")).await?;
        let gone = self.slot.forget(&self.forgetting(vec![bobs], Object::new())).await;
        ensure!(gone == Ok(Vec::new()), "{gone:?}");
        let question = Question::new(self.whose("bob"), "chess", 5, NOW);
        let told = Told(self.ask(&question).await?);
        ensure!(told.has("chess"), "{told}");
        Ok(())
    }

    async fn merge_content(&self) -> Outcome {
        let first = self.say("Zanzibar is an island.").await?;
        let second = self.say("Cloves grow in plantations.").await?;
        let merge = self.merging(&first, &[second], Strategy::MergeContent);
        let merged = self.slot.merge(&merge).await.map_err(|error| error.to_string())?;
        ensure!(merged.survivor.as_ref() == Some(&first), "{merged:?}");
        for query in ["Zanzibar island", "Cloves plantations"] {
            let told = self.told(query, 5).await?;
            ensure!(told.0.len() == 1 && told.has("Zanzibar") && told.has("Cloves"), "{told}");
        }
        Ok(())
    }

    async fn demote(&self) -> Outcome {
        let mut weak = self.record("alice", "the harbour opens at six");
        weak.confidence = 0.3;
        self.put(&weak).await?;
        self.say("the harbour opens at six or so, perhaps, in summer").await?;
        let before = self.ask(&self.question("the harbour opens at six", 2)).await?;
        ensure!(before.first().is_some_and(|(first, _)| first.id == weak.id), "before: {before:?}");
        let policy = Policy { confidence_below: Some(0.5), ..Policy::default() };
        let taken = self.slot.expire(&self.expiring(policy, Action::Demote)).await;
        ensure!(taken == Ok(vec![weak.id.clone()]), "{taken:?}");
        let after = self.ask(&self.question("the harbour opens at six", 2)).await?;
        ensure!(after.len() == 2, "{after:?}");
        ensure!(after[1].0 == weak, "demoted and unchanged: {after:?}");
        Ok(())
    }

    async fn filter_first(&self) -> Outcome {
        for number in 0..30 {
            self.say(&format!("a note on gardens, number {number}")).await?;
        }
        let mut wanted = self.record("alice", "a longer note that mentions gardens only once");
        wanted.metadata = json!({"kept": {"by": "me"}}).as_object().cloned().unwrap_or_default();
        self.put(&wanted).await?;
        let mut question = self.question("a note on gardens", 1);
        question.filter = json!({"kept.by": "me"}).as_object().cloned().unwrap_or_default();
        let told = Told(self.ask(&question).await?);
        ensure!(told.0.len() == 1 && told.has("longer"), "{told}");
        Ok(())
    }

    async fn lossless(&self) -> Outcome {
        let mut record = self.record("alice", "Ümlaut, emoji 🙂 and\ta tab");
        record.kind = Type::Emotional;
        record.metadata = json!({"deep": {"list": [1, 2.5, null, "x"]}, "flag": false, "n": 7})
            .as_object()
            .cloned()
            .unwrap_or_default();
        record.confidence = 0.123_456_789_012;
        record.source = Some("user".into());
        record.created_at = NOW - 5 * DAY - 1;
        record.updated_at = NOW - 1;
        record.expires_at = Some(NOW + DAY);
        record.extra =
            json!({"sentiment": "mixed", "valence": -0.5}).as_object().cloned().unwrap_or_default();
        self.put(&record).await?;
        let hits = self.ask(&self.question("emoji tab", 5)).await?;
        ensure!(hits.len() == 1, "{}", Told(hits));
        ensure!(hits[0].0 == record, "{:?} is not {record:?}", hits[0].0);
        Ok(())
    }

    async fn twice(&self) -> Outcome {
        let record = self.record("alice", "the ferry leaves at noon");
        let puts = [self.slot.put(&record).await, self.slot.put(&record).await];
        ensure!(puts == [Ok(Put::Created), Ok(Put::Same)], "{puts:?}");
        let changed = Record { content: "the ferry leaves at one".into(), ..record };
        let put = self.slot.put(&changed).await;
        ensure!(put == Ok(Put::Replaced), "{put:?}");
        let told = self.told("the ferry leaves", 5).await?;
        ensure!(told.0.len() == 1 && told.has("at one"), "{told}");
        Ok(())
    }
}

/// What was found, to look into and to show.
struct Told(Vec<(Record, f64)>);

impl Told {
    fn has(&self, words: &str) -> bool {
        self.0.iter().any(|(record, _)| record.content.contains(words))
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut line = String::new();
        for (record, score) in &self.0 {
            write!(line, "[{score:.4} {}] ", record.content)?;
        }
        write!(f, "found {}: {line}", self.0.len())
    }
}

/// Vectors of words and their parts, by hashing: the same for the same text, near for similar.
#[derive(Clone, Copy, Debug, Default)]
pub struct WordHash;

impl Embedder for WordHash {
    fn embed(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0_f32; DIMENSIONS];
        let mut add = |part: &str, weight: f32| {
            let hash = Sha256::of(part);
            let bytes = hash.as_bytes();
            let place = usize::from(u16::from_le_bytes([bytes[0], bytes[1]])) % DIMENSIONS;
            vector[place] += if bytes[2].is_multiple_of(2) { weight } else { -weight };
        };
        for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
            if word.is_empty() {
                continue;
            }
            add(word, 1.0);
            let letters: Vec<char> = word.chars().collect();
            for three in letters.windows(3) {
                add(&three.iter().collect::<String>(), 0.3);
            }
        }
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt().max(1e-9);
        vector.iter().map(|number| number / length).collect()
    }
}
