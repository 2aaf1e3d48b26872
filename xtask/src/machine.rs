//! What was measured: the commit that is checked out.

use std::process::Command;

use crate::workspace::{output, root};

/// The commit that is checked out, and whether something else than it lies there.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        output(Command::new("git").current_dir(root()).args(arguments))
            .map(|text| text.trim().to_owned())
    };
    let mut commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|_| "none".to_owned());
    if !git(&["status", "--porcelain"]).unwrap_or_default().is_empty() {
        commit.push_str("-dirty");
    }
    commit
}
