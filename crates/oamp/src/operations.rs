//! The protocol's operations on one person's knowledge.

use serde_json::{Value, json};
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::Verb;
use yore_domain::memory::Version;
use yore_domain::mutation::{Depth, Mutation, Patch};
use yore_domain::query::{Corpus, Cutoff, Effort, Filter, PageRequest, Recall};
use yore_domain::scope::Scope;
use yore_domain::{Error, MemoryId, Timestamp, limits};
use yore_engine::{Call, Found, Mutated, Purpose, Reference, VaultInfo, VaultRef, Wish};

use crate::accept::Query;
use crate::error::{Refusal, Result};
use crate::map::{self, Kept};
use crate::person::Person;
use crate::wire::{self, CATEGORIES, Model, Object, Standing, joined};
use crate::{NAME, Oamp};

/// Rows of a page when the client does not say.
const DEFAULT_LIMIT: usize = 50;
/// The most rows of a page.
const MOST: usize = 200;
/// The furthest a page may begin.
const FURTHEST: usize = 1_000_000_000;
/// How often a patch is laid over a head that moved meanwhile.
const ATTEMPTS: usize = 3;

/// What a patch may change.
const PATCHABLE: [&str; 3] = ["confidence", "tags", "decay"];
/// What no patch may change.
const FIXED: [&str; 10] = [
    "oamp_version",
    "type",
    "id",
    "user_id",
    "category",
    "content",
    "source",
    "provenance",
    "governance",
    "metadata",
];

/// What a list or a search asks for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) user: Option<String>,
    pub(crate) query: Option<String>,
    pub(crate) filter: Filter,
    pub(crate) limit: usize,
    pub(crate) offset: usize,
}

/// A page of entries.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) entries: Vec<Object>,
    /// How many there are in all; only counted when asked for.
    pub(crate) total: Option<u64>,
}

impl Wanted {
    pub(crate) fn of(query: &Query, now: Timestamp) -> Result<Self> {
        let mut filter = Filter { as_of: query.as_of(now)?, ..Filter::default() };
        if let Some(word) = query.one("category").filter(|word| !word.is_empty()) {
            filter.facets = facets(word)?;
        }
        for word in query.all("sensitivity_class") {
            filter.sensitivities.push(sensitivity(word)?);
        }
        for word in query.all("governance_label") {
            filter.labels.push(Label::new(word)?);
        }
        let limit = query.number("limit", DEFAULT_LIMIT, MOST)?;
        let offset = query.number("offset", 0, FURTHEST)?;
        Ok(Self {
            user: query.one("user_id").map(str::to_owned),
            query: query.one("query").filter(|text| !text.trim().is_empty()).map(str::to_owned),
            filter,
            limit: limit.unwrap_or_default().max(1),
            offset: offset.unwrap_or_default(),
        })
    }
}

pub(crate) fn facets(word: &str) -> Result<Vec<yore_domain::kind::Facet>> {
    let found = CATEGORIES.iter().find(|(known, _)| *known == word);
    let known = "must be fact, preference, pattern or correction";
    found.map(|(_, facets)| facets.to_vec()).ok_or_else(|| Refusal::invalid("category", known))
}

pub(crate) fn sensitivity(word: &str) -> Result<Sensitivity> {
    let known = "must be public, internal, confidential or restricted";
    Sensitivity::parse(word).map_err(|_| Refusal::invalid("sensitivity_class", known))
}

impl Oamp {
    /// Stores an entry and returns it.
    pub(crate) async fn create(&self, call: &Call, document: &Object) -> Result<Object> {
        let entry = match wire::entry(document, Standing::Alone, self.options.strict) {
            Ok(entry) => entry,
            Err(error) => return Err(self.refused_input(call, error).await),
        };
        let person = self.person(call, Some(&entry.user), Verb::Write).await?;
        let now = self.engine.now();
        let draft = map::draft(&entry, &person, now);
        let remember = Mutation::Remember { draft: Box::new(draft.clone()), id: Some(entry.id) };
        let made = self.engine.mutate_as(NAME, &person.call, remember, Wish::default()).await;
        let made = made.map_err(|error| person.refuse_write(error.into()))?;
        let memory = made.memories.first().map_or(entry.id, |head| head.memory);
        let created = draft.time.created.unwrap_or(now);
        map::of_content(&draft.content, memory, created, &person)
            .ok_or_else(|| Error::NotFound.into())
    }

