//! Making the tables, and bringing old ones to what this version knows.
//!
//! A step only adds what the version before it can live beside: servers of two versions run on
//! one database while they are replaced one by one. What nothing uses any more goes in a later
//! step. Whoever serves needs none of these rights: once the tables are there, nothing is made.

use tokio_postgres::Client;

use crate::error::{Error, Result};

/// The steps, in order; each is carried out once.
const STEPS: &[Step] = &[VAULTS, SHARED, READ, ORIGIN, SAID];

const SAID: Step = Step { sql: include_str!("schema/0005.sql"), parted: &[], walled: &[] };

const ORIGIN: Step = Step { sql: include_str!("schema/0004.sql"), parted: &[], walled: &[] };

const READ: Step =
    Step { sql: include_str!("schema/0003.sql"), parted: &[], walled: &["unread", "inside"] };

const SHARED: Step =
    Step { sql: include_str!("schema/0002.sql"), parted: &[], walled: &["lease", "bucket"] };

const VAULTS: Step = Step {
    sql: include_str!("schema/0001.sql"),
    parted: &["memory", "version", "message", "document", "vector", "posting", "audit"],
    walled: &[
        "tail",
        "setting",
        "class",
        "memory",
        "version",
        "relation",
        "alias",
        "conversation",
        "message",
        "blob",
        "blob_chunk",
        "blob_use",
        "document",
        "vector",
        "posting",
        "grants",
        "token",
        "hold",
        "rule",
        "profile",
        "procedure",
        "job",
        "operation",
        "stream",
        "frame",
        "letter",
        "audit",
        "audit_target",
        "checkpoint",
        "ledger",
        "root",
        "tenant",
        "locate",
        "line",
    ],
};

/// How many tables a parted table is spread over.
pub(crate) const PARTS: usize = 16;
/// The lock under which tables are made: PostgreSQL does not take two makers of one thing well.
const LOCK: i64 = 0x796f_7265_7067;
/// Whose rows a transaction may touch, as it said itself; nobody's when it said nothing.
const WHOSE: &str = "decode(nullif(current_setting('yore.vault', true), ''), 'hex')";
/// The catalog, which also sees the line of every vault.
const CATALOG: &str = r"'\x00000000000000000000000000000000'::bytea";

struct Step {
    sql: &'static str,
    /// Tables that are spread by vault.
    parted: &'static [&'static str],
    /// Tables that show a vault its own rows only.
    walled: &'static [&'static str],
}

/// Every table that holds rows of a vault, the line of the catalog last: whoever has it can find
/// the others.
pub(crate) fn tables_of_vaults() -> impl Iterator<Item = &'static str> {
    let all = || STEPS.iter().flat_map(|step| step.walled).copied();
    let of_the_catalog = |table: &&str| matches!(*table, "root" | "tenant");
    let last = |table: &&str| *table == "line";
    let first = all().filter(move |table| !of_the_catalog(table) && !last(table));
    first.chain(all().filter(last))
}

/// Makes what is missing. `role` is whom the server acts as.
pub(crate) async fn migrate(client: &mut Client, role: &str) -> Result<()> {
    let known = known();
    let found = reached(client).await?;
    if found > known {
        return Err(Error::Newer { found, known });
    }
    if found == known {
        return Ok(());
    }
    let tx = client.transaction().await?;
    tx.batch_execute(&format!(
        "SET LOCAL client_min_messages = warning;
         SET LOCAL statement_timeout = 0;
         SELECT pg_advisory_xact_lock({LOCK});
         CREATE EXTENSION IF NOT EXISTS vector;
         CREATE SCHEMA IF NOT EXISTS yore;
         SET LOCAL search_path = yore, public;
         CREATE TABLE IF NOT EXISTS migration (number integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());"
    ))
    .await?;
    // Another server may have been quicker.
    let reached: i32 =
        tx.query_one("SELECT coalesce(max(number), 0) FROM migration", &[]).await?.get(0);
    make_role(&tx, role).await?;
    for (number, step) in (1i32..).zip(STEPS).filter(|(number, _)| *number > reached) {
        tx.batch_execute(step.sql).await?;
        tx.batch_execute(&step.behind(role)).await?;
        tx.execute("INSERT INTO migration (number) VALUES ($1)", &[&number]).await?;
    }
    tx.batch_execute(&format!(
        "GRANT USAGE ON SCHEMA yore TO {role}; GRANT SELECT ON migration TO {role};"
    ))
    .await?;
    tx.commit().await?;
    Ok(())
}

/// How far the tables can be.
pub(crate) fn known() -> i32 {
    i32::try_from(STEPS.len()).expect("invariant: steps are few")
}

/// The tables that are spread by vault.
pub(crate) fn parted() -> impl Iterator<Item = &'static str> {
    STEPS.iter().flat_map(|step| step.parted).copied()
}

/// How far the tables are.
pub(crate) async fn reached(client: &Client) -> Result<i32> {
    let there = client.query_one("SELECT to_regclass('yore.migration') IS NOT NULL", &[]).await?;
    if !there.get::<_, bool>(0) {
        return Ok(0);
    }
    Ok(client.query_one("SELECT coalesce(max(number), 0) FROM yore.migration", &[]).await?.get(0))
}

async fn make_role(tx: &tokio_postgres::Transaction<'_>, role: &str) -> Result<()> {
    let there = tx.query_opt("SELECT 1 FROM pg_roles WHERE rolname = $1", &[&role]).await?;
    if there.is_none() {
        // Roles belong to all databases of a server: another one may be made meanwhile.
        tx.batch_execute(&format!(
            "DO $$ BEGIN
                 CREATE ROLE {role} NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
             END $$"
        ))
        .await?;
    }
    let member = tx.query_one("SELECT pg_has_role(current_user, $1, 'MEMBER')", &[&role]).await?;
    if !member.get::<_, bool>(0) {
        tx.batch_execute(&format!("GRANT {role} TO CURRENT_USER")).await?;
    }
    Ok(())
}

impl Step {
    /// The statements that spread the tables and raise the wall between vaults.
    fn behind(&self, role: &str) -> String {
        let mut sql = String::new();
        let mut add = |line: String| {
            sql.push_str(&line);
            sql.push_str(";\n");
        };
        for table in self.parted {
            for part in 0..PARTS {
                add(format!(
                    "CREATE TABLE {table}_{part} PARTITION OF {table}
                         FOR VALUES WITH (MODULUS {PARTS}, REMAINDER {part})"
                ));
                // A part is a table of its own, which a wall before the whole does not protect.
                wall(&format!("{table}_{part}"), &mut add);
            }
        }
        for table in self.walled {
            wall(table, &mut add);
            add(format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {role}"));
        }
        sql
    }
}

fn wall(table: &str, add: &mut impl FnMut(String)) {
    let seen = if table == "line" {
        format!("vault = {WHOSE} OR {WHOSE} = {CATALOG}")
    } else {
        format!("vault = {WHOSE}")
    };
    add(format!("ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"));
    add(format!("ALTER TABLE {table} FORCE ROW LEVEL SECURITY"));
    add(format!("CREATE POLICY own ON {table} USING ({seen}) WITH CHECK ({seen})"));
}
