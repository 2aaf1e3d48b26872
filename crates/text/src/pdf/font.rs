//! Fonts, as far as they tell which characters codes stand for and how wide they are.

use std::collections::HashMap;

use super::file::File;
use super::object::{Lexer, Object};
use crate::plain::{utf16, windows_1252};
use crate::sink::{Sink, Stop};

/// Codes that a font maps.
const CODES: usize = 70_000;

/// What the codes of a string stand for.
#[derive(Debug, Default)]
pub(crate) struct Font {
    /// Whether codes have two bytes.
    wide: bool,
    /// Characters by code, where the file says.
    known: HashMap<u32, String>,
    /// Whether two bytes are a character of UTF-16.
    utf16: bool,
    widths: HashMap<u32, f64>,
    usual: f64,
}

impl Font {
    pub(crate) fn read(font: &Object, file: &File<'_>, sink: &mut Sink) -> Result<Self, Stop> {
        let mut read = Self { usual: 500.0, ..Self::default() };
        let encoding = file.resolved(font.get("Encoding"));
        if font.get("Subtype").is_name("Type0") {
            read.wide = true;
            read.usual = 1000.0;
            if let Object::Name(name) = &encoding {
                let name = String::from_utf8_lossy(name);
                read.utf16 = name.contains("UCS2") || name.contains("UTF16");
            }
            if let Object::Array(below) = file.resolved(font.get("DescendantFonts")) {
                let below = below.first().map_or(Object::Null, |one| file.resolved(one));
                read.usual = below.get("DW").number().unwrap_or(1000.0);
                read.composite_widths(&file.resolved(below.get("W")), file, sink)?;
            }
        } else {
            read.differences(&encoding, file);
            let first = font.get("FirstChar").count().and_then(|code| u32::try_from(code).ok());
            if let (Object::Array(widths), Some(first)) = (file.resolved(font.get("Widths")), first)
            {
                let widths = widths.iter().take(256).map(|one| file.resolved(one).number());
                let numbered = (first..).zip(widths);
                read.widths.extend(numbered.filter_map(|(code, width)| Some((code, width?))));
            }
        }
        let told = file.stream(font.get("ToUnicode"), sink)?;
        if !told.is_empty() {
            read.mapping(&told, sink)?;
        }
        Ok(read)
    }

    /// `code [w w …]` and `from to w`.
    fn composite_widths(
        &mut self,
        list: &Object,
        file: &File<'_>,
        sink: &mut Sink,
    ) -> Result<(), Stop> {
        let Object::Array(list) = list else { return Ok(()) };
        let code = |object: &Object| object.count().and_then(|code| u32::try_from(code).ok());
        let mut rest = list.as_slice();
        while let [first, second, more @ ..] = rest {
            sink.tick()?;
            let Some(from) = code(first) else { break };
            if let Object::Array(widths) = file.resolved(second) {
                let widths = widths.iter().filter_map(Object::number);
                self.widths.extend((from..).zip(widths).take(CODES));
                rest = more;
            } else {
                let [third, after @ ..] = more else { break };
                if let (Some(to), Some(width)) = (code(second), third.number()) {
                    let room = CODES.saturating_sub(self.widths.len());
                    self.widths.extend((from..=to).take(room).map(|code| (code, width)));
                }
                rest = after;
            }
            if self.widths.len() >= CODES {
                break;
            }
        }
        Ok(())
    }

    /// Codes whose glyphs the file names.
    fn differences(&mut self, encoding: &Object, file: &File<'_>) {
        let Object::Array(list) = file.resolved(encoding.get("Differences")) else { return };
        let mut code = 0u32;
        for one in list.iter().take(CODES) {
            if let Some(number) = one.count() {
                code = u32::try_from(number).unwrap_or(0);
            } else if let Object::Name(name) = one {
                if let Some(c) = glyph(name) {
                    self.known.insert(code, c.to_string());
                }
                code = code.saturating_add(1);
            }
        }
    }

