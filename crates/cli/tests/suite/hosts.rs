//! Two hosts in step: `yore sync URL` between real servers over TLS.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Ended, Home, Server, ended, post};

/// The first of January 2026, in microseconds.
const START: i64 = 1_767_225_600_000_000;

/// A vault with a server.
struct Host {
    home: Home,
    server: Server,
    token: String,
}

impl Host {
    fn new() -> Self {
        let home = Home::new();
        let server = home.serve();
        let token = server.ready["owner_token"].as_str().unwrap().to_owned();
        Self { home, server, token }
    }

    fn api(&self, operation: &str, input: &Value) -> Value {
        let path = format!("/api/v1/{operation}");
        post(&self.server.url(), &self.token, &path, &input.to_string())
    }

    /// Says something in a conversation.
    fn says(&self, talk: &Value, messages: &[(&str, &str)]) {
        let messages: Vec<Value> = messages.iter().map(|(id, text)| message(id, text)).collect();
        let done = self.api("converse", &json!({"conversation": talk, "messages": messages}));
        assert!(done["conversation"].is_string(), "{done}");
    }

    /// What it holds: the ids of the messages of each conversation, and the texts of memories.
    fn holds(&self) -> (BTreeMap<String, Vec<String>>, Vec<String>) {
        let (mut talks, mut texts) = (BTreeMap::new(), Vec::new());
        for line in self.home.ok(&["export"]).lines() {
            let item: Value = serde_json::from_str(line).unwrap();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            if item["item"] == "conversation" {
                let messages = item["messages"].as_array().unwrap();
                let mut ids: Vec<String> = messages.iter().map(|one| text(&one["id"])).collect();
                ids.sort();
                talks.insert(text(&item["conversation"]["id"]), ids);
            } else if item["item"] == "memory" {
                let last = item["versions"].as_array().unwrap().last().unwrap().clone();
                texts.push(format!("{} {}", text(&last["memory"]), text(&last["body"]["text"])));
            }
        }
        texts.sort();
        (talks, texts)
    }

    /// A sync with another host, from here.
    fn syncing(&self, other: &Self, more: &[&str]) -> Command {
        let url = other.server.ready["https"].as_str().unwrap();
        let ca = other.home.data().join("tls/ca.pem");
        let mut command = self.home.command(&[&["sync", url, "--json"], more].concat());
        command.env("YORE_PEER_TOKEN", &other.token).env("YORE_PEER_CA", ca);
        command
    }

    fn sync(&self, other: &Self, more: &[&str]) -> Value {
        let ended: Ended = ended(self.syncing(other, more).output().unwrap());
        assert_eq!(ended.code, 0, "{ended:?}");
        serde_json::from_str(&ended.out).unwrap()
    }
}

fn talk(id: &str, title: &str, platform: &str, tags: &[&str]) -> Value {
    json!({
        "id": format!("{id:0<8}-0000-4000-8000-000000000000"), "title": title,
        "platform": platform, "tags": tags,
        "created": START, "updated": START,
    })
}

fn message(id: &str, text: &str) -> Value {
    json!({
        "id": message_id(id), "role": "user", "content": text, "text": text,
        "at": START,
    })
}

fn message_id(id: &str) -> String {
    format!("{id:0<8}-1111-4111-8111-111111111111")
}

fn id_of(talk: &Value) -> String {
    talk["id"].as_str().unwrap().to_owned()
}

#[test]
fn two_hosts_come_into_step_and_stay_so() {
    let (left, right) = (Host::new(), Host::new());
    let (first, second) = (talk("a1", "First", "claude", &[]), talk("b1", "Second", "grok", &[]));
    left.says(&first, &[("a1", "hello"), ("a2", "and more")]);
    right.says(&second, &[("b1", "good day")]);
    let tea = left.home.remember(&["tea, no sugar"]);
    right.home.remember(&["lives in Bern", "--label", "home"]);

    let done = left.sync(&right, &[]);
    assert_eq!(
        done["sent"],
        json!({"conversations": 1, "messages": 2, "memories": 1, "deleted": 0})
    );
    assert_eq!(
        done["received"],
        json!({"conversations": 1, "messages": 1, "memories": 1, "deleted": 0})
    );
    assert_eq!(left.holds(), right.holds());
    assert_eq!(left.holds().0.len(), 2);

    // Nothing is new, and nothing is done twice, from whichever side.
    let again = left.sync(&right, &[]);
    assert_eq!(
        again["sent"],
        json!({"conversations": 0, "messages": 0, "memories": 0, "deleted": 0})
    );
    assert_eq!(again["received"], again["sent"]);
    let back = right.sync(&left, &[]);
    assert_eq!((&back["sent"], &back["received"]), (&again["sent"], &again["sent"]));
    assert_eq!(back["proposed"], 0, "{back}");

    // Both add to one conversation; each changes another memory.
    left.says(&first, &[("a3", "from the left")]);
    right.says(&first, &[("a4", "from the right")]);
    left.home.ok(&["revise", &tea, "tea, two sugars"]);
    let done = left.sync(&right, &[]);
    assert_eq!((&done["sent"]["messages"], &done["received"]["messages"]), (&1.into(), &1.into()));
    assert_eq!(done["sent"]["memories"], 1, "{done}");
    assert_eq!(left.holds(), right.holds());
    assert_eq!(left.holds().0[&id_of(&first)].len(), 4);
    assert!(right.home.all().contains(&"tea, two sugars".to_owned()));
    assert!(right.home.ok(&["list", "--label", "home"]).contains("Bern"), "labels go along");
}

