//! What every judgement rests on, kept while its number stays: grants, tokens, rules, settings.
//!
//! The vault's tail counts every change of these. A view asks for the number when it is opened,
//! so a grant that another server took back is gone here with the next view.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use yore_domain::GrantId;
use yore_domain::grant::{Grant, Token};
use yore_domain::hold::Rule;

use crate::error::Result;
use crate::pool::Conn;
use crate::vault::{Setting, Vault};

/// The books of a vault.
#[derive(Debug, Default)]
pub(crate) struct Books {
    /// In the order in which they were issued.
    pub(crate) grants: Vec<Arc<Grant>>,
    pub(crate) tokens: Vec<Arc<Token>>,
    by_id: HashMap<GrantId, Arc<Grant>>,
    by_hash: HashMap<String, Arc<Token>>,
    rules: Vec<Rule>,
    settings: HashMap<String, Value>,
}

impl Books {
    /// Reads everything.
    pub(crate) async fn load(conn: &Conn, vault: &Vault) -> Result<Self> {
        let mut books = Self::default();
        let sql = "SELECT id, data FROM grants WHERE vault = $1 ORDER BY issued, id";
        for row in conn.rows(sql, &[]).await? {
            let grant: Arc<Grant> = Arc::new(vault.open_value("grants", row.get(0), row.get(1))?);
            books.by_id.insert(grant.id, Arc::clone(&grant));
            books.grants.push(grant);
        }
        let sql = "SELECT id, data FROM token WHERE vault = $1 ORDER BY issued, id";
        for row in conn.rows(sql, &[]).await? {
            let token: Arc<Token> = Arc::new(vault.open_value("token", row.get(0), row.get(1))?);
            books.by_hash.insert(token.hash.clone(), Arc::clone(&token));
            books.tokens.push(token);
        }
        let sql = "SELECT name, data FROM rule WHERE vault = $1 ORDER BY position, name";
        for row in conn.rows(sql, &[]).await? {
            books.rules.push(vault.open_value("rule", row.get(0), row.get(1))?);
        }
        let sql = "SELECT name, data FROM setting WHERE vault = $1";
        for row in conn.rows(sql, &[]).await? {
            let setting: Setting = vault.open_value("setting", row.get(0), row.get(1))?;
            // The store's own settings, keys among them, are not in the books.
            if !setting.name.starts_with("store:") {
                books.settings.insert(setting.name, setting.value);
            }
        }
        Ok(books)
    }

    pub(crate) fn grant(&self, id: GrantId) -> Option<Grant> {
        self.by_id.get(&id).map(|grant| (**grant).clone())
    }

    pub(crate) fn token(&self, hash: &str) -> Option<Token> {
        self.by_hash.get(hash).map(|token| (**token).clone())
    }

    pub(crate) fn rules(&self) -> Vec<Rule> {
        self.rules.clone()
    }

    pub(crate) fn setting(&self, name: &str) -> Option<&Value> {
        self.settings.get(name)
    }
}
