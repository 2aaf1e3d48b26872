//! Pages that promise something name the tests that show it, and the tests exist.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;

/// The pages, and the heading of the column that names tests.
const PAGES: [&str; 2] = ["docs/threat-model.md", "docs/compliance.md"];
const COLUMN: &str = "Shown by";

pub(super) fn check(files: &BTreeMap<String, String>, findings: &mut Findings) {
    let known = functions(files);
    for page in PAGES {
        let Some(text) = files.get(page) else { continue };
        let mut column = None;
        for (number, line) in (1..).zip(text.lines()) {
            let Some(row) = line.trim().strip_prefix('|') else {
                column = None;
                continue;
            };
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            if let Some(found) = cells.iter().position(|cell| *cell == COLUMN) {
                column = Some(found);
                continue;
            }
            let Some(cell) = column.and_then(|column| cells.get(column)) else { continue };
            if cell.chars().all(|c| matches!(c, '-' | ':')) {
                continue;
            }
            let mut shown = 0;
            for name in cell.split('`').skip(1).step_by(2).filter(|name| is_test(name)) {
                shown += 1;
                if !known.contains(name) {
                    findings.fault(format!("{page}:{number}: there is no test {name}"));
                }
            }
            if shown == 0 {
                findings.fault(format!("{page}:{number}: no test is named"));
            }
        }
    }
}

/// Whether a word is the name of a test: words with underscores, and nothing else.
fn is_test(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.contains('_') && name.bytes().all(word)
}

/// The names of all functions.
fn functions(files: &BTreeMap<String, String>) -> BTreeSet<&str> {
    let sources = files.iter().filter(|(path, _)| path.ends_with(".rs"));
    let lines = sources.flat_map(|(_, text)| text.lines());
    let named = lines.filter_map(|line| line.split_once("fn ")?.1.split(['(', '<']).next());
    named.map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_needs_a_test_that_exists() {
        let page = "\
| Threat | Rule | Shown by |
|---|---|---|
| a | b | `it_holds`, `crates/x` |
| c | d | `it_fell_off` |
| e | f | by reading |

Outside of a table `nothing_counts` at all.
";
        let files = BTreeMap::from([
            (PAGES[0].to_owned(), page.to_owned()),
            ("a/tests/t.rs".to_owned(), "async fn it_holds() {}".to_owned()),
        ]);
        let mut findings = Findings::default();
        check(&files, &mut findings);
        assert_eq!(
            findings.faults,
            [
                "docs/threat-model.md:4: there is no test it_fell_off",
                "docs/threat-model.md:5: no test is named",
            ]
        );
    }
}
