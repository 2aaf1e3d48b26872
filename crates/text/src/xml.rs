//! A reader of XML that only ever goes forward: tags and text, no entity of a file's own.

use memchr::memchr;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// An element begins; its name without the prefix, and what stands behind it in the tag.
    Open(&'a str, &'a str),
    /// An element ends.
    Close(&'a str),
    /// Text whose entities are not yet resolved.
    Text(&'a str),
    /// Text as it is.
    Verbatim(&'a str),
}

/// A document being read. What is not well-formed is read as far as it makes sense.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a str,
    /// The name of an element that ended where it began.
    empty: Option<&'a str>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(document: &'a str) -> Self {
        Self { rest: document, empty: None }
    }

    fn until(&mut self, end: &str) -> &'a str {
        let (inside, rest) = self.rest.split_once(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        inside
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        if let Some(name) = self.empty.take() {
            return Some(Event::Close(name));
        }
        loop {
            if self.rest.is_empty() {
                return None;
            }
            if !self.rest.starts_with('<') {
                let end = memchr(b'<', self.rest.as_bytes()).unwrap_or(self.rest.len());
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                return Some(Event::Text(text));
            }
            if let Some(rest) = self.rest.strip_prefix("<![CDATA[") {
                self.rest = rest;
                return Some(Event::Verbatim(self.until("]]>")));
            }
            if self.rest.starts_with("<!--") {
                self.until("-->");
                continue;
            }
            self.rest = &self.rest[1..];
            let tag = self.until(">");
            if tag.starts_with(['?', '!']) {
                continue;
            }
            if let Some(name) = tag.strip_prefix('/') {
                return Some(Event::Close(local(name.trim())));
            }
            let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
            let end = tag.find(|c: char| c.is_ascii_whitespace()).unwrap_or(tag.len());
            let name = local(&tag[..end]);
            self.empty = empty.then_some(name);
            return Some(Event::Open(name, &tag[end..]));
        }
    }
}

fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// The value of an attribute, as it stands.
pub(crate) fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    tag.split_ascii_whitespace().find_map(|part| {
        let (key, value) = part.split_once('=')?;
        (key == name).then(|| value.trim_matches(['"', '\'']))
    })
}

/// Resolves an entity that stands behind `&`: its character, and its length with the semicolon.
pub(crate) fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.as_bytes().iter().take(12).position(|byte| *byte == b';')?;
    let name = &text[..end];
    let c = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
        None => NAMED.iter().find(|(known, _)| *known == name)?.1,
    };
    Some((c, end + 1))
}

const NAMED: [(&str, char); 58] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("auml", 'ä'),
    ("ouml", 'ö'),
    ("uuml", 'ü'),
    ("Auml", 'Ä'),
    ("Ouml", 'Ö'),
    ("Uuml", 'Ü'),
    ("szlig", 'ß'),
    ("eacute", 'é'),
    ("egrave", 'è'),
    ("ecirc", 'ê'),
    ("euml", 'ë'),
    ("Eacute", 'É'),
    ("aacute", 'á'),
    ("agrave", 'à'),
    ("acirc", 'â'),
    ("aring", 'å'),
    ("Aring", 'Å'),
    ("atilde", 'ã'),
    ("aelig", 'æ'),
    ("AElig", 'Æ'),
    ("iacute", 'í'),
    ("igrave", 'ì'),
    ("icirc", 'î'),
    ("iuml", 'ï'),
    ("oacute", 'ó'),
    ("ograve", 'ò'),
    ("ocirc", 'ô'),
    ("otilde", 'õ'),
    ("oslash", 'ø'),
    ("Oslash", 'Ø'),
    ("uacute", 'ú'),
    ("ugrave", 'ù'),
    ("ucirc", 'û'),
    ("ntilde", 'ñ'),
    ("Ntilde", 'Ñ'),
    ("ccedil", 'ç'),
    ("Ccedil", 'Ç'),
    ("hellip", '…'),
    ("ndash", '–'),
    ("mdash", '—'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("laquo", '«'),
    ("raquo", '»'),
    ("bull", '•'),
    ("middot", '·'),
    ("euro", '€'),
    ("pound", '£'),
    ("copy", '©'),
    ("deg", '°'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_follow_the_document() {
        let document = "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'b'>]><w:p a=\"1\" b='2'>t
            <w:br/><![CDATA[<&]]><!-- c --></w:p>";
        let events: Vec<Event<'_>> = Reader::new(document)
            .filter(|event| !matches!(event, Event::Text(text) if text.trim().is_empty()))
            .collect();
        // The declaration of an entity ends at its first bracket; its remains are plain text.
        assert!(events.contains(&Event::Open("p", " a=\"1\" b='2'")));
        assert!(events.contains(&Event::Open("br", "")) && events.contains(&Event::Close("br")));
        assert!(events.contains(&Event::Verbatim("<&")));
        assert_eq!(events.last(), Some(&Event::Close("p")));
        assert_eq!(attribute(" a=\"1\" b='2'", "b"), Some("2"));
        assert_eq!(attribute(" a=\"1\"", "c"), None);
    }

    #[test]
    fn entities_are_single_characters() {
        assert_eq!(entity("amp; x"), Some(('&', 4)));
        assert_eq!(entity("#x1F600;"), Some(('😀', 8)));
        assert_eq!(entity("#xD800;"), None);
        assert_eq!(entity("lol9;"), None);
        assert_eq!(entity("üüüüüüüüüüü"), None);
    }
}
