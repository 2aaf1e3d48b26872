//! Conversations: made, read, listed, appended to, renamed and removed.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use yore_domain::class::Label;
use yore_domain::conversation::Message;
use yore_domain::grant::Verb;
use yore_domain::query::{Order, PageRequest};
use yore_domain::regulated::parental_consent;
use yore_domain::{ConversationId, Error, MessageId};
use yore_engine::{Amendment, Buried, Call, Talk};

use crate::condition::Expected;
use crate::error::{Refusal, Result};
use crate::flags::{self, Flags, Wanted};
use crate::map::{self, Object, Sent};
use crate::routes::{Asking, Sheet};
use crate::scope::Scope;
use crate::{NAME, Omp};

/// A conversation that was sent, as it is stored now.
pub(crate) struct Made {
    pub(crate) id: ConversationId,
    /// Whether it is new.
    pub(crate) begun: bool,
    pub(crate) tag: String,
    pub(crate) body: Object,
}

impl Omp {
    /// Stores a conversation. One that is there is a conflict, unless the caller wants what is
    /// new in it to be added.
    pub(crate) async fn create_conversation(
        &self,
        asking: &Asking,
        object: Object,
    ) -> Result<Made> {
        let Asking { call, params, links, .. } = asking;
        let mut object = object;
        flags::check(&object)?;
        let held = self.holds_at_once(call, &mut object).await?;
        let (head, sent) = map::conversation(object, links, asking.ids()?)?;
        let merge = params.flag("merge")?.unwrap_or(false);
        let mut messages = self.stored(call, sent).await?;
        // Another host may not know yet what was deleted here.
        let gone = match merge {
            true => self.engine.erased_of(call, head.id).await?,
            false => Buried::default(),
        };
        messages.retain(|message| !gone.messages.contains(&message.id));
        let known = match merge {
            true => {
                // Before the words are there: nobody is to see them unprotected.
                there(self.raise(call, head.id, &messages).await)?;
                there(self.engine.say(call, head.id, messages.clone()).await)?.is_some()
            }
            false => false,
        };
        if !known && gone.whole {
            return Err(deleted_here());
        }
        let id = match known {
            true => head.id,
            false => self.engine.begin(call, head, messages).await?,
        };
        if held {
            let single = Call { operation: None, ..call.clone() };
            self.engine.hold_conversation(&single, id, true).await?;
        }
        let made = match seen(self.engine.talk(call, id).await)? {
            Some(talk) => {
                let (id, tag) = (talk.head.id, talk.tag());
                Made { id, begun: !known, tag, body: map::conversation_out(talk, links) }
            }
            None => Made { id, begun: !known, tag: String::new(), body: map::only_id(id) },
        };
        Ok(made)
    }

    pub(crate) async fn conversation(&self, asking: &Asking, id: &str) -> Result<(String, Object)> {
        let talk = self.engine.talk(&asking.call, map::conversation_id(id)?).await?;
        Ok((talk.tag(), map::conversation_out(talk, &asking.links)))
    }

    pub(crate) async fn conversations(&self, asking: &Asking) -> Result<Sheet> {
        let Asking { call, params, links, .. } = asking;
        let filter = params.filter()?;
        let whole = params.words("include").iter().any(|word| word == "messages");
        let identity = self.engine.identify(call, Verb::Read).await?;
        let wanted = Wanted::of(params)?;
        let roll = self.roll(&identity, format!("conversations {wanted:?} {}", json!(filter)));
        let page = PageRequest {
            limit: params.limit()?,
            after: params.one("cursor").map(|cursor| roll.position(cursor)).transpose()?,
            offset: 0,
            order: Order::NewestFirst,
        };
        let found = self.engine.talks(call, filter, page).await?;
        let mut data = Vec::with_capacity(found.items.len());
        for listed in &found.items {
            if !wanted.met_by(Flags::stored(&listed.head.governance, &listed.head.foreign)) {
                continue;
            }
            data.push(match whole {
                true => {
                    let talk: Talk = self.engine.talk(call, listed.head.id).await?;
                    map::conversation_out(talk, links)
                }
                false => map::listed_out(listed),
            });
        }
        Ok(Sheet { data, next: found.next.map(|position| roll.at(position)) })
    }

