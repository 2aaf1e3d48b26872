//! Passphrases, key rotation, and what the environment says.

use std::process::Stdio;

use crate::common::{Ended, Home, check, ended};

/// Types lines at a terminal of the command's own, as `script` gives it one.
fn typed(home: &Home, args: &str, lines: &str) -> Option<Ended> {
    use std::io::Write as _;
    let line = format!("'{}' {args}", env!("CARGO_BIN_EXE_yore"));
    let mut command = home.outside("script", &["-qec", &line, "/dev/null"]);
    let Ok(mut child) = command.stdin(Stdio::piped()).spawn() else {
        println!("NOT RUN: script, which gives a command a terminal, is not installed");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    // What is typed before the question is asked would be shown or dropped.
    for line in lines.split_inclusive('\n') {
        std::thread::sleep(std::time::Duration::from_secs(2));
        stdin.write_all(line.as_bytes()).unwrap();
    }
    let done = ended(child.wait_with_output().unwrap());
    drop(stdin);
    Some(done)
}

#[cfg(target_os = "linux")]
#[test]
fn a_passphrase_is_asked_for_and_never_shown() {
    let home = Home::new();
    let differing = "remember --passphrase tea, no sugar";
    let Some(wrong) = typed(&home, differing, "open sesame\nopen barley\n") else { return };
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.out.contains("not the same"), "{wrong:?}");
    assert!(!home.data().join("master.json").exists(), "nothing was made");

    let made = typed(&home, "remember --passphrase tea, no sugar", "open sesame\nopen sesame\n");
    let made = made.unwrap();
    assert_eq!(made.code, 0, "{made:?}");
    let right = typed(&home, "list", "open sesame\n").unwrap();
    assert!(right.code == 0 && right.out.contains("tea, no sugar"), "{right:?}");
    let wrong = typed(&home, "list", "open barley\n").unwrap();
    assert!(wrong.code == 8 && wrong.out.contains("wrong key or passphrase"), "{wrong:?}");
    for shown in [made.out, right.out, wrong.out] {
        assert!(!shown.contains("sesame") && !shown.contains("barley"), "{shown}");
    }
    assert!(!home.path("config/yore/master.key").exists(), "no key file beside it");
}

#[test]
fn without_a_terminal_the_passphrase_comes_from_the_environment() {
    let home = Home::new();
    home.fails(&["remember", "--passphrase", "tea"], 8, &["no terminal", "YORE_PASSPHRASE"]);
    assert!(!home.data().join("master.json").exists(), "nothing was made");
    let with = |args: &[&str]| {
        ended(home.command(args).env("YORE_PASSPHRASE", "open sesame").output().unwrap())
    };
    assert_eq!(with(&["remember", "--passphrase", "tea, no sugar"]).code, 0);
    let refused = home.fails(&["list"], 8, &["protected by a passphrase", "YORE_PASSPHRASE"]);
    assert!(refused.out.is_empty());
    home.fails(&["serve", "--listen", "127.0.0.1:0"], 8, &["protected by a passphrase"]);
    assert!(with(&["list"]).out.contains("tea, no sugar"));
    // A key file that lies where key files lie does not stand in its way.
    let other = home.path("other");
    home.ok(&["remember", "--data", other.to_str().unwrap(), "coffee"]);
    home.fails(&["list"], 8, &["protected by a passphrase"]);
    let both = ["list", "--passphrase", "--key-file", "k"];
    home.fails(&both, 2, &["exclude each other"]);
}

#[test]
fn a_rotated_key_opens_what_the_old_one_did() {
    let home = Home::new();
    home.remember(&["tea, no sugar"]);
    let vault = crate::common::files(&home.data().join("vaults"));
    let vault = vault.iter().find(|path| path.extension().is_some_and(|end| end == "db")).unwrap();
    let before = std::fs::read(vault).unwrap();
    let done = home.json(&["key", "rotate"]);
    assert!(!done["rotated"].as_str().unwrap().is_empty(), "{done}");
    let after = std::fs::read(vault).unwrap();
    let same = before.chunks(4096).zip(after.chunks(4096)).filter(|(a, b)| a == b).count();
    assert_eq!(same, 0, "no page is as it was");
    assert_eq!(home.all(), ["tea, no sugar"]);
    let token = home.ok(&["token", "issue", "--verbs", "read", "--agent", "reader"]);
    check(&home.run(&["key", "rotate", "--token", token.trim()]), 4, &["forbidden"]);
}

#[test]
fn another_passphrase_or_key_file_opens_the_directory_and_the_old_one_no_longer() {
    let home = Home::new();
    home.fails(&["key", "change", "--new-key-file"], 2, &["holds no vault yet"]);
    home.remember(&["tea, no sugar"]);
    home.fails(&["key", "change"], 2, &["--new-passphrase"]);
    let server = home.serve();
    home.fails(&["key", "change", "--new-key-file"], 7, &["stop yore serve first"]);
    drop(server);
    home.fails(&["key", "change", "--new-passphrase"], 8, &["no terminal"]);
    let with = |variable: &str, args: &[&str]| {
        ended(home.command(args).env(variable, "open sesame").output().unwrap())
    };
    let args = ["key", "change", "--new-passphrase"];
    check(&with("YORE_NEW_PASSPHRASE", &args), 0, &[]);
    home.fails(&["list"], 8, &["protected by a passphrase"]);
    let known = |args: &[&str]| with("YORE_PASSPHRASE", args);
    assert!(known(&["list"]).out.contains("tea, no sugar"));
    let former = home.path("config/yore/master.key");
    home.fails(&["list", "--key-file", former.to_str().unwrap()], 8, &["wrong key"]);

    let file = home.path("stick/yore.key");
    let file = file.to_str().unwrap();
    check(&known(&["key", "change", "--new-key-file", file]), 0, &[]);
    home.fails(&["list"], 8, &["wrong key"]);
    assert!(home.ok(&["list", "--key-file", file]).contains("tea, no sugar"));
    home.ok(&["key", "change", "--key-file", file, "--new-key-file"]);
    assert_eq!(home.all(), ["tea, no sugar"]);
    home.ok(&["audit", "verify"]);
}

#[test]
fn variables_are_named_as_documented_and_empty_ones_are_unset() {
    let home = Home::new();
    let show = |set: &[(&str, &str)]| {
        let mut command = home.command(&["config", "show", "--json"]);
        let done = ended(command.envs(set.iter().copied()).output().unwrap());
        assert_eq!(done.code, 0, "{done:?}");
        serde_json::from_str::<serde_json::Value>(&done.out).unwrap()
    };
    let set = show(&[("YORE_LISTEN", "127.0.0.1:1"), ("YORE_TLS_LISTEN", "off")]);
    assert_eq!(set["listen"]["http"], "127.0.0.1:1");
    assert_eq!(set["listen"]["https"], "off");
    let names = ["YORE_DATA", "YORE_CONFIG", "YORE_KEY_FILE", "YORE_URL", "YORE_TOKEN", "YORE_CA"];
    let mut empty: Vec<(&str, &str)> = names.iter().map(|name| (*name, "")).collect();
    empty.extend([("YORE_LISTEN", ""), ("YORE_TLS_LISTEN", ""), ("YORE_VAULT", "")]);
    let set = show(&empty);
    assert_eq!(set["data"], home.path("share/yore").to_str().unwrap(), "the platform's own");
    assert_eq!(set["listen"]["http"], "127.0.0.1:7070");
    home.fails(&["list", "--data", ""], 2, &["--data is empty"]);
}
