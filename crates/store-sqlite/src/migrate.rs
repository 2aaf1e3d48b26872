//! Schemas and the steps between them. From the first release on, steps are only ever added.

use std::path::Path;

use rusqlite::Connection;

use crate::error::{Error, Result};

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schema {
    /// One vault.
    Vault,
    /// The store's own books, which lie over the schema of a vault.
    Catalog,
}

const LEDGER: &str = include_str!("schema/ledger.sql");
const INSIDE: &str = include_str!("schema/inside.sql");
const WAITING: &str = include_str!("schema/waiting.sql");
const VAULT: &[&str] = &[include_str!("schema/vault.sql"), LEDGER, INSIDE, WAITING];
const CATALOG: &[&str] = &[
    concat!(include_str!("schema/vault.sql"), include_str!("schema/catalog.sql")),
    LEDGER,
    INSIDE,
    WAITING,
];

/// Brings a file to the newest schema, each step in its own transaction.
pub(crate) fn migrate(conn: &mut Connection, schema: Schema, path: &Path) -> Result<()> {
    run(conn, steps(schema), path)
}

/// Whether a file has the newest schema already. One of a newer version is refused elsewhere.
pub(crate) fn is_newest(conn: &Connection, schema: Schema) -> Result<bool> {
    let found: usize = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(found == steps(schema).len())
}

fn steps(schema: Schema) -> &'static [&'static str] {
    match schema {
        Schema::Vault => VAULT,
        Schema::Catalog => CATALOG,
    }
}

fn run(conn: &mut Connection, steps: &[&str], path: &Path) -> Result<()> {
    let known = u32::try_from(steps.len()).expect("invariant: there are few steps");
    let found: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > known {
        return Err(Error::Newer { path: path.to_owned(), found, known });
    }
    for (number, step) in (1u32..).zip(steps).skip(found as usize) {
        let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        tx.execute_batch(step)?;
        tx.pragma_update(None, "user_version", number)?;
        tx.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_run_once_in_order_and_a_newer_file_is_refused() {
        let mut conn = Connection::open_in_memory().unwrap();
        let path = Path::new("x.db");
        run(&mut conn, &["CREATE TABLE a (x)"], path).unwrap();
        run(&mut conn, &["CREATE TABLE a (x)", "INSERT INTO a VALUES (1)"], path).unwrap();
        run(&mut conn, &["CREATE TABLE a (x)", "INSERT INTO a VALUES (1)"], path).unwrap();
        let rows: i64 = conn.query_row("SELECT count(*) FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1);
        let error = run(&mut conn, &["CREATE TABLE a (x)"], path).unwrap_err().to_string();
        assert!(error.contains("newer version of yore") && error.contains("x.db"), "{error}");
    }

    #[test]
    fn a_step_that_fails_leaves_the_schema_as_it_was() {
        let mut conn = Connection::open_in_memory().unwrap();
        let steps = ["CREATE TABLE a (x)", "INSERT INTO a VALUES (1); INSERT INTO gone VALUES (1)"];
        assert!(run(&mut conn, &steps, Path::new("x.db")).is_err());
        let rows: i64 = conn.query_row("SELECT count(*) FROM a", [], |row| row.get(0)).unwrap();
        let version: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!((rows, version), (0, 1));
    }

    #[test]
    fn letters_that_wait_are_found_by_their_own_index() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, Schema::Vault, Path::new("x.db")).unwrap();
        let plan = "EXPLAIN QUERY PLAN
            SELECT data FROM letter WHERE inbox = ?1 AND state <= 1 ORDER BY seq LIMIT ?2";
        let step: String = conn.query_row(plan, ("a", 1), |row| row.get(3)).unwrap();
        assert!(step.contains("letter_by_inbox (inbox=?)"), "{step}");
    }

    #[test]
    fn both_schemas_apply() {
        for schema in [Schema::Vault, Schema::Catalog] {
            let mut conn = Connection::open_in_memory().unwrap();
            migrate(&mut conn, schema, Path::new("x.db")).unwrap();
        }
    }
}
