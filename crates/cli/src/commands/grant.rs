//! `yore grant`: gives agents access by label, sensitivity, scope and time.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use yore_client::api::{self, Extension, GrantRequest};
use yore_client::input::{self, Nothing};
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Grant, Labels, Verb};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, GrantId, Span};
use yore_server::place;

use crate::app::{App, Session};
use crate::authority::{self, Bounds, state, verbs};
use crate::failure::{Failure, Result};
use crate::filter::sensitivity;
use crate::output::{HEAD, ID, Table, cell, raw, short, styled};
use crate::{prefix, show, when};

/// Options of `yore grant`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore grant issue --agent scheduler --read work.calendar,preferences --write work.calendar --ttl 1h
  yore grant issue --agent coder --read any --write any --project yore --max internal
  yore grant list
  yore grant issue --agent portal --read health.appointment --ttl 1h --signed
  yore grant extend 8d01 --ttl 24h
  yore grant extend 8d01 --ttl 30m --read health.consult --max restricted
  yore grant certificate 8d01 scheduler.pem --make
  yore grant revoke 8d01

A label covers what lies below it: work covers work.calendar. Issuing writes only the token to
standard output; it is shown this once.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Give an agent a grant, and write the token that stands for it
    Issue(Box<Issue>),
    /// List grants
    List {
        /// Also those that have ended
        #[arg(long)]
        all: bool,
    },
    /// Show a grant
    Show {
        /// The grant
        id: String,
    },
    /// Make a grant hold longer, or allow more for a while
    Extend(Extend),
    /// Write a grant as a token signed by the vault, to be shown to other servers
    Sign {
        /// The grant
        id: String,
    },
    /// Let whoever holds the key of a client certificate act under a grant
    Certificate {
        /// The grant
        id: String,
        /// The certificate, as PEM
        file: PathBuf,
        /// Make it here, signed by the server's own authority, with its key in the same file
        #[arg(long)]
        make: bool,
    },
    /// Take a grant back, at once and everywhere, with all that were given under it
    Revoke {
        /// The grants
        #[arg(required = true)]
        id: Vec<String>,
    },
}

