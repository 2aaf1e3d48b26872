//! Exports of every platform: any bytes in a file of any name are read or named, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use yore_archive::{Limits, Source, read};

const NAMES: [&str; 8] = [
    "conversations.json",
    "export.zip",
    "session.jsonl",
    "rollout-1.jsonl.zst",
    "state.vscdb",
    "MyActivity.html",
    "activity.csv",
    "CLAUDE.md",
];

fuzz_target!(|data: &[u8]| {
    let Some((name, bytes)) = data.split_first() else { return };
    let folder = std::env::temp_dir().join(format!("yore-fuzz-{}", std::process::id()));
    let path = folder.join(NAMES[usize::from(*name) % NAMES.len()]);
    if std::fs::create_dir_all(&folder).is_err() || std::fs::write(&path, bytes).is_err() {
        return;
    }
    let limits = Limits { inflated: 64 << 20, piece: 1 << 20, ..Limits::default() };
    if let Ok(source) = Source::open(std::slice::from_ref(&path), limits) {
        let _ = read(&source, &mut |_| Ok(())); // what is refused is refused
    }
    let _ = std::fs::remove_file(&path); // the next round may write it again
});
