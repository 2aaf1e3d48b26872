use std::time::Duration;

use futures::StreamExt as _;
use yore_client::{Client, api, input};
use yore_domain::change::What;
use yore_domain::hold::HoldState;
use yore_engine::TokenKind;

use crate::support::{Server, found, recall, remember};

#[tokio::test]
async fn what_one_listener_takes_every_listener_gives() {
    let server = Server::start().await;
    let ways = [server.target(), server.tls_target(), server.socket_target()];
    for (number, target) in ways.iter().enumerate() {
        let client = Client::connect(target.clone()).await.unwrap();
        let client = client.with_token(server.token.clone());
        let text = format!("the lighthouse keeper number {number} drinks juniper tea");
        let made = client.call::<api::Remember>(remember(&text)).await.unwrap();
        assert_eq!(made.effect, yore_engine::Effect::Created);
        for other in &ways {
            let other = Client::new(other.clone()).unwrap().with_token(server.token.clone());
            let texts = found(&other, "lighthouse keeper juniper tea").await;
            assert_eq!(texts.len(), number + 1, "{texts:?}");
            assert!(texts.contains(&text));
        }
    }
    server.end().await;
}

#[tokio::test]
async fn the_vault_is_still_there_after_a_restart() {
    let server = Server::start().await;
    let (token, text) = (server.token.clone(), "the cellar key hangs behind the clock");
    server.client().call::<api::Remember>(remember(text)).await.unwrap();
    let place = server.end().await;
    let host = yore_server::Host::open(crate::support::config(&place)).await.unwrap();
    assert!(host.first_token().is_none(), "only the first start makes a token");
    let call = yore_engine::Call::bearer("native", token);
    let recalled = host.engine().recall(&call, recall("cellar key")).await.unwrap();
    assert_eq!(recalled.results[0].found.text(), text);
}

#[tokio::test]
async fn a_held_write_is_202_with_its_hold_and_can_be_decided() {
    let server = Server::start().await;
    let client = server.client();
    let mut asked = remember("the vault code is a secret of two people");
    asked.wish.approval = true;
    let body = serde_json::to_string(&asked).unwrap();
    let (status, text) = server.post("remember", &body).await;
    assert_eq!(status, 202, "{text}");
    assert!(text.contains(r#""code":"pending_approval""#), "{text}");

    let held = input::Holds { state: HoldState::Pending, limit: 10 };
    let holds = client.call::<api::Holds>(held).await.unwrap();
    assert_eq!(holds.len(), 1);
    assert!(text.contains(&holds[0].id.to_string()), "{text}");
    assert!(found(&client, "vault code").await.is_empty(), "nothing is written before approval");

    let error = client.call::<api::Remember>(asked).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().status, 202);
    assert!(error.refusal().unwrap().hold.is_some());

    let decision =
        input::Decide { hold: holds[0].id, decision: api::Decision::Approve, note: None };
    client.call::<api::Decide>(decision).await.unwrap();
    assert_eq!(found(&client, "vault code").await.len(), 1);
    server.end().await;
}

#[tokio::test]
async fn a_repeated_operation_id_returns_the_first_result() {
    let server = Server::start().await;
    let client = server.client();
    let once = |text| {
        let client = client.clone();
        async move { client.call_once::<api::Remember>(remember(text), Some("op-1")).await }
    };
    let first = once("the ferry leaves at noon").await.unwrap();
    assert_eq!(once("the ferry leaves at noon").await.unwrap(), first);
    let error = once("the ferry leaves at one").await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, "conflict");
    assert_eq!(
        client.call::<api::Count>(input::Count { filter: Default::default() }).await.unwrap(),
        1
    );
    server.end().await;
}

#[tokio::test]
async fn changes_are_followed_and_resumed_by_cursor() {
    let server = Server::start().await;
    let client = server.client();
    let mut live = client.watch(None).await.unwrap();
    let made = client.call::<api::Remember>(remember("one")).await.unwrap();
    let event = tokio::time::timeout(Duration::from_secs(10), live.next());
    let event = event.await.unwrap().unwrap().unwrap();
    assert!(
        matches!(event.change, What::Memory { memory, .. } if memory == made.memories[0].memory)
    );

    let second = client.call::<api::Remember>(remember("two")).await.unwrap();
    let mut resumed = client.watch(Some(event.cursor)).await.unwrap();
    let event = tokio::time::timeout(Duration::from_secs(10), resumed.next());
    let event = event.await.unwrap().unwrap().unwrap();
    assert!(
        matches!(event.change, What::Memory { memory, .. } if memory == second.memories[0].memory)
    );

    let error = client.watch(Some("made-up".into())).await.err().unwrap();
    assert_eq!(error.refusal().unwrap().code, "invalid");
    // The open streams end with the server and do not hold it up.
    let ended = tokio::time::timeout(Duration::from_secs(5), server.end());
    ended.await.expect("streams end when the server does");
    while let Some(Ok(_)) = live.next().await {}
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once() {
    let server = Server::start().await;
    let client = server.client();
    let asked = input::IssueToken { kind: TokenKind::Owner, ttl: None, note: None };
    let fresh = client.call::<api::IssueToken>(asked).await.unwrap();
    let other = Client::new(server.target()).unwrap().with_token(yore_engine::Secret::new(fresh));
    other.call::<api::Census>(input::Nothing {}).await.unwrap();
    let tokens = client.call::<api::Tokens>(input::Nothing {}).await.unwrap();
    let newest = tokens.iter().max_by_key(|token| token.issued).unwrap();
    client.call::<api::RevokeToken>(input::OneToken { token: newest.id }).await.unwrap();
    let error = other.call::<api::Census>(input::Nothing {}).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().status, 401);
    server.end().await;
}

#[tokio::test]
async fn copies_go_where_the_caller_may_write() {
    let server = Server::start().await;
    let client = server.client();
    client.call::<api::Remember>(remember("copied")).await.unwrap();
    let outside = server.place.path().join("copy.db");
    let error =
        client.call::<api::Backup>(input::Backup { to: outside.clone() }).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, "invalid");
    assert!(!outside.exists());
    client.call::<api::Backup>(input::Backup { to: "copy.db".into() }).await.unwrap();
    assert!(server.data().join("backups/copy.db").exists());
    let local = Client::new(server.socket_target()).unwrap().with_token(server.token.clone());
    let bytes = local.call::<api::Backup>(input::Backup { to: outside.clone() }).await.unwrap();
    assert!(bytes > 0 && outside.exists());
    server.end().await;
}
