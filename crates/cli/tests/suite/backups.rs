//! Copies that a server makes by itself.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Home, check, files};

fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !there() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn omp_090_a_server_makes_copies_by_itself_and_hands_them_on() {
    let (home, folder) = (Home::new(), tempfile::tempdir().unwrap());
    home.remember(&["kept in every copy"]);
    let before = home.json(&["backup", "schedule"]);
    assert_eq!((&before["every"], &before["copies"]), (&"off".into(), &0.into()), "{before}");
    check(&home.run(&["backup", "schedule", "hourly"]), 2, &["daily"]);
    check(&home.run(&["backup", "schedule", "daily", "--keep", "0"]), 2, &["keep"]);
    let sent = home.path("sent");
    let command = format!("cp \"$YORE_BACKUP_FILE\" {}", arg(&sent));
    let to = arg(folder.path());
    let args = ["backup", "schedule", "daily", "--to", to, "--keep", "3", "--command", &command];
    let set = home.json(&args);
    assert_eq!((&set["every"], &set["keep"]), (&"daily".into(), &3.into()), "{set}");

    let mut server = home.serve();
    wait_for("no copy was handed on", || sent.exists());
    let shown = home.json(&["backup", "schedule"]);
    assert_eq!(shown["copies"], 1, "{shown}");
    assert_eq!(server.stop(), 0);
    let copies = || -> Vec<_> {
        let all = std::fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().path());
        all.filter(|path| path.extension().is_some_and(|end| end == "yore")).collect()
    };
    let made = copies();
    assert_eq!(made.len(), 1, "{made:?}");
    // A server that starts again on the same day makes no second one.
    let mut server = home.serve();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(server.stop(), 0);
    assert_eq!(copies(), made);
    home.remember(&["said after the copy"]);
    home.ok(&["restore", "--yes", arg(&made[0])]);
    assert_eq!(home.all(), ["kept in every copy"]);
    home.ok(&["backup", "schedule", "off"]);
    assert_eq!(home.json(&["backup", "schedule"])["every"], "off");
}

#[test]
fn a_vault_that_cannot_be_read_is_examined_and_replaced_by_its_copy() {
    let home = Home::new();
    home.remember(&["tea, no sugar"]);
    let copy = home.path("copy.yore");
    home.ok(&["backup", arg(&copy)]);
    let vaults = files(&home.data().join("vaults"));
    let vault = vaults.iter().find(|path| path.extension().is_some_and(|end| end == "db")).unwrap();
    let mut bytes = std::fs::read(vault).unwrap();
    // What the file is opened by stays; nothing else can be read.
    for page in bytes.chunks_mut(4096).skip(1) {
        page[100] ^= 1;
    }
    std::fs::write(vault, bytes).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--tls-listen", "off"];
    home.fails(&serve, 8, &["yore restore"]);
    let doctor = home.run(&["doctor"]);
    check(&doctor, 8, &[]);
    assert!(doctor.out.contains("page 2") && doctor.out.contains("page 3"), "{doctor:?}");
    home.ok(&["restore", "--yes", arg(&copy)]);
    home.ok(&["doctor"]);
    assert_eq!(home.all(), ["tea, no sugar"]);
}
