//! Asks a server of the Universal Memory Protocol what it does, and compares that with what the
//! protocol demands. It knows nothing of how any server is built: ours is one among others.

mod basics;
mod proofs;
mod way;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use yore_canon::captoken;
use yore_canon::did::Did;
use yore_canon::key::{Algorithm, SigningKey};
use yore_client::Client;
use yore_domain::MemoryId;
use yore_engine::Secret;

use crate::failure::{Failure, Result};

pub(crate) use way::{Tools, Way};

/// A level of conformance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) enum Level {
    /// Files.
    L0,
    /// Operations.
    L1,
    /// Time, scope and consent.
    L2,
    /// Proof.
    L3,
}

impl Level {
    /// All levels.
    pub(crate) const ALL: [Self; 4] = [Self::L0, Self::L1, Self::L2, Self::L3];

    /// Its name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::L0 => "L0",
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::L3 => "L3",
        }
    }

    /// Reads a name.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|level| level.as_str().eq_ignore_ascii_case(text));
        known.ok_or_else(|| "must be L0, L1, L2 or L3".to_owned())
    }
}

/// What became of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "state", content = "why")]
pub(crate) enum Outcome {
    /// The server does what is demanded.
    Passed,
    /// It does not.
    Failed(String),
    /// It could not be asked.
    Skipped(String),
}

/// One demand, on every way it was checked.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    /// The level that demands it.
    pub(crate) level: Level,
    /// A short name.
    pub(crate) name: &'static str,
    /// What is demanded.
    pub(crate) what: &'static str,
    /// What became of it, by way.
    pub(crate) outcomes: BTreeMap<&'static str, Outcome>,
}

/// What was found out about a server.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    /// The checks, in the order in which they were made.
    pub(crate) checks: Vec<Check>,
    /// The version that the server speaks.
    pub(crate) version: String,
    /// The level it claims.
    pub(crate) claimed: String,
    /// The highest level it keeps.
    pub(crate) level: Option<Level>,
    /// The ways on which all of that was checked.
    pub(crate) bindings: Vec<&'static str>,
}

impl Report {
    /// The claim that the server may make.
    pub(crate) fn badge(&self) -> String {
        let level = self.level.map_or("none", Level::as_str);
        let version = if self.version.is_empty() { "?" } else { &self.version };
        match self.bindings.is_empty() {
            true => format!("UMP {version} / {level}"),
            false => format!("UMP {version} / {level} / {}", self.bindings.join("+")),
        }
    }

    fn note(
        &mut self,
        level: Level,
        name: &'static str,
        what: &'static str,
        way: &'static str,
        outcome: Outcome,
    ) {
        match self.checks.iter_mut().find(|check| check.name == name) {
            Some(check) => _ = check.outcomes.insert(way, outcome),
            None => {
                let outcomes = BTreeMap::from([(way, outcome)]);
                self.checks.push(Check { level, name, what, outcomes });
            }
        }
    }

    /// A level is kept when nothing of it and of those below it failed, and something of it was
    /// checked.
    fn conclude(&mut self) {
        for level in Level::ALL {
            let of: Vec<&Check> = self.checks.iter().filter(|check| check.level == level).collect();
            let outcomes = || of.iter().flat_map(|check| check.outcomes.values());
            if outcomes().any(|one| matches!(one, Outcome::Failed(_))) {
                return;
            }
            if outcomes().any(|one| *one == Outcome::Passed) {
                self.level = Some(level);
            } else if level != Level::L0 {
                return;
            }
        }
    }
}

/// Whom and what the probe may use.
#[derive(Debug)]
pub(crate) struct Probe {
    /// The server, with the token it was given.
    pub(crate) client: Client,
    /// The server, with no credential.
    pub(crate) stranger: Client,
    /// The server, with a token that may only read, when one was given.
    pub(crate) reader: Option<Client>,
    /// Where MCP is spoken.
    pub(crate) mcp: String,
    /// Whose memories the probe makes.
    pub(crate) owner: String,
    /// A scope that nothing else uses.
    pub(crate) project: String,
    key: SigningKey,
}

/// Why a check did not pass.
type Fault = std::result::Result<(), String>;

