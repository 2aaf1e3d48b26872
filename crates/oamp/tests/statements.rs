//! What is hidden and what is missing run the same statements, so that neither their number nor
//! their kind can tell them apart. All connections of the process are listened to, so this test
//! has a process of its own.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[expect(dead_code, reason = "only some of it is needed here")]
mod support;

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Mutex;

use axum::http::Method;
use rusqlite::ffi;
use serde_json::{Value, json};
use support::{NOW, Vault, claims, did_of, governed, id, jwt, key};

/// The statements that ran, of all connections.
static RAN: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// How often each request is made.
const ROUNDS: usize = 7;

#[expect(unsafe_code, reason = "SQLite calls it with the text of a statement")]
unsafe extern "C" fn ran(
    _event: c_uint,
    _context: *mut c_void,
    _statement: *mut c_void,
    text: *mut c_void,
) -> c_int {
    // SAFETY: for this event the last argument is a C string that lives as long as the call.
    let text = unsafe { CStr::from_ptr(text.cast::<c_char>()) };
    RAN.lock().unwrap().push(text.to_string_lossy().into_owned());
    0
}

#[expect(unsafe_code, reason = "SQLite calls it with every connection that is opened")]
unsafe extern "C" fn listen(
    db: *mut ffi::sqlite3,
    _error: *mut *mut c_char,
    _routines: *const ffi::sqlite3_api_routines,
) -> c_int {
    // SAFETY: the connection is open, and the callback needs no context.
    unsafe { ffi::sqlite3_trace_v2(db, ffi::SQLITE_TRACE_STMT, Some(ran), std::ptr::null_mut()) }
}

/// What a request runs most of the time; the writer's own upkeep falls into one now and then.
async fn usual(
    vault: &Vault,
    token: &str,
    asked: &(Method, &str, Value),
    ids: &[String],
) -> (String, u16) {
    let (method, path, body) = asked;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut status = 0;
    for id in ids {
        RAN.lock().unwrap().clear();
        let path = path.replace("ID", id);
        status = vault.ask(method.clone(), token, &path, body).await.status;
        let ran = RAN.lock().unwrap().join("\n");
        *seen.entry(ran).or_default() += 1;
    }
    let (ran, _) = seen.into_iter().max_by_key(|(_, count)| *count).unwrap();
    (ran, status)
}

#[tokio::test]
async fn oamp_342_hidden_and_missing_ids_run_the_same_statements() {
    #[expect(unsafe_code, reason = "there is no other way to hear every connection")]
    // SAFETY: the function has the signature that is asked for and lives as long as the process.
    unsafe {
        rusqlite::auto_extension::register_auto_extension(listen).unwrap();
    }
    let issuer = did_of(&key(1));
    let change = |settings: &mut yore_engine::Settings| settings.issuers.push(issuer);
    let vault = Vault::with(change, yore_oamp::Options::default()).await;
    let mut hidden = Vec::new();
    for number in 0..ROUNDS {
        let entry = governed(&format!("diagnosis {number}"), "restricted", &["health"]);
        hidden.push(vault.holds(&entry).await);
        vault.holds(&governed(&format!("meeting {number}"), "internal", &["work"])).await;
    }
    vault.engine.settle().await.unwrap();
    let missing: Vec<String> = (0..ROUNDS).map(|_| id()).collect();
    let signed = jwt(&key(1), &claims("scheduler", &["work"], "internal"));
    let own = vault.agent("own", &["work"], yore_domain::class::Sensitivity::Internal).await;
    let past = format!("/v1/knowledge/ID?as_of={NOW}");
    let requests = [
        (Method::GET, "/v1/knowledge/ID", Value::Null),
        (Method::GET, "/v1/knowledge/ID?user_id=owner", Value::Null),
        (Method::GET, past.as_str(), Value::Null),
        (Method::PATCH, "/v1/knowledge/ID", json!({"confidence": 0.5})),
        (Method::DELETE, "/v1/knowledge/ID", Value::Null),
        (Method::GET, "/ump/memory/ID", Value::Null),
    ];
    for token in [&signed, &own] {
        for request in &requests {
            let (one, status) = usual(&vault, token, request, &hidden).await;
            let (other, missing) = usual(&vault, token, request, &missing).await;
            assert_eq!((status, missing), (404, 404), "{request:?}");
            assert!(one.contains("SELECT"), "the statements are heard: {one}");
            assert_eq!(one, other, "{request:?}");
        }
    }
    // The control: what is seen runs others.
    let seen = vault.holds(&governed("seen", "internal", &["work"])).await;
    let (one, status) = usual(&vault, &signed, &requests[0], &[seen]).await;
    let (other, _) = usual(&vault, &signed, &requests[0], &missing).await;
    assert_eq!(status, 200);
    assert_ne!(one, other);
}
