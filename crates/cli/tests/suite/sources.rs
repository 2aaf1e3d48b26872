//! `yore watch sources`: what programs keep on this machine, and exports that appear.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::common::Home;

fn sample(path: &str) -> PathBuf {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/connectors");
    PathBuf::from(vectors).join(path)
}

fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn copied(from: &Path, to: &Path) {
    if from.is_dir() {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copied(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(from, to).unwrap();
    }
}

/// What one look came to, by source.
fn looked(home: &Home, args: &[&str]) -> Vec<(String, Value)> {
    let out = home.ok(&[&["watch", "sources", "--once", "--json"], args].concat());
    out.lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            (row["source"].as_str().unwrap().to_owned(), row)
        })
        .collect()
}

#[test]
fn omp_102_programs_and_new_exports_are_kept_in_step() {
    let home = Home::new();
    assert_eq!(looked(&home, &[]), [], "nothing is here yet");
    copied(&sample("claude-code/dot-claude"), &home.path(".claude"));
    copied(&sample("codex/dot-codex"), &home.path(".codex"));
    copied(&sample("copilot/vscode/User"), &home.path("config/Code/User"));
    let downloads = home.path("Downloads");
    let export = downloads.join("claude-data.zip");
    copied(&sample("claude/claude-data-batch-0000.zip"), &export);
    let photos = downloads.join("photos.zip");
    std::fs::write(&photos, b"PK no export").unwrap();
    let written = |path: &Path, seconds: u64| {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
    };
    // One that is still being written waits, and one that holds no conversations is passed over.
    written(&photos, 1_700_000_000);
    written(&export, 4_000_000_000);
    let args = ["--downloads", arg(&downloads)];
    let first = looked(&home, &args);
    let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["claude-code", "codex", "vscode"], "{first:?}");
    for (name, row) in &first {
        assert!(row["imported"].as_u64() > Some(0), "{name}: {row}");
    }
    written(&export, 1_700_000_000);
    let second = looked(&home, &args);
    let (_, row) = second.iter().find(|(name, _)| name.ends_with("claude-data.zip")).unwrap();
    assert!(row["imported"].as_u64() > Some(0), "{row}");
    // What was taken in whole is not read again, although another process looks.
    let whole = |row: &Value| row["skipped"] == json!([]) && row["rejected"] == json!([]);
    assert!(first.iter().any(|(_, row)| whole(row)), "{first:?}");
    for (name, row) in first.iter().filter(|(_, row)| whole(row)) {
        assert!(second.iter().all(|(other, _)| other != name), "{name}: {row}");
    }
    let again = looked(&home, &[&args[..], &["--again"]].concat());
    assert_eq!(again.len(), 4, "{again:?}");
    for (name, row) in again.iter().filter(|(name, _)| !name.ends_with(".zip")) {
        assert_eq!((&row["imported"], &row["merged"]), (&0.into(), &0.into()), "{name}: {row}");
        assert_eq!(row["duplicates"], row["found"], "{name}: {row}");
    }
    // A session that goes on is added to.
    let sessions = home.path(".codex/sessions/2026/03/14");
    let session = std::fs::read_dir(&sessions).unwrap().next().unwrap().unwrap().path();
    let mut text = std::fs::read_to_string(&session).unwrap();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(concat!(
        r#"{"timestamp":"2026-03-14T10:00:00.000Z","type":"response_item","payload":{"type":"message","#,
        r#""role":"user","content":[{"type":"input_text","text":"and the drones?"}]}}"#,
        "\n"
    ));
    std::fs::write(&session, text).unwrap();
    let third = looked(&home, &[]);
    let (_, row) = third.iter().find(|(name, _)| name == "codex").unwrap();
    assert_eq!((&row["imported"], &row["merged"]), (&0.into(), &1.into()), "{row}");
    let found = home.json(&["search", "--in", "conversations", "drones"]);
    assert!(found.to_string().contains("and the drones?"), "{found}");
}

#[test]
fn a_source_that_cannot_be_read_does_not_stop_the_others() {
    let home = Home::new();
    copied(&sample("grok"), &home.path("grok"));
    std::fs::write(home.path("broken.db"), b"SQLite format 3\0 and no more").unwrap();
    let (grok, broken) = (home.path("grok"), home.path("broken.db"));
    let rows = looked(&home, &["--no-programs", arg(&broken), arg(&grok)]);
    let (_, row) = rows.iter().find(|(name, _)| name.ends_with("grok")).unwrap();
    assert_eq!(row["imported"], 1, "{rows:?}");
}

#[test]
fn memories_pasted_from_a_chat_are_read_beside_instructions() {
    let (home, folder) = (Home::new(), tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("CLAUDE.md"), "# Build\n\nAlways run the linter.\n").unwrap();
    let pasted = "[2026-03-01] - Keeps bees behind the house.\n[unknown] - Likes marzipan.\n";
    std::fs::write(folder.path().join("memories.txt"), pasted).unwrap();
    let sum = home.json(&["import", folder.path().to_str().unwrap()]);
    assert_eq!(sum["skipped"].as_array().map_or(0, Vec::len), 0, "{sum}");
    assert_eq!(sum["exports"]["memories"], 2, "{sum}");
    let held = home.ok(&["review", "list", "--json"]);
    assert!(held.contains("bees") && held.contains("marzipan"), "{held}");
    assert!(home.all().concat().contains("linter"));
}
