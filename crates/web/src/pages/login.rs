//! Signing in and out.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use yore_domain::{Error, Result, Span};
use yore_engine::{Call, Engine, Secret, TokenKind, token};

use crate::cookie::{self, SESSION_SECONDS};
use crate::desk::Desk;
use crate::form::Form;
use crate::headers::own_place;
use crate::link::SIGN_IN_NOTE;
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
}

/// The page to sign in on.
pub(crate) async fn show(request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let query = Form::read(parts.uri.query().unwrap_or_default().as_bytes());
    let next = own_place(query.get("next")).to_owned();
    shown(&LoginPage { theme: theme(&parts), next, wrong: None })
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
            let wrong = Some("That is not a token of the owner, or no longer one.");
            let page = shown(&LoginPage { theme: theme(&parts), next, wrong });
            Ok((StatusCode::UNAUTHORIZED, page).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

/// Signs in by a link, which works once.
pub(crate) async fn follow(State(desk): State<Desk>, request: Request) -> Page {
    let (parts, _) = request.into_parts();
    let query = Form::read(parts.uri.query().unwrap_or_default().as_bytes());
    let key = Secret::new(query.get("key").unwrap_or_default());
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
            let wrong = Some("This link was used or is too old. `yore open` makes a new one.");
            let page = LoginPage { theme: theme(&parts), next: crate::PREFIX.to_owned(), wrong };
            Ok((StatusCode::UNAUTHORIZED, shown(&page)).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

/// Signs out: the token of the sign-in is taken back.
pub(crate) async fn leave(Posted { visit, .. }: Posted) -> Page {
    let engine = visit.engine();
    take_back(engine, &visit.call, visit.token()).await?;
    let mut response = Redirect::to("/app/login").into_response();
    if let Some(gone) = cookie::no_session(visit.way) {
        response.headers_mut().append(SET_COOKIE, gone);
    }
    Ok(response)
}

/// Makes the token of a sign-in. It is always a new one, so nobody can choose it beforehand.
async fn begin(engine: &Engine, call: &Call) -> Result<Secret> {
    let life = Some(Span::seconds(SESSION_SECONDS));
    let made = engine.issue_token(call, TokenKind::Owner, life, Some(NOTE.to_owned())).await?;
    Ok(Secret::new(made))
}

/// Gives a session for the token of a link, and takes that token back.
async fn exchange(engine: &Engine, call: &Call, key: &Secret) -> Result<Secret> {
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

fn signed_in(parts: &Parts, session: &Secret, next: &str) -> Response {
    let mut response = Redirect::to(next).into_response();
    if let Some(cookie) = cookie::session(session, way(parts)) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}
