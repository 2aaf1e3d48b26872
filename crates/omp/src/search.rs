//! Search: by word or by meaning, with the place of each hit and what stood around it.

use serde_json::{Value, json};
use yore_domain::conversation::Message;
use yore_domain::grant::Verb;
use yore_domain::memory::Version;
use yore_domain::query::{Corpus, Cutoff, Effort, Recall};
use yore_domain::scope::Scope;
use yore_engine::{Found, Passage, Seen, Sought};

use crate::Omp;
use crate::error::{Refusal, Result};
use crate::map::Object;
use crate::routes::{Asking, Sheet};

/// Characters of a snippet, and of a neighbour.
const SNIPPET: usize = 240;

/// What kind of thing is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Anything,
    Messages,
    Conversations,
    Memories,
    Attachments,
}

impl Wanted {
    fn parse(word: Option<&str>) -> Result<Self> {
        match word {
            None => Ok(Self::Anything),
            Some("message") => Ok(Self::Messages),
            Some("conversation") => Ok(Self::Conversations),
            Some("memory") => Ok(Self::Memories),
            Some("attachment") => Ok(Self::Attachments),
            Some(_) => {
                Err(Refusal::invalid("type", "must be message, conversation, memory or attachment"))
            }
        }
    }

    const fn corpus(self) -> Corpus {
        match self {
            Self::Anything => Corpus::Both,
            Self::Messages | Self::Conversations | Self::Attachments => Corpus::Messages,
            Self::Memories => Corpus::Memories,
        }
    }
}

impl Omp {
    pub(crate) async fn search(&self, asking: &Asking) -> Result<Sheet> {
        let Asking { call, params, .. } = asking;
        let query = params.one("q").map(str::trim).filter(|query| !query.is_empty());
        let query = query.ok_or_else(|| Refusal::invalid("q", "must not be empty"))?;
        let wanted = Wanted::parse(params.one("type"))?;
        let semantic = params.flag("semantic")?.unwrap_or(false);
        let include = params.words("include");
        if include.iter().any(|word| word != "branches") {
            return Err(Refusal::invalid("include", "only branches can be included"));
        }
        let filter = params.filter()?;
        let identity = self.engine.identify(call, Verb::Read).await?;
        let list = json!([
            query,
            wanted.corpus(),
            wanted == Wanted::Conversations,
            wanted == Wanted::Attachments,
            semantic,
            include,
            filter
        ]);
        let roll = self.roll(&identity, format!("search {list}"));
        let sought = Sought {
            recall: Recall {
                query: query.to_owned(),
                corpus: wanted.corpus(),
                filter,
                near: Scope::default(),
                limit: params.limit()?,
                effort: if semantic { Effort::Balanced } else { Effort::Instant },
                prefer: Vec::new(),
                cutoff: if semantic { Cutoff::Calibrated } else { Cutoff::Off },
            },
            by_word: !semantic,
            branches: !include.is_empty(),
            inside: wanted == Wanted::Attachments,
            once_each: wanted == Wanted::Conversations,
            after: params.one("cursor").map(|cursor| roll.place(cursor)).transpose()?,
        };
        let found = self.engine.search(call, sought).await?;
        let data = found.seen.iter().map(|seen| hit(seen, query, wanted)).collect();
        Ok(Sheet { data, next: found.next.map(|place| roll.among(place)) })
    }
}

fn hit(seen: &Seen, query: &str, wanted: Wanted) -> Object {
    let mut hit = match &seen.hit.found {
        Found::Memory { version, .. } => of_memory(version),
        Found::Message { conversation, message, .. } => {
            let (kind, id) = match (wanted, &seen.hit.inside) {
                (Wanted::Conversations, _) => ("conversation", conversation.id.to_string()),
                (Wanted::Anything | Wanted::Attachments, Some(passage)) => {
                    ("attachment", passage.blob.to_string())
                }
                (Wanted::Messages | Wanted::Memories, _) | (_, None) => {
                    ("message", message.id.to_string())
                }
            };
            let mut hit = Object::new();
            hit.insert("type".into(), kind.into());
            hit.insert("id".into(), id.into());
            hit.insert("conversation_id".into(), json!(conversation.id));
            put(&mut hit, "conversation_title", conversation.title.as_deref());
            let platform = message.platform.as_ref().unwrap_or(&conversation.platform);
            hit.insert("platform".into(), platform.as_str().into());
            let model = message.model.as_ref().or(conversation.model.as_ref());
            put(&mut hit, "model", model.map(String::as_str));
            hit.insert("role".into(), json!(message.role));
            hit.insert("timestamp".into(), message.at.to_string().into());
            if let Some(passage) = &seen.hit.inside {
                let Passage { blob, filename, media_type, .. } = passage;
                let named = json!({"id": blob, "filename": filename, "media_type": media_type});
                hit.insert("attachment".into(), named);
            }
            if kind != "message" {
                hit.insert("message_id".into(), json!(message.id));
            }
            let around = json!({
                "before": neighbour(seen.before.as_ref()),
                "after": neighbour(seen.after.as_ref()),
            });
            hit.insert("context".into(), around);
            hit
        }
    };
    hit.insert("snippet".into(), snippet(seen.hit.text(), query).into());
    hit.insert("score".into(), seen.hit.score.into());
    hit
}

fn of_memory(version: &Version) -> Object {
    let content = &version.content;
    let mut hit = Object::new();
    hit.insert("type".into(), "memory".into());
    hit.insert("id".into(), json!(version.memory));
    let source = content.provenance.messages.first();
    put(&mut hit, "conversation_id", source.map(|one| one.conversation.to_string()).as_deref());
    put(&mut hit, "platform", content.provenance.provider.as_deref());
    hit.insert("timestamp".into(), version.time.created.to_string().into());
    hit
}

fn put(hit: &mut Object, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        hit.insert(name.to_owned(), text.into());
    }
}

fn neighbour(message: Option<&Message>) -> Value {
    message.map_or(Value::Null, |message| {
        let text = cut(&message.text, 0);
        json!({"id": message.id, "role": message.role, "text": text})
    })
}

/// The part of a text where a word of the question first stands; its beginning where none does.
fn snippet(text: &str, query: &str) -> String {
    let lower = text.to_lowercase();
    let words = query.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2);
    let first = words.filter_map(|word| lower.find(&word.to_lowercase())).min().unwrap_or(0);
    // Lower case may be longer than what it comes from: the place is counted in characters.
    let place = lower.get(..first).map_or(0, |before| before.chars().count());
    cut(text, place.saturating_sub(SNIPPET / 3))
}

/// So many characters from a place on, with dots where something is left out.
fn cut(text: &str, from: usize) -> String {
    let mut rest = text.chars().skip(from);
    let shown: String = rest.by_ref().take(SNIPPET).collect();
    let (before, after) = (from > 0, rest.next().is_some());
    let dots = |left_out| if left_out { "…" } else { "" };
    format!("{}{}{}", dots(before), shown.trim(), dots(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omp_124_a_snippet_shows_where_the_words_stand() {
        assert_eq!(snippet("Tea without sugar", "sugar"), "Tea without sugar");
        let long = format!("{} the NEEDLE is here {}", "hay ".repeat(200), "straw ".repeat(200));
        let shown = snippet(&long, "needle");
        assert!(shown.contains("NEEDLE") && shown.starts_with('…') && shown.ends_with('…'));
        assert!(shown.chars().count() <= SNIPPET + 2);
        assert_eq!(snippet("İİİİ ß needle", "needle"), "İİİİ ß needle");
        assert_eq!(snippet("", "x"), "");
    }
}
