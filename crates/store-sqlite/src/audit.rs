//! The audit chain of a vault: appending, signing checkpoints, verifying.

use rusqlite::{Connection, OptionalExtension as _};
use yore_canon::chain;
use yore_canon::did::Did;
use yore_canon::hash::Blake3;
use yore_canon::jcs;
use yore_canon::key::{SigningKey, VerifyingKey};
use yore_domain::audit::{Actor, Checkpoint, Draft, Fault, Report};
use yore_domain::{MemoryId, Seq, Timestamp, VaultId};
use yore_store::keeper::checkpoint_name;

use crate::error::{Error, Result};
use crate::writer::Desk;

/// After how many entries a checkpoint is signed.
pub(crate) const INTERVAL: u64 = 256;

/// Appends an entry inside the open transaction. Returns its number and, when one fell due,
/// the signed checkpoint as it was stored. The versions of `written` memories carry its number.
pub(crate) fn append(
    desk: &Desk,
    tip: &mut Option<Tip>,
    draft: &Draft,
    (change, changes): (u64, Option<String>),
    written: &[MemoryId],
) -> Result<(Seq, Option<String>)> {
    let conn = &desk.conn;
    let last = tip.as_ref();
    let seq = Tip::next(last);
    let data = jcs::canonical_of(draft).map_err(|error| Error::Damaged(error.to_string()))?;
    let hash = chain::link(last.map(|tip| &tip.hash), data.as_bytes());
    let agent = match &draft.actor {
        Actor::Agent { agent, .. } => Some(agent.as_str()),
        Actor::Owner
        | Actor::Service { .. }
        | Actor::System { .. }
        | Actor::Anonymous
        | Actor::Unknown => None,
    };
    conn.prepare_cached("INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?.execute((
        seq,
        draft.at.micros(),
        &draft.operation,
        agent,
        data,
        hash.as_bytes(),
        change,
        changes,
    ))?;
    for target in draft.targets.iter().filter(|target| !written.contains(&target.memory)) {
        conn.prepare_cached(
            "INSERT OR IGNORE INTO audit_target SELECT row, ?2 FROM memory WHERE id = ?1",
        )?
        .execute((target.memory.bytes(), seq))?;
    }
    *tip = Some(Tip { seq, at: draft.at, hash });
    let checkpoint = seq
        .is_multiple_of(INTERVAL)
        .then(|| store(conn, &sign(desk.id, &desk.signer, seq, hash, draft.at)))
        .transpose()?;
    Ok((Seq(seq), checkpoint))
}

/// Signs where the chain stands now, unless that is signed already. The time is that of the
/// last entry when the caller has none.
pub(crate) fn seal(desk: &Desk, now: Option<Timestamp>) -> Result<Option<String>> {
    let Some(tip) = tip(&desk.conn)? else { return Ok(None) };
    let covered = newest(&desk.conn)?.is_some_and(|checkpoint| checkpoint.seq.0 >= tip.seq);
    if covered {
        return Ok(None);
    }
    let at = now.unwrap_or(tip.at);
    store(&desk.conn, &sign(desk.id, &desk.signer, tip.seq, tip.hash, at)).map(Some)
}

/// Returns the newest checkpoint.
pub(crate) fn newest(conn: &Connection) -> Result<Option<Checkpoint>> {
    let data: Option<String> = conn
        .prepare_cached("SELECT data FROM checkpoint ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(data.map(|data| serde_json::from_str(&data)).transpose()?)
}

/// The last entry.
#[derive(Clone, Debug)]
pub(crate) struct Tip {
    seq: u64,
    at: Timestamp,
    hash: Blake3,
}

impl Tip {
    /// The number that the next entry gets.
    pub(crate) fn next(tip: Option<&Self>) -> u64 {
        tip.map_or(1, |tip| tip.seq + 1)
    }
}

pub(crate) fn tip(conn: &Connection) -> Result<Option<Tip>> {
    Ok(conn
        .prepare_cached("SELECT seq, at, hash FROM audit ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| {
            Ok(Tip {
                seq: row.get(0)?,
                at: Timestamp::from_micros(row.get(1)?),
                hash: Blake3::from_bytes(row.get(2)?),
            })
        })
        .optional()?)
}

fn sign(vault: VaultId, key: &SigningKey, seq: u64, hash: Blake3, at: Timestamp) -> Checkpoint {
    let signed = chain::Checkpoint::sign(&checkpoint_name(vault, at), seq, hash, key);
    Checkpoint {
        seq: Seq(seq),
        hash: hash.to_hex(),
        at,
        signer: Did::of_key(&key.verifying_key()).as_str().to_owned(),
        signature: signed.signature.to_string(),
    }
}

