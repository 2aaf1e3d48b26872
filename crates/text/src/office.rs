//! Office documents: zips of XML. OOXML (docx, xlsx, pptx), OpenDocument (odt, ods, odp), EPUB.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use crate::html;
use crate::sink::{Sink, Step};
use crate::xml::{Event, Reader, attribute};

type Packed<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// Parts of one document that are read.
const PARTS: usize = 5_000;

/// How a part is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Text in `t`, paragraphs in `p`, cells in `c`.
    Open,
    /// All text of the body.
    Odf,
    /// A page.
    Page,
}

pub(crate) fn read(bytes: &[u8], sink: &mut Sink) -> Step {
    let Ok(mut packed) = ZipArchive::new(Cursor::new(bytes)) else { return Ok(()) };
    let mut parts: Vec<((u8, u32, String), Part)> = Vec::new();
    for name in packed.file_names().take(PARTS * 4) {
        sink.tick()?;
        let Ok(name) = name else { continue };
        if let Some((order, part)) = part_of(&name) {
            parts.push(((order, number_in(&name), name.into_owned()), part));
        }
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    for ((_, _, name), part) in parts.into_iter().take(PARTS) {
        let Some(content) = unpacked(&mut packed, &name, sink)? else { continue };
        let text = crate::plain::decoded(&content);
        sink.line();
        match part {
            Part::Open => open_xml(&text, sink)?,
            Part::Odf => open_document(&text, sink)?,
            Part::Page => html::read(&text, sink)?,
        }
    }
    Ok(())
}

/// What a part holds and where it stands in the document; nothing where it has no words.
fn part_of(name: &str) -> Option<(u8, Part)> {
    let within = |folder: &str| {
        name.strip_prefix(folder).is_some_and(|rest| !rest.contains('/') && rest.ends_with(".xml"))
    };
    Some(match name {
        "content.xml" => (0, Part::Odf),
        "word/document.xml" => (0, Part::Open),
        "word/footnotes.xml" | "word/endnotes.xml" | "word/comments.xml" => (1, Part::Open),
        "xl/workbook.xml" => (0, Part::Open),
        "xl/sharedStrings.xml" => (1, Part::Open),
        _ if name.starts_with("word/header") || name.starts_with("word/footer") => (2, Part::Open),
        _ if within("xl/worksheets/") => (2, Part::Open),
        _ if within("xl/comments") || name.starts_with("xl/comments") => (3, Part::Open),
        _ if within("ppt/slides/") => (0, Part::Open),
        _ if within("ppt/notesSlides/") => (1, Part::Open),
        _ if name.ends_with(".xhtml") || name.ends_with(".html") || name.ends_with(".htm") => {
            (5, Part::Page)
        }
        _ => return None,
    })
}

/// The number in a name, so that slide 10 follows slide 9.
fn number_in(name: &str) -> u32 {
    let digits: String = name.chars().filter(char::is_ascii_digit).take(9).collect();
    digits.parse().unwrap_or(0)
}

/// Unpacks a part as far as there is room; whatever its header claims, no more is read.
fn unpacked(
    packed: &mut Packed<'_>,
    name: &str,
    sink: &mut Sink,
) -> Result<Option<Vec<u8>>, crate::sink::Stop> {
    let Ok(file) = packed.by_name(name) else { return Ok(None) };
    let mut content = Vec::new();
    // A part that breaks off is read up to there.
    let read = file.take(sink.room() as u64).read_to_end(&mut content);
    drop(read);
    sink.unpacked(content.len().max(1))?;
    Ok(Some(content))
}

/// WordprocessingML, SpreadsheetML and PresentationML tell their words alike.
fn open_xml(part: &str, sink: &mut Sink) -> Step {
    let (mut in_text, mut in_value, mut shared) = (false, false, false);
    for event in Reader::new(part) {
        sink.tick()?;
        match event {
            Event::Open("t", _) => in_text = true,
            Event::Close("t") => in_text = false,
            // A number that points into the shared strings says nothing by itself.
            Event::Open("c", tag) => shared = attribute(tag, "t") == Some("s"),
            Event::Open("v", _) => in_value = !shared,
            Event::Close("v") => in_value = false,
            Event::Open("sheet", tag) => {
                sink.line();
                let name = tag.split_once("name=\"").and_then(|(_, name)| name.split_once('"'));
                html::words(name.map_or("", |(name, _)| name), sink)?;
            }
            Event::Close("p" | "si" | "row" | "comment") | Event::Open("br" | "cr", _) => {
                sink.line();
            }
            Event::Close("c" | "tc") | Event::Open("tab", _) => sink.space(),
            Event::Text(text) if in_text || in_value => html::words(text, sink)?,
            Event::Verbatim(text) if in_text || in_value => sink.push(text)?,
            Event::Open(..) | Event::Close(_) | Event::Text(_) | Event::Verbatim(_) => {}
        }
    }
    Ok(())
}

fn open_document(part: &str, sink: &mut Sink) -> Step {
    let mut in_body = false;
    for event in Reader::new(part) {
        sink.tick()?;
        match event {
            Event::Open("body", _) => in_body = true,
            Event::Close("body") => in_body = false,
            Event::Close("p" | "h" | "table-row" | "list-item") | Event::Open("line-break", _) => {
                sink.line();
            }
            Event::Open("s" | "tab" | "table-cell", _) => sink.space(),
            Event::Text(text) if in_body => html::words(text, sink)?,
            Event::Verbatim(text) if in_body => sink.push(text)?,
            Event::Open(..) | Event::Close(_) | Event::Text(_) | Event::Verbatim(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bounds;

    fn text(read: fn(&str, &mut Sink) -> Step, part: &str) -> String {
        let mut sink = Sink::new(&Bounds::default());
        read(part, &mut sink).unwrap();
        sink.into_text()
    }

    #[test]
    fn runs_of_a_word_join_and_paragraphs_part() {
        let part = "<w:p><w:r><w:t>Ham</w:t></w:r><w:r><w:t xml:space=\"preserve\">let &amp; </w:t>
            </w:r><w:del><w:delText>gone</w:delText></w:del></w:p><w:p><w:t>Ophelia</w:t></w:p>";
        assert_eq!(text(open_xml, part), "Hamlet &\nOphelia");
    }

    #[test]
    fn a_sheet_shows_values_and_no_pointers() {
        let part = "<row><c t=\"s\"><v>17</v></c><c><v>42.5</v></c><c t=\"inlineStr\"><is><t>in</t>
            </is></c><c><f>SUM(A1)</f><v>3</v></c></row>";
        assert_eq!(text(open_xml, part), "42.5 in 3");
    }

    #[test]
    fn the_body_of_an_open_document_is_its_text() {
        let part = "<office:styles>no</office:styles><office:body><text:h>Head</text:h>
            <text:p>a<text:s/>b<text:span>c</text:span></text:p></office:body>";
        assert_eq!(text(open_document, part), "Head\na bc");
    }
}
