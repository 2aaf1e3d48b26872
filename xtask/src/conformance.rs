//! `cargo xtask conformance`: which requirement is proven by which test.
//!
//! A test proves a requirement by carrying its id in its name. `docs/protocols/<protocol>.md`
//! claims one with a table row `| UMP-031 | … | done |`; a claim without a passing test fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Result, bail};

use crate::requirement::{self, PROTOCOLS, Requirement};
use crate::results::{self, Outcome, Results};
use crate::workspace::{cargo, root};

/// Arguments of `cargo xtask conformance`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Use the outcome of the last `cargo xtask test` and run nothing.
    #[arg(long)]
    saved: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let results = if arguments.saved {
        Results::load(&crate::test::saved()?)?
    } else {
        let mut command = cargo();
        command.args(["test", "--workspace", "--no-fail-fast"]);
        results::run(&mut command)?.1
    };
    report(&results)
}

/// Prints every requirement that has a test or a claim, and fails on a claim without proof.
pub(crate) fn report(results: &Results) -> Result<()> {
    let proofs = proofs(results);
    let mut claims = BTreeSet::new();
    for (_, page) in PROTOCOLS {
        let path = root().join("docs/protocols").join(page).with_extension("md");
        if path.exists() {
            claims.extend(claims_of(&fs::read_to_string(path)?));
        }
    }
    for (protocol, page) in PROTOCOLS {
        print!("{}", table(protocol, page, &proofs, &claims));
    }
    print!("{}", matrix(results));
    let gaps = gaps(&proofs, &claims);
    if !gaps.is_empty() {
        bail!("claimed without a passing test: {}", gaps.join(", "));
    }
    Ok(())
}

type Proofs = BTreeMap<Requirement, Vec<(String, Outcome)>>;

fn proofs(results: &Results) -> Proofs {
    let mut proofs = Proofs::new();
    for ((binary, name), outcome) in &results.tests {
        for id in requirement::in_name(name).0 {
            proofs.entry(id).or_default().push((format!("{binary} {name}"), outcome.clone()));
        }
    }
    proofs
}

/// Reads the rows of a page that say `done`.
fn claims_of(page: &str) -> Vec<Requirement> {
    page.lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.trim().strip_prefix('|')?.split('|').collect();
            let id = Requirement::parse(cells.first()?.trim())?;
            let last = cells.iter().rev().map(|cell| cell.trim()).find(|cell| !cell.is_empty())?;
            last.eq_ignore_ascii_case("done").then_some(id)
        })
        .collect()
}

/// Claims that no test carries, or one of whose tests does not pass.
fn gaps(proofs: &Proofs, claims: &BTreeSet<Requirement>) -> Vec<String> {
    claims
        .iter()
        .filter_map(|id| match proofs.get(id) {
            None => Some(format!("{id} (no test)")),
            Some(tests) => {
                let (name, outcome) =
                    tests.iter().find(|(_, outcome)| *outcome != Outcome::Passed)?;
                Some(format!("{id} ({name}: {})", outcome.word()))
            }
        })
        .collect()
}

fn table(protocol: &str, page: &str, proofs: &Proofs, claims: &BTreeSet<Requirement>) -> String {
    let of = |id: &&Requirement| id.protocol == protocol;
    let ids: BTreeSet<&Requirement> = proofs.keys().chain(claims).filter(of).collect();
    let claimed = claims.iter().filter(of).count();
    let tested = proofs.keys().filter(of).count();
    let mut text = format!("{page}: {tested} requirements with tests, {claimed} claimed\n");
    for id in ids {
        let mark = if claims.contains(id) { "claimed" } else { "" };
        for (name, outcome) in proofs.get(id).map_or(&[][..], Vec::as_slice) {
            text.push_str(&format!("  {id}  {mark:<7}  {:<7}  {name}\n", outcome.word()));
        }
        if !proofs.contains_key(id) {
            text.push_str(&format!("  {id}  {mark:<7}  no test\n"));
        }
    }
    text
}

