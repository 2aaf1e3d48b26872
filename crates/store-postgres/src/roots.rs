//! The root keys of a database, kept in it under the master key.
//!
//! The database holds what a server needs to begin except the master key itself, so a server has
//! nothing of its own on disk.

use serde::{Deserialize, Serialize};
use yore_canon::{encode, hash};
use yore_domain::VaultId;
use yore_store::key::{Cost, Key, KeyKind, MasterKey, Stretch};

use crate::error::{Error, Result};
use crate::pool::Conn;

const CONTEXT: &[u8] = b"yore root key v1";

/// What the database keeps.
#[derive(Debug, Serialize, Deserialize)]
struct Sheet {
    /// What the master key is, so that whoever opens the database knows what to ask for.
    key: KeyKind,
    stretch: Stretch,
    /// The root key under the master key.
    root: String,
}

/// The root key, unwrapped.
#[derive(Clone, Debug)]
pub(crate) struct Root(Key);

impl Root {
    /// Reads the root, or makes the first one for an empty database. The transaction is the
    /// catalog's.
    pub(crate) async fn open(conn: &Conn, master: &MasterKey, cost: Cost) -> Result<Self> {
        // Two servers that begin on an empty database make one root.
        conn.batch("LOCK TABLE root IN SHARE ROW EXCLUSIVE MODE").await?;
        if let Some(root) = Self::read(conn, master).await? {
            return Ok(root);
        }
        let (root, stretch) = (Key::random(), Stretch::new(cost));
        let key = stretched(master, stretch.clone()).await?;
        let sheet =
            Sheet { key: master.kind(), stretch, root: encode::hex(&key.wrap(CONTEXT, &root)) };
        let sheet = serde_json::to_string(&sheet)?;
        conn.run("INSERT INTO root (vault, sheet) VALUES ($1, $2)", &[&sheet]).await?;
        Ok(Self(root))
    }

    /// Reads the root, if there is one.
    pub(crate) async fn read(conn: &Conn, master: &MasterKey) -> Result<Option<Self>> {
        let known = conn.row("SELECT sheet FROM root WHERE vault = $1", &[]).await?;
        let Some(row) = known else { return Ok(None) };
        let sheet: Sheet = serde_json::from_str(row.get(0))?;
        let key = stretched(master, sheet.stretch).await?;
        let root = encode::from_hex(&sheet.root).ok();
        let root = root.and_then(|wrapped| key.unwrap(CONTEXT, &wrapped));
        root.map(|root| Some(Self(root))).ok_or(Error::WrongKey)
    }

    /// The catalog's key.
    pub(crate) fn catalog(&self) -> Key {
        self.0.derive("yore catalog v1")
    }

    pub(crate) fn wrap(&self, vault: VaultId, key: &Key) -> Vec<u8> {
        self.wrapping().wrap(&vault.bytes(), key)
    }

    pub(crate) fn unwrap(&self, vault: VaultId, wrapped: &[u8]) -> Result<Key> {
        self.wrapping().unwrap(&vault.bytes(), wrapped).ok_or(Error::WrongKey)
    }

    /// The name of a vault in what servers tell each other.
    pub(crate) fn notice(&self, vault: VaultId) -> String {
        let key = self.0.derive("yore notices v1");
        encode::hex(&hash::hmac_sha256(key.bytes(), &vault.bytes())[..16])
    }

    fn wrapping(&self) -> Key {
        self.0.derive("yore vault wrapping v1")
    }
}

/// Stretching a passphrase takes a while on purpose.
async fn stretched(master: &MasterKey, stretch: Stretch) -> Result<Key> {
    let master = master.clone();
    let key = tokio::task::spawn_blocking(move || master.key(None, &stretch)).await;
    Ok(key.map_err(|_| Error::Damaged("the master key was not computed".into()))??)
}
