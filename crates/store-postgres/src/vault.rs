//! What a server keeps of one vault: its keys, its classes, its books.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use yore_canon::hash;
use yore_canon::key::{Algorithm, SigningKey};
use yore_domain::class::Class;
use yore_domain::{Seq, VaultId};
use yore_store::keeper::VaultInfo;
use yore_store::key::Key;

use crate::books::Books;
use crate::error::{Error, Result};
use crate::pool::Conn;

/// The setting that holds the seed of the vault's signing key.
pub(crate) const SEED: &str = "store:seed";

/// A vault whose key is known. The catalog is one, too.
pub(crate) struct Vault {
    pub(crate) id: VaultId,
    /// What the catalog says of it; absent for the catalog itself.
    pub(crate) info: Option<VaultInfo>,
    pub(crate) signer: SigningKey,
    rows: Key,
    names: Key,
    classes: RwLock<Known>,
    books: RwLock<Option<(i64, Arc<Books>)>>,
    /// The last change this server knows of.
    change: AtomicU64,
    /// When the commit that came last is through.
    last: Mutex<Option<oneshot::Receiver<()>>>,
}

/// The place of a commit among those of its vault that this server makes. Dropped, it lets the
/// next one go on.
#[derive(Debug)]
pub(crate) struct Place {
    before: Option<oneshot::Receiver<()>>,
    through: Option<oneshot::Sender<()>>,
}

impl Place {
    /// Waits until those who came before are through, however they ended.
    pub(crate) async fn come_up(&mut self) {
        if let Some(before) = self.before.take() {
            // A place that was dropped tells the same as one that was used.
            drop(before.await);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Whoever gave up waiting does not let the next one past those before it.
        let (before, through) = (self.before.take(), self.through.take());
        if let (Some(before), Ok(handle)) = (before, Handle::try_current()) {
            handle.spawn(async move {
                drop(before.await);
                drop(through);
            });
        }
    }
}

/// Classes are numbered from one without gaps and never change, so knowing the first ones stays
/// right whatever other servers do.
#[derive(Default)]
struct Known {
    list: Vec<Arc<Class>>,
    numbers: HashMap<Arc<Class>, u32>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The keys of a vault's rows and names.
fn purposes(key: &Key) -> (Key, Key) {
    (key.derive("yore rows v1"), key.derive("yore names v1"))
}

impl Vault {
    pub(crate) fn new(id: VaultId, info: Option<VaultInfo>, key: &Key, seed: &Key) -> Result<Self> {
        let signer = SigningKey::from_seed(Algorithm::Ed25519, seed.bytes())
            .map_err(|error| Error::Damaged(error.to_string()))?;
        let (rows, names) = purposes(key);
        let (classes, books) = (RwLock::default(), RwLock::default());
        let (change, last) = (AtomicU64::new(0), Mutex::default());
        Ok(Self { id, info, signer, rows, names, classes, books, change, last })
    }

    /// Lines a commit up: commits of a vault happen in the order in which they were asked for,
    /// those that nobody waits for among them. The vault's tail would make them wait for each
    /// other in any case; here they wait without holding a connection.
    pub(crate) fn line_up(&self) -> Place {
        let (through, receiver) = oneshot::channel();
        Place { before: self.last.lock().replace(receiver), through: Some(through) }
    }

    /// Opens a vault whose key is known, inside a transaction of the vault.
    pub(crate) async fn open(
        conn: &Conn,
        id: VaultId,
        info: Option<VaultInfo>,
        key: &Key,
    ) -> Result<Self> {
        // The seed is read before there is a signer: any seed serves until then.
        let blank = Self::new(id, None, key, &Key::from_bytes([0; 32]))?;
        let name = blank.mac("setting", &[SEED]);
        let row = conn
            .row("SELECT data FROM setting WHERE vault = $1 AND name = $2", &[&name])
            .await?
            .ok_or_else(|| Error::Damaged("the signing key is missing".into()))?;
        let seed: Setting = blank.open_value("setting", &name, row.get(0))?;
        let seed = seed.value.as_str().and_then(|text| yore_canon::encode::from_hex(text).ok());
        let seed = seed
            .and_then(|bytes| Key::from_slice(&bytes))
            .ok_or_else(|| Error::Damaged("the signing key is unreadable".into()))?;
        Self::new(id, info, key, &seed)
    }

    /// Notes that the vault has come this far.
    pub(crate) fn reached(&self, change: Seq) {
        self.change.fetch_max(change.0, Ordering::AcqRel);
    }

    /// How far the vault has come, as far as this server knows.
    pub(crate) fn last_reached(&self) -> Seq {
        Seq(self.change.load(Ordering::Acquire))
    }

    /// Encrypts a value for a place: in another row or another vault it does not open.
    pub(crate) fn seal(&self, table: &str, row: &[u8], value: &impl Serialize) -> Result<Vec<u8>> {
        Ok(self.seal_bytes(table, row, &serde_json::to_vec(value)?))
    }

    pub(crate) fn seal_bytes(&self, table: &str, row: &[u8], bytes: &[u8]) -> Vec<u8> {
        self.rows.seal(&self.place(table, row), bytes)
    }

    /// Decrypts what [`Vault::seal`] made.
    pub(crate) fn open_value<T: DeserializeOwned>(
        &self,
        table: &str,
        row: &[u8],
        sealed: &[u8],
    ) -> Result<T> {
        Ok(serde_json::from_slice(&self.open_bytes(table, row, sealed)?)?)
    }

    pub(crate) fn open_bytes(
        &self,
        table: &str,
        row: &[u8],
        sealed: &[u8],
    ) -> Result<zeroize::Zeroizing<Vec<u8>>> {
        let opened = self.rows.open(&self.place(table, row), sealed);
        opened.ok_or_else(|| {
            Error::Damaged(format!("a row of {table} was changed or is under another key"))
        })
    }

