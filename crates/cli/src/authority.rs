//! What grants and the tokens that stand for them have in common on the command line.

use std::fmt::Display;

use anstyle::Style;
use serde::Serialize;
use yore_client::api::{self, GrantRequest, Issued};
use yore_client::input;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Grant, Labels, Verb, Verbs};
use yore_domain::regulated::is_regulated;
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Span, Timestamp};

use crate::app::App;
use crate::failure::Result;
use crate::filter::{said, sensitivity};
use crate::output::{BAD, GOOD, ID, Output, WARN, raw, short, styled};
use crate::when;

/// Bounds of a grant that is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Bounds {
    /// The highest sensitivity it touches
    #[arg(long, default_value = "internal", value_name = "CLASS", value_parser = sensitivity)]
    max: Sensitivity,
    /// Only this project's memories
    #[arg(long, short, value_name = "NAME")]
    project: Option<String>,
    #[command(flatten)]
    life: Life,
}

/// How long something holds, and what people should know about it.
#[derive(Debug, clap::Args)]
pub(crate) struct Life {
    /// How long it holds, such as 1h or 7d [default: until it is revoked]
    #[arg(long, value_name = "SPAN", value_parser = when::span)]
    pub(crate) ttl: Option<Span>,
    /// A note for people
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}

impl Bounds {
    /// Returns the request for a grant within these bounds.
    pub(crate) fn request(
        self,
        agent: AgentId,
        verbs: &[Verb],
        (read, write): (Labels, Labels),
        scope: ScopeRule,
    ) -> GrantRequest {
        GrantRequest {
            agent,
            verbs: Verbs::of(verbs),
            read,
            write,
            ceiling: self.max,
            scope: ScopeRule { project: self.project.or(scope.project), ..scope },
            ttl: self.life.ttl,
            note: self.life.note,
        }
    }
}

/// Reads the name of an agent.
pub(crate) fn agent(text: &str) -> Result<AgentId, String> {
    AgentId::new(text).map_err(said)
}

/// Reads a verb.
pub(crate) fn verb(text: &str) -> Result<Verb, String> {
    Verb::parse(text).map_err(said)
}

/// Reads a list of labels, where `any` and `*` mean every one but those of what a law protects,
/// which are named.
pub(crate) fn labels(words: &[String]) -> Result<Labels> {
    let every = |word: &&String| *word == "any" || *word == "*";
    let named = words.iter().filter(|word| !every(word)).map(|word| Label::new(word.trim()));
    let named = named.collect::<Result<Vec<Label>, _>>()?;
    if !words.iter().any(|word| every(&word)) {
        return Ok(Labels::Under(named));
    }
    let protected: Vec<Label> = named.into_iter().filter(is_regulated).collect();
    Ok(if protected.is_empty() { Labels::Any } else { Labels::AnyWith(protected) })
}

/// Returns the words for verbs.
pub(crate) fn verbs(verbs: Verbs) -> String {
    verbs.iter().map(Verb::as_str).collect::<Vec<_>>().join(",")
}

/// Gives a grant; only its token goes to standard output.
pub(crate) async fn issue(app: &App, request: GrantRequest, signed: bool) -> Result {
    let mut session = app.session().await?;
    let issued = session.change::<api::IssueGrant>(request).await?;
    drop(session);
    show_issued(app, issued, signed).await
}

/// Tells a grant that was given; its token may be one that the vault signed.
pub(crate) async fn show_issued(app: &App, mut issued: Issued, signed: bool) -> Result {
    if signed {
        let mut session = app.session().await?;
        let grant = input::OneGrant { grant: issued.grant.id };
        issued.token = session.call::<api::SignGrant>(grant).await?;
    }
    app.out.either(&issued, |issued| {
        told(app, &issued.grant);
        raw(&issued.token)
    })
}

/// Says on standard error what the token on standard output is for.
fn told(app: &App, grant: &Grant) {
    let ends = grant.expires.map_or("until it is revoked".to_owned(), |at| format!("until {at}"));
    app.out.remark(format!(
        "grant {} for {}: {}, up to {}, {ends}; the token is shown this once",
        short(grant.id),
        grant.agent,
        verbs(grant.verbs),
        grant.ceiling.as_str(),
    ));
}

/// Says what was taken back.
pub(crate) fn revoked<T: Display + Serialize>(out: &Output, ids: &[T]) -> Result {
    out.either(&serde_json::json!({ "revoked": ids }), |_| {
        ids.iter().try_for_each(|id| out.line(format!("{GOOD}revoked{GOOD:#}  {ID}{id}{ID:#}")))
    })
}

/// Says whether something still holds, and until when.
pub(crate) fn state(
    out: &Output,
    revoked: Option<Timestamp>,
    expires: Option<Timestamp>,
) -> (String, Style) {
    match (revoked, expires) {
        (Some(at), _) if at <= out.now => styled(format!("revoked {}", out.ago(at)), BAD),
        (_, Some(at)) if at <= out.now => styled(format!("ended {}", out.ago(at)), WARN),
        (_, Some(at)) => styled(format!("ends {}", out.ago(at)), GOOD),
        (_, None) => styled("holds", GOOD),
    }
}