impl Probe {
    /// Makes a probe of a server.
    pub(crate) fn new(
        server: Client,
        token: Option<&str>,
        reader: Option<&str>,
        mcp: String,
        owner: Option<String>,
    ) -> Self {
        let mut seed = [0; 32];
        seed[..16].copy_from_slice(&MemoryId::random().bytes());
        seed[16..].copy_from_slice(&MemoryId::random().bytes());
        let key = SigningKey::generate(Algorithm::Ed25519, &seed);
        let owner = owner.unwrap_or_else(|| Did::of_key(&key.verifying_key()).as_str().to_owned());
        let with = |token: &str| server.clone().with_token(Secret::new(token));
        Self {
            client: token.map_or_else(|| server.clone(), with),
            reader: reader.map(with),
            stranger: server,
            mcp,
            owner,
            project: format!("ump-conformance-{}", MemoryId::random()),
            key,
        }
    }

    /// Makes all checks.
    pub(crate) async fn run(&self) -> Result<Report> {
        let mut report = Report::default();
        let http = Way::Http(self.client.clone());
        let offered = http.call("capabilities", &json!({})).await?.unwrap_or_default();
        report.version = offered["ump"].as_str().unwrap_or_default().to_owned();
        report.claimed = offered["conformance"].as_str().unwrap_or_default().to_owned();
        let claims_mcp =
            offered["bindings"].as_array().is_some_and(|list| list.contains(&"mcp".into()));
        let mut ways = vec![("HTTP", http)];
        match Tools::open(self.client.clone(), &self.mcp).await {
            Ok(Ok(tools)) => ways.push(("MCP", Way::Mcp(tools))),
            Ok(Err(why)) => self.no_mcp(&mut report, claims_mcp, why),
            Err(failure) => self.no_mcp(&mut report, claims_mcp, failure.message),
        }
        for &(name, ref way) in &ways {
            self.basics(&mut report, name, way).await?;
            self.proofs(&mut report, name, way).await?;
            report.bindings.insert(0, name);
        }
        self.binding(&mut report).await?;
        report.conclude();
        Ok(report)
    }

    fn no_mcp(&self, report: &mut Report, claimed: bool, why: String) {
        let outcome = if claimed { Outcome::Failed(why) } else { Outcome::Skipped(why) };
        report.note(
            Level::L1,
            "tools",
            "MCP tools are offered where they are claimed",
            "MCP",
            outcome,
        );
    }

    /// A record of the probe's own.
    fn record(&self, text: &str) -> Value {
        json!({
            "kind": "semantic",
            "body": {"text": text},
            "scope": {"owner": self.owner, "project": self.project, "visibility": "private"},
            "provenance": {"actor": "ump-conformance", "actor_kind": "agent", "method": "probe"},
        })
    }

    /// Remembers; returns the id.
    async fn keep(&self, way: &Way, record: &Value) -> Result<std::result::Result<String, String>> {
        Ok(match way.call("remember", &json!({"record": record})).await? {
            Err(refusal) => Err(format!("remember was refused: {refusal:?}")),
            Ok(answer) => match (answer["id"].as_str(), answer["result"].as_str()) {
                (Some(id), Some("created")) => Ok(id.to_owned()),
                _ => Err(format!("remember answered {answer}")),
            },
        })
    }

    /// The ids that a recall in the probe's scope returns.
    async fn found(
        &self,
        way: &Way,
        query: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Vec<String>> {
        let mut input = json!({
            "query": query,
            "scope": {"owner": self.owner, "project": self.project},
            "limit": 50,
        });
        change(&mut input);
        let answer = way.call("recall", &input).await?.unwrap_or_default();
        let results = answer["results"].as_array().cloned().unwrap_or_default();
        Ok(results
            .iter()
            .filter_map(|one| Some(one["record"]["id"].as_str()?.to_owned()))
            .collect())
    }

    /// A token that somebody issued who has nothing to say here.
    fn foreign(&self) -> Result<String> {
        let claims = json!({
            "v": "ump-cap/1.0",
            "iss": Did::of_key(&self.key.verifying_key()),
            "verbs": ["read", "write", "derive", "export"],
            "scope": {},
            "exp": "2999-01-01T00:00:00Z",
            "jti": MemoryId::random().to_string(),
        });
        let Value::Object(claims) = claims else { return Err(Failure::failed("no claims")) };
        captoken::encode(&claims, &self.key).map_err(|error| Failure::failed(error.to_string()))
    }

    /// A text that nothing else says.
    fn unique(&self, what: &str) -> String {
        format!("{what} {}", MemoryId::random())
    }
}

fn passed(fault: Fault) -> Outcome {
    match fault {
        Ok(()) => Outcome::Passed,
        Err(why) => Outcome::Failed(why),
    }
}

/// Fails with a reason unless something holds.
fn ensure(holds: bool, why: impl Into<String>) -> Fault {
    if holds { Ok(()) } else { Err(why.into()) }
}
