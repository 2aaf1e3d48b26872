//! Who is at the other end of a connection.

use std::net::SocketAddr;

use yore_engine::Thumbprint;

/// How a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In clear text, on an address that allows it.
    Plain,
    /// Over TLS.
    Tls,
    /// Through the private socket of the data directory.
    Socket,
}

/// The other end of a connection. The listener puts it into every request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// How it came in.
    pub way: Way,
    /// Its address, unless it came through the socket.
    pub address: Option<SocketAddr>,
}

impl Peer {
    /// Whether the other end is on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.way == Way::Socket || self.address.is_some_and(|address| address.ip().is_loopback())
    }

    /// What the audit chain calls it.
    #[must_use]
    pub fn source(&self) -> String {
        match (self.way, self.address) {
            (Way::Socket, _) | (_, None) => "socket".to_owned(),
            (Way::Plain | Way::Tls, Some(address)) => address.ip().to_string(),
        }
    }
}

/// The id under which logs and the audit chain speak of a request.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

/// The key that signed a proof of possession for this very request (DPoP, RFC 9449), or why the
/// proof that came counts for nothing. The server puts it into a request's extensions, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proven(pub Result<Thumbprint, &'static str>);
