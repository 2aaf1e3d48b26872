//! Requests that are too large, too slow, unsigned or about somebody else: each is refused in
//! the protocol's form, and nothing of it is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, Stream};
use serde_json::json;
use yore_canon::encode::base64url;

use crate::hiding::trusting;
use crate::support::{Reply, USER, Vault, claims, did_of, fact, governed, id, jwt, key, store};

const MIB: usize = 1 << 20;
/// What such a body says it is.
const HUGE: usize = 100 * MIB;

impl Vault {
    /// Sends a body of which nothing but its pieces is known.
    async fn pour(&self, path: &str, pieces: impl Stream<Item = Bytes> + Send + 'static) -> Reply {
        let body = Body::from_stream(pieces.map(Ok::<_, std::io::Error>));
        let request = Request::post(path)
            .header("authorization", format!("Bearer {}", self.owner))
            .header("content-type", "application/json");
        self.send(request.body(body).unwrap()).await
    }
}

#[tokio::test]
async fn oamp_065_a_body_of_100_mb_is_refused_before_it_is_read_or_held() {
    let vault = Vault::new().await;
    for (path, limit) in
        [("/v1/knowledge", 2 * MIB), ("/v1/user-model", 2 * MIB), ("/v1/import", 16 * MIB)]
    {
        // It says how long it is: not a byte is taken.
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = |taken: Arc<AtomicUsize>| {
            let piece = Bytes::from(vec![b' '; MIB]);
            stream::repeat(piece).take(HUGE / MIB).inspect(move |piece| {
                taken.fetch_add(piece.len(), Ordering::Relaxed);
            })
        };
        let body = Body::from_stream(counted(taken.clone()).map(Ok::<_, std::io::Error>));
        let request = Request::post(path)
            .header("authorization", format!("Bearer {}", vault.owner))
            .header("content-length", HUGE.to_string());
        let reply = vault.send(request.body(body).unwrap()).await;
        assert_eq!(reply.refusal(), (413, "VALIDATION_ERROR"), "{path}");
        assert!(reply.body["error"].is_string());
        assert_eq!(taken.load(Ordering::Relaxed), 0, "{path}");
        // It does not: no more is taken than may be held.
        let reply = vault.pour(path, counted(taken.clone())).await;
        assert_eq!(reply.refusal(), (413, "VALIDATION_ERROR"), "{path}");
        let taken = taken.load(Ordering::Relaxed);
        assert!(taken <= limit + 2 * MIB, "{path} took {taken} bytes");
    }
    assert!(vault.contents(&vault.owner, "").await.is_empty());
    assert_eq!(vault.get(&vault.owner, "/v1/user-model/owner").await.status, 404);
}

#[tokio::test]
async fn oamp_065_a_stranger_cannot_make_the_server_hold_an_import() {
    let vault = Vault::new().await;
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = taken.clone();
    let pieces = stream::repeat(Bytes::from(vec![b' '; MIB])).take(10).inspect(move |piece| {
        counter.fetch_add(piece.len(), Ordering::Relaxed);
    });
    let body = Body::from_stream(pieces.map(Ok::<_, std::io::Error>));
    let request = Request::post("/v1/import").header("authorization", "Bearer nobody");
    let reply = vault.send(request.body(body).unwrap()).await;
    assert_eq!(reply.status, 401);
    let taken = taken.load(Ordering::Relaxed);
    assert!(taken <= 4 * MIB, "{taken} bytes were taken");
}

#[tokio::test]
async fn oamp_065_a_client_that_never_ends_its_request_is_cut_off() {
    let brief = Duration::from_secs(1);
    let vault = Vault::hurried(brief).await;
    let known = vault.holds(&fact("said before")).await;
    let slow = async |method: &str, path: &str, body: String| {
        // A byte now and then, and the last one never.
        let mut bytes = body.into_bytes();
        bytes.pop();
        let drops = stream::iter(bytes).then(|byte| async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Bytes::from(vec![byte])
        });
        let body = Body::from_stream(drops.chain(stream::pending()).map(Ok::<_, std::io::Error>));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", vault.owner));
        let reply = vault.send(request.body(body).unwrap()).await;
        assert_eq!(reply.refusal(), (408, "REQUEST_TIMEOUT"), "{path}: {}", reply.text);
        assert!(reply.body["error"].is_string(), "{path}");
    };
    let begun = std::time::Instant::now();
    let change = format!("/v1/knowledge/{known}");
    tokio::join!(
        slow("POST", "/v1/knowledge", fact("never stored").to_string()),
        slow("POST", "/v1/import", store(&[fact("never stored")]).to_string()),
        slow("POST", "/v1/export", json!({"user_id": USER}).to_string()),
        slow("POST", "/v1/user-model", crate::model::model(1).to_string()),
        slow("PATCH", &change, json!({"confidence": 0.1}).to_string()),
    );
    assert!(begun.elapsed() < brief * 10, "{:?}", begun.elapsed());
    assert_eq!(vault.contents(&vault.owner, "").await, ["said before"]);
    assert_eq!(vault.entry(&vault.owner, &known).await.expect(200)["confidence"], 0.9);
    assert_eq!(vault.get(&vault.owner, "/v1/user-model/owner").await.status, 404);
}

