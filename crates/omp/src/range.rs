//! A part of something long: the one range that a request may ask for.

use axum::http::HeaderMap;
use axum::http::header::RANGE;

use crate::error::{Refusal, Result};

/// Which bytes are sent: the first, and the one behind the last.
pub(crate) type Part = (u64, u64);

/// Reads the range of a request; nothing when it wants everything, or several ranges at once.
pub(crate) fn wanted(headers: &HeaderMap, length: u64) -> Result<Option<Part>> {
    let line = headers.get(RANGE).and_then(|line| line.to_str().ok());
    let Some((first, last)) = line
        .and_then(|line| line.trim().strip_prefix("bytes="))
        .filter(|ranges| !ranges.contains(','))
        .and_then(|range| range.split_once('-'))
    else {
        return Ok(None);
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let part = match (number(first), number(last)) {
        (Some(first), _) if last.trim().is_empty() => (first, length),
        (Some(first), Some(last)) if first <= last => (first, last.saturating_add(1).min(length)),
        (None, Some(count)) if first.trim().is_empty() => (length.saturating_sub(count), length),
        (_, _) => return Ok(None),
    };
    if part.0 < part.1 {
        return Ok(Some(part));
    }
    let refusal = Refusal::new(416, "range_not_satisfiable", "there are no such bytes");
    Err(refusal.with("size_bytes", length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omp_123_ranges_are_read_as_http_has_them() {
        let read = |line: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, line.parse().unwrap());
            wanted(&headers, 100)
        };
        assert_eq!(wanted(&HeaderMap::new(), 100).unwrap(), None);
        for (line, part) in [
            ("bytes=0-9", Some((0, 10))),
            ("bytes=90-", Some((90, 100))),
            ("bytes=-10", Some((90, 100))),
            ("bytes=50-500", Some((50, 100))),
            ("bytes=9-0", None),
            ("bytes=0-1,5-6", None),
            ("lines=1-2", None),
            ("bytes=x-y", None),
        ] {
            assert_eq!(read(line).unwrap(), part, "{line}");
        }
        for line in ["bytes=100-", "bytes=-0"] {
            assert_eq!(read(line).unwrap_err().status, 416, "{line}");
        }
    }
}
