//! Writing a text in the person's own editor.

use std::io::Write;
use std::process::Command;

use crate::failure::{Failure, Result};

/// Lets the person change a text in `$VISUAL` or `$EDITOR`.
pub(crate) fn edit(text: &str) -> Result<String> {
    let editor = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()))
        .ok_or_else(|| {
            Failure::usage("neither VISUAL nor EDITOR names an editor")
                .hint("give the text instead: --edit \"the new text\"")
        })?;
    let mut file = tempfile::Builder::new()
        .prefix("yore-")
        .suffix(".txt")
        .tempfile()
        .map_err(Failure::file("a temporary file"))?;
    file.write_all(text.as_bytes()).map_err(Failure::file("a temporary file"))?;
    let path = file.into_temp_path();
    let mut words = editor.split_whitespace();
    let program = words.next().expect("invariant: an editor of white space was left out above");
    let status = Command::new(program)
        .args(words)
        .arg(&path)
        .status()
        .map_err(|error| Failure::failed(format!("{program}: {error}")))?;
    if !status.success() {
        return Err(Failure::failed(format!("{program} ended with {status}; nothing was decided")));
    }
    let text = std::fs::read_to_string(&path).map_err(Failure::file("a temporary file"))?;
    let text = text.trim_end().to_owned();
    if text.is_empty() {
        return Err(Failure::usage("the text is empty; nothing was decided"));
    }
    Ok(text)
}
