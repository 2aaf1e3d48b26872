//! What was attached to messages. A picture is shown; anything else is only ever saved, whatever
//! it says of itself.

use axum::body::Body;
use axum::extract::Path;
use axum::http::HeaderValue;
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
};
use axum::response::IntoResponse;
use futures::StreamExt;
use yore_domain::{BlobHash, Error};
use yore_engine::Download;

use crate::trouble::Page;
use crate::visit::Visit;

/// Nothing at all may run or load in what a stranger sent.
const POLICY: &str = "default-src 'none'; sandbox";

pub(crate) async fn show(Path(blob): Path<String>, visit: Visit) -> Page {
    let blob: BlobHash = blob.parse().map_err(|_| Error::NotFound)?;
    let Download { size, mut pieces } = visit.engine().download(&visit.call, blob).await?;
    let first = pieces.next().await.transpose()?.unwrap_or_default();
    let picture = picture(&first);
    let shown = if picture.is_some() { "inline" } else { "attachment" };
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static(picture.unwrap_or("application/octet-stream"))),
        (CONTENT_LENGTH, HeaderValue::from(size)),
        (CONTENT_DISPOSITION, HeaderValue::from_static(shown)),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    ];
    let rest = pieces.map(|piece| piece.map_err(|error| std::io::Error::other(error.to_string())));
    let all = futures::stream::once(async move { Ok(first) }).chain(rest);
    Ok((head, Body::from_stream(all)).into_response())
}

/// The sort of picture that bytes are, if they are one that cannot hold a script.
fn picture(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Whether a message's word for a file is that of such a picture.
pub(super) fn is_picture(media_type: &str) -> bool {
    ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pictures_that_cannot_hold_a_script_are_shown() {
        assert_eq!(picture(b"\x89PNG\r\n\x1a\n...."), Some("image/png"));
        assert_eq!(picture(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(picture(b"RIFF....WEBPVP8 "), Some("image/webp"));
        for other in [&b"<svg onload=alert(1)>"[..], b"<html>", b"%PDF-1.7", b"GIF", b""] {
            assert_eq!(picture(other), None);
        }
    }
}
