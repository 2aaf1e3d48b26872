//! Copies of an audit chain outside its vault, and checking them without it.
//!
//! A copy is a list of entries in order, followed by the signed statement of where the chain
//! stood. Whoever has the signer's DID from elsewhere can tell that nothing in it was changed,
//! left out or cut off.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_canon::did::Did;
use yore_canon::hash::Blake3;
use yore_canon::{chain, jcs};
use yore_domain::audit::{Checkpoint, Entry, Fault};
use yore_domain::{Seq, VaultId};
use yore_store::keeper::checkpoint_name;

/// Where the chain of a vault stood, signed by the vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sealed {
    /// The vault.
    pub vault: VaultId,
    /// The signed statement.
    pub checkpoint: Checkpoint,
}

/// One line of a copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// Where the chain stood.
    Sealed(Sealed),
    /// An entry.
    Entry(Box<Entry>),
}

/// What checking a copy found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopyReport {
    /// How many entries it has.
    pub entries: u64,
    /// The number of the first.
    pub first: Seq,
    /// The number of the last.
    pub last: Seq,
    /// Up to which number it is signed.
    pub sealed: Seq,
    /// Who signed; the copy is worth as much as this is known from elsewhere.
    pub signers: Vec<String>,
    /// What is wrong, each with the number it was found at.
    pub faults: Vec<Fault>,
}

/// Checks a copy line by line. Several files of one chain are checked one after the other.
#[derive(Debug, Default)]
pub struct Checker {
    report: CopyReport,
    tip: Option<Blake3>,
    vault: Option<VaultId>,
    waiting: Vec<Sealed>,
}

impl Checker {
    /// Takes the next line.
    pub fn line(&mut self, line: Line) {
        match line {
            Line::Entry(entry) => self.entry(&entry),
            Line::Sealed(sealed) => self.seal(sealed),
        }
    }

    /// Notes a line that is neither an entry nor a seal.
    pub fn unreadable(&mut self) {
        self.fault(self.report.last.0 + 1, "a line is neither an entry nor a seal");
    }

    /// Says what was found.
    #[must_use]
    pub fn finish(mut self) -> CopyReport {
        for sealed in std::mem::take(&mut self.waiting) {
            self.fault(sealed.checkpoint.seq.0, "entries were signed and are cut off");
        }
        if self.report.sealed < self.report.last || self.report.entries == 0 {
            self.fault(self.report.sealed.0 + 1, "what follows is not signed");
        }
        self.report
    }

    fn entry(&mut self, entry: &Entry) {
        let seq = entry.seq.0;
        if self.report.entries == 0 {
            self.report.first = entry.seq;
            // A copy may begin anywhere; what came before is vouched for by the hash it names.
            self.tip = Blake3::from_hex(&entry.previous).ok();
            if self.tip.is_none() != (seq == 1) {
                self.fault(seq, "the entry does not say what it follows");
            }
        } else if seq != self.report.last.0 + 1 {
            self.fault(self.report.last.0 + 1, "entries are missing or out of order");
        }
        self.report.entries += 1;
        self.report.last = entry.seq;
        let follows = self.tip.map(|tip| tip.to_hex()).unwrap_or_default();
        let hash = jcs::canonical_of(&entry.draft)
            .map(|data| chain::link(self.tip.as_ref(), data.as_bytes()))
            .ok();
        if hash.map(|hash| hash.to_hex()).as_deref() != Some(entry.hash.as_str())
            || follows != entry.previous
        {
            self.fault(seq, "the entry was changed, moved or follows another one");
        }
        // What comes next is held against what stands here, so that one change is one fault.
        self.tip = Blake3::from_hex(&entry.hash).ok();
    }

    fn seal(&mut self, sealed: Sealed) {
        let Sealed { vault, checkpoint } = &sealed;
        let seq = checkpoint.seq.0;
        if *self.vault.get_or_insert(*vault) != *vault {
            self.fault(seq, "the seals are of different vaults");
        }
        if !is_signed(*vault, checkpoint) {
            self.fault(seq, "the seal is not signed by who it names");
            return;
        }
        if !self.report.signers.contains(&checkpoint.signer) {
            self.report.signers.push(checkpoint.signer.clone());
        }
        if checkpoint.seq > self.report.last {
            self.waiting.push(sealed);
            return;
        }
        let tip = self.tip.map(|tip| tip.to_hex());
        if checkpoint.seq == self.report.last && tip.as_deref() != Some(checkpoint.hash.as_str()) {
            self.fault(seq, "the entry is not the one that was signed");
            return;
        }
        if checkpoint.seq == self.report.last {
            self.report.sealed = checkpoint.seq;
        }
    }

    fn fault(&mut self, seq: u64, what: &str) {
        self.report.faults.push(Fault { seq: Seq(seq), what: what.to_owned() });
    }
}

fn is_signed(vault: VaultId, checkpoint: &Checkpoint) -> bool {
    let Ok(hash) = Blake3::from_hex(&checkpoint.hash) else { return false };
    let Ok(signature) = checkpoint.signature.parse() else { return false };
    let Some(key) = checkpoint.signer.parse::<Did>().ok().and_then(|did| did.key().ok()) else {
        return false;
    };
    chain::Checkpoint { seq: checkpoint.seq.0, hash, signature }
        .verify(&checkpoint_name(vault, checkpoint.at), &key)
        .is_ok()
}
