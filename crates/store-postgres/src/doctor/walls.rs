//! What the tables are: their version, who may see what, their parts and indexes.

use tokio_postgres::Client;

use super::{Findings, one};
use crate::error::Result;
use crate::migrate;

/// Looks at the version of the tables; says whether there are any.
pub(super) async fn tables(client: &Client, findings: &mut Findings) -> Result<bool> {
    let (found, known) = (migrate::reached(client).await?, migrate::known());
    let text = format!("version {found}, this yore knows {known}");
    if found == 0 {
        findings.doubtful("schema", "no tables yet", "the first server makes them");
        return Ok(false);
    }
    if found > known {
        findings.wrong("schema", text, "servers of a newer version made it: upgrade this one");
    } else if found < known {
        findings.doubtful(
            "schema",
            text,
            "the next server of this version that starts brings it up",
        );
    } else {
        findings.fine("schema", text);
    }
    Ok(true)
}

/// Whether whom the servers act as is held by row-level security.
pub(super) async fn role(client: &Client, role: &str, findings: &mut Findings) -> Result<()> {
    let sql = "SELECT r.rolsuper OR r.rolbypassrls, pg_has_role(r.oid, c.relowner, 'MEMBER'),
            pg_has_role(session_user, r.oid, 'MEMBER')
        FROM pg_roles r, pg_class c WHERE r.rolname = $1 AND c.oid = 'yore.memory'::regclass";
    let Some(row) = client.query_opt(sql, &[&role]).await? else {
        findings.wrong("role", format!("there is no {role}"), "the first server makes it");
        return Ok(());
    };
    let (free, owns, member): (bool, bool, bool) = (row.get(0), row.get(1), row.get(2));
    if free {
        let advice = format!("ALTER ROLE {role} NOSUPERUSER NOBYPASSRLS");
        findings.wrong("role", format!("{role} may go round row-level security"), advice);
    } else if owns {
        let advice = format!("take {role} out of the role that owns the tables");
        findings.wrong("role", format!("{role} owns the tables"), advice);
    } else if !member {
        findings.wrong(
            "role",
            format!("the login may not act as {role}"),
            format!("GRANT {role} TO it"),
        );
    } else {
        findings.fine("role", format!("{role} cannot go round row-level security"));
    }
    let sql = "SELECT rolsuper OR rolbypassrls, pg_has_role(session_user, c.relowner, 'MEMBER')
        FROM pg_roles, pg_class c
        WHERE rolname = session_user AND c.oid = 'yore.memory'::regclass";
    let login = one(client, sql).await?;
    if login.get(0) || login.get(1) {
        let found = "the login could do more than the role it steps down to";
        let advice = format!("give the servers a login that is only a member of {role}");
        findings.doubtful("login", found, advice);
    } else {
        findings.fine("login", format!("only a member of {role}"));
    }
    Ok(())
}

/// Whether every table and every part shows a vault its own rows only, to its owner, too.
pub(super) async fn rows(client: &Client, findings: &mut Findings) -> Result<()> {
    let sql = "SELECT c.relname::text, c.relrowsecurity AND c.relforcerowsecurity,
            (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid),
            EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'own'
                AND pg_get_expr(p.polqual, p.polrelid) LIKE '%yore.vault%'
                AND pg_get_expr(p.polwithcheck, p.polrelid) LIKE '%yore.vault%')
        FROM pg_class c WHERE c.relnamespace = 'yore'::regnamespace AND c.relkind IN ('r', 'p')
            AND c.relname <> 'migration' ORDER BY 1";
    let (mut open, mut odd, mut count) = (Vec::new(), Vec::new(), 0);
    for row in client.query(sql, &[]).await? {
        let name: String = row.get(0);
        count += 1;
        if !row.get::<_, bool>(1) || !row.get::<_, bool>(3) {
            open.push(name);
        } else if row.get::<_, i64>(2) > 1 {
            odd.push(name);
        }
    }
    let what = "walls between vaults";
    if !open.is_empty() {
        let advice = "somebody took them down: ALTER TABLE … ENABLE and FORCE ROW LEVEL SECURITY, and \
                      the policy of docs/threat-model.md, before any server goes on";
        findings.wrong(what, format!("missing at {}", named(&open)), advice);
    } else if !odd.is_empty() {
        let advice = "another policy shows more: DROP POLICY what is not 'own'";
        findings.wrong(what, format!("more than one policy at {}", named(&odd)), advice);
    } else {
        findings.fine(what, format!("forced at all {count} tables and parts"));
    }
    Ok(())
}