#[tokio::test]
async fn oamp_312_no_spelling_of_no_algorithm_is_believed() {
    let vault = trusting(true).await;
    vault.holds(&governed("calendar", "internal", &["work"])).await;
    let grant = claims("scheduler", &["work"], "internal");
    let good = jwt(&key(1), &grant);
    assert_eq!(vault.contents(&good, "").await, ["calendar"]);
    let signature = good.rsplit_once('.').unwrap().1;
    let part = |value: &serde_json::Value| base64url(value.to_string().as_bytes());
    for algorithm in [json!("none"), json!("None"), json!("NONE"), json!(""), json!(null)] {
        for signature in ["", signature] {
            let header = json!({"alg": algorithm, "typ": "JWT", "kid": did_of(&key(1))});
            let token = format!("{}.{}.{signature}", part(&header), part(&grant));
            let list = format!("/v1/knowledge?user_id={USER}");
            let reply = vault.get(&token, &list).await;
            assert_eq!(reply.refusal(), (401, "UNAUTHORIZED"), "{header}");
            let write = governed("forged", "internal", &["work"]);
            let reply = vault.post(&token, "/v1/knowledge", &write).await;
            assert_eq!(reply.refusal(), (401, "UNAUTHORIZED"), "{header}");
            // Shown beside a good credential it spoils the request; it is not passed over.
            let request = Request::get(&list)
                .header("authorization", format!("Bearer {}", vault.owner))
                .header("oamp-grant", &token);
            let reply = vault.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(reply.refusal(), (401, "UNAUTHORIZED"), "{header}");
        }
    }
    assert_eq!(vault.contents(&vault.owner, "").await, ["calendar"]);
}

#[tokio::test]
async fn oamp_044_an_import_reaches_nobody_but_the_user_it_names() {
    let vault = Vault::new().await;
    let of = |user: &str, text: &str| {
        let mut entry = fact(text);
        entry["user_id"] = user.into();
        entry
    };
    let hers = of("anna", "Anna's");
    vault.post(&vault.service, "/v1/knowledge", &hers).await.expect(201);
    // One says it is hers; one is Ben's and has the id of hers, and is surer.
    let claimed = of("anna", "slipped in");
    let mut taken = of("ben", "under her id");
    taken["id"] = hers["id"].clone();
    taken["confidence"] = 1.0.into();
    let mut sent = store(&[claimed.clone(), taken.clone(), of("ben", "Ben's own")]);
    sent["user_id"] = "ben".into();
    let done = vault.post(&vault.service, "/v1/import", &sent).await.expect(201);
    assert_eq!((&done["imported"], &done["rejected"]), (&json!(2), &json!(1)), "{done}");
    assert_eq!(done["rejections"][0]["id"], claimed["id"]);
    let exported = async |user: &str| {
        let body = json!({"user_id": user});
        vault.post(&vault.service, "/v1/export", &body).await.expect(200)["entries"].clone()
    };
    assert_eq!(exported("anna").await, json!([hers]));
    let mut bens = crate::support::contents(&exported("ben").await);
    bens.sort();
    assert_eq!(bens, ["Ben's own", "under her id"]);
}

#[tokio::test]
async fn oamp_132_patched_values_out_of_range_change_nothing() {
    let vault = Vault::new().await;
    let entry = fact("fixed");
    let one = vault.holds(&entry).await;
    let bodies = [
        r#"{"confidence":1.0000001}"#,
        r#"{"confidence":1e400}"#,
        r#"{"confidence":-0.0001}"#,
        r#"{"confidence":NaN}"#,
        r#"{"confidence":true}"#,
        r#"{"confidence":0.1,"decay":{"half_life_days":-0.5}}"#,
        r#"{"confidence":0.1,"decay":{"half_life_days":"70"}}"#,
        r#"{"confidence":0.1,"decay":{"last_confirmed":"2026-13-01T00:00:00Z"}}"#,
        r#"{"confidence":0.1,"decay":{"mood":1}}"#,
        r#"{"confidence":0.1,"tags":[1]}"#,
        r#"{"confidence":0.1,"confidence":0.2}"#,
    ];
    for body in bodies {
        let request = Request::patch(format!("/v1/knowledge/{one}"))
            .header("authorization", format!("Bearer {}", vault.owner))
            .header("content-type", "application/json");
        let reply = vault.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"), "{body}: {}", reply.text);
        assert!(reply.body["error"].is_string());
    }
    assert_eq!(vault.entry(&vault.owner, &one).await.expect(200), entry);
    assert_eq!(vault.audit("&action=update").await.len(), 0);
    let missing = vault.patch(&vault.owner, &id(), &json!({"confidence": 7})).await;
    assert_eq!(missing.refusal(), (400, "VALIDATION_ERROR"));
}
