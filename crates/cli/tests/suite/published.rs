//! What is public: files for anybody, and a server that answers strangers.

use serde_json::{Value, json};

use crate::common::{Home, ask, files, post};

fn record(text: &str, visibility: &str) -> String {
    let record = json!({"kind": "semantic", "body": {"text": text},
        "scope": {"owner": "owner", "visibility": visibility}});
    json!({"record": record}).to_string()
}

#[test]
fn ump_106_what_is_public_is_written_with_its_manifest_and_nothing_else_is() {
    let home = Home::new();
    let server = home.serve();
    let token = home.ok(&["token", "owner"]);
    let say = |text: &str, who: &str| {
        let answer = post(&server.url(), token.trim(), "/ump/remember", &record(text, who));
        answer["id"].as_str().unwrap().to_owned()
    };
    let open = say("how this project builds", "public");
    say("how I feel", "private");
    say("what we agreed", "shared");
    let site = home.path("site");
    let dir = site.to_str().unwrap();
    let args =
        ["publish", dir, "--at", "https://me.example/", "--format", "ump.json,ndjson,ump.md"];
    let manifest = home.json(&args);
    assert_eq!(manifest["exports"][0]["url"], "https://me.example/memories.ump.json");
    assert_eq!(
        manifest["exports"][2],
        json!({"url": "https://me.example/memories/", "format": "ump.md"})
    );
    assert!(manifest["owner"].as_str().unwrap().starts_with("did:key:z6Mk"), "{manifest}");
    let written = std::fs::read_to_string(site.join(".well-known/ump.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), manifest);
    let all: String =
        files(&site).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(all.contains("how this project builds"), "{all}");
    assert!(!all.contains("how I feel") && !all.contains("what we agreed"), "{all}");
    let records: Value =
        serde_json::from_str(&std::fs::read_to_string(site.join("memories.ump.json")).unwrap())
            .unwrap();
    assert_eq!(records[0]["id"], open.as_str());
    assert!(records[0]["integrity"].is_object(), "{records}");

    let forget = json!({"id": open, "reason": "no longer"}).to_string();
    post(&server.url(), token.trim(), "/ump/forget", &forget);
    home.ok(&args);
    let all: String =
        files(&site).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(!all.contains("how this project builds"), "what is public no more is gone: {all}");
    home.fails(&["publish"], 2, &["publish.directory"]);
    let reader = home.ok(&["token", "issue", "--verbs", "read"]);
    home.fails(&["publish", dir, "--token", reader.trim()], 4, &["export"]);
}

#[test]
fn ump_106_forms_that_are_no_longer_listed_leave_no_copy_and_nothing_else_goes() {
    let home = Home::new();
    let server = home.serve();
    let token = home.ok(&["token", "owner"]);
    post(&server.url(), token.trim(), "/ump/remember", &record("how this builds", "public"));
    let site = home.path("site");
    let dir = site.to_str().unwrap();
    let publish = |forms: &str| home.ok(&["publish", dir, "--format", forms]);
    publish("ump.json,ndjson,ump.md");
    let there = |name: &str| site.join(name).exists();
    assert!(there("memories.ump.json") && there("memories.ndjson") && there("memories"));
    publish("ump.json");
    assert!(there("memories.ump.json") && !there("memories.ndjson") && !there("memories"));
    publish("ndjson");
    assert!(!there("memories.ump.json") && there("memories.ndjson"));

    // What was not published from here is not touched.
    let own = site.join("memories");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("diary.txt"), "mine").unwrap();
    publish("ndjson");
    home.fails(&["publish", dir, "--format", "ump.md"], 6, &["memories", "not published"]);
    assert_eq!(std::fs::read_to_string(own.join("diary.txt")).unwrap(), "mine");
    let private = json!([{"ump": "1.0", "scope": {"visibility": "private"}}]).to_string();
    std::fs::write(site.join("memories.ump.json"), &private).unwrap();
    home.fails(&["publish", dir, "--format", "ndjson"], 6, &["memories.ump.json"]);
    assert_eq!(std::fs::read_to_string(site.join("memories.ump.json")).unwrap(), private);
}

#[test]
fn ump_060_strangers_are_answered_once_the_owner_says_so() {
    let home = Home::new();
    let server = home.serve();
    let url = server.url();
    let token = home.ok(&["token", "owner"]);
    let say = |text: &str, who: &str| {
        let answer = post(&url, token.trim(), "/ump/remember", &record(text, who));
        format!("GET /ump/memory/{}", answer["id"].as_str().unwrap().replace(':', "%3A"))
    };
    let (open, hidden) = (say("how this project builds", "public"), say("how I feel", "private"));
    let missing = "GET /ump/memory/urn%3Aump%3Aaaaa";
    assert_eq!(ask(&url, "", &open, "").0, 401);
    let reader = home.ok(&["token", "issue", "--verbs", "read"]);
    home.fails(&["publish", "--reads", "on", "--token", reader.trim()], 4, &["admin"]);
    home.ok(&["publish", "--reads", "on"]);
    let (status, body) = ask(&url, "", &open, "");
    assert!(status == 200 && body.contains("how this project builds"), "{body}");
    assert_eq!(ask(&url, "", &hidden, ""), ask(&url, "", missing, ""), "hidden is missing");
    assert_eq!(ask(&url, "", &hidden, "").0, 404);
    assert_eq!(ask(&url, "", "POST /ump/remember", &record("x", "public")).0, 401);
    assert_eq!(ask(&url, "", "POST /ump/export", "{}").0, 401);
    home.ok(&["publish", "--reads", "off"]);
    assert_eq!(ask(&url, "", &open, "").0, 401);
    home.fails(&["publish", "--reads", "maybe"], 2, &["on or off"]);
}

#[test]
fn the_configuration_opens_the_vault_and_lists_what_is_published() {
    let home = Home::new();
    let config = home.path("config/yore/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let site = home.path("site");
    let text = format!(
        "[ump]\nendpoint = 'https://me.example'\npublic_reads = true\n\
         [publish]\ndirectory = '{}'\nurl = 'https://me.example'\nformats = ['ndjson']\n",
        site.display()
    );
    std::fs::write(&config, text).unwrap();
    let server = home.serve();
    let token = home.ok(&["token", "owner"]);
    post(
        &server.url(),
        token.trim(),
        "/ump/remember",
        &record("how this project builds", "public"),
    );
    let (status, body) = ask(&server.url(), "", "GET /.well-known/ump.json", "");
    assert_eq!(status, 200);
    let manifest: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(manifest["endpoint"], "https://me.example");
    let listed = json!([{"url": "https://me.example/memories.ndjson", "format": "ndjson"}]);
    assert_eq!(manifest["exports"], listed);
    let question = json!({"query": "how is it built?"}).to_string();
    let found = post(&server.url(), "", "/ump/recall", &question);
    assert_eq!(found["results"][0]["record"]["body"]["text"], "how this project builds");
    home.ok(&["publish"]);
    let lines = std::fs::read_to_string(site.join("memories.ndjson")).unwrap();
    assert_eq!(lines.lines().count(), 1, "the manifest's exports are what is written");
}
