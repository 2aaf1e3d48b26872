//! How answers look: to people, to programs, to shells.

use crate::common::Home;

#[test]
fn the_help_of_the_command_is_what_it_was() {
    let home = Home::new();
    let help = home.ok(&["--help"]);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/help.txt");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(file, &help).unwrap();
    }
    let kept = std::fs::read_to_string(file).unwrap();
    assert_eq!(help, kept, "run with UPDATE_SNAPSHOTS=1 if the change is meant");
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let home = Home::new();
    home.remember(&["tea, no sugar"]);
    let colour = |set: &[(&str, &str)]| {
        let mut command = home.command(&["list"]);
        command.envs(set.iter().copied());
        String::from_utf8(command.output().unwrap().stdout).unwrap().contains('\u{1b}')
    };
    assert!(!colour(&[]), "a pipe gets none");
    assert!(colour(&[("CLICOLOR_FORCE", "1")]), "unless it asks for it");
    assert!(!colour(&[("NO_COLOR", "1")]));
}

#[test]
fn stored_text_cannot_command_the_terminal() {
    let home = Home::new();
    home.remember(&["before\u{1b}[2J\u{7}after"]);
    let shown = home.ok(&["list"]);
    assert!(shown.contains("before") && !shown.contains('\u{1b}') && !shown.contains('\u{7}'));
}

#[test]
fn errors_are_json_too() {
    let home = Home::new();
    let ended = home.run(&["get", "00000000-0000-4000-8000-000000000000", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&ended.err).unwrap();
    assert_eq!((error["error"]["code"].as_str(), ended.code), (Some("not_found"), 3));
    assert_eq!(error["error"]["exit"], 3);
}

#[test]
fn every_answer_in_json_is_json() {
    let home = Home::new();
    let id = home.remember(&["tea, no sugar"]);
    let documents: [&[&str]; 19] = [
        &["recall", "tea"],
        &["search", "tea"],
        &["context", "tea"],
        &["get", &id],
        &["history", &id],
        &["list", "--count"],
        &["review", "list"],
        &["review", "rule", "list"],
        &["grant", "list", "--all"],
        &["token", "list", "--all"],
        &["legal-hold", "set", &id],
        &["key", "rotate"],
        &["job", "list"],
        &["audit", "list"],
        &["audit", "verify"],
        &["config", "check"],
        &["config", "show"],
        &["config", "path"],
        &["doctor"],
    ];
    for args in documents {
        home.json(args);
    }
    for args in [&["list"][..], &["export"], &["audit", "export"]] {
        let out = home.ok(&[args, &["--json"]].concat());
        assert!(!out.is_empty(), "{args:?}");
        for line in out.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    }
}

#[test]
fn shells_get_their_completions_and_config_is_checked() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.ok(&["completions", shell]).contains("yore"), "{shell}");
    }
    let file = home.path("bad.toml");
    std::fs::write(&file, "lisen = 1\n").unwrap();
    let args = ["config", "check", "--config", file.to_str().unwrap()];
    home.fails(&args, 2, &["lisen", "yore config check"]);
    assert!(home.ok(&["config", "show"]).contains("127.0.0.1:7070"));
    assert!(!home.data().exists(), "nothing was opened");
}

#[test]
fn every_command_has_its_manual_page() {
    let home = Home::new();
    let pages = home.path("man1");
    home.ok(&["man", pages.to_str().unwrap()]);
    let help = home.ok(&["--help"]);
    let listed = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    // What is deeper in goes on from the line before.
    let listed = listed.filter(|line| !line.starts_with("   "));
    let mut count = 0;
    let listed = listed.filter_map(|line| line.split_whitespace().next());
    for command in listed.filter(|command| *command != "help") {
        let page = pages.join(format!("yore-{command}.1"));
        let text = std::fs::read_to_string(&page).unwrap_or_else(|_| panic!("{page:?}"));
        assert!(text.contains(".TH") && text.contains("yore"), "{command}");
        count += 1;
    }
    assert!(count > 30, "{count}: {help}");
    assert!(!home.data().exists(), "nothing was opened");
}
