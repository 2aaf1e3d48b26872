//! The typed client of agents, over real TLS.

use futures::StreamExt as _;
use yore_canon::key::{Algorithm, SigningKey};
use yore_client::agent::{Agent, Delta, Saying};
use yore_client::{Client, api, input};
use yore_engine::Clock as _;

use crate::support::{Server, remember};

#[tokio::test(flavor = "multi_thread")]
async fn uamp_022_uamp_047_the_typed_client_signs_asks_and_resumes() {
    let server = Server::start().await;
    server.client().call::<api::Remember>(remember("I am allergic to peanuts")).await.unwrap();
    let client = Client::new(server.tls_target()).unwrap().with_token(server.token.clone());
    let agent = Agent::new(client, SigningKey::generate(Algorithm::P256, &[8; 32]));
    let mut saying = Saying {
        intent: "ask",
        to: vec![agent.server().await.unwrap()],
        kind: "text/plain".into(),
        content: "what am I allergic to?".into(),
        stream: Some("mine".into()),
        reply_to: None,
    };
    let now = || yore_server::SystemClock::default().now();
    let refused = agent.send(&saying, now()).await.unwrap_err();
    assert_eq!(refused.refusal().unwrap().code, "4.03", "nobody knows it yet");
    let register =
        input::RegisterAgent { did: agent.did().to_owned(), agent: None, recorded: true };
    server.client().call::<api::RegisterAgent>(register).await.unwrap();
    let stream = agent.send(&saying, now()).await.unwrap().stream.unwrap();
    let all: Vec<Delta> = agent.follow(&stream, None).map(Result::unwrap).collect().await;
    assert!(all.len() > 1 && all.last().unwrap().kind == "done", "{all:?}");
    assert!(all[0].payload.to_string().contains("peanuts"), "{all:?}");
    let rest: Vec<Delta> = agent.follow(&stream, Some(0)).map(Result::unwrap).collect().await;
    let numbers = |deltas: &[Delta]| deltas.iter().map(|one| one.delta_seq).collect::<Vec<_>>();
    assert_eq!(numbers(&rest), numbers(&all[1..]));
    assert_eq!(rest.last().unwrap().payload, all.last().unwrap().payload);
    // A message that comes too late is refused, and the client says why.
    saying.stream = None;
    let late = now().minus(yore_domain::Span::seconds(600));
    let refused = agent.send(&saying, late).await.unwrap_err();
    let refusal = refused.refusal().unwrap();
    assert_eq!((refusal.status, refusal.code.as_str()), (401, "4.01"), "{refusal:?}");
    server.end().await;
}
