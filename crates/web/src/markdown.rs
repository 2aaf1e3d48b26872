//! Markdown as it is written in conversations, shown as page and never as anything else.
//!
//! What is not understood is printed as it stands. There is no way from the text to markup:
//! every character goes through [`Markup::text`], links lead to the web or to a mail address
//! only, and pictures are named instead of loaded.

use crate::markup::Markup;

/// How deep quotes and lists may nest before they are printed as they stand.
const DEPTH: usize = 6;
/// How far apart two marks of one piece may be.
const NEAR: usize = 2000;

/// Shows a text.
pub(crate) fn render(text: &str) -> Markup {
    let mut html = Markup::default();
    let lines: Vec<&str> = text.lines().collect();
    blocks(&lines, DEPTH, &mut html);
    html
}

fn blocks(lines: &[&str], depth: usize, html: &mut Markup) {
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if line.trim().is_empty() {
            at += 1;
        } else if let Some(fence) = fence(line) {
            at = code(lines, at, fence, html);
        } else if let Some((level, title)) = heading(line) {
            let (open, close) = match level {
                1 => ("<h3>", "</h3>"),
                2 => ("<h4>", "</h4>"),
                _ => ("<h5>", "</h5>"),
            };
            html.raw(open);
            inline(title, html);
            html.raw(close);
            at += 1;
        } else if is_rule(line) {
            html.raw("<hr>");
            at += 1;
        } else if depth > 0 && quoted(line).is_some() {
            let inner: Vec<&str> = lines[at..].iter().map_while(|line| quoted(line)).collect();
            html.raw("<blockquote>");
            blocks(&inner, depth - 1, html);
            html.raw("</blockquote>");
            at += inner.len();
        } else if depth > 0
            && let Some(kind) = item(line).map(|(kind, _)| kind)
        {
            at = list(lines, at, kind, depth, html);
        } else {
            at = paragraph(lines, at, depth, html);
        }
    }
}

fn paragraph(lines: &[&str], from: usize, depth: usize, html: &mut Markup) -> usize {
    html.raw("<p>");
    let mut at = from;
    while at < lines.len() && (at == from || !begins(lines[at], depth)) {
        if at > from {
            html.raw("<br>");
        }
        inline(lines[at].trim(), html);
        at += 1;
    }
    html.raw("</p>");
    at
}

/// Whether a line ends the paragraph before it.
fn begins(line: &str, depth: usize) -> bool {
    line.trim().is_empty()
        || fence(line).is_some()
        || heading(line).is_some()
        || is_rule(line)
        || (depth > 0 && (quoted(line).is_some() || item(line).is_some()))
}

/// The fence that opens or closes a block of code.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| *c == '`' || *c == '~')?;
    let length = line.chars().take_while(|c| *c == mark).count();
    (length >= 3).then(|| &line[..length])
}

fn code(lines: &[&str], from: usize, opened: &str, html: &mut Markup) -> usize {
    html.raw("<pre><code>");
    let mut at = from + 1;
    while at < lines.len() {
        let line = lines[at];
        at += 1;
        if fence(line).is_some_and(|closed| closed.starts_with(opened) && line.trim() == closed) {
            break;
        }
        html.text(line).raw("\n");
    }
    html.raw("</code></pre>");
    at
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.chars().take_while(|c| *c == '#').count();
    let title = line.get(level..)?.strip_prefix(' ')?;
    (1..=6).contains(&level).then(|| (level, title.trim().trim_end_matches('#').trim_end()))
}

fn is_rule(line: &str) -> bool {
    let mut marks = line.chars().filter(|c| !c.is_whitespace());
    let Some(mark) = marks.next().filter(|c| "-*_".contains(*c)) else { return false };
    let mut count = 1;
    for c in marks {
        if c != mark {
            return false;
        }
        count += 1;
    }
    count >= 3
}

fn quoted(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('>')?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Plain,
    Numbered,
}

