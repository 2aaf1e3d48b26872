//! Points in time and lengths of time. Nothing here reads a clock.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Microseconds since 1970 in UTC, from year 0 to the end of year 9999.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(try_from = "i64")]
pub struct Timestamp(i64);

impl TryFrom<i64> for Timestamp {
    type Error = Error;

    fn try_from(micros: i64) -> Result<Self, Error> {
        let time = Self::from_micros(micros);
        if time.0 != micros {
            return Err(Error::invalid("time", "must lie in the years 0 to 9999"));
        }
        Ok(time)
    }
}

/// Civil arithmetic, because a zoned clock ends a day before year 9999 does.
const EPOCH: jiff::civil::DateTime = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);
const MICROS_PER_DAY: i64 = 86_400_000_000;

impl Timestamp {
    /// The first instant of year 0.
    pub const MIN: Self = Self(-62_167_219_200_000_000);
    /// The last microsecond of year 9999.
    pub const MAX: Self = Self(253_402_300_799_999_999);

    /// Clamps to the range a four-digit year can say.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        if micros < Self::MIN.0 {
            Self::MIN
        } else if micros > Self::MAX.0 {
            Self::MAX
        } else {
            Self(micros)
        }
    }

    /// Clamps likewise.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self::from_micros(millis.saturating_mul(1000))
    }

    /// Returns microseconds since 1970.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Returns whole milliseconds since 1970.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Adds a span; the result stays in range.
    #[must_use]
    pub fn plus(self, span: Span) -> Self {
        Self::from_micros(self.0.saturating_add(span.0))
    }

    /// Subtracts a span; the result stays in range.
    #[must_use]
    pub fn minus(self, span: Span) -> Self {
        Self::from_micros(self.0.saturating_sub(span.0))
    }

    /// Returns how many days lie between `self` and a later instant, never below zero.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "days are for decay curves")]
    pub fn days_until(self, later: Self) -> f64 {
        (later.0.saturating_sub(self.0).max(0)) as f64 / MICROS_PER_DAY as f64
    }
}

impl fmt::Display for Timestamp {
    /// Writes RFC 3339 in UTC with the shortest fraction that says it all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let civil =
            EPOCH.checked_add(jiff::SignedDuration::from_micros(self.0)).map_err(|_| fmt::Error)?;
        write!(f, "{civil}Z")
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    /// Reads RFC 3339 with any offset. A text without an offset is refused.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::invalid("time", "not an RFC 3339 date and time with an offset");
        if text.len() > 64 {
            return Err(wrong());
        }
        let pieces = jiff::fmt::temporal::Pieces::parse(text).map_err(|_| wrong())?;
        let time = pieces.time().ok_or_else(wrong)?;
        let offset = pieces.to_numeric_offset().ok_or_else(wrong)?;
        let since = pieces.date().to_datetime(time).duration_since(EPOCH);
        let micros = i64::try_from(since.as_micros()).map_err(|_| wrong())?
            - i64::from(offset.seconds()) * 1_000_000;
        if !(Self::MIN.0..=Self::MAX.0).contains(&micros) {
            return Err(Error::invalid("time", "the year must be between 0 and 9999"));
        }
        Ok(Self(micros))
    }
}

/// A length of time in microseconds, never negative.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(try_from = "i64")]
pub struct Span(i64);

impl TryFrom<i64> for Span {
    type Error = Error;

    fn try_from(micros: i64) -> Result<Self, Error> {
        if micros < 0 {
            return Err(Error::invalid("span", "must not be negative"));
        }
        Ok(Self(micros))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// Makes a span of seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        let micros = seconds.saturating_mul(1_000_000);
        Self(if micros > i64::MAX as u64 { i64::MAX } else { micros as i64 })
    }

    /// Makes a span of days.
    #[must_use]
    pub const fn days(days: u64) -> Self {
        Self::seconds(days.saturating_mul(86_400))
    }

    /// Returns microseconds.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Returns days as a real number.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "days are for decay curves")]
    pub fn as_days(self) -> f64 {
        self.0 as f64 / MICROS_PER_DAY as f64
    }

