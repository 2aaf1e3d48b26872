//! Media types by their first bytes, and the endings files of them have.

/// Returns the media type that the first bytes tell.
pub(crate) fn media_type(head: &[u8]) -> &'static str {
    const MAGIC: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"%PDF-", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
        (b"ID3", "audio/mpeg"),
        (b"OggS", "audio/ogg"),
        (b"fLaC", "audio/flac"),
        (b"\x1a\x45\xdf\xa3", "video/webm"),
        (b"BM", "image/bmp"),
    ];
    if head.starts_with(b"RIFF") && head.len() >= 12 {
        match &head[8..12] {
            b"WEBP" => return "image/webp",
            b"WAVE" => return "audio/wav",
            _ => {}
        }
    }
    if head.len() >= 12 && &head[4..8] == b"ftyp" {
        return match &head[8..11] {
            b"M4A" => "audio/mp4",
            b"hei" | b"mif" => "image/heic",
            b"avi" => "image/avif",
            _ => "video/mp4",
        };
    }
    if let Some((_, found)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return found;
    }
    let cut = match std::str::from_utf8(head) {
        Ok(_) => head.len(),
        // A character may be cut in two at the end of what was looked at.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return "application/octet-stream",
    };
    if head[..cut].iter().any(|byte| *byte < 32 && !b"\t\r\n\x0c".contains(byte)) {
        return "application/octet-stream";
    }
    let start = head.trim_ascii_start();
    if start.starts_with(b"<svg") {
        "image/svg+xml"
    } else if start.starts_with(b"<!DOCTYPE html") || start.starts_with(b"<html") {
        "text/html"
    } else {
        "text/plain"
    }
}

/// Returns the media type that the ending of a name tells.
pub(crate) fn by_name(name: &str) -> Option<&'static str> {
    let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
    ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, found)| *found)
}

/// Returns the ending for a media type.
pub(crate) fn ending(media_type: &str) -> &'static str {
    let plain = media_type.split(';').next().unwrap_or_default().trim();
    ENDINGS.iter().find(|(_, known)| *known == plain).map_or("bin", |(ending, _)| ending)
}

/// The first ending of a type is the one that is written.
const ENDINGS: &[(&str, &str)] = &[
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("json", "application/json"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("svg", "image/svg+xml"),
    ("bmp", "image/bmp"),
    ("heic", "image/heic"),
    ("avif", "image/avif"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("ogg", "audio/ogg"),
    ("flac", "audio/flac"),
    ("m4a", "audio/mp4"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_and_endings_tell_types() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\n...."), "image/png");
        assert_eq!(media_type(b"RIFF\0\0\0\0WAVEfmt "), "audio/wav");
        assert_eq!(media_type("caf\u{e9}".as_bytes()), "text/plain");
        assert_eq!(media_type(&"caf\u{e9}".as_bytes()[..4]), "text/plain");
        assert_eq!(media_type(b"\0\x01"), "application/octet-stream");
        assert_eq!(by_name("a.CSV"), Some("text/csv"));
        assert_eq!((ending("image/jpeg"), ending("x/unknown")), ("jpg", "bin"));
    }
}
