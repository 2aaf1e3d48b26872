//! The cookies: who is signed in and as what, what was asked of a browser that is not, and whether
//! pages are light or dark.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use yore_engine::Secret;
use yore_http::Way;

use crate::role::Role;

/// The cookie that holds the token of a sign-in.
pub(crate) const SESSION: &str = "yore_session";
/// The cookie that holds the choice of colours.
pub(crate) const THEME: &str = "yore_theme";

/// The cookie that says as what somebody is signed in. It only decides which pages are offered.
pub(crate) const ROLE: &str = "yore_role";
/// The cookie that marks a browser of which something was asked before it is signed in.
pub(crate) const ASKED: &str = "yore_asked";

/// How long a sign-in lasts, in seconds.
pub(crate) const SESSION_SECONDS: u64 = 12 * 3600;
/// How long a browser may take for an answer.
const ASKED_SECONDS: u64 = 300;
const THEME_SECONDS: u64 = 365 * 24 * 3600;

/// The value of a cookie. One that comes twice with different values counts as absent: the
/// second was set by somebody else.
pub(crate) fn value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let mut found = None;
    for (_, value) in pairs.filter(|(key, _)| key.trim() == name) {
        let value = value.trim();
        match found {
            None => found = Some(value),
            Some(before) if before == value => {}
            Some(_) => return None,
        }
    }
    found.filter(|value| !value.is_empty())
}

/// Signs a browser in.
pub(crate) fn session(token: &Secret, way: Way) -> Option<HeaderValue> {
    set(SESSION, token.expose(), SESSION_SECONDS, way)
}

/// Remembers as what somebody signed in.
pub(crate) fn role(role: Role, way: Way) -> Option<HeaderValue> {
    set(ROLE, role.word(), if role == Role::Owner { 0 } else { SESSION_SECONDS }, way)
}

/// Marks a browser of which something is asked.
pub(crate) fn asked(mark: &str, way: Way) -> Option<HeaderValue> {
    set(ASKED, mark, ASKED_SECONDS, way)
}

/// Signs a browser out.
pub(crate) fn no_session(way: Way) -> Option<HeaderValue> {
    set(SESSION, "", 0, way)
}

/// Remembers a choice of colours.
pub(crate) fn theme(word: &'static str, way: Way) -> Option<HeaderValue> {
    set(THEME, word, if word.is_empty() { 0 } else { THEME_SECONDS }, way)
}

fn set(name: &str, value: &str, seconds: u64, way: Way) -> Option<HeaderValue> {
    let secure = match way {
        Way::Tls => "; Secure",
        Way::Plain | Way::Socket => "",
    };
    let line =
        format!("{name}={value}; HttpOnly; SameSite=Lax; Path=/app; Max-Age={seconds}{secure}");
    let mut line = HeaderValue::from_str(&line).ok()?;
    line.set_sensitive(true);
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(COOKIE, line.parse().unwrap());
        }
        value(&headers, SESSION).map(str::to_owned)
    }

    #[test]
    fn a_cookie_counts_once() {
        assert_eq!(read(&["a=1; yore_session=x; b=2"]).as_deref(), Some("x"));
        assert_eq!(read(&["yore_session=x", "yore_session=x"]).as_deref(), Some("x"));
        assert_eq!(read(&["yore_session=x; yore_session=y"]), None);
        assert_eq!(read(&["yore_session="]), None);
        assert_eq!(read(&["my_yore_session=x"]), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn scripts_and_other_sites_do_not_get_it() {
        let token = Secret::new("t");
        let plain = session(&token, Way::Plain).unwrap();
        let plain = plain.to_str().unwrap();
        assert!(plain.contains("HttpOnly") && plain.contains("SameSite=Lax"), "{plain}");
        assert!(plain.contains("Path=/app") && !plain.contains("Secure"), "{plain}");
        assert!(session(&token, Way::Tls).unwrap().to_str().unwrap().ends_with("; Secure"));
        assert!(no_session(Way::Plain).unwrap().to_str().unwrap().contains("Max-Age=0"));
    }
}
