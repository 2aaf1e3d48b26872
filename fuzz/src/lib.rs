//! What the targets share: bytes as a file of an export.

use yore_archive::{Limits, Source, read};

/// Reads the bytes as a file with one of these names, as an import would: what is refused is
/// refused, and nothing is written beside the file.
pub fn read_as(names: &[&str], data: &[u8]) {
    // The length chooses, so that a sample of an export is a seed as it is.
    let name = names[data.len() % names.len()];
    let folder = std::env::temp_dir().join(format!("yore-fuzz-{}", std::process::id()));
    let path = folder.join(name);
    if std::fs::create_dir_all(&folder).is_err() || std::fs::write(&path, data).is_err() {
        return;
    }
    let limits = Limits { inflated: 64 << 20, piece: 1 << 20, ..Limits::default() };
    if let Ok(source) = Source::open(std::slice::from_ref(&path), limits) {
        let _ = read(&source, &mut |_| Ok(())); // what is refused is refused
    }
    let beside = std::fs::read_dir(&folder).map_or(0, Iterator::count);
    assert!(beside <= 1, "something was written beside the file");
    let _ = std::fs::remove_file(&path); // the next round may write it again
}
