//! What a command says: aligned and coloured for people, JSON for programs.
//!
//! Everything for people goes through `anstream`, which drops colour when `NO_COLOR` is set or
//! nobody looks. Text that comes from memories is cleaned of control characters first, so that
//! nothing an agent stored can move the cursor or rename the window.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;
use yore_domain::Timestamp;

use crate::failure::{Failure, Result};
use crate::when;

/// Headings.
pub(crate) const HEAD: Style = Style::new().bold();
/// What matters less.
pub(crate) const DIM: Style = Style::new().dimmed();
/// Ids.
pub(crate) const ID: Style = AnsiColor::Cyan.on_default();
/// All is well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Look at this.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// This is wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// Where a command's answer goes, and in what form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Whether programs read it.
    pub(crate) json: bool,
    /// Whether side remarks are left out.
    pub(crate) quiet: bool,
    /// How wide the terminal is.
    pub(crate) width: usize,
    /// What time it is, for relative times.
    pub(crate) now: Timestamp,
}

impl Output {
    /// Writes one line for people.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> Result {
        let mut out = anstream::stdout().lock();
        writeln!(out, "{}", text.as_ref()).and_then(|()| out.flush()).map_err(unwritten)
    }

    /// Writes one JSON document, indented.
    pub(crate) fn document(&self, value: &impl Serialize) -> Result {
        let text =
            serde_json::to_string_pretty(value).map_err(|e| Failure::failed(e.to_string()))?;
        raw(&text)
    }

    /// Writes one JSON value on one line.
    pub(crate) fn row(&self, value: &impl Serialize) -> Result {
        let text = serde_json::to_string(value).map_err(|e| Failure::failed(e.to_string()))?;
        raw(&text)
    }

    /// Writes a document for programs, or lets people have theirs.
    pub(crate) fn either<T: Serialize>(
        &self,
        value: &T,
        people: impl FnOnce(&T) -> Result,
    ) -> Result {
        if self.json { self.document(value) } else { people(value) }
    }

    /// A remark beside the answer, on standard error and for people only.
    pub(crate) fn remark(&self, text: impl AsRef<str>) {
        if !self.json && !self.quiet {
            anstream::eprintln!("{DIM}{}{DIM:#}", text.as_ref());
        }
    }

    /// Says when something was, as seen from now.
    #[must_use]
    pub(crate) fn ago(&self, time: Timestamp) -> String {
        when::relative(time, self.now)
    }

    /// Wraps text to the terminal, each line indented.
    #[must_use]
    pub(crate) fn wrapped(&self, text: &str, indent: usize) -> String {
        let pad = " ".repeat(indent);
        let options = textwrap::Options::new(self.width.max(indent + 20))
            .initial_indent(&pad)
            .subsequent_indent(&pad);
        textwrap::fill(&clean(text), options)
    }

    /// Writes rows in columns.
    pub(crate) fn table(&self, table: &Table) -> Result {
        table.lines(self.width).iter().try_for_each(|line| self.line(line))
    }
}

/// Writes bytes exactly, for tokens and frames that other programs read.
pub(crate) fn raw(text: &str) -> Result {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(unwritten)
}

/// Writes text without an end of line of its own.
pub(crate) fn plain(text: &str) -> Result {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(unwritten)
}

fn unwritten(error: std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        Failure::reader_gone()
    } else {
        Failure::failed(format!("standard output: {error}"))
    }
}

/// Replaces what would command a terminal or turn the reading direction.
#[must_use]
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Rows in aligned columns; the last column takes what is left and wraps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<(String, Style)>>,
}

impl Table {
    /// A table with these headings.
    #[must_use]
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row. Cells are cleaned here, whatever they come from.
    pub(crate) fn push<const N: usize>(&mut self, cells: [(String, Style); N]) {
        self.rows.push(cells.into_iter().map(|(text, style)| (clean(&text), style)).collect());
    }

    fn lines(&self, width: usize) -> Vec<String> {
        let last = self.head.len().saturating_sub(1);
        let mut columns: Vec<usize> = self.head.iter().map(|head| head.width()).collect();
        for row in &self.rows {
            for (column, (text, _)) in columns.iter_mut().zip(row) {
                *column = (*column).max(text.width());
            }
        }
        let before: usize = columns.iter().take(last).map(|column| column + 2).sum();
        let room = width.saturating_sub(before).max(20);
        let mut head = String::new();
        for (index, (name, column)) in self.head.iter().zip(&columns).enumerate() {
            let pad = if index == last { 0 } else { column + 2 - name.width() };
            head.push_str(&format!("{HEAD}{name}{HEAD:#}{}", " ".repeat(pad)));
        }
        let mut lines = vec![head];
        for row in &self.rows {
            let mut line = String::new();
            for (index, (text, style)) in row.iter().enumerate() {
                if index < last {
                    let pad = " ".repeat(columns[index] + 2 - text.width());
                    line.push_str(&format!("{style}{text}{style:#}{pad}"));
                    continue;
                }
                let mut pieces = textwrap::wrap(text, room).into_iter();
                let first = pieces.next().unwrap_or_default();
                lines.push(format!("{line}{style}{first}{style:#}").trim_end().to_owned());
                for piece in pieces {
                    lines.push(format!("{}{style}{piece}{style:#}", " ".repeat(before)));
                }
            }
        }
        lines
    }
}

/// A cell without a style.
#[must_use]
pub(crate) fn cell(text: impl Into<String>) -> (String, Style) {
    (text.into(), Style::new())
}

/// A cell with one.
#[must_use]
pub(crate) fn styled(text: impl Into<String>, style: Style) -> (String, Style) {
    (text.into(), style)
}

/// Says a number of bytes with a unit.
#[must_use]
pub(crate) fn bytes(count: u64) -> String {
    indicatif::HumanBytes(count).to_string()
}

/// Says how many of something there are.
#[must_use]
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The first group of an id, enough to name it again.
#[must_use]
pub(crate) fn short(id: impl ToString) -> String {
    id.to_string().chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_text_cannot_command_the_terminal() {
        assert_eq!(
            clean("a\u{1b}[2Jb\u{7}\u{202e}c\nd\te"),
            "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\nd\te"
        );
    }

    #[test]
    fn columns_line_up_and_the_last_one_wraps() {
        let mut table = Table::new(&["ID", "TEXT"]);
        table.push([cell("a"), cell("one two three four five six seven")]);
        table.push([cell("bcd"), cell("日本")]);
        let lines: Vec<String> = table
            .lines(25)
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string())
            .collect();
        assert_eq!(
            lines,
            ["ID   TEXT", "a    one two three four", "     five six seven", "bcd  日本"]
        );
    }
}
