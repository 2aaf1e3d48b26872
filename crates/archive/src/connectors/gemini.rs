//! Gemini: the activity of Google Takeout as JSON and HTML, AI Studio's files, and the CLI.

mod activity;
mod cli;
mod page;
mod studio;

use crate::Result;
use crate::connector::{Connector, Sample, Sink};
use crate::shape::Shape;
use crate::source::{File, Source};

/// Reads everything Gemini.
#[derive(Debug)]
pub(super) struct Gemini;

const PLATFORM: &str = "gemini";

/// The four forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Activity,
    Page,
    Studio,
    Cli,
}

fn form(shape: &Shape, head: &[u8]) -> Option<Form> {
    let holds = |text: &str| memchr::memmem::find(head, text.as_bytes()).is_some();
    if shape.array && shape.all(1, &["header", "title", "time"]) {
        return Some(Form::Activity);
    }
    if shape.has(1, "chunkedPrompt") {
        return Some(Form::Studio);
    }
    if !shape.array && shape.all(1, &["sessionId", "projectHash", "messages"]) {
        return Some(Form::Cli);
    }
    let page = holds("outer-cell") && (holds("Gemini") || holds("Bard"));
    page.then_some(Form::Page)
}

impl Connector for Gemini {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        match form(&sample.shape, sample.head) {
            // Takeout lists other products in the same form.
            Some(Form::Activity) if !(sample.holds("Gemini") || sample.holds("Bard")) => 0,
            Some(_) => 90,
            None => 0,
        }
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        for file in files {
            let head = file.sample().unwrap_or_default();
            let done = match form(&Shape::of(&head), &head) {
                Some(Form::Activity) => activity::read(source, file, sink),
                Some(Form::Page) => page::read(source, file, sink),
                Some(Form::Studio) => studio::read(source, file, sink),
                Some(Form::Cli) => cli::read(source, file, sink),
                None => Ok(()),
            };
            sink.pass(file.path(), None, done)?;
        }
        Ok(())
    }
}
