use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use yore_canon::hash::Blake3;
use yore_canon::key::{Algorithm, Signature};
use yore_canon::seal;
use yore_engine::dialect::Dialect;
use yore_engine::{FixedClock, Parts, Secret, Settings, TokenKind, token};
use yore_store_sqlite::{Cost, MasterKey, SqliteStore};
use zeroize::Zeroizing;

use super::*;
use crate::Options;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const LOCAL_KEY: [u8; 32] = [7; 32];

async fn vault() -> (Ump, Call, TempDir) {
    let directory = TempDir::new().unwrap();
    let key = MasterKey::passphrase("open sesame");
    let mut place = yore_store_sqlite::Options::new(directory.path(), key);
    place.cost = Cost::Least;
    let store = SqliteStore::open(place).unwrap();
    let engine = yore_engine::Engine::new(Parts {
        store: Arc::new(store.clone()),
        keeper: Arc::new(store),
        clock: Arc::new(FixedClock::at(NOW)),
        local_key: Zeroizing::new(LOCAL_KEY),
        settings: Settings::default(),
    });
    let master = Call::bearer("test", token::proof(&LOCAL_KEY, NOW));
    let owner = engine.issue_token(&master, TokenKind::Owner, None, None).await.unwrap();
    let call = Call::bearer("test", Secret::new(owner));
    (Ump::new(engine, Options::default()), call, directory)
}

/// The one record that a recall returns, and its hash.
async fn recalled(ump: &Ump, call: &Call) -> (Object, Blake3) {
    let query = json!({"query": "where is the kettle", "limit": 5});
    let mut answer = ump.call(call.clone(), "recall", query).await.unwrap();
    let record: Value = answer["results"][0]["record"].take();
    let record = record.as_object().unwrap().clone();
    let hash = seal::content_hash(&record);
    (record, hash)
}

#[tokio::test]
async fn ump_036_a_record_is_signed_once_and_says_the_same_bytes_ever_after() {
    let (ump, call, _directory) = vault().await;
    let record = json!({
        "kind": "semantic",
        "body": {"text": "the kettle stands on the blue shelf"},
        "scope": {"owner": "owner", "visibility": "private"},
    });
    ump.call(call.clone(), "remember", json!({"record": record})).await.unwrap();
    let (first, hash) = recalled(&ump, &call).await;
    let did = first[MEMBER]["signer"].as_str().unwrap();
    let made: Signature = first[MEMBER]["signature"].as_str().unwrap().parse().unwrap();
    assert_eq!(integrity::verified(&first).unwrap().as_deref(), Some(did));
    assert_eq!(ump.seals.find(did, &hash), Some(made));
    assert_eq!(recalled(&ump, &call).await.0, first);
    // Whoever remembers nothing comes to the same bytes.
    let fresh = Ump::new(ump.engine.clone(), Options::default());
    assert_eq!(recalled(&fresh, &call).await.0, first);
    // What is remembered is what is handed out: the key was not asked again.
    let planted = Signature::from_slice(Algorithm::Ed25519, &[9; 64]).unwrap();
    ump.seals.keep(did, &hash, planted);
    assert_eq!(recalled(&ump, &call).await.0[MEMBER]["signature"], planted.to_string());
    // A signature of another key is not taken for this one's.
    fresh.seals.keep("did:key:before-the-rotation", &hash, planted);
    assert_eq!(recalled(&fresh, &call).await.0, first);
    // Another statement has another hash, and so another signature.
    let other = json!({"record": {
        "kind": "semantic",
        "body": {"text": "where is the kettle, if not on the blue shelf"},
        "scope": {"owner": "owner", "visibility": "private"},
    }});
    ump.call(call.clone(), "remember", other).await.unwrap();
    let answer = ump.call(call.clone(), "recall", json!({"query": "the kettle", "limit": 5}));
    let answer = answer.await.unwrap();
    let signatures: Vec<&Value> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| &result["record"][MEMBER]["signature"])
        .collect();
    assert_eq!(signatures.len(), 2);
    assert_ne!(signatures[0], signatures[1]);
}