    /// Changes title, tags, summary and members of others. What was said, by whom and where
    /// cannot be changed.
    pub(crate) async fn patch_conversation(
        &self,
        asking: &Asking,
        id: &str,
        change: Object,
        expected: &Expected,
    ) -> Result<(String, Object)> {
        let call = &asking.call;
        let id = map::conversation_id(id)?;
        let mut change = change;
        flags::check(&change)?;
        let hold = change.shift_remove("x_regulatory_hold");
        let had = self.engine.conversation(call, id).await?.0;
        let had = Flags::stored(&had.governance, &had.foreign);
        let (protect, release) = flags::relabelled(&mut change);
        let lowers = had.labels().iter().any(|label| release.contains(label));
        let amendment = Amendment { protect, release, ..amendment(change)? };
        if amendment != Amendment::default() || hold.is_none() {
            self.engine
                .amend_conversation(NAME, call, id, amendment, expected.tags())
                .await
                .map_err(|error| lowering(lowers, error).unless_matched(expected.stated()))?;
        }
        if let Some(hold) = hold {
            let call = &Call { operation: None, ..call.clone() };
            let held = self.engine.hold_conversation(call, id, hold == Value::Bool(true)).await;
            held.map_err(|error| Refusal::from(error).at(Scope::Admin))?;
        }
        let Some(talk) = seen(self.engine.talk(call, id).await)? else {
            return Ok((String::new(), map::only_id(id)));
        };
        Ok((talk.tag(), map::conversation_out(talk, &asking.links)))
    }

    pub(crate) async fn delete_conversation(
        &self,
        asking: &Asking,
        id: &str,
        expected: &Expected,
    ) -> Result<Value> {
        let call = &asking.call;
        let id = map::conversation_id(id)?;
        if asking.dry_run()? {
            let (_, messages) = self.engine.conversation(call, id).await?;
            return Ok(json!({"deleted": false, "scope": scope(1, messages)}));
        }
        let erased = self.engine.erase_conversation(call, id, expected.tags()).await;
        let messages =
            erased.map_err(|error| Refusal::from(error).unless_matched(expected.stated()))?;
        Ok(json!({"deleted": true, "scope": scope(1, messages)}))
    }

    /// Adds messages; those that are there stay as they are.
    pub(crate) async fn append(&self, asking: &Asking, id: &str, messages: Value) -> Result<Value> {
        let Asking { call, links, .. } = asking;
        let id = map::conversation_id(id)?;
        let (head, _) = self.engine.conversation(call, id).await?;
        let sent = map::messages(messages, &head, links, asking.ids()?)?;
        let messages = self.stored(call, sent).await?;
        let ids: Vec<MessageId> = messages.iter().map(|message| message.id).collect();
        self.raise(call, id, &messages).await?;
        let said = self.engine.say(call, id, messages).await?;
        Ok(json!({
            "conversation_id": head.id,
            "message_ids": ids,
            "appended": said.appended,
            "skipped": said.duplicates,
            "conflicts": said.conflicts,
        }))
    }

    pub(crate) async fn message(&self, asking: &Asking, id: &str, message: &str) -> Result<Object> {
        let (id, message) = (map::conversation_id(id)?, message_id(message)?);
        let found = self.engine.message(&asking.call, id, message).await?;
        Ok(map::message_out(&found, &asking.links))
    }

    pub(crate) async fn delete_message(
        &self,
        asking: &Asking,
        id: &str,
        message: &str,
    ) -> Result<Value> {
        let (id, message) = (map::conversation_id(id)?, message_id(message)?);
        if asking.dry_run()? {
            self.engine.message(&asking.call, id, message).await?;
            return Ok(json!({"deleted": false, "scope": scope(0, 1)}));
        }
        self.engine.erase_message(&asking.call, id, message).await?;
        Ok(json!({"deleted": true, "scope": scope(0, 1)}))
    }

