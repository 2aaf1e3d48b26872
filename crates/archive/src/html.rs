//! HTML as exports have it, to Markdown. Unknown tags are passed over, never refused.

/// Turns HTML into Markdown.
pub(crate) fn markdown(html: &str) -> String {
    let (mut out, mut rest) = (String::new(), html);
    let (mut lists, mut link, mut code): (Vec<Option<u32>>, _, _) = (Vec::new(), None, false);
    while let Some(from) = rest.find('<') {
        text(&mut out, &rest[..from], code);
        let after = &rest[from + 1..];
        let Some(end) = tag_end(after) else {
            text(&mut out, &rest[from..], code);
            return tidy(&out);
        };
        let tag = &after[..end];
        rest = &after[end + 1..];
        if let Some(comment) = tag.strip_prefix("!--") {
            if !comment.ends_with("--") {
                rest = rest.split_once("-->").map_or("", |(_, rest)| rest);
            }
            continue;
        }
        let (closing, tag) = match tag.strip_prefix('/') {
            Some(tag) => (true, tag),
            None => (false, tag),
        };
        let name = tag.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
        match (name.to_ascii_lowercase().as_str(), closing) {
            ("br", _) => out.push('\n'),
            ("p" | "div" | "tr" | "blockquote" | "table", _) => block(&mut out),
            ("td" | "th", true) => out.push_str(" | "),
            ("hr", _) => out.push_str("\n\n---\n\n"),
            ("strong" | "b", _) if !code => out.push_str("**"),
            ("em" | "i", _) if !code => out.push('*'),
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", false) => {
                block(&mut out);
                let level = name.as_bytes()[1] - b'0';
                out.push_str(&"#".repeat(usize::from(level)));
                out.push(' ');
            }
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", true) => block(&mut out),
            ("ul", false) => lists.push(None),
            ("ol", false) => lists.push(Some(0)),
            ("ul" | "ol", true) => {
                lists.pop();
                block(&mut out);
            }
            ("li", false) => {
                if !out.ends_with('\n') {
                    out.push('\n');
                }
                out.push_str(&"  ".repeat(lists.len().saturating_sub(1).min(16)));
                match lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        out.push_str(&format!("{number}. "));
                    }
                    Some(None) | None => out.push_str("- "),
                }
            }
            ("pre", false) => {
                block(&mut out);
                let begin = rest.get(..rest.len().min(120)).unwrap_or_default();
                let language = begin.split("language-").nth(1).unwrap_or_default();
                let language =
                    language.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                out.push_str(&format!("```{language}\n"));
                code = true;
            }
            ("pre", true) => {
                out.push_str("\n```\n\n");
                code = false;
            }
            ("code", _) if !code => out.push('`'),
            ("a", false) => {
                link = attribute(tag, "href");
                if link.is_some() {
                    out.push('[');
                }
            }
            ("a", true) => {
                if let Some(link) = link.take() {
                    out.push_str(&format!("]({link})"));
                }
            }
            ("script" | "style", false) => {
                let close = format!("</{name}");
                rest = rest.find(&close).map_or("", |found| &rest[found..]);
            }
            _ => {}
        }
    }
    text(&mut out, rest, code);
    tidy(&out)
}

/// Returns a text with its entities resolved.
pub(crate) fn unescaped(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(from) = rest.find('&') {
        out.push_str(&rest[..from]);
        rest = &rest[from..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        match end.and_then(|end| Some((entity(&rest[1..end])?, end))) {
            Some((found, end)) => {
                out.push(found);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "emsp" => '\u{2003}',
        "ensp" => '\u{2002}',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "deg" => '°',
        "euro" => '€',
        "times" => '×',
        "copy" => '©',
        _ => return None,
    })
}

/// Where a tag ends; a `>` inside quotes does not end it.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (place, byte) in tag.bytes().enumerate().take(64 << 10) {
        match (quote, byte) {
            (None, b'>') => return Some(place),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    tag.find('>')
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let value = tag.split_once(&format!("{name}="))?.1;
    let quote = value.chars().next().filter(|c| *c == '"' || *c == '\'')?;
    value[1..].split(quote).next().map(unescaped)
}

fn text(out: &mut String, text: &str, code: bool) {
    if code {
        out.push_str(&unescaped(text));
        return;
    }
    let plain = unescaped(text);
    let spaced = out.is_empty() || out.ends_with(char::is_whitespace);
    let mut space = plain.starts_with([' ', '\n', '\t', '\r']) && !spaced;
    for word in plain.split([' ', '\n', '\t', '\r']).filter(|word| !word.is_empty()) {
        if space {
            out.push(' ');
        }
        out.push_str(word);
        space = true;
    }
    if space && plain.ends_with([' ', '\n', '\t', '\r']) && !out.ends_with(' ') {
        out.push(' ');
    }
}

fn block(out: &mut String) {
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push_str(if out.ends_with('\n') { "\n" } else { "\n\n" });
    }
}

fn tidy(text: &str) -> String {
    let mut out = String::new();
    let mut empty = 0;
    for line in text.trim().lines() {
        empty = if line.trim().is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn html_becomes_markdown() {
        let cases = [
            (
                "<p>Keep it dry:</p><ul><li>ventilate</li><li>no light</li></ul>",
                "Keep it dry:\n\n- ventilate\n- no light",
            ),
            (
                "<p>Freeze at <strong>-18&nbsp;°C</strong> for 48&nbsp;h.</p>",
                "Freeze at **-18\u{a0}°C** for 48\u{a0}h.",
            ),
            (
                "<pre><code class=\"language-python\">if a &lt; b:\n  print('ok')</code></pre>",
                "```python\nif a < b:\n  print('ok')\n```",
            ),
            (
                "<ol><li>a</li><li>b <a href=\"https://x.example/?a=1&amp;b=2\">c</a></li></ol>",
                "1. a\n2. b [c](https://x.example/?a=1&b=2)",
            ),
            ("a<!-- <b> -->b<script>if (a<b) {}</script>c", "abc"),
            ("1 < 2 &unknown; &#233;", "1 < 2 &unknown; é"),
        ];
        for (html, expected) in cases {
            assert_eq!(markdown(html), expected, "{html}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(html in "[<>a-c/\"'&;#!é -]{0,80}") {
            markdown(&html);
        }
    }
}
