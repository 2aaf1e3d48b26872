//! What the operator decides: a TOML file, then the environment, then flags.
//!
//! The three are laid over one another as TOML before anything is read, so that each is
//! checked by the same rules and a misspelt name is refused wherever it stands.

mod layer;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use yore_canon::did::Did;
use yore_domain::Span;
use yore_domain::query::Effort;
use yore_domain::sensitive::Care;
use yore_engine::{Consolidating, Gate, Secret};
use yore_ump::files::Format;
use zeroize::Zeroizing;

use crate::backup::Backups;
use crate::error::{Error, Result};
use crate::key::KeySource;

pub use layer::Layers;

/// The whole configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where vaults lie. Default: the platform's data directory, such as `~/.local/share/yore`.
    pub data: PathBuf,
    /// A file with the master key. Default: `master.key` in the platform's configuration
    /// directory, made at the first start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// The address of a PostgreSQL with pgvector that holds the vaults instead of the data
    /// directory. It may hold a password, so it is never written down again.
    #[serde(skip_serializing, deserialize_with = "secret")]
    pub database: Option<Secret>,
    /// What the log says, as a filter. Default: `info`.
    pub log: String,
    /// Whether reads wait until their audit entry is on disk. Default: no.
    pub strict_audit: bool,
    /// Which models recall uses when the caller does not say. Default: `balanced`.
    pub effort: Effort,
    /// What is done about secrets and personal data in what is written: `off`, `label` or `hold`.
    /// Default: off.
    pub sensitive: Care,
    /// Who may read `/metrics`. Default: `loopback`.
    pub metrics: Metrics,
    /// Where to listen.
    pub listen: Listen,
    /// Certificates.
    pub tls: Tls,
    /// Bounds on what one caller can cost.
    pub limits: Limits,
    /// How short-term memory becomes long-term.
    pub consolidation: Consolidation,
    /// Whose signed tokens count.
    pub trust: Trust,
    /// The Universal Memory Protocol.
    pub ump: Ump,
    /// What is published.
    pub publish: Publish,
    /// What concerns OAMP alone.
    pub oamp: Oamp,
    /// What concerns UAMP alone.
    pub uamp: Uamp,
    /// What concerns memorywire alone.
    pub memorywire: Memorywire,
    /// Copies of the vaults that a server makes by itself.
    pub backup: Backups,
    /// What concerns OMP alone.
    pub omp: Omp,
    /// Identity providers through which people sign in to the web app.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sign_in: Vec<crate::sign_in::Provider>,
    /// Stores beside the vault, for memorywire. Their addresses may hold passwords, so they are
    /// never written down again.
    #[serde(skip_serializing)]
    pub stores: Vec<yore_router::config::StoreConfig>,
    /// The master key when it does not come from a file; never written down.
    #[serde(skip)]
    pub key: KeySource,
}

/// Where to listen.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Listen {
    /// Plain HTTP, loopback only, or `off`. Default: `127.0.0.1:7070`. Port 0 picks a free one.
    pub http: Bind,
    /// TLS 1.3, or `off`. Default: `127.0.0.1:7443`.
    pub https: Bind,
    /// Whether HTTP/3 is spoken at the address of TLS, too. Default: yes.
    pub http3: bool,
    /// Whether to serve `run/yore.sock` in the data directory. Default: yes.
    pub socket: bool,
    /// Host names by which callers may address the server, besides `localhost` and the
    /// addresses it listens on.
    pub hosts: Vec<String>,
    /// Web origins that may call, besides the server's own.
    pub origins: Vec<String>,
}

/// Certificates.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// A PEM file with the server's chain. Default: one signed by an authority made here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// A PEM file with its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// PEM files with the authorities that sign the certificates of clients. Without any, every
    /// certificate is looked at that was registered by its fingerprint (`yore grant certificate`);
    /// with a server's certificate of your own none is asked for then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub client_authorities: Vec<PathBuf>,
}