    /// A flag on any message is one of its conversation, too.
    async fn raise(
        &self,
        call: &Call,
        id: ConversationId,
        messages: &[Message],
    ) -> yore_domain::Result<()> {
        let said = messages
            .iter()
            .fold(Flags::default(), |flags, message| flags.or(Flags::in_foreign(&message.foreign)));
        if said == Flags::default() {
            return Ok(());
        }
        let (head, _) = self.engine.conversation(call, id).await?;
        let had = Flags::stored(&head.governance, &head.foreign);
        let mut members = BTreeMap::new();
        if let Some(risk) = said.risk.filter(|_| said.risk > had.risk) {
            members.insert("x_risk_level".to_owned(), Some(flags::RISKS[risk].into()));
        }
        // Whoever brings the words names the consent of a parent with them.
        let consent = messages.iter().find_map(|message| parental_consent(&message.foreign));
        if let Some(consent) = consent.filter(|_| parental_consent(&head.foreign).is_none()) {
            members.insert("x_parental_consent_id".to_owned(), Some(consent.into()));
        }
        let known = had.labels();
        let protect: Vec<Label> =
            said.labels().into_iter().filter(|label| !known.contains(label)).collect();
        if members.is_empty() && protect.is_empty() {
            return Ok(());
        }
        let amendment = Amendment { members, protect, ..Amendment::default() };
        let call = Call { operation: None, ..call.clone() };
        self.engine.amend_conversation(NAME, &call, id, amendment, Vec::new()).await
    }

    /// Whether a document asks to be protected from deletion as soon as it is stored. Who may not
    /// say so is told before anything is.
    pub(crate) async fn holds_at_once(&self, call: &Call, object: &mut Object) -> Result<bool> {
        if object.shift_remove("x_regulatory_hold") != Some(Value::Bool(true)) {
            return Ok(false);
        }
        let admin = self.engine.demand(call, "hold-conversation", Verb::Admin).await;
        admin.map_err(|error| Refusal::from(error).at(Scope::Admin))?;
        Ok(true)
    }

    /// Stores the bytes that came with messages, so that the messages may name them.
    async fn stored(&self, call: &Call, sent: Sent) -> Result<Vec<Message>> {
        // A later upload under the first one's operation id would be taken for a retry.
        let call = Call { operation: None, ..call.clone() };
        for bytes in sent.attached {
            self.engine.attach(&call, bytes).await?;
        }
        Ok(sent.messages)
    }
}

/// How much a deletion takes.
pub(crate) fn scope(conversations: u64, messages: u64) -> Value {
    json!({"conversations": conversations, "messages": messages})
}

fn message_id(text: &str) -> Result<MessageId> {
    text.parse().map_err(|_| Error::NotFound.into())
}

/// What is there, or nothing; other failures stay failures.
pub(crate) fn there<T>(found: yore_domain::Result<T>) -> yore_domain::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What the caller may see of what it wrote; nothing where it may only write.
pub(crate) fn seen<T>(found: yore_domain::Result<T>) -> yore_domain::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        // What a law protects may be written by those who do not see it.
        Err(Error::Forbidden { .. } | Error::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A refusal of a change that takes protection away, which only who administers may do.
pub(crate) fn lowering(lowers: bool, error: Error) -> Refusal {
    let refusal = Refusal::from(error);
    if lowers { refusal.at(Scope::Admin) } else { refusal }
}

/// Reads a merge patch.
fn amendment(change: Object) -> Result<Amendment> {
    let mut amendment = Amendment::default();
    let mut members = BTreeMap::new();
    for (name, value) in change {
        match (name.as_str(), value) {
            ("title", value) => amendment.title = Some(text(&name, value)?),
            ("summary", value) => amendment.summary = Some(text(&name, value)?),
            ("tags", Value::Null) => amendment.tags = Some(Vec::new()),
            ("tags", value) => amendment.tags = Some(texts(&name, value)?),
            ("model" | "platform" | "messages", _) => {
                let reason = format!("{name} cannot be changed once it is stored");
                return Err(Refusal::new(403, "forbidden", reason).with("reason", "immutable"));
            }
            (_, Value::Null) if name.starts_with("x_") => {
                members.insert(name, None);
            }
            (_, value) if name.starts_with("x_") && name != "x_yore" => {
                members.insert(name, Some(value));
            }
            (_, _) => {
                return Err(Refusal::invalid(&name, "cannot be changed; title, tags, summary can"));
            }
        }
    }
    amendment.members = members;
    Ok(amendment)
}

/// What is told to a host that brings back what was deleted.
pub(crate) fn deleted_here() -> Refusal {
    Refusal::new(409, "conflict", "it was deleted here").with("reason", "deleted")
}

fn text(name: &str, value: Value) -> Result<Option<String>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(Refusal::invalid(name, "must be a text"))
        }
    }
}

/// Reads a list of texts.
pub(crate) fn texts(name: &str, value: Value) -> Result<Vec<String>> {
    serde_json::from_value(value).map_err(|_| Refusal::invalid(name, "must be a list of texts"))
}
