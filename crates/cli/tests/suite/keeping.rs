//! Taking out, taking in, copying, checking.

use crate::common::{Home, check};

#[test]
fn an_export_goes_in_elsewhere_and_twice_is_once() {
    let (home, other) = (Home::new(), Home::new());
    let id = home.remember(&["--tag", "drinks", "tea, no sugar"]);
    home.ok(&["revise", &id, "coffee, black"]);
    home.remember(&["the car is on the third floor"]);
    let file = home.path("all.ndjson");
    home.ok(&["export", "--out", file.to_str().unwrap()]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 2);
    let done = other.json(&["import", file.to_str().unwrap()]);
    assert_eq!(done["imported"], 2, "{done}");
    let again = other.json(&["import", file.to_str().unwrap()]);
    assert_eq!((again["imported"].as_u64(), again["duplicates"].as_u64()), (Some(0), Some(2)));
    assert_eq!(other.json(&["history", &id]).as_array().unwrap().len(), 2);
    let mut texts = other.all();
    texts.sort();
    assert_eq!(texts, ["coffee, black", "the car is on the third floor"]);
}

#[test]
fn a_truncated_export_gives_all_but_its_last_line() {
    let (home, other) = (Home::new(), Home::new());
    home.remember(&["tea, no sugar"]);
    home.remember(&["the car is on the third floor"]);
    let text = home.ok(&["export"]);
    let cut = &text.as_bytes()[..text.len() - 40];
    let done = other.piped(&["import", "-"], cut);
    check(&done, 1, &["1 of 2 items", "run the import again"]);
    assert!(done.out.contains("line 2"), "{done:?}");
    assert_eq!(other.all().len(), 1);
    let nonsense = other.piped(&["import", "-"], b"tea\ncoffee\n");
    check(&nonsense, 2, &["--lines"]);
    let lines = other.piped(&["import", "--lines", "--tag", "notes", "-"], b"tea\n\ncoffee\n");
    assert_eq!(lines.code, 0, "{lines:?}");
    assert_eq!(other.all().len(), 3);
    other.fails(&["import", "missing.ndjson"], 3, &["missing.ndjson"]);
}

#[test]
fn a_backup_brings_the_vault_back() {
    let home = Home::new();
    home.remember(&["tea, no sugar"]);
    let file = home.path("copy.yore");
    let file = file.to_str().unwrap();
    home.ok(&["backup", file]);
    home.fails(&["backup", file], 6, &["--force"]);
    home.remember(&["later"]);
    home.fails(&["restore", file], 2, &["--yes"]);
    home.ok(&["restore", "--yes", file]);
    assert_eq!(home.all(), ["tea, no sugar"]);
    home.fails(&["restore", "--yes", "missing.yore"], 3, &["missing.yore"]);
    let cut = std::fs::read(file).unwrap();
    std::fs::write(file, &cut[..cut.len() / 2]).unwrap();
    let ended = home.run(&["restore", "--yes", file]);
    assert!(matches!(ended.code, 1 | 2 | 8), "{ended:?}");
    assert_eq!(home.all(), ["tea, no sugar"], "a copy that is cut short replaces nothing");
}

#[test]
fn the_doctor_finds_a_sound_vault_sound_and_an_open_key_suspicious() {
    let home = Home::new();
    home.remember(&["tea, no sugar"]);
    let found = home.json(&["doctor"]);
    let checks = found["checks"].as_array().unwrap();
    for what in
        ["configuration", "data directory", "master key", "storage", "audit chain", "models"]
    {
        let check = checks.iter().find(|check| check["what"] == what).unwrap();
        assert_eq!(check["state"], "ok", "{check}");
    }
    let key = home.path("config/yore/master.key");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(home.data(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let found = home.ok(&["doctor"]);
        assert!(found.contains("warn") && found.contains("chmod 700"), "{found}");
    }
    std::fs::remove_file(key).unwrap();
    let lost = home.run(&["doctor"]);
    check(&lost, 8, &["checks failed"]);
    assert!(lost.out.contains("bring it back"), "{lost:?}");
}