    /// A map from codes to characters, as fonts carry it along.
    fn mapping(&mut self, map: &[u8], sink: &mut Sink) -> Result<(), Stop> {
        let mut lexer = Lexer::new(map, 0);
        let mut operands: Vec<Object> = Vec::new();
        while let Some(object) = lexer.next() {
            sink.tick()?;
            let Object::Word(word) = &object else {
                if operands.len() < 1024 {
                    operands.push(object);
                }
                continue;
            };
            match word.as_slice() {
                b"endcodespacerange" => {
                    // A composite font may have codes of one byte after all.
                    let long = operands.iter().any(|one| bytes(one).len() > 1);
                    self.wide &= long || operands.is_empty();
                }
                b"endbfchar" => {
                    for pair in operands.chunks_exact(2) {
                        self.learn(number(bytes(&pair[0])), utf16_be(bytes(&pair[1])));
                    }
                }
                b"endbfrange" => {
                    for three in operands.chunks_exact(3) {
                        self.learn_range(&three[0], &three[1], &three[2], sink)?;
                    }
                }
                _ => {}
            }
            operands.clear();
        }
        Ok(())
    }

    fn learn(&mut self, code: u32, text: String) {
        if self.known.len() < CODES && text.chars().count() <= 8 {
            self.known.insert(code, text);
        }
    }

    fn learn_range(
        &mut self,
        from: &Object,
        to: &Object,
        target: &Object,
        sink: &mut Sink,
    ) -> Result<(), Stop> {
        let (from, to) = (number(bytes(from)), number(bytes(to)));
        if let Object::Array(targets) = target {
            for (code, one) in (from..=to).zip(targets) {
                self.learn(code, utf16_be(bytes(one)));
            }
            return Ok(());
        }
        let text = utf16_be(bytes(target));
        let mut before: String = text.clone();
        let Some(last) = before.pop() else { return Ok(()) };
        for (step, code) in (0u32..).zip(from..=to).take(0x1_0000) {
            sink.tick()?;
            let Some(c) = (u32::from(last)).checked_add(step).and_then(char::from_u32) else {
                break;
            };
            self.learn(code, format!("{before}{c}"));
        }
        Ok(())
    }

    /// Reads a string: each code as text and its width in thousandths.
    pub(crate) fn decoded(&self, string: &[u8]) -> Vec<(String, f64)> {
        let size = if self.wide { 2 } else { 1 };
        string.chunks(size).map(|code| self.one(code)).collect()
    }

    fn one(&self, code: &[u8]) -> (String, f64) {
        let value = number(code);
        let width = self.widths.get(&value).copied().unwrap_or(self.usual);
        let text = match self.known.get(&value) {
            Some(text) => text.clone(),
            None if self.utf16 => utf16_be(code),
            // Numbers of glyphs in a font say nothing without a map.
            None if self.wide => String::new(),
            None => u8::try_from(value).map(windows_1252).unwrap_or(' ').to_string(),
        };
        (text, width)
    }
}

