//! Splits a large JSON document into the parts that are read one at a time.
//!
//! A document that is an array falls into its elements. One that is an object falls into its
//! members, and those that are arrays into their elements. Nothing is parsed here: the scanner
//! counts brackets outside strings, so it needs no memory but the part at hand, whatever the
//! nesting.

use std::io::{self, Read};

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The member it belongs to, when the document is an object.
    pub key: Option<String>,
    /// Its place among the parts of that member, counted from 0.
    pub index: usize,
    /// Its text, or how it broke off.
    pub text: Result<Vec<u8>, Broken>,
}

/// Why a part has no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It is larger than the limit; the parts after it can be read.
    TooLarge,
    /// The document ends inside it.
    CutOff,
}

/// The parts of a document, in order.
#[derive(Debug)]
pub struct Pieces<R> {
    input: Input<R>,
    most: usize,
    place: Place,
    key: Option<String>,
    index: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    /// Between the members of the outer object.
    Members,
    /// Between the elements of an array; `true` when it is a member's.
    Elements(bool),
    End,
}

impl<R: Read> Pieces<R> {
    /// Begins with a document whose parts may have `most` bytes each.
    pub fn new(reader: R, most: usize) -> Self {
        let input = Input { reader, buffer: vec![0; 64 << 10], from: 0, to: 0 };
        Self { input, most, place: Place::Start, key: None, index: 0 }
    }

    /// Returns the next part.
    pub fn take(&mut self) -> io::Result<Option<Piece>> {
        loop {
            match self.place {
                Place::Start => self.start()?,
                Place::End => return Ok(None),
                Place::Members => {
                    if let Some(piece) = self.member()? {
                        return Ok(Some(piece));
                    }
                }
                Place::Elements(inner) => match self.input.solid()? {
                    None => {
                        self.place = Place::End;
                        return Ok(None);
                    }
                    Some(b',') => self.input.from += 1,
                    Some(b']') => {
                        self.input.from += 1;
                        self.place = if inner { Place::Members } else { Place::End };
                    }
                    Some(_) => return self.value().map(Some),
                },
            }
        }
    }

    fn start(&mut self) -> io::Result<()> {
        self.place = match self.input.solid()? {
            None => Place::End,
            Some(b'[') => {
                self.input.from += 1;
                Place::Elements(false)
            }
            Some(b'{') => {
                self.input.from += 1;
                Place::Members
            }
            // A scalar, or something else: one part.
            Some(_) => Place::Elements(false),
        };
        Ok(())
    }

    fn member(&mut self) -> io::Result<Option<Piece>> {
        match self.input.solid()? {
            Some(b',' | b':') => {
                self.input.from += 1;
                Ok(None)
            }
            Some(b'"') => {
                let Ok(name) = self.input.value(self.most.min(1 << 20))? else {
                    self.place = Place::End;
                    return Ok(None);
                };
                self.key = Some(serde_json::from_slice(&name).unwrap_or_default());
                self.index = 0;
                if self.input.solid()? == Some(b':') {
                    self.input.from += 1;
                }
                if self.input.solid()? == Some(b'[') {
                    self.input.from += 1;
                    self.place = Place::Elements(true);
                    return Ok(None);
                }
                self.value().map(Some)
            }
            // The end of the object, or what no object holds: nothing after it can be trusted.
            Some(_) | None => {
                self.place = Place::End;
                Ok(None)
            }
        }
    }

    fn value(&mut self) -> io::Result<Piece> {
        let text = self.input.value(self.most)?;
        if text == Err(Broken::CutOff) {
            self.place = Place::End;
        }
        let piece = Piece { key: self.key.clone(), index: self.index, text };
        self.index += 1;
        Ok(piece)
    }
}

#[derive(Debug)]
struct Input<R> {
    reader: R,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
}

impl<R: Read> Input<R> {
    /// Returns the next byte without taking it.
    fn peek(&mut self) -> io::Result<Option<u8>> {
        while self.from == self.to {
            self.from = 0;
            self.to = match self.reader.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if self.to == 0 {
                return Ok(None);
            }
        }
        Ok(Some(self.buffer[self.from]))
    }

    /// Passes over spaces and a byte order mark, and returns the next byte without taking it.
    fn solid(&mut self) -> io::Result<Option<u8>> {
        while let Some(byte) = self.peek()? {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0xef | 0xbb | 0xbf) {
                return Ok(Some(byte));
            }
            self.from += 1;
        }
        Ok(None)
    }

    /// Takes one value: up to the comma or the bracket that follows it.
    fn value(&mut self, most: usize) -> io::Result<Result<Vec<u8>, Broken>> {
        let (mut text, mut over) = (Vec::new(), false);
        let (mut depth, mut quoted, mut escaped) = (0_u64, false, false);
        loop {
            if self.peek()?.is_none() {
                // A bare scalar at the end of the document is whole.
                let whole = depth == 0 && !quoted && !text.is_empty();
                return Ok(if whole && !over { Ok(text) } else { Err(Broken::CutOff) });
            }
            let chunk = &self.buffer[self.from..self.to];
            let (mut taken, mut done) = (0, false);
            while taken < chunk.len() {
                let byte = chunk[taken];
                if quoted {
                    if escaped {
                        escaped = false;
                    } else if byte == b'\\' {
                        escaped = true;
                    } else if byte == b'"' {
                        quoted = false;
                    } else {
                        let rest = &chunk[taken..];
                        taken += memchr::memchr2(b'\\', b'"', rest).unwrap_or(rest.len());
                        continue;
                    }
                    taken += 1;
                    if !quoted && depth == 0 {
                        done = true;
                        break;
                    }
                    continue;
                }
                match byte {
                    b'"' => quoted = true,
                    b'[' | b'{' => depth += 1,
                    b',' if depth == 0 => {
                        done = true;
                        break;
                    }
                    b']' | b'}' => {
                        if depth == 0 {
                            done = true;
                            break;
                        }
                        depth -= 1;
                        if depth == 0 {
                            taken += 1;
                            done = true;
                            break;
                        }
                    }
                    _ => {}
                }
                taken += 1;
            }
            if text.len() + taken > most {
                over = true;
                text = Vec::new();
            }
            if !over {
                text.extend_from_slice(&chunk[..taken]);
            }
            self.from += taken;
            if done {
                // A bracket that closes nothing would be looked at for ever.
                if taken == 0 && text.is_empty() && !over {
                    self.from += 1;
                }
                return Ok(if over { Err(Broken::TooLarge) } else { Ok(text) });
            }
        }
    }
}

#[cfg(test)]
mod tests;