#[test]
fn deletions_go_both_ways_and_nothing_comes_back() {
    let (left, right) = (Host::new(), Host::new());
    let talks = ["a1", "b1", "c1"].map(|id| talk(id, id, "claude", &[]));
    for (one, id) in talks.iter().zip(["a", "b", "c"]) {
        left.says(one, &[(id, "words"), (&format!("{id}2"), "more words")]);
    }
    let tea = left.home.remember(&["tea, no sugar"]);
    let bern = right.home.remember(&["lives in Bern"]);
    left.sync(&right, &[]);
    assert_eq!(left.holds(), right.holds());

    left.home.ok(&["delete", "--conversation", &id_of(&talks[0]), "--yes"]);
    right.home.ok(&["delete", "--conversation", &id_of(&talks[1]), "--yes"]);
    let one = format!("{}/{}", id_of(&talks[2]), message_id("c"));
    right.home.ok(&["delete", "--message", &one, "--yes"]);
    left.home.ok(&["delete", "--memory", &bern, "--yes"]);
    right.home.ok(&["delete", "--memory", &tea, "--yes"]);
    let done = left.sync(&right, &[]);
    assert_eq!(done["sent"]["deleted"], 2, "{done}");
    assert_eq!(done["received"]["deleted"], 3, "{done}");
    assert_eq!(left.holds(), right.holds());
    assert_eq!(left.holds().0.len(), 1);
    assert_eq!(left.holds().0[&id_of(&talks[2])], [message_id("c2")]);
    assert!(left.holds().1.is_empty());

    // Who never heard of the deletion brings it back to nobody.
    let third = Host::new();
    third.says(&talks[0], &[("a", "words"), ("a2", "more words")]);
    third.says(&talks[2], &[("c", "words"), ("c2", "more words")]);
    let done = third.sync(&left, &[]);
    assert!(!left.holds().0.contains_key(&id_of(&talks[0])), "{done}");
    assert_eq!(left.holds().0[&id_of(&talks[2])], [message_id("c2")], "{done}");
    let again = third.sync(&left, &["--anew"]);
    assert!(!left.holds().0.contains_key(&id_of(&talks[0])), "{again}");
}

/// What waits because two hosts say something else.
fn waiting(host: &Host) -> Vec<Value> {
    let held = host.home.json(&["review", "list"]);
    let held = held.as_array().unwrap().iter();
    held.filter(|hold| hold["reason"]["sync_conflict"].is_string()).cloned().collect()
}

