//! Connectors: each reads one platform's exports. Which one reads a file is decided by what the
//! file looks like, not by what it is called.

use std::collections::BTreeMap;

use crate::connectors;
use crate::item::{Item, Note, Report, Skip, Talk};
use crate::shape::Shape;
use crate::source::{File, Source};
use crate::{Error, Result};

/// Reads what one platform exports.
pub trait Connector: Send + Sync {
    /// Returns the platform, a lower-case slug.
    fn platform(&self) -> &'static str;

    /// Says how sure it is that the file is one of its own, from 0 (no) to 100.
    fn recognise(&self, sample: &Sample<'_>) -> u8;

    /// Reads the files it recognised. A part that cannot be read is handed over as skipped.
    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()>;
}

/// The beginning of a file.
#[derive(Debug)]
pub struct Sample<'a> {
    pub(crate) file: &'a File,
    pub(crate) head: &'a [u8],
    pub(crate) shape: Shape,
}

impl Sample<'_> {
    /// Returns the file's path.
    #[must_use]
    pub fn path(&self) -> &str {
        self.file.path()
    }

    /// Whether the beginning holds these bytes.
    #[must_use]
    pub fn holds(&self, bytes: &str) -> bool {
        memchr::memmem::find(self.head, bytes.as_bytes()).is_some()
    }
}

/// Somebody who knows what was read before.
pub struct Known<'a> {
    /// Goes into what pieces are told by. What is known to one who asks otherwise is not known.
    pub salt: &'a str,
    /// Says of pieces, by their prints, whether exactly they came in before; at most
    /// [`ASKED`] at once.
    pub ask: &'a mut dyn FnMut(&[String]) -> Result<Vec<bool>>,
}

impl std::fmt::Debug for Known<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").field("salt", &self.salt).finish_non_exhaustive()
    }
}

/// Pieces that are asked about at once, unless they are large.
pub const ASKED: usize = 64;
/// Bytes of pieces that are held to be asked about.
const ASKED_BYTES: usize = 2 << 20;

/// Takes what connectors read, and counts it.
pub struct Sink<'a> {
    take: &'a mut dyn FnMut(Item) -> Result<()>,
    known: Option<Known<'a>>,
    /// The piece at hand, until something says that it does not stand for itself.
    print: Option<String>,
    report: Report,
    used: std::collections::HashSet<String>,
}

impl std::fmt::Debug for Sink<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").field("report", &self.report).finish_non_exhaustive()
    }
}

impl<'a> Sink<'a> {
    /// Hands everything to `take`, which may end the reading with [`Error::Stopped`].
    pub fn new(take: &'a mut dyn FnMut(Item) -> Result<()>) -> Self {
        Self {
            take,
            known: None,
            print: None,
            report: Report::default(),
            used: std::collections::HashSet::new(),
        }
    }

    /// Takes a conversation.
    pub fn talk(&mut self, path: &str, mut talk: Talk) -> Result<()> {
        let attached = talk.messages.iter().any(|message| !message.attachments.is_empty());
        talk.print = self.print.take().filter(|_| !attached && talk.blobs.is_empty());
        let valid =
            talk.head.validate().and_then(|()| talk.messages.iter().try_for_each(|m| m.validate()));
        match valid {
            Ok(()) => self.give(Item::Conversation(Box::new(talk))),
            Err(error) => self.skip(path, Some(talk.head.id.to_string()), error.to_string()),
        }
    }

    /// Takes a memory.
    pub fn note(&mut self, path: &str, note: Note) -> Result<()> {
        self.print = None;
        match note.draft.validate() {
            Ok(()) => self.give(Item::Memory(Box::new(note))),
            Err(error) => self.skip(path, Some(note.id.to_string()), error.to_string()),
        }
    }

    /// Takes note of something that could not be read.
    pub fn skip(
        &mut self,
        path: &str,
        what: Option<String>,
        reason: impl Into<String>,
    ) -> Result<()> {
        self.give(Item::Skipped(Skip { path: path.to_owned(), what, reason: reason.into() }))
    }

