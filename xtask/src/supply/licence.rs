//! Licence expressions: whether some choice that they leave is allowed.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};

/// Whether an expression such as `(MIT OR Apache-2.0) AND Unicode-3.0` can be met by what is
/// allowed. `MIT/Apache-2.0` is the old way to write OR.
pub(super) fn allowed(expression: &str, allow: &BTreeSet<String>) -> Result<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, allow };
    let met = reader.either()?;
    ensure!(reader.words.is_empty(), "something is left over");
    Ok(met)
}

struct Reader<'a> {
    words: &'a [&'a str],
    allow: &'a BTreeSet<String>,
}

impl<'a> Reader<'a> {
    fn takes(&mut self, word: &str) -> bool {
        let here = self.words.first() == Some(&word);
        if here {
            self.words = &self.words[1..];
        }
        here
    }

    fn either(&mut self) -> Result<bool> {
        let mut met = self.both()?;
        while self.takes("OR") {
            // Both sides are read, whatever the first one says.
            met |= self.both()?;
        }
        Ok(met)
    }

    fn both(&mut self) -> Result<bool> {
        let mut met = self.one()?;
        while self.takes("AND") {
            met &= self.one()?;
        }
        Ok(met)
    }

    fn one(&mut self) -> Result<bool> {
        if self.takes("(") {
            let met = self.either()?;
            ensure!(self.takes(")"), "a bracket is open");
            return Ok(met);
        }
        let Some((name, rest)) = self.words.split_first() else { bail!("a licence is missing") };
        self.words = rest;
        let mut name = (*name).to_owned();
        if self.takes("WITH") {
            let Some((exception, rest)) = self.words.split_first() else {
                bail!("an exception is missing")
            };
            self.words = rest;
            name = format!("{name} WITH {exception}");
        }
        Ok(self.allow.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_allowed_choice_is_enough_and_every_duty_counts() {
        let allow =
            BTreeSet::from(["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned));
        for (expression, met) in [
            ("MIT", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("(GPL-3.0 OR MIT) AND Zlib", true),
            ("GPL-3.0 OR MIT AND Zlib", true),
            ("GPL-3.0 AND MIT OR BSD-3-Clause", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0", false),
        ] {
            assert_eq!(allowed(expression, &allow).unwrap(), met, "{expression}");
        }
        for broken in ["", "MIT OR", "(MIT", "MIT MIT", "Apache-2.0 WITH"] {
            assert!(allowed(broken, &allow).is_err(), "{broken}");
        }
    }
}
