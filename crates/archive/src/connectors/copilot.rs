//! Copilot: Microsoft's activity as CSV, and VS Code's sessions, whole or as a log of changes.

mod replay;
mod table;
mod vscode;

use std::collections::HashSet;

use crate::Result;
use crate::connector::{Connector, Sample, Sink};
use crate::source::{File, Source};

/// Reads Copilot's conversations.
#[derive(Debug)]
pub(super) struct Copilot;

impl Connector for Copilot {
    fn platform(&self) -> &'static str {
        "copilot"
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        let shape = &sample.shape;
        if table::header(sample.head).is_some() {
            return 90;
        }
        if !shape.json || shape.array {
            return 0;
        }
        let session = shape.all(1, &["sessionId", "requests"]);
        let log = shape.has(1, "kind") && (shape.has(1, "v") || shape.has(1, "k"));
        u8::from(session || log) * 88
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        source.named("workspace.json").for_each(|file| sink.used(file));
        let logs: HashSet<&str> =
            files.iter().filter_map(|file| file.path().strip_suffix(".jsonl")).collect();
        for file in files {
            let head = file.sample().unwrap_or_default();
            let done = if table::header(&head).is_some() {
                table::read(source, file, sink)
            } else if file.path().strip_suffix(".json").is_some_and(|stem| logs.contains(stem)) {
                // The log beside it is newer.
                Ok(())
            } else {
                vscode::read(source, file, sink)
            };
            sink.pass(file.path(), None, done)?;
        }
        Ok(())
    }
}
