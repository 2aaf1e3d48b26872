//! Who did what, and whether the chain of it is whole.

use askama::Template;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use yore_domain::audit::Entry;
use yore_domain::{Error, Result, Seq};
use yore_engine::AuditQuery;

use super::{Line, end_of, start_of};
use crate::form::{Form, query};
use crate::markup::grouped;
use crate::trouble::{Page, shown};
use crate::visit::{Posted, Shell, Visit};

const ROWS: usize = 60;
/// How many entries an export holds.
const EXPORTED: usize = 100_000;

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    shell: Shell,
    lines: Vec<Line>,
    operation: String,
    agent: String,
    memory: String,
    from: String,
    until: String,
    older: Option<String>,
    export: String,
    verdict: Option<Verdict>,
}

/// What a check of the chain found.
struct Verdict {
    entries: String,
    checkpoints: String,
    faults: Vec<(u64, String)>,
}

pub(crate) async fn show(visit: Visit) -> Page {
    page(&visit, None).await
}

/// Checks every link of the chain.
pub(crate) async fn verify(Posted { visit, .. }: Posted) -> Page {
    let report = visit.engine().verify_audit(&visit.call).await?;
    let verdict = Verdict {
        entries: grouped(report.entries),
        checkpoints: grouped(report.checkpoints),
        faults: report.faults.into_iter().map(|fault| (fault.seq.0, fault.what)).collect(),
    };
    page(&visit, Some(verdict)).await
}

async fn page(visit: &Visit, verdict: Option<Verdict>) -> Page {
    let form = &visit.query;
    let wanted = AuditQuery { limit: ROWS, newest_first: true, ..wanted(form)? };
    let entries = visit.engine().audit(&visit.call, wanted).await?;
    let text = |name: &str| form.get(name).unwrap_or_default().to_owned();
    let older = entries
        .last()
        .filter(|_| entries.len() == ROWS)
        .map(|last| format!("/app/audit?{}", asked(form, &last.seq.0.to_string())));
    Ok(shown(&AuditPage {
        shell: visit.shell("audit"),
        lines: entries.into_iter().map(Line::from).collect(),
        operation: text("operation"),
        agent: text("agent"),
        memory: text("memory"),
        from: text("from"),
        until: text("until"),
        older,
        export: format!("/app/audit/export?{}", asked(form, "")),
        verdict,
    }))
}

/// The filter of an address again, before an entry.
fn asked(form: &Form, before: &str) -> String {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for name in ["operation", "agent", "memory", "from", "until"] {
        pairs.push((name, form.get(name).unwrap_or_default()));
    }
    pairs.push(("before", before));
    query(&pairs)
}

fn wanted(form: &Form) -> Result<AuditQuery> {
    let memory = form
        .get("memory")
        .map(|id| id.parse().map_err(|_| Error::invalid("memory", "must be the id of a memory")));
    let before = form.get("before").map(|number| {
        number.parse().map(Seq).map_err(|_| Error::invalid("before", "must be a number"))
    });
    Ok(AuditQuery {
        operation: form.get("operation").map(str::to_owned),
        agent: form.get("agent").map(str::to_owned),
        memory: memory.transpose()?,
        before: before.transpose()?,
        from: form.get("from").map(start_of).transpose()?,
        until: form.get("until").map(end_of).transpose()?,
        ..AuditQuery::default()
    })
}

/// Hands the chain out, an entry a line.
pub(crate) async fn export(visit: Visit) -> Page {
    let mut query = AuditQuery { limit: 1000, ..wanted(&visit.query)? };
    let mut text = String::new();
    let mut taken = 0;
    loop {
        let some = visit.engine().audit(&visit.call, query.clone()).await?;
        let Some(last) = some.last().map(|entry: &Entry| entry.seq) else { break };
        taken += some.len();
        for entry in &some {
            text.push_str(&serde_json::to_string(entry).map_err(Error::internal)?);
            text.push('\n');
        }
        if some.len() < 1000 || taken >= EXPORTED {
            break;
        }
        query.after = last;
    }
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson")),
        (CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"audit.ndjson\"")),
    ];
    Ok((head, text).into_response())
}
