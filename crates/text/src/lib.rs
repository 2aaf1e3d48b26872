//! The text inside files, for finding them: PDF, Office documents (OOXML and OpenDocument), EPUB,
//! HTML and plain text.
//!
//! Files come from strangers. So everything here is bounded in what it unpacks, in how much text
//! it gives and in the time it takes ([`Bounds`]); nothing recurses deeper than a few steps, no
//! entity is expanded, no name inside a file is opened. A file that is damaged, or that runs into
//! a bound, gives the text up to there. Layout, pictures and scripts are not looked at, and
//! encrypted files are not opened.
//!
//! Start at [`text_of`]; [`form_of`] tells from the first bytes whether reading on is of use.

mod html;
mod office;
mod pdf;
mod plain;
mod sink;
mod xml;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use sink::Sink;

/// How much work a file may cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of text.
    pub text: usize,
    /// Bytes unpacked in all.
    pub unpacked: usize,
    /// Bytes unpacked from one part, which is what lies in memory at once.
    pub part: usize,
    /// Time.
    pub time: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { text: 1 << 20, unpacked: 256 << 20, part: 32 << 20, time: Duration::from_secs(10) }
    }
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A PDF.
    Pdf,
    /// A packed document: Office or EPUB, or any other zip, which gives no text.
    Packed,
    /// HTML, or XML of another kind.
    Markup,
    /// Plain text.
    Plain,
}

/// Tells by its first bytes what a file is. The media type decides only where they do not.
#[must_use]
pub fn form_of(head: &[u8], media_type: &str) -> Option<Form> {
    let start = &head[..head.len().min(1024)];
    if memchr::memmem::find(start, b"%PDF-").is_some() {
        return Some(Form::Pdf);
    }
    if head.starts_with(b"PK\x03\x04") {
        return Some(Form::Packed);
    }
    if head.starts_with(b"{\\rtf") {
        return None;
    }
    let media = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let named_text = media.starts_with("text/") || media.ends_with("json");
    if !plain::is_text(head, named_text) {
        return None;
    }
    let opening: String = plain::decoded(start).trim_start().chars().take(16).collect();
    let opening = opening.to_ascii_lowercase();
    let marked = media.contains("html") || media.contains("xml");
    if marked || ["<!doctype html", "<html", "<?xml"].iter().any(|tag| opening.starts_with(tag)) {
        return Some(Form::Markup);
    }
    Some(Form::Plain)
}

/// Returns the text of a file, as far as the bounds go; nothing where there is none.
#[must_use]
pub fn text_of(bytes: &[u8], media_type: &str, bounds: &Bounds) -> Option<String> {
    let form = form_of(bytes, media_type)?;
    let mut sink = Sink::new(bounds);
    // The readers are written not to panic. Should one do so after all, the text up to there is
    // as good as that of a damaged file.
    let read = catch_unwind(AssertUnwindSafe(|| match form {
        Form::Pdf => pdf::read(bytes, &mut sink),
        Form::Packed => office::read(bytes, &mut sink),
        Form::Markup => html::read(&plain::decoded(bytes), &mut sink),
        Form::Plain => sink.push(&plain::decoded(bytes)),
    }));
    // Whether it ended at a bound or at its end is the same to whoever searches.
    drop(read);
    Some(sink.into_text()).filter(|text| !text.is_empty())
}