fn item(line: &str) -> Option<(List, &str)> {
    let line = line.trim_start();
    for mark in ["- ", "* ", "+ "] {
        if let Some(rest) = line.strip_prefix(mark) {
            return Some((List::Plain, rest));
        }
    }
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let rest = line.get(digits..)?;
    let rest = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))?;
    (1..=9).contains(&digits).then_some((List::Numbered, rest))
}

fn list(lines: &[&str], from: usize, kind: List, depth: usize, html: &mut Markup) -> usize {
    let (open, close) = match kind {
        List::Plain => ("<ul>", "</ul>"),
        List::Numbered => ("<ol>", "</ol>"),
    };
    let indent = |line: &str| line.len() - line.trim_start().len();
    let margin = indent(lines[from]);
    html.raw(open);
    let mut at = from;
    while at < lines.len() && indent(lines[at]) <= margin {
        let Some((found, rest)) = item(lines[at]) else { break };
        if found != kind {
            break;
        }
        html.raw("<li>");
        inline(rest, html);
        at += 1;
        let more =
            lines[at..].iter().take_while(|line| !line.trim().is_empty() && indent(line) > margin);
        let inner: Vec<&str> = more.copied().collect();
        let shift = inner.iter().map(|line| indent(line)).min().unwrap_or(0);
        let inner: Vec<&str> =
            inner.iter().map(|line| line.get(shift..).unwrap_or(line.trim_start())).collect();
        blocks(&inner, depth - 1, html);
        at += inner.len();
        html.raw("</li>");
    }
    html.raw(close);
    at
}

/// Shows what stands in one line.
fn inline(text: &str, html: &mut Markup) {
    let mut rest = text;
    let mut plain = 0;
    while let Some(c) = rest[plain..].chars().next() {
        let found = match c {
            '`' => span(&rest[plain..], "`").map(|(inner, length)| (Piece::Code(inner), length)),
            '*' | '_' if begins_word(&rest[..plain]) => emphasis(&rest[plain..]),
            '[' => link(&rest[plain..]),
            '!' => picture(&rest[plain..]),
            _ => None,
        };
        let Some((piece, length)) = found else {
            plain += c.len_utf8();
            continue;
        };
        html.text(&rest[..plain]);
        piece.show(html);
        rest = &rest[plain + length..];
        plain = 0;
    }
    html.text(rest);
}

/// Whether what comes next can begin an emphasis: not inside a word.
fn begins_word(before: &str) -> bool {
    before.chars().next_back().is_none_or(|c| !c.is_alphanumeric())
}