#[test]
fn what_both_changed_becomes_a_proposal() {
    let (left, right) = (Host::new(), Host::new());
    let names = ["one", "two", "three"].map(|name| left.home.remember(&[name]));
    left.sync(&right, &[]);
    let both = |number: usize, ours: &str, theirs: &str| {
        left.home.ok(&["revise", &names[number], ours]);
        right.home.ok(&["revise", &names[number], theirs]);
    };
    both(0, "one, left", "one, right");
    both(1, "two, left", "two, right");
    both(2, "three, the same", "three, the same");
    let done = left.sync(&right, &[]);
    assert_eq!(done["proposed"], 2, "{done}");
    let held = waiting(&left);
    assert_eq!(held.len(), 2, "{held:?}");
    assert!(left.home.all().contains(&"one, left".to_owned()), "nothing was overwritten");
    assert!(right.home.all().contains(&"one, right".to_owned()), "nothing was overwritten");
    let again = left.sync(&right, &[]);
    assert_eq!((&again["proposed"], &again["waiting"]), (&0.into(), &2.into()), "{again}");

    let about = |name: &str| {
        let hold = held.iter().find(|hold| hold["reason"]["sync_conflict"] == name).unwrap();
        hold["id"].as_str().unwrap().to_owned()
    };
    left.home.ok(&["review", "approve", &about(&names[0])]);
    left.home.ok(&["review", "reject", &about(&names[1])]);
    let done = left.sync(&right, &[]);
    assert_eq!(done["waiting"], 0, "{done}");
    assert_eq!(left.holds(), right.holds());
    for text in ["one, right", "two, left", "three, the same"] {
        assert!(right.home.all().contains(&text.to_owned()), "{text}");
    }

    // Deleted here and changed there: a person decides there, and nothing comes back.
    left.home.ok(&["delete", "--memory", &names[0], "--yes"]);
    right.home.ok(&["revise", &names[0], "one, since"]);
    let done = left.sync(&right, &[]);
    assert_eq!(done["proposed"], 1, "{done}");
    assert!(right.home.all().contains(&"one, since".to_owned()));
    assert!(!left.home.all().contains(&"one, since".to_owned()));
    let held = waiting(&right);
    right.home.ok(&["review", "approve", held[0]["id"].as_str().unwrap()]);
    left.sync(&right, &[]);
    assert_eq!(left.holds(), right.holds());
}

#[test]
fn only_what_is_chosen_leaves() {
    let (left, right) = (Host::new(), Host::new());
    left.says(&talk("a1", "Work", "claude", &["work"]), &[("a", "budget")]);
    left.says(&talk("b1", "Home", "claude", &["home"]), &[("b", "garden")]);
    left.says(&talk("c1", "Other", "grok", &["work"]), &[("c", "weather")]);
    left.home.remember(&["tea, no sugar", "--tag", "work"]);
    left.home.remember(&["blood pressure 120/80", "--label", "health"]);
    let done = left.sync(&right, &["--only", "platform:claude", "--only", "tag:work"]);
    assert_eq!(done["sent"]["conversations"], 1, "{done}");
    assert_eq!(done["sent"]["memories"], 0, "a memory of no platform: {done}");
    let done = left.sync(&right, &["--only", "tag:work"]);
    assert_eq!(done["sent"]["conversations"], 1, "{done}");
    assert_eq!(done["sent"]["memories"], 1, "{done}");
    assert_eq!(right.home.all(), ["tea, no sugar"]);
    let done = left.sync(&right, &["--only", "label:health"]);
    assert_eq!(done["sent"]["memories"], 1, "{done}");
    assert_eq!(right.holds().0.len(), 2);
    let wrong = ended(left.syncing(&right, &["--only", "work"]).output().unwrap());
    crate::common::check(&wrong, 2, &["platform:NAME"]);
}

#[test]
fn a_sync_that_is_killed_goes_on_and_doubles_nothing() {
    let (left, right) = (Host::new(), Host::new());
    let full = std::env::var_os("YORE_FULL").is_some();
    let (kills, count) = if full { (20, 400) } else { (3, 60) };
    for number in 0..count {
        let one = talk(&format!("{number:08x}"), "A talk", "claude", &[]);
        let said = [(format!("{number:06x}01"), "words"), (format!("{number:06x}02"), "more")];
        let said: Vec<(&str, &str)> = said.iter().map(|(id, text)| (id.as_str(), *text)).collect();
        if number % 2 == 0 { left.says(&one, &said) } else { right.says(&one, &said) }
    }
    let lines: String = (0..count).map(|number| format!("fact number {number}\n")).collect();
    left.home.piped(&["import", "--lines", "-"], lines.as_bytes());
    let mut cut = 0;
    for round in 0..kills {
        let mut child = left.syncing(&right, &[]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(150 + 97 * round));
        if child.try_wait().unwrap().is_none() {
            cut += 1;
        }
        // It may have ended by itself.
        let _ = child.kill();
        child.wait().unwrap();
    }
    assert!(cut > 0, "no sync was cut off");
    let done = left.sync(&right, &[]);
    assert_eq!(done["proposed"], 0, "{done}");
    let (ours, theirs) = (left.holds(), right.holds());
    assert_eq!(ours.0.len(), count, "{done}");
    assert!(ours.0.values().all(|messages| messages.len() == 2));
    assert_eq!(ours.1.len(), count);
    assert_eq!(ours, theirs);
    assert_eq!(left.sync(&right, &[])["sent"]["conversations"], 0);
}

