//! What every judgement rests on, kept in memory: grants, tokens, rules and settings.
//!
//! Asking the file for them would cost every call more than the call itself: a reader forgets
//! its pages whenever anyone wrote. The writer turns the pages that a commit touched before
//! anyone hears of the commit. A snapshot holds on to the books as they were when it was
//! opened; whoever judged by older books fails at the epochs when it commits.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Params};
use serde::de::DeserializeOwned;
use serde_json::Value;
use yore_domain::grant::{Grant, Token};
use yore_domain::hold::Rule;
use yore_domain::{GrantId, TokenId};
use yore_store::snapshot::Epochs;

use crate::commit::{GRANT_EPOCH, RULE_EPOCH};
use crate::select::json;

/// The books of a vault.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    grants: HashMap<GrantId, Arc<Grant>>,
    /// By the digest of the secret.
    tokens: HashMap<String, Arc<Token>>,
    rules: Arc<Vec<Rule>>,
    settings: HashMap<String, Value>,
    epochs: Epochs,
}

/// What a commit touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    Grant(GrantId),
    Token(TokenId),
    Rules,
    Setting(String),
}

impl Books {
    /// Reads everything.
    pub(crate) fn load(conn: &Connection) -> rusqlite::Result<Self> {
        let mut books = Self::default();
        for grant in all::<Grant>(conn, "SELECT data FROM grants")? {
            books.grants.insert(grant.id, Arc::new(grant));
        }
        for token in all::<Token>(conn, "SELECT data FROM token")? {
            books.tokens.insert(token.hash.clone(), Arc::new(token));
        }
        let mut settings =
            conn.prepare_cached("SELECT name, value FROM setting WHERE name NOT LIKE 'store:%'")?;
        let rows = settings.query_map([], |row| Ok((row.get(0)?, json(row, 1)?)))?;
        books.settings = rows.collect::<rusqlite::Result<_>>()?;
        books.read_rules(conn)?;
        books.read_epochs(conn)?;
        Ok(books)
    }

    /// Reads again what was touched.
    pub(crate) fn turn(&mut self, conn: &Connection, pages: &[Page]) -> rusqlite::Result<()> {
        for page in pages {
            match page {
                Page::Grant(id) => {
                    let sql = "SELECT data FROM grants WHERE id = ?1";
                    match one::<Grant>(conn, sql, [id.bytes()])? {
                        Some(grant) => self.grants.insert(*id, Arc::new(grant)),
                        None => self.grants.remove(id),
                    };
                }
                Page::Token(id) => {
                    self.tokens.retain(|_, token| token.id != *id);
                    let sql = "SELECT data FROM token WHERE id = ?1";
                    if let Some(token) = one::<Token>(conn, sql, [id.bytes()])? {
                        self.tokens.insert(token.hash.clone(), Arc::new(token));
                    }
                }
                Page::Rules => self.read_rules(conn)?,
                Page::Setting(name) => {
                    let sql = "SELECT value FROM setting WHERE name = ?1";
                    match one::<Value>(conn, sql, [name])? {
                        Some(value) => self.settings.insert(name.clone(), value),
                        None => self.settings.remove(name),
                    };
                }
            }
        }
        self.read_epochs(conn)
    }

    fn read_rules(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        self.rules = Arc::new(all(conn, "SELECT data FROM rule ORDER BY position, name")?);
        Ok(())
    }

    fn read_epochs(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        self.epochs = epochs(conn)?;
        Ok(())
    }

    pub(crate) fn grant(&self, id: GrantId) -> Option<Grant> {
        self.grants.get(&id).map(|grant| (**grant).clone())
    }

    pub(crate) fn token(&self, hash: &str) -> Option<Token> {
        self.tokens.get(hash).map(|token| (**token).clone())
    }

    pub(crate) fn rules(&self) -> Vec<Rule> {
        (*self.rules).clone()
    }

    /// Settings of the store's own, keys among them, are not in the books.
    pub(crate) fn setting(&self, name: &str) -> Option<&Value> {
        self.settings.get(name)
    }

    pub(crate) fn epochs(&self) -> Epochs {
        self.epochs
    }
}

/// Reads how often grants and rules changed.
pub(crate) fn epochs(conn: &Connection) -> rusqlite::Result<Epochs> {
    let sql = "SELECT value FROM setting WHERE name = ?1";
    Ok(Epochs {
        grants: one(conn, sql, [GRANT_EPOCH])?.unwrap_or(0),
        rules: one(conn, sql, [RULE_EPOCH])?.unwrap_or(0),
    })
}

fn one<T: DeserializeOwned>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
) -> rusqlite::Result<Option<T>> {
    conn.prepare_cached(sql)?.query_one(params, |row| json(row, 0)).optional()
}

fn all<T: DeserializeOwned>(conn: &Connection, sql: &str) -> rusqlite::Result<Vec<T>> {
    conn.prepare_cached(sql)?.query_map([], |row| json(row, 0))?.collect()
}