/// What concerns memorywire alone.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memorywire {
    /// Whether every request must name a person, or say by `agent_only` that it means none.
    /// Default: no.
    pub require_user: bool,
}

/// What concerns OAMP alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Oamp {
    /// Whether what the protocol's own examples leave out is refused. Default: no.
    pub strict: bool,
    /// A file with a secret that an issuer shares, for grants signed with HS256. Default: none,
    /// and no such grant is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_secret_file: Option<PathBuf>,
}

impl Oamp {
    /// How the dialect is to speak.
    pub(crate) fn options(&self) -> yore_oamp::Options {
        let strict = match self.strict {
            true => yore_oamp::Strictness::Strict,
            false => yore_oamp::Strictness::Lenient,
        };
        yore_oamp::Options { strict }
    }

    /// The secret that is shared, when there is one.
    pub(crate) fn shared_secret(&self) -> Result<Option<Secret>> {
        let Some(path) = &self.shared_secret_file else { return Ok(None) };
        let wrong = |reason: String| {
            Error::Config(format!("oamp.shared_secret_file {}: {reason}", path.display()))
        };
        let text = Zeroizing::new(
            std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?,
        );
        let secret = text.trim();
        if secret.len() < 32 {
            return Err(wrong("must hold at least 32 bytes".into()));
        }
        Ok(Some(Secret::new(secret)))
    }
}

/// What concerns UAMP alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Uamp {
    /// Where the server is reached from outside, for what it publishes about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether messages from this machine may come in clear text. Default: no.
    pub insecure_loopback: bool,
    /// Whether ids that are no UUIDs are taken. Default: no.
    pub odd_ids: bool,
    /// Hosts whose DID documents may be fetched from private addresses.
    pub private_hosts: Vec<String>,
    /// Files with the documents of DIDs on the web, which are then never fetched.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub documents: BTreeMap<String, PathBuf>,
    /// Seconds that a message's time may lie from now. Default: 300.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance_seconds: Option<u64>,
    /// Messages an hour that each sender may send. Default: as many as it likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_per_hour: Option<u32>,
}

impl Uamp {
    /// How the protocol is to be spoken.
    pub(crate) fn options(&self) -> yore_uamp::Options {
        let usual = yore_uamp::Options::default();
        yore_uamp::Options {
            ids: if self.odd_ids { yore_uamp::Ids::Any } else { yore_uamp::Ids::Uuids },
            clear_text: match self.insecure_loopback {
                true => yore_uamp::ClearText::Loopback,
                false => yore_uamp::ClearText::Refused,
            },
            url: self.url.clone(),
            tolerance: self.tolerance_seconds.map_or(usual.tolerance, Span::seconds),
            ..usual
        }
    }
}

/// How short-term memory becomes long-term.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Consolidation {
    /// Seconds between two looks; 0 means that only `yore consolidate` looks. Default: 60.
    pub every_seconds: u64,
    /// The score from which something is promoted, from 0 to 1. Default: 0.6.
    pub threshold: f64,
    /// What one agent keeps of one person in short-term memory. Default: 100.
    pub window: usize,
    /// Who scores: `balanced` or `reference`. Default: `balanced`.
    pub scorer: String,
}

impl Default for Consolidation {
    fn default() -> Self {
        Self {
            every_seconds: 60,
            threshold: 0.6,
            window: yore_engine::WINDOW,
            scorer: "balanced".into(),
        }
    }
}

impl Consolidation {
    /// The engine's settings.
    pub(crate) fn settings(&self) -> Result<Consolidating> {
        let wrong = |what: &str| Error::Config(format!("consolidation.{what}"));
        if !(0.0..=1.0).contains(&self.threshold) {
            return Err(wrong("threshold must be a number from 0 to 1"));
        }
        if self.window == 0 {
            return Err(wrong("window must not be 0"));
        }
        let mut settings = Consolidating {
            every: Span::seconds(self.every_seconds),
            threshold: self.threshold,
            window: self.window,
            ..Consolidating::default()
        };
        settings.prefer(&self.scorer).map_err(|error| wrong(&error.to_string()))?;
        Ok(settings)
    }
}

