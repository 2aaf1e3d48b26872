//! Forms with a file in them, read as they arrive: the file is handed on in pieces.

use yore_domain::{Error, Result};

/// Bytes of a part's head, and of a field that is not the file.
const SMALL: usize = 8 << 10;

/// What a form says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A field with its value.
    Field(String, String),
    /// The file begins; what its sender calls it.
    Begins(String),
    /// The next bytes of the file.
    File(Vec<u8>),
}

/// A form on its way in.
#[derive(Debug)]
pub struct Form {
    /// What stands between two parts.
    mark: Vec<u8>,
    waiting: Vec<u8>,
    state: State,
    /// The field that holds the file.
    file: &'static str,
}

#[derive(Debug)]
enum State {
    /// Before the first part.
    Before,
    /// In the head of a part.
    Head,
    /// In a field.
    Field(String),
    /// In the file.
    File,
    /// Behind the last part.
    After,
}

impl Form {
    /// Begins a form with a file in the named field, by what its content type says; nothing when
    /// it is none.
    #[must_use]
    pub fn of(content_type: &str, file: &'static str) -> Option<Self> {
        let (kind, rest) = content_type.split_once(';')?;
        if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
            return None;
        }
        let named = rest.split(';').find_map(|part| part.trim().strip_prefix("boundary="))?;
        let boundary = named.trim_matches('"');
        let mark = format!("\r\n--{boundary}").into_bytes();
        // The first mark has no line before it, so one is put there.
        (1..=70).contains(&boundary.len()).then(|| Self {
            mark,
            waiting: b"\r\n".to_vec(),
            state: State::Before,
            file,
        })
    }

    /// Takes the next bytes and returns what they complete.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<Piece>> {
        self.waiting.extend_from_slice(bytes);
        let mut pieces = Vec::new();
        while self.step(&mut pieces)? {}
        Ok(pieces)
    }

    /// Whether all of it came.
    pub fn ended(&self) -> bool {
        matches!(self.state, State::After)
    }

    /// Goes on by one part of a part, if enough of it is there.
    fn step(&mut self, pieces: &mut Vec<Piece>) -> Result<bool> {
        match &self.state {
            State::After => {
                self.waiting.clear();
                Ok(false)
            }
            State::Head => self.head(pieces),
            State::Before | State::Field(_) | State::File => self.content(pieces),
        }
    }

    fn head(&mut self, pieces: &mut Vec<Piece>) -> Result<bool> {
        if self.waiting.starts_with(b"--") {
            self.state = State::After;
            return Ok(true);
        }
        let Some(end) = position(&self.waiting, b"\r\n\r\n") else {
            return match self.waiting.len() > SMALL {
                true => Err(wrong("the head of a part is too long")),
                false => Ok(false),
            };
        };
        let head = String::from_utf8_lossy(&self.waiting[..end]).into_owned();
        self.waiting.drain(..end + 4);
        self.state = match said(&head, "name=") {
            Some(name) if name == self.file => {
                pieces.push(Piece::Begins(said(&head, "filename=").unwrap_or_default()));
                State::File
            }
            Some(name) => State::Field(name),
            None => return Err(wrong("a part has no name")),
        };
        Ok(true)
    }

    fn content(&mut self, pieces: &mut Vec<Piece>) -> Result<bool> {
        let found = position(&self.waiting, &self.mark);
        if let State::File = self.state {
            // The end of what is here may be the beginning of a mark.
            let sure = found.unwrap_or(self.waiting.len().saturating_sub(self.mark.len()));
            if sure > 0 {
                pieces.push(Piece::File(self.waiting.drain(..sure).collect()));
                return Ok(true);
            }
        } else if found.unwrap_or(self.waiting.len()) > SMALL {
            return Err(wrong("a field is too long"));
        }
        let Some(end) = found else { return Ok(false) };
        if let State::Field(name) = &self.state {
            let value = String::from_utf8_lossy(&self.waiting[..end]).into_owned();
            pieces.push(Piece::Field(name.clone(), value));
        }
        // Two bytes tell whether another part follows.
        if self.waiting.len() < end + self.mark.len() + 2 {
            if let State::Field(_) = self.state {
                pieces.pop();
            }
            return Ok(false);
        }
        self.waiting.drain(..end + self.mark.len());
        if self.waiting.starts_with(b"\r\n") {
            self.waiting.drain(..2);
        }
        self.state = State::Head;
        Ok(true)
    }
}

/// What the head of a part says after a word of its disposition.
fn said(head: &str, word: &str) -> Option<String> {
    head.lines().find_map(|line| {
        let (header, value) = line.split_once(':')?;
        let mut parts = header
            .trim()
            .eq_ignore_ascii_case("content-disposition")
            .then(|| value.split(';').map(str::trim))?;
        parts.find_map(|part| Some(part.strip_prefix(word)?.trim_matches('"').to_owned()))
    })
}

fn wrong(reason: &str) -> Error {
    Error::invalid("body", reason)
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &[u8] =
        b"preamble\r\n--xyz\r\nContent-Disposition: form-data; name=\"dry_run\"\r\n\
        \r\ntrue\r\n--xyz\r\ncontent-disposition: form-data; name=\"archive\"; filename=\"a\"\r\n\
        Content-Type: application/zip\r\n\r\nPK\r\n--xy not the end\r\n--xyz--\r\nepilogue";

    #[test]
    fn omp_119_a_form_is_read_the_same_however_it_is_cut() {
        for size in [1, 2, 3, 7, 50, FORM.len()] {
            let mut form = Form::of("multipart/form-data; boundary=\"xyz\"", "archive").unwrap();
            let (mut fields, mut file) = (Vec::new(), Vec::new());
            for bytes in FORM.chunks(size) {
                for piece in form.take(bytes).unwrap() {
                    match piece {
                        Piece::Field(name, value) => fields.push((name, value)),
                        Piece::Begins(name) => assert_eq!(name, "a"),
                        Piece::File(bytes) => file.extend(bytes),
                    }
                }
            }
            assert!(form.ended(), "{size}");
            assert_eq!(fields, [("dry_run".to_owned(), "true".to_owned())], "{size}");
            assert_eq!(file, b"PK\r\n--xy not the end", "{size}");
        }
    }

    #[test]
    fn forms_that_lie_are_refused_or_never_end() {
        assert!(Form::of("application/zip", "archive").is_none());
        assert!(Form::of("multipart/form-data; boundary=", "archive").is_none());
        let mut form = Form::of("multipart/form-data; boundary=x", "archive").unwrap();
        assert!(form.take(&vec![b'a'; SMALL * 2]).is_err());
        let mut form = Form::of("multipart/form-data; boundary=x", "archive").unwrap();
        form.take(b"--x\r\ncontent-disposition: form-data; name=\"archive\"\r\n\r\nPK").unwrap();
        assert!(!form.ended());
    }
}
