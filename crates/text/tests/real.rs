//! Files that the usual programs wrote; `files/README.md` says which.

use std::path::Path;

use yore_text::{Bounds, Form, form_of, text_of};

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn text(name: &str) -> String {
    text_of(&file(name), "application/octet-stream", &Bounds::default()).unwrap_or_default()
}

#[test]
fn every_kind_of_file_gives_its_words() {
    for name in [
        "standard.pdf",
        "embedded.pdf",
        "packed.pdf",
        "letter.docx",
        "table.xlsx",
        "slides.pptx",
        "letter.odt",
        "page.html",
        "notes.txt",
        "notes-utf16.txt",
    ] {
        let text = text(name);
        let words: Vec<&str> = text.split_whitespace().collect();
        let joined = words.join(" ");
        assert!(joined.contains("The kestrel nests above the harbour"), "{name}: {text}");
        assert!(joined.contains("Grüße aus Köln"), "{name}: {text}");
        assert!(joined.contains("second page about marzipan"), "{name}: {text}");
    }
}

#[test]
fn lines_stay_apart_and_runs_together() {
    let text = text("letter.docx");
    assert!(text.contains("half bold word"), "a word in two runs: {text}");
    assert!(text.lines().count() > 3, "{text}");
    let text = self::text("table.xlsx");
    assert!(text.contains("1234.5") && text.contains("Accounts"), "{text}");
}

#[test]
fn the_form_follows_from_the_bytes() {
    let head = |name: &str| form_of(&file(name)[..64], "image/png");
    assert_eq!(head("standard.pdf"), Some(Form::Pdf));
    assert_eq!(head("letter.docx"), Some(Form::Packed));
    assert_eq!(head("page.html"), Some(Form::Markup));
    assert_eq!(head("notes.txt"), Some(Form::Plain));
    assert_eq!(form_of(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "text/plain"), None);
    assert_eq!(form_of(b"{\\rtf1 }", "text/rtf"), None);
}
