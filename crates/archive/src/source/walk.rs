//! Lists the files of a folder without following links out of it.

use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Folders that never hold an export.
const PASSED: [&str; 4] = [".git", "node_modules", "target", ".venv"];

/// Returns the regular files below a folder, at most `most`.
pub(super) fn files(root: &Path, most: usize) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let shown = folder.display().to_string();
        let mut entries: Vec<_> = match std::fs::read_dir(&folder) {
            Ok(entries) => entries.filter_map(Result::ok).collect(),
            Err(_) if folder != root => continue,
            Err(error) => return Err(Error::Io { path: shown, source: error }),
        };
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            // The type of the entry itself: a link is neither a file nor a folder here.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && !PASSED.iter().any(|name| entry.file_name() == *name) {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
                if found.len() > most {
                    return Err(Error::too_large(shown, format!("{most} files")));
                }
            }
        }
    }
    Ok(found)
}
