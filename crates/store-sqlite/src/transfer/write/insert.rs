//! One row into its table.

use rusqlite::{Connection, Params};
use serde::de::DeserializeOwned;
use yore_canon::encode;
use yore_canon::jcs;
use yore_domain::grant::{Grant, Token};
use yore_domain::hold::{Hold, Rule};
use yore_domain::job::Job;
use yore_domain::procedure::Procedure;
use yore_domain::profile::Profile;
use yore_domain::stream::{Letter, Stream};
use yore_store::plan::Operation;
use yore_store::transfer::{EntryRow, Indexed, Kept, MemoryRow, MessageRow, Row, VersionRow};

use crate::commit::{hold_code, job_code, letter_code, source_code};
use crate::error::{Error, Result};
use crate::said;
use crate::vault::SEED;

pub(super) fn row(conn: &Connection, row: &Row, statics: &str) -> Result<()> {
    match row {
        Row::Seed(seed) => {
            let text = zeroize::Zeroizing::new(encode::hex(seed.bytes()));
            run(conn, "INSERT INTO setting VALUES (?1, ?2)", (SEED, text.as_str()))
        }
        // Set in the end: rows move the counters, too. What is lost has no row.
        Row::Counters(_) | Row::Lost(_) => Ok(()),
        Row::Class(number, class) => {
            let data =
                jcs::canonical_of(class).map_err(|error| Error::Damaged(error.to_string()))?;
            run(conn, "INSERT INTO class (id, data) VALUES (?1, ?2)", (number, data))
        }
        Row::Setting(name, value) => {
            run(conn, "INSERT INTO setting VALUES (?1, ?2)", (name, value.to_string()))
        }
        Row::Memory(memory) => self::memory(conn, memory),
        Row::Version(version) => self::version(conn, version, statics),
        Row::Relation(memory, _, relation) => run(
            conn,
            "INSERT INTO relation VALUES (?1, ?2, ?3)",
            (memory, &relation.kind, &relation.target),
        ),
        Row::Alias(namespace, name, kind, target, number) => run(
            conn,
            "INSERT INTO alias (namespace, name, kind, target, number) VALUES (?1, ?2, ?3, ?4, ?5)",
            (namespace, name, kind, target, number),
        ),
        Row::Talk(row, class, messages, talk) => run(
            conn,
            "INSERT INTO conversation (row, id, class, platform, created, updated, messages, data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            (
                row,
                talk.id.bytes(),
                class,
                &talk.platform,
                talk.created.micros(),
                talk.updated.micros(),
                messages,
                serde_json::to_string(talk)?,
            ),
        ),
        Row::Message(message) => self::message(conn, message, statics),
        Row::Blob(hash, size) => {
            run(conn, "INSERT INTO blob (hash, size) VALUES (?1, ?2)", (hash.0, size))
        }
        Row::Piece(hash, number, bytes) => run(
            conn,
            "INSERT INTO blob_chunk (hash, number, bytes) VALUES (?1, ?2, ?3)",
            (hash.0, number, bytes),
        ),
        Row::Vector(key, vector) => run(
            conn,
            "INSERT INTO vector (source, row, model, scale, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
            (
                source_code(key.source),
                key.row,
                &vector.model,
                vector.scale,
                bytemuck::cast_slice::<i8, u8>(&vector.values),
            ),
        ),
        Row::Kept(kept, data) => self::kept(conn, *kept, data),
        Row::Rule(position, data) => {
            let rule: Rule = of(data)?;
            let sql = "INSERT INTO rule (name, position, data) VALUES (?1, ?2, ?3)";
            run(conn, sql, (rule.name, position, data))
        }
        Row::Frame(sender, stream, number, bytes) => run(
            conn,
            "INSERT INTO frame (sender, stream, number, bytes) VALUES (?1, ?2, ?3, ?4)",
            (sender, stream, number, bytes),
        ),
        Row::Letter(seq, data) => {
            let letter: Letter = of(data)?;
            run(
                conn,
                "INSERT INTO letter (seq, inbox, sender, id, state, data)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                (seq, letter.inbox, letter.sender, letter.id, letter_code(letter.state), data),
            )
        }
        Row::Operation(operation, at) => {
            let Operation { caller, id, fingerprint, result } = &**operation;
            run(
                conn,
                "INSERT INTO operation (caller, id, fingerprint, result, at)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                (caller, id, fingerprint, serde_json::to_string(result)?, at),
            )
        }
        Row::Grave(namespace, name, message, kind, at) => run(
            conn,
            "INSERT INTO ledger VALUES (?1, ?2, ?3, ?4, ?5)",
            (namespace, name, message, kind, at),
        ),
        Row::Entry(entry) => self::entry(conn, entry),
        Row::Named(memory, seq) => {
            run(conn, "INSERT INTO audit_target VALUES (?1, ?2)", (memory, seq))
        }
        Row::Checkpoint(seq, data) => {
            run(conn, "INSERT INTO checkpoint VALUES (?1, ?2)", (seq, data))
        }
        Row::Tenant(id, name) => {
            run(conn, "INSERT INTO tenant (id, name) VALUES (?1, ?2)", (id.bytes(), name))
        }
        Row::Place(mac, vault) => {
            run(conn, "INSERT INTO locate (mac, vault) VALUES (?1, ?2)", (mac, vault.bytes()))
        }
    }
}

fn run(conn: &Connection, sql: &str, params: impl Params) -> Result<()> {
    conn.prepare_cached(sql)?.execute(params)?;
    Ok(())
}

fn of<T: DeserializeOwned>(data: &str) -> Result<T> {
    Ok(serde_json::from_str(data)?)
}