fn bytes(object: &Object) -> &[u8] {
    match object {
        Object::Text(bytes) => bytes,
        Object::Null
        | Object::Number(_)
        | Object::Name(_)
        | Object::Array(_)
        | Object::Dictionary(_)
        | Object::Reference(_)
        | Object::Word(_) => &[],
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn utf16_be(bytes: &[u8]) -> String {
    match bytes {
        [one] => char::from(*one).to_string(),
        _ => utf16(bytes, u16::from_be_bytes),
    }
}

/// The character of a glyph's name: a letter, `uni0041`, or one of the usual names.
fn glyph(name: &[u8]) -> Option<char> {
    let name = std::str::from_utf8(name).ok()?;
    let base = name.split_once('.').map_or(name, |(base, _)| base);
    let mut letters = base.chars();
    if let (Some(c), None) = (letters.next(), letters.next()) {
        return Some(c);
    }
    let hex = base.strip_prefix("uni").or_else(|| base.strip_prefix('u'));
    if let Some(hex) = hex
        && let Ok(code) = u32::from_str_radix(hex, 16)
    {
        return char::from_u32(code);
    }
    if let Some((_, c)) = GLYPHS.iter().find(|(known, _)| *known == base) {
        return Some(*c);
    }
    accented(base)
}

/// Letters with marks, as their names are put together: `adieresis`.
fn accented(name: &str) -> Option<char> {
    let mut letters = name.chars();
    let letter = letters.next()?;
    let mark = letters.as_str();
    let row = ACCENTED.iter().find(|(known, _, _)| *known == mark)?;
    let place = row.1.chars().position(|c| c == letter)?;
    row.2.chars().nth(place)
}

const ACCENTED: [(&str, &str, &str); 8] = [
    ("dieresis", "aeiouyAEIOU", "äëïöüÿÄËÏÖÜ"),
    ("acute", "aeiouyAEIOUncsz", "áéíóúýÁÉÍÓÚńćśź"),
    ("grave", "aeiouAEIOU", "àèìòùÀÈÌÒÙ"),
    ("circumflex", "aeiouAEIOU", "âêîôûÂÊÎÔÛ"),
    ("tilde", "anoANO", "ãñõÃÑÕ"),
    ("ring", "aAu", "åÅů"),
    ("cedilla", "cCsS", "çÇşŞ"),
    ("caron", "cszrenCSZR", "čšžřěňČŠŽŘ"),
];

const GLYPHS: [(&str, char); 63] = [
    ("space", ' '),
    ("exclam", '!'),
    ("quotedbl", '"'),
    ("numbersign", '#'),
    ("dollar", '$'),
    ("percent", '%'),
    ("ampersand", '&'),
    ("quotesingle", '\''),
    ("quoteright", '’'),
    ("quoteleft", '‘'),
    ("quotedblleft", '“'),
    ("quotedblright", '”'),
    ("parenleft", '('),
    ("parenright", ')'),
    ("asterisk", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("hyphen", '-'),
    ("minus", '-'),
    ("period", '.'),
    ("slash", '/'),
    ("zero", '0'),
    ("one", '1'),
    ("two", '2'),
    ("three", '3'),
    ("four", '4'),
    ("five", '5'),
    ("six", '6'),
    ("seven", '7'),
    ("eight", '8'),
    ("nine", '9'),
    ("colon", ':'),
    ("semicolon", ';'),
    ("less", '<'),
    ("equal", '='),
    ("greater", '>'),
    ("question", '?'),
    ("at", '@'),
    ("bracketleft", '['),
    ("backslash", '\\'),
    ("bracketright", ']'),
    ("underscore", '_'),
    ("braceleft", '{'),
    ("bar", '|'),
    ("braceright", '}'),
    ("asciitilde", '~'),
    ("endash", '–'),
    ("emdash", '—'),
    ("bullet", '•'),
    ("ellipsis", '…'),
    ("germandbls", 'ß'),
    ("ae", 'æ'),
    ("oe", 'œ'),
    ("oslash", 'ø'),
    ("AE", 'Æ'),
    ("Oslash", 'Ø'),
    ("fi", 'ﬁ'),
    ("fl", 'ﬂ'),
    ("ff", 'ﬀ'),
    ("ffi", 'ﬃ'),
    ("Euro", '€'),
    ("degree", '°'),
    ("section", '§'),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bounds;

    #[test]
    fn glyphs_are_known_by_name() {
        for (name, c) in [("A", 'A'), ("uni00E4", 'ä'), ("adieresis", 'ä'), ("fi", 'ﬁ')] {
            assert_eq!(glyph(name.as_bytes()), Some(c), "{name}");
        }
        assert_eq!(glyph(b"g17"), None);
    }

    #[test]
    fn a_map_gives_codes_their_characters() {
        let mut sink = Sink::new(&Bounds::default());
        let mut font = Font { wide: true, usual: 1000.0, ..Font::default() };
        let map = b"1 begincodespacerange <0000> <ffff> endcodespacerange
            1 beginbfchar <0003> <0048> endbfchar
            2 beginbfrange <0004> <0005> <0069> <0006> <0007> [<00660066> <D83DDE00>] endbfrange";
        font.mapping(map, &mut sink).unwrap();
        let text: String = font
            .decoded(b"\0\x03\0\x04\0\x05\0\x06\0\x07\0\x09")
            .into_iter()
            .map(|(t, _)| t)
            .collect();
        assert_eq!(text, "Hijff😀");
    }
}
