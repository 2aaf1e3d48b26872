//! Sources and what was read from them.

use std::path::PathBuf;

use yore_archive::{Item, Limits, Note, Report, Source, Talk, read};

/// Everything that was read.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) talks: Vec<Talk>,
    pub(crate) notes: Vec<Note>,
    pub(crate) report: Report,
}

/// A sample of the given exports.
pub(crate) fn sample(path: &str) -> PathBuf {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/connectors");
    PathBuf::from(vectors).join(path)
}

pub(crate) fn read_all(paths: &[PathBuf]) -> Read {
    let source = Source::open(paths, Limits::default()).unwrap();
    let mut found = Read::default();
    let report = read(&source, &mut |item| {
        match item {
            Item::Conversation(talk) => found.talks.push(*talk),
            Item::Memory(note) => found.notes.push(*note),
            Item::Skipped(_) => {}
        }
        Ok(())
    });
    found.report = report.unwrap();
    found
}

impl Read {
    pub(crate) fn of(path: &str) -> Self {
        read_all(&[sample(path)])
    }

    pub(crate) fn titled(&self, title: &str) -> &Talk {
        self.talks.iter().find(|talk| talk.head.title.as_deref() == Some(title)).unwrap()
    }

    pub(crate) fn with_id(&self, id: &str) -> &Talk {
        self.talks.iter().find(|talk| talk.head.id.to_string() == id).unwrap()
    }
}

/// Messages on the active path and off it.
pub(crate) fn paths(talk: &Talk) -> (usize, usize) {
    let off = talk.messages.iter().filter(|message| message.off_path).count();
    (talk.messages.len() - off, off)
}
