//! Signing in through an identity provider: there, back, and as what.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use yore_domain::{Error, Result};

use super::login::{entered, refused};
use crate::cookie;
use crate::desk::Desk;
use crate::form::Form;
use crate::headers::own_place;
use crate::operators::{Errand, Operators, Seat, Seated};
use crate::questions::secret;
use crate::role::Role;
use crate::trouble::{Page, shown};
use crate::visit::{base, theme, way};

/// Where providers send browsers back to.
const BACK: &str = "/app/operators/return";

/// A browser that is with a provider.
#[derive(Debug)]
pub(crate) struct Away {
    provider: usize,
    errand: Errand,
    next: String,
}

/// What somebody may sign in as.
#[derive(Debug)]
pub(crate) struct Choice {
    seats: Vec<Seat>,
    next: String,
}

#[derive(Template)]
#[template(path = "seats.html")]
struct SeatsPage {
    theme: &'static str,
    seats: Vec<String>,
}

fn providers(desk: &Desk) -> Result<&Operators> {
    desk.options.operators.as_ref().ok_or(Error::NotFound)
}

fn asked(parts: &Parts) -> Form {
    Form::read(parts.uri.query().unwrap_or_default().as_bytes())
}

/// Sends the browser to a provider.
pub(crate) async fn leave(State(desk): State<Desk>, request: Request) -> Page {
    let (parts, _) = request.into_parts();
    let query = asked(&parts);
    let number = query.get("provider").and_then(|number| number.parse().ok());
    let provider: usize = number.ok_or(Error::NotFound)?;
    let errand = Errand {
        state: secret()?,
        nonce: secret()?,
        verifier: secret()?,
        back: format!("{}{BACK}", base(&parts)),
    };
    let place = providers(&desk)?.0.address(provider, &errand).await?;
    let next = own_place(query.get("next")).to_owned();
    let mark = secret()?;
    desk.away.put(mark.clone(), Away { provider, errand, next });
    let mut response = Redirect::to(&place).into_response();
    if let Some(cookie) = cookie::asked(&mark, way(&parts)) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Takes the browser back, with what the provider says.
pub(crate) async fn come_back(State(desk): State<Desk>, request: Request) -> Page {
    let (parts, _) = request.into_parts();
    let query = asked(&parts);
    let mark = cookie::value(&parts.headers, cookie::ASKED).unwrap_or_default().to_owned();
    let away = desk.away.take(&mark);
    let Some(Away { provider, errand, next }) = away else {
        let wrong = "Nothing was asked of this browser, or too long ago. Try again.";
        return Ok(refused(&desk, &parts, crate::PREFIX.to_owned(), wrong));
    };
    let code = query.get("code").filter(|_| query.get("state") == Some(errand.state.as_str()));
    let Some(code) = code else {
        let wrong = "The provider did not let you in, or answered another question.";
        return Ok(refused(&desk, &parts, next, wrong));
    };
    match providers(&desk)?.0.seats(provider, &errand, code).await {
        Ok(seats) => match seats.as_slice() {
            [] => {
                let wrong = "None of your groups has a role here.";
                Ok(refused(&desk, &parts, next, wrong))
            }
            [only] => sat(&desk, &parts, only, &next).await,
            several => {
                let labels = several.iter().map(|seat| seat.label.clone()).collect();
                desk.choosing.put(mark, Choice { seats, next });
                Ok(shown(&SeatsPage { theme: theme(&parts), seats: labels }))
            }
        },
        Err(Error::Unauthenticated { .. } | Error::Forbidden { .. }) => {
            let wrong = "What the provider says of you could not be believed.";
            Ok(refused(&desk, &parts, next, wrong))
        }
        Err(error) => Err(error.into()),
    }
}

/// Signs in as what was chosen.
pub(crate) async fn sit(State(desk): State<Desk>, request: Request) -> Page {
    let (parts, body) = request.into_parts();
    let read = yore_http::body(&parts.headers, body, desk.surface.limits.body).await?;
    let form = Form::read(&read);
    let mark = cookie::value(&parts.headers, cookie::ASKED).unwrap_or_default();
    let chosen = desk.choosing.take(mark).and_then(|Choice { seats, next }| {
        let number: usize = form.get("seat")?.parse().ok()?;
        Some((seats.get(number)?.clone(), next))
    });
    let Some((seat, next)) = chosen else {
        let wrong = "That took too long. Sign in again.";
        return Ok(refused(&desk, &parts, crate::PREFIX.to_owned(), wrong));
    };
    sat(&desk, &parts, &seat, &next).await
}

async fn sat(desk: &Desk, parts: &Parts, seat: &Seat, next: &str) -> Page {
    let (token, role) = match providers(desk)?.0.sit(seat).await? {
        Seated::Admin(token) => (token, Role::Admin),
        Seated::Owner(token) => (token, Role::Owner),
        Seated::Operator(token) => (token, Role::Operator),
    };
    let response: Response = entered(parts, &token, role, next);
    Ok(response)
}
