//! What a file looks like, from its first bytes.

use std::collections::BTreeSet;

/// How deep names are collected.
const DEPTH: usize = 3;

/// What the beginning of a file tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    /// It begins like JSON.
    pub(crate) json: bool,
    /// The outermost value is an array.
    pub(crate) array: bool,
    /// There is more than one outermost value: one a line.
    pub(crate) lines: bool,
    /// It is a SQLite database.
    pub(crate) sqlite: bool,
    names: [BTreeSet<String>; DEPTH],
}

impl Shape {
    /// Looks at the beginning of a file.
    pub(crate) fn of(head: &[u8]) -> Self {
        let mut shape = Self { sqlite: head.starts_with(b"SQLite format 3\0"), ..Self::default() };
        let start = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        shape.json = matches!(start.first(), Some(b'{' | b'['));
        shape.array = start.first() == Some(&b'[');
        if shape.json {
            shape.collect(start);
        }
        shape
    }

    /// Whether objects at that depth have the member; the outermost objects are at depth 1.
    pub(crate) fn has(&self, depth: usize, name: &str) -> bool {
        self.names[depth - 1].contains(name)
    }

    /// Whether objects at that depth have all the members.
    pub(crate) fn all(&self, depth: usize, names: &[&str]) -> bool {
        names.iter().all(|name| self.has(depth, name))
    }

    fn collect(&mut self, text: &[u8]) {
        // For each open bracket, whether it is an object's.
        let mut open: Vec<bool> = Vec::new();
        let (mut objects, mut roots, mut at) = (0_usize, 0, 0);
        let mut last: Option<&[u8]> = None;
        while at < text.len() {
            match text[at] {
                b'"' => {
                    let start = at + 1;
                    at = start;
                    while at < text.len() && text[at] != b'"' {
                        at += if text[at] == b'\\' { 2 } else { 1 };
                    }
                    last = text.get(start..at);
                }
                b':' => {
                    let name = last.take().and_then(|name| std::str::from_utf8(name).ok());
                    if let (Some(true), 1..=DEPTH, Some(name)) = (open.last(), objects, name) {
                        self.names[objects - 1].insert(name.to_owned());
                    }
                }
                bracket @ (b'{' | b'[') => {
                    if open.is_empty() {
                        roots += 1;
                    }
                    open.push(bracket == b'{');
                    objects += usize::from(bracket == b'{');
                }
                b'}' | b']' => {
                    let Some(object) = open.pop() else { break };
                    objects -= usize::from(object);
                }
                _ => {}
            }
            at += 1;
        }
        self.lines = roots > 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_at_their_depth_even_in_a_cut_text() {
        let shape =
            Shape::of(b"\xef\xbb\xbf[{\"title\":\"a:b\",\"mapping\":{\"x\":{\"id\":1,\"cut");
        assert!(shape.json && shape.array && !shape.lines);
        assert!(shape.all(1, &["title", "mapping"]) && shape.has(2, "x") && shape.has(3, "id"));
        assert!(!shape.has(1, "a") && !shape.has(3, "cut"));
    }

    #[test]
    fn lines_of_json_are_told_from_one_document() {
        assert!(Shape::of(b"{\"type\":1}\n{\"uuid\":2}").lines);
        assert!(!Shape::of(b"{\"type\":1}\n").lines);
        assert!(!Shape::of(b"plain").json);
        assert!(Shape::of(b"]]]}}").names[0].is_empty());
    }
}
