//! One memory: what it says, where it came from, how it changed, who read it.

use askama::Template;
use axum::extract::Path;
use yore_domain::audit::{Actor, Entry};
use yore_domain::class::{Governance, Label, Sensitivity};
use yore_domain::kind::Kind;
use yore_domain::memory::{Body, Cause, Status, Version};
use yore_domain::mutation::{Depth, Mutation, Patch, Relabel};
use yore_domain::{Error, MemoryId, Result, Timestamp};
use yore_engine::{AuditQuery, Effect, Reference, Wish};

use super::{Line, back, seen};
use crate::diff::{self, Part};
use crate::draw;
use crate::markup::{Markup, minute};
use crate::trouble::{Page, shown};
use crate::visit::{Posted, Shell, Visit};

/// How many lines of the audit chain a memory shows.
const LINES: usize = 40;

/// How many lines are looked at for them.
const LOOKED_AT: usize = 400;

/// Whether it says that the owner opened a page: who looks at this one knows.
fn is_own_look(entry: &Entry) -> bool {
    let draft = &entry.draft;
    let looks = matches!(draft.operation.as_str(), "get" | "history" | "recall" | "list");
    looks && draft.actor == Actor::Owner && draft.protocol == crate::NAME
}

#[derive(Template)]
#[template(path = "memory.html")]
struct MemoryPage {
    shell: Shell,
    id: String,
    number: u32,
    text: String,
    structured: Option<String>,
    kind: &'static str,
    facet: &'static str,
    status: &'static str,
    is_live: bool,
    is_erased: bool,
    labels: String,
    sensitivity: &'static str,
    facts: Vec<(&'static str, String)>,
    messages: Vec<(String, String)>,
    evidence: Vec<String>,
    relations: Vec<Related>,
    graph: Option<Markup>,
    validity: Markup,
    history: Vec<Step>,
    reads: Vec<Line>,
    legal_hold: bool,
    kinds: [&'static str; 6],
    sensitivities: [&'static str; 4],
}

/// A link to something else.
struct Related {
    kind: String,
    target: String,
    /// The page of it, when it is a memory.
    href: Option<String>,
}

/// One version, compared with the one before.
struct Step {
    number: u32,
    cause: &'static str,
    writer: String,
    at: Timestamp,
    parts: Vec<Part>,
    other: Vec<String>,
    can_return: bool,
}

#[derive(Template)]
#[template(path = "receipt.html")]
struct ReceiptPage {
    shell: Shell,
    id: String,
    line: Option<Line>,
    when: String,
}

fn named(id: &str) -> Result<MemoryId> {
    id.parse().map_err(|_| Error::NotFound)
}

pub(crate) async fn show(Path(id): Path<String>, visit: Visit) -> Page {
    let id = named(&id)?;
    let (engine, call) = (visit.engine(), &visit.call);
    let versions = engine.history(call, id).await?;
    let memory = match engine.get(call, Reference::Memory(id)).await {
        Ok(memory) => Some(memory),
        Err(Error::NotFound) => None,
        Err(error) => return Err(error.into()),
    };
    let (limit, newest_first) = (LOOKED_AT, true);
    let query = AuditQuery { memory: Some(id), limit, newest_first, ..AuditQuery::default() };
    let touched = seen(engine.audit(call, query).await)?.into_iter();
    let reads = touched.filter(|entry| !is_own_look(entry)).take(LINES).map(Line::from).collect();
    let head = versions.last().ok_or(Error::NotFound)?;
    let content = &head.content;
    let recalls = memory.as_ref().map(|memory| memory.usage.recalls.to_string());
    let mut facts = facts(head);
    facts.extend(recalls.map(|recalls| ("recalled", format!("{recalls} times"))));
    Ok(shown(&MemoryPage {
        shell: visit.shell("search"),
        id: id.to_string(),
        number: head.number,
        text: content.body.text.clone(),
        structured: content
            .body
            .structured
            .as_ref()
            .map(|members| format!("{:#}", serde_json::Value::Object(members.clone()))),
        kind: content.kind.as_str(),
        facet: content.facet.as_str(),
        status: head.status.as_str(),
        is_live: head.status.is_live(),
        is_erased: head.status == Status::Erased,
        labels: content.governance.labels.iter().map(Label::as_str).collect::<Vec<_>>().join(", "),
        sensitivity: content.governance.sensitivity.unwrap_or_default().as_str(),
        facts,
        messages: sources(head),
        evidence: content.provenance.evidence.iter().map(|one| one.reference.clone()).collect(),
        relations: content.relations.iter().map(related).collect(),
        graph: (!content.relations.is_empty()).then(|| draw::relations(&content.relations)),
        validity: draw::validity(&versions, engine.now()),
        history: history(&versions),
        reads,
        legal_hold: memory.is_some_and(|memory| memory.legal_hold),
        kinds: Kind::ALL.map(Kind::as_str),
        sensitivities: Sensitivity::ALL.map(Sensitivity::as_str),
    }))
}

/// What is known of a version besides its text.
fn facts(head: &Version) -> Vec<(&'static str, String)> {
    let content = &head.content;
    let origin = &content.provenance;
    let mut facts = vec![
        ("said by", origin.actor.clone()),
        ("written by", head.writer.clone().unwrap_or_else(|| "you".into())),
        ("method", origin.method.clone()),
        ("made", minute(head.time.created)),
        ("true from", minute(head.time.valid_from)),
        ("visibility", content.scope.visibility.as_str().to_owned()),
    ];
    let optional = [
        ("true until", head.time.valid_to.map(minute)),
        ("source", origin.source.clone()),
        ("imported from", origin.provider.clone()),
        ("about", content.scope.user.clone()),
        ("project", content.scope.project.clone()),
        ("agent", content.scope.agent.clone()),
        ("session", content.scope.session.clone()),
        ("confidence", content.lifecycle.confidence.map(|value| format!("{value:.2}"))),
        ("matters", content.lifecycle.salience.map(|value| format!("{value:.2}"))),
        ("expires", content.lifecycle.expires.map(minute)),
        ("tags", (!content.tags.is_empty()).then(|| content.tags.join(", "))),
        ("signed by", content.seal.as_ref().map(|seal| seal.signer.clone())),
        ("merged into", head.absorbed_by.map(|other| other.to_string())),
    ];
    facts.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

/// The pages of the messages it was drawn from.
fn sources(head: &Version) -> Vec<(String, String)> {
    let place = |from: &yore_domain::provenance::MessageRef| {
        let href = format!("/app/conversations/{}?message={}", from.conversation, from.message);
        (href, from.message.to_string())
    };
    head.content.provenance.messages.iter().map(place).collect()
}

fn related(relation: &yore_domain::memory::Relation) -> Related {
    let memory = relation.target.parse::<MemoryId>().ok();
    Related {
        kind: relation.kind.clone(),
        target: relation.target.clone(),
        href: memory.map(|memory| format!("/app/memory/{memory}")),
    }
}

/// All versions, newest first, each compared with the one before.
fn history(versions: &[Version]) -> Vec<Step> {
    let mut steps = Vec::with_capacity(versions.len());
    let mut before: Option<&Version> = None;
    for (place, version) in versions.iter().enumerate() {
        let text = &version.content.body.text;
        let was = before.map_or("", |before| before.content.body.text.as_str());
        let is_head = place + 1 == versions.len();
        steps.push(Step {
            number: version.number,
            cause: cause(version.cause),
            writer: version.writer.clone().unwrap_or_else(|| "you".into()),
            at: version.recorded,
            parts: diff::words(was, text),
            other: before.map(|before| others(before, version)).unwrap_or_default(),
            can_return: !is_head && version.status.is_live(),
        });
        before = Some(version);
    }
    steps.reverse();
    steps
}

fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Created => "made",
        Cause::Revised => "changed",
        Cause::Relabelled => "relabelled",
        Cause::Reinforced => "said again",
        Cause::Merged => "others merged in",
        Cause::Absorbed => "merged into another",
        Cause::Tombstoned => "forgotten",
        Cause::Expired => "expired",
        Cause::Quarantined => "put aside",
        Cause::Restored => "restored",
    }
}

/// What changed besides the text.
fn others(before: &Version, after: &Version) -> Vec<String> {
    let (old, new) = (&before.content, &after.content);
    let labels = |governance: &Governance| {
        let names: Vec<&str> = governance.labels.iter().map(Label::as_str).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let class = |governance: &Governance| governance.sensitivity.unwrap_or_default().as_str();
    let mut said = Vec::new();
    let mut note = |what: &str, old: String, new: String| {
        if old != new {
            said.push(format!("{what}: {old} → {new}"));
        }
    };
    note("labels", labels(&old.governance), labels(&new.governance));
    note("sensitivity", class(&old.governance).into(), class(&new.governance).into());
    note("kind", old.kind.as_str().into(), new.kind.as_str().into());
    note("status", before.status.as_str().into(), after.status.as_str().into());
    said
}

/// Saves a new version.
pub(crate) async fn revise(Path(id): Path<String>, Posted { visit, form }: Posted) -> Page {
    let id = named(&id)?;
    let memory = visit.engine().get(&visit.call, Reference::Memory(id)).await?;
    let expected = form.get("number").and_then(|number| number.parse().ok());
    let kind = form.get("kind").map(str::parse::<Kind>).transpose()?;
    let body = Body { text: form.text("text"), structured: memory.head.content.body.structured };
    let kind = kind.filter(|kind| *kind != memory.head.content.kind);
    let patch = Patch { body: Some(body), kind, ..Patch::default() };
    change(&visit, id, Mutation::Revise { memory: id, patch: Box::new(patch), expected }, "revised")
        .await
}

/// Changes who may see it.
pub(crate) async fn label(Path(id): Path<String>, Posted { visit, form }: Posted) -> Page {
    let id = named(&id)?;
    let memory = visit.engine().get(&visit.call, Reference::Memory(id)).await?;
    let labels = form.list("labels").into_iter().map(Label::new).collect::<Result<_>>()?;
    let governance = Governance {
        labels,
        sensitivity: form.get("sensitivity").map(Sensitivity::parse).transpose()?,
        handling: memory.head.content.governance.handling,
    };
    let relabel = Relabel { governance: Some(governance), ..Relabel::default() };
    change(&visit, id, Mutation::Relabel { memory: id, change: Box::new(relabel) }, "labelled")
        .await
}

/// Puts it out of recall.
pub(crate) async fn forget(Path(id): Path<String>, Posted { visit, .. }: Posted) -> Page {
    let id = named(&id)?;
    change(&visit, id, forgetting(id, Depth::Tombstone), "forgotten").await
}

/// Brings an earlier version back.
pub(crate) async fn restore(Path(id): Path<String>, Posted { visit, form }: Posted) -> Page {
    let id = named(&id)?;
    let number = form.get("number").and_then(|number| number.parse().ok());
    let number = number.ok_or_else(|| Error::invalid("number", "must be a version"))?;
    change(&visit, id, Mutation::Restore { memory: id, number }, "restored").await
}

/// Removes it for good, and shows what proves that.
pub(crate) async fn erase(Path(id): Path<String>, Posted { visit, form }: Posted) -> Page {
    let id = named(&id)?;
    if form.get("sure") != Some("yes") {
        return Err(Error::invalid("sure", "say that you mean it").into());
    }
    let (engine, call) = (visit.engine(), &visit.call);
    engine.mutate(call, forgetting(id, Depth::Erase), Wish::default()).await?;
    let query =
        AuditQuery { memory: Some(id), limit: 1, newest_first: true, ..AuditQuery::default() };
    let line = seen(engine.audit(call, query).await)?.into_iter().next().map(Line::from);
    let when = minute(engine.now());
    Ok(shown(&ReceiptPage { shell: visit.shell("search"), id: id.to_string(), line, when }))
}

fn forgetting(memory: MemoryId, depth: Depth) -> Mutation {
    Mutation::Forget { memories: vec![memory], depth, reason: None }
}

async fn change(visit: &Visit, id: MemoryId, mutation: Mutation, code: &'static str) -> Page {
    let done = visit.engine().mutate(&visit.call, mutation, Wish::default()).await?;
    let code = if done.effect == Effect::Unchanged { "unchanged" } else { code };
    Ok(back(&format!("/app/memory/{id}"), code))
}