/// What concerns OMP alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Omp {
    /// Whether it is spoken in clear text on the loopback address, too. The protocol forbids it.
    /// Default: no; whoever asks is told the address with TLS.
    pub insecure_loopback: bool,
    /// Whether a change must name the state it is about by `If-Match`. Default: no.
    pub require_if_match: bool,
    /// Bytes of an archive that is brought in. Default: 10 GiB.
    pub archive_bytes: u64,
    /// The laws whose demands are declared to be met: `hipaa`, `glba`, `coppa`, `traiga`, `tdpsa`.
    /// With `coppa` nothing is stored before it is said of a vault whether it is a child's.
    /// Default: none.
    pub compliance_profiles: Vec<yore_omp::Profile>,
    /// Whether the operator signs agreements about health data. Default: no.
    pub baa_available: bool,
    /// Where the data lies, such as `eu-central`. Default: not said.
    pub data_residency_regions: Vec<String>,
}

impl Default for Omp {
    fn default() -> Self {
        let archive_bytes = yore_omp::Options::default().archive_bytes;
        Self {
            insecure_loopback: false,
            require_if_match: false,
            archive_bytes,
            compliance_profiles: Vec::new(),
            baa_available: false,
            data_residency_regions: Vec::new(),
        }
    }
}

impl Omp {
    /// Whether it must be known of a person that they are no child before anything is stored.
    pub(crate) fn gate(&self) -> Gate {
        match self.compliance_profiles.contains(&yore_omp::Profile::Coppa) {
            true => Gate::Closed,
            false => Gate::Open,
        }
    }

    /// How the protocol is to be spoken.
    pub(crate) fn options(&self, listen: &Listen, data: &Path) -> yore_omp::Options {
        let tls_at = match listen.https {
            // The address is not known yet where the system is to choose the port.
            Bind::At(address) if address.port() != 0 => Some(format!("https://{address}")),
            Bind::At(_) | Bind::Off => None,
        };
        yore_omp::Options {
            clear_text: self.insecure_loopback,
            tls_at,
            require_if_match: self.require_if_match,
            spool: Some(data.join("spool")),
            archive_bytes: self.archive_bytes,
            profiles: self.compliance_profiles.clone(),
            baa_available: self.baa_available,
            regions: self.data_residency_regions.clone(),
            ..yore_omp::Options::default()
        }
    }
}

/// Whose signed tokens count, besides those of a vault's owner.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Trust {
    /// The server's own DID: tokens it signed count, and tokens may be meant for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub did: Option<String>,
    /// DIDs whose tokens count for every vault. Whoever holds such a key may read and write all
    /// of them.
    pub issuers: Vec<String>,
    /// Names by which signed tokens may address this server, such as its URL.
    pub audiences: Vec<String>,
    /// Authorisation servers whose access tokens count (OAuth 2.1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub oauth: Vec<crate::oauth::Issuer>,
}

/// The Universal Memory Protocol.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ump {
    /// Where the binding is reached from outside, for the well-known document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Whether records need provenance, foreign signers are refused and scopes match exactly.
    /// Default: no.
    pub strict: bool,
    /// Whether anybody may read what is public in the vault of a server with one owner. Absent,
    /// the vault's own setting counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_reads: Option<bool>,
}

/// What `yore publish` writes and the well-known document lists.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Publish {
    /// The directory that is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Where that directory is reached from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The forms that are written: `ump.json`, `ndjson`, `ump.md`. Default: `ump.json`.
    pub formats: Vec<String>,
}

