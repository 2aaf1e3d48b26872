//! Keeping vaults: making, copying, checking and re-keying them.

use std::fmt::Debug;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_canon::key::VerifyingKey;
use yore_domain::audit::Report;
use yore_domain::{Error, TenantId, Timestamp, VaultId};
use yore_policy::Permit;

use crate::Answer;
use crate::key::MasterKey;
use crate::snapshot::Census;

/// A vault as the catalog knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VaultInfo {
    /// Its id.
    pub id: VaultId,
    /// Its tenant.
    pub tenant: TenantId,
    /// The name of its owner inside the tenant; unique there.
    pub owner: String,
    /// The DID that signs for it.
    pub did: String,
    /// When it was made.
    pub created: Timestamp,
}

/// What a check of a vault found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Faults in the file, each naming its page or row.
    pub storage: Vec<String>,
    /// What the audit chain says.
    pub audit: Report,
    /// Differences between the rows and the indexes.
    pub indexes: Vec<String>,
    /// What was mended.
    pub repaired: Vec<String>,
}

impl Health {
    /// Whether nothing is wrong that was not mended.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.storage.is_empty()
            && self.audit.faults.is_empty()
            && (self.indexes.is_empty() || !self.repaired.is_empty())
    }
}

/// What a decrypting scan for a text found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traces {
    /// How many bytes were looked at, decrypted.
    pub scanned: u64,
    /// Where the text was found: file and offset or page.
    pub found: Vec<String>,
}

/// The name under which a checkpoint of a vault's audit chain is signed: vault and time are bound.
#[must_use]
pub fn checkpoint_name(vault: VaultId, at: Timestamp) -> Vec<u8> {
    [vault.bytes().as_slice(), &at.micros().to_be_bytes()].concat()
}

/// Keeps vaults. Every method wants a permit, the catalog's for what concerns no vault.
pub trait Keeper: Debug + Send + Sync {
    /// Makes a vault for an owner; an existing one is returned as it is.
    fn create<'a>(
        &'a self,
        permit: &'a Permit,
        tenant: TenantId,
        owner: &'a str,
        now: Timestamp,
    ) -> Answer<'a, VaultInfo>;
    /// Finds the vault of an owner.
    fn find<'a>(
        &'a self,
        permit: &'a Permit,
        tenant: TenantId,
        owner: &'a str,
    ) -> Answer<'a, Option<VaultInfo>>;
    /// Returns what the catalog knows of the permit's vault.
    fn info<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Option<VaultInfo>>;
    /// Lists vaults.
    fn vaults<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Vec<VaultInfo>>;
    /// Signs bytes with the permit's vault's own Ed25519 key.
    fn sign<'a>(&'a self, permit: &'a Permit, message: &'a [u8]) -> Answer<'a, [u8; 64]>;
    /// Returns the public half of the key that signs for the permit's vault.
    fn key<'a>(&'a self, permit: &'a Permit) -> Answer<'a, VerifyingKey>;
    /// Removes a vault's file, key and catalog entry for good.
    fn destroy<'a>(&'a self, permit: &'a Permit) -> Answer<'a, ()>;
    /// Copies the permit's vault, while it serves, into an encrypted file.
    fn backup<'a>(&'a self, permit: &'a Permit, to: &'a Path) -> Answer<'a, u64>;
    /// Puts a copy back in place of the permit's vault.
    fn restore<'a>(&'a self, permit: &'a Permit, from: &'a Path) -> Answer<'a, ()>;
    /// Counts what a copy of the permit's vault holds, and changes nothing.
    fn survey<'a>(&'a self, permit: &'a Permit, copy: &'a Path) -> Answer<'a, Census>;
    /// Checks pages, audit chain and indexes; mends the indexes when asked to.
    fn check<'a>(&'a self, permit: &'a Permit, repair: bool) -> Answer<'a, Health>;
    /// Gives the permit's vault a new key, or wraps all keys anew when it is the catalog's.
    fn rotate<'a>(&'a self, permit: &'a Permit) -> Answer<'a, String>;
    /// Puts all keys under another master key. Only whoever keeps the catalog may.
    fn change_master<'a>(&'a self, permit: &'a Permit, master: &'a MasterKey) -> Answer<'a, ()>;
    /// Signs a checkpoint of the audit chain now.
    fn seal_audit<'a>(&'a self, permit: &'a Permit, now: Timestamp) -> Answer<'a, ()>;
    /// Decrypts every page, journal, snapshot and blob of the vault and looks for a text.
    fn traces<'a>(&'a self, permit: &'a Permit, text: &'a str) -> Answer<'a, Traces>;
    /// Decrypts a copy of the permit's vault and looks for a text; where copies are made in another
    /// way, there is none to look into.
    fn traces_in<'a>(
        &'a self,
        _permit: &'a Permit,
        _copy: &'a Path,
        _text: &'a str,
    ) -> Answer<'a, Traces> {
        Box::pin(async { Err(Error::Unsupported { what: "looking into a copy".into() }) })
    }
    /// Does a piece of the upkeep that the backend itself wants of the permit's vault, and says
    /// whether there may be more.
    fn tend<'a>(&'a self, _permit: &'a Permit, _now: Timestamp) -> Answer<'a, bool> {
        Box::pin(async { Ok(false) })
    }
    /// Writes everything down and closes all vaults.
    fn close(&self) -> Answer<'_, ()>;
}
