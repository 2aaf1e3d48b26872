//! Plain text in the encodings people meet.

use std::borrow::Cow;

/// Whether these bytes, the first of a file, read as text. What is not UTF-8 must be called text
/// by whoever sent it.
pub(crate) fn is_text(head: &[u8], named_text: bool) -> bool {
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return true;
    }
    if head.is_empty() || memchr::memchr(0, head).is_some() {
        return false;
    }
    let odd = |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    if head.iter().filter(odd).count() * 100 > head.len() {
        return false;
    }
    match std::str::from_utf8(head) {
        Ok(_) => true,
        // The head of a file may end within a character.
        Err(error) => named_text || (error.error_len().is_none() && error.valid_up_to() > 0),
    }
}

/// The text of bytes: by their mark, as UTF-8, or as Windows-1252.
pub(crate) fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    if let Some(rest) = bytes.strip_prefix(&[0xff, 0xfe]) {
        return utf16(rest, u16::from_le_bytes).into();
    }
    if let Some(rest) = bytes.strip_prefix(&[0xfe, 0xff]) {
        return utf16(rest, u16::from_be_bytes).into();
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) if error.valid_up_to() * 2 > bytes.len() => String::from_utf8_lossy(bytes),
        Err(_) => bytes.iter().map(|byte| windows_1252(*byte)).collect::<String>().into(),
    }
}

pub(crate) fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// A character of Windows-1252.
pub(crate) fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž',
        '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}',
        'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_told_apart() {
        assert_eq!(decoded("Grüße".as_bytes()), "Grüße");
        assert_eq!(decoded(b"Gr\xfc\xdfe \x93so\x94"), "Grüße “so”");
        assert_eq!(decoded(b"\xff\xfeG\0r\0\xfc\0"), "Grü");
        assert_eq!(decoded(b"\xfe\xff\0G\0r\0\xfc"), "Grü");
    }

    #[test]
    fn binary_is_not_text() {
        assert!(is_text("Grüße".as_bytes(), false));
        assert!(is_text(&"Grüße".as_bytes()[..3], false), "cut within a character");
        assert!(is_text(b"Gr\xfc\xdfe", true) && !is_text(b"Gr\xfc\xdfe", false));
        assert!(!is_text(b"\x89PNG\r\n\x1a\n\0\0\0", true) && !is_text(b"", true));
        assert!(!is_text(b"\x01\x02\x03abc", true));
    }
}