fn store(conn: &Connection, checkpoint: &Checkpoint) -> Result<String> {
    let data = serde_json::to_string(checkpoint)?;
    conn.prepare_cached("INSERT OR REPLACE INTO checkpoint VALUES (?1, ?2)")?
        .execute((checkpoint.seq.0, &data))?;
    Ok(data)
}

fn holds(vault: VaultId, key: &VerifyingKey, checkpoint: &Checkpoint) -> bool {
    let Ok(hash) = Blake3::from_hex(&checkpoint.hash) else { return false };
    let Ok(signature) = checkpoint.signature.parse() else { return false };
    chain::Checkpoint { seq: checkpoint.seq.0, hash, signature }
        .verify(&checkpoint_name(vault, checkpoint.at), key)
        .is_ok()
}

/// Reads the whole chain and every checkpoint, the copy kept elsewhere included.
pub(crate) fn verify(
    conn: &Connection,
    vault: VaultId,
    key: &VerifyingKey,
    copy: Option<&str>,
) -> Result<Report> {
    let mut report = Report::default();
    let mut checkpoints = checkpoints(conn, vault, key, copy, &mut report)?;
    checkpoints.sort_by_key(|checkpoint| checkpoint.seq);
    let mut due = checkpoints.into_iter().peekable();
    let mut fault = |seq: u64, what: String| report.faults.push(Fault { seq: Seq(seq), what });

    let mut statement =
        conn.prepare("SELECT seq, at, operation, agent, data, hash FROM audit ORDER BY seq")?;
    let mut rows = statement.query([])?;
    let (mut last, mut previous, mut entries) = (0u64, None::<Blake3>, 0u64);
    while let Some(row) = rows.next()? {
        let seq: u64 = row.get(0)?;
        let data: String = row.get(4)?;
        let stored = Blake3::from_bytes(row.get(5)?);
        entries += 1;
        if seq != last + 1 {
            fault(last + 1, format!("entries {} to {} are missing", last + 1, seq - 1));
        }
        if chain::link(previous.as_ref(), data.as_bytes()) != stored {
            fault(seq, "the entry was changed, moved or follows another one".into());
        }
        if !columns_agree(row, &data)? {
            fault(seq, "the entry's columns contradict its content".into());
        }
        while let Some(checkpoint) = due.next_if(|checkpoint| checkpoint.seq.0 <= seq) {
            if checkpoint.seq.0 == seq && checkpoint.hash != stored.to_hex() {
                fault(seq, "the entry is not the one that was signed".into());
            }
        }
        last = seq;
        previous = Some(stored);
    }
    if let Some(furthest) = due.last() {
        let what = format!("entries {} to {} were signed and are cut off", last + 1, furthest.seq);
        fault(last + 1, what);
    }
    report.entries = entries;
    Ok(report)
}

fn checkpoints(
    conn: &Connection,
    vault: VaultId,
    key: &VerifyingKey,
    copy: Option<&str>,
    report: &mut Report,
) -> Result<Vec<Checkpoint>> {
    let mut statement = conn.prepare("SELECT seq, data FROM checkpoint ORDER BY seq")?;
    let mut texts = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<(u64, String)>>>()?;
    texts.extend(copy.map(|text| (0, text.to_owned())));
    let mut good = Vec::new();
    for (seq, text) in texts {
        match serde_json::from_str::<Checkpoint>(&text) {
            Ok(checkpoint) if holds(vault, key, &checkpoint) => {
                report.checkpoints += 1;
                good.push(checkpoint);
            }
            Ok(_) | Err(_) => {
                let what = "a checkpoint is not signed by the vault".to_owned();
                report.faults.push(Fault { seq: Seq(seq), what });
            }
        }
    }
    Ok(good)
}

fn columns_agree(row: &rusqlite::Row<'_>, data: &str) -> Result<bool> {
    let Ok(draft) = serde_json::from_str::<Draft>(data) else { return Ok(false) };
    let (at, operation): (i64, String) = (row.get(1)?, row.get(2)?);
    let agent: Option<String> = row.get(3)?;
    let named = match draft.actor {
        Actor::Agent { agent, .. } => Some(agent),
        Actor::Owner
        | Actor::Service { .. }
        | Actor::System { .. }
        | Actor::Anonymous
        | Actor::Unknown => None,
    };
    Ok(draft.at.micros() == at && draft.operation == operation && named == agent)
}

#[cfg(test)]
mod tests;
