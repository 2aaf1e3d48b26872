//! The objects of a file, wherever they lie.

use std::collections::HashMap;

use memchr::memmem;

use super::filter::undone;
use super::object::{Lexer, Object};
use crate::sink::{Sink, Stop};

/// Objects of one file.
const OBJECTS: usize = 500_000;
/// Filters one behind the other.
const FILTERS: usize = 8;
/// Bytes of one object, streams aside: it is read again wherever it is named.
const BYTES: usize = 1 << 20;
/// References that lead to references.
const HOPS: usize = 8;

/// Where an object lies.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In the file itself.
    Direct(usize),
    /// In an unpacked stream of objects.
    Packed(usize, usize),
}

/// A file and where its objects lie.
#[derive(Debug)]
pub(crate) struct File<'a> {
    bytes: &'a [u8],
    places: HashMap<u32, Place>,
    unpacked: Vec<Vec<u8>>,
    catalog: Option<u32>,
}

impl<'a> File<'a> {
    /// Looks through the bytes once.
    pub(crate) fn scanned(bytes: &'a [u8], sink: &mut Sink) -> Result<Self, Stop> {
        let mut file = Self { bytes, places: HashMap::new(), unpacked: Vec::new(), catalog: None };
        let finder = memmem::Finder::new(b"obj");
        let mut packed = Vec::new();
        let mut at = 0;
        while let Some(found) = finder.find(&bytes[at..]) {
            sink.tick()?;
            let word = at + found;
            at = word + 3;
            let Some(number) = number_before(bytes, word) else { continue };
            if file.places.len() >= OBJECTS {
                break;
            }
            file.places.insert(number, Place::Direct(at));
            let mut lexer = Lexer::new(bytes, at);
            let Some(object) = lexer.next() else { break };
            at = at.max(lexer.at.min(bytes.len()));
            if object.get("Type").is_name("Catalog") {
                file.catalog = Some(number);
            }
            let mut ahead = lexer.clone();
            if ahead.next().is_some_and(|next| next.is_word(b"stream")) {
                let (_, end) = extent(bytes, ahead.at, object.get("Length"));
                at = end.max(at);
                if object.get("Type").is_name("ObjStm") {
                    packed.push(number);
                }
            }
        }
        for number in packed {
            file.unpack(number, sink)?;
        }
        Ok(file)
    }

    /// Takes up the objects of a stream of objects. One that lies in the file itself stays.
    fn unpack(&mut self, number: u32, sink: &mut Sink) -> Result<(), Stop> {
        let stream = Object::Reference(number);
        let head = self.resolved(&stream);
        let content = self.stream(&stream, sink)?;
        let (Some(count), Some(first)) = (head.get("N").count(), head.get("First").count()) else {
            return Ok(());
        };
        let mut lexer = Lexer::new(&content, 0);
        let mut found = Vec::new();
        for _ in 0..count.min(OBJECTS) {
            sink.tick()?;
            let pair = (lexer.next(), lexer.next());
            let (Some(Object::Number(_)), Some(Object::Number(_))) = &pair else { break };
            let number = pair.0.as_ref().and_then(Object::count);
            let offset = pair.1.as_ref().and_then(Object::count);
            if let (Some(number), Some(offset)) = (number, offset)
                && let (Ok(number), Some(place)) =
                    (u32::try_from(number), first.checked_add(offset))
                && place < content.len()
            {
                found.push((number, place));
            }
        }
        let index = self.unpacked.len();
        self.unpacked.push(content);
        for (number, place) in found {
            if self.places.len() < OBJECTS {
                self.places.entry(number).or_insert(Place::Packed(index, place));
            }
            if self.catalog.is_none() {
                let object = self.resolved(&Object::Reference(number));
                self.catalog = object.get("Type").is_name("Catalog").then_some(number);
            }
        }
        Ok(())
    }