    /// Returns one entry, now or as it was.
    pub(crate) async fn entry(
        &self,
        call: &Call,
        id: &str,
        user: Option<&str>,
        as_of: Option<Timestamp>,
    ) -> Result<Object> {
        let id = wire_id(id);
        let person = self.keeper_of(call, user, id).await?;
        let id = id.ok_or(Error::NotFound)?;
        let found = match as_of {
            None => {
                let memory = self.engine.get(&person.call, Reference::Memory(id)).await?;
                live(memory.head)
            }
            Some(at) => live(self.engine.get_as_of(&person.call, id, at).await?),
        };
        found
            .and_then(|version| map::of_version(&version, &person))
            .ok_or_else(|| Error::NotFound.into())
    }

    /// Lists or searches entries.
    pub(crate) async fn list(&self, call: &Call, wanted: &Wanted, count: bool) -> Result<Listed> {
        let person = match self.person(call, wanted.user.as_deref(), Verb::Read).await {
            Ok(person) => person,
            // A person nobody wrote about has no entries.
            Err(refusal) if refusal.status == 404 => return Ok(Listed::default()),
            Err(refusal) => return Err(refusal),
        };
        match &wanted.query {
            None => self.page(&person, wanted, count).await,
            Some(query) => self.search(&person, wanted, query, count).await,
        }
    }

    async fn page(&self, person: &Person, wanted: &Wanted, count: bool) -> Result<Listed> {
        let Wanted { filter, limit, offset, .. } = wanted;
        let page = PageRequest { limit: *limit, offset: *offset, ..PageRequest::default() };
        let found = self.engine.list(&person.call, filter.clone(), page).await?;
        let total = match count {
            false => None,
            true => Some(self.engine.count(&person.call, filter.clone()).await?),
        };
        let entries = found.items.iter().filter_map(|memory| map::entry(memory, person));
        Ok(Listed { entries: entries.collect(), total })
    }

    async fn search(
        &self,
        person: &Person,
        wanted: &Wanted,
        query: &str,
        count: bool,
    ) -> Result<Listed> {
        let names = names(query);
        let needed = match count || !names.is_empty() {
            true => limits::RESULTS,
            false => wanted.offset.saturating_add(wanted.limit),
        };
        let recall = Recall {
            query: query.to_owned(),
            corpus: Corpus::Memories,
            filter: wanted.filter.clone(),
            near: Scope::default(),
            limit: needed.clamp(1, limits::RESULTS),
            effort: Effort::default(),
            prefer: Vec::new(),
            cutoff: Cutoff::Each,
        };
        let recalled = self.engine.recall(&person.call, recall).await?;
        let found: Vec<&Version> = recalled
            .results
            .iter()
            .filter_map(|hit| match &hit.found {
                Found::Memory { version, head } if *head || wanted.filter.as_of.is_some() => {
                    Some(&**version)
                }
                Found::Memory { .. } | Found::Message { .. } => None,
            })
            .filter(|version| mentions(&version.content.body.text, &names))
            .collect();
        let page = found.iter().skip(wanted.offset).take(wanted.limit);
        let entries = page.filter_map(|version| map::of_version(version, person)).collect();
        Ok(Listed { entries, total: Some(found.len() as u64) })
    }

