//! Vaults in a PostgreSQL instead of the data directory, served by more than one server.

use std::process::Command;

use crate::common::{Ended, Home, check, ended, started};

const KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707";

/// Makes a database on the server at `YORE_TEST_POSTGRES` and returns its address.
fn database() -> Option<String> {
    let Ok(server) = std::env::var("YORE_TEST_POSTGRES") else {
        println!("NOT RUN: YORE_TEST_POSTGRES names no PostgreSQL with pgvector");
        return None;
    };
    let name = format!("yore_cli_{}", std::process::id());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(&server, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    });
    let (place, _) = server.rsplit_once('/').unwrap();
    Some(format!("{place}/{name}"))
}

fn with(home: &Home, address: &str, key: &str, args: &[&str]) -> Command {
    let mut command = home.command(args);
    command.env("YORE_DATABASE", address).env("YORE_MASTER_KEY", key);
    command
}

#[test]
fn two_servers_serve_one_database_and_keep_nothing_themselves() {
    let Some(address) = database() else { return };
    let (one, other) = (Home::new(), Home::new());
    let serve = ["serve", "--json", "--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0"];
    let run = |home: &Home, args: &[&str]| -> Ended {
        ended(with(home, &address, KEY, args).output().unwrap())
    };
    let mut first = started(with(&one, &address, KEY, &serve));
    assert!(first.ready["owner_token"].is_string());
    let mut second = started(with(&other, &address, KEY, &serve));
    assert!(second.ready["owner_token"].is_null(), "the vault was made once");

    assert_eq!(run(&one, &["remember", "I am allergic to peanuts"]).code, 0);
    let found = run(&other, &["recall", "what food should I avoid?", "--json"]);
    assert!(found.code == 0 && found.out.contains("allergic to peanuts"), "{found:?}");
    assert_eq!(run(&other, &["remember", "the boat is moored at Porto"]).code, 0);
    let found = run(&one, &["recall", "where is the boat?", "--json"]);
    assert!(found.out.contains("moored at Porto"), "{found:?}");
    // A token of one server opens the other.
    let token = first.ready["owner_token"].as_str().unwrap();
    let mut away = Home::new().command(&["list"]);
    away.env("YORE_URL", second.url()).env("YORE_TOKEN", token).env_remove("YORE_DATA");
    let listed = ended(away.output().unwrap());
    assert!(listed.out.contains("allergic to peanuts"), "{listed:?}");

    assert_eq!((first.stop(), second.stop()), (0, 0));
    for home in [&one, &other] {
        assert!(!home.data().join("catalog.db").exists() && !home.data().join("vaults").exists());
    }
    // And without a server.
    let listed = run(&one, &["list", "--all"]);
    assert!(listed.out.contains("peanuts") && listed.out.contains("Porto"), "{listed:?}");

    let well = run(&one, &["doctor", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&well.out).unwrap();
    let state = |what: &str| {
        let checks = told["checks"].as_array().unwrap();
        checks.iter().find(|one| one["what"] == what).map(|one| one["state"].clone())
    };
    for what in ["database", "role", "walls between vaults", "partitions", "timeouts"] {
        assert_eq!(state(what), Some("ok".into()), "{what}: {well:?}");
    }
    let nowhere = "postgres://yore@127.0.0.1:1/yore";
    let gone = ended(with(&Home::new(), nowhere, KEY, &["doctor"]).output().unwrap());
    assert!(gone.code == 7 && gone.out.contains("database"), "{gone:?}");

    let stranger = "08".repeat(32);
    let wrong = ended(with(&Home::new(), &address, &stranger, &["list"]).output().unwrap());
    check(&wrong, 8, &["wrong key"]);
    let nonsense = with(&Home::new(), "mysql://somewhere", KEY, &serve).output().unwrap();
    check(&ended(nonsense), 2, &["PostgreSQL"]);
    // In clear to another machine only where that is said.
    let secret = "postgres://yore:sesame@db.example/yore?sslmode=prefer";
    let far = ended(with(&Home::new(), secret, KEY, &serve).output().unwrap());
    check(&far, 2, &["sslmode"]);
    assert!(!far.err.contains("sesame"), "{far:?}");
}
