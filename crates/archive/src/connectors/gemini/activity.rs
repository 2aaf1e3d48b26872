//! Takeout's log of activity. It names no conversations: entries with the same address are one,
//! each other exchange stands alone.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use yore_domain::Timestamp;
use yore_domain::conversation::Role;

use super::PLATFORM;
use crate::connector::{Sink, each_piece};
use crate::json::Look;
use crate::source::{File, Source};
use crate::thread::{Said, Thread, Turn};
use crate::{Result, content, html, time};

/// What stands before a prompt, in the languages that are known.
pub(super) const PREFIXES: [&str; 12] = [
    "Prompted ",
    "Said ",
    "Asked ",
    "Eingegebener Prompt: ",
    "Eingegeben: ",
    "Gefragt: ",
    "Requête : ",
    "Vous avez dit : ",
    "Instrucción: ",
    "Prompt inserito: ",
    "Zadaný prompt: ",
    "Enviou o comando ",
];

/// A prompt and its answers.
pub(super) struct Exchange {
    pub(super) prompt: String,
    pub(super) answers: Vec<String>,
    pub(super) at: Option<Timestamp>,
    pub(super) attachments: Vec<(String, Option<String>)>,
    pub(super) native: Value,
}

pub(super) fn read(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let learned = learn(source, file)?;
    let mut threads: BTreeMap<String, Vec<Exchange>> = BTreeMap::new();
    each_piece(source, file, sink, |sink, _, entry, _| {
        let title = entry.text("title").unwrap_or_default();
        let Some(exchange) = exchange(&entry, prompt(title, learned.as_deref())) else {
            let what = entry.text("time").map(str::to_owned);
            return sink.skip(file.path(), what, "an activity, not a conversation");
        };
        let address = entry.filled("titleUrl").and_then(|url| url.split_once("/app/"));
        if let Some((_, id)) = address {
            threads.entry(id.to_owned()).or_default().push(exchange);
            return Ok(());
        }
        let key = format!("{}:{title}", entry.text("time").unwrap_or_default());
        give(source, file, sink, key, "none", vec![exchange])
    })?;
    for (key, mut exchanges) in threads {
        exchanges.sort_by_key(|exchange| exchange.at);
        give(source, file, sink, key, "url", exchanges)?;
    }
    Ok(())
}

/// The word that most titles with an answer begin with, when none of the known ones does.
fn learn(source: &Source, file: &File) -> Result<Option<String>> {
    let (mut words, mut all) = (HashMap::<String, u64>::new(), 0);
    let mut ignore = |_| Ok(());
    let mut quiet = Sink::new(&mut ignore);
    each_piece(source, file, &mut quiet, |_, _, entry, _| {
        let title = entry.text("title").unwrap_or_default();
        let known = PREFIXES.iter().any(|prefix| title.starts_with(prefix));
        if !entry.list("safeHtmlItem").is_empty() && !known {
            all += 1;
            if let Some((word, _)) = title.split_once([' ', '\u{a0}']) {
                *words.entry(word.to_owned()).or_default() += 1;
            }
        }
        Ok(())
    })?;
    let best = words.into_iter().max_by_key(|(word, count)| (*count, word.clone()));
    Ok(best.filter(|(_, count)| all >= 4 && count * 5 >= all * 4).map(|(word, _)| word))
}

/// Returns the prompt without what stands before it.
pub(super) fn prompt<'a>(title: &'a str, learned: Option<&str>) -> &'a str {
    let known = PREFIXES.iter().find_map(|prefix| {
        let bare = prefix.trim_end();
        title.strip_prefix(bare).filter(|rest| rest.starts_with([' ', '\u{a0}']))
    });
    let rest = known.or_else(|| title.strip_prefix(learned?)).unwrap_or(title);
    rest.trim_start_matches([' ', '\u{a0}', ':'])
}