    /// The bytes by which the cipher knows a piece of an attachment: the pieces of one that got its
    /// name when it was whole stay sealed under the one they came with.
    pub(crate) fn chunk(&self, blob: &[u8], origin: Option<&[u8]>, number: i32) -> Result<Vec<u8>> {
        Ok(match origin {
            Some(origin) => within(&self.open_bytes("blob", blob, origin)?, number.into()),
            None => within(blob, number.into()),
        })
    }

    fn place(&self, table: &str, row: &[u8]) -> Vec<u8> {
        [self.id.bytes().as_slice(), table.as_bytes(), b"\0", row].concat()
    }

    /// The keyed digest under which a name is found; the same name in another place has another.
    pub(crate) fn mac(&self, place: &str, parts: &[&str]) -> Vec<u8> {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        self.mac_bytes(place, &parts)[..16].to_vec()
    }

    pub(crate) fn mac_of(&self, place: &str, bytes: &[u8]) -> Vec<u8> {
        self.mac_bytes(place, &[bytes])[..16].to_vec()
    }

    /// The keyed number of a term or a session; never 0, which means none.
    pub(crate) fn number(&self, place: &str, bytes: &[u8]) -> i64 {
        let mac = self.mac_bytes(place, &[bytes]);
        let mut first = [0; 8];
        first.copy_from_slice(&mac[..8]);
        match i64::from_be_bytes(first) {
            0 => 1,
            number => number,
        }
    }

    fn mac_bytes(&self, place: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut message = place.as_bytes().to_vec();
        message.push(0);
        for part in parts {
            message.extend_from_slice(&(part.len() as u64).to_be_bytes());
            message.extend_from_slice(part);
        }
        hash::hmac_sha256(self.names.bytes(), &message)
    }

    /// Returns the first classes, of which there are so many; reads those that are not known yet.
    pub(crate) async fn classes(&self, conn: &Conn, count: i32) -> Result<Vec<Arc<Class>>> {
        let count = usize::try_from(count).unwrap_or(0);
        let known = self.classes.read().list.len();
        if known < count {
            let from = i32::try_from(known).unwrap_or(i32::MAX);
            let sql = "SELECT id, data FROM class WHERE vault = $1 AND id > $2 ORDER BY id";
            let rows = conn.rows(sql, &[&from]).await?;
            let mut classes = self.classes.write();
            for row in rows {
                let (id, data): (i32, &[u8]) = (row.get(0), row.get(1));
                // Others may have read the same rows meanwhile.
                if usize::try_from(id) == Ok(classes.list.len() + 1) {
                    let class: Arc<Class> =
                        Arc::new(self.open_value("class", &id.to_be_bytes(), data)?);
                    let number = id.cast_unsigned();
                    classes.list.push(Arc::clone(&class));
                    classes.numbers.insert(class, number);
                }
            }
        }
        let classes = self.classes.read();
        let first = classes.list.get(..count);
        Ok(first.ok_or_else(|| Error::Damaged("a class is missing".into()))?.to_vec())
    }

    /// The number of a class that was read before.
    pub(crate) fn class_number(&self, class: &Class) -> Option<u32> {
        self.classes.read().numbers.get(class).copied()
    }

    /// The books as they were when their number was this.
    pub(crate) fn books(&self, number: i64) -> Option<Arc<Books>> {
        let books = self.books.read();
        books.as_ref().filter(|(known, _)| *known == number).map(|(_, books)| Arc::clone(books))
    }

    /// Keeps the books unless newer ones are kept.
    pub(crate) fn keep_books(&self, number: i64, books: &Arc<Books>) {
        let mut kept = self.books.write();
        if kept.as_ref().is_none_or(|(known, _)| *known < number) {
            *kept = Some((number, Arc::clone(books)));
        }
    }
}

/// A setting as it is stored: its name is nowhere else.
#[derive(Debug, Serialize, serde::Deserialize)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) value: serde_json::Value,
}

/// The bytes by which a numbered row is known to the cipher.
pub(crate) fn numbered(row: i64) -> [u8; 8] {
    row.to_be_bytes()
}

/// The same for a row that is one of several of something. What `whole` names has one length in
/// each table, so no two rows are known by the same bytes.
pub(crate) fn within(whole: &[u8], number: i64) -> Vec<u8> {
    [whole, &number.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault() -> Vault {
        let key = Key::from_bytes([7; 32]);
        Vault::new(VaultId::random(), None, &key, &key).unwrap()
    }

    #[test]
    fn a_value_opens_only_in_its_place() {
        let (one, two) = (vault(), vault());
        let sealed = one.seal("memory", b"1", &"tea").unwrap();
        assert!(!sealed.windows(3).any(|part| part == b"tea"));
        assert_eq!(one.open_value::<String>("memory", b"1", &sealed).unwrap(), "tea");
        assert!(one.open_value::<String>("memory", b"2", &sealed).is_err());
        assert!(one.open_value::<String>("other", b"1", &sealed).is_err());
        // The same key in another vault does not open it either.
        assert!(two.open_value::<String>("memory", b"1", &sealed).is_err());
    }

    #[test]
    fn names_are_told_apart_by_place_and_by_part() {
        let vault = vault();
        assert_eq!(vault.mac("a", &["x", "y"]), vault.mac("a", &["x", "y"]));
        assert_ne!(vault.mac("a", &["x", "y"]), vault.mac("b", &["x", "y"]));
        assert_ne!(vault.mac("a", &["x", "y"]), vault.mac("a", &["xy", ""]));
        assert_ne!(vault.number("stem", b"tea"), vault.number("token", b"tea"));
    }
}
