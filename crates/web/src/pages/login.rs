//! Signing in and out.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use yore_domain::{Error, Result, Span};
use yore_engine::{Call, Engine, Secret, SignIn, token};

use crate::cookie::{self, SESSION_SECONDS};
use crate::desk::Desk;
use crate::form::{Form, query};
use crate::headers::own_place;
use crate::link::SIGN_IN_NOTE;
use crate::role::Role;
use crate::trouble::{Page, shown};
use crate::visit::{Posted, call, theme, way};

/// What a list of tokens says of a sign-in.
const NOTE: &str = "signed in to the web app";

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage {
    theme: &'static str,
    next: String,
    wrong: Option<&'static str>,
    /// Identity providers that let somebody in: where to go, and the name of each.
    providers: Vec<(String, String)>,
}

/// The page to sign in on.
pub(crate) async fn show(State(desk): State<Desk>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let asked = Form::read(parts.uri.query().unwrap_or_default().as_bytes());
    let next = own_place(asked.get("next")).to_owned();
    shown(&page(&desk, &parts, next, None))
}

fn page(desk: &Desk, parts: &Parts, next: String, wrong: Option<&'static str>) -> LoginPage {
    let names = desk.options.operators.iter().flat_map(|operators| operators.0.names());
    let link = |(number, name): (usize, String)| {
        let place = query(&[("provider", &number.to_string()), ("next", &next)]);
        (format!("/app/operators?{place}"), name)
    };
    let providers = names.enumerate().map(link).collect();
    LoginPage { theme: theme(parts), next, wrong, providers }
}

/// The page again, with what was wrong.
pub(super) fn refused(desk: &Desk, parts: &Parts, next: String, wrong: &'static str) -> Response {
    let page = shown(&page(desk, parts, next, Some(wrong)));
    (StatusCode::UNAUTHORIZED, page).into_response()
}

/// Signs in with a token that was typed in.
pub(crate) async fn enter(State(desk): State<Desk>, request: Request) -> Page {
    let (parts, body) = request.into_parts();
    let read = yore_http::body(&parts.headers, body, desk.surface.limits.body).await?;
    let form = Form::read(&read);
    let next = own_place(form.get("next")).to_owned();
    let token = Secret::new(form.get("token").unwrap_or_default());
    match begin(desk.engine(), &call(&parts, token)).await {
        Ok(session) => Ok(signed_in(&parts, &session, &next)),
        Err(Error::Unauthenticated { .. } | Error::Forbidden { .. }) => {
            let wrong = "That is not a token of the owner, or no longer one.";
            Ok(refused(&desk, &parts, next, wrong))
        }
        Err(error) => Err(error.into()),
    }
}

/// Signs in by a link, which works once.
pub(crate) async fn follow(State(desk): State<Desk>, request: Request) -> Page {
    let (parts, _) = request.into_parts();
    let asked = Form::read(parts.uri.query().unwrap_or_default().as_bytes());
    let key = Secret::new(asked.get("key").unwrap_or_default());
    // Another site must not decide as whom somebody is signed in.
    let site = parts.headers.get("sec-fetch-site");
    let exchanged = if site.is_some_and(|site| site != "none" && site != "same-origin") {
        Err(unusable())
    } else {
        exchange(desk.engine(), &call(&parts, key.clone()), &key).await
    };
    match exchanged {
        Ok(session) => Ok(signed_in(&parts, &session, crate::PREFIX)),
        Err(Error::Unauthenticated { .. } | Error::Forbidden { .. }) => {
            let wrong = "This link was used or is too old. `yore open` makes a new one.";
            Ok(refused(&desk, &parts, crate::PREFIX.to_owned(), wrong))
        }
        Err(error) => Err(error.into()),
    }
}

/// Signs out: the token of the sign-in is taken back.
pub(crate) async fn leave(Posted { visit, .. }: Posted) -> Page {
    visit.engine().sign_out(&visit.call).await?;
    let mut response = Redirect::to("/app/login").into_response();
    let gone = [cookie::no_session(visit.way), cookie::role(Role::Owner, visit.way)];
    for gone in gone.into_iter().flatten() {
        response.headers_mut().append(SET_COOKIE, gone);
    }
    Ok(response)
}

/// Makes the token of a sign-in. It is always a new one, so nobody can choose it beforehand.
pub(super) async fn begin(engine: &Engine, call: &Call) -> Result<SignIn> {
    engine.sign_in(call, Span::seconds(SESSION_SECONDS), NOTE).await
}

/// Gives a session for the token of a link, and takes that token back.
async fn exchange(engine: &Engine, call: &Call, key: &Secret) -> Result<SignIn> {
    let digest = token::digest(key);
    let tokens = engine.tokens(call).await?;
    let link = tokens.into_iter().find(|token| token.hash == digest);
    // A token that is meant to last has no place in an address.
    let link = link.filter(|link| link.note.as_deref() == Some(SIGN_IN_NOTE));
    let link = link.ok_or_else(unusable)?;
    let session = begin(engine, call).await?;
    engine.revoke_token(call, link.id).await?;
    Ok(session)
}

async fn take_back(engine: &Engine, call: &Call, session: &Secret) -> Result<()> {
    let digest = token::digest(session);
    let tokens = engine.tokens(call).await?;
    match tokens.into_iter().find(|token| token.hash == digest) {
        Some(token) => engine.revoke_token(call, token.id).await,
        None => Ok(()),
    }
}

/// Takes the token of a call back that was made for one piece of work.
pub(super) async fn give_back(engine: &Engine, call: &Call) {
    if let Some(token) = &call.credentials.bearer
        && let Err(error) = take_back(engine, call, token).await
    {
        tracing::warn!(
            code = error.code(),
            "a token that is needed no more could not be taken back"
        );
    }
}

fn unusable() -> Error {
    Error::unauthenticated("the link cannot be used")
}

/// Signs a browser in and leads to where it wanted to go.
pub(super) fn signed_in(parts: &Parts, session: &SignIn, next: &str) -> Response {
    entered(parts, &session.token, session.who.into(), next)
}

/// The same for somebody who signed in elsewhere.
pub(super) fn entered(parts: &Parts, token: &Secret, role: Role, next: &str) -> Response {
    // Home is not the same place for everybody.
    let next = if next == crate::PREFIX { role.home() } else { next };
    let mut response = Redirect::to(next).into_response();
    let cookies = [cookie::session(token, way(parts)), cookie::role(role, way(parts))];
    for cookie in cookies.into_iter().flatten() {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}