fn memory(conn: &Connection, memory: &MemoryRow) -> Result<()> {
    // Its first version says which row that is.
    run(
        conn,
        "INSERT INTO memory (row, id, head, head_row, first_row, class, status, kind, since,
             created, ends, statement, legal_hold)
         VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        (
            memory.row,
            memory.id,
            memory.head,
            memory.head_row,
            memory.class,
            memory.status,
            memory.kind,
            memory.since,
            memory.created,
            memory.ends,
            &memory.statement,
            memory.legal_hold,
        ),
    )?;
    run(
        conn,
        "UPDATE memory SET recalled = ?2, recalls = ?3, followed = ?4, overridden = ?5,
             ignored = ?6, contradicted = ?7, demoted = ?8
         WHERE row = ?1",
        (
            memory.row,
            memory.recalled,
            memory.recalls,
            memory.followed,
            memory.overridden,
            memory.ignored,
            memory.contradicted,
            memory.demoted,
        ),
    )
}

/// The four columns that make a row findable.
type Columns = (Option<Vec<u8>>, Option<String>, Option<f32>, Option<Vec<u8>>);

fn columns(indexed: Option<&Indexed>, statics: &str) -> Columns {
    let Some(Indexed { tokens, statics: vector }) = indexed else {
        return (None, None, None, None);
    };
    let tokens = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    let model = if vector.model.is_empty() { statics } else { &vector.model };
    let values = bytemuck::cast_slice::<i8, u8>(&vector.values).to_vec();
    (Some(tokens), Some(model.to_owned()), Some(vector.scale), Some(values))
}

fn version(conn: &Connection, version: &VersionRow, statics: &str) -> Result<()> {
    let (tokens, model, scale, values) = columns(version.indexed.as_ref(), statics);
    run(
        conn,
        "INSERT INTO version (row, id, memory, number, class, status, recorded, entry, salt, data,
             tokens, model, scale, statics)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        (
            version.row,
            version.id,
            version.memory,
            version.number,
            version.class,
            version.status,
            version.recorded,
            version.entry,
            &version.salt,
            &version.data,
            tokens,
            model,
            scale,
            values,
        ),
    )?;
    if version.number == 1 {
        let sql = "UPDATE memory SET first_row = ?2 WHERE row = ?1";
        run(conn, sql, (version.memory, version.row))?;
    }
    Ok(())
}

fn message(conn: &Connection, row: &MessageRow, statics: &str) -> Result<()> {
    let (tokens, model, scale, values) = columns(row.indexed.as_ref(), statics);
    run(
        conn,
        "INSERT INTO message (row, conversation, id, position, at, data, tokens, model, scale,
             statics)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        (
            row.row,
            row.talk,
            row.message.id.bytes(),
            row.position,
            row.message.at.micros(),
            said::written(&row.message)?,
            tokens,
            model,
            scale,
            values,
        ),
    )?;
    for blob in row.message.attachments.iter().filter_map(|attachment| attachment.blob) {
        run(conn, "INSERT OR IGNORE INTO blob_use VALUES (?1, ?2)", (blob.0, row.row))?;
    }
    if row.unread {
        run(conn, "INSERT INTO unread VALUES (?1)", [row.row])?;
    }
    if let Some(inside) = &row.inside {
        run(conn, "INSERT INTO inside (message, data) VALUES (?1, ?2)", (row.row, inside))?;
    }
    Ok(())
}

fn kept(conn: &Connection, kept: Kept, data: &str) -> Result<()> {
    match kept {
        Kept::Grant => {
            let grant: Grant = of(data)?;
            let sql = "INSERT INTO grants (id, agent, data) VALUES (?1, ?2, ?3)";
            run(conn, sql, (grant.id.bytes(), grant.agent.as_str(), data))
        }
        Kept::Token => {
            let token: Token = of(data)?;
            let sql = "INSERT INTO token (id, hash, data) VALUES (?1, ?2, ?3)";
            run(conn, sql, (token.id.bytes(), token.hash, data))
        }
        Kept::Hold => {
            let hold: Hold = of(data)?;
            let sql =
                "INSERT INTO hold (id, state, asked, agent, data) VALUES (?1, ?2, ?3, ?4, ?5)";
            let (id, state) = (hold.id.bytes(), hold_code(hold.state));
            run(conn, sql, (id, state, hold.asked.micros(), hold.agent, data))
        }
        Kept::Profile => {
            let profile: Profile = of(data)?;
            let sql = "INSERT INTO profile (user, version, recorded, data) VALUES (?1, ?2, ?3, ?4)";
            let user = profile.user.unwrap_or_default();
            run(conn, sql, (user, profile.version, profile.recorded.micros(), data))
        }
        Kept::Procedure => {
            let procedure: Procedure = of(data)?;
            let sql = "INSERT INTO procedure (memory, name, data) VALUES (?1, ?2, ?3)";
            run(conn, sql, (procedure.memory.bytes(), procedure.machine.name, data))
        }
        Kept::Job => {
            let job: Job = of(data)?;
            let sql =
                "INSERT INTO job (id, kind, state, created, data) VALUES (?1, ?2, ?3, ?4, ?5)";
            let (id, state) = (job.id.bytes(), job_code(job.state));
            run(conn, sql, (id, job.kind, state, job.created.micros(), data))
        }
        Kept::Stream => {
            let stream: Stream = of(data)?;
            let sql = "INSERT INTO stream (sender, id, data) VALUES (?1, ?2, ?3)";
            run(conn, sql, (stream.sender, stream.id, data))
        }
    }
}

fn entry(conn: &Connection, entry: &EntryRow) -> Result<()> {
    run(
        conn,
        "INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (
            entry.seq,
            entry.at,
            &entry.operation,
            &entry.agent,
            &entry.data,
            &entry.hash,
            entry.change,
            &entry.changes,
        ),
    )
}
