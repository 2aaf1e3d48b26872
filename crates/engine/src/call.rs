//! What a protocol hands over with every operation.

use std::fmt;

use futures::future::BoxFuture;
use yore_canon::encode;
use yore_canon::key::VerifyingKey;
use yore_domain::grant::Grant;
use yore_domain::{Error, GrantId, Result, VaultId};
use zeroize::Zeroizing;

/// A secret text: never printed, wiped when dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a secret.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Reveals it, for hashing or sending.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Which vault is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VaultRef {
    /// The one the credential belongs to, or the only one.
    #[default]
    Default,
    /// The vault of this owner in the credential's tenant.
    Owner(String),
    /// This one.
    Id(VaultId),
}

/// What the caller presents. All of it must hold; none of it widens another.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// A bearer token of ours.
    pub bearer: Option<Secret>,
    /// Signed claims, translated by the protocol into the one grant.
    pub claims: Vec<Claims>,
    /// The certificate whose key the other end of the connection holds.
    pub certificate: Option<Thumbprint>,
    /// What a passkey of the owner signed.
    pub passkey: Option<Box<Assertion>>,
    /// Grants that whoever holds the master key takes up for their agents, beside the proof.
    pub taken_up: Vec<GrantId>,
    /// What could not be read as a credential; its presence refuses the call.
    pub unreadable: Option<&'static str>,
}

impl Credentials {
    /// Whose vault the signed claims open, when they say.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.claims.iter().find_map(|claims| claims.subject.as_deref())
    }
}

/// What a browser was asked to let a passkey sign, and where.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The challenge.
    pub challenge: Vec<u8>,
    /// The origins of pages that may have asked.
    pub origins: Vec<String>,
    /// The host of those pages, to which a passkey belongs.
    pub host: String,
}

/// What a passkey signed, as it came.
#[derive(Clone, Debug)]
pub struct Assertion {
    /// What it was asked.
    pub asked: Asked,
    /// The id of the passkey.
    pub passkey: Vec<u8>,
    /// What the browser says that it asked, as JSON.
    pub client_data: Vec<u8>,
    /// What the authenticator says.
    pub data: Vec<u8>,
    /// Its signature over both.
    pub signature: Vec<u8>,
}

/// The SHA-256 of a certificate, whose key was shown to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thumbprint(pub [u8; 32]);

impl Thumbprint {
    /// Reads it as it is written: 64 hexadecimal digits, with colons or without.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::invalid("certificate", "must be the SHA-256 of one, as 64 digits");
        let digits: String = text.chars().filter(|digit| *digit != ':').collect();
        let bytes = encode::from_hex(&digits.to_ascii_lowercase()).map_err(|_| wrong())?;
        bytes.try_into().map(Self).map_err(|_| wrong())
    }

    /// What is kept of it where tokens are kept. No token has such a hash.
    pub(crate) fn kept(&self) -> String {
        format!("x5t#S256:{}", encode::hex(&self.0))
    }
}

/// What a caller shows beside a token; the token may be bound to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The certificate of its connection.
    pub certificate: Option<Thumbprint>,
    /// The key that signed a proof for this very request, by its thumbprint (RFC 7638).
    pub key: Option<Thumbprint>,
}

/// Signed claims that describe a grant. The protocol translates, the engine verifies.
#[derive(Clone, Debug)]
pub struct Claims {
    /// The grant they describe.
    pub grant: Grant,
    /// Whom they are meant for, when they say.
    pub audience: Vec<String>,
    /// Whose vault they open, when they say: its owner's name or DID.
    pub subject: Option<String>,
    /// The proof.
    pub proof: Proof,
}

/// What shows that claims were made by their issuer.
#[derive(Clone, Debug)]
pub enum Proof {
    /// A signature over bytes by a key.
    Signature {
        /// The key that is named; its DID must be the grant's issuer.
        key: VerifyingKey,
        /// The signed bytes.
        message: Vec<u8>,
        /// The signature.
        signature: Vec<u8>,
    },
    /// A signature by a key that an authorisation server publishes.
    Published(Published),
    /// A MAC under the secret that the operator shares with an issuer, if there is one.
    Shared {
        /// The bytes it covers.
        message: Vec<u8>,
        /// HMAC-SHA-256 of them.
        tag: Vec<u8>,
    },
}

/// A signature by one of the keys that an authorisation server publishes.
#[derive(Clone, Debug)]
pub struct Published {
    /// The algorithm, by its name in JOSE.
    pub algorithm: String,
    /// Which of its keys, when it says.
    pub key: Option<String>,
    /// The signed bytes.
    pub message: Vec<u8>,
    /// The signature.
    pub signature: Vec<u8>,
}

/// Authorisation servers elsewhere whose tokens count here.
pub trait Issuers: fmt::Debug + Send + Sync {
    /// Reads a token of one of them, without believing it; `None` when it is of no such server.
    fn read(&self, token: &str, shown: Shown) -> Option<Result<Claims, &'static str>>;

    /// Whether a signature is by a key that a server publishes.
    fn vouch<'a>(&'a self, issuer: &'a str, proof: &'a Published) -> BoxFuture<'a, bool>;
}

/// One operation's surroundings.
#[derive(Clone, Debug)]
pub struct Call {
    /// What the caller presents.
    pub credentials: Credentials,
    /// Which vault.
    pub vault: VaultRef,
    /// The protocol it came in by, for the audit chain.
    pub protocol: &'static str,
    /// The request's id, for logs and the audit chain.
    pub request: Option<String>,
    /// Where it came from.
    pub source: Option<String>,
    /// The client's id for the operation: a retry returns the first result.
    pub operation: Option<String>,
}

impl Call {
    /// A call by a protocol with a bearer token.
    #[must_use]
    pub fn bearer(protocol: &'static str, token: Secret) -> Self {
        Self {
            credentials: Credentials { bearer: Some(token), ..Credentials::default() },
            ..Self::anonymous(protocol)
        }
    }

    /// A call without credentials.
    #[must_use]
    pub fn anonymous(protocol: &'static str) -> Self {
        Self {
            credentials: Credentials::default(),
            vault: VaultRef::Default,
            protocol,
            request: None,
            source: None,
            operation: None,
        }
    }
}
