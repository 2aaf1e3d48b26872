//! `yore token`: makes and revokes tokens.

use clap::Subcommand;
use yore_client::api::{self, GrantRequest, TokenKind};
use yore_client::input::{self, Nothing};
use yore_domain::class::Sensitivity;
use yore_domain::grant::{Bearer, Labels, Token, Verb, Verbs};
use yore_domain::scope::{ScopeRule, Visibility};
use yore_domain::{AgentId, Span, TokenId};

use super::grant;
use crate::app::{App, Session};
use crate::failure::{Failure, Result};
use crate::filter::sensitivity;
use crate::output::{BAD, GOOD, ID, Table, WARN, cell, raw, short, styled};
use crate::{prefix, when};

/// Options of `yore token`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore token issue --verbs read,write --agent assistant
  yore token issue --verbs read --project yore --labels work --max internal --ttl 24h
  TOKEN=$(yore token owner)
  yore token list
  yore token revoke 41fe

A token is shown once and only its hash is kept. Only the token is written to standard output.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a token for an agent, with a grant of its own
    Issue(Box<Issue>),
    /// Make a token for the vault's owner, which may do everything
    Owner(Plain),
    /// Make a token for a service that acts for every owner
    Service(Plain),
    /// List tokens, without their secrets
    List {
        /// Also those that have ended
        #[arg(long)]
        all: bool,
    },
    /// Take tokens back
    Revoke {
        /// The tokens
        #[arg(required = true)]
        id: Vec<String>,
    },
}

#[derive(Debug, clap::Args)]
struct Issue {
    /// What it may do: read, write, derive, export, erase, review, grant, audit, admin
    #[arg(long, required = true, value_delimiter = ',', value_name = "VERBS", value_parser = grant::verb)]
    verbs: Vec<Verb>,
    /// Only this scope: project=NAME, user=NAME, agent=NAME or visibility=WHO
    #[arg(long, value_delimiter = ',', value_name = "MEMBER=NAME")]
    scope: Vec<String>,
    /// Only this project's memories
    #[arg(long, short, value_name = "NAME")]
    project: Option<String>,
    /// Only memories with these labels [default: any]
    #[arg(long, value_delimiter = ',', value_name = "LABELS")]
    labels: Vec<String>,
    /// The highest sensitivity it touches
    #[arg(long, default_value = "internal", value_name = "CLASS", value_parser = sensitivity)]
    max: Sensitivity,
    /// How long it holds, such as 24h [default: until it is revoked]
    #[arg(long, value_name = "SPAN", value_parser = when::span)]
    ttl: Option<Span>,
    /// Whom it is for
    #[arg(long, default_value = "agent", value_name = "NAME", value_parser = grant::agent)]
    agent: AgentId,
    /// A note for people
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Plain {
    /// How long it holds, such as 24h [default: until it is revoked]
    #[arg(long, value_name = "SPAN", value_parser = when::span)]
    ttl: Option<Span>,
    /// A note for people
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    match args.what {
        What::Issue(issue) => {
            let request = request(*issue)?;
            let mut session = app.session().await?;
            let issued = session.change::<api::IssueGrant>(request).await?;
            app.out.either(&issued, |issued| {
                grant::told(app, &issued.grant);
                raw(&issued.token)
            })
        }
        What::Owner(plain) => make(app, TokenKind::Owner, plain).await,
        What::Service(plain) => make(app, TokenKind::Service, plain).await,
        What::List { all } => list(app, all).await,
        What::Revoke { id } => {
            let mut session = app.session().await?;
            let mut revoked = Vec::new();
            for id in id {
                let token = find(&mut session, &id).await?;
                session.change::<api::RevokeToken>(input::OneToken { token }).await?;
                revoked.push(token);
            }
            let done = serde_json::json!({ "revoked": revoked });
            app.out.either(&done, |_| {
                revoked.iter().try_for_each(|id| {
                    app.out.line(format!("{GOOD}revoked{GOOD:#}  {ID}{id}{ID:#}"))
                })
            })
        }
    }
}

async fn make(app: &App, kind: TokenKind, plain: Plain) -> Result {
    let mut session = app.session().await?;
    let request = input::IssueToken { kind, ttl: plain.ttl, note: plain.note };
    let token = session.change::<api::IssueToken>(request).await?;
    let done = serde_json::json!({ "token": token });
    app.out.either(&done, |_| {
        app.out.remark("the token is shown this once; keep it like a password");
        raw(&token)
    })
}

fn request(issue: Issue) -> Result<GrantRequest> {
    let mut scope = ScopeRule { project: issue.project, ..ScopeRule::default() };
    for rule in &issue.scope {
        let wrong = || {
            Failure::usage(format!("--scope {rule}: not a scope"))
                .hint("write project=NAME, user=NAME, agent=NAME or visibility=private")
        };
        let (member, value) = rule.split_once('=').ok_or_else(wrong)?;
        let value = value.to_owned();
        match member {
            "project" => scope.project = Some(value),
            "user" => scope.user = Some(value),
            "agent" => scope.agent = Some(value),
            "visibility" => scope.visibility = Some(Visibility::parse(&value)?),
            _ => return Err(wrong()),
        }
    }
    let labels = if issue.labels.is_empty() { Labels::Any } else { grant::labels(&issue.labels)? };
    Ok(GrantRequest {
        agent: issue.agent,
        verbs: Verbs::of(&issue.verbs),
        read: labels.clone(),
        write: labels,
        ceiling: issue.max,
        scope,
        ttl: issue.ttl,
        note: issue.note,
    })
}

async fn list(app: &App, all: bool) -> Result {
    let mut session = app.session().await?;
    let mut tokens = session.call::<api::Tokens>(Nothing {}).await?;
    if !all {
        tokens.retain(|token| token.holds_at(app.out.now));
    }
    app.out.either(&tokens, |tokens| {
        if tokens.is_empty() {
            app.out.remark("no token holds; yore token owner makes one");
            return Ok(());
        }
        let mut table = Table::new(&["TOKEN", "FOR", "MADE", "STATE", "NOTE"]);
        for token in tokens {
            let bearer = match &token.bearer {
                Bearer::Owner => "owner".to_owned(),
                Bearer::Grant(grant) => format!("grant {}", short(grant)),
                Bearer::Service(_) => "service".to_owned(),
            };
            table.push([
                styled(short(token.id), ID),
                cell(bearer),
                cell(app.out.ago(token.issued)),
                state(app, token),
                cell(token.note.clone().unwrap_or_default()),
            ]);
        }
        app.out.table(&table)
    })
}

fn state(app: &App, token: &Token) -> (String, anstyle::Style) {
    match (token.revoked, token.expires) {
        (Some(at), _) if at <= app.out.now => styled("revoked", BAD),
        (_, Some(at)) if at <= app.out.now => styled(format!("ended {}", app.out.ago(at)), WARN),
        (_, Some(at)) => styled(format!("ends {}", app.out.ago(at)), GOOD),
        (_, None) => styled("holds", GOOD),
    }
}

async fn find(session: &mut Session<'_>, text: &str) -> Result<TokenId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let tokens = session.call::<api::Tokens>(Nothing {}).await?;
    prefix::one(tokens.iter().map(|token| token.id), text, "yore token list --all shows them")
}
