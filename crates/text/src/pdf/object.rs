//! The objects of a PDF and how they are written.

/// How deep objects may lie within each other.
const DEPTH: usize = 32;
/// How many members of one array or dictionary are kept.
const MEMBERS: usize = 100_000;

/// A value, or a word that is none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Object {
    Null,
    Number(f64),
    Text(Vec<u8>),
    Name(Vec<u8>),
    Array(Vec<Object>),
    Dictionary(Vec<(Vec<u8>, Object)>),
    Reference(u32),
    /// A keyword or an operator.
    Word(Vec<u8>),
}

const NOTHING: &Object = &Object::Null;

impl Object {
    /// A member of a dictionary.
    pub(crate) fn get(&self, name: &str) -> &Object {
        let Self::Dictionary(members) = self else { return NOTHING };
        let found = members.iter().find(|(key, _)| key == name.as_bytes());
        found.map_or(NOTHING, |(_, value)| value)
    }

    pub(crate) fn is_name(&self, name: &str) -> bool {
        matches!(self, Self::Name(own) if own == name.as_bytes())
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Null
            | Self::Text(_)
            | Self::Name(_)
            | Self::Array(_)
            | Self::Dictionary(_)
            | Self::Reference(_)
            | Self::Word(_) => None,
        }
    }

    /// A number that counts something.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    pub(crate) fn count(&self) -> Option<usize> {
        self.number().filter(|number| *number >= 0.0).map(|number| number as usize)
    }

    pub(crate) fn is_word(&self, word: &[u8]) -> bool {
        matches!(self, Self::Word(own) if own == word)
    }
}

/// Reads objects one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(crate) fn skip_blank(&mut self) {
        while let Some(byte) = self.peek() {
            if byte == b'%' {
                let rest = &self.bytes[self.at..];
                self.at += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
            } else if is_blank(byte) {
                self.at += 1;
            } else {
                break;
            }
        }
    }

    /// The next object; nothing at the end. What cannot be read is a word of one byte.
    pub(crate) fn next(&mut self) -> Option<Object> {
        self.object(DEPTH)
    }

    fn object(&mut self, depth: usize) -> Option<Object> {
        self.skip_blank();
        let byte = self.peek()?;
        Some(match byte {
            b'(' => Object::Text(self.literal()),
            b'<' if self.bytes.get(self.at + 1) == Some(&b'<') => {
                self.at += 2;
                self.dictionary(depth)
            }
            b'<' => Object::Text(self.hexadecimal()),
            b'[' => {
                self.at += 1;
                self.array(depth)
            }
            b'/' => {
                self.at += 1;
                Object::Name(self.name())
            }
            b'+' | b'-' | b'.' | b'0'..=b'9' => self.number_or_reference(),
            b'>' if self.bytes.get(self.at + 1) == Some(&b'>') => {
                self.at += 2;
                Object::Word(b">>".to_vec())
            }
            b')' | b'>' | b']' | b'{' | b'}' => {
                self.at += 1;
                Object::Word(vec![byte])
            }
            _ => {
                let word = self.regular();
                if word == b"null" { Object::Null } else { Object::Word(word.to_vec()) }
            }
        })
    }

    fn regular(&mut self) -> &'a [u8] {
        let from = self.at;
        while self.peek().is_some_and(|byte| !is_blank(byte) && !is_delimiter(byte)) {
            self.at += 1;
        }
        &self.bytes[from..self.at]
    }

    fn name(&mut self) -> Vec<u8> {
        let raw = self.regular();
        let mut name = Vec::with_capacity(raw.len());
        let mut rest = raw;
        while let [first, more @ ..] = rest {
            rest = more;
            match (first, more) {
                (b'#', [high, low, after @ ..]) => match (nibble(*high), nibble(*low)) {
                    (Some(high), Some(low)) => {
                        name.push(high << 4 | low);
                        rest = after;
                    }
                    (None, _) | (_, None) => name.push(b'#'),
                },
                (byte, _) => name.push(*byte),
            }
        }
        name
    }

    fn plain_number(&mut self) -> Option<f64> {
        let word = std::str::from_utf8(self.regular()).ok()?;
        word.parse::<f64>().ok().filter(|number| number.is_finite())
    }

    fn number_or_reference(&mut self) -> Object {
        let from = self.at;
        let Some(number) = self.plain_number() else {
            return Object::Word(self.bytes[from..self.at.max(from + 1)].to_vec());
        };
        let whole = self.bytes[from..self.at].iter().all(u8::is_ascii_digit);
        if whole && let Some(number) = Object::Number(number).count() {
            let mut ahead = self.clone();
            ahead.skip_blank();
            let begin = ahead.at;
            let generation = ahead.regular();
            if begin != ahead.at
                && generation.len() < 6
                && generation.iter().all(u8::is_ascii_digit)
            {
                ahead.skip_blank();
                if ahead.regular() == b"R"
                    && let Ok(number) = u32::try_from(number)
                {
                    self.at = ahead.at;
                    return Object::Reference(number);
                }
            }
        }
        Object::Number(number)
    }

    fn array(&mut self, depth: usize) -> Object {
        let mut members = Vec::new();
        let Some(depth) = depth.checked_sub(1) else { return Object::Null };
        while let Some(object) = self.object(depth) {
            if object.is_word(b"]") || object.is_word(b"endobj") {
                break;
            }
            if members.len() < MEMBERS {
                members.push(object);
            }
        }
        Object::Array(members)
    }

    fn dictionary(&mut self, depth: usize) -> Object {
        let mut members = Vec::new();
        let Some(depth) = depth.checked_sub(1) else { return Object::Null };
        while let Some(key) = self.object(depth) {
            match key {
                Object::Name(name) => {
                    let Some(value) = self.object(depth) else { break };
                    if value.is_word(b">>") {
                        break;
                    }
                    if members.len() < MEMBERS {
                        members.push((name, value));
                    }
                }
                Object::Word(word) if word == b">>" || word == b"endobj" => break,
                Object::Null
                | Object::Number(_)
                | Object::Text(_)
                | Object::Array(_)
                | Object::Dictionary(_)
                | Object::Reference(_)
                | Object::Word(_) => {}
            }
        }
        Object::Dictionary(members)
    }

    fn literal(&mut self) -> Vec<u8> {
        self.at += 1;
        let (mut text, mut open) = (Vec::new(), 1usize);
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => open += 1,
                b')' => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                b'\\' => {
                    self.escape(&mut text);
                    continue;
                }
                _ => {}
            }
            text.push(byte);
        }
        text
    }

    fn escape(&mut self, text: &mut Vec<u8>) {
        let Some(byte) = self.peek() else { return };
        self.at += 1;
        match byte {
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'b' | b'f' => text.push(b' '),
            b'\r' => {
                if self.peek() == Some(b'\n') {
                    self.at += 1;
                }
            }
            b'\n' => {}
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.peek() else { break };
                    code = code << 3 | u32::from(digit - b'0');
                    self.at += 1;
                }
                text.push(code.to_le_bytes()[0]);
            }
            other => text.push(other),
        }
    }

    fn hexadecimal(&mut self) -> Vec<u8> {
        self.at += 1;
        let rest = &self.bytes[self.at..];
        let end = memchr::memchr(b'>', rest).unwrap_or(rest.len());
        self.at += end + 1;
        self.at = self.at.min(self.bytes.len());
        unhexed(&rest[..end])
    }
}