    /// Changes what may be changed of an entry.
    pub(crate) async fn patch(
        &self,
        call: &Call,
        id: &str,
        user: Option<&str>,
        change: &Object,
    ) -> Result<Object> {
        let id = wire_id(id);
        let person = self.keeper_of(call, user, id).await?;
        let change = Change::of(change)?;
        let id = id.ok_or(Error::NotFound)?;
        let refused = |error: Error| person.refuse_write(error.into());
        if let Some(before) = self.engine.answered(&person.call, "revise").await.map_err(refused)? {
            return self.patched_before(&person, id, &before).await;
        }
        let mut attempt = 0;
        loop {
            let wanted = vec![Reference::Memory(id)];
            let chain = self.engine.chain(&person.call, wanted, Purpose::Change("revise")).await;
            let head = live(chain.map_err(refused)?.asked).ok_or(Error::NotFound)?;
            let patch = change.over(&head)?;
            let after = Version { content: patched(&head, &patch), ..head.clone() };
            let revise = Mutation::Revise {
                memory: head.memory,
                patch: Box::new(patch),
                expected: Some(head.number),
            };
            attempt += 1;
            match self.engine.mutate_as(NAME, &person.call, revise, Wish::default()).await {
                Ok(_) => {
                    let written = map::of_version(&after, &person);
                    return written.ok_or_else(|| Error::NotFound.into());
                }
                Err(Error::Conflict { .. }) if attempt < ATTEMPTS => {}
                Err(error) => return Err(refused(error)),
            }
        }
    }

    /// Answers a patch that is sent again: the entry as the first one left it.
    async fn patched_before(
        &self,
        person: &Person,
        id: MemoryId,
        before: &Mutated,
    ) -> Result<Object> {
        let wanted = vec![Reference::Memory(id)];
        let chain = self.engine.chain(&person.call, wanted, Purpose::Change("revise")).await;
        let head = chain.map_err(|error| person.refuse_write(error.into()))?.asked;
        if before.memories.first().is_none_or(|written| written.memory != head.memory) {
            return Err(Error::conflict("the operation id was used for another request").into());
        }
        live(head)
            .and_then(|head| map::of_version(&head, person))
            .ok_or_else(|| Error::NotFound.into())
    }

    /// Removes an entry for good.
    pub(crate) async fn delete(&self, call: &Call, id: &str, user: Option<&str>) -> Result<()> {
        let id = wire_id(id);
        let person = self.keeper_of(call, user, id).await?;
        let memories = vec![id.ok_or(Error::NotFound)?];
        let forget = Mutation::Forget { memories, depth: Depth::Erase, reason: None };
        let done = self.engine.mutate_as(NAME, &person.call, forget, Wish::default()).await;
        done.map(|_| ()).map_err(|error| person.refuse_write(error.into()))
    }

    /// Stores a user model; says whether it is the first.
    pub(crate) async fn put_model(&self, call: &Call, document: Object) -> Result<(bool, Object)> {
        let model = match Model::read(document) {
            Ok(model) => model,
            Err(error) => return Err(self.refused_input(call, error).await),
        };
        let person = self.person(call, Some(&model.user), Verb::Write).await?;
        let document = model.document.clone();
        let put = self.engine.put_profile(&person.call, model.version, document).await;
        let first = put.map_err(|error| person.refuse_write(error.into()))?;
        Ok((first, model.document))
    }

    /// Returns a user model, now or as it was.
    pub(crate) async fn model(
        &self,
        call: &Call,
        user: Option<&str>,
        as_of: Option<Timestamp>,
    ) -> Result<Object> {
        let person = self.person(call, user, Verb::Read).await?;
        Ok(self.engine.profile(&person.call, as_of).await?.document)
    }

    /// Removes a user model and every entry of the person.
    pub(crate) async fn delete_model(&self, call: &Call, user: &str) -> Result<()> {
        // Removing looks for the person, and makes none.
        let person = self.person(call, Some(user), Verb::Read).await?;
        self.engine.erase_person(&person.call).await?;
        Ok(())
    }

