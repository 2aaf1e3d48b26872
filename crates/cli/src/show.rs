//! How memories, versions and diffs look to people.

use yore_domain::class::Label;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::hold::DiffLine;
use yore_domain::memory::{Content, Memory, Version};
use yore_domain::scope::Scope;

use crate::failure::Result;
use crate::output::{BAD, DIM, GOOD, HEAD, ID, Output, WARN, clean, short};

/// A memory in a list: a line of facts, then the text.
pub(crate) fn brief(out: &Output, version: &Version, lead: &str) -> Result {
    let mut facts = vec![version.content.kind.to_string(), out.ago(version.time.created)];
    if !version.status.is_live() {
        facts.push(version.status.as_str().to_owned());
    }
    if version.number > 1 {
        facts.push(format!("version {}", version.number));
    }
    facts.extend(place(&version.content.scope));
    facts.extend(marks(&version.content));
    let facts = clean(&facts.join(" · "));
    let id = short(version.memory);
    out.line(format!("{ID}{id}{ID:#}  {lead}{DIM}{facts}{DIM:#}"))?;
    out.line(out.wrapped(&version.content.body.text, 10))
}

/// A message found by a search.
pub(crate) fn message(
    out: &Output,
    conversation: &Conversation,
    position: u64,
    message: &Message,
    lead: &str,
) -> Result {
    let title = conversation.title.as_deref().unwrap_or("untitled conversation");
    let role = format!("{:?}", message.role).to_lowercase();
    let facts = clean(&format!(
        "{title} · {} · {role} · message {} · {}",
        conversation.platform,
        position + 1,
        out.ago(message.at)
    ));
    let id = short(conversation.id);
    out.line(format!("{ID}{id}{ID:#}  {lead}{DIM}{facts}{DIM:#}"))?;
    let text: String = message.text.chars().take(600).collect();
    let more = if text.len() < message.text.len() { " …" } else { "" };
    out.line(out.wrapped(&format!("{text}{more}"), 10))
}

/// A memory in full.
pub(crate) fn full(out: &Output, memory: &Memory) -> Result {
    let mut rows = facts(out, &memory.head);
    let usage = &memory.usage;
    if usage.recalls > 0 {
        let last = usage.recalled.map(|at| format!(", last {}", out.ago(at))).unwrap_or_default();
        let times = if usage.recalls == 1 { "once" } else { &format!("{} times", usage.recalls) };
        rows.push(("recalled", format!("{times}{last}")));
    }
    let fared = usage.feedback;
    if fared != Default::default() {
        rows.push((
            "feedback",
            format!(
                "{} followed, {} overridden, {} ignored, {} contradicted",
                fared.followed, fared.overridden, fared.ignored, fared.contradicted
            ),
        ));
    }
    if usage.demoted {
        rows.push(("demoted", "yes".to_owned()));
    }
    if memory.legal_hold {
        rows.push(("legal hold", "yes: it cannot be erased".to_owned()));
    }
    whole(out, &memory.head, &rows)
}

/// One version in full.
pub(crate) fn version(out: &Output, version: &Version) -> Result {
    whole(out, version, &facts(out, version))
}

fn whole(out: &Output, version: &Version, rows: &[(&str, String)]) -> Result {
    out.line(format!("{HEAD}{ID}{}{ID:#}{HEAD:#}", version.memory))?;
    members(out, rows)?;
    out.line("")?;
    out.line(out.wrapped(&version.content.body.text, 2))
}

fn facts(out: &Output, version: &Version) -> Vec<(&'static str, String)> {
    let content = &version.content;
    let mut rows = vec![
        ("version", format!("{} ({:?})", version.number, version.cause).to_lowercase()),
        ("status", version.status.as_str().to_owned()),
        ("kind", format!("{}, {}", content.kind, content.facet.as_str())),
        ("created", format!("{} ({})", version.time.created, out.ago(version.time.created))),
    ];
    if version.time.valid_from != version.time.created {
        rows.push(("true from", version.time.valid_from.to_string()));
    }
    rows.extend(version.time.valid_to.map(|to| ("true until", to.to_string())));
    rows.extend(version.ends().map(|at| ("ends", format!("{at} ({})", out.ago(at)))));
    rows.extend(place(&content.scope).map(|place| ("scope", place)));
    rows.extend(marks(content).map(|marks| ("marks", marks)));
    let surely = |value: Option<f64>| value.map(|value| format!("{value:.2}"));
    rows.extend(surely(content.lifecycle.confidence).map(|sure| ("confidence", sure)));
    rows.extend(surely(content.lifecycle.salience).map(|weight| ("salience", weight)));
    let origin = &content.provenance;
    let from: Vec<&str> = [origin.actor.as_str(), origin.method.as_str()]
        .into_iter()
        .chain(origin.source.as_deref())
        .chain(origin.provider.as_deref())
        .filter(|part| !part.is_empty())
        .collect();
    if !from.is_empty() {
        rows.push(("origin", from.join(", ")));
    }
    rows.extend(version.writer.as_ref().map(|writer| ("written by", writer.clone())));
    for relation in &content.relations {
        rows.push(("relation", format!("{} {}", relation.kind, relation.target)));
    }
    if !version.absorbs.is_empty() {
        let ids: Vec<String> = version.absorbs.iter().map(ToString::to_string).collect();
        rows.push(("absorbed", ids.join(", ")));
    }
    rows.extend(version.absorbed_by.map(|by| ("merged into", by.to_string())));
    if let Some(structured) = &content.body.structured {
        rows.push(("structured", serde_json::Value::Object(structured.clone()).to_string()));
    }
    rows
}

/// Named values, one a line, values aligned and wrapped.
pub(crate) fn members(out: &Output, rows: &[(&str, String)]) -> Result {
    let column = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(10);
    for (name, value) in rows {
        let value = out.wrapped(value, column + 4);
        out.line(format!("  {DIM}{name:column$}{DIM:#}  {}", value.trim_start()))?;
    }
    Ok(())
}

/// What approval would change.
pub(crate) fn diff(out: &Output, lines: &[DiffLine]) -> Result {
    let said = |value: &serde_json::Value| {
        clean(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    for line in lines {
        out.line(format!("  {WARN}{}{WARN:#}", clean(&line.field)))?;
        for (value, sign, style) in [(&line.before, '-', BAD), (&line.after, '+', GOOD)] {
            if let Some(value) = value {
                for part in out.wrapped(&said(value), 6).lines() {
                    out.line(format!("    {style}{sign} {}{style:#}", part.trim_start()))?;
                }
            }
        }
    }
    Ok(())
}

fn place(scope: &Scope) -> Option<String> {
    let parts: Vec<String> = [
        ("project", &scope.project),
        ("user", &scope.user),
        ("agent", &scope.agent),
        ("session", &scope.session),
    ]
    .into_iter()
    .filter_map(|(name, value)| value.as_ref().map(|value| format!("{name} {value}")))
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn marks(content: &Content) -> Option<String> {
    let labels = content.governance.labels.iter().map(Label::to_string);
    let class = content.governance.sensitivity.map(|class| class.as_str().to_owned());
    let tags = content.tags.iter().map(|tag| format!("#{tag}"));
    let parts: Vec<String> = class.into_iter().chain(labels).chain(tags).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}