#[test]
fn attachments_come_along_and_strangers_do_not() {
    let (left, right) = (Host::new(), Host::new());
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/connectors/chatgpt");
    let folder = std::fs::read_dir(sample).unwrap().map(|entry| entry.unwrap().path());
    for path in folder {
        left.home.run(&["import", "--no-proposals", path.to_str().unwrap()]);
    }
    let done = left.sync(&right, &[]);
    assert_eq!(left.holds().0, right.holds().0, "{done}");
    let archive = |host: &Host| {
        let path = host.home.path("whole.omp.zip");
        host.home.json(&["backup", path.to_str().unwrap()])
    };
    let (ours, theirs) = (archive(&left), archive(&right));
    assert_eq!(ours["attachments"], theirs["attachments"], "{ours} {theirs}");

    let agent = right.home.ok(&["token", "issue", "--verbs", "read,write", "--agent", "x"]);
    let mut command = left.syncing(&right, &[]);
    command.env("YORE_PEER_TOKEN", agent.trim());
    crate::common::check(&ended(command.output().unwrap()), 4, &["the owner's"]);
    let mut command = left.syncing(&right, &[]);
    command.env("YORE_PEER_TOKEN", "yore_v_nonsense");
    crate::common::check(&ended(command.output().unwrap()), 4, &[]);
    let mut command = left.syncing(&right, &[]);
    command.env_remove("YORE_PEER_CA");
    crate::common::check(&ended(command.output().unwrap()), 7, &["--peer-ca"]);
}

impl Host {
    /// A migration to another host, from here.
    fn migrating(&self, other: &Self, more: &[&str]) -> Command {
        let url = other.server.ready["https"].as_str().unwrap();
        let ca = other.home.data().join("tls/ca.pem");
        let mut command = self.home.command(&[&["migrate", url, "--json"], more].concat());
        command.env("YORE_PEER_TOKEN", &other.token).env("YORE_PEER_CA", ca);
        command
    }
}

#[test]
fn omp_093_a_vault_moves_and_what_stays_behind_is_counted() {
    let (old, new) = (Host::new(), Host::new());
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/connectors/claude");
    for path in std::fs::read_dir(sample).unwrap() {
        old.home.run(&["import", "--no-proposals", path.unwrap().path().to_str().unwrap()]);
    }
    let tea = old.home.remember(&["tea, no sugar", "--label", "home"]);
    old.home.ok(&["revise", &tea, "tea, two sugars"]);
    old.home.ok(&["token", "issue", "--verbs", "read", "--agent", "reader"]);
    new.home.remember(&["was here before"]);
    let said = |ended: &Ended| serde_json::from_str::<Value>(&ended.out).unwrap();

    let tried = ended(old.migrating(&new, &["--dry-run"]).output().unwrap());
    assert_eq!(tried.code, 0, "{tried:?}");
    let tried = said(&tried);
    assert_eq!(tried["moves"]["memories"], 1, "{tried}");
    assert_eq!(tried["notice"]["stays_here"]["grants"], 1, "{tried}");
    assert!(tried["notice"]["stays_here"]["entries of the audit chain"].as_u64() > Some(1));
    assert_eq!(new.holds().0.len(), 0, "it was only said");
    let asked = ended(old.migrating(&new, &[]).output().unwrap());
    crate::common::check(&asked, 2, &["--yes"]);
    assert_eq!(new.holds().0.len(), 0, "nobody agreed");

    let done = ended(old.migrating(&new, &["--yes"]).output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    let done = said(&done);
    assert_eq!(done["verified"], tried["moves"], "{done}");
    assert_eq!(done["missing"], json!([]), "{done}");
    assert_eq!(old.holds().0, new.holds().0);
    assert_eq!(new.home.all().len(), 2);
    let history = new.home.json(&["history", &tea]);
    assert_eq!(history.as_array().unwrap().len(), 2, "versions go along: {history}");
    let again = said(&ended(old.migrating(&new, &["--yes"]).output().unwrap()));
    assert_eq!(again["summary"]["conversations"]["imported"], 0, "{again}");

    // What was deleted there is missed, and the command says so.
    let gone = old.holds().0.keys().next().unwrap().clone();
    new.home.ok(&["delete", "--conversation", &gone, "--yes"]);
    let missed = ended(old.migrating(&new, &["--yes"]).output().unwrap());
    crate::common::check(&missed, 6, &["1 things are not there"]);
    assert!(said(&missed)["missing"][0].as_str().unwrap().contains(&gone));
}