impl Publish {
    /// The forms, and where each is reached when the URL is known.
    pub fn exports(&self) -> Result<Vec<(Format, String)>> {
        let named = match self.formats.is_empty() {
            true => vec![Format::Json],
            false => {
                let read = |name: &String| {
                    Format::parse(name).map_err(|e| Error::Config(format!("publish.formats: {e}")))
                };
                self.formats.iter().map(read).collect::<Result<Vec<_>>>()?
            }
        };
        let base = self.url.as_deref().unwrap_or_default().trim_end_matches('/');
        Ok(named
            .into_iter()
            .map(|format| (format, format!("{base}/{}", published(format))))
            .collect())
    }
}

/// What the published file of a form is called; one file a record lies in a directory.
#[must_use]
pub const fn published(format: Format) -> &'static str {
    match format {
        Format::Json => "memories.ump.json",
        Format::Ndjson => "memories.ndjson",
        Format::Markdown => "memories/",
    }
}

/// Bounds on what one caller can cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of a request. Default: 2 MiB.
    pub body: usize,
    /// Bytes of a request that brings much, such as an import. Default: 16 MiB.
    pub heavy_body: usize,
    /// Bytes of an attachment; 256 MiB at most. Default: 64 MiB.
    pub attachment: u64,
    /// Nesting of a request's JSON. Default: 32.
    pub depth: usize,
    /// Seconds a request may take. Default: 30.
    pub request_seconds: u64,
    /// Seconds a request that does much may take. Default: 600.
    pub heavy_seconds: u64,
    /// Seconds for a TLS handshake. Default: 10.
    pub handshake_seconds: u64,
    /// Seconds for a request's head, and for which a connection may say nothing. Default: 30.
    pub head_seconds: u64,
    /// Connections at once. Default: 1024.
    pub connections: usize,
    /// Seconds that requests under way get when the server ends. Default: 10.
    pub drain_seconds: u64,
    /// Reads a minute that each agent may make. Default: as many as it likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_per_minute: Option<u32>,
    /// Writes a minute that each agent may make. Default: as many as it likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_per_minute: Option<u32>,
    /// Recalls a minute that each agent may make, besides the limit on reads. Default: as many
    /// as it likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recalls_per_minute: Option<u32>,
    /// Milliseconds without a connection after which a server that was started for one
    /// command ends. Default: 2000.
    pub idle_millis: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: PathBuf::new(),
            key_file: None,
            database: None,
            log: "info".into(),
            strict_audit: false,
            effort: Effort::default(),
            sensitive: Care::default(),
            metrics: Metrics::default(),
            listen: Listen::default(),
            tls: Tls::default(),
            limits: Limits::default(),
            consolidation: Consolidation::default(),
            trust: Trust::default(),
            ump: Ump::default(),
            publish: Publish::default(),
            oamp: Oamp::default(),
            uamp: Uamp::default(),
            memorywire: Memorywire::default(),
            backup: Backups::default(),
            omp: Omp::default(),
            sign_in: Vec::new(),
            stores: Vec::new(),
            key: KeySource::default(),
        }
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            http: Bind::loopback(7070),
            https: Bind::loopback(7443),
            http3: true,
            socket: true,
            hosts: Vec::new(),
            origins: Vec::new(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 2 << 20,
            heavy_body: 16 << 20,
            attachment: 64 << 20,
            depth: 32,
            request_seconds: 30,
            heavy_seconds: 600,
            handshake_seconds: 10,
            head_seconds: 30,
            connections: 1024,
            drain_seconds: 10,
            reads_per_minute: None,
            writes_per_minute: None,
            recalls_per_minute: None,
            idle_millis: 2000,
        }
    }
}

impl Limits {
    pub(crate) const fn handshake(&self) -> Duration {
        Duration::from_secs(self.handshake_seconds)
    }

    pub(crate) const fn head(&self) -> Duration {
        Duration::from_secs(self.head_seconds)
    }

    pub(crate) const fn drain(&self) -> Duration {
        Duration::from_secs(self.drain_seconds)
    }