/// The protocols of the matrix, by the names they have in the names of its tests.
const MATRIX: [&str; 6] = ["ump", "memorywire", "oamp", "omp", "uamp", "mcp"];

/// Which protocol keeps what another one wrote: a memory written by the one on the left is read,
/// revised, refused, held and erased by the one above.
fn matrix(results: &Results) -> String {
    let outcome = |writer: &str, other: &str| {
        let name = format!("matrix::{writer}::{other}");
        let found = results.tests.iter().find(|((_, test), _)| *test == name);
        found.map_or("not run", |(_, outcome)| outcome.word())
    };
    let mut passed = 0;
    let mut rows = String::new();
    for writer in MATRIX {
        rows.push_str(&format!("  {writer:<12}"));
        for other in MATRIX {
            let word = outcome(writer, other);
            passed += usize::from(word == Outcome::Passed.word());
            rows.push_str(&format!("{word:<12}"));
        }
        rows.push('\n');
    }
    let mut text = format!("matrix: {passed} of {} pairs\n  {:<12}", MATRIX.len().pow(2), "");
    text.extend(MATRIX.map(|other| format!("{other:<12}")));
    text.push('\n');
    text + &rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# UMP\n
| id | what | state |
|----|------|-------|
| UMP-031 | canonical numbers | done |
| UMP-032 | content hash | done |
| UMP-033 | signature | planned |
| ump-034 | needs | data | Done |
UMP-035 is mentioned in passing and done.
";

    fn results() -> Results {
        let mut results = Results::default();
        for (name, outcome) in [
            ("jcs::ump_031_numbers", Outcome::Passed),
            ("jcs::ump_031_mw_002_strings", Outcome::Passed),
            ("ump_034_data", Outcome::NotRun("no data".to_owned())),
            ("uninteresting", Outcome::Passed),
        ] {
            results.tests.insert(("yore_canon".to_owned(), name.to_owned()), outcome);
        }
        results
    }

    #[test]
    fn claims_are_rows_that_say_done() {
        let ids: Vec<_> = claims_of(PAGE).iter().map(ToString::to_string).collect();
        assert_eq!(ids, ["UMP-031", "UMP-032", "UMP-034"]);
    }

    #[test]
    fn a_claim_needs_tests_that_all_pass() {
        let claims = claims_of(PAGE).into_iter().collect();
        let gaps = gaps(&proofs(&results()), &claims);
        assert_eq!(gaps, ["UMP-032 (no test)", "UMP-034 (yore_canon ump_034_data: not run)"]);
        assert!(super::gaps(&proofs(&results()), &BTreeSet::new()).is_empty());
    }

    #[test]
    fn the_matrix_counts_pairs_that_passed() {
        let mut results = results();
        for (name, outcome) in
            [("matrix::ump::oamp", Outcome::Passed), ("matrix::mcp::mcp", Outcome::Failed)]
        {
            results.tests.insert(("matrix".to_owned(), name.to_owned()), outcome);
        }
        let told = matrix(&results);
        assert!(told.starts_with("matrix: 1 of 36 pairs\n"), "{told}");
        let row = told.lines().nth(2).unwrap();
        assert_eq!(row.split_whitespace().take(2).collect::<Vec<_>>(), ["ump", "not"], "{told}");
        assert!(told.lines().last().unwrap().trim_end().ends_with("failed"), "{told}");
    }

    #[test]
    fn the_table_lists_tests_and_claims() {
        let claims = claims_of(PAGE).into_iter().collect();
        let ump = table("UMP", "ump", &proofs(&results()), &claims);
        assert!(ump.starts_with("ump: 2 requirements with tests, 3 claimed\n"), "{ump}");
        assert_eq!(ump.matches("UMP-031  claimed  passed").count(), 2, "{ump}");
        assert!(ump.contains("UMP-032  claimed  no test"), "{ump}");
        let mw = table("MW", "memorywire", &proofs(&results()), &claims);
        assert!(mw.contains("MW-002"), "{mw}");
    }
}