/// Some names, and how many more.
fn named(names: &[String]) -> String {
    match names {
        [] => String::new(),
        few if few.len() <= 4 => few.join(", "),
        many => format!("{} and {} more", many[..3].join(", "), many.len() - 3),
    }
}

/// Whether the tables that are spread by vault have all their parts.
pub(super) async fn parts(client: &Client, findings: &mut Findings) -> Result<()> {
    let sql =
        "SELECT c.relname::text, (SELECT count(*) FROM pg_inherits i WHERE i.inhparent = c.oid)
        FROM pg_class c WHERE c.relnamespace = 'yore'::regnamespace AND c.relkind = 'p' ORDER BY 1";
    let wanted = i64::try_from(migrate::PARTS).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    let mut short = Vec::new();
    for row in client.query(sql, &[]).await? {
        let (name, count): (String, i64) = (row.get(0), row.get(1));
        if count != wanted {
            short.push(format!("{name} ({count})"));
        }
        found.push(name);
    }
    let missing: Vec<&str> =
        migrate::parted().filter(|table| !found.iter().any(|name| name == table)).collect();
    if !short.is_empty() || !missing.is_empty() {
        let what = short.iter().map(String::as_str).chain(missing).collect::<Vec<_>>().join(", ");
        let advice =
            "vaults whose part is missing cannot be written: restore the table from a copy";
        findings.wrong("partitions", format!("not {wanted} parts: {what}"), advice);
        return Ok(());
    }
    findings.fine("partitions", format!("{} tables in {wanted} parts each", found.len()));
    Ok(())
}

/// Whether the indexes can be used, those of vectors among them.
pub(super) async fn indexes(client: &Client, findings: &mut Findings) -> Result<()> {
    let sql = "SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE c.relnamespace = 'yore'::regnamespace AND NOT (i.indisvalid AND i.indisready) ORDER BY 1";
    let broken: Vec<String> = client.query(sql, &[]).await?.iter().map(|row| row.get(0)).collect();
    let what = "indexes of the database";
    if !broken.is_empty() {
        let advice = "REINDEX INDEX CONCURRENTLY builds one anew while servers go on";
        findings.wrong(what, format!("not valid: {}", named(&broken)), advice);
        return Ok(());
    }
    let sql = "SELECT t.relname::text, count(*) FROM pg_index i
            JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
            JOIN pg_inherits h ON h.inhrelid = i.indrelid JOIN pg_class t ON t.oid = h.inhparent
        WHERE c.relnamespace = 'yore'::regnamespace AND a.amname = 'hnsw' GROUP BY 1";
    let wanted = i64::try_from(migrate::PARTS).unwrap_or(i64::MAX);
    let there = client.query(sql, &[]).await?;
    let has = |table: &str| {
        let row = there.iter().find(|row| row.get::<_, &str>(0) == table);
        row.map_or(0, |row| row.get::<_, i64>(1))
    };
    let short: Vec<String> = ["document", "vector"]
        .into_iter()
        .filter(|table| has(table) < wanted)
        .map(|table| format!("{table} has {} of {wanted}", has(table)))
        .collect();
    if short.is_empty() {
        findings.fine(what, format!("all valid; vectors have {} of HNSW", 2 * wanted));
    } else {
        let advice = "large vaults are searched slowly without: make them as \
                      crates/store-postgres/src/schema/0001.sql does";
        findings.doubtful(what, format!("HNSW is missing: {}", short.join(", ")), advice);
    }
    Ok(())
}
