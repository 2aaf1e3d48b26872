//! The audit chain of a vault: appending, signing checkpoints, verifying.

use yore_canon::chain;
use yore_canon::did::Did;
use yore_canon::hash::Blake3;
use yore_canon::key::{SigningKey, VerifyingKey};
use yore_domain::audit::{Actor, Checkpoint, Draft, Fault, Report};
use yore_domain::{Seq, Timestamp, VaultId};
use yore_store::keeper::checkpoint_name;

use crate::error::Result;
use crate::pool::Conn;
use crate::vault::{Vault, numbered};

/// After how many entries a checkpoint is signed.
pub(crate) const INTERVAL: i64 = 256;

/// The agent an entry is about.
pub(crate) fn agent(draft: &Draft) -> Option<&str> {
    match &draft.actor {
        Actor::Agent { agent, .. } => Some(agent.as_str()),
        Actor::Owner
        | Actor::Service { .. }
        | Actor::System { .. }
        | Actor::Anonymous
        | Actor::Unknown => None,
    }
}

/// Signs where the chain stands and keeps a copy in the vault's line of the catalog.
pub(crate) async fn seal(
    conn: &Conn,
    vault: &Vault,
    seq: i64,
    hash: Blake3,
    at: Timestamp,
) -> Result<()> {
    let checkpoint = sign(vault.id, &vault.signer, seq.cast_unsigned(), hash, at);
    let data = vault.seal("checkpoint", &numbered(seq), &checkpoint)?;
    conn.run(
        "INSERT INTO checkpoint (vault, seq, data) VALUES ($1, $2, $3)
         ON CONFLICT (vault, seq) DO UPDATE SET data = excluded.data",
        &[&seq, &data],
    )
    .await?;
    let copy = vault.seal("line", &[], &checkpoint)?;
    conn.run("UPDATE line SET checkpoint = $2 WHERE vault = $1", &[&copy]).await?;
    Ok(())
}

/// Returns the newest checkpoint.
pub(crate) async fn newest(conn: &Conn, vault: &Vault) -> Result<Option<Checkpoint>> {
    let sql = "SELECT seq, data FROM checkpoint WHERE vault = $1 ORDER BY seq DESC LIMIT 1";
    let row = conn.row(sql, &[]).await?;
    row.map(|row| vault.open_value("checkpoint", &numbered(row.get(0)), row.get(1))).transpose()
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

fn holds(vault: VaultId, key: &VerifyingKey, checkpoint: &Checkpoint) -> bool {
    let Ok(hash) = Blake3::from_hex(&checkpoint.hash) else { return false };
    let Ok(signature) = checkpoint.signature.parse() else { return false };
    chain::Checkpoint { seq: checkpoint.seq.0, hash, signature }
        .verify(&checkpoint_name(vault, checkpoint.at), key)
        .is_ok()
}

/// How many entries are read at a time.
const PAGE: i64 = 1000;

/// Reads the whole chain and every checkpoint, the copy in the catalog included.
pub(crate) async fn verify(conn: &Conn, vault: &Vault) -> Result<Report> {
    let mut report = Report::default();
    let mut checkpoints = checkpoints(conn, vault, &mut report).await?;
    checkpoints.sort_by_key(|checkpoint| checkpoint.seq);
    let mut due = checkpoints.into_iter().peekable();
    let (mut last, mut previous, mut entries) = (0u64, None::<Blake3>, 0u64);
    let mut faults = Vec::new();
    let mut fault = |seq: u64, what: &str| {
        faults.push(Fault { seq: Seq(seq), what: what.to_owned() });
    };
    loop {
        let after = last.cast_signed();
        let rows = conn
            .rows(
                "SELECT seq, at, operation, agent, data, hash FROM audit
                 WHERE vault = $1 AND seq > $2 ORDER BY seq LIMIT $3",
                &[&after, &PAGE],
            )
            .await?;
        let Some(furthest) = rows.last().map(|row| row.get::<_, i64>(0)) else { break };
        for row in rows {
            let seq = row.get::<_, i64>(0).cast_unsigned();
            entries += 1;
            if seq != last + 1 {
                fault(last + 1, &format!("entries {} to {} are missing", last + 1, seq - 1));
            }
            let stored: Option<[u8; 32]> = row.get::<_, &[u8]>(5).try_into().ok();
            let stored = stored.map(Blake3::from_bytes);
            let data = vault.open_bytes("audit", &numbered(row.get(0)), row.get(4));
            let link = data.as_ref().ok().map(|data| chain::link(previous.as_ref(), data));
            if link.is_none() || link != stored {
                fault(seq, "the entry was changed, moved or follows another one");
            }
            let draft = data.ok().and_then(|data| serde_json::from_slice::<Draft>(&data).ok());
            if draft.is_none_or(|draft| !columns_agree(vault, &row, &draft)) {
                fault(seq, "the entry's columns contradict its content");
            }
            while let Some(checkpoint) = due.next_if(|checkpoint| checkpoint.seq.0 <= seq) {
                if checkpoint.seq.0 == seq && Some(checkpoint.hash) != stored.map(|h| h.to_hex()) {
                    fault(seq, "the entry is not the one that was signed");
                }
            }
            (last, previous) = (seq, stored);
        }
        last = last.max(furthest.cast_unsigned());
    }
    if let Some(furthest) = due.last() {
        let what = format!("entries {} to {} were signed and are cut off", last + 1, furthest.seq);
        fault(last + 1, &what);
    }
    report.entries = entries;
    report.faults.append(&mut faults);
    Ok(report)
}

async fn checkpoints(conn: &Conn, vault: &Vault, report: &mut Report) -> Result<Vec<Checkpoint>> {
    let sql = "SELECT seq, data FROM checkpoint WHERE vault = $1 ORDER BY seq";
    let mut found: Vec<(u64, Option<Checkpoint>)> = Vec::new();
    for row in conn.rows(sql, &[]).await? {
        let seq: i64 = row.get(0);
        let opened = vault.open_value("checkpoint", &numbered(seq), row.get(1)).ok();
        found.push((seq.cast_unsigned(), opened));
    }
    let copy = conn.row("SELECT checkpoint FROM line WHERE vault = $1", &[]).await?;
    if let Some(copy) = copy.and_then(|row| row.get::<_, Option<Vec<u8>>>(0)) {
        found.push((0, vault.open_value("line", &[], &copy).ok()));
    }
    let key = vault.signer.verifying_key();
    let mut good = Vec::new();
    for (seq, checkpoint) in found {
        match checkpoint.filter(|checkpoint| holds(vault.id, &key, checkpoint)) {
            Some(checkpoint) => {
                report.checkpoints += 1;
                good.push(checkpoint);
            }
            None => {
                let what = "a checkpoint is not signed by the vault".to_owned();
                report.faults.push(Fault { seq: Seq(seq), what });
            }
        }
    }
    Ok(good)
}

fn columns_agree(vault: &Vault, row: &tokio_postgres::Row, draft: &Draft) -> bool {
    let (at, operation, named): (i64, &str, Option<&[u8]>) = (row.get(1), row.get(2), row.get(3));
    let agent = agent(draft).map(|agent| vault.mac("agent", &[agent]));
    draft.at.micros() == at && draft.operation == operation && agent.as_deref() == named
}
