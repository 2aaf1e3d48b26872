//! How the database is reached: versions, encryption, sessions, clocks, connections.

use tokio_postgres::Client;
use yore_domain::Timestamp;

use super::{Findings, one, setting};
use crate::error::Result;
use crate::pool::Setup;
use crate::store::{LOOKUPS, Options};

/// The oldest versions that are tried.
const POSTGRES: i32 = 150_000;
const VECTOR: (u32, u32) = (0, 7);
const ITERATIVE: (u32, u32) = (0, 8);
/// How far clocks may differ, in seconds, before it matters and before it hurts.
const SKEW: f64 = 1.0;
const TOO_FAR: f64 = 30.0;

pub(super) async fn reached(client: &Client, setup: &Setup, findings: &mut Findings) -> Result<()> {
    let row = one(
        client,
        "SELECT current_database(), current_user, current_setting('server_version'),
             current_setting('server_version_num')::int, pg_is_in_recovery()",
    )
    .await?;
    let (name, user, version): (&str, &str, &str) = (row.get(0), row.get(1), row.get(2));
    let found = format!("{name} as {user}, PostgreSQL {version}");
    if row.get::<_, i32>(3) < POSTGRES {
        findings.wrong("database", found, "PostgreSQL 15 is the oldest that is supported");
    } else if row.get(4) {
        let advice = "name all members in the address and target_session_attrs=read-write";
        findings.wrong("database", format!("{found}: a standby that takes no writes"), advice);
    } else {
        findings.fine("database", found);
    }
    let sql = "SELECT ssl, version, cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let row = one(client, sql).await?;
    if row.get::<_, Option<bool>>(0) == Some(true) {
        let (version, cipher): (Option<&str>, Option<&str>) = (row.get(1), row.get(2));
        let found = format!("{} {}", version.unwrap_or_default(), cipher.unwrap_or_default());
        findings.fine("encryption", found.trim());
    } else if crate::tls::is_near(&setup.config) {
        findings.fine("encryption", "in clear, on this machine");
    } else {
        let advice = "leave out sslmode=disable, unless nobody else is on that network";
        findings.doubtful("encryption", "in clear, to another machine", advice);
    }
    extension(client, findings).await
}

async fn extension(client: &Client, findings: &mut Findings) -> Result<()> {
    let sql = "SELECT extversion, extnamespace::regnamespace::text FROM pg_extension
        WHERE extname = 'vector'";
    let Some(row) = client.query_opt(sql, &[]).await? else {
        let sql = "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'";
        let there = client.query_opt(sql, &[]).await?;
        let (found, advice) = match there {
            Some(_) => {
                ("not made yet", "the first server makes it; CREATE EXTENSION vector does, too")
            }
            None => ("not installed", "install pgvector 0.7 or newer where the database runs"),
        };
        match there {
            Some(_) => findings.doubtful("pgvector", found, advice),
            None => findings.wrong("pgvector", found, advice),
        }
        return Ok(());
    };
    let version: &str = row.get(0);
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let number = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if number < VECTOR {
        findings.wrong("pgvector", version, "0.7 is the oldest that is supported");
    } else if number < ITERATIVE {
        let advice = "0.8 reads an index on and on where a filter hides much: ALTER EXTENSION vector \
                      UPDATE, once it is installed";
        findings.doubtful("pgvector", version, advice);
    } else {
        findings.fine("pgvector", version);
    }
    Ok(())
}

pub(super) async fn clock(
    client: &Client,
    now: &impl Fn() -> Timestamp,
    findings: &mut Findings,
) -> Result<()> {
    let before = now();
    let row =
        one(client, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").await?;
    let after = now();
    let there: i64 = row.get(0);
    // Somewhere between the question and the answer.
    let ahead = (there - after.micros()).max(0) - (before.micros() - there).max(0);
    #[expect(clippy::cast_precision_loss, reason = "it is shown to a tenth of a second")]
    let seconds = ahead as f64 / 1e6;
    let found = format!("the database is {seconds:.1} s ahead of this machine");
    let advice = "let both follow the same time, for example by NTP: limits and expiry go by it";
    if seconds.abs() >= TOO_FAR {
        findings.wrong("clock", found, advice);
    } else if seconds.abs() >= SKEW {
        findings.doubtful("clock", found, advice);
    } else {
        findings.fine("clock", "the same as here");
    }
    Ok(())
}

/// Whether what a server sets for its session stays set.
pub(super) async fn session(setup: &Setup, findings: &mut Findings) -> Result<()> {
    let client = setup.connect_lesser().await?;
    let mut pids = Vec::new();
    for _ in 0..3 {
        pids.push(one(&client, "SELECT pg_backend_pid()").await?.get::<_, i32>(0));
    }
    let mut lost = Vec::new();
    let wanted = [
        ("statement_timeout", setup.statement),
        ("lock_timeout", setup.lock),
        ("idle_in_transaction_session_timeout", setup.idle),
    ];
    for (name, wanted) in wanted {
        let sql = "SELECT setting FROM pg_settings WHERE name = $1";
        let set: &str = &client.query_one(sql, &[&name]).await?.get::<_, String>(0);
        if set != wanted.as_millis().to_string() {
            lost.push(name);
        }
    }
    let acting = one(&client, "SELECT current_user::text").await?.get::<_, String>(0);
    if pids.windows(2).any(|pair| pair[0] != pair[1]) || !lost.is_empty() || acting != setup.role {
        let what = if lost.is_empty() { "the role".to_owned() } else { lost.join(", ") };
        let advice = "something between here and the database gives each transaction another session: \
                      let it pool by session, or go round it";
        findings.wrong("timeouts", format!("{what} does not stay as it is set"), advice);
        return Ok(());
    }
    let seconds = |time: std::time::Duration| time.as_secs();
    let (statement, lock, idle) =
        (seconds(setup.statement), seconds(setup.lock), seconds(setup.idle));
    let found = format!("a statement {statement} s, a lock {lock} s, an idle view {idle} s");
    findings.fine("timeouts", found);
    Ok(())
}

pub(super) async fn room(
    client: &Client,
    options: &Options,
    findings: &mut Findings,
) -> Result<()> {
    let number = |text: String| text.parse::<i64>().unwrap_or(0);
    let most = number(setting(client, "max_connections").await?);
    let kept = number(setting(client, "superuser_reserved_connections").await?);
    let sql = "SELECT datconnlimit::bigint, (SELECT rolconnlimit::bigint FROM pg_roles
            WHERE rolname = session_user)
        FROM pg_database WHERE datname = current_database()";
    let limits = one(client, sql).await?;
    let bounds: Vec<i64> = [limits.get(0), limits.get(1)]
        .into_iter()
        .filter(|limit: &i64| *limit >= 0)
        .chain([most - kept])
        .collect();
    let room = bounds.into_iter().min().unwrap_or(0);
    let used: i64 =
        one(client, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
            .await?
            .get(0);
    let each = i64::try_from(options.readers + options.writers + LOOKUPS + 1).unwrap_or(i64::MAX);
    let found = format!(
        "{used} of {room} in use; a server takes up to {each}, so there is room for {} servers",
        room / each
    );
    if room < each {
        let advice = format!("max_connections must be at least {} for one server", each + kept);
        findings.wrong("connections", found, advice);
    } else if used + each > room {
        let advice = "another server may find none: raise max_connections or the limits of login and \
                      database";
        findings.doubtful("connections", found, advice);
    } else {
        findings.fine("connections", found);
    }
    Ok(())
}
