//! HTML, and XML of kinds that nobody named: what stands between the tags.

use memchr::memchr;

use crate::sink::{Sink, Step};
use crate::xml::entity;

/// Elements whose content nobody reads.
const HIDDEN: [&str; 6] = ["script", "style", "template", "noscript", "svg", "math"];
/// Elements that stand within a line.
const INLINE: [&str; 24] = [
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "ins", "kbd", "mark", "q",
    "s", "samp", "small", "span", "strong", "sub", "sup", "u", "var", "wbr",
];

/// Gives the text of a page. Each byte is looked at a fixed number of times, whatever is open.
pub(crate) fn read(page: &str, sink: &mut Sink) -> Step {
    let mut rest = page;
    while !rest.is_empty() {
        sink.tick()?;
        let Some(open) = memchr(b'<', rest.as_bytes()) else {
            return words(rest, sink);
        };
        words(&rest[..open], sink)?;
        rest = &rest[open..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let after = &rest[1..];
        if !after.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) {
            sink.push("<")?;
            rest = after;
            continue;
        }
        let Some(end) = memchr(b'>', after.as_bytes()) else { return Ok(()) };
        let tag = &after[..end];
        rest = &after[end + 1..];
        let name = tag.trim_start_matches('/');
        let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        if HIDDEN.contains(&name.as_str()) && !tag.starts_with('/') && !tag.ends_with('/') {
            rest = beyond(rest, &name);
        } else if matches!(name.as_str(), "td" | "th") {
            sink.space();
        } else if !INLINE.contains(&name.as_str()) {
            sink.line();
        }
    }
    Ok(())
}

/// What follows the end of an element; nothing when it has none.
fn beyond<'a>(text: &'a str, name: &str) -> &'a str {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(place) = memchr(b'<', &bytes[from..]) {
        let at = from + place;
        let end = at + 2 + name.len();
        let found = bytes.get(at + 1) == Some(&b'/')
            && bytes.get(at + 2..end).is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()));
        if found {
            return memchr(b'>', &bytes[end..]).map_or("", |close| &text[end + close + 1..]);
        }
        from = at + 1;
    }
    ""
}

/// Text between tags, its entities resolved.
pub(crate) fn words(text: &str, sink: &mut Sink) -> Step {
    let mut rest = text;
    while let Some(place) = memchr(b'&', rest.as_bytes()) {
        sink.push(&rest[..place])?;
        rest = &rest[place + 1..];
        match entity(rest) {
            Some((c, length)) => {
                sink.push(c.encode_utf8(&mut [0; 4]))?;
                rest = &rest[length..];
            }
            None => sink.push("&")?,
        }
    }
    sink.push(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bounds;

    fn text(page: &str) -> String {
        let mut sink = Sink::new(&Bounds::default());
        read(page, &mut sink).unwrap();
        sink.into_text()
    }

    #[test]
    fn tags_go_and_words_stay() {
        let page = "<!DOCTYPE html><html><head><title>The &amp; title</title><style>p{}</style>
            <SCRIPT>var needle = '<p>';</SCRIPT></head><body><!-- no --><p>one <b>t</b>wo</p>
            <table><tr><td>a</td><td>b</td></tr></table>3 < 4 &#x41;&#66;&nbsp;&unheard;</body>";
        assert_eq!(text(page), "The & title\none two\na b\n3 < 4 AB &unheard;");
    }

    #[test]
    fn what_never_ends_ends() {
        assert_eq!(text("a<script>b"), "a");
        assert_eq!(text("a<!-- b"), "a");
        assert_eq!(text("a<p b"), "a");
        let open = "<b ".repeat(200_000);
        assert_eq!(text(&open), "");
        let scripts = "<script></scrip".repeat(100_000);
        assert_eq!(text(&scripts), "");
    }
}
