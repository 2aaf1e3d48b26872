//! Takeout's log of activity as a page.

use serde_json::json;

use super::activity::{Exchange, give, prompt};
use crate::connector::Sink;
use crate::source::{File, Source};
use crate::{Error, Result, html, time};

pub(super) fn read(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let bytes = file.bytes(source.limits().piece as u64)?;
    let page = String::from_utf8(bytes).map_err(|_| Error::form("the page is not UTF-8"))?;
    for (place, cell) in page.split("outer-cell").skip(1).enumerate() {
        let what = Some(format!("cell {}", place + 1));
        match exchange(cell) {
            Some(exchange) => {
                let time = exchange.at.map(|at| at.to_string()).unwrap_or_default();
                let key = format!("{time}:{}", exchange.prompt);
                give(source, file, sink, key, "none", vec![exchange])?;
            }
            None => sink.skip(file.path(), what, "an activity, not a conversation")?,
        }
    }
    Ok(())
}

/// The first content cell: what was asked, when, and the answer, with line breaks between.
fn exchange(cell: &str) -> Option<Exchange> {
    let (_, rest) = cell.split_once("content-cell")?;
    let (_, rest) = rest.split_once('>')?;
    let body = rest.split("<div class=\"content-cell").next()?;
    let body = body.strip_suffix("</div>").unwrap_or(body);
    let mut parts = body.splitn(3, "<br>");
    let asked = html::markdown(parts.next()?);
    let when = html::unescaped(parts.next()?);
    let answer = html::markdown(parts.next()?);
    if answer.is_empty() {
        return None;
    }
    Some(Exchange {
        prompt: prompt(&asked, None).to_owned(),
        answers: vec![answer],
        at: time::text(when.trim()),
        attachments: Vec::new(),
        native: json!({"html": body, "time": when.trim()}),
    })
}
