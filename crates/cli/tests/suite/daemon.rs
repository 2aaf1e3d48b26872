//! A server, and commands that find it.

use std::time::Duration;

use crate::common::{Home, check};

#[test]
fn commands_find_the_server_and_it_ends_well() {
    let home = Home::new();
    let mut server = home.serve();
    assert!(server.ready["owner_token"].as_str().unwrap().starts_with("yore_v_"));
    let note = std::fs::read_to_string(home.data().join("run/server.json")).unwrap();
    let note: serde_json::Value = serde_json::from_str(&note).unwrap();
    assert_eq!(note["http"], server.ready["http"]);
    assert_eq!(note["pid"], server.ready["pid"]);
    home.remember(&["I am allergic to peanuts"]);
    assert_eq!(home.recall(&["what food should I avoid?"]), ["I am allergic to peanuts"]);
    assert_eq!(server.stop(), 0);
    assert!(!home.data().join("run/server.json").exists());
    assert_eq!(home.all(), ["I am allergic to peanuts"], "and without it");
    let again = home.serve();
    assert!(again.ready["owner_token"].is_null(), "the owner's token is shown once");
}

#[test]
fn a_token_opens_the_server_from_elsewhere_and_nothing_else_does() {
    let (home, away) = (Home::new(), Home::new());
    let server = home.serve();
    let url = server.url();
    let owner = server.ready["owner_token"].as_str().unwrap();
    let at = |token: &str, args: &[&str]| {
        let mut command = away.command(args);
        command.env("YORE_URL", &url).env("YORE_TOKEN", token).env_remove("YORE_DATA");
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        crate::common::Ended {
            code: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    };
    assert_eq!(at(owner, &["remember", "tea, no sugar"]).code, 0);
    assert!(at(owner, &["list"]).out.contains("tea, no sugar"));
    check(&at("yore_v_nonsense", &["list"]), 4, &["not authenticated"]);
    let reader = home.ok(&["token", "issue", "--verbs", "read", "--agent", "reader"]);
    let reader = reader.trim();
    assert!(at(reader, &["list"]).out.contains("tea, no sugar"));
    check(&at(reader, &["remember", "coffee"]), 4, &["forbidden"]);
    check(&away.run(&["list", "--url", &url]), 4, &["--token"]);
    assert!(!away.data().exists(), "nothing was opened here");
    // A directory that was typed means more than an address in the environment.
    let data = home.data();
    let mut typed = home.command(&["list", "--data", data.to_str().unwrap()]);
    let typed = typed.env("YORE_URL", "http://127.0.0.1:9").output().unwrap();
    assert!(String::from_utf8(typed.stdout).unwrap().contains("tea, no sugar"));
}

#[test]
fn the_web_app_is_opened_by_a_link() {
    let home = Home::new();
    home.remember(&["before any server"]);
    home.fails(&["open", "--print"], 7, &["no server is running here", "yore serve"]);
    let server = home.serve();
    let link = home.ok(&["open", "--print"]);
    let start = format!("{}/app/enter?key=yore_v_", server.url());
    assert!(link.starts_with(&start), "{link}");
    assert_eq!(home.json(&["open"])["url"].as_str().unwrap().len(), link.trim().len());
    let tokens = home.ok(&["token", "list"]);
    assert!(tokens.contains("a link to the web app"), "{tokens}");
}

#[test]
fn two_servers_on_one_directory_do_not_start() {
    let home = Home::new();
    let server = home.serve();
    let second = home.run(&["serve", "--listen", "127.0.0.1:0", "--tls-listen", "off"]);
    check(&second, 7, &["another process", &server.ready["pid"].to_string()]);
}

#[test]
fn a_lock_whose_holder_does_not_answer_is_reported() {
    let home = Home::new();
    std::fs::create_dir_all(home.data().join("run")).unwrap();
    let lock = std::fs::File::create(home.data().join("run/lock")).unwrap();
    lock.lock().unwrap();
    let ended = home.run(&["list"]);
    check(&ended, 7, &["another process", "--data"]);
}

#[test]
fn nobody_there_and_an_address_that_is_taken() {
    let home = Home::new();
    let args = ["list", "--url", "http://127.0.0.1:9", "--token", "t"];
    home.fails(&args, 7, &["cannot reach", "yore serve"]);
    home.fails(&["list", "--url", "nonsense", "--token", "t"], 2, &["not an address"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let args = ["serve", "--listen", &address, "--tls-listen", "off"];
    home.fails(&args, 7, &["cannot listen", "--listen"]);
    home.fails(&["serve", "--listen", "0.0.0.0:7070"], 2, &["plain HTTP"]);
}

#[test]
fn what_was_stored_survives_a_kill() {
    let home = Home::new();
    let server = home.serve();
    home.remember(&["tea, no sugar"]);
    drop(server);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(home.all(), ["tea, no sugar"]);
}
