//! The one kind of text that templates print as it is.

use std::fmt;

use askama::filters::HtmlSafe;
use yore_domain::Timestamp;

/// HTML that this crate wrote. Whatever a stranger said in it went through [`Markup::text`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Markup(String);

impl HtmlSafe for Markup {}

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Markup {
    /// Appends markup of ours.
    pub(crate) fn raw(&mut self, html: &'static str) -> &mut Self {
        self.0.push_str(html);
        self
    }

    /// Appends a text that anybody may have written.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
        self
    }

    /// Appends a number.
    pub(crate) fn number(&mut self, number: impl Into<f64>) -> &mut Self {
        self.0.push_str(&format!("{:.1}", number.into()));
        self
    }

    #[cfg(test)]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A time as people say it, with the exact one behind it.
pub(crate) fn when(at: Timestamp, now: Timestamp) -> Markup {
    let exact = at.to_string();
    let mut html = Markup::default();
    html.raw("<time datetime=\"").text(&exact).raw("\" title=\"").text(&minute(at)).raw("\">");
    html.text(&spoken(at, now)).raw("</time>");
    html
}

/// A time to the minute.
pub(crate) fn minute(at: Timestamp) -> String {
    let exact = at.to_string();
    let (date, time) = exact.split_once('T').unwrap_or((&exact, ""));
    format!("{date} {} UTC", time.get(..5).unwrap_or(time))
}

/// A day.
pub(crate) fn day(at: Timestamp) -> String {
    let exact = at.to_string();
    exact.split('T').next().unwrap_or_default().to_owned()
}

fn spoken(at: Timestamp, now: Timestamp) -> String {
    let (seconds, ahead) = match (now.micros() - at.micros()) / 1_000_000 {
        past @ 0.. => (past, false),
        future => (-future, true),
    };
    let said = match seconds {
        0..60 if ahead => return "in a moment".into(),
        0..60 => return "just now".into(),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        86_400..172_800 => "1 day".into(),
        172_800..2_592_000 => format!("{} days", seconds / 86_400),
        _ => return day(at),
    };
    if ahead { format!("in {said}") } else { format!("{said} ago") }
}

/// A number of bytes as people say it.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let (mut whole, mut rest, mut unit) = (count, 0, 0);
    while whole >= 1024 && unit + 1 < units.len() {
        rest = whole % 1024 * 10 / 1024;
        whole /= 1024;
        unit += 1;
    }
    if unit == 0 { format!("{whole} B") } else { format!("{whole}.{rest} {}", units[unit]) }
}

/// A number with its thousands apart.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use yore_domain::Span;

    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        let mut html = Markup::default();
        html.raw("<p>").text("<script>'\"&").raw("</p>");
        assert_eq!(html.as_str(), "<p>&lt;script&gt;&#39;&quot;&amp;</p>");
    }

    #[test]
    fn times_and_numbers_are_spoken() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        for (ago, said) in [(5, "just now"), (90, "1 min ago"), (7200, "2 h ago")] {
            assert_eq!(spoken(now.minus(Span::seconds(ago)), now), said);
        }
        assert_eq!(spoken(now.plus(Span::days(3)), now), "in 3 days");
        assert_eq!(spoken(now.minus(Span::days(400)), now), "2025-12-11");
        assert_eq!(minute(now), "2027-01-15 08:00 UTC");
        assert_eq!(bytes(1536), "1.5 KB");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
    }
}
