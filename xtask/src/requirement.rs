//! Requirement ids: `UMP-031` in documents, `ump_031_` in test names.

use std::fmt;

/// The protocols whose requirements are numbered: prefix and page under `docs/protocols`.
pub(crate) const PROTOCOLS: [(&str, &str); 5] =
    [("UMP", "ump"), ("MW", "memorywire"), ("OAMP", "oamp"), ("OMP", "omp"), ("UAMP", "uamp")];

/// How many digits a number has.
const DIGITS: usize = 3;

/// One numbered requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Requirement {
    pub(crate) protocol: &'static str,
    pub(crate) number: u16,
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:03}", self.protocol, self.number)
    }
}

impl Requirement {
    /// Reads `UMP-031`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (prefix, number) = text.split_once('-')?;
        let protocol = protocol(prefix)?;
        (number.len() == DIGITS && number.bytes().all(|b| b.is_ascii_digit())).then_some(())?;
        Some(Self { protocol, number: number.parse().ok()? })
    }
}

fn protocol(prefix: &str) -> Option<&'static str> {
    PROTOCOLS.iter().map(|(name, _)| *name).find(|name| name.eq_ignore_ascii_case(prefix))
}

/// Returns the ids in a test's name, such as `jcs::tests::ump_031_numbers`, and what looks like
/// an id but is not spelt like one.
pub(crate) fn in_name(name: &str) -> (Vec<Requirement>, Vec<String>) {
    let (mut found, mut misspelt) = (Vec::new(), Vec::new());
    for segment in name.split("::") {
        let words: Vec<&str> = segment.split('_').collect();
        for pair in words.windows(2) {
            let [word, number] = pair else { continue };
            let known = protocol(word).is_some() || word.eq_ignore_ascii_case("memorywire");
            if !known || !number.starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            match Requirement::parse(&format!("{word}-{number}")) {
                Some(id) if !found.contains(&id) => found.push(id),
                Some(_) => {}
                None => misspelt.push(format!("{word}_{number}")),
            }
        }
    }
    (found, misspelt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(name: &str) -> (Vec<String>, Vec<String>) {
        let (found, misspelt) = in_name(name);
        (found.iter().map(ToString::to_string).collect(), misspelt)
    }

    #[test]
    fn ids_are_found_in_names() {
        for (name, expected) in [
            ("ump_031_numbers_print", vec!["UMP-031"]),
            ("jcs::tests::Ump_031_numbers", vec!["UMP-031"]),
            ("did::tests::ump_035_uamp_026_did_key", vec!["UMP-035", "UAMP-026"]),
            ("reads_back_mw_092", vec!["MW-092"]),
            ("umpire_031_is_no_id", vec![]),
            ("the_ump_page_has_3_rows", vec![]),
        ] {
            let (found, misspelt) = names(name);
            assert_eq!(found, expected, "{name}");
            assert!(misspelt.is_empty(), "{name}: {misspelt:?}");
        }
    }

    #[test]
    fn other_spellings_are_reported() {
        for (name, wrong) in [
            ("ump_31_numbers", "ump_31"),
            ("oamp_5_2_hidden", "oamp_5"),
            ("omp_0840_x", "omp_0840"),
            ("memorywire_092_x", "memorywire_092"),
            ("uamp_03a_x", "uamp_03a"),
        ] {
            assert_eq!(names(name), (vec![], vec![wrong.to_owned()]), "{name}");
        }
    }

    #[test]
    fn documents_spell_them_with_a_hyphen() {
        assert_eq!(Requirement::parse("OAMP-340").unwrap().to_string(), "OAMP-340");
        for bad in ["OAMP-34", "OAMP 340", "ABC-001", "UMP-0031", "UMP-+31"] {
            assert!(Requirement::parse(bad).is_none(), "{bad}");
        }
    }
}
