//! The root keys of a data directory and the small file that keeps them wrapped.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use yore_canon::encode;
use yore_store::key::{Cost, KeyKind, MasterKey, Stretch};

use crate::error::{Error, Result};
use crate::key::Key;

const FORMAT: u32 = 1;
const CONTEXT: &[u8] = b"yore root key v1";

/// What `master.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Sheet {
    format: u32,
    /// What the master key is, so that whoever opens the directory knows what to ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<KeyKind>,
    stretch: Stretch,
    /// The root in use, and behind it the next one while a rotation is under way.
    roots: Vec<String>,
    /// Earlier roots, so that old backups still open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    retired: Vec<String>,
}

/// The root keys, unwrapped.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    path: PathBuf,
    master: Key,
    kind: KeyKind,
    stretch: Stretch,
    roots: Vec<Key>,
    retired: Vec<Key>,
}

impl Roots {
    /// Reads the roots of a directory, or makes the first one for an empty directory.
    pub(crate) fn open(data: &Path, master: &MasterKey, cost: Cost) -> Result<Self> {
        let path = data.join("master.json");
        if !path.exists() {
            if data.join("catalog.db").exists() {
                return Err(Error::Key(format!(
                    "{} is missing: without it the vaults cannot be opened",
                    path.display()
                )));
            }
            let (kind, stretch) = (master.kind(), Stretch::new(cost));
            let master = master.key(Some(data), &stretch)?;
            let (roots, retired) = (vec![Key::random()], Vec::new());
            let roots = Self { path, master, kind, stretch, roots, retired };
            roots.save()?;
            return Ok(roots);
        }
        let text = std::fs::read(&path).map_err(Error::file(&path))?;
        let sheet: Sheet = serde_json::from_slice(&text)
            .map_err(|_| Error::Key(format!("{} cannot be read", path.display())))?;
        if sheet.format != FORMAT {
            return Err(Error::Key(format!(
                "{} was written by a newer version of yore",
                path.display()
            )));
        }
        let kind = master.kind();
        let master = master.key(Some(data), &sheet.stretch)?;
        let open = |wrapped: &String| {
            encode::from_hex(wrapped)
                .ok()
                .and_then(|bytes| master.unwrap(CONTEXT, &bytes))
                .ok_or(Error::WrongKey)
        };
        let roots = sheet.roots.iter().map(open).collect::<Result<Vec<_>>>()?;
        if roots.is_empty() {
            return Err(Error::Key(format!("{} names no key", path.display())));
        }
        let retired = sheet.retired.iter().map(open).collect::<Result<Vec<_>>>()?;
        Ok(Self { path, master, kind, stretch: sheet.stretch, roots, retired })
    }

    /// Candidates for the root in use: more than one only while a rotation is unfinished.
    pub(crate) fn all(&self) -> &[Key] {
        &self.roots
    }

    /// The root that new keys are wrapped under.
    pub(crate) fn newest(&self) -> &Key {
        self.roots.last().expect("invariant: there is always a root")
    }

    /// Unwraps a key that any root, in use or retired, has wrapped.
    pub(crate) fn unwrap(&self, context: &[u8], wrapped: &[u8]) -> Option<Key> {
        self.roots
            .iter()
            .rev()
            .chain(self.retired.iter().rev())
            .find_map(|root| wrapping(root).unwrap(context, wrapped))
    }

    /// Wraps a key under the newest root.
    pub(crate) fn wrap(&self, context: &[u8], key: &Key) -> Vec<u8> {
        wrapping(self.newest()).wrap(context, key)
    }

    /// Writes down a next root beside the present one. Nothing uses it yet.
    pub(crate) fn begin_rotation(&mut self) -> Result<()> {
        if self.roots.len() == 1 {
            self.roots.push(Key::random());
            self.save()?;
        }
        Ok(())
    }

    /// Retires all roots but the newest, once nothing is wrapped under them any more.
    pub(crate) fn finish_rotation(&mut self) -> Result<()> {
        if self.roots.len() > 1 {
            let newest = self.newest().clone();
            self.retired.append(&mut self.roots);
            self.retired.pop();
            self.roots = vec![newest];
            self.save()?;
        }
        Ok(())
    }

    /// Puts the roots under another master key.
    pub(crate) fn rewrap(&mut self, data: &Path, master: &MasterKey, cost: Cost) -> Result<()> {
        let stretch = Stretch::new(cost);
        let key = master.key(Some(data), &stretch)?;
        let changed = Self { master: key, kind: master.kind(), stretch, ..self.clone() };
        changed.save()?;
        *self = changed;
        Ok(())
    }

    fn save(&self) -> Result<()> {
        let wrap = |key: &Key| encode::hex(&self.master.wrap(CONTEXT, key));
        let sheet = Sheet {
            format: FORMAT,
            key: Some(self.kind),
            stretch: self.stretch.clone(),
            roots: self.roots.iter().map(wrap).collect(),
            retired: self.retired.iter().map(wrap).collect(),
        };
        crate::open::replace(&self.path, &serde_json::to_vec_pretty(&sheet)?)
    }
}

/// Says what the master key of a data directory is, when the directory was made and says so.
#[must_use]
pub fn key_kind(data: &Path) -> Option<KeyKind> {
    let text = std::fs::read(data.join("master.json")).ok()?;
    serde_json::from_slice::<Sheet>(&text).ok()?.key
}

/// The catalog's key under a root.
pub(crate) fn catalog(root: &Key) -> Key {
    root.derive("yore catalog v1")
}

fn wrapping(root: &Key) -> Key {
    root.derive("yore vault wrapping v1")
}
