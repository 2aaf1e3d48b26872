//! What surrounds every page: the walls that browsers keep up, and the way to the sign-in.

use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, LOCATION, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use yore_http::{Peer, Way};

use crate::{cookie, form, trouble};

/// Nothing from elsewhere, nothing inline, no frames, forms only to ourselves.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The same for a page whose form ends at another place: browsers check where it leads.
pub(crate) fn policy_with_forms_to(origin: &str) -> String {
    POLICY.replace("form-action 'self'", &format!("form-action 'self' {origin}"))
}

/// Marks an answer to somebody who is not signed in, or no longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignedOut;

/// Refuses what other sites sent, sends strangers to the sign-in, and puts up the walls.
pub(crate) async fn around(request: Request, next: Next) -> Response {
    let asked = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
    let (method, way) = (request.method().clone(), way(&request));
    let quick = request.headers().contains_key("hx-request");
    let mut response = if is_foreign(&method, request.headers()) {
        trouble::page(
            StatusCode::FORBIDDEN,
            "Not from here",
            "This request came from another site. Open the page itself and try again.",
        )
    } else {
        next.run(request).await
    };
    if response.extensions().get::<SignedOut>().is_some() {
        let asked = if method == Method::GET { asked.as_str() } else { "" };
        response = to_sign_in(asked, quick, way);
    }
    let headers = response.headers_mut();
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    for (name, value) in [
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// How the request came in.
fn way(request: &Request) -> Way {
    request.extensions().get::<Peer>().map_or(Way::Plain, |peer| peer.way)
}

/// Whether another site made the browser send something that changes the vault or a sign-in.
fn is_foreign(method: &Method, headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let foreign = site.is_some_and(|site| site != b"same-origin" && site != b"none");
    foreign && !matches!(*method, Method::GET | Method::HEAD)
}

/// Leads to the sign-in, and from there back to where one wanted to go.
fn to_sign_in(asked: &str, quick: bool, way: Way) -> Response {
    let back = if asked == crate::PREFIX { "" } else { asked };
    let query = form::query(&[("next", back)]);
    let place = if query.is_empty() { "/app/login".into() } else { format!("/app/login?{query}") };
    let Ok(place) = HeaderValue::from_str(&place) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    // A script follows a redirect unseen, so it is told in a header of its own.
    let mut response = if quick {
        (StatusCode::UNAUTHORIZED, [("hx-redirect", place)]).into_response()
    } else {
        (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response()
    };
    if let Some(gone) = cookie::no_session(way) {
        response.headers_mut().append(SET_COOKIE, gone);
    }
    response
}

/// The place to go to after a sign-in. Only pages of ours count.
pub(crate) fn own_place(wanted: Option<&str>) -> &str {
    let plain = |place: &&str| {
        let inside = place
            .strip_prefix("/app")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest.starts_with('?'));
        let odd = |c: char| c.is_control() || c == '\\' || !c.is_ascii();
        let path = place.split('?').next().unwrap_or_default();
        inside && !path.contains("//") && !path.contains("/..") && !place.contains(odd)
    };
    wanted.filter(plain).unwrap_or(crate::PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_places_are_gone_to() {
        for place in ["/app", "/app/search?q=x//y", "/app/memory/1", "/app?said=done"] {
            assert_eq!(own_place(Some(place)), place);
        }
        for place in [
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "/app//evil.example",
            "/app/../mcp",
            "/application",
            "/api/v1/remember",
            "/app\r\nset-cookie: x=y",
            "javascript:alert(1)",
            "",
        ] {
            assert_eq!(own_place(Some(place)), "/app", "{place}");
        }
        assert_eq!(own_place(None), "/app");
    }

    #[test]
    fn what_other_sites_send_is_foreign() {
        let case = |method: Method, site: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(site) = site {
                headers.insert("sec-fetch-site", site.parse().unwrap());
            }
            is_foreign(&method, &headers)
        };
        assert!(case(Method::POST, Some("cross-site")) && case(Method::POST, Some("same-site")));
        assert!(!case(Method::POST, Some("same-origin")) && !case(Method::POST, None));
        assert!(!case(Method::GET, Some("cross-site")));
    }
}
