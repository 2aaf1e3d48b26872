//! Taking everything out, page by page, as one document.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::{Value, json};
use yore_domain::Error;
use yore_domain::grant::Verb;
use yore_domain::query::{Filter, PageRequest, Position};
use yore_engine::Call;

use crate::error::Result;
use crate::map;
use crate::person::Person;
use crate::wire::Object;
use crate::{Oamp, VERSION};

/// Entries of one page.
const PAGE: usize = 500;

/// The version of a store without governance.
const PLAIN: &str = "1.0.0";

/// An export under way.
struct Export {
    oamp: Oamp,
    person: Person,
    next: Next,
    first: bool,
    governed: bool,
}

/// What comes next.
#[derive(Debug)]
enum Next {
    Page(Option<Position>),
    End,
    Nothing,
}

impl Oamp {
    /// Writes a person's store in pieces. What can be refused is refused before the first.
    pub(crate) async fn export(
        &self,
        call: &Call,
        user: &str,
    ) -> Result<BoxStream<'static, Result<Bytes, Error>>> {
        let person = match self.person(call, Some(user), Verb::Read).await {
            Ok(person) => person,
            Err(refusal) if refusal.status == 404 => {
                let store = json!({
                    "oamp_version": PLAIN,
                    "type": "knowledge_store",
                    "user_id": user,
                    "entries": [],
                    "exported_at": self.engine.now().to_string(),
                });
                let whole = Bytes::from(store.to_string());
                return Ok(stream::once(async { Ok(whole) }).boxed());
            }
            Err(refusal) => return Err(refusal),
        };
        let governed = !person.is_direct();
        let head = json!({
            "type": "knowledge_store",
            "user_id": person.identity.owner(),
            "exported_at": self.engine.now().to_string(),
        });
        let mut head = head.to_string();
        head.truncate(head.len() - 1);
        head.push_str(",\"entries\":[");
        let mut export =
            Export { oamp: self.clone(), person, next: Next::Page(None), first: true, governed };
        let mut begun = VecDeque::from([Bytes::from(head)]);
        begun.extend(export.piece().await?);
        let begun = stream::iter(begun.into_iter().map(Ok));
        let rest = stream::unfold(export, |mut export| async move {
            let piece = export.piece().await.transpose()?;
            if piece.is_err() {
                export.next = Next::Nothing;
            }
            Some((piece, export))
        });
        Ok(begun.chain(rest).boxed())
    }
}

impl Export {
    async fn piece(&mut self) -> std::result::Result<Option<Bytes>, Error> {
        match self.next {
            Next::Nothing => Ok(None),
            Next::Page(after) => self.page(after).await.map(Some),
            Next::End => {
                self.next = Next::Nothing;
                self.end().await.map(Some)
            }
        }
    }

    async fn page(&mut self, after: Option<Position>) -> std::result::Result<Bytes, Error> {
        let page = PageRequest { limit: PAGE, after, ..PageRequest::default() };
        let call = &self.person.call;
        let found = self.oamp.engine.export_heads(call, Filter::default(), page).await?;
        let mut text = Vec::with_capacity(found.items.len() * 512);
        for memory in &found.items {
            let Some(entry) = map::entry(memory, &self.person) else { continue };
            self.governed |= entry.contains_key("governance") || entry.contains_key("provenance");
            if !std::mem::take(&mut self.first) {
                text.push(b',');
            }
            serde_json::to_writer(&mut text, &entry).map_err(Error::internal)?;
        }
        self.next = match found.next {
            Some(next) => Next::Page(Some(next)),
            None => Next::End,
        };
        Ok(text.into())
    }

    /// The version stands last: only now is it known what the entries use.
    async fn end(&self) -> std::result::Result<Bytes, Error> {
        let mut tail = Object::new();
        match self.oamp.engine.export_profile(&self.person.call).await {
            Ok(profile) => {
                tail.insert("metadata".into(), json!({"user_model": profile.document}));
            }
            Err(Error::NotFound) => {}
            Err(error) => return Err(error),
        }
        let version = if self.governed { VERSION } else { PLAIN };
        tail.insert("oamp_version".into(), version.into());
        let tail = Value::Object(tail).to_string();
        Ok(Bytes::from(format!("],{}", &tail[1..])))
    }
}
