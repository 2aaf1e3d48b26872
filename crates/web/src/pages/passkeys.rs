//! Passkeys: adding one, taking one back, and signing in with one.

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_TYPE, SET_COOKIE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use yore_canon::encode::{base64url, from_base64url};
use yore_canon::webauthn::ALGORITHMS;
use yore_domain::grant::Verb;
use yore_domain::{Error, Result, VaultId};
use yore_engine::{Asked, Assertion, Call, Credentials, NewPasskey, VaultRef, token};

use super::back;
use super::login::{begin, refused, signed_in};
use crate::cookie;
use crate::desk::Desk;
use crate::form::Form;
use crate::headers::own_place;
use crate::questions::{random, secret};
use crate::trouble::Page;
use crate::visit::{Posted, Visit, anonymous, base, own_origins, way};

/// What is put to a browser: a challenge that counts for this host.
fn question(origins: Vec<String>, base: &str) -> Result<Asked> {
    Ok(Asked { challenge: random()?.to_vec(), origins, host: host(base).to_owned() })
}

/// The host of an address, without its port.
fn host(base: &str) -> &str {
    let place = base.split_once("://").map_or(base, |(_, place)| place);
    match place.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => place.split(':').next().unwrap_or_default(),
    }
}

/// Asks the browser for a new passkey.
pub(crate) async fn ask(Posted { visit, .. }: Posted) -> Page {
    let (engine, call) = (visit.engine(), &visit.call);
    let known = engine.passkeys(call).await?;
    let whose = engine.identify(call, Verb::Admin).await?;
    let asked = question(visit.origins.clone(), &visit.base)?;
    let options = json!({
        "challenge": base64url(&asked.challenge),
        "host": asked.host,
        "user": base64url(&whose.vault().bytes()),
        "name": whose.owner(),
        "algorithms": ALGORITHMS,
        "known": known.iter().map(|passkey| passkey.id.as_str()).collect::<Vec<_>>(),
    });
    visit.desk.questions.put(bound(&visit), asked);
    Ok(told(&options))
}

/// What a script is told.
fn told(options: &Value) -> Response {
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, options.to_string()).into_response()
}

/// What a question to a browser that is signed in is bound to.
fn bound(visit: &Visit) -> String {
    format!("session {}", token::digest(visit.token()))
}

/// Adds the passkey that a browser made.
pub(crate) async fn add(Posted { visit, form }: Posted) -> Page {
    let asked = visit.desk.questions.take(&bound(&visit));
    let asked = asked.ok_or_else(|| Error::invalid("passkey", "nothing was asked lately"))?;
    let made = NewPasskey {
        asked,
        client_data: sent(&form, "client")?,
        attestation: sent(&form, "attestation")?,
        name: form.get("name").unwrap_or_default().to_owned(),
    };
    visit.engine().add_passkey(&visit.call, made).await?;
    Ok(back("/app/access", "passkey"))
}

/// Takes a passkey back.
pub(crate) async fn remove(Posted { visit, form }: Posted) -> Page {
    let id = form.get("passkey").unwrap_or_default().to_owned();
    visit.engine().remove_passkey(&visit.call, id).await?;
    Ok(back("/app/access", "passkey-gone"))
}

/// Asks a browser that is not signed in to let a passkey sign.
pub(crate) async fn challenge(State(desk): State<Desk>, request: Request) -> Page {
    let (parts, _) = request.into_parts();
    let asked = question(own_origins(&parts), &base(&parts))?;
    let options = json!({ "challenge": base64url(&asked.challenge), "host": asked.host });
    let mark = secret()?;
    let mut response = told(&options);
    if let Some(cookie) = cookie::asked(&mark, way(&parts)) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    desk.questions.put(format!("browser {mark}"), asked);
    Ok(response)
}

/// Signs in with what a passkey signed.
pub(crate) async fn enter(State(desk): State<Desk>, request: Request) -> Page {
    let (parts, body) = request.into_parts();
    let read = yore_http::body(&parts.headers, body, desk.surface.limits.body).await?;
    let form = Form::read(&read);
    let next = own_place(form.get("next")).to_owned();
    let entered = async {
        let call = presented(&desk, &parts, &form)?;
        begin(desk.engine(), &call).await
    };
    match entered.await {
        Ok(session) => Ok(signed_in(&parts, &session, &next)),
        Err(Error::Unauthenticated { .. } | Error::Forbidden { .. } | Error::NotFound) => {
            let wrong = "This passkey opens nothing here, or it took too long. Try again.";
            Ok(refused(&desk, &parts, next, wrong))
        }
        Err(error) => Err(error.into()),
    }
}

/// The call of somebody who shows what a passkey signed.
fn presented(desk: &Desk, parts: &Parts, form: &Form) -> Result<Call> {
    let mark = cookie::value(&parts.headers, cookie::ASKED).unwrap_or_default();
    let asked = desk.questions.take(&format!("browser {mark}")).ok_or_else(stale)?;
    let vault: [u8; 16] = sent(form, "user")?.try_into().map_err(|_| stale())?;
    let assertion = Assertion {
        asked,
        passkey: sent(form, "id")?,
        client_data: sent(form, "client")?,
        data: sent(form, "data")?,
        signature: sent(form, "signature")?,
    };
    let credentials = Credentials { passkey: Some(Box::new(assertion)), ..Credentials::default() };
    let vault = VaultRef::Id(VaultId::from_bytes(vault));
    Ok(Call { credentials, vault, ..anonymous(parts) })
}

fn stale() -> Error {
    Error::unauthenticated("nothing was asked of this browser, or too long ago")
}

/// Bytes that a form carries as text.
fn sent(form: &Form, name: &'static str) -> Result<Vec<u8>> {
    let text = form.get(name).unwrap_or_default();
    from_base64url(text).map_err(|_| Error::invalid(name, "must be base64url"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_address() {
        assert_eq!(host("http://localhost:7070"), "localhost");
        assert_eq!(host("https://memory.example"), "memory.example");
        assert_eq!(host("https://[::1]:7443"), "::1");
    }
}