/// The bytes that pairs of digits write; a last one alone counts as if a zero followed.
pub(crate) fn unhexed(digits: &[u8]) -> Vec<u8> {
    let nibbles: Vec<u8> = digits.iter().filter_map(|digit| nibble(*digit)).collect();
    nibbles.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect()
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

pub(crate) const fn is_blank(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

const fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Object {
        Lexer::new(text.as_bytes(), 0).next().unwrap()
    }

    #[test]
    fn values_are_read_as_they_are_written() {
        assert_eq!(one(" -1.5 "), Object::Number(-1.5));
        assert_eq!(one("12 0 R"), Object::Reference(12));
        assert_eq!(one("(a\\(b\\)\\101(c)\\\nd)"), Object::Text(b"a(b)A(c)d".to_vec()));
        assert_eq!(one("<48 6>"), Object::Text(b"H\x60".to_vec()));
        assert_eq!(one("/A#42c"), Object::Name(b"ABc".to_vec()));
        let dictionary = one("<< /A [1 2 0 R] % no\n /B << /C null >> >>");
        assert_eq!(
            dictionary.get("A"),
            &Object::Array(vec![Object::Number(1.0), Object::Reference(2)])
        );
        assert_eq!(dictionary.get("B").get("C"), &Object::Null);
    }

    #[test]
    fn what_never_closes_ends_with_the_bytes() {
        for text in ["(", "<", "<<", "[", "/", "<< /A", "[[[[", "((((", "+", "1 ", "\\", "<<>"] {
            let mut lexer = Lexer::new(text.as_bytes(), 0);
            for _ in 0..10 {
                lexer.next();
            }
        }
        let deep = "[".repeat(1_000_000);
        let mut lexer = Lexer::new(deep.as_bytes(), 0);
        assert!(lexer.next().is_some());
    }
}
