//! Examining a database: whether it is reached as it should be, walls every vault off, keeps what it
//! acknowledged, and has room for the servers. Nothing is changed.

mod keeping;
mod surroundings;
mod walls;

use tokio_postgres::{Client, Row};
use yore_domain::Timestamp;

use crate::error::{Error, Result};
use crate::store::Options;

/// How a look at something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It is as it should be.
    Fine,
    /// It works, and may hurt one day.
    Doubtful,
    /// It must not stay so.
    Wrong,
}

/// What was looked at and found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub what: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub advice: Option<String>,
}

/// Findings, as they come.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn fine(&mut self, what: &'static str, found: impl Into<String>) {
        self.0.push(Finding { what, verdict: Verdict::Fine, found: found.into(), advice: None });
    }

    fn add(
        &mut self,
        what: &'static str,
        verdict: Verdict,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let advice = Some(advice.into());
        self.0.push(Finding { what, verdict, found: found.into(), advice });
    }

    fn doubtful(
        &mut self,
        what: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(what, Verdict::Doubtful, found, advice);
    }

    fn wrong(&mut self, what: &'static str, found: impl Into<String>, advice: impl Into<String>) {
        self.add(what, Verdict::Wrong, found, advice);
    }

    /// Notes a question that the database did not answer.
    fn or_say(&mut self, what: &'static str, looked: Result<()>) {
        if let Err(error) = looked {
            let advice = "the login may not ask this; GRANT pg_monitor TO it, or ask as its owner";
            self.doubtful(what, format!("cannot be looked at: {error}"), advice);
        }
    }
}

/// Examines the database of the options. `now` tells the time here.
pub async fn examine(options: &Options, now: impl Fn() -> Timestamp) -> Vec<Finding> {
    let mut findings = Findings::default();
    let setup = match options.setup() {
        Ok(setup) => setup,
        Err(error) => {
            findings.wrong("database", error.to_string(), "see docs/deploy.md for the address");
            return findings.0;
        }
    };
    let client = match setup.connect().await {
        Ok(client) => client,
        Err(error) => {
            let (found, advice) = unreachable(&error);
            findings.wrong("database", found, advice);
            return findings.0;
        }
    };
    let looked = surroundings::reached(&client, &setup, &mut findings).await;
    findings.or_say("database", looked);
    let looked = surroundings::clock(&client, &now, &mut findings).await;
    findings.or_say("clock", looked);
    let made = walls::tables(&client, &mut findings).await;
    let made = made.unwrap_or_else(|error| {
        findings.or_say("schema", Err(error));
        false
    });
    if made {
        let looked = walls::role(&client, &options.role, &mut findings).await;
        findings.or_say("role", looked);
        let looked = walls::rows(&client, &mut findings).await;
        findings.or_say("walls between vaults", looked);
        let looked = walls::parts(&client, &mut findings).await;
        findings.or_say("partitions", looked);
        let looked = walls::indexes(&client, &mut findings).await;
        findings.or_say("indexes of the database", looked);
        let looked = surroundings::session(&setup, &mut findings).await;
        findings.or_say("timeouts", looked);
    }
    let looked = keeping::replication(&client, &mut findings).await;
    findings.or_say("replication", looked);
    let looked = surroundings::room(&client, options, &mut findings).await;
    findings.or_say("connections", looked);
    let looked = keeping::tidiness(&client, &mut findings).await;
    findings.or_say("vacuum", looked);
    findings.0
}

/// Why the database cannot be reached, and what usually helps.
fn unreachable(error: &Error) -> (String, String) {
    let mut found = error.to_string();
    if let Error::Postgres(error) = error {
        let mut cause = std::error::Error::source(error);
        while let Some(below) = cause {
            found = format!("{found}: {below}");
            cause = below.source();
        }
    }
    let code = if let Error::Postgres(error) = error { error.code() } else { None };
    let code = code.map_or("", |code| code.code());
    let advice = match code {
        "28000" | "28P01" => "the login is refused: look at its password and at pg_hba.conf",
        "3D000" => "there is no such database: createdb makes it",
        "53300" => "it has no connection left: raise max_connections, or stop some servers",
        "57P03" => "it is starting up or shutting down: try again",
        _ => {
            "is it running there, and may this machine reach it? TLS is wanted elsewhere than here: \
              sslrootcert names whom to trust"
        }
    };
    (found, advice.to_owned())
}

/// One row that is always there.
async fn one(client: &Client, sql: &str) -> Result<Row> {
    Ok(client.query_one(sql, &[]).await?)
}

/// A setting of the database.
async fn setting(client: &Client, name: &str) -> Result<String> {
    Ok(client.query_one("SELECT current_setting($1)", &[&name]).await?.get(0))
}