    /// Goes on after a failure unless it ends everything.
    pub(crate) fn pass(
        &mut self,
        path: &str,
        what: Option<String>,
        result: Result<()>,
    ) -> Result<()> {
        match result {
            Err(error) if error.stops() => Err(error),
            Err(error) => self.skip(path, what, error.to_string()),
            Ok(()) => Ok(()),
        }
    }

    /// Notes that a file was read along with another.
    pub(crate) fn used(&mut self, file: &File) {
        self.used.insert(file.path().to_owned());
    }

    /// Which of some pieces are known.
    fn knows(&mut self, prints: &[String]) -> Result<Vec<bool>> {
        match &mut self.known {
            Some(known) => (known.ask)(prints),
            None => Ok(vec![false; prints.len()]),
        }
    }

    fn give(&mut self, item: Item) -> Result<()> {
        self.report.count(&item);
        (self.take)(item)
    }
}

/// Reads everything in a source, one conversation at a time, and counts what was read.
pub fn read(source: &Source, take: &mut dyn FnMut(Item) -> Result<()>) -> Result<Report> {
    read_all(source, Sink::new(take))
}

/// Reads what is not known. What is known is counted.
pub fn read_unknown<'a>(
    source: &Source,
    known: Known<'a>,
    take: &'a mut dyn FnMut(Item) -> Result<()>,
) -> Result<Report> {
    let mut sink = Sink::new(take);
    sink.known = Some(known);
    read_all(source, sink)
}

fn read_all(source: &Source, mut sink: Sink<'_>) -> Result<Report> {
    for skip in source.skipped() {
        sink.give(Item::Skipped(skip.clone()))?;
    }
    let known = connectors::all();
    let mut claimed: BTreeMap<usize, Vec<&File>> = BTreeMap::new();
    let mut unclaimed = Vec::new();
    for file in source.files() {
        let head = match file.sample() {
            Ok(head) => head,
            Err(error) => {
                sink.pass(file.path(), None, Err(error))?;
                continue;
            }
        };
        match best(file, &head, &known) {
            Some(connector) => claimed.entry(connector).or_default().push(file),
            None => unclaimed.push(file),
        }
    }
    for (connector, files) in claimed {
        known[connector].read(source, &files, &mut sink)?;
    }
    for file in unclaimed {
        if sink.used.contains(file.path()) {
            continue;
        }
        sink.report.unread += 1;
        if file.was_named() {
            sink.skip(file.path(), None, "no known export")?;
        }
    }
    Ok(sink.report)
}

/// Tells which connector knows a file best, by its platform's name.
#[must_use]
pub fn detect(file: &File) -> Option<&'static str> {
    let head = file.sample().ok()?;
    let known = connectors::all();
    best(file, &head, &known).map(|connector| known[connector].platform())
}

fn best(file: &File, head: &[u8], known: &[Box<dyn Connector>]) -> Option<usize> {
    let sample = Sample { file, head, shape: Shape::of(head) };
    let scores = known.iter().map(|connector| connector.recognise(&sample));
    // Of equals the first, so that the order of the list decides.
    let (connector, score) =
        scores.enumerate().max_by_key(|(i, score)| (*score, usize::MAX - i))?;
    (score > 0).then_some(connector)
}

/// What a piece of an export follows from besides itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around<'a> {
    pub(crate) platform: &'static str,
    /// What lies beside and says something of every piece.
    pub(crate) beside: &'a [u8],
}

impl Around<'_> {
    /// Tells a piece from others. What another version of this reader made of it does not count.
    fn print(&self, salt: &str, text: &[u8]) -> String {
        let mut hasher = yore_canon::hash::Blake3::hasher();
        for part in [env!("CARGO_PKG_VERSION"), self.platform, salt] {
            hasher.update(part).update([0]);
        }
        hasher.update((self.beside.len() as u64).to_le_bytes()).update(self.beside);
        format!("piece:{}", hasher.update(text).finish().to_hex())
    }
}