    /// The numbers of all objects, in order.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.places.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    pub(crate) fn catalog(&self) -> Option<Object> {
        self.catalog.map(|number| self.resolved(&Object::Reference(number)))
    }

    /// The object itself, wherever a reference leads.
    pub(crate) fn resolved(&self, object: &Object) -> Object {
        let mut object = object.clone();
        for _ in 0..HOPS {
            let Object::Reference(number) = object else { return object };
            let read = match self.places.get(&number) {
                Some(Place::Direct(at)) => read(self.bytes, *at),
                Some(Place::Packed(index, at)) => read(&self.unpacked[*index], *at),
                None => None,
            };
            object = read.unwrap_or(Object::Null);
        }
        Object::Null
    }

    /// The unpacked bytes of a stream; none when it is not one, or packed in an unknown way.
    pub(crate) fn stream(&self, object: &Object, sink: &mut Sink) -> Result<Vec<u8>, Stop> {
        let Object::Reference(number) = object else { return Ok(Vec::new()) };
        let Some(Place::Direct(at)) = self.places.get(number) else { return Ok(Vec::new()) };
        let mut lexer = Lexer::new(self.bytes, *at);
        let head = lexer.next().unwrap_or(Object::Null);
        if !lexer.next().is_some_and(|next| next.is_word(b"stream")) {
            return Ok(Vec::new());
        }
        let length = self.resolved(head.get("Length"));
        let (from, to) = extent(self.bytes, lexer.at, &length);
        let filters = listed(self.resolved(head.get("Filter")));
        let parameters = listed(self.resolved(head.get("DecodeParms")));
        let mut content = self.bytes[from..to].to_vec();
        sink.unpacked(content.len().max(1))?;
        for (place, filter) in filters.iter().take(FILTERS).enumerate() {
            let Object::Name(name) = self.resolved(filter) else { return Ok(Vec::new()) };
            let parameters = parameters.get(place).map_or(Object::Null, |one| self.resolved(one));
            let Some(plain) = undone(&name, &parameters, &content, sink.room()) else {
                return Ok(Vec::new());
            };
            sink.unpacked(plain.len().max(1))?;
            content = plain;
        }
        Ok(content)
    }
}

fn read(bytes: &[u8], at: usize) -> Option<Object> {
    let end = at.saturating_add(BYTES).min(bytes.len());
    Lexer::new(bytes.get(..end)?, at).next()
}

/// One filter may stand where a list of them may.
fn listed(object: Object) -> Vec<Object> {
    match object {
        Object::Array(members) => members,
        Object::Null => Vec::new(),
        one @ (Object::Number(_)
        | Object::Text(_)
        | Object::Name(_)
        | Object::Dictionary(_)
        | Object::Reference(_)
        | Object::Word(_)) => vec![one],
    }
}

/// Where the content of a stream begins and ends, behind its keyword.
fn extent(bytes: &[u8], after: usize, length: &Object) -> (usize, usize) {
    let from = match bytes.get(after..) {
        Some([b'\r', b'\n', ..]) => after + 2,
        Some([b'\n' | b'\r', ..]) => after + 1,
        Some(_) | None => after,
    }
    .min(bytes.len());
    if let Some(length) = length.count()
        && let Some(end) = from.checked_add(length)
        && let Some(tail) = bytes.get(end..)
        && memmem::find(&tail[..tail.len().min(32)], b"endstream").is_some()
    {
        return (from, end);
    }
    let end = memmem::find(&bytes[from..], b"endstream").map_or(bytes.len(), |found| from + found);
    (from, end)
}

/// The number of the object that this keyword begins: `12 0 obj`.
fn number_before(bytes: &[u8], word: usize) -> Option<u32> {
    let before = &bytes[word.saturating_sub(24)..word];
    let text =
        before.rsplit(|byte| !byte.is_ascii_digit() && !byte.is_ascii_whitespace()).next()?;
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text.split_ascii_whitespace().rev();
    let (generation, number) = (words.next()?, words.next()?);
    (generation.len() <= 5).then(|| number.parse().ok()).flatten()
}
