//! Rust source with everything blanked out that is not code.

/// Replaces comments and the insides of string and character literals by spaces.
///
/// Lines stay where they are. This is a small lexer, not a parser: it knows nested comments,
/// raw strings, escapes, and that `'a` may be a lifetime.
pub(super) fn only(source: &str) -> String {
    let mut blanker = Blanker { rest: source, out: String::with_capacity(source.len()) };
    while let Some(first) = blanker.rest.chars().next() {
        blanker.step(first);
    }
    blanker.out
}

struct Blanker<'a> {
    rest: &'a str,
    out: String,
}

impl Blanker<'_> {
    fn step(&mut self, first: char) {
        let word_before = self.out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.blank(end);
        } else if self.rest.starts_with("/*") {
            let end = self.comment_end();
            self.blank(end);
        } else if let Some(end) = (!word_before).then(|| self.raw_string_end()).flatten() {
            self.blank_inside(end);
        } else if first == '"' {
            let end = self.quoted_end('"');
            self.blank_inside(end);
        } else if first == '\'' && self.is_character() {
            let end = self.quoted_end('\'');
            self.blank_inside(end);
        } else {
            self.keep(first.len_utf8());
        }
    }

    fn comment_end(&self) -> usize {
        let (mut depth, mut at) = (0, 0);
        let bytes = self.rest.as_bytes();
        while at < bytes.len() {
            match bytes.get(at..at + 2) {
                Some(b"/*") => (depth, at) = (depth + 1, at + 2),
                Some(b"*/") => (depth, at) = (depth - 1, at + 2),
                _ => at += 1,
            }
            if depth == 0 {
                return at;
            }
        }
        bytes.len()
    }

    /// `r"…"`, `r#"…"#`, and the same after a `b` or a `c`.
    fn raw_string_end(&self) -> Option<usize> {
        let after = self.rest.trim_start_matches(['b', 'c']).strip_prefix('r')?;
        if self.rest.len() - after.len() > 2 {
            return None;
        }
        let hashes = after.len() - after.trim_start_matches('#').len();
        let inside = after[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let start = self.rest.len() - inside.len();
        Some(inside.find(&close).map_or(self.rest.len(), |at| start + at + close.len()))
    }

    fn quoted_end(&self, quote: char) -> usize {
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                _ if c == quote => return at + 1,
                _ => {}
            }
        }
        self.rest.len()
    }

    /// Whether a quote opens a character and not a lifetime.
    fn is_character(&self) -> bool {
        let mut chars = self.rest.chars().skip(1);
        matches!((chars.next(), chars.next()), (Some('\\'), _) | (Some(_), Some('\'')))
    }

    fn keep(&mut self, length: usize) {
        self.out.push_str(&self.rest[..length]);
        self.rest = &self.rest[length..];
    }

    fn blank(&mut self, length: usize) {
        let blanks = self.rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' });
        self.out.extend(blanks);
        self.rest = &self.rest[length..];
    }

    /// Blanks a literal but leaves a pair of quotes, so that it still reads as a literal.
    fn blank_inside(&mut self, length: usize) {
        self.out.push('"');
        self.blank(length);
        self.out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(source: &str) -> String {
        only(source).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_not_code_is_blanked() {
        for (source, code) in [
            ("a // todo\nb", "a b"),
            ("a /* x /* y */ z */ b", "a b"),
            (r#"a("to \" do") b"#, r#"a(" ") b"#),
            (r##"a(r#"say "dbg" "#) b"##, r#"a(" ") b"#),
            (r"a('\'') b('x') c", r#"a(" ") b(" ") c"#),
            ("fn f<'a>(x: &'a str) // y", "fn f<'a>(x: &'a str)"),
            (r#"b"bytes" br"raw" x"#, r#"b" " " " x"#),
            ("for r in 0..1 {}", "for r in 0..1 {}"),
        ] {
            assert_eq!(squeezed(source), code, "{source}");
        }
    }

    #[test]
    fn lines_stay_where_they_are() {
        let source = "a\n/* 1\n2 */\n\"x\ny\"\nb // c\nd";
        let code = only(source);
        assert_eq!(code.lines().count(), source.lines().count());
        assert_eq!(code.lines().position(|line| line == "d"), Some(6));
    }
}
