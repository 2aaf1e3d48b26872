//! Checking a vault: every value opens, the audit chain holds, what is to be found is findable.

use yore_domain::VaultId;
use yore_store::keeper::Health;

use super::view;
use crate::audit;
use crate::error::Result;
use crate::keeper::traces;
use crate::store::Inner;

/// What must be true of the rows, each as a count of those for which it is not.
const RULES: [(&str, &str); 4] = [
    (
        "memories whose head is not their newest version",
        "SELECT count(*) FROM memory m WHERE vault = $1 AND NOT EXISTS (SELECT 1 FROM version v
            WHERE v.vault = $1 AND v.row = m.head_row AND v.memory = m.row AND v.number = m.head)",
    ),
    (
        "documents without a row",
        "SELECT count(*) FROM document d WHERE vault = $1
            AND NOT (d.source = 0 AND EXISTS (SELECT 1 FROM version v
                WHERE v.vault = $1 AND v.row = d.row AND v.memory = d.home AND v.class = d.own))
            AND NOT (d.source = 1 AND EXISTS (SELECT 1 FROM message m
                WHERE m.vault = $1 AND m.row = d.row AND m.conversation = d.home))",
    ),
    (
        "documents that are shown by another class than their memory's or conversation's",
        "SELECT count(*) FROM document d
            LEFT JOIN memory m ON d.source = 0 AND m.vault = $1 AND m.row = d.home
            LEFT JOIN conversation c ON d.source = 1 AND c.vault = $1 AND c.row = d.home
            WHERE d.vault = $1 AND d.seen IS DISTINCT FROM coalesce(m.class, c.class)",
    ),
    (
        "postings or vectors without a document or row",
        "SELECT (SELECT count(*) FROM posting p WHERE vault = $1 AND NOT EXISTS (SELECT 1
                FROM document d WHERE d.vault = $1 AND d.source = p.source AND d.row = p.row))
            + (SELECT count(*) FROM vector w WHERE vault = $1 AND NOT EXISTS (SELECT 1
                FROM version v WHERE v.vault = $1 AND w.source = 0 AND v.row = w.row)
                AND NOT EXISTS (SELECT 1 FROM message m
                WHERE m.vault = $1 AND w.source = 1 AND m.row = w.row))",
    ),
];

/// Checks a vault. Nothing is mended yet: postings change with their rows in one transaction, so
/// a difference means that someone else wrote.
pub(super) async fn check(inner: &Inner, id: VaultId, _repair: bool) -> Result<Health> {
    let (conn, vault) = view(inner, id).await?;
    // Long work on a large vault is no runaway statement.
    conn.batch("SET LOCAL statement_timeout = 0").await?;
    let mut health = Health { audit: audit::verify(&conn, &vault).await?, ..Health::default() };
    for (what, sql) in RULES {
        let row = conn.row(sql, &[]).await?;
        let count: i64 = row.map_or(0, |row| row.get(0));
        if count > 0 {
            health.indexes.push(format!("{count} {what}"));
        }
    }
    traces::every_value(&conn, &vault, |table, opened| {
        if opened.is_none() {
            health.storage.push(format!("a row of {table} was changed or is under another key"));
        }
    })
    .await?;
    conn.roll_back().await?;
    Ok(health)
}