enum Piece<'a> {
    Code(&'a str),
    Strong(&'a str),
    Weak(&'a str),
    Link { words: &'a str, place: &'a str },
    Picture(&'a str),
}

impl Piece<'_> {
    fn show(&self, html: &mut Markup) {
        match self {
            Self::Code(text) => html.raw("<code>").text(text).raw("</code>"),
            Self::Strong(text) => html.raw("<strong>").text(text).raw("</strong>"),
            Self::Weak(text) => html.raw("<em>").text(text).raw("</em>"),
            Self::Link { words, place } => html
                .raw("<a rel=\"noopener noreferrer nofollow\" target=\"_blank\" href=\"")
                .text(place)
                .raw("\">")
                .text(words)
                .raw("</a>"),
            Self::Picture(name) => html.raw("<span class=\"picture\">").text(name).raw("</span>"),
        };
    }
}

/// The part of a text in which a mark is looked for, so that many open ones cost little.
fn near(text: &str) -> &str {
    &text[..text.floor_char_boundary(NEAR)]
}

/// What stands between two marks, and how long it is with them.
fn span<'a>(text: &'a str, mark: &str) -> Option<(&'a str, usize)> {
    let inner = near(text.strip_prefix(mark)?);
    let end = inner.find(mark).filter(|end| *end > 0)?;
    Some((&inner[..end], mark.len() * 2 + end))
}

fn emphasis(text: &str) -> Option<(Piece<'_>, usize)> {
    let solid = |inner: &&str| !inner.starts_with(' ') && !inner.ends_with(' ');
    for mark in ["**", "__"] {
        if let Some((inner, length)) = span(text, mark).filter(|(inner, _)| solid(inner)) {
            return Some((Piece::Strong(inner), length));
        }
    }
    for mark in ["*", "_"] {
        if let Some((inner, length)) = span(text, mark).filter(|(inner, _)| solid(inner)) {
            return Some((Piece::Weak(inner), length));
        }
    }
    None
}

fn link(text: &str) -> Option<(Piece<'_>, usize)> {
    let (words, place, length) = target(text)?;
    let lower = place.to_ascii_lowercase();
    let known = ["https://", "http://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme));
    (known && !words.is_empty()).then_some((Piece::Link { words, place }, length))
}

fn picture(text: &str) -> Option<(Piece<'_>, usize)> {
    let (words, _, length) = target(text.strip_prefix('!')?)?;
    Some((Piece::Picture(if words.is_empty() { "picture" } else { words }), length + 1))
}

/// Words in brackets with a place in parentheses behind them.
fn target(text: &str) -> Option<(&str, &str, usize)> {
    let inner = near(text.strip_prefix('[')?);
    let close = inner.find(']')?;
    let rest = inner[close + 1..].strip_prefix('(')?;
    let end = rest.find(')')?;
    let place = rest[..end].split_whitespace().next().unwrap_or_default();
    Some((&inner[..close], place, close + end + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str) -> String {
        render(text).as_str().to_owned()
    }

    #[test]
    fn the_usual_marks_are_understood() {
        for (text, shown) in [
            ("one\ntwo\n\nthree", "<p>one<br>two</p><p>three</p>"),
            ("# A *b*", "<h3>A <em>b</em></h3>"),
            ("**bold** and `a<b`", "<p><strong>bold</strong> and <code>a&lt;b</code></p>"),
            ("- a\n- b\n  - c\n", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
            ("1. a\n2. b", "<ol><li>a</li><li>b</li></ol>"),
            ("> a\n> b", "<blockquote><p>a<br>b</p></blockquote>"),
            ("---", "<hr>"),
            (
                "```rust\nlet a = \"<b>\";\n```",
                "<pre><code>let a = &quot;&lt;b&gt;&quot;;\n</code></pre>",
            ),
            ("```\nnever closed", "<pre><code>never closed\n</code></pre>"),
            ("snake_case_name and 2*3*4", "<p>snake_case_name and 2*3*4</p>"),
            ("a * b * c", "<p>a * b * c</p>"),
            (
                "[site](https://example.org)",
                "<p><a rel=\"noopener noreferrer nofollow\" target=\"_blank\" \
                 href=\"https://example.org\">site</a></p>",
            ),
        ] {
            assert_eq!(html(text), shown, "{text}");
        }
    }

    #[test]
    fn nothing_comes_through() {
        for text in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "[x](https://a\" onmouseover=\"alert(1))",
            "![x](https://tracker.example/pixel.png)",
            "```\n</code></pre><script>alert(1)</script>\n```",
            "> <svg onload=alert(1)>",
            "- <style>*{display:none}</style>",
            "# </h3><script>",
            "**<b onclick=x>**",
            "`</code><script>`",
            "[<script>](https://example.org)",
        ] {
            let shown = html(text);
            for evil in
                ["<script", "<img", "<svg", "<style", "<b ", "href=\"j", "href=\"J", "href=\"d"]
            {
                assert!(!shown.contains(evil), "{text} became {shown}");
            }
            assert!(!shown.contains("\" on"), "{text} became {shown}");
            assert!(!shown.contains("tracker.example"), "{text} became {shown}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let deep = format!("{}x", "> ".repeat(5000));
        let list = (0..300).map(|n| format!("{}- x\n", " ".repeat(n))).collect::<String>();
        assert!(html(&deep).matches("<blockquote>").count() <= DEPTH);
        assert!(html(&list).matches("<ul>").count() <= 300);
    }
}
