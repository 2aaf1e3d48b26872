//! Where text goes, and what it may cost.

use std::time::Instant;

use crate::Bounds;

/// A bound was reached: whatever is read ends here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop;

pub(crate) type Step = Result<(), Stop>;

/// How many steps lie between two looks at the clock.
const STEPS: u32 = 4096;

/// Takes text until a bound is reached. White space is folded: one space, or one line end.
#[derive(Debug)]
pub(crate) struct Sink {
    text: String,
    most: usize,
    unpacked: usize,
    part: usize,
    ends: Instant,
    steps: u32,
    gap: Gap,
}

/// What stands between what was written and what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
}

impl Sink {
    pub(crate) fn new(bounds: &Bounds) -> Self {
        Self {
            text: String::new(),
            most: bounds.text,
            unpacked: bounds.unpacked,
            part: bounds.part,
            ends: Instant::now() + bounds.time,
            steps: 0,
            gap: Gap::None,
        }
    }

    /// Takes text as it stands in the file.
    pub(crate) fn push(&mut self, text: &str) -> Step {
        for (number, line) in text.split(['\n', '\r']).enumerate() {
            if number > 0 {
                self.line();
            }
            self.push_line(line)?;
        }
        Ok(())
    }

    fn push_line(&mut self, line: &str) -> Step {
        if line.starts_with(blank) {
            self.space();
        }
        let mut words = line.split(blank).filter(|word| !word.is_empty()).peekable();
        while let Some(word) = words.next() {
            self.tick()?;
            self.word(word)?;
            if words.peek().is_some() || line.ends_with(blank) {
                self.space();
            }
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> Step {
        if !self.text.is_empty() {
            match self.gap {
                Gap::None => {}
                Gap::Space => self.text.push(' '),
                Gap::Line => self.text.push('\n'),
            }
        }
        self.gap = Gap::None;
        for c in word.chars().filter(|c| !c.is_control() && *c != '\u{ad}' && *c != '\u{feff}') {
            if self.text.len() + c.len_utf8() > self.most {
                return Err(Stop);
            }
            self.text.push(c);
        }
        Ok(())
    }

    /// Lets the next word stand apart.
    pub(crate) fn space(&mut self) {
        self.gap = self.gap.max(Gap::Space);
    }

    /// Lets the next word begin a line.
    pub(crate) fn line(&mut self) {
        self.gap = Gap::Line;
    }

    /// Counts one step of work.
    pub(crate) fn tick(&mut self) -> Step {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS) { self.in_time() } else { Ok(()) }
    }

    /// Looks at the clock.
    pub(crate) fn in_time(&self) -> Step {
        if Instant::now() < self.ends { Ok(()) } else { Err(Stop) }
    }

    /// How many bytes the next part may unpack to.
    pub(crate) fn room(&self) -> usize {
        self.part.min(self.unpacked)
    }

    /// Counts bytes that were unpacked.
    pub(crate) fn unpacked(&mut self, bytes: usize) -> Step {
        self.unpacked = self.unpacked.saturating_sub(bytes);
        if self.unpacked == 0 { Err(Stop) } else { self.in_time() }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

fn blank(c: char) -> bool {
    c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(parts: &[&str]) -> String {
        let mut sink = Sink::new(&Bounds::default());
        parts.iter().for_each(|part| sink.push(part).unwrap());
        sink.into_text()
    }

    #[test]
    fn white_space_is_folded_and_words_stay_whole() {
        assert_eq!(taken(&["wo", "rd  next ", " last"]), "word next last");
        assert_eq!(taken(&["\n\n a\r\n\r\nb \n"]), "a\nb");
        assert_eq!(taken(&["soft\u{ad}ly\u{0}"]), "softly");
    }

    #[test]
    fn text_ends_at_its_bound() {
        let mut sink = Sink::new(&Bounds { text: 5, ..Bounds::default() });
        assert_eq!(sink.push("abcé def"), Err(Stop));
        assert_eq!(sink.into_text(), "abcé ");
    }
}