#[derive(Debug, clap::Args)]
struct Extend {
    /// The grant
    id: String,
    /// For how long, from now on
    #[arg(long, alias = "by", value_name = "SPAN", value_parser = when::span)]
    ttl: Span,
    /// Labels it may read besides; writes a signed token that ends by itself
    #[arg(long, value_delimiter = ',', value_name = "LABELS")]
    read: Vec<String>,
    /// Labels it may write besides
    #[arg(long, value_delimiter = ',', value_name = "LABELS")]
    write: Vec<String>,
    /// The highest sensitivity it touches meanwhile
    #[arg(long, value_name = "CLASS", value_parser = sensitivity)]
    max: Option<Sensitivity>,
    /// A note for people
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Issue {
    /// Whom it is for
    #[arg(long, value_name = "NAME", value_parser = authority::agent)]
    agent: AgentId,
    /// Labels it may read, or any
    #[arg(long, value_delimiter = ',', value_name = "LABELS")]
    read: Vec<String>,
    /// Labels it may write, or any
    #[arg(long, value_delimiter = ',', value_name = "LABELS")]
    write: Vec<String>,
    /// What it may do [default: read and export what --read says, write, derive and erase what
    /// --write says]
    #[arg(long, value_delimiter = ',', value_name = "VERBS", value_parser = authority::verb)]
    verbs: Vec<Verb>,
    /// Whose memories, where the server has several users
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Write a token signed by the vault, which other servers can verify; needs --ttl
    #[arg(long)]
    signed: bool,
    #[command(flatten)]
    bounds: Bounds,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    match args.what {
        What::Issue(issue) => {
            let signed = issue.signed;
            app.mean(issue.user.clone());
            let request = request(*issue)?;
            if signed && (request.ttl.is_none() || request.read == Labels::Any) {
                return Err(Failure::usage("a signed grant names its labels and ends by itself")
                    .hint("say --read LABELS and --ttl SPAN, such as --ttl 1h"));
            }
            authority::issue(app, request, signed).await
        }
        What::List { all } => list(app, all).await,
        What::Show { id } => {
            let mut session = app.session().await?;
            let grant = find(&mut session, &id).await?;
            let grant = session.call::<api::ShowGrant>(input::OneGrant { grant }).await?;
            app.out.either(&grant, |grant| show_grant(app, grant))
        }
        What::Extend(extend) => extended(app, extend).await,
        What::Sign { id } => {
            let mut session = app.session().await?;
            let grant = find(&mut session, &id).await?;
            let token = session.call::<api::SignGrant>(input::OneGrant { grant }).await?;
            app.out.either(&serde_json::json!({ "token": token }), |_| raw(&token))
        }
        What::Certificate { id, file, make } => certificate(app, &id, &file, make).await,
        What::Revoke { id } => {
            let mut session = app.session().await?;
            let mut revoked = Vec::new();
            for id in id {
                let grant = find(&mut session, &id).await?;
                session.change::<api::RevokeGrant>(input::OneGrant { grant }).await?;
                revoked.push(grant);
            }
            authority::revoked(&app.out, &revoked)
        }
    }
}

async fn certificate(app: &App, id: &str, file: &Path, make: bool) -> Result {
    let mut session = app.session().await?;
    let grant = find(&mut session, id).await?;
    if make {
        let given = session.call::<api::ShowGrant>(input::OneGrant { grant }).await?;
        let pem = yore_server::client_certificate(&app.config()?, given.agent.as_str())?;
        place::write_new(file, pem.as_bytes())?;
    }
    let certificate = yore_server::fingerprint(file)?;
    let bind = input::BindCertificate { grant, certificate: certificate.clone() };
    session.change::<api::BindCertificate>(bind).await?;
    app.out.either(&serde_json::json!({ "grant": grant, "sha256": certificate }), |_| {
        app.out.line(format!("{ID}{}{ID:#}  SHA-256 {certificate}", short(grant)))
    })
}

async fn extended(app: &App, extend: Extend) -> Result {
    let Extend { id, ttl, read, write, max, note } = extend;
    let mut session = app.session().await?;
    let grant = find(&mut session, &id).await?;
    if read.is_empty() && write.is_empty() && max.is_none() {
        let longer = input::ExtendGrant { grant, by: ttl };
        let grant = session.change::<api::ExtendGrant>(longer).await?;
        return app.out.either(&grant, |grant| show_grant(app, grant));
    }
    let named = |words: &[String]| -> Result<Vec<Label>> {
        let labels: Result<Vec<Label>, _> =
            words.iter().map(|word| Label::new(word.trim())).collect();
        Ok(labels?)
    };
    let extension =
        Extension { ttl, read: named(&read)?, write: named(&write)?, ceiling: max, note };
    let wider = session.change::<api::WidenGrant>(input::WidenGrant { grant, extension }).await?;
    drop(session);
    authority::show_issued(app, wider, true).await
}

fn request(issue: Issue) -> Result<GrantRequest> {
    let mut verbs = issue.verbs.clone();
    if verbs.is_empty() {
        if !issue.read.is_empty() {
            verbs.extend([Verb::Read, Verb::Export]);
        }
        if !issue.write.is_empty() {
            verbs.extend([Verb::Write, Verb::Derive, Verb::Erase]);
        }
    }
    if verbs.is_empty() {
        return Err(Failure::usage("the grant would allow nothing").hint(
            "say what it may --read or --write, such as --read work.calendar or --read any",
        ));
    }
    let labels = (authority::labels(&issue.read)?, authority::labels(&issue.write)?);
    Ok(issue.bounds.request(issue.agent, &verbs, labels, ScopeRule::default()))
}

async fn list(app: &App, all: bool) -> Result {
    let mut session = app.session().await?;
    let mut grants = session.call::<api::Grants>(Nothing {}).await?;
    if !all {
        grants.retain(|grant| grant.holds_at(app.out.now));
    }
    app.out.either(&grants, |grants| {
        if grants.is_empty() {
            app.out.remark("no grant holds; yore grant issue gives one");
            return Ok(());
        }
        let mut table =
            Table::new(&["GRANT", "AGENT", "VERBS", "UP TO", "STATE", "READS / WRITES"]);
        for grant in grants {
            table.push([
                styled(short(grant.id), ID),
                cell(grant.agent.to_string()),
                cell(verbs(grant.verbs)),
                cell(grant.ceiling.as_str()),
                state(&app.out, grant.revoked, grant.expires),
                cell(format!("{} / {}", reach(&grant.read), reach(&grant.write))),
            ]);
        }
        app.out.table(&table)
    })
}

fn show_grant(app: &App, grant: &Grant) -> Result {
    app.out.line(format!("{HEAD}{ID}{}{ID:#}{HEAD:#}", grant.id))?;
    let mut rows = vec![
        ("agent", grant.agent.to_string()),
        ("verbs", verbs(grant.verbs)),
        ("reads", reach(&grant.read)),
        ("writes", reach(&grant.write)),
        ("up to", grant.ceiling.as_str().to_owned()),
        ("state", state(&app.out, grant.revoked, grant.expires).0),
        ("issued", format!("{} by {}", app.out.ago(grant.issued), grant.issuer)),
    ];
    let scope = [("user", &grant.scope.user), ("project", &grant.scope.project)];
    for (name, value) in scope {
        rows.extend(value.as_ref().map(|value| (name, value.clone())));
    }
    rows.extend(grant.note.clone().map(|note| ("note", note)));
    show::members(&app.out, &rows)
}

fn reach(labels: &Labels) -> String {
    match labels {
        Labels::Any => "any".to_owned(),
        Labels::AnyWith(labels) => {
            let labels = labels.iter().map(Label::as_str).collect::<Vec<_>>();
            format!("any,{}", labels.join(","))
        }
        Labels::Under(labels) if labels.is_empty() => "nothing".to_owned(),
        Labels::Under(labels) => labels.iter().map(Label::as_str).collect::<Vec<_>>().join(","),
    }
}

async fn find(session: &mut Session<'_>, text: &str) -> Result<GrantId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let grants = session.call::<api::Grants>(Nothing {}).await?;
    let found =
        prefix::one(grants.iter().map(|grant| grant.id), text, "yore grant list --all shows them");
    match found {
        // A grant that was signed elsewhere is not listed here, but can be revoked by its name.
        Err(_) if text.contains(|letter: char| !letter.is_ascii_hexdigit() && letter != '-') => {
            Ok(yore_engine::grant_named(text))
        }
        found => found,
    }
}