/// Reads the parts of a large document and parses each by itself.
pub(crate) fn each_piece(
    source: &Source,
    file: &File,
    sink: &mut Sink<'_>,
    take: impl FnMut(&mut Sink<'_>, Option<&str>, serde_json::Value, bool) -> Result<()>,
) -> Result<()> {
    each_unknown_piece(source, file, None, sink, take)
}

/// The same for parts of which each is one conversation that follows from it and what is around:
/// what is known is not parsed.
pub(crate) fn each_unknown_piece(
    source: &Source,
    file: &File,
    around: Option<Around<'_>>,
    sink: &mut Sink<'_>,
    mut take: impl FnMut(&mut Sink<'_>, Option<&str>, serde_json::Value, bool) -> Result<()>,
) -> Result<()> {
    let reader = match file.open() {
        Ok(reader) => reader,
        Err(error) => return sink.pass(file.path(), None, Err(error)),
    };
    let around = around.zip(sink.known.as_ref().map(|known| known.salt.to_owned()));
    let mut pieces = crate::scan::Pieces::new(reader, source.limits().piece);
    loop {
        let (mut group, mut bytes, mut end) = (Vec::new(), 0, None);
        while end.is_none() && group.len() < ASKED && bytes < ASKED_BYTES {
            match pieces.take() {
                Ok(Some(piece)) => {
                    bytes += piece.text.as_ref().map_or(0, Vec::len);
                    group.push(piece);
                }
                Ok(None) => end = Some(Ok(())),
                Err(error) => end = Some(Err(error)),
            }
            if around.is_none() {
                break;
            }
        }
        let prints: Vec<String> = match &around {
            Some((around, salt)) => {
                let print = |text| around.print(salt, text);
                group
                    .iter()
                    .map(|piece| piece.text.as_deref().map_or(String::new(), print))
                    .collect()
            }
            None => vec![String::new(); group.len()],
        };
        let known = if around.is_some() { sink.knows(&prints)? } else { Vec::new() };
        for (at, (piece, print)) in group.into_iter().zip(prints).enumerate() {
            if let Some((around, _)) = &around
                && known.get(at).copied().unwrap_or(false)
            {
                sink.report.pass_over(around.platform);
                continue;
            }
            sink.print = (!print.is_empty()).then_some(print);
            one_piece(source, file, sink, piece, &mut take)?;
            sink.print = None;
        }
        match end {
            None => {}
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) => {
                return sink.skip(file.path(), None, format!("cannot be read: {error}"));
            }
        }
    }
}

fn one_piece(
    source: &Source,
    file: &File,
    sink: &mut Sink<'_>,
    piece: crate::scan::Piece,
    take: &mut impl FnMut(&mut Sink<'_>, Option<&str>, serde_json::Value, bool) -> Result<()>,
) -> Result<()> {
    let name = match &piece.key {
        Some(key) => format!("{} {}", key, piece.index + 1),
        None => format!("part {}", piece.index + 1),
    };
    let parsed = match &piece.text {
        Ok(text) => crate::json::parse(text),
        Err(crate::scan::Broken::TooLarge) => {
            Err(Error::too_large(&name, format!("{} bytes", source.limits().piece)))
        }
        Err(crate::scan::Broken::CutOff) => Err(Error::form("the file ends inside it")),
    };
    drop(piece.text);
    let done = match parsed {
        Ok((value, mended)) => take(sink, piece.key.as_deref(), value, mended),
        Err(error) => Err(error),
    };
    sink.pass(file.path(), Some(name), done)
}

/// Reads a file of one JSON value a line. A line that cannot be parsed is `None`.
pub(crate) fn each_line(
    source: &Source,
    file: &File,
    mut take: impl FnMut(usize, Option<serde_json::Value>) -> Result<()>,
) -> Result<()> {
    use std::io::{BufRead, BufReader, Read};
    let most = source.limits().document as u64;
    let mut reader = BufReader::new(file.open()?);
    for number in 1.. {
        let mut line = Vec::new();
        let read = reader.by_ref().take(most).read_until(b'\n', &mut line);
        if read.map_err(Error::io(file.path()))? == 0 {
            break;
        }
        if line.len() as u64 == most && !line.ends_with(b"\n") {
            return Err(Error::too_large(format!("line {number}"), format!("{most} bytes")));
        }
        if !line.trim_ascii().is_empty() {
            take(number, crate::json::parse(&line).ok().map(|(value, _)| value))?;
        }
    }
    Ok(())
}