    /// Gives a person's vault a new key; a service that names nobody means all of its own.
    pub(crate) async fn rotate(&self, call: &Call, user: Option<&str>) -> Result<Value> {
        let mut calls = Vec::new();
        if let Some(user) = user {
            calls.push(self.person(call, Some(user), Verb::Read).await?.call);
        } else if call.vault == VaultRef::Default {
            let vaults = self.engine.served_vaults(call).await?;
            let each = |vault: &VaultInfo| Call { vault: VaultRef::Id(vault.id), ..call.clone() };
            calls.extend(vaults.iter().map(each));
        }
        if calls.is_empty() {
            self.known(call).await?;
            calls.push(call.clone());
        }
        let mut told = Value::Null;
        for call in &calls {
            let (key, done) = self.engine.rotate_keys(call).await?;
            told = json!({"key_id": key.to_string(), "message": done});
        }
        if calls.len() > 1 {
            told["message"] = format!("{} vaults have new keys", calls.len()).into();
        }
        Ok(told)
    }
}

/// The words of a question that name something instead of describing it: single letters and
/// what has a digit. What is close in meaning to a name is another thing.
fn names(query: &str) -> Vec<String> {
    let first = words(query).next();
    words(query)
        .filter(|word| {
            let letter = word.chars().count() == 1;
            let article =
                matches!(*word, "a" | "i" | "o") || (Some(*word) == first && *word == "A");
            (letter && !article && *word != "I") || word.contains(|c: char| c.is_ascii_digit())
        })
        .map(str::to_lowercase)
        .collect()
}

fn mentions(text: &str, names: &[String]) -> bool {
    names.iter().all(|name| words(text).any(|word| word.to_lowercase() == *name))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn wire_id(text: &str) -> Option<MemoryId> {
    text.parse().ok()
}

fn live(version: Version) -> Option<Version> {
    version.status.is_live().then_some(version)
}

/// What a patch asks for, checked before anything is looked up.
#[derive(Debug)]
struct Change {
    confidence: Option<serde_json::Number>,
    tags: Option<Vec<String>>,
    decay: Option<Object>,
}

impl Change {
    fn of(change: &Object) -> Result<Self> {
        for name in change.keys() {
            if FIXED.contains(&name.as_str()) {
                let message = format!("{name} cannot be changed");
                return Err(Refusal::new(400, "FORBIDDEN_PATCH", message));
            }
        }
        wire::only(change, "", &PATCHABLE)?;
        let decay = wire::object(change, "", "decay")?;
        if let Some(decay) = &decay {
            wire::decay_of(decay)?;
        }
        Ok(Self {
            confidence: wire::share(change, "", "confidence")?,
            tags: wire::texts(change, "", "tags")?,
            decay,
        })
    }

    fn over(&self, head: &Version) -> Result<Patch> {
        let mut kept = Kept::of(&head.content);
        let mut lifecycle = head.content.lifecycle.clone();
        if let Some(confidence) = &self.confidence {
            lifecycle.confidence = confidence.as_f64();
            kept.confidence = (!confidence.is_f64()).then(|| confidence.clone());
        }
        if let Some(decay) = &self.decay {
            let mut whole = kept.decay.unwrap_or_default();
            whole.extend(decay.clone());
            let (half_life, confirmed) = wire::decay_of(&whole)?;
            lifecycle.half_life = half_life;
            lifecycle.confirmed = confirmed;
            kept.decay = Some(whole);
        }
        kept.tags |= self.tags.is_some();
        Ok(Patch {
            lifecycle: Some(lifecycle),
            tags: self.tags.clone(),
            foreign: kept.foreign(),
            ..map::standing(head)
        })
    }
}

fn patched(head: &Version, patch: &Patch) -> yore_domain::memory::Content {
    let mut content = head.content.clone();
    content.lifecycle = patch.lifecycle.clone().unwrap_or(content.lifecycle);
    content.tags = patch.tags.clone().unwrap_or(content.tags);
    content.foreign.extend(patch.foreign.clone());
    content
}

/// Reads a member of an input that may be absent.
pub(crate) fn optional(input: &Object, name: &str) -> Result<Option<String>> {
    Ok(wire::text(input, "", name)?)
}

/// Reads a member of an input that must be there.
pub(crate) fn needed(input: &Object, name: &str) -> Result<String> {
    optional(input, name)?.ok_or_else(|| Refusal::invalid(&joined("", name), "is required"))
}
