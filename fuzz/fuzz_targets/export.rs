//! Exports of every platform: any bytes in a file of any name are read or named, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

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

fuzz_target!(|data: &[u8]| yore_fuzz::read_as(&NAMES, data));
