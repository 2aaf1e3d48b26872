//! Memory records of two hosts. Where both changed one, what the other says becomes a proposal.

use http::Method;
use http::header::{HeaderName, IF_MATCH};
use serde_json::Value;
use yore_client::api::{self, Decision};
use yore_client::input;
use yore_domain::HoldId;
use yore_domain::hold::HoldState;

use super::book::{Apart, Thing, digest};
use super::hosts::{Doc, Pair, Side};
use crate::failure::{Exit, Failure, Result};

impl Pair<'_> {
    /// Brings a record into step.
    pub(super) async fn record(&mut self, thing: &Thing) -> Result {
        let Some(found) = self.both(thing).await? else { return Ok(()) };
        match found {
            [None, None] => {
                self.book.gone(thing);
                Ok(())
            }
            [Some(here), None] => self.alone(thing, Side::Here, here).await,
            [None, Some(there)] => self.alone(thing, Side::There, there).await,
            [Some(here), Some(there)] => self.compared(thing, here, there).await,
        }
    }

    /// One side has it: it is new there, or the other deleted it.
    async fn alone(&mut self, thing: &Thing, side: Side, doc: Doc) -> Result {
        if self.book.apart.get(thing) == Some(&Apart::Deleted) || !self.only.takes(&doc.body) {
            return Ok(());
        }
        let print = essence(&doc.body);
        let agreed = self.book.agreed(thing).cloned();
        let deleted = self.news(side.other(), thing).is_some_and(|news| news.deleted);
        if agreed.is_none() && !deleted {
            return self.put(thing, side.other(), &doc, None).await;
        }
        let unchanged = match &agreed {
            Some((here, there)) => print == *if side == Side::Here { here } else { there },
            // They never met: what was deleted after it last changed was deleted knowingly.
            None => self.later(thing, side),
        };
        let path = match unchanged {
            true => thing.path(),
            false => format!("{}?propose=true", thing.path()),
        };
        let demand = [(IF_MATCH, doc.tag.clone())];
        let answer = self.peer(side).ask(Method::DELETE, &path, &demand, None).await?;
        if answer.status.as_u16() == 202 {
            self.book.apart.insert(thing.clone(), Apart::Deleted);
            self.sum.proposed += 1;
            return Ok(());
        }
        answer.good(self.peer(side))?;
        self.sum.to(side).deleted += 1;
        self.book.gone(thing);
        Ok(())
    }

    /// Whether the other side deleted it after this one last changed it.
    pub(super) fn later(&self, thing: &Thing, side: Side) -> bool {
        let at = |side| self.news(side, thing).and_then(|news| news.at);
        match (at(side.other()), at(side)) {
            (Some(deleted), Some(changed)) => deleted > changed,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    async fn compared(&mut self, thing: &Thing, here: Doc, there: Doc) -> Result {
        let (ours, theirs) = (essence(&here.body), essence(&there.body));
        if ours == theirs {
            self.settled(thing).await?;
            self.book.agree(thing, ours, theirs);
            return Ok(());
        }
        if !self.only.takes(&here.body) && !self.only.takes(&there.body) {
            return Ok(());
        }
        if let Some(Apart::Proposed { hold, here: before, there: then }) =
            self.book.apart.get(thing).cloned()
        {
            let moved = (ours != before, theirs != then);
            return match (self.decided(&hold).await?, moved) {
                (HoldState::Pending, (false, false)) => {
                    self.sum.waiting += 1;
                    Ok(())
                }
                // Somebody looked at both, and what is here stands.
                (HoldState::Approved | HoldState::Rejected | HoldState::Expired, (_, false)) => {
                    self.put(thing, Side::There, &here, Some(&there)).await
                }
                (HoldState::Pending, _) => {
                    self.settled(thing).await?;
                    self.propose(thing, here, there).await
                }
                (HoldState::Approved | HoldState::Rejected | HoldState::Expired, _) => {
                    self.propose(thing, here, there).await
                }
            };
        }
        match self.book.agreed(thing) {
            Some((before, then)) => match (ours != *before, theirs != *then) {
                (true, false) => self.put(thing, Side::There, &here, Some(&there)).await,
                (false, true) => self.put(thing, Side::Here, &there, Some(&here)).await,
                (true, true) => self.propose(thing, here, there).await,
                (false, false) => Ok(()),
            },
            None => self.propose(thing, here, there).await,
        }
    }

    /// Puts a record in the place of what a side has.
    async fn put(&mut self, thing: &Thing, to: Side, doc: &Doc, instead: Option<&Doc>) -> Result {
        if is_kept_inside(&doc.body) {
            self.sum.kept_inside += 1;
            return Ok(());
        }
        let demand: Vec<(HeaderName, String)> =
            instead.map(|doc| (IF_MATCH, doc.tag.clone())).into_iter().collect();
        let path = thing.path();
        let answer = self.peer(to).ask(Method::PUT, &path, &demand, Some(&doc.body)).await?;
        if answer.is_deleted() {
            self.book.apart.insert(thing.clone(), Apart::Deleted);
            self.sum.apart.push(thing.called());
            return Ok(());
        }
        if answer.status.as_u16() == 202 {
            self.sum.held += 1;
            return Ok(());
        }
        let answer = answer.good(self.peer(to))?;
        if answer.body["id"] != thing.id() {
            return Err(Failure::failed(format!("{} gave it another id", self.peer(to).name)));
        }
        let (from, arrived) = (essence(&doc.body), essence(&answer.body));
        if from == arrived {
            self.leave(to, thing, answer.tag);
        }
        match to {
            Side::Here => self.book.agree(thing, arrived, from),
            Side::There => self.book.agree(thing, from, arrived),
        }
        self.sum.to(to).memories += 1;
        Ok(())
    }

    /// Lets a person decide between what is here and what the other says.
    async fn propose(&mut self, thing: &Thing, here: Doc, there: Doc) -> Result {
        if is_kept_inside(&there.body) {
            self.sum.kept_inside += 1;
            return Ok(());
        }
        let path = format!("{}?propose=true", thing.path());
        let demand = [(IF_MATCH, here.tag.clone())];
        let answer =
            self.peer(Side::Here).ask(Method::PUT, &path, &demand, Some(&there.body)).await?;
        if answer.status.as_u16() != 202 {
            answer.good(self.peer(Side::Here))?;
            return Err(Failure::failed("a proposal was carried out at once"));
        }
        let hold = answer.detail("hold").unwrap_or_default().to_owned();
        let (here, there) = (essence(&here.body), essence(&there.body));
        self.book.apart.insert(thing.clone(), Apart::Proposed { hold, here, there });
        self.sum.proposed += 1;
        Ok(())
    }

    /// How a proposal stands; one that is gone was turned down.
    async fn decided(&mut self, hold: &str) -> Result<HoldState> {
        let Ok(hold) = hold.parse::<HoldId>() else { return Ok(HoldState::Rejected) };
        match self.session.call::<api::ShowHold>(input::OneHold { hold }).await {
            Ok(case) => Ok(case.hold.state),
            Err(failure) if failure.exit == Exit::NotFound => Ok(HoldState::Rejected),
            Err(failure) => Err(failure),
        }
    }

    /// Takes back a proposal about which nothing is left to decide.
    async fn settled(&mut self, thing: &Thing) -> Result {
        let Some(Apart::Proposed { hold, .. }) = self.book.apart.get(thing).cloned() else {
            return Ok(());
        };
        if self.decided(&hold).await? != HoldState::Pending {
            return Ok(());
        }
        let Ok(hold) = hold.parse::<HoldId>() else { return Ok(()) };
        let note = Some("what it was about has changed since".to_owned());
        let decide = input::Decide { hold, decision: Decision::Reject, note };
        self.session.change::<api::Decide>(decide).await.map(drop)
    }
}

/// What a record says, without what every host writes for itself.
fn essence(document: &Value) -> String {
    let mut rest = document.clone();
    if let Some(object) = rest.as_object_mut() {
        for name in ["id", "created_at", "updated_at", "source_conversations"] {
            object.shift_remove(name);
        }
        if let Some(own) = object.get_mut("x_yore").and_then(Value::as_object_mut) {
            for name in ["id", "time", "provenance"] {
                own.shift_remove(name);
            }
        }
    }
    digest(&rest)
}

/// Whether consent lets a record out only in part, or not at all.
fn is_kept_inside(document: &Value) -> bool {
    let consent = &document["x_yore"]["consent"];
    let redacts = consent["redact"].as_array().is_some_and(|paths| !paths.is_empty());
    redacts || consent["exportable"] == false
}
