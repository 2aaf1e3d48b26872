//! The three tables of Microsoft's privacy dashboard. They hold no ids.

use serde_json::{Value, json};
use yore_domain::conversation::Role;
use yore_domain::{Span, Timestamp};

use crate::connector::Sink;
use crate::source::{File, Source};
use crate::thread::{Said, Thread};
use crate::{Error, Result, time};

const PLATFORM: &str = "copilot";

/// The columns of a table: title, time, author, text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    names: &'static str,
    title: usize,
    time: usize,
    author: Option<usize>,
    text: usize,
}

const TABLES: [Columns; 3] = [
    Columns {
        names: "Conversation,Time,Author,Message",
        title: 0,
        time: 1,
        author: Some(2),
        text: 3,
    },
    Columns {
        names: "CreatedAt,MessageContent,Author,ChatName",
        title: 3,
        time: 0,
        author: Some(2),
        text: 1,
    },
    Columns { names: "Timestamp,ClientApp,Prompt", title: 1, time: 0, author: None, text: 2 },
];

/// Tells which table a file is.
pub(super) fn header(head: &[u8]) -> Option<Columns> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let line = head.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?.trim().replace('"', "");
    TABLES.into_iter().find(|table| table.names == line)
}

pub(super) fn read(_: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let head = file.sample()?;
    let table = header(&head).ok_or_else(|| Error::form("not a known table"))?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file.open()?);
    let mut open: Option<(Thread, Option<Timestamp>)> = None;
    let mut record = csv::ByteRecord::new();
    let mut number = 1;
    loop {
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Err(Error::form(format!("not a readable table: {error}"))),
        }
        number += 1;
        let cell = |place: usize| {
            let bytes = record.get(place).unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        let (title, when, text) = (cell(table.title), cell(table.time), cell(table.text));
        let at = time::text(&when);
        if at.is_none() && text.is_empty() {
            sink.skip(file.path(), Some(format!("row {number}")), "a row without time and text")?;
            continue;
        }
        // One title stands for another conversation after a day of silence.
        let continues = open.as_ref().is_some_and(|(thread, last)| {
            let gap = |last: Timestamp, at: Timestamp| at <= last.plus(Span::days(1));
            thread.title.as_deref() == Some(&title)
                && last.zip(at).is_none_or(|(last, at)| gap(last, at) && gap(at, last))
        });
        if !continues {
            if let Some((thread, _)) = open.take() {
                sink.talk(file.path(), thread.finish(None))?;
            }
            let mut thread = Thread::new(PLATFORM, format!("{}:{title}:{when}", table.names));
            thread.title = Some(title.clone());
            open = Some((thread, at));
        }
        let Some((thread, last)) = open.as_mut() else { continue };
        let author = table.author.map(&cell);
        let human = author.as_deref().is_none_or(|who| who.eq_ignore_ascii_case("user"));
        let role = if human { Role::User } else { Role::Assistant };
        let native: Value = record
            .iter()
            .map(|bytes| Value::from(String::from_utf8_lossy(bytes).into_owned()))
            .collect();
        let said = Said::new(role, Value::from(text.as_str())).from(&json!({"row": native}));
        let who = author.unwrap_or_default();
        let key = format!("{title}:{when}:{who}:{}:{text}", thread.turns.len());
        thread.follow(key, at, said);
        *last = at.or(*last);
    }
    match open {
        Some((thread, _)) => sink.talk(file.path(), thread.finish(None)),
        None => Ok(()),
    }
}
