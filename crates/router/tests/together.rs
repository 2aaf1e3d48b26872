//! Several stores as one.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use yore_canon::key::{Algorithm, SigningKey};
use yore_router::adapters::{Edition, Mem0, SqliteVec};
use yore_router::envelope::Claim;
use yore_router::fuse::Fusion;
use yore_router::suite::NOW;
use yore_router::{
    Approval, Ask, Capabilities, Capability, Depth, Error, Forget, Found, Health, InMemory, Keeps,
    MemoryStore, Neighbour, Object, Options, Page, Question, Record, Result, Router, Slot, Terms,
    Whose, WritePolicy,
};

use crate::{alice, fakes, file, question, record, slot};

#[tokio::test]
async fn mw_088_one_fact_in_two_stores_is_one_hit_and_is_forgotten_in_both() {
    let (address, state) = fakes::mem0().await;
    let mem0 = Mem0::new(format!("http://{address}"), Edition::Server).unwrap();
    let slots = vec![slot("file", file(), 5000), slot("mem0", mem0, 5000)];
    let router = Router::new(slots, Options::default()).unwrap();
    for (id, text) in [("1", "the mill is by the river"), ("2", "the mill has a cat")] {
        let done = router.remember(&record(id, text), Approval::NotNeeded).await.unwrap();
        assert_eq!(done.stores, ["file", "mem0"]);
    }
    for fusion in [Fusion::Rrf, Fusion::Max, Fusion::Weighted] {
        let ask = Ask { fusion: Some(fusion), ..Ask::new(question("mill river", 5)) };
        let recalled = router.recall(&ask, Vec::new()).await.unwrap();
        let ids: Vec<&str> = recalled.hits.iter().map(|hit| hit.record.id.as_str()).collect();
        assert_eq!(ids, ["1", "2"], "{fusion:?}");
        assert_eq!(recalled.hits[0].stores, ["file", "mem0"]);
        assert_eq!(recalled.fusion, fusion);
    }
    let ask = Ask { quorum: 2, ..Ask::new(question("mill", 5)) };
    assert_eq!(router.recall(&ask, Vec::new()).await.unwrap().hits.len(), 2);
    let forget = Forget {
        whose: alice(),
        ids: vec!["1".into()],
        filter: Object::new(),
        depth: Depth::Erase,
        now: NOW,
    };
    let forgotten = router.forget(&forget).await.unwrap();
    assert_eq!(forgotten.ids, ["1"]);
    assert!(forgotten.stores.iter().all(|report| report.count == 1));
    assert_eq!(state.len(), 1);
    let recalled = router.recall(&Ask::new(question("mill river", 5)), Vec::new()).await.unwrap();
    assert_eq!(recalled.hits.len(), 1);
}

#[tokio::test]
async fn mw_031_mw_052_guards_stand_before_every_store() {
    let router = Router::new(vec![slot("file", file(), 5000)], Options::default()).unwrap();
    let forget = Forget {
        whose: alice(),
        ids: Vec::new(),
        filter: Object::new(),
        depth: Depth::Erase,
        now: NOW,
    };
    assert!(matches!(router.forget(&forget).await, Err(Error::Invalid { path: "ids", .. })));
    let expire = yore_router::Expire {
        whose: alice(),
        policy: yore_router::Policy::default(),
        action: yore_router::Action::Forget,
        only: None,
        now: NOW,
    };
    assert!(matches!(router.expire(&expire).await, Err(Error::Invalid { path: "policy", .. })));
    assert!(Router::new(Vec::new(), Options::default()).is_err(), "MW-080");
}

#[tokio::test]
async fn mw_053_a_store_that_does_not_track_recalls_is_left_out_or_refuses() {
    let (address, _) = fakes::mem0().await;
    let mem0 = Mem0::new(format!("http://{address}"), Edition::Server).unwrap();
    let slots = vec![slot("file", file(), 5000), slot("mem0", mem0, 5000)];
    let router = Router::new(slots, Options::default()).unwrap();
    router.remember(&record("1", "an owl in the barn"), Approval::NotNeeded).await.unwrap();
    router.remember(&record("2", "a fox in the wood"), Approval::NotNeeded).await.unwrap();
    let recalled =
        router.recall(&Ask::new(question("an owl in the barn", 1)), Vec::new()).await.unwrap();
    assert_eq!(recalled.hits[0].record.id, "1", "and it is noted that it was recalled");
    let expire = yore_router::Expire {
        whose: alice(),
        policy: yore_router::Policy { no_recall_in_days: Some(30), ..Default::default() },
        action: yore_router::Action::Forget,
        only: None,
        now: NOW + 1,
    };
    let done = router.expire(&expire).await.unwrap();
    assert_eq!(done.ids, ["2"], "what was recalled stays");
    assert_eq!(done.stores.len(), 1);
    let refused = router.slots()[1].expire(&expire).await;
    assert!(matches!(refused, Err(Error::Unsupported(_))), "{refused:?}");
}

