//! Pages of lists that do not change while they are turned.

use rmcp::model::{ErrorData, PaginatedRequestParams};
use yore_canon::encode::{base64url, from_base64url};

/// How many items a page has.
pub(crate) const PAGE: usize = 50;

/// Cuts the page out of a list that the request asks for, and says where the next one begins.
/// The name of the list is part of the cursor: one list's place means nothing in another.
pub(crate) fn page<T>(
    list: &'static str,
    items: Vec<T>,
    request: Option<&PaginatedRequestParams>,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let cursor = request.and_then(|request| request.cursor.as_deref());
    let begin = match cursor {
        None => 0,
        Some(cursor) => {
            place(list, cursor).filter(|begin| *begin < items.len()).ok_or_else(|| {
                ErrorData::invalid_params("invalid cursor: it is not one of this list", None)
            })?
        }
    };
    let next = begin + PAGE;
    let cursor = (next < items.len()).then(|| base64url(format!("{list}:{next}").as_bytes()));
    Ok((items.into_iter().skip(begin).take(PAGE).collect(), cursor))
}

fn place(list: &str, cursor: &str) -> Option<usize> {
    let bytes = from_base64url(cursor).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    text.strip_prefix(list)?.strip_prefix(':')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(cursor: Option<String>) -> PaginatedRequestParams {
        PaginatedRequestParams::default().with_cursor(cursor)
    }

    #[test]
    fn pages_cover_a_list_once_and_in_order() {
        for length in [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, 3 * PAGE + 7] {
            let items: Vec<usize> = (0..length).collect();
            let (mut seen, mut cursor) = (Vec::new(), None);
            loop {
                let (got, next) = page("tools", items.clone(), Some(&at(cursor))).unwrap();
                assert!(got.len() <= PAGE);
                seen.extend(got);
                cursor = next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen, items);
        }
    }

    #[test]
    fn foreign_cursors_are_refused() {
        let items: Vec<usize> = (0..PAGE + 1).collect();
        let (_, next) = page("tools", items.clone(), None).unwrap();
        assert!(page("prompts", items.clone(), Some(&at(next))).is_err());
        for cursor in ["", "50", "!!", &base64url(b"tools:51"), &base64url(b"tools:-1")] {
            assert!(page("tools", items.clone(), Some(&at(Some(cursor.into())))).is_err());
        }
    }
}