fn exchange(entry: &Value, prompt: &str) -> Option<Exchange> {
    let mut answers: Vec<String> = entry
        .list("safeHtmlItem")
        .iter()
        .filter_map(|item| item.filled("html"))
        .map(html::markdown)
        .collect();
    let mut asked = prompt.to_owned();
    for detail in entry.list("details") {
        match (detail.text("name"), detail.filled("value")) {
            (Some("Request"), Some(value)) => value.clone_into(&mut asked),
            (Some("Response"), Some(value)) => answers.push(value.to_owned()),
            _ => {}
        }
    }
    for interaction in entry.list("userInteractions") {
        let inner = interaction.get("userInteraction").unwrap_or(interaction);
        if let Some(request) = inner.filled("request") {
            request.clone_into(&mut asked);
        }
        answers.extend(inner.filled("response").map(str::to_owned));
    }
    if answers.is_empty() {
        return None;
    }
    let mut files: Vec<String> = entry
        .list("attachedFiles")
        .iter()
        .filter_map(Value::as_str)
        .chain(entry.text("imageFile"))
        .map(str::to_owned)
        .collect();
    files.dedup();
    let named = |file: &str| {
        let mut subtitles = entry.list("subtitles").iter();
        let found = subtitles.find(|subtitle| subtitle.text("url") == Some(file));
        let name = found.and_then(|subtitle| subtitle.text("name"));
        name.map(|name| name.trim_start_matches(['-', ' ']).to_owned())
    };
    let attachments = files.into_iter().map(|file| (file.clone(), named(&file))).collect();
    let at = entry.get("time").and_then(time::any);
    Some(Exchange { prompt: asked, answers, at, attachments, native: entry.clone() })
}

/// Makes a conversation of exchanges.
pub(super) fn give(
    source: &Source,
    file: &File,
    sink: &mut Sink<'_>,
    key: String,
    grouping: &str,
    exchanges: Vec<Exchange>,
) -> Result<()> {
    let mut thread = Thread::new(PLATFORM, key);
    thread.extra.insert("grouping".into(), Value::from(grouping));
    let title = exchanges.first().map(|first| first.prompt.chars().take(80).collect::<String>());
    thread.title = title;
    let mut before: Option<String> = None;
    for (place, exchange) in exchanges.iter().enumerate() {
        let mut asked = Said::new(Role::User, Value::from(exchange.prompt.as_str()));
        for (path, name) in &exchange.attachments {
            let base = path.rsplit('/').next().unwrap_or(path);
            let found = source.named(base).find(|found| found.folder() == file.folder());
            let blob = found.or_else(|| source.named(base).next()).and_then(|found| {
                sink.used(found);
                source.blob(found).ok()
            });
            asked.attachments.push(thread.attach(name.as_deref().unwrap_or(base), None, blob));
        }
        let key = format!("{place}:user");
        thread.turns.push(Turn {
            key: key.clone(),
            parent: before.take(),
            at: exchange.at,
            said: Some(asked.from(&exchange.native)),
        });
        for (number, answer) in exchange.answers.iter().enumerate() {
            let said = Said::new(Role::Assistant, content::content(vec![content::text(answer)]));
            let own = format!("{place}:answer:{number}");
            before.get_or_insert_with(|| own.clone());
            thread.turns.push(Turn {
                key: own,
                parent: Some(key.clone()),
                at: exchange.at,
                said: Some(said),
            });
        }
    }
    thread.current = before;
    thread.extra.insert("entries".into(), json!(exchanges.len()));
    sink.talk(file.path(), thread.finish(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_before_a_prompt_is_cut_in_known_and_learned_languages() {
        assert_eq!(prompt("Prompted How?", None), "How?");
        assert_eq!(prompt("Prompted\u{a0}How?", None), "How?");
        assert_eq!(prompt("Eingegebener Prompt: Wie?", None), "Wie?");
        assert_eq!(prompt("Kysytty Miten?", Some("Kysytty")), "Miten?");
        assert_eq!(prompt("Promptedness", None), "Promptedness");
    }
}
