use yore_client::{Client, api};
use yore_engine::Secret;

use crate::support::{Server, found, logged, remember};

/// What people say and what lets them in must not be in the log, at any level of ours.
#[tokio::test]
async fn neither_content_nor_query_nor_token_is_logged() {
    let server = Server::start().await;
    let client = server.client();
    client.call::<api::Remember>(remember("quokkas-in-the-attic")).await.unwrap();
    found(&client, "wombats-in-the-basement").await;
    let wrong = Client::new(server.target()).unwrap().with_token(Secret::new("numbats-as-token"));
    wrong.call::<api::Remember>(remember("bilbies-in-the-barn")).await.unwrap_err();
    for body in [r#"{"query":"bettongs","limit":"potoroos"}"#, r#"{"query":"pademelons""#] {
        assert_eq!(server.post("recall", body).await.0, 400);
    }
    server.get("/quolls?dunnarts=1").await;
    let token = server.token.expose().to_owned();
    server.end().await;

    let log = logged();
    assert!(log.contains("remember") && log.contains("answered"), "requests are logged");
    let secret = token.rsplit('_').next().unwrap().to_owned();
    for word in [
        "quokkas",
        "wombats",
        "numbats",
        "bilbies",
        "bettongs",
        "potoroos",
        "pademelons",
        "quolls",
        "dunnarts",
        &secret,
    ] {
        let line = log.lines().find(|line| line.contains(word));
        assert!(line.is_none(), "{word} in {line:?}");
    }
}
