//! `yore token`: makes and revokes tokens.

use clap::Subcommand;
use yore_client::api::{self, GrantRequest, TokenKind};
use yore_client::input::{self, Nothing};
use yore_domain::class::Sensitivity;
use yore_domain::grant::{Bearer, Labels, Verb};
use yore_domain::scope::{ScopeRule, Visibility};
use yore_domain::{AgentId, TenantId, TokenId};

use crate::app::{App, Session};
use crate::authority::{self, Bounds, Life, state};
use crate::failure::{Failure, Result};
use crate::output::{ID, Table, cell, raw, short, styled};
use crate::prefix;

/// Options of `yore token`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore token issue --verbs read,write --agent assistant
  yore token issue --verbs read --project yore --labels work --max internal --ttl 24h
  yore token issue --capability --verbs read,derive --project yore --ttl 24h
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
    Owner(Life),
    /// Make a token for a service that acts for every owner of a tenant
    Service(Service),
    /// Make a token for somebody who looks after a tenant: reads everything and changes nothing of it
    Admin(Service),
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
    #[arg(long, required = true, value_delimiter = ',', value_name = "VERBS", value_parser = authority::verb)]
    verbs: Vec<Verb>,
    /// Only this scope: project=NAME, user=NAME, agent=NAME or visibility=WHO
    #[arg(long, value_delimiter = ',', value_name = "MEMBER=NAME")]
    scope: Vec<String>,
    /// Only memories with these labels [default: any]
    #[arg(long, value_delimiter = ',', value_name = "LABELS")]
    labels: Vec<String>,
    /// Make a capability token that the vault signs, for any server that trusts it; needs --ttl
    #[arg(long, requires = "ttl")]
    capability: bool,
    /// The server a capability token is meant for [default: any that trusts the vault]
    #[arg(long, value_name = "URL", requires = "capability")]
    audience: Vec<String>,
    /// Whom it is for
    #[arg(long, default_value = "agent", value_name = "NAME", value_parser = authority::agent)]
    agent: AgentId,
    #[command(flatten)]
    bounds: Bounds,
}

#[derive(Debug, clap::Args)]
struct Service {
    /// The tenant whose owners it acts for [default: the only one of a server without tenants]
    #[arg(long, value_name = "ID")]
    tenant: Option<TenantId>,
    #[command(flatten)]
    life: Life,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    match args.what {
        What::Issue(issue) if issue.capability => sign(app, *issue).await,
        What::Issue(issue) => authority::issue(app, request(*issue)?, false).await,
        What::Owner(life) => make(app, TokenKind::Owner, life).await,
        What::Service(Service { tenant, life }) => {
            make(app, TokenKind::Service(tenant.unwrap_or(TenantId::DEFAULT)), life).await
        }
        What::Admin(Service { tenant, life }) => {
            make(app, TokenKind::Admin(tenant.unwrap_or(TenantId::DEFAULT)), life).await
        }
        What::List { all } => list(app, all).await,
        What::Revoke { id } => {
            let mut session = app.session().await?;
            let mut revoked = Vec::new();
            for id in id {
                let token = find(&mut session, &id).await?;
                session.change::<api::RevokeToken>(input::OneToken { token }).await?;
                revoked.push(token);
            }
            authority::revoked(&app.out, &revoked)
        }
    }
}

async fn sign(app: &App, mut issue: Issue) -> Result {
    let audience = std::mem::take(&mut issue.audience);
    let request = GrantRequest { ceiling: Sensitivity::Restricted, ..request(issue)? };
    let mut session = app.session().await?;
    let issued = session
        .change::<api::IssueCapability>(input::IssueCapability { request, audience })
        .await?;
    app.out.either(&issued, |issued| {
        let grant = short(issued.grant.id);
        app.out.remark(format!("grant {grant}; yore grant revoke {grant} takes it back"));
        raw(&issued.token)
    })
}

async fn make(app: &App, kind: TokenKind, life: Life) -> Result {
    let mut session = app.session().await?;
    let request = input::IssueToken { kind, ttl: life.ttl, note: life.note };
    let token = session.change::<api::IssueToken>(request).await?;
    let done = serde_json::json!({ "token": token });
    app.out.either(&done, |_| {
        app.out.remark("the token is shown this once; keep it like a password");
        raw(&token)
    })
}

fn request(issue: Issue) -> Result<GrantRequest> {
    let mut scope = ScopeRule::default();
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
    let labels =
        if issue.labels.is_empty() { Labels::Any } else { authority::labels(&issue.labels)? };
    Ok(issue.bounds.request(issue.agent, &issue.verbs, (labels.clone(), labels), scope))
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
                Bearer::Admin(_) => "admin".to_owned(),
                Bearer::Renewal(grant) => format!("renewal {}", short(grant)),
            };
            table.push([
                styled(short(token.id), ID),
                cell(bearer),
                cell(app.out.ago(token.issued)),
                state(&app.out, token.revoked, token.expires),
                cell(token.note.clone().unwrap_or_default()),
            ]);
        }
        app.out.table(&table)
    })
}

async fn find(session: &mut Session<'_>, text: &str) -> Result<TokenId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let tokens = session.call::<api::Tokens>(Nothing {}).await?;
    prefix::one(tokens.iter().map(|token| token.id), text, "yore token list --all shows them")
}
