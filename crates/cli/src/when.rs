//! Times as people type and read them.

use yore_domain::{Span, Timestamp};

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A point in time as it was typed; what is relative is resolved against now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instant {
    /// Exactly then.
    At(Timestamp),
    /// This long before now.
    Ago(Span),
}

impl Instant {
    /// Returns the time it means.
    #[must_use]
    pub(crate) fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::Ago(span) => now.minus(span),
        }
    }
}

/// Reads `2026-03-15`, `2026-03-15T09:30:00Z`, `now`, or a length of time before now such as `2h`.
pub(crate) fn instant(text: &str) -> Result<Instant, String> {
    let text = text.trim();
    if text == "now" {
        return Ok(Instant::Ago(Span::ZERO));
    }
    if let Ok(span) = Span::parse_human(text) {
        return Ok(Instant::Ago(span));
    }
    let day = format!("{text}T00:00:00Z");
    text.parse()
        .or_else(|_| day.parse())
        .or_else(|_| format!("{text}Z").parse())
        .map(Instant::At)
        .map_err(|_| {
            "not a time: write 2026-03-15, 2026-03-15T09:30:00Z (years 0000 to 9999), or 2h for \
             two hours ago"
                .to_owned()
        })
}

/// Reads a length of time such as `24h` or `P30D`.
pub(crate) fn span(text: &str) -> Result<Span, String> {
    Span::parse_human(text)
        .map_err(|_| "not a length of time: write 30s, 15m, 24h, 7d, 2w or P30D".to_owned())
}

/// Says how far a time lies from now: `3 minutes ago`, `in 2 days`, or the date when it is far.
#[must_use]
pub(crate) fn relative(time: Timestamp, now: Timestamp) -> String {
    let distance = now.micros().saturating_sub(time.micros());
    let (size, future) = (distance.saturating_abs(), distance < 0);
    if size < 10 * SECOND {
        return "just now".to_owned();
    }
    if size >= 30 * DAY {
        return time.to_string().chars().take(10).collect();
    }
    let (unit, name) = match size {
        _ if size < MINUTE => (SECOND, "second"),
        _ if size < HOUR => (MINUTE, "minute"),
        _ if size < DAY => (HOUR, "hour"),
        _ => (DAY, "day"),
    };
    let count = size / unit;
    let plural = if count == 1 { "" } else { "s" };
    if future {
        format!("in {count} {name}{plural}")
    } else {
        format!("{count} {name}{plural} ago")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_type_them() {
        let now: Timestamp = "2026-03-15T12:00:00Z".parse().unwrap();
        let cases = [
            ("2026-03-15", "2026-03-15T00:00:00Z"),
            ("2026-03-15T09:30:00+01:00", "2026-03-15T08:30:00Z"),
            ("2026-03-15T09:30:00", "2026-03-15T09:30:00Z"),
            ("2h", "2026-03-15T10:00:00Z"),
            ("now", "2026-03-15T12:00:00Z"),
            ("0000-01-01", "0000-01-01T00:00:00Z"),
            ("9999-12-31", "9999-12-31T00:00:00Z"),
        ];
        for (text, expected) in cases {
            assert_eq!(instant(text).unwrap().resolve(now).to_string(), expected, "{text}");
        }
        for bad in ["", "yesterday", "10000-01-01", "-0001-01-01", "2026-13-01", "h"] {
            assert!(instant(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_as_people_read_them() {
        let now: Timestamp = "2026-03-15T12:00:00Z".parse().unwrap();
        let cases = [
            ("2026-03-15T11:59:58Z", "just now"),
            ("2026-03-15T11:59:00Z", "1 minute ago"),
            ("2026-03-15T09:00:00Z", "3 hours ago"),
            ("2026-03-17T12:00:00Z", "in 2 days"),
            ("2025-01-02T12:00:00Z", "2025-01-02"),
            ("9999-12-31T23:59:59Z", "9999-12-31"),
        ];
        for (time, expected) in cases {
            assert_eq!(relative(time.parse().unwrap(), now), expected, "{time}");
        }
    }
}
