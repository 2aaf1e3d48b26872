//! Every error code has its page.

use std::collections::BTreeMap;

use super::Findings;

/// Where the codes are defined, as arms `… => "code",`.
const CODES: &str = "crates/domain/src/error.rs";

pub(super) fn check(files: &BTreeMap<String, String>, findings: &mut Findings) {
    let Some(source) = files.get(CODES) else { return };
    for code in source.lines().filter_map(code) {
        let page = format!("docs/errors/{code}.md");
        if !files.contains_key(&page) {
            findings.fault(format!("{CODES}: the code {code} has no page {page}"));
        }
    }
}

fn code(line: &str) -> Option<&str> {
    let code = line.split_once("=> \"")?.1.strip_suffix("\",")?;
    code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_').then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_without_a_page_is_a_fault() {
        let source = "match self {\n    Self::NotFound => \"not_found\",\n    Self::Busy { .. } => \"busy\",\n}\n";
        let mut files = BTreeMap::from([
            (CODES.to_owned(), source.to_owned()),
            ("docs/errors/busy.md".to_owned(), String::new()),
        ]);
        let mut findings = Findings::default();
        check(&files, &mut findings);
        assert_eq!(findings.faults.len(), 1);
        assert!(findings.faults[0].contains("not_found"));
        files.insert("docs/errors/not_found.md".to_owned(), String::new());
        findings = Findings::default();
        check(&files, &mut findings);
        assert_eq!(findings, Findings::default());
    }
}
