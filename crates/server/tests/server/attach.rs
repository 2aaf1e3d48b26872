use std::time::Duration;

use yore_client::api;
use yore_server::{Host, Note, attach};

use crate::support::{Server, config, found, layers, remember};

#[tokio::test]
async fn an_idle_host_ends_by_itself() {
    let place = tempfile::tempdir().unwrap();
    let idle = Host::open_idle(config(&place)).await.unwrap();
    let client = idle.client().unwrap();
    let serving = tokio::spawn(idle.serve());
    client.call::<api::Remember>(remember("a thing said in passing")).await.unwrap();
    assert_eq!(found(&client, "thing said in passing").await.len(), 1);
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert!(!serving.is_finished(), "an open connection keeps it");
    drop(client);
    let ended = tokio::time::timeout(Duration::from_secs(20), serving).await;
    ended.expect("it ends").unwrap().unwrap();
    let data = place.path().join("data");
    assert!(Note::read(&data).is_none() && !data.join("run/yore.sock").exists());
}

#[tokio::test]
async fn commands_at_the_same_time_share_one_host() {
    let place = tempfile::tempdir().unwrap();
    let commands: Vec<_> = (0..4)
        .map(|number| {
            let config = config(&place);
            tokio::spawn(async move {
                let attached = attach(config).await.unwrap();
                let text = format!("note number {number} of the orchard diary");
                attached.client().call::<api::Remember>(remember(&text)).await.unwrap();
                let hosting = attached.is_hosting();
                attached.finish().await.unwrap();
                hosting
            })
        })
        .collect();
    let mut hosts = 0;
    for command in commands {
        hosts += usize::from(command.await.unwrap());
    }
    assert!(hosts >= 1);
    let attached = attach(config(&place)).await.unwrap();
    assert_eq!(found(attached.client(), "orchard diary note").await.len(), 4);
    attached.finish().await.unwrap();
}

#[tokio::test]
async fn a_command_uses_the_server_that_runs() {
    let server = Server::start().await;
    let attached = attach(config(&server.place)).await.unwrap();
    assert!(!attached.is_hosting());
    attached.client().call::<api::Remember>(remember("told to the server")).await.unwrap();
    attached.finish().await.unwrap();
    assert_eq!(found(&server.client(), "told to the server").await.len(), 1);

    let other = layers(&server.place)
        .key(yore_server::KeySource::Text(yore_engine::Secret::new("77".repeat(32))));
    let attached = attach(yore_server::Config::load(other).unwrap()).await.unwrap();
    let error = attached.client().call::<api::Remember>(remember("x")).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().status, 401, "another master key proves nothing");
    server.end().await;
}
