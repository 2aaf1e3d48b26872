//! Perplexity: the answer to a data request, threads as its pages load them, and threads as
//! exporters save them.

use serde_json::{Value, json};
use yore_domain::conversation::Role;

use crate::connector::{Connector, Sample, Sink, each_piece};
use crate::json::{self, Look};
use crate::source::{File, Source};
use crate::thread::{Said, Thread};
use crate::{Result, content, time};

/// Reads Perplexity's threads.
#[derive(Debug)]
pub(super) struct Perplexity;

const PLATFORM: &str = "perplexity";

impl Connector for Perplexity {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        let shape = &sample.shape;
        if !shape.json || shape.array {
            return 0;
        }
        let request =
            shape.has(1, "conversations") && shape.has(2, "entries") && shape.has(3, "query");
        let thread = shape.has(1, "entries") && shape.has(2, "query_str");
        let saved = shape.has(1, "conversations")
            && shape.has(2, "thread_id")
            && shape.all(2, &["query", "answer"]);
        u8::from(request || thread || saved) * 92
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        for file in files {
            let head = file.sample().unwrap_or_default();
            let shape = crate::shape::Shape::of(&head);
            if shape.has(2, "entries") {
                each_piece(source, file, sink, |sink, key, value, _| match key {
                    Some("conversations") => request(file, sink, &value),
                    Some(_) | None => Ok(()),
                })?;
                continue;
            }
            let parsed = source.document(file).and_then(|bytes| Ok(json::parse(&bytes)?.0));
            let done = parsed.and_then(|native| {
                if shape.has(1, "entries") {
                    page(file, sink, &native)
                } else {
                    saved(file, sink, &native)
                }
            });
            sink.pass(file.path(), None, done)?;
        }
        Ok(())
    }
}

/// A conversation of a data request.
fn request(file: &File, sink: &mut Sink<'_>, native: &Value) -> Result<()> {
    let title = native.filled("context_title").unwrap_or_default();
    let begun = native.text("created_at").unwrap_or_default();
    let key = native.filled("context_uuid").or(native.filled("uuid"));
    let mut thread =
        Thread::new(PLATFORM, key.map_or_else(|| format!("{title}:{begun}"), str::to_owned));
    thread.title = Some(title.to_owned());
    thread.created = time::text(begun);
    if let Some(collection) = native.filled("collection_uuid") {
        thread.context.push(json!({"type": "project", "id": collection}));
    }
    for (place, entry) in native.list("entries").iter().enumerate() {
        let (asked, answered) = (entry.text("query"), entry.text("answer"));
        exchange(&mut thread, place, entry, asked, answered, None, "created_at");
    }
    sink.talk(file.path(), thread.finish(Some(native)))
}

/// A thread as the site's own pages load it.
fn page(file: &File, sink: &mut Sink<'_>, native: &Value) -> Result<()> {
    let entries = native.list("entries");
    let first = entries.first().unwrap_or(&Value::Null);
    let key =
        first.filled("context_uuid").or(first.filled("thread_url_slug")).unwrap_or(file.name());
    let mut thread = Thread::new(PLATFORM, key);
    thread.title = first.filled("thread_title").map(str::to_owned);
    if let Some(collection) = first.inner("collection_info") {
        thread.context.push(json!({"type": "project", "id": collection.get("uuid"),
            "name": collection.get("title")}));
    }
    if native.flag("has_next_page") {
        sink.skip(file.path(), Some(key.to_owned()), "only the first page of the thread is here")?;
    }
    for (place, entry) in entries.iter().enumerate() {
        let (mut answer, mut sources) = (None, Vec::new());
        for block in entry.list("blocks") {
            if let Some(markdown) = block.get("markdown_block") {
                let chunks = markdown.list("chunks").iter().filter_map(Value::as_str);
                let whole = markdown.filled("answer").map(str::to_owned);
                answer = whole.or_else(|| Some(chunks.collect::<String>()));
            }
            sources.extend(
                block.get("sources_mode_block").map(|b| b.list("rows")).unwrap_or_default(),
            );
        }
        let sources: Vec<Value> = sources.into_iter().cloned().collect();
        let asked = entry.text("query_str");
        exchange(
            &mut thread,
            place,
            entry,
            asked,
            answer.as_deref(),
            Some(sources),
            "entry_created_datetime",
        );
    }
    sink.talk(file.path(), thread.finish(Some(native)))
}

/// A thread as an exporter saved it.
fn saved(file: &File, sink: &mut Sink<'_>, native: &Value) -> Result<()> {
    let about = native.get("metadata").unwrap_or(&Value::Null);
    let key = about.filled("thread_id").or(about.filled("thread_url")).unwrap_or(file.name());
    let mut thread = Thread::new(PLATFORM, key);
    thread.title = about.filled("thread_title").map(str::to_owned);
    thread.created = about.get("thread_created_at").and_then(time::any);
    thread.updated = about.get("thread_updated_at").and_then(time::any);
    for (place, entry) in native.list("conversations").iter().enumerate() {
        let sources = entry.list("sources").to_vec();
        let (asked, answered) = (entry.text("query"), entry.text("answer"));
        exchange(&mut thread, place, entry, asked, answered, Some(sources), "timestamp");
    }
    sink.talk(file.path(), thread.finish(Some(native)))
}

/// One entry is two messages: both are named after it.
fn exchange(
    thread: &mut Thread,
    place: usize,
    entry: &Value,
    asked: Option<&str>,
    answered: Option<&str>,
    sources: Option<Vec<Value>>,
    time: &str,
) {
    let key = entry.filled("uuid").or(entry.filled("backend_uuid"));
    let key = key.map_or_else(|| format!("#{place}"), str::to_owned);
    let at = entry.get(time).and_then(time::any);
    let said = Said::new(Role::User, Value::from(asked.unwrap_or_default()));
    thread.follow(format!("{key}:query"), at, said.from(entry));
    let Some(answer) = answered.filter(|answer| !answer.is_empty()) else { return };
    let model = entry.filled("display_model").or(entry.filled("model"));
    let blocks = content::content(vec![content::text(answer)]);
    let mut said = Said::new(Role::Assistant, blocks).model(model);
    if let Some(sources) = sources.filter(|sources| !sources.is_empty()) {
        said = said.flag("sources", sources);
    }
    thread.follow(format!("{key}:answer"), at, said);
}
