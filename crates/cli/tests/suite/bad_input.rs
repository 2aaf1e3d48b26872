//! Input that cannot be right: a clear message, the documented exit code, nothing lost.

use crate::common::{Home, check, files};

fn home_with_tea() -> Home {
    let home = Home::new();
    home.remember(&["tea, no sugar"]);
    home
}

#[test]
fn text_that_is_empty_too_long_or_no_text() {
    let home = home_with_tea();
    home.fails(&["remember", ""], 2, &["the text is empty"]);
    check(&home.piped(&["remember", "-"], b" \n"), 2, &["the text is empty"]);
    check(&home.piped(&["remember", "-"], &vec![b'x'; 10 << 20]), 2, &["larger than 1 MiB"]);
    check(&home.piped(&["remember", "-"], b"caf\xe9"), 2, &["not UTF-8", "byte 3", "iconv"]);
    check(&home.piped(&["recall", "-"], b"\xff"), 2, &["not UTF-8"]);
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let mut command = home.command(&["remember"]);
        command.arg(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        check(&crate::common::ended(command.output().unwrap()), 2, &["invalid UTF-8"]);
    }
    let mixed = home.piped(&["import", "--lines", "-"], b"caf\xe9\n");
    check(&mixed, 1, &["1 of 1 items"]);
    assert!(mixed.out.contains("not UTF-8 text: byte 3"), "{mixed:?}");
    home.fails(&["recall", " "], 2, &["the question is empty"]);
    let long = home.piped(&["recall", "-"], &vec![b'x'; 100 << 10]);
    check(&long, 2, &["larger than"]);
    assert_eq!(home.all(), ["tea, no sugar"]);
}

#[test]
fn a_million_tags() {
    let home = home_with_tea();
    let export = home.ok(&["export"]);
    let mut item: serde_json::Value = serde_json::from_str(export.trim()).unwrap();
    let versions = item.get_mut("versions").unwrap();
    versions[0]["tags"] = vec!["t"; 1_000_000].into();
    versions[0]["memory"] = "6f1f0a52-6c5f-4b0e-9d8f-3f6b3c1a2b4d".into();
    versions[0]["id"] = "6f1f0a52-6c5f-4b0e-9d8f-3f6b3c1a2b4e".into();
    let ended = home.piped(&["import", "-"], format!("{export}{item}\n").as_bytes());
    check(&ended, 1, &["1 of 2 items"]);
    assert!(ended.out.contains("tags is larger than 256"), "{}", ended.out);
    let tags = vec!["t"; 300].join(",");
    home.fails(&["remember", "--tag", &tags, "coffee"], 2, &["tags is larger than 256"]);
    assert_eq!(home.all(), ["tea, no sugar"]);
}

#[test]
fn dates_at_the_ends_of_time() {
    let home = Home::new();
    home.remember(&["--at", "0000-01-01", "the beginning"]);
    home.remember(&["--at", "9999-12-31T23:59:59Z", "the end"]);
    assert_eq!(home.all(), ["the end", "the beginning"]);
    assert!(home.ok(&["list"]).contains("0000-01-01"));
    home.fails(&["remember", "--at", "10000-01-01", "later"], 2, &["not a time"]);
    home.fails(&["remember", "--at", "yesterday", "x"], 2, &["not a time"]);
    let args = ["remember", "--valid-from", "2026-02-01", "--valid-to", "2026-01-01", "x"];
    home.fails(&args, 2, &["before valid_from"]);
    home.fails(&["token", "issue", "--verbs", "read", "--ttl", "soon"], 2, &["length of time"]);
}

#[test]
fn ids_that_name_nothing() {
    let home = home_with_tea();
    home.fails(&["get", "00000000-0000-4000-8000-000000000000"], 3, &["not found", "yore list"]);
    home.fails(&["get", "ffff"], 3, &["not found"]);
    home.fails(&["get", "no such name"], 3, &["not found"]);
    home.fails(&["review", "show", "ffff"], 3, &["yore review list"]);
    home.fails(&["forget"], 2, &["ID"]);
    home.fails(&["wipe"], 2, &["unrecognized"]);
}

#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let locked = home.path("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o500)).unwrap();
    let data = locked.join("data");
    let writable = std::fs::create_dir(&data).is_ok();
    if writable {
        // The administrator writes everywhere; a file in the way stops anyone.
        std::fs::remove_dir(&data).unwrap();
        std::fs::write(&data, "in the way").unwrap();
    }
    let ended = home.run(&["remember", "tea", "--data", data.to_str().unwrap()]);
    check(&ended, if writable { 1 } else { 7 }, &[data.to_str().unwrap()]);
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_wrong_passphrase() {
    let home = Home::new();
    let with = |phrase: &str, args: &[&str]| {
        let mut command = home.command(args);
        let output = command.env("YORE_PASSPHRASE", phrase).output().unwrap();
        crate::common::Ended {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    };
    assert_eq!(with("open sesame", &["remember", "tea, no sugar"]).code, 0);
    let wrong = with("open barley", &["list"]);
    check(&wrong, 8, &["wrong key or passphrase", "YORE_PASSPHRASE"]);
    assert!(!wrong.err.contains("barley"), "{wrong:?}");
    assert!(with("open sesame", &["list"]).out.contains("tea, no sugar"));
    home.fails(&["list"], 8, &["protected by a passphrase"]);
}

#[test]
fn files_that_were_cut_short_or_emptied() {
    let home = home_with_tea();
    let mut damaged = 0;
    for path in files(&home.data()) {
        let whole = std::fs::read(&path).unwrap();
        for kept in [0, whole.len() / 3] {
            std::fs::write(&path, &whole[..kept]).unwrap();
            let ended = home.run(&["list", "--json"]);
            if ended.code == 0 {
                // What is derived is made anew; only what says so may be missing.
                assert!(ended.out.contains("tea, no sugar"), "{}: {ended:?}", path.display());
                continue;
            }
            check(&ended, 8, &[]);
            assert!(ended.err.contains("damaged") || ended.err.contains("cannot be read"));
            check(&home.run(&["remember", "coffee"]), 8, &[]);
            check(&home.run(&["doctor"]), 8, &["checks failed"]);
            std::fs::write(&path, &whole).unwrap();
            assert_eq!(home.all(), ["tea, no sugar"], "looking at damage changed nothing");
            damaged += 1;
        }
    }
    assert_eq!(damaged, 8, "vault, catalog, master.json and proof.salt, each twice");
}

#[test]
fn a_directory_written_by_a_newer_version() {
    let home = home_with_tea();
    let file = home.data().join("master.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let newer = text.replacen("\"format\": 1", "\"format\": 2", 1);
    assert_ne!(newer, text);
    std::fs::write(&file, &newer).unwrap();
    home.fails(&["list"], 8, &["newer version of yore"]);
    home.fails(&["remember", "coffee"], 8, &["newer version of yore"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), newer, "it was left alone");
    std::fs::write(&file, text).unwrap();
    assert_eq!(home.all(), ["tea, no sugar"]);
}
