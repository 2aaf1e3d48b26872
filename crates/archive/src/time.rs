//! Points in time in every spelling that exports use. What cannot be read is absent, never now.

use serde_json::Value;
use yore_domain::{Span, Timestamp};

use crate::json::Look;

/// Reads any spelling: seconds, milliseconds, microseconds or nanoseconds since 1970, a text, or
/// the extended form of a document database. Zero means unknown.
pub(crate) fn any(value: &Value) -> Option<Timestamp> {
    if let Some(number) = value.as_f64() {
        return epoch(number);
    }
    if let Some(text) = value.as_str() {
        return self::text(text);
    }
    let date = value.get("$date")?;
    match date.text("$numberLong") {
        Some(millis) => epoch(millis.parse().ok()?),
        None => any(date),
    }
}

/// Reads a number since 1970; its size tells its unit.
#[expect(clippy::cast_possible_truncation, reason = "bounded just above")]
pub(crate) fn epoch(number: f64) -> Option<Timestamp> {
    if !number.is_finite() || number <= 0.0 || number > 1e20 {
        return None;
    }
    let micros = match number {
        n if n < 1e11 => n * 1e6,
        n if n < 1e14 => n * 1e3,
        n if n < 1e17 => n,
        n => n / 1e3,
    };
    Some(Timestamp::from_micros(micros.round() as i64))
}

/// Reads a text: RFC 3339, the same without a zone (then UTC), a date alone, what Go prints, what
/// American programs print.
pub(crate) fn text(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.is_empty() || text.len() > 80 {
        return None;
    }
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return epoch(text.parse().ok()?);
    }
    let text = text.replace(['\u{202f}', '\u{a0}'], " ");
    // `m=+0.01` is a running clock that Go prints behind the time.
    let text = text.split(" m=").next().unwrap_or_default().to_owned();
    iso(&text).or_else(|| american(&text)).or_else(|| worded(&text)).or_else(|| dotted(&text))
}

/// Whether a text says a time without saying its zone.
pub(crate) fn lacks_zone(text: &str) -> bool {
    text.parse::<Timestamp>().is_err() && self::text(text).is_some() && !has_zone(text)
}

fn has_zone(text: &str) -> bool {
    let tail = text.get(10..).unwrap_or_default();
    tail.contains(['+', 'Z']) || tail.contains('-')
}

/// `2026-03-14 10:26:53.589793+01:00`, `2026-03-14T09:26:53`, `2026-03-14 10:26:53 +0100 CET`.
fn iso(text: &str) -> Option<Timestamp> {
    let date = text.get(..10)?;
    let rest = text.get(10..)?.trim_start_matches(['T', 't', ' ']);
    if rest.is_empty() {
        return format!("{date}T00:00:00Z").parse().ok();
    }
    let end =
        rest.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(end);
    let zone = zone.split_whitespace().next().unwrap_or("Z");
    let zone = match zone.len() {
        5 if zone.starts_with(['+', '-']) => format!("{}:{}", &zone[..3], &zone[3..]),
        _ if zone.starts_with(['+', '-']) => zone.to_owned(),
        _ => "Z".to_owned(),
    };
    format!("{date}T{clock}{zone}").parse().ok()
}

/// `3/14/2026 9:26:53 +00:00`.
fn american(text: &str) -> Option<Timestamp> {
    let mut words = text.split_whitespace();
    let mut date = words.next()?.split('/');
    let (month, day, year) = (number(date.next()?)?, number(date.next()?)?, number(date.next()?)?);
    let (hour, minute, second) = clock(words.next()?)?;
    let mut rest: Vec<&str> = words.collect();
    let hour = half(hour, &mut rest)?;
    let zone = rest.first().copied().unwrap_or("+00:00");
    made((year, month, day), (hour, minute, second), offset(zone)?)
}

/// `Mar 14, 2026, 9:28:53 AM UTC`, `14 Mar 2026, 09:28:53 GMT+01:00`.
fn worded(text: &str) -> Option<Timestamp> {
    let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let (first, second) = (*words.first()?, *words.get(1)?);
    let (month, day) = match month(first) {
        Some(month) => (month, number(second)?),
        None => (month(second)?, number(first.trim_end_matches('.'))?),
    };
    let year = number(words.get(2)?)?;
    let (hour, minute, second) = clock(words.get(3)?)?;
    let mut rest = words[4..].to_vec();
    let hour = half(hour, &mut rest)?;
    let zone = rest.first().copied().unwrap_or("UTC");
    made((year, month, day), (hour, minute, second), offset(zone)?)
}

/// `14.03.2026, 10:28:53 MEZ`.
fn dotted(text: &str) -> Option<Timestamp> {
    let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let mut date = words.first()?.split('.');
    let (day, month, year) = (number(date.next()?)?, number(date.next()?)?, number(date.next()?)?);
    let (hour, minute, second) = clock(words.get(1)?)?;
    let zone = words.get(2).copied().unwrap_or("UTC");
    made((year, month, day), (hour, minute, second), offset(zone)?)
}

