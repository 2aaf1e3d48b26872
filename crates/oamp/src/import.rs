//! Taking a store in, with an account of every entry.
//!
//! A new id is inserted. An id that is known keeps its entry unless the one that is brought is
//! surer of itself; what loses is reported, what says the same is passed over.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use yore_canon::jcs;
use yore_domain::grant::Verb;
use yore_domain::mutation::Mutation;
use yore_domain::{Error, MemoryId, Timestamp};
use yore_engine::{BATCH, Call, Each, Purpose, Reference, Wish};

use crate::error::Result;
use crate::map;
use crate::person::Person;
use crate::wire::{self, Entry, Model, Object, Standing, Store};
use crate::{NAME, Oamp};

/// The account of an import.
#[derive(Debug, Default)]
struct Account {
    imported: usize,
    skipped: usize,
    rejections: Vec<(Value, String)>,
}

impl Account {
    fn reject(&mut self, id: impl Into<Value>, reason: impl Into<String>) {
        self.rejections.push((id.into(), reason.into()));
    }
}

impl Oamp {
    /// Takes a store in.
    pub(crate) async fn import(&self, call: &Call, document: Object) -> Result<Value> {
        let Store { version, user, entries, model } = match Store::read(document) {
            Ok(store) => store,
            Err(error) => return Err(self.refused_input(call, error).await),
        };
        let mut person = self.person(call, Some(&user), Verb::Write).await?;
        // One id cannot stand for several commits. An import that is sent again finds its
        // entries there already.
        person.call.operation = None;
        let mut account = Account::default();
        let mut batch = Vec::new();
        let mut ids = BTreeSet::new();
        for document in entries {
            let entry = match self.nested(&document, &version, &user) {
                Ok(entry) => entry,
                Err(error) => {
                    let id = document.get("id").filter(|id| id.is_string()).cloned();
                    account.reject(id.unwrap_or_default(), error.to_string());
                    continue;
                }
            };
            // The second entry of one id meets the first as if it had been there before.
            if batch.len() == BATCH || !ids.insert(entry.id) {
                self.take(&person, &mut batch, &mut account).await?;
                ids = BTreeSet::from([entry.id]);
            }
            batch.push(entry);
        }
        self.take(&person, &mut batch, &mut account).await?;
        let model = match model {
            None => None,
            Some(model) => Some(self.take_model(&person, model).await?),
        };
        Ok(summary(&user, account, model))
    }

    fn nested(&self, document: &Value, version: &str, user: &str) -> Result<Entry, Error> {
        let members =
            document.as_object().ok_or_else(|| Error::invalid("entry", "must be an object"))?;
        let mut entry = wire::entry(members, Standing::InStore, self.options.strict)?;
        if entry.user != user {
            return Err(Error::invalid("user_id", "is not the store's"));
        }
        entry.version.get_or_insert_with(|| version.to_owned());
        Ok(entry)
    }

    async fn take(
        &self,
        person: &Person,
        batch: &mut Vec<Entry>,
        account: &mut Account,
    ) -> Result<()> {
        let entries = std::mem::take(batch);
        if entries.is_empty() {
            return Ok(());
        }
        let now = self.engine.now();
        let remember = |entry: &Entry| {
            let draft = Box::new(map::draft(entry, person, now));
            (Mutation::Remember { draft, id: Some(entry.id) }, Wish::default())
        };
        let changes = entries.iter().map(remember).collect();
        let done = self.engine.mutate_all(NAME, &person.call, changes).await?;
        let mut known = Vec::new();
        for (entry, each) in entries.into_iter().zip(done) {
            match each {
                Each::Refused { code, .. } if code == "conflict" => known.push(entry),
                each @ (Each::Done(_) | Each::Held(_) | Each::Refused { .. }) => {
                    settle(account, entry.id, each);
                }
            }
        }
        self.replace(person, known, now, account).await
    }

    /// Settles entries whose id is known already.
    async fn replace(
        &self,
        person: &Person,
        known: Vec<Entry>,
        now: Timestamp,
        account: &mut Account,
    ) -> Result<()> {
        let mut changes = Vec::new();
        let mut ids = Vec::new();
        for entry in known {
            let wanted = vec![Reference::Memory(entry.id)];
            let stored =
                match self.engine.chain(&person.call, wanted, Purpose::Change("import")).await {
                    Ok(chain) => chain.asked,
                    Err(Error::NotFound) => {
                        account.reject(entry.id.to_string(), "not found");
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
            let stands = map::of_version(&stored, person);
            let brought = map::draft(&entry, person, now);
            let brought = map::of_content(&brought.content, entry.id, now, person);
            let same = match (&stands, &brought) {
                (Some(one), Some(other)) => {
                    jcs::canonical_without(one, &["id"]) == jcs::canonical_without(other, &["id"])
                }
                _ => false,
            };
            if same {
                account.skipped += 1;
                continue;
            }
            let sure = stored.content.lifecycle.confidence.unwrap_or(1.0);
            if entry.confidence.as_f64().is_none_or(|brought| brought <= sure) {
                let reason = "duplicate: the stored confidence is equal or higher";
                account.reject(entry.id.to_string(), reason);
                continue;
            }
            let patch = Box::new(map::replacement(&entry, person, &stored));
            let expected = Some(stored.number);
            let revise = Mutation::Revise { memory: stored.memory, patch, expected };
            changes.push((revise, Wish::default()));
            ids.push(entry.id);
        }
        if changes.is_empty() {
            return Ok(());
        }
        let done = self.engine.mutate_all(NAME, &person.call, changes).await?;
        for (id, each) in ids.into_iter().zip(done) {
            settle(account, id, each);
        }
        Ok(())
    }

    /// A model that is enclosed replaces an older one.
    async fn take_model(&self, person: &Person, model: Value) -> Result<&'static str> {
        let Value::Object(document) = model else { return Ok("rejected") };
        let Ok(model) = Model::read(document) else { return Ok("rejected") };
        if model.user != person.identity.owner() && model.user != person.identity.did() {
            return Ok("rejected");
        }
        match self.engine.put_profile(&person.call, model.version, model.document).await {
            Ok(_) => Ok("imported"),
            Err(Error::Conflict { .. }) => Ok("skipped"),
            Err(Error::Forbidden { .. }) => Ok("rejected"),
            Err(error) => Err(error.into()),
        }
    }
}

fn settle(account: &mut Account, id: MemoryId, each: Each) {
    match each {
        Each::Done(_) => account.imported += 1,
        Each::Held(hold) => account.reject(id.to_string(), format!("pending approval: {hold}")),
        Each::Refused { reason, .. } => account.reject(id.to_string(), reason),
    }
}

fn summary(user: &str, account: Account, model: Option<&str>) -> Value {
    let mut summary = json!({
        "user_id": user,
        "imported": account.imported,
        "skipped": account.skipped,
        "rejected": account.rejections.len(),
        "id_mappings": {},
    });
    if !account.rejections.is_empty() {
        let told = |(id, reason): &(Value, String)| json!({"id": id, "reason": reason});
        summary["rejections"] = account.rejections.iter().map(told).collect();
    }
    if let Some(model) = model {
        summary["user_model"] = model.into();
    }
    summary
}
