//! Who may see and do what: agents, their grants, and tokens.

use askama::Template;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Bearer, Grant, Labels, Token, Verb, Verbs};
use yore_domain::query::PageRequest;
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Error, GrantId, Result, Span, Timestamp, TokenId};
use yore_engine::{GrantRequest, Passkey, token};

use super::back;
use crate::form::Form;
use crate::snippet::beginning;
use crate::trouble::{Page, shown};
use crate::visit::{Posted, Shell, Visit};

/// How many memories a preview lists.
const PREVIEWED: usize = 50;
/// How far back the answers of an agent are gone through.
const REPLAYED: Span = Span::days(7);

#[derive(Template)]
#[template(path = "access.html")]
struct AccessPage {
    shell: Shell,
    grants: Vec<Given>,
    ended: Vec<Given>,
    tokens: Vec<Kept>,
    passkeys: Vec<Passkey>,
    wanted: Wanted,
}

/// A grant in words.
struct Given {
    id: String,
    agent: String,
    verbs: String,
    read: String,
    write: String,
    ceiling: &'static str,
    scope: String,
    expires: Option<Timestamp>,
    issued: Timestamp,
    note: String,
}

/// A token in words.
struct Kept {
    id: String,
    whose: String,
    note: String,
    issued: Timestamp,
    expires: Option<Timestamp>,
    /// Whether it is the one of this very sign-in.
    own: bool,
}