fn number(text: &str) -> Option<i64> {
    (text.len() <= 4).then(|| text.parse().ok()).flatten()
}

fn clock(text: &str) -> Option<(i64, i64, i64)> {
    let mut parts = text.split(':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    Some((hour, minute, number(parts.next().unwrap_or("0"))?))
}

fn half(hour: i64, rest: &mut Vec<&str>) -> Option<i64> {
    let word = rest.first().map(|word| word.to_ascii_uppercase());
    let afternoon = match word.as_deref() {
        Some("AM") => false,
        Some("PM") => true,
        Some(_) | None => return Some(hour),
    };
    rest.remove(0);
    Some(hour % 12 + if afternoon { 12 } else { 0 })
}

fn month(word: &str) -> Option<i64> {
    const NAMES: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let word = word.to_lowercase();
    let place = NAMES.iter().position(|name| word.starts_with(name))?;
    i64::try_from(place + 1).ok()
}

/// The zone in seconds east of UTC. An abbreviation that means several zones is not guessed.
fn offset(zone: &str) -> Option<i64> {
    let named = match zone {
        "UTC" | "GMT" | "Z" | "WET" => Some(0),
        "MEZ" | "CET" | "BST" | "WEST" => Some(1),
        "MESZ" | "CEST" | "EET" => Some(2),
        "EEST" | "MSK" => Some(3),
        "JST" | "KST" => Some(9),
        "EDT" => Some(-4),
        "EST" | "CDT" => Some(-5),
        "MDT" => Some(-6),
        "MST" | "PDT" => Some(-7),
        "PST" => Some(-8),
        _ => None,
    };
    if let Some(hours) = named {
        return Some(hours * 3600);
    }
    let signed = zone.trim_start_matches("GMT").trim_start_matches("UTC");
    let sign = match signed.chars().next()? {
        '+' => 1,
        '-' | '−' => -1,
        _ => return None,
    };
    let digits = signed.trim_start_matches(['+', '-', '−']);
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (number(hours)?, number(minutes)?),
        None if digits.len() == 4 => (number(digits.get(..2)?)?, number(digits.get(2..)?)?),
        None => (number(digits)?, 0),
    };
    Some(sign * (hours * 3600 + minutes * 60))
}

fn made(date: (i64, i64, i64), clock: (i64, i64, i64), offset: i64) -> Option<Timestamp> {
    let small = |value: i64| i8::try_from(value).ok();
    let year = i16::try_from(date.0).ok()?;
    let date = jiff::civil::Date::new(year, small(date.1)?, small(date.2)?).ok()?;
    let time = jiff::civil::Time::new(small(clock.0)?, small(clock.1)?, small(clock.2)?, 0).ok()?;
    let text = format!("{date}T{time}Z");
    let utc: Timestamp = text.parse().ok()?;
    let span = Span::seconds(offset.unsigned_abs());
    Some(if offset >= 0 { utc.minus(span) } else { utc.plus(span) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_spelling_says_the_same_instant() {
        let cases = [
            json!(1_773_480_413.0),
            json!(1_773_480_413_000_i64),
            json!(1_773_480_413_000_000_i64),
            json!({"$date": {"$numberLong": "1773480413000"}}),
            json!({"$date": "2026-03-14T09:26:53Z"}),
            json!("2026-03-14T09:26:53"),
            json!("2026-03-14 10:26:53+01:00"),
            json!("2026-03-14 10:26:53.0 +0100 CET m=+0.01"),
            json!("3/14/2026 9:26:53 +00:00"),
            json!("Mar 14, 2026, 9:26:53\u{202f}AM UTC"),
            json!("Mar 14, 2026, 10:26:53 AM GMT+01:00"),
            json!("14.03.2026, 10:26:53 MEZ"),
            json!("2026-03-14T02:26:53-07:00"),
        ];
        for value in cases {
            assert_eq!(any(&value).unwrap().to_string(), "2026-03-14T09:26:53Z", "{value}");
        }
    }

    #[test]
    fn what_says_no_time_is_absent() {
        for value in [
            json!(0),
            json!(null),
            json!(""),
            json!("yesterday"),
            json!(-5),
            json!([]),
            json!("Feb 31, 2026, 9:00:00 AM UTC"),
            json!("99/99/9999 99:99"),
            json!(f64::MAX),
            json!("é".repeat(20)),
        ] {
            assert_eq!(any(&value), None, "{value}");
        }
        assert!(lacks_zone("2026-03-14T09:26:53") && !lacks_zone("2026-03-14T09:26:53Z"));
        assert!(!lacks_zone("2026-03-14 10:26:53+01:00"));
    }
}