    pub(crate) const fn idle(&self) -> Duration {
        Duration::from_millis(self.idle_millis)
    }
}

/// An address to listen on, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Bind {
    /// Do not listen.
    Off,
    /// Listen here.
    At(SocketAddr),
}

impl Bind {
    /// The loopback address with this port.
    #[must_use]
    pub const fn loopback(port: u16) -> Self {
        Self::At(SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }
}

impl TryFrom<String> for Bind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "off" => Ok(Self::Off),
            address => address
                .parse()
                .map(Self::At)
                .map_err(|_| format!("{address} is neither an address with a port nor off")),
        }
    }
}

impl From<Bind> for String {
    fn from(bind: Bind) -> Self {
        match bind {
            Bind::Off => "off".into(),
            Bind::At(address) => address.to_string(),
        }
    }
}

/// Reads what must not be shown again.
fn secret<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<Secret>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.filter(|text| !text.is_empty()).map(Secret::new))
}

/// Who may read the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metrics {
    /// Nobody.
    Off,
    /// Callers on this machine.
    #[default]
    Loopback,
    /// Everybody who can connect.
    All,
}

impl Config {
    /// Lays the layers over one another and reads the result.
    pub fn load(layers: Layers) -> Result<Self> {
        let (table, key) = layers.merged()?;
        let mut config: Self = toml::Value::Table(table)
            .try_into()
            .map_err(|error: toml::de::Error| Error::Config(error.message().to_owned()))?;
        config.key = match (key, &config.key_file) {
            (Some(key), _) => key,
            (None, Some(path)) => KeySource::File(path.clone()),
            (None, None) => KeySource::Default,
        };
        if config.data.as_os_str().is_empty() {
            config.data = crate::place::data()?;
        }
        config.check()?;
        Ok(config)
    }

    /// Refuses what could not work or would not be safe.
    pub fn check(&self) -> Result<()> {
        if let Bind::At(address) = self.listen.http
            && !address.ip().is_loopback()
        {
            return Err(Error::Exposed(address));
        }
        if self.tls.certificate.is_some() != self.tls.key.is_some() {
            return Err(Error::Config("tls.certificate and tls.key belong together".into()));
        }
        if self.limits.connections == 0 || self.limits.body == 0 {
            return Err(Error::Config("a limit of zero would refuse everything".into()));
        }
        for issuer in self.trust.did.iter().chain(&self.trust.issuers) {
            if issuer.parse::<Did>().is_err() {
                return Err(Error::Config(format!("trust: {issuer} is not a DID")));
            }
        }
        for oauth in &self.trust.oauth {
            let clear = oauth.jwks.as_ref().is_some_and(|keys| keys.starts_with("http://"));
            if !oauth.issuer.starts_with("https://") || clear {
                let reason = "trust.oauth: issuer and jwks are https addresses";
                return Err(Error::Config(reason.into()));
            }
            if oauth.audience.is_none() && self.trust.audiences.is_empty() {
                let reason = "trust.oauth: an audience is needed here or in trust.audiences";
                return Err(Error::Config(reason.into()));
            }
        }
        for did in self.uamp.documents.keys() {
            if did.parse::<Did>().ok().and_then(|did| did.web_url().ok()).is_none() {
                return Err(Error::Config(format!("uamp.documents: {did} is not a did:web")));
            }
        }
        for provider in &self.sign_in {
            provider.check().map_err(Error::Config)?;
        }
        self.publish.exports()?;
        self.consolidation.settings()?;
        self.backup.check()?;
        if !(1..=yore_canon::json::MAX_DEPTH).contains(&self.limits.depth) {
            return Err(Error::Config(format!(
                "limits.depth must be 1 to {}",
                yore_canon::json::MAX_DEPTH
            )));
        }
        Ok(())
    }

    /// Prints the effective configuration as TOML, without secrets.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string_pretty(self).map_err(|error| Error::Config(error.to_string()))
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from(*self))
    }
}

#[cfg(test)]
mod tests;