/// What a form asks for, so that it can be shown again.
struct Wanted {
    agent: String,
    verbs: Vec<(&'static str, bool)>,
    read: String,
    write: String,
    ceilings: Vec<(&'static str, bool)>,
    project: String,
    lives: Vec<(&'static str, &'static str, bool)>,
    note: String,
}

const LIVES: [(&str, &str, Option<u64>); 5] = [
    ("3600", "one hour", Some(3600)),
    ("86400", "one day", Some(86_400)),
    ("2592000", "30 days", Some(2_592_000)),
    ("31536000", "a year", Some(31_536_000)),
    ("", "until it is taken back", None),
];

#[derive(Template)]
#[template(path = "preview.html")]
struct PreviewPage {
    shell: Shell,
    wanted: Wanted,
    agent: String,
    memories: u64,
    first: Vec<Seen>,
    /// Whether there are more than are listed.
    partly: bool,
    conversations: Vec<(String, u64)>,
    /// What the agent asked lately and how it would have been answered; absent when it did not.
    replay: Option<Replay>,
    /// All that the form said, for the form that gives the grant.
    fields: Vec<(&'static str, String)>,
}

/// The last week of an agent, under a grant.
struct Replay {
    asked: u64,
    poorer: u64,
    shown: u64,
    /// What would have been missing: its page, its beginning, how often.
    missing: Vec<(String, String, u64)>,
    partly: bool,
}

/// A memory that a grant would show.
struct Seen {
    id: String,
    text: String,
    labels: String,
    sensitivity: &'static str,
}

#[derive(Template)]
#[template(path = "issued.html")]
struct IssuedPage {
    shell: Shell,
    agent: String,
    token: String,
    snippet: String,
}

pub(crate) async fn show(visit: Visit) -> Page {
    let (engine, call) = (visit.engine(), &visit.call);
    let (all, tokens) = (engine.grants(call).await?, engine.tokens(call).await?);
    let passkeys = engine.passkeys(call).await?;
    let now = engine.now();
    let (holding, ended): (Vec<Grant>, Vec<Grant>) =
        all.into_iter().partition(|grant| grant.holds_at(now));
    let own = token::digest(visit.token());
    let tokens = tokens.into_iter().filter(|token| token.holds_at(now));
    Ok(shown(&AccessPage {
        shell: visit.shell("access"),
        grants: holding.into_iter().map(Given::from).collect(),
        ended: ended.into_iter().map(Given::from).collect(),
        tokens: tokens.map(|token| kept(token, &own)).collect(),
        passkeys,
        wanted: Wanted::of(&Form::read(b"verbs=read&verbs=write&max=internal&life=2592000")),
    }))
}

impl From<Grant> for Given {
    fn from(grant: Grant) -> Self {
        let scope = [
            ("user", &grant.scope.user),
            ("project", &grant.scope.project),
            ("agent", &grant.scope.agent),
        ];
        let scope = scope
            .into_iter()
            .filter_map(|(name, value)| value.as_ref().map(|value| format!("{name} {value}")));
        Self {
            id: grant.id.to_string(),
            agent: grant.agent.to_string(),
            verbs: grant.verbs.iter().map(Verb::as_str).collect::<Vec<_>>().join(", "),
            read: spelled(&grant.read),
            write: spelled(&grant.write),
            ceiling: grant.ceiling.as_str(),
            scope: scope.collect::<Vec<_>>().join(", "),
            expires: grant.expires,
            issued: grant.issued,
            note: grant.note.unwrap_or_default(),
        }
    }
}

fn spelled(labels: &Labels) -> String {
    match labels {
        Labels::Any => "everything".into(),
        Labels::AnyWith(labels) => {
            let labels: Vec<&str> = labels.iter().map(Label::as_str).collect();
            format!("everything, with {}", labels.join(", "))
        }
        Labels::Under(labels) if labels.is_empty() => "nothing".into(),
        Labels::Under(labels) => labels.iter().map(Label::as_str).collect::<Vec<_>>().join(", "),
    }
}

fn kept(token: Token, own: &str) -> Kept {
    let whose = match &token.bearer {
        Bearer::Owner => "you".into(),
        Bearer::Grant(grant) => format!("grant {}", &grant.to_string()[..8]),
        Bearer::Renewal(grant) => format!("renewal of grant {}", &grant.to_string()[..8]),
        Bearer::Service(_) => "a service".into(),
        Bearer::Admin(_) => "an administrator".into(),
    };
    Kept {
        id: token.id.to_string(),
        whose,
        note: token.note.unwrap_or_default(),
        issued: token.issued,
        expires: token.expires,
        own: token.hash == own,
    }
}

impl Wanted {
    fn of(form: &Form) -> Self {
        let text = |name: &str| form.get(name).unwrap_or_default().to_owned();
        let verbs: Vec<&str> = form.all("verbs").collect();
        let (max, life) = (text("max"), text("life"));
        Self {
            agent: text("agent"),
            verbs: Verb::ALL.map(|verb| (verb.as_str(), verbs.contains(&verb.as_str()))).into(),
            read: text("read"),
            write: text("write"),
            ceilings: Sensitivity::ALL.map(|one| (one.as_str(), one.as_str() == max)).into(),
            project: text("project"),
            lives: LIVES.map(|(value, said, _)| (value, said, value == life)).into(),
            note: text("note"),
        }
    }
}

/// Reads the grant that a form asks for. An empty list of labels means all of them.
fn request(form: &Form) -> Result<GrantRequest> {
    let labels = |name: &str| -> Result<Labels> {
        let named = form.list(name).into_iter().map(Label::new).collect::<Result<Vec<_>>>()?;
        Ok(if named.is_empty() { Labels::Any } else { Labels::Under(named) })
    };
    let verbs = form.all("verbs").map(Verb::parse).collect::<Result<Vec<_>>>()?;
    let life = form.get("life").unwrap_or_default();
    let (_, _, life) = LIVES
        .into_iter()
        .find(|(value, _, _)| *value == life)
        .ok_or_else(|| Error::invalid("life", "must be one of those offered"))?;
    Ok(GrantRequest {
        agent: AgentId::new(form.get("agent").unwrap_or_default())?,
        verbs: Verbs::of(&verbs),
        read: labels("read")?,
        write: labels("write")?,
        ceiling: Sensitivity::parse(form.get("max").unwrap_or("internal"))?,
        scope: ScopeRule {
            project: form.get("project").map(str::to_owned),
            ..ScopeRule::default()
        },
        ttl: life.map(Span::seconds),
        note: form.get("note").map(str::to_owned),
    })
}

/// Shows what a grant would show, before it is given.
pub(crate) async fn preview(Posted { visit, form }: Posted) -> Page {
    let request = request(&form)?;
    let agent = request.agent.to_string();
    let page = PageRequest { limit: PREVIEWED, ..PageRequest::default() };
    let replay = replay(&visit, request.clone()).await?;
    let seen = visit.engine().preview_grant(&visit.call, request, page).await?;
    let first = seen.first.into_iter().map(|memory| {
        let governance = &memory.head.content.governance;
        Seen {
            id: memory.head.memory.to_string(),
            text: beginning(&memory.head.content.body.text, 160),
            labels: governance.labels.iter().map(Label::as_str).collect::<Vec<_>>().join(", "),
            sensitivity: governance.sensitivity.unwrap_or_default().as_str(),
        }
    });
    let titles = seen
        .conversations
        .into_iter()
        .map(|(talk, count)| (beginning(talk.title.as_deref().unwrap_or("Untitled"), 120), count));
    let mut fields: Vec<(&'static str, String)> =
        form.all("verbs").map(|verb| ("verbs", verb.to_owned())).collect();
    for name in ["agent", "read", "write", "max", "project", "life", "note"] {
        fields.extend(form.get(name).map(|value| (name, value.to_owned())));
    }
    Ok(shown(&PreviewPage {
        shell: visit.shell("access"),
        wanted: Wanted::of(&form),
        agent,
        memories: seen.memories,
        partly: seen.memories > PREVIEWED as u64,
        first: first.collect(),
        conversations: titles.collect(),
        replay,
        fields,
    }))
}

/// What an agent asked in the last week, under a grant that is not given yet.
async fn replay(visit: &Visit, request: GrantRequest) -> Result<Option<Replay>> {
    let since = visit.engine().now().minus(REPLAYED);
    let told = visit.engine().simulate_grant(&visit.call, request, since).await?;
    let missing = told.hidden.into_iter().take(PREVIEWED).map(|(memory, times)| {
        let head = &memory.head;
        (head.memory.to_string(), beginning(&head.content.body.text, 160), times)
    });
    Ok((told.asked > 0).then(|| Replay {
        asked: told.asked,
        poorer: told.poorer,
        shown: told.shown,
        missing: missing.collect(),
        partly: told.partly,
    }))
}

/// Gives a grant and shows its token, this once.
pub(crate) async fn issue(Posted { visit, form }: Posted) -> Page {
    let issued = visit.engine().issue_grant(&visit.call, request(&form)?).await?;
    let agent = issued.grant.agent.to_string();
    let snippet = serde_json::json!({ "mcpServers": { "yore": {
        "type": "http",
        "url": format!("{}/mcp", visit.base),
        "headers": { "Authorization": format!("Bearer {}", issued.token) },
    } } });
    Ok(shown(&IssuedPage {
        shell: visit.shell("access"),
        agent,
        token: issued.token,
        snippet: format!("{snippet:#}"),
    }))
}

/// Takes a grant or a token back.
pub(crate) async fn revoke(Posted { visit, form }: Posted) -> Page {
    let (engine, call) = (visit.engine(), &visit.call);
    if let Some(grant) = form.get("grant") {
        let grant: GrantId = grant.parse().map_err(|_| Error::NotFound)?;
        engine.revoke_grant(call, grant).await?;
    } else {
        let token: TokenId =
            form.get("token").unwrap_or_default().parse().map_err(|_| Error::NotFound)?;
        engine.revoke_token(call, token).await?;
    }
    Ok(back("/app/access", "revoked"))
}
