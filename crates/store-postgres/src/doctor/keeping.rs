//! Whether the database keeps what it acknowledged, and keeps itself in order.

use tokio_postgres::Client;

use super::{Findings, one, setting};
use crate::error::Result;

/// How far behind a standby may be, in seconds, before it is worth a word.
const LAG: f64 = 10.0;
/// From so many dead rows on, and such a share of all, a table wants to be cleaned.
const DEAD: i64 = 10_000;
const SHARE: f64 = 0.2;
/// From so many transactions on, it is time to freeze; at 2.1 thousand million it stops.
const OLD: i64 = 1_000_000_000;

pub(super) async fn replication(client: &Client, findings: &mut Findings) -> Result<()> {
    for (name, must) in [("fsync", true), ("full_page_writes", true)] {
        if setting(client, name).await? == "off" && must {
            let advice =
                format!("ALTER SYSTEM SET {name} = on: a crash of the machine loses vaults");
            findings.wrong("durability", format!("{name} is off"), advice);
        }
    }
    let commit = setting(client, "synchronous_commit").await?;
    let standbys = setting(client, "synchronous_standby_names").await?;
    let sql =
        "SELECT coalesce(application_name, ''), coalesce(state, ''), coalesce(sync_state, ''),
            coalesce(extract(epoch FROM replay_lag)::float8, 0),
            coalesce(pg_wal_lsn_diff(sent_lsn, replay_lsn), 0)::bigint
        FROM pg_stat_replication ORDER BY 1";
    let rows = client.query(sql, &[]).await?;
    let mut shown = Vec::new();
    let (mut late, mut synchronous) = (Vec::new(), 0);
    for row in &rows {
        let (name, state, sync): (&str, &str, &str) = (row.get(0), row.get(1), row.get(2));
        let (lag, bytes): (f64, i64) = (row.get(3), row.get(4));
        shown.push(format!("{name} {state} {sync}, {lag:.1} s and {bytes} bytes behind"));
        synchronous += usize::from(matches!(sync, "sync" | "quorum"));
        if lag >= LAG || (state != "streaming" && !state.is_empty()) {
            late.push(name.to_owned());
        }
    }
    let shown = if shown.is_empty() { "no standby".to_owned() } else { shown.join("; ") };
    if commit == "off" {
        let advice = "ALTER SYSTEM SET synchronous_commit = on: what is acknowledged may be lost";
        findings.wrong("replication", format!("synchronous_commit is off; {shown}"), advice);
    } else if standbys.is_empty() {
        let advice = "the loss of its machine loses what was acknowledged last: let a group of \
                      synchronous standbys be kept (docs/deploy.md), unless copies are enough";
        findings.doubtful("replication", format!("not synchronous; {shown}"), advice);
    } else if synchronous == 0 {
        let advice = "commits wait for a standby that is not there: bring it back, or take it out of \
                      synchronous_standby_names";
        findings.wrong("replication", format!("waits for {standbys}; {shown}"), advice);
    } else if !late.is_empty() {
        let advice = "look at the standby's network and disk";
        findings.doubtful("replication", format!("{} is late; {shown}", late.join(", ")), advice);
    } else {
        findings.fine("replication", shown);
    }
    Ok(())
}

pub(super) async fn tidiness(client: &Client, findings: &mut Findings) -> Result<()> {
    if setting(client, "autovacuum").await? == "off" {
        let advice = "ALTER SYSTEM SET autovacuum = on: without it tables only grow";
        findings.wrong("vacuum", "autovacuum is off", advice);
        return Ok(());
    }
    let age: i64 = one(
        client,
        "SELECT age(datfrozenxid)::bigint FROM pg_database WHERE datname = current_database()",
    )
    .await?
    .get(0);
    if age > OLD {
        let advice = "VACUUM FREEZE, and look for what holds it up: old transactions, slots";
        findings.wrong("vacuum", format!("{age} transactions were not frozen"), advice);
        return Ok(());
    }
    let sql = "SELECT relname::text, n_dead_tup, n_live_tup FROM pg_stat_all_tables
        WHERE schemaname = 'yore' ORDER BY n_dead_tup DESC LIMIT 5";
    let mut full = Vec::new();
    for row in client.query(sql, &[]).await? {
        let (name, dead, live): (&str, i64, i64) = (row.get(0), row.get(1), row.get(2));
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more")]
        let share = dead as f64 / (dead + live).max(1) as f64;
        if dead >= DEAD && share >= SHARE {
            full.push(format!("{name} ({:.0} % dead)", share * 100.0));
        }
    }
    let size: i64 = one(client, "SELECT pg_database_size(current_database())").await?.get(0);
    let size = format!("the database has {} MiB", size / (1 << 20));
    if full.is_empty() {
        findings.fine("vacuum", format!("tables are clean; {size}"));
    } else {
        let advice =
            "VACUUM (ANALYZE) them; if it comes back, lower autovacuum_vacuum_scale_factor";
        findings.doubtful("vacuum", format!("{}; {size}", full.join(", ")), advice);
    }
    Ok(())
}
