//! The first moment of a process: several threads open their files before any other has.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

use std::sync::Barrier;

use support::*;

const CHILD: &str = "YORE_TEST_FIRST_OPEN";
const THREADS: usize = 8;

/// SQLite calls itself ready before SQLCipher is, once per process, so every round is a process.
#[test]
fn threads_that_open_first_all_get_their_key_accepted() {
    if std::env::var_os(CHILD).is_some() {
        return open_from_all_threads();
    }
    let me = std::env::current_exe().unwrap();
    for round in 0..20 {
        let child = std::process::Command::new(&me).env(CHILD, "1").output().unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && said.contains("1 passed"), "round {round}: {said}");
    }
}

fn open_from_all_threads() {
    let dirs: Vec<_> = (0..THREADS).map(|_| tempfile::tempdir().unwrap()).collect();
    let line = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for dir in &dirs {
            scope.spawn(|| {
                line.wait();
                drop(open(dir.path()));
            });
        }
    });
}
