//! The consent page: what an agent asks for, and what the owner gives.

use askama::Template;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use yore_canon::encode::base64url;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::query::PageRequest;
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Error, Result, Span};
use yore_engine::GrantRequest;

use super::SCOPES;
use super::client::{self, Client};
use super::codes::Consent;
use crate::desk::Desk;
use crate::form::{Form, query};
use crate::headers;
use crate::trouble::{self, Page, shown};
use crate::visit::{Posted, Shell, Visit};

/// How long what is given by clicking lasts, in days.
const LIFE_DAYS: u64 = 30;

#[derive(Template)]
#[template(path = "consent.html")]
struct ConsentPage {
    shell: Shell,
    name: String,
    /// Where a client describes itself that has an address of its own.
    card: String,
    agent: String,
    goes_to: String,
    verbs: Vec<(&'static str, bool)>,
    ceilings: [&'static str; 4],
    memories: u64,
    days: u64,
    /// What was asked, to be sent back with the decision.
    asked: Vec<(&'static str, String)>,
}

/// A request that may be put before the owner.
struct Asked {
    client: Client,
    id: String,
    redirect: String,
    state: String,
    scope: Vec<Verb>,
    challenge: String,
    resource: Option<String>,
}

/// What a request is refused with.
enum Wrong {
    /// Nothing may be sent to where it came from.
    Page(String),
    /// The client is told.
    Told { redirect: String, state: String, code: &'static str },
}

/// Reads a request. Until client and place are known to belong together, nothing goes back.
async fn read(desk: &Desk, form: &Form, base: &str) -> std::result::Result<Asked, Wrong> {
    let text = |name: &str| form.get(name).unwrap_or_default().to_owned();
    let id = text("client_id");
    let client = match Client::named(&id) {
        Some(client) => client,
        None => desk.cards.client(&desk.options, &id).await.map_err(Wrong::Page)?,
    };
    let redirect = text("redirect_uri");
    if !client.may_be_answered_at(&redirect) {
        let text = "The client did not register the place it wants the answer at.";
        return Err(Wrong::Page(text.to_owned()));
    }
    let state = text("state");
    let told = |code| Wrong::Told { redirect: redirect.clone(), state: state.clone(), code };
    if form.get("response_type") != Some("code") {
        return Err(told("unsupported_response_type"));
    }
    let challenge = text("code_challenge");
    if form.get("code_challenge_method") != Some("S256") || challenge.len() != 43 {
        return Err(told("invalid_request"));
    }
    let resource = form.get("resource").map(str::to_owned);
    if resource.as_ref().is_some_and(|resource| !is_ours(resource, base)) {
        return Err(told("invalid_target"));
    }
    let mut scope = Vec::new();
    for word in form.get("scope").unwrap_or("read write").split(' ').filter(|w| !w.is_empty()) {
        match SCOPES.into_iter().find(|verb| verb.as_str() == word) {
            Some(verb) => scope.push(verb),
            None => return Err(told("invalid_scope")),
        }
    }
    Ok(Asked { client, id, redirect, state, scope, challenge, resource })
}

/// Whether a token is wanted for this very server.
pub(super) fn is_ours(resource: &str, base: &str) -> bool {
    resource.strip_prefix(base).is_some_and(|path| path.is_empty() || path.starts_with('/'))
}

impl Wrong {
    fn response(self, base: &str) -> Response {
        match self {
            Self::Page(text) => trouble::page(StatusCode::BAD_REQUEST, "Not to be trusted", &text),
            Self::Told { redirect, state, code } => {
                answered(&redirect, &[("error", code), ("state", &state), ("iss", base)])
            }
        }
    }
}

/// Goes back to the client.
fn answered(redirect: &str, pairs: &[(&str, &str)]) -> Response {
    let mark = if redirect.contains('?') { '&' } else { '?' };
    Redirect::to(&format!("{redirect}{mark}{}", query(pairs))).into_response()
}

/// Puts a request before the owner.
pub(crate) async fn ask(visit: Visit) -> Page {
    let asked = match read(&visit.desk, &visit.query, &visit.base).await {
        Ok(asked) => asked,
        Err(wrong) => {
            visit.engine().demand(&visit.call, "oauth.authorize", Verb::Grant).await?;
            return Ok(wrong.response(&visit.base));
        }
    };
    let agent = agent_called(asked.client.name());
    let request = request(&agent, &asked.scope, Labels::Any, Sensitivity::Internal)?;
    let page = PageRequest { limit: 1, ..PageRequest::default() };
    let memories = visit.engine().preview_grant(&visit.call, request, page).await?.memories;
    let goes_to = client::origin(&asked.redirect);
    let policy = headers::policy_with_forms_to(&goes_to);
    let scopes = SCOPES.map(|verb| (verb.as_str(), asked.scope.contains(&verb)));
    let Asked { client, id, redirect, state, challenge, resource, .. } = asked;
    let mut response = shown(&ConsentPage {
        shell: visit.shell("access"),
        name: client.name().to_owned(),
        card: if id.starts_with("https://") { client::origin(&id) } else { String::new() },
        agent,
        goes_to,
        verbs: scopes.into(),
        ceilings: Sensitivity::ALL.map(Sensitivity::as_str),
        memories,
        days: LIFE_DAYS,
        asked: vec![
            ("client_id", id),
            ("redirect_uri", redirect),
            ("state", state),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256".into()),
            ("response_type", "code".into()),
            ("resource", resource.unwrap_or_default()),
        ],
    });
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

/// Carries the decision to the client.
pub(crate) async fn decide(Posted { visit, form }: Posted) -> Page {
    let asked = match read(&visit.desk, &form, &visit.base).await {
        Ok(asked) => asked,
        Err(wrong) => return Ok(wrong.response(&visit.base)),
    };
    let (redirect, state) = (asked.redirect.clone(), asked.state.clone());
    if form.get("decision") != Some("allow") {
        let pairs = [("error", "access_denied"), ("state", &*state), ("iss", &*visit.base)];
        return Ok(answered(&redirect, &pairs));
    }
    let verbs = form.all("verbs").map(Verb::parse).collect::<Result<Vec<_>>>()?;
    let labels = form.list("read").into_iter().map(Label::new).collect::<Result<Vec<_>>>()?;
    let labels = if labels.is_empty() { Labels::Any } else { Labels::Under(labels) };
    let ceiling = Sensitivity::parse(form.get("max").unwrap_or("internal"))?;
    let mut request = request(form.get("agent").unwrap_or_default(), &verbs, labels, ceiling)?;
    if form.get("life") == Some("always") {
        request.ttl = None;
    }
    // What the engine would refuse when the code is redeemed, it refuses now.
    let page = PageRequest { limit: 1, ..PageRequest::default() };
    visit.engine().preview_grant(&visit.call, request.clone(), page).await?;
    let code = random()?;
    let consent = Consent {
        client: asked.id,
        redirect: asked.redirect,
        challenge: asked.challenge,
        resource: asked.resource,
        request,
        call: visit.call.clone(),
    };
    visit.desk.codes.keep(&code, consent, visit.engine().now());
    Ok(answered(&redirect, &[("code", &code), ("state", &state), ("iss", &visit.base)]))
}

fn request(
    agent: &str,
    verbs: &[Verb],
    labels: Labels,
    ceiling: Sensitivity,
) -> Result<GrantRequest> {
    Ok(GrantRequest {
        agent: AgentId::new(agent)?,
        verbs: Verbs::of(verbs),
        read: labels.clone(),
        write: labels,
        ceiling,
        scope: ScopeRule::default(),
        ttl: Some(Span::days(LIFE_DAYS)),
        note: Some("connected by consent".to_owned()),
    })
}

/// The name of an agent made from what a client calls itself.
fn agent_called(name: &str) -> String {
    let plain = name.to_lowercase();
    let words: Vec<&str> =
        plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "agent".to_owned() } else { words.join("-") }
}

fn random() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Error::internal(error.to_string()))?;
    Ok(base64url(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_get_plain_names() {
        assert_eq!(agent_called("Claude Code (laptop)"), "claude-code-laptop");
        assert_eq!(agent_called("<script>"), "script");
        assert_eq!(agent_called("日本"), "agent");
    }

    #[test]
    fn resources_are_those_of_this_server() {
        let base = "http://127.0.0.1:7070";
        assert!(is_ours("http://127.0.0.1:7070/mcp", base) && is_ours(base, base));
        for other in ["http://127.0.0.1:70700/mcp", "https://evil.example/mcp", "/mcp", ""] {
            assert!(!is_ours(other, base), "{other}");
        }
    }
}
