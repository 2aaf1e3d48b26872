//! Live changes over a WebSocket.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use yore_domain::class::Sensitivity;

use crate::model::model;
use crate::support::{USER, Vault, contents, fact, governed, store};

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

async fn served(vault: &Vault) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = vault.router.clone();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("ws://{address}/v1/stream")
}

async fn connect(url: &str, token: &str, protocol: Option<&str>) -> Result<Client, u16> {
    let mut request = url.into_client_request().unwrap();
    let headers = request.headers_mut();
    if !token.is_empty() {
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    if let Some(protocol) = protocol {
        headers.insert("sec-websocket-protocol", protocol.parse().unwrap());
    }
    match tokio_tungstenite::connect_async(request).await {
        Ok((socket, response)) => {
            assert_eq!(response.headers()["sec-websocket-protocol"], "oamp.v1");
            Ok(Client(socket))
        }
        Err(tokio_tungstenite::tungstenite::Error::Http(response)) => {
            Err(response.status().as_u16())
        }
        Err(error) => panic!("{error}"),
    }
}

impl Client {
    async fn say(&mut self, kind: &str, payload: Value) {
        let frame = json!({"oamp_version": "1.1.0", "type": kind, "payload": payload});
        self.0.send(Message::Text(frame.to_string().into())).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let heard = tokio::time::timeout(Duration::from_secs(10), self.0.next()).await;
        match heard.expect("a frame in time") {
            Some(Ok(Message::Text(text))) => serde_json::from_str(&text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// What comes next, as type and payload.
    async fn next(&mut self) -> (String, Value) {
        let frame = self.hear().await;
        (frame["type"].as_str().unwrap().to_owned(), frame["payload"].clone())
    }

    async fn subscribe(&mut self, id: &str, more: Value) {
        let mut payload = json!({"subscription_id": id, "user_id": USER});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.say("subscribe", payload).await;
        assert_eq!(self.next().await, ("subscribed".into(), json!({"subscription_id": id})));
    }

    /// Nothing is on its way: an answer to a ping comes first.
    async fn silent(&mut self) {
        // Events are made by tasks of their own; give them the time they would need.
        tokio::time::sleep(Duration::from_millis(150)).await;
        self.say("ping", json!({})).await;
        assert_eq!(self.next().await.0, "pong");
    }
}

#[tokio::test]
async fn oamp_250_oamp_251_the_upgrade_needs_the_subprotocol_and_a_credential() {
    let vault = Vault::new().await;
    let url = served(&vault).await;
    assert_eq!(connect(&url, &vault.owner, None).await.err(), Some(400));
    assert_eq!(connect(&url, &vault.owner, Some("oamp.v2")).await.err(), Some(400));
    assert_eq!(connect(&url, "", Some("oamp.v1")).await.err(), Some(401));
    assert_eq!(connect(&url, "nonsense", Some("oamp.v1")).await.err(), Some(401));
    assert!(connect(&url, &vault.owner, Some("chat, oamp.v1")).await.is_ok());
    let plain = vault.get(&vault.owner, "/v1/stream").await;
    assert_eq!(plain.refusal(), (400, "VALIDATION_ERROR"));
}

#[tokio::test]
async fn oamp_252_oamp_253_oamp_254_oamp_259_oamp_260_frames_have_one_form() {
    let vault = Vault::new().await;
    let url = served(&vault).await;
    let mut client = connect(&url, &vault.owner, Some("oamp.v1")).await.unwrap();
    client.say("ping", json!({})).await;
    let pong = client.hear().await;
    assert_eq!(
        (&pong["oamp_version"], &pong["type"], &pong["payload"]),
        (&json!("1.1.0"), &json!("pong"), &json!({}))
    );
    assert!(yore_oamp::wire::uuid(pong["id"].as_str().unwrap()).is_ok());
    assert!(pong["ts"].as_str().unwrap().parse::<yore_domain::Timestamp>().is_ok());
    for (kind, payload) in [
        ("shout", json!({})),
        ("subscribe", json!({})),
        ("subscribe", json!({"subscription_id": "a"})),
        ("subscribe", json!({"subscription_id": "a", "user_id": USER, "filters": []})),
        ("subscribe", json!({"subscription_id": "a", "user_id": USER, "filters": {"tags": "x"}})),
        ("unsubscribe", json!({"subscription_id": "never"})),
    ] {
        client.say(kind, payload.clone()).await;
        let (kind, told) = client.next().await;
        assert_eq!((kind.as_str(), &told["code"]), ("error", &json!("invalid")), "{payload}");
        assert!(told["message"].is_string() && told["retryable"] == json!(false));
    }
    client.0.send(Message::Text("no json".into())).await.unwrap();
    assert_eq!(client.next().await.0, "error");
    client.subscribe("a", json!({})).await;
    client.say("subscribe", json!({"subscription_id": "a", "user_id": USER})).await;
    assert_eq!(client.next().await.1["code"], "invalid", "the id is in use");
    client.say("unsubscribe", json!({"subscription_id": "a"})).await;
    assert_eq!(client.next().await, ("unsubscribed".into(), json!({"subscription_id": "a"})));
    vault.holds(&fact("unheard")).await;
    client.silent().await;
}

#[tokio::test]
async fn oamp_255_oamp_258_oamp_259_changes_are_told_after_a_snapshot() {
    let vault = Vault::new().await;
    let url = served(&vault).await;
    let old = fact("from before");
    vault.holds(&old).await;
    let mut client = connect(&url, &vault.owner, Some("oamp.v1")).await.unwrap();
    client.subscribe("s", json!({"include_initial_snapshot": true})).await;
    let (kind, told) = client.next().await;
    assert_eq!((kind.as_str(), &told["entries"]), ("knowledge_snapshot", &json!([old])));
    let new = fact("brand new");
    let id = vault.holds(&new).await;
    let expected = json!({"subscription_id": "s", "entry": new});
    assert_eq!(client.next().await, ("knowledge_created".into(), expected));
    vault.patch(&vault.owner, &id, &json!({"confidence": 0.1})).await.expect(200);
    let (kind, told) = client.next().await;
    assert_eq!((kind.as_str(), &told["entry"]["confidence"]), ("knowledge_updated", &json!(0.1)));
    vault.delete(&vault.owner, &id).await;
    let expected = json!({"subscription_id": "s", "id": id, "user_id": USER});
    assert_eq!(client.next().await, ("knowledge_deleted".into(), expected));
    vault.post(&vault.owner, "/v1/user-model", &model(1)).await.expect(201);
    let (kind, told) = client.next().await;
    assert_eq!((kind.as_str(), &told["user_model"]), ("user_model_updated", &model(1)));
    vault.post(&vault.owner, "/v1/import", &store(&[fact("imported")])).await.expect(201);
    assert_eq!(client.next().await.0, "knowledge_created");
}

#[tokio::test]
async fn oamp_257_oamp_228_filters_narrow_and_unknown_ones_do_nothing() {
    let vault = Vault::new().await;
    let url = served(&vault).await;
    let mut tagged = governed("tagged work", "internal", &["work"]);
    tagged["tags"] = json!(["a", "b"]);
    tagged["category"] = "pattern".into();
    vault.holds(&tagged).await;
    vault.holds(&fact("plain")).await;
    let mut client = connect(&url, &vault.owner, Some("oamp.v1")).await.unwrap();
    let table = [
        (json!({"category": ["pattern", "correction"]}), 1),
        (json!({"category": ["correction"]}), 0),
        (json!({"tags": ["x", "b"]}), 1),
        (json!({"min_confidence": 0.9}), 2),
        (json!({"min_confidence": 0.91}), 0),
        (json!({"sensitivity_class": ["internal"]}), 1),
        (json!({"governance_label": ["work"], "tags": ["a"]}), 1),
        (json!({"mood": ["good"]}), 2),
    ];
    for (number, (filters, count)) in table.into_iter().enumerate() {
        let more = json!({"filters": filters, "include_initial_snapshot": true});
        client.subscribe(&format!("s{number}"), more).await;
        let (_, told) = client.next().await;
        assert_eq!(told["entries"].as_array().unwrap().len(), count, "{filters}");
    }
    let mut other = connect(&url, &vault.owner, Some("oamp.v1")).await.unwrap();
    other
        .subscribe(
            "only",
            json!({"filters": {"tags": ["b"]}, "event_types": ["knowledge_created"]}),
        )
        .await;
    vault.holds(&fact("does not match")).await;
    let id = vault
        .holds(&{
            let mut entry = fact("matches");
            entry["tags"] = json!(["b"]);
            entry
        })
        .await;
    assert_eq!(other.next().await.1["entry"]["content"], "matches");
    vault.delete(&vault.owner, &id).await;
    other.silent().await;
}

#[tokio::test]
async fn oamp_256_oamp_263_one_user_each_and_many_subscriptions() {
    let vault = Vault::new().await;
    let url = served(&vault).await;
    let mut client = connect(&url, &vault.owner, Some("oamp.v1")).await.unwrap();
    client.say("subscribe", json!({"subscription_id": "x", "user_id": "anna"})).await;
    let (kind, told) = client.next().await;
    assert_eq!((kind.as_str(), &told["code"]), ("error", &json!("forbidden")));
    for number in 0..16 {
        client.subscribe(&format!("s{number}"), json!({})).await;
    }
    vault.holds(&fact("to all")).await;
    let mut heard = std::collections::BTreeSet::new();
    for _ in 0..16 {
        heard.insert(client.next().await.1["subscription_id"].to_string());
    }
    assert_eq!(heard.len(), 16);
}

#[tokio::test]
async fn oamp_347_oamp_323_an_agent_hears_only_what_it_sees() {
    let vault = Vault::new().await;
    let url = served(&vault).await;
    vault.holds(&governed("old diagnosis", "restricted", &["health"])).await;
    vault.holds(&governed("old meeting", "internal", &["work"])).await;
    let agent = vault.agent("scheduler", &["work"], Sensitivity::Internal).await;
    let mut client = connect(&url, &agent, Some("oamp.v1")).await.unwrap();
    client.subscribe("s", json!({"include_initial_snapshot": true})).await;
    assert_eq!(contents(&client.next().await.1["entries"]), ["old meeting"]);
    let hidden = vault.holds(&governed("new diagnosis", "restricted", &["health"])).await;
    vault.patch(&vault.owner, &hidden, &json!({"confidence": 0.2})).await.expect(200);
    vault.delete(&vault.owner, &hidden).await;
    vault.post(&vault.owner, "/v1/user-model", &model(1)).await.expect(201);
    client.silent().await;
    let mut open = governed("open on the stream alone", "restricted", &["health"]);
    open["governance"]["handling"] = json!({"stream": "ungoverned"});
    let open = vault.holds(&open).await;
    assert_eq!(client.next().await.1["entry"]["content"], "open on the stream alone");
    assert_eq!(vault.entry(&agent, &open).await.status, 404, "not on retrieval");
    let mine = governed("my own", "internal", &["work"]);
    vault.post(&agent, "/v1/knowledge", &mine).await.expect(201);
    assert_eq!(client.next().await.1["entry"], mine, "under the id it chose");
    vault.delete(&agent, mine["id"].as_str().unwrap()).await;
    assert_eq!(client.next().await.1["id"], mine["id"]);
    // It leaves the agent's sight: to the agent it is gone.
    let meeting = governed("a meeting", "internal", &["work"]);
    let id = vault.holds(&meeting).await;
    assert_eq!(client.next().await.0, "knowledge_created");
    let mut secret = meeting.clone();
    secret["governance"]["sensitivity_class"] = "restricted".into();
    secret["confidence"] = json!(1.0);
    vault.post(&vault.owner, "/v1/import", &store(&[secret])).await.expect(201);
    let (kind, told) = client.next().await;
    assert_eq!((kind.as_str(), &told["id"]), ("knowledge_deleted", &json!(id)));
    assert!(told.get("entry").is_none());
}

#[tokio::test]
async fn oamp_315_a_revoked_grant_silences_an_open_stream() {
    let vault = Vault::new().await;
    let url = served(&vault).await;
    let (agent, grant) =
        vault.agent_with("scheduler", &["work"], &["work"], Sensitivity::Internal).await;
    let mut client = connect(&url, &agent, Some("oamp.v1")).await.unwrap();
    client.subscribe("s", json!({})).await;
    vault.holds(&governed("heard", "internal", &["work"])).await;
    assert_eq!(client.next().await.0, "knowledge_created");
    vault.engine.revoke_grant(&vault.owner_call(), grant).await.unwrap();
    vault.holds(&governed("unheard", "internal", &["work"])).await;
    let (kind, told) = client.next().await;
    assert_eq!((kind.as_str(), &told["code"]), ("error", &json!("forbidden")));
    client.silent().await;
}

#[tokio::test]
async fn oamp_262_a_client_that_says_nothing_for_a_minute_is_let_go() {
    let vault = Vault::new().await;
    let url = served(&vault).await;
    let mut client = connect(&url, &vault.owner, Some("oamp.v1")).await.unwrap();
    client.silent().await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let last = client.0.next().await.unwrap().unwrap();
    assert!(matches!(last, Message::Close(Some(_))), "{last:?}");
    let silence = begun.elapsed();
    assert!((Duration::from_secs(59)..Duration::from_secs(70)).contains(&silence), "{silence:?}");
}