#[tokio::test]
async fn mw_081_primary_only_writes_to_the_first_store() {
    let slots = vec![slot("one", file(), 5000), slot("two", file(), 5000)];
    let options = Options { write: WritePolicy::PrimaryOnly, ..Options::default() };
    let router = Router::new(slots, options).unwrap();
    let done = router.remember(&record("1", "only here"), Approval::NotNeeded).await.unwrap();
    assert_eq!(done.stores, ["one"]);
    assert_eq!(crate::texts(&router.slots()[1], "only here").await, [""; 0]);
}

/// A store over a file that signs, or knows relations.
#[derive(Debug)]
struct Dressed {
    file: SqliteVec,
    key: Option<SigningKey>,
    near: Vec<(&'static str, &'static str, u8)>,
}

impl MemoryStore for Dressed {
    fn capabilities(&self) -> Capabilities {
        let mut all = self.file.capabilities();
        all.insert(Capability::Graph);
        all
    }

    fn keeps(&self) -> Keeps {
        self.file.keeps()
    }

    fn health(&self) -> BoxFuture<'_, Result<Health>> {
        self.file.health()
    }

    fn remember<'a>(&'a self, record: &'a Record) -> BoxFuture<'a, Result<String>> {
        self.file.remember(record)
    }

    fn locate<'a>(
        &'a self,
        whose: &'a Whose,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>> {
        self.file.locate(whose, id)
    }

    fn recall<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Found>>> {
        async move {
            let mut found = self.file.recall(question).await?;
            for (place, found) in found.iter_mut().enumerate() {
                let (record, score) = (&found.record, found.score);
                let claim = Claim { store: "signed", question, place, record, score };
                found.envelope = self.key.as_ref().map(|key| claim.sign(key, question.now));
            }
            Ok(found)
        }
        .boxed()
    }

    fn list<'a>(&'a self, whose: &'a Whose, after: Option<&'a str>) -> BoxFuture<'a, Result<Page>> {
        self.file.list(whose, after)
    }

    fn forget<'a>(
        &'a self,
        whose: &'a Whose,
        place: &'a str,
        depth: Depth,
    ) -> BoxFuture<'a, Result<bool>> {
        self.file.forget(whose, place, depth)
    }

    fn neighbours<'a>(
        &'a self,
        _whose: &'a Whose,
        place: &'a str,
        hops: u8,
    ) -> BoxFuture<'a, Result<Vec<Neighbour>>> {
        let near = self.near.iter().filter(|(from, _, far)| *from == place && *far <= hops);
        let near = near
            .map(|(_, to, distance)| Neighbour { place: (*to).to_owned(), distance: *distance });
        let near = near.collect();
        async move { Ok(near) }.boxed()
    }
}

#[tokio::test]
async fn mw_202_unsigned_and_wrongly_signed_hits_of_a_signing_store_do_not_count() {
    let key = |seed| SigningKey::from_seed(Algorithm::Ed25519, &[seed; 32]).unwrap();
    for (signs, expected) in [(Some(key(1)), 1), (None, 0), (Some(key(2)), 0)] {
        let store = Dressed { file: file(), key: signs, near: Vec::new() };
        let terms = Terms { key: Some(key(1).verifying_key()), ..Terms::default() };
        let mapping = Arc::new(InMemory::default());
        let slot = Slot::new("signed", Arc::new(store), mapping, terms);
        slot.put(&record("1", "the seal is unbroken")).await.unwrap();
        let lane = slot.recall(&question("seal", 5)).await.unwrap();
        assert_eq!(lane.hits.len(), expected);
    }
}

#[tokio::test]
async fn mw_085_relations_lift_what_is_near_up_to_three_hops() {
    let near = vec![("1", "3", 3), ("2", "9", 1)];
    let store = Dressed { file: file(), key: None, near };
    let router = Router::new(vec![slot("graph", store, 5000)], Options::default()).unwrap();
    for (id, text) in [
        ("1", "the tower of the castle"),
        ("2", "the tower of the church in town"),
        ("3", "a tower seen from far away over many hills and valleys"),
    ] {
        router.remember(&record(id, text), Approval::NotNeeded).await.unwrap();
    }
    let ids = |recalled: &yore_router::Recalled| -> Vec<String> {
        recalled.hits.iter().map(|hit| hit.record.id.clone()).collect()
    };
    let mut ask = Ask::new(question("the tower of the castle", 3));
    let plain = router.recall(&ask, Vec::new()).await.unwrap();
    assert_eq!(ids(&plain), ["1", "2", "3"]);
    ask.hops = 2;
    let two = router.recall(&ask, Vec::new()).await.unwrap();
    assert_eq!(ids(&two), ["1", "2", "3"], "three steps are too far");
    ask.hops = 3;
    let three = router.recall(&ask, Vec::new()).await.unwrap();
    assert_eq!(ids(&three), ["1", "3", "2"]);
    assert_eq!(three.hits[1].supporting, ["1"]);
    ask.hops = 4;
    assert!(router.recall(&ask, Vec::new()).await.is_err());
}
