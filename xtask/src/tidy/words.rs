//! Words that no file of the project may hold: paths of one machine, hosts of registries.

use super::Findings;

// Written in pieces, so that this file keeps its own rule.
const PATHS: [&str; 5] = [
    concat!("/", "work/"),
    concat!("/", "root/"),
    concat!("/", "home/"),
    concat!("/", "tmp/"),
    concat!("/", "Users/"),
];

const HOSTS: [&str; 5] = [
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
];

/// Written by cargo, which names its registry there.
const EXEMPT: &str = "Cargo.lock";
/// Invented exports: their native form holds paths of an invented person.
const INVENTED: &str = "tests/vectors/connectors/";

pub(super) fn check(path: &str, text: &str, findings: &mut Findings) {
    if path == EXEMPT || path.starts_with(INVENTED) {
        return;
    }
    for (at, line) in text.lines().enumerate() {
        let place = format!("{path}:{}", at + 1);
        for word in PATHS.into_iter().filter(|word| starts_path(line, word)) {
            findings.fault(format!("{place}: {word} is a path of one machine"));
        }
        for word in HOSTS.into_iter().filter(|word| line.contains(word)) {
            findings.fault(format!("{place}: {word} is the host of a package registry"));
        }
    }
}

/// Whether a word stands where a path begins, not in the middle of one.
fn starts_path(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "._-~/}$>".contains(c);
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> usize {
        let mut findings = Findings::default();
        check(path, text, &mut findings);
        findings.faults.len()
    }

    #[test]
    fn paths_of_a_machine_are_faults() {
        for (text, count) in [
            (format!("see {}a", PATHS[3]), 1),
            (format!("open(\"{}a\")", PATHS[0]), 1),
            (format!("{}b and {}c", PATHS[1], PATHS[2]), 2),
            ("https://example.org/home/page".to_owned(), 0),
            ("crates/work/src".to_owned(), 0),
            ("$DIR/tmp/x and <data>/tmp/x".to_owned(), 0),
        ] {
            assert_eq!(faults("a.md", &text), count, "{text}");
        }
    }

    #[test]
    fn hosts_of_registries_are_faults_except_in_the_lock_file() {
        let text = format!("https://{}/a\n{}", HOSTS[0], HOSTS[1]);
        assert_eq!(faults("a.md", &text), 2);
        assert_eq!(faults("Cargo.lock", &text), 0);
    }
}
