//! Disks that are full and directories that cannot be written, as mounts of the test's own.

use std::process::Stdio;

use crate::common::{Ended, Home, check, ended};

/// Runs a script with mounts of its own, where the system lets a test have them. The script finds
/// the command as `$YORE` and leaves with 99 if it could not mount.
fn mounted(home: &Home, script: &str) -> Option<Ended> {
    let mut command = home.outside("unshare", &["-rm", "sh", "-c", script]);
    command.env("YORE", env!("CARGO_BIN_EXE_yore")).stdin(Stdio::null());
    let done = command.output().ok().map(ended).filter(|done| {
        done.code != 99 && !done.err.starts_with("unshare:") && !done.err.contains("unshare failed")
    });
    if done.is_none() {
        println!("NOT RUN: this system gives a test no mounts of its own");
    }
    done
}

#[test]
fn a_full_disk_takes_nothing_new_and_loses_nothing() {
    let home = Home::new();
    std::fs::create_dir(home.data()).unwrap();
    let script = r#"
        mount -t tmpfs -o size=3m,mode=700 tmpfs "$YORE_DATA" || exit 99
        "$YORE" remember "tea, no sugar" || exit 1
        dd if=/dev/zero of="$YORE_DATA/filler" bs=4k 2>/dev/null
        "$YORE" remember "coffee, black" && exit 2
        echo "full: $?" >&2
        rm "$YORE_DATA/filler"
        "$YORE" remember "cocoa, hot" || exit 3
        "$YORE" audit verify || exit 4
        "$YORE" list --all --json
    "#;
    let Some(done) = mounted(&home, script) else { return };
    check(&done, 0, &["full: 7", "the disk is full", "what was stored before is safe"]);
    for (text, there) in [("tea, no sugar", true), ("coffee", false), ("cocoa, hot", true)] {
        assert_eq!(done.out.contains(text), there, "{text}: {done:?}");
    }
}

#[test]
fn a_server_on_a_full_disk_still_answers_and_goes_on_when_there_is_room() {
    let home = Home::new();
    std::fs::create_dir(home.data()).unwrap();
    let script = r#"
        mount -t tmpfs -o size=6m,mode=700 tmpfs "$YORE_DATA" || exit 99
        "$YORE" serve --listen 127.0.0.1:0 --tls-listen off --json >"$HOME/ready" 2>/dev/null &
        server=$!
        while [ ! -s "$HOME/ready" ]; do sleep 0.05; done
        "$YORE" remember "tea, no sugar" || exit 1
        dd if=/dev/zero of="$YORE_DATA/filler" bs=4k 2>/dev/null
        number=0
        while "$YORE" remember "cup number $number of many, to use up what is left in the journal"
        do number=$((number + 1)); [ $number -lt 200 ] || exit 2; done
        "$YORE" recall "what do I drink without sugar" || exit 3
        rm "$YORE_DATA/filler"
        "$YORE" remember "cocoa, hot" || exit 4
        "$YORE" audit verify || exit 5
        "$YORE" list --all --json >"$HOME/all" || exit 6
        cat "$HOME/all"
        echo "stored $number, listed $(grep -c "cup number" "$HOME/all")" >&2
        kill $server; wait $server
    "#;
    let Some(done) = mounted(&home, script) else { return };
    check(&done, 0, &["the disk is full"]);
    let told = done.err.lines().find_map(|line| line.strip_prefix("stored ")).unwrap();
    let (stored, listed) = told.split_once(", listed ").unwrap();
    assert_eq!(stored, listed, "what was acknowledged is there, what was refused is not: {done:?}");
    assert!(done.out.contains("tea, no sugar") && done.out.contains("cocoa, hot"), "{done:?}");
}

#[test]
fn a_directory_on_a_disk_that_cannot_be_written() {
    let home = Home::new();
    home.remember(&["tea, no sugar"]);
    let script = r#"
        mount --bind "$YORE_DATA" "$YORE_DATA" && mount -o remount,ro,bind "$YORE_DATA" || exit 99
        for command in "list" "remember coffee" "serve --listen 127.0.0.1:0 --tls-listen off"; do
            "$YORE" $command
            [ $? = 7 ] || { echo "$command" >&2; exit 1; }
        done
    "#;
    if let Some(done) = mounted(&home, script) {
        check(&done, 0, &["Read-only file system", "make the directory writable"]);
    }
    assert_eq!(home.all(), ["tea, no sugar"]);
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_grow_is_refused_and_nothing_is_lost() {
    let home = Home::new();
    home.remember(&["tea, no sugar"]);
    let files = crate::common::files(&home.data());
    let largest = files.iter().map(|path| path.metadata().unwrap().len()).max().unwrap();
    let blocks = (largest / 512).to_string();
    // With the signal ignored, a write beyond the limit fails as one on a broken disk does.
    let script = r#"trap "" XFSZ; ulimit -f "$1" || exit 99
        head -c 600000 /dev/zero | tr '\0' 'x' | "$YORE" remember -"#;
    let mut command = home.outside("sh", &["-c", script, "sh", &blocks]);
    let done = ended(command.env("YORE", env!("CARGO_BIN_EXE_yore")).output().unwrap());
    if done.code == 99 {
        println!("NOT RUN: the shell cannot limit the size of files");
        return;
    }
    check(&done, 7, &["the disk is full or fails", "what was stored before is safe"]);
    assert_eq!(home.all(), ["tea, no sugar"]);
}
