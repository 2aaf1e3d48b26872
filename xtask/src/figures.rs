//! Pages and pictures of what was measured, written from the recorded figures alone.
//!
//! `docs/benchmarks/*.json` is what the measuring programs wrote. Everything else that tells a
//! figure (the reports beside it, the pictures, the table of the README) is written from there by
//! one function, and `cargo xtask tidy` fails when one of them says something else.

mod page;
mod peers;
mod plot;

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::workspace::{files, root};

/// Where figures lie.
const FOLDER: &str = "docs/benchmarks/";
/// The figures of the comparison with the peers.
pub(crate) const PEERS: &str = "docs/benchmarks/peers.json";
const README: &str = "README.md";
const BEGIN: &str = "<!-- figures: peers; written by cargo xtask bench peers -->\n";
const END: &str = "<!-- end of figures -->\n";

/// Writes every page from the figures that lie there.
pub(crate) fn write() -> Result<()> {
    let mut known = BTreeMap::new();
    for path in files()? {
        if path == README || path.starts_with(FOLDER) {
            known.insert(path.clone(), fs::read_to_string(root().join(&path))?);
        }
    }
    for (path, text) in expected(&known)? {
        if known.get(&path) != Some(&text) {
            println!("writing {path}");
            fs::write(root().join(path), text)?;
        }
    }
    Ok(())
}

/// Names the pages that say something else than the figures.
pub(crate) fn untrue(files: &BTreeMap<String, String>) -> Vec<String> {
    match expected(files) {
        Ok(pages) => {
            let other = pages.into_iter().filter(|(path, text)| files.get(path) != Some(text));
            other
                .map(|(path, _)| {
                    format!(
                        "{path}: it is not what `cargo xtask bench pages` writes from the figures"
                    )
                })
                .collect()
        }
        Err(error) => vec![format!("{error:#}")],
    }
}

/// What every page must say.
fn expected(files: &BTreeMap<String, String>) -> Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for (path, text) in files {
        let Some(name) = path.strip_prefix(FOLDER).and_then(|name| name.strip_suffix(".json"))
        else {
            continue;
        };
        let figures: Value =
            serde_json::from_str(text).with_context(|| format!("{path} is no JSON"))?;
        let beside = |end: &str| format!("{FOLDER}{name}{end}");
        if path == PEERS {
            pages.push((beside(".md"), peers::page(&figures)));
            for (end, picture) in peers::pictures(&figures) {
                pages.push((beside(end), picture));
            }
            let readme = files.get(README).context("there is no README.md")?;
            pages.push((README.to_owned(), with_table(readme, &peers::table(&figures))?));
        } else {
            pages.push((beside(".md"), page::page(name, &figures)));
            if let Some(picture) = page::picture(&figures) {
                pages.push((beside(".svg"), picture));
            }
        }
    }
    Ok(pages)
}

/// The text with a table between its marks.
fn with_table(text: &str, table: &str) -> Result<String> {
    let (head, rest) = text.split_once(BEGIN).context("README.md has no mark for the table")?;
    let (_, tail) = rest.split_once(END).context("README.md has no mark for the table's end")?;
    Ok(format!("{head}{BEGIN}{table}{END}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(figure: f64) -> BTreeMap<String, String> {
        let figures = serde_json::json!({
            "commit": "abc", "machine": {}, "bars": [],
            "figures": { "rows": [{
                "system": "yore", "size": 10_000,
                "cells": { "search_1": { "n": 5, "cpu_ms": figure, "wall_ms": { "p50": 1.0 } } },
            }]},
        });
        let readme = format!("# A\n\n{BEGIN}old\n{END}\nmore\n");
        let files = [(README.to_owned(), readme), (PEERS.to_owned(), figures.to_string())];
        let mut files = BTreeMap::from(files);
        files.extend(expected(&files).unwrap());
        files
    }

    #[test]
    fn a_page_that_tells_another_figure_is_named() {
        let mut files = project(0.5);
        assert_eq!(untrue(&files), [""; 0]);
        assert!(files[README].ends_with("\nmore\n") && files[README].contains("0.50"));
        let other = project(0.7);
        files.insert(PEERS.to_owned(), other[PEERS].clone());
        let told = untrue(&files);
        assert!(told.iter().any(|fault| fault.starts_with(README)), "{told:?}");
        assert!(told.iter().any(|fault| fault.starts_with("docs/benchmarks/peers.md")), "{told:?}");
    }

    #[test]
    fn a_readme_without_a_place_for_the_table_is_named() {
        let mut files = project(0.5);
        files.insert(README.to_owned(), "# A\n".to_owned());
        assert_eq!(untrue(&files), ["README.md has no mark for the table"]);
    }
}
