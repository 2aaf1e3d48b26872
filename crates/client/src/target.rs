//! Where a server is.

use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

use crate::error::{Error, Result};

/// Where a server is and how to speak to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A Unix socket.
    Socket(PathBuf),
    /// Plain HTTP.
    Http(Authority),
    /// TLS. Without a file of certificate authorities the system's are trusted.
    Https {
        /// Host and port.
        authority: Authority,
        /// A PEM file of the only authorities to trust.
        ca: Option<PathBuf>,
    },
}

impl Target {
    /// Trusts only the authorities in this PEM file; says nothing to other ways than TLS.
    #[must_use]
    pub fn trusting(self, file: impl Into<PathBuf>) -> Self {
        match self {
            Self::Https { authority, .. } => Self::Https { authority, ca: Some(file.into()) },
            other @ (Self::Socket(_) | Self::Http(_)) => other,
        }
    }

    /// Returns the address of a path at this server.
    pub(crate) fn uri(&self, path: &str) -> Result<Uri> {
        let (scheme, authority) = match self {
            Self::Socket(_) => (Scheme::HTTP, Authority::from_static("localhost")),
            Self::Http(authority) => (Scheme::HTTP, authority.clone()),
            Self::Https { authority, .. } => (Scheme::HTTPS, authority.clone()),
        };
        let path = PathAndQuery::try_from(path).map_err(|_| Error::target(path))?;
        Uri::builder()
            .scheme(scheme)
            .authority(authority)
            .path_and_query(path)
            .build()
            .map_err(|error| Error::target(error.to_string()))
    }
}

impl FromStr for Target {
    type Err = Error;

    /// Reads `unix:<path>`, `http://host:port` or `https://host:port`.
    fn from_str(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.strip_prefix("//").unwrap_or(path) {
                "" => Err(Error::target(text)),
                path => Ok(Self::Socket(path.into())),
            };
        }
        let uri: Uri = text.parse().map_err(|_| Error::target(text))?;
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(Error::target(text));
        }
        let authority = uri.authority().cloned().ok_or_else(|| Error::target(text))?;
        if authority.as_str().contains('@') {
            return Err(Error::target("a URL with a user name or password"));
        }
        match uri.scheme_str() {
            Some("http") => Ok(Self::Http(authority)),
            Some("https") => Ok(Self::Https { authority, ca: None }),
            _ => Err(Error::target(text)),
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
            Self::Http(authority) => write!(f, "http://{authority}"),
            Self::Https { authority, .. } => write!(f, "https://{authority}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_printed_alike() {
        for text in ["unix:/run/yore.sock", "http://127.0.0.1:7070", "https://[::1]:7443"] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        for text in ["", "unix:", "ftp://a", "127.0.0.1:7070", "http://a/b", "https://u:p@a/"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_tls_takes_an_authority_file() {
        let tls: Target = "https://localhost:7443".parse().unwrap();
        assert!(matches!(tls.trusting("ca.pem"), Target::Https { ca: Some(_), .. }));
        let plain: Target = "http://localhost:7070".parse().unwrap();
        assert_eq!(plain.clone().trusting("ca.pem"), plain);
    }
}
