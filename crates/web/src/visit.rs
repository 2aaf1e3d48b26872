//! Who comes, and what every page has at hand.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use yore_canon::encode::{from_hex, hex};
use yore_canon::hash::{hmac_sha256, hmac_sha256_matches};
use yore_domain::{Error, Timestamp};
use yore_engine::{Call, Credentials, Engine, Secret, VaultRef};
use yore_http::{Peer, RequestId, Way};

use crate::desk::Desk;
use crate::form::Form;
use crate::markup::{Markup, minute, when};
use crate::numbers::Numbers;
use crate::role::Role;
use crate::trouble::{self, Trouble};
use crate::{NAME, cookie, said};

/// What the mark of a form is made from, besides the token of the sign-in.
const FORM: &[u8] = b"yore web form";

/// Somebody with the cookie of a sign-in. Whether it still counts, the engine says.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) desk: Desk,
    pub(crate) call: Call,
    pub(crate) query: Form,
    pub(crate) way: Way,
    /// Whether a script asks for a part of the page.
    pub(crate) quick: bool,
    /// The address under which the server was reached.
    pub(crate) base: String,
    /// The origins that its pages may have.
    pub(crate) origins: Vec<String>,
    /// As what somebody is signed in, as far as the browser says.
    pub(crate) role: Role,
    token: Secret,
    theme: &'static str,
}

/// What the frame around every page shows.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) csrf: String,
    pub(crate) theme: &'static str,
    pub(crate) section: &'static str,
    pub(crate) notice: Option<&'static str>,
    pub(crate) role: Role,
    now: Timestamp,
}

impl Shell {
    /// A time as people say it.
    pub(crate) fn when(&self, at: &Timestamp) -> Markup {
        when(*at, self.now)
    }

    /// A time to the minute.
    pub(crate) fn minute(&self, at: &Timestamp) -> String {
        minute(*at)
    }
}

impl Visit {
    pub(crate) fn engine(&self) -> &Engine {
        self.desk.engine()
    }

    /// What was counted over the whole vault; nothing while it is being counted.
    pub(crate) async fn numbers(&self) -> yore_domain::Result<Option<Arc<Numbers>>> {
        let patience = self.desk.options.patience;
        self.desk.book.numbers(self.engine(), &self.call, patience).await
    }

    /// The frame of a page of this part of the app.
    pub(crate) fn shell(&self, section: &'static str) -> Shell {
        Shell {
            csrf: self.mark(),
            theme: self.theme,
            section,
            notice: self.query.get("said").and_then(said::text),
            role: self.role,
            now: self.engine().now(),
        }
    }

    /// What every form of this sign-in carries, and nobody else can know.
    pub(crate) fn mark(&self) -> String {
        hex(&hmac_sha256(self.token.expose().as_bytes(), FORM))
    }

    /// The token of the sign-in.
    pub(crate) const fn token(&self) -> &Secret {
        &self.token
    }

    fn is_marked(&self, form: &Form) -> bool {
        self.is_mark(form.get("csrf").unwrap_or_default())
    }

    /// Whether a form with this mark is one of this sign-in.
    pub(crate) fn is_mark(&self, mark: &str) -> bool {
        let mark = from_hex(mark).unwrap_or_default();
        hmac_sha256_matches(self.token.expose().as_bytes(), FORM, &mark)
    }
}

/// The choice of colours that a browser carries.
pub(crate) fn theme(parts: &Parts) -> &'static str {
    match cookie::value(&parts.headers, cookie::THEME) {
        Some("dark") => "dark",
        Some("light") => "light",
        Some(_) | None => "",
    }
}

/// The engine's call of a request with a token.
pub(crate) fn call(parts: &Parts, token: Secret) -> Call {
    let credentials = Credentials { bearer: Some(token), ..Credentials::default() };
    Call { credentials, ..anonymous(parts) }
}

/// The engine's call of a request without a credential.
pub(crate) fn anonymous(parts: &Parts) -> Call {
    Call {
        credentials: Credentials::default(),
        vault: VaultRef::Default,
        protocol: NAME,
        request: parts.extensions.get::<RequestId>().map(|id| id.0.clone()),
        source: parts.extensions.get::<Peer>().map(Peer::source),
        operation: None,
    }
}

/// How a request came in.
pub(crate) fn way(parts: &Parts) -> Way {
    parts.extensions.get::<Peer>().map_or(Way::Plain, |peer| peer.way)
}

/// The origins that pages of the server may have for the browser that asks. A proxy in front may
/// speak TLS although we do not.
pub(crate) fn own_origins(parts: &Parts) -> Vec<String> {
    let base = base(parts);
    let place = base.split_once("://").map_or("", |(_, place)| place);
    let secure = format!("https://{place}");
    match way(parts) {
        Way::Tls => vec![secure],
        Way::Plain | Way::Socket => vec![secure, base],
    }
}

/// The address under which the server was reached.
pub(crate) fn base(parts: &Parts) -> String {
    let named = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = named.or_else(|| parts.uri.host()).unwrap_or("127.0.0.1:7070");
    let scheme = match way(parts) {
        Way::Tls => "https",
        Way::Plain | Way::Socket => "http",
    };
    format!("{scheme}://{host}")
}

impl FromRequestParts<Desk> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, desk: &Desk) -> Result<Self, Response> {
        let Some(token) = cookie::value(&parts.headers, cookie::SESSION).map(Secret::new) else {
            let nobody = Error::unauthenticated("nobody is signed in");
            return Err(Trouble::from(nobody).into_response());
        };
        Ok(Self {
            desk: desk.clone(),
            call: call(parts, token.clone()),
            query: Form::read(parts.uri.query().unwrap_or_default().as_bytes()),
            way: way(parts),
            quick: parts.headers.contains_key("hx-request"),
            base: base(parts),
            origins: own_origins(parts),
            role: cookie::value(&parts.headers, cookie::ROLE).map(Role::parse).unwrap_or_default(),
            token,
            theme: theme(parts),
        })
    }
}

/// A form that came from one of our own pages.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) visit: Visit,
    pub(crate) form: Form,
}

impl FromRequest<Desk> for Posted {
    type Rejection = Response;

    async fn from_request(request: Request, desk: &Desk) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let visit = Visit::from_request_parts(&mut parts, desk).await?;
        let read = yore_http::body(&parts.headers, body, desk.surface.limits.body).await;
        let form = Form::read(&read.map_err(|error| Trouble::from(error).into_response())?);
        if !visit.is_marked(&form) {
            return Err(trouble::foreign_form());
        }
        Ok(Self { visit, form })
    }
}