    /// Reads an ISO 8601 duration (`P90D`, `PT1H30M`); a year is 365 days, a month 30.
    pub fn parse_iso(text: &str) -> Result<Self, Error> {
        let wrong = || Error::invalid("duration", "not an ISO 8601 duration such as P30D or PT1H");
        let rest = text.strip_prefix('P').ok_or_else(wrong)?;
        if rest.is_empty() || rest.len() > 64 || rest.ends_with('T') {
            return Err(wrong());
        }
        let (mut total, mut in_time, mut number) = (0f64, false, String::new());
        for c in rest.chars() {
            match c {
                '0'..='9' | '.' => number.push(c),
                'T' if !in_time && number.is_empty() => in_time = true,
                unit => {
                    let seconds = match (unit, in_time) {
                        ('Y', false) => 365.0 * 86_400.0,
                        ('M', false) => 30.0 * 86_400.0,
                        ('W', false) => 7.0 * 86_400.0,
                        ('D', false) => 86_400.0,
                        ('H', true) => 3_600.0,
                        ('M', true) => 60.0,
                        ('S', true) => 1.0,
                        _ => return Err(wrong()),
                    };
                    let value: f64 = number.parse().map_err(|_| wrong())?;
                    if number.contains('.') && unit != 'S' {
                        return Err(wrong());
                    }
                    total += value * seconds;
                    number.clear();
                }
            }
        }
        if !number.is_empty() {
            return Err(wrong());
        }
        Self::from_real_seconds(total).ok_or_else(wrong)
    }

    /// Reads what people type: `30s`, `15m`, `24h`, `7d`, `2w`, or an ISO duration.
    pub fn parse_human(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.starts_with('P') {
            return Self::parse_iso(text);
        }
        let wrong =
            || Error::invalid("duration", "write a number and s, m, h, d or w, such as 24h");
        let unit = text.chars().last().ok_or_else(wrong)?;
        let factor = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return Err(wrong()),
        };
        let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
        Ok(Self::seconds(number.saturating_mul(factor)))
    }

    #[expect(clippy::cast_possible_truncation, reason = "bounded just above")]
    fn from_real_seconds(seconds: f64) -> Option<Self> {
        (seconds.is_finite() && (0.0..=1e12).contains(&seconds))
            .then_some(Self((seconds * 1e6) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_round_trip_as_text() {
        for text in ["2026-03-15T09:30:00Z", "2026-03-15T09:30:00.25Z", "0000-01-01T00:00:00Z"] {
            assert_eq!(text.parse::<Timestamp>().unwrap().to_string(), text);
        }
        let shifted: Timestamp = "2026-03-15T10:30:00+01:00".parse().unwrap();
        assert_eq!(shifted.to_string(), "2026-03-15T09:30:00Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999999Z");
        assert_eq!(Timestamp::MIN.to_string(), "0000-01-01T00:00:00Z");
    }

    #[test]
    fn what_is_not_a_time_is_refused() {
        for text in
            ["", "yesterday", "2026-03-15", "2026-03-15T09:30:00", "-000001-01-01T00:00:00Z"]
        {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn iso_durations() {
        assert_eq!(Span::parse_iso("P90D").unwrap(), Span::days(90));
        assert_eq!(Span::parse_iso("P1Y").unwrap(), Span::days(365));
        assert_eq!(Span::parse_iso("PT1H30M").unwrap(), Span::seconds(5400));
        assert_eq!(Span::parse_iso("P1M").unwrap(), Span::days(30));
        assert_eq!(Span::parse_iso("PT1M").unwrap(), Span::seconds(60));
        for bad in ["", "P", "PT", "90D", "P1H", "P1.5D", "P1", "P-1D", "P999999999999999999999Y"] {
            assert!(Span::parse_iso(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn human_durations() {
        assert_eq!(Span::parse_human("24h").unwrap(), Span::days(1));
        assert_eq!(Span::parse_human(" 2w ").unwrap(), Span::days(14));
        assert!(Span::parse_human("h").is_err());
        assert!(Span::parse_human("5 minutes").is_err());
    }

    #[test]
    fn numbers_outside_the_range_are_refused_where_they_come_in() {
        for (text, fits) in [
            ("0", true),
            ("-62167219200000000", true),
            ("-62167219200000001", false),
            ("253402300799999999", true),
            ("253402300800000000", false),
            ("9223372036854775807", false),
        ] {
            let read = serde_json::from_str::<Timestamp>(text);
            assert_eq!(read.is_ok(), fits, "{text}");
            if let Ok(time) = read {
                assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time, "{text}");
                assert_eq!(serde_json::to_string(&time).unwrap(), text);
            }
        }
        assert!(serde_json::from_str::<Span>("-1").is_err());
        assert_eq!(serde_json::from_str::<Span>("1000000").unwrap(), Span::seconds(1));
    }
}
