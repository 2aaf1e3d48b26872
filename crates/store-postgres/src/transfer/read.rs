//! A vault as rows, table by table, decrypted.

use tokio_postgres::Row as Found;
use yore_domain::audit::Draft;
use yore_domain::class::Class;
use yore_domain::conversation::Conversation;
use yore_domain::stream::Stream;
use yore_domain::{MemoryId, TenantId, Timestamp, VaultId};
use yore_store::key::Key;
use yore_store::plan::Operation;
use yore_store::transfer::{
    Counters, EntryRow, Indexed, Kept, MemoryRow, MessageRow, Outlet, Row, VersionRow,
};
use yore_store::{RowKey, Source, Vector};

use crate::audit;
use crate::commit::{Answered, Beside};
use crate::error::{Error, Result};
use crate::pool::Conn;
use crate::search::document_key;
use crate::vault::{SEED, Setting, Vault, numbered, within};

mod blobs;

/// How many rows are fetched at a time, and how many pieces of attachments.
const PAGE: usize = 100;
const PIECES: usize = 4;

const MEMORIES: &str = "row, id, head, head_row, class, status, kind, since, created, ends,
    statement IS NOT NULL, said, legal_hold, recalled, recalls, followed, overridden, ignored,
    contradicted, demoted FROM memory t";
const VERSIONS: &str = "t.row, t.id, t.memory, t.number, t.class, t.status, t.recorded, t.entry,
    t.salt, t.data, d.scale, d.statics::text, d.data FROM version t
    LEFT JOIN document d ON d.vault = t.vault AND d.source = 0 AND d.row = t.row";
const MESSAGES: &str = "t.row, t.conversation, t.position, t.data, i.data, u.message IS NOT NULL,
    d.scale, d.statics::text, d.data FROM message t
    LEFT JOIN inside i ON i.vault = t.vault AND i.message = t.row
    LEFT JOIN unread u ON u.vault = t.vault AND u.message = t.row
    LEFT JOIN document d ON d.vault = t.vault AND d.source = 1 AND d.row = t.row";

/// What is found by what it says itself: the table, and the bytes by which the cipher knows a row.
const KEPT: [(Kept, &str, &str); 7] = [
    (Kept::Grant, "grants", "id"),
    (Kept::Token, "token", "id"),
    (Kept::Hold, "hold", "id"),
    (Kept::Profile, "profile", "whose || int8send(version)"),
    (Kept::Procedure, "procedure", "memory"),
    (Kept::Job, "job", "id"),
    (Kept::Stream, "stream", "mac"),
];

/// A walk through a vault, inside a transaction of the vault.
struct Walk<'a> {
    conn: &'a Conn,
    vault: &'a Vault,
    out: &'a mut Outlet,
}

/// Puts every row of a vault out, in an order in which they can be taken in.
pub(super) async fn walk(conn: &Conn, vault: &Vault, out: &mut Outlet) -> Result<()> {
    let mut walk = Walk { conn, vault, out };
    walk.counters().await?;
    walk.each("id, data FROM class t", " ORDER BY id", |vault, row| {
        let id: i32 = row.get(0);
        let class: Class = vault.open_value("class", &id.to_be_bytes(), row.get(1))?;
        Ok(vec![Row::Class(id.cast_unsigned(), class)])
    })
    .await?;
    walk.each("name, data FROM setting t", "", setting).await?;
    walk.each(MEMORIES, " ORDER BY row", memory).await?;
    walk.each(VERSIONS, " ORDER BY t.row", version).await?;
    walk.each("memory, number, data FROM relation t", " ORDER BY memory, number", |vault, row| {
        let (memory, number): (i64, i32) = (row.get(0), row.get(1));
        let place = within(&numbered(memory), number.into());
        let relation = vault.open_value("relation", &place, row.get(2))?;
        Ok(vec![Row::Relation(memory, number, relation)])
    })
    .await?;
    walk.each("mac, kind, target, number, data FROM alias t", "", |vault, row| {
        let (namespace, name) = vault.open_value("alias", row.get(0), row.get(4))?;
        let number = row.get::<_, i32>(3).cast_unsigned();
        Ok(vec![Row::Alias(namespace, name, code(row, 1)?, id(row, 2)?, number)])
    })
    .await?;
    walk.each("row, class, messages, updated, data FROM conversation t", " ORDER BY row", talk)
        .await?;
    walk.each(MESSAGES, " ORDER BY t.row", message).await?;
    walk.blobs().await?;
    walk.each("source, row, model, scale, value::text FROM vector t", "", |_, row| {
        let source = if row.get::<_, i16>(0) == 0 { Source::Version } else { Source::Message };
        let key = RowKey { source, row: row.get::<_, i64>(1).cast_unsigned() };
        let values = numbers(row.get(4))?;
        Ok(vec![Row::Vector(key, Vector { model: row.get(2), scale: row.get(3), values })])
    })
    .await?;
    walk.kept().await?;
    walk.in_order().await?;
    if vault.id == VaultId::CATALOG {
        walk.each("id, name FROM tenant t", "", |_, row| {
            Ok(vec![Row::Tenant(TenantId::from_bytes(id(row, 0)?), row.get(1))])
        })
        .await?;
        walk.each("mac, target FROM locate t", "", |_, row| {
            Ok(vec![Row::Place(row.get(0), VaultId::from_bytes(id(row, 1)?))])
        })
        .await?;
    }
    Ok(())
}

impl Walk<'_> {
    /// Reads a table through a cursor, a page at a time.
    async fn each(
        &mut self,
        what: &str,
        order: &str,
        read: impl Fn(&Vault, &Found) -> Result<Vec<Row>> + Send + Sync,
    ) -> Result<()> {
        let own = self.conn.literal();
        let sql =
            format!("DECLARE walk NO SCROLL CURSOR FOR SELECT {what} WHERE t.vault = {own}{order}");
        self.conn.batch(&sql).await?;
        loop {
            let rows = self.conn.fetch(&format!("FETCH {PAGE} FROM walk")).await?;
            if rows.is_empty() {
                break;
            }
            for found in &rows {
                for row in read(self.vault, found)? {
                    self.out.put(row).await?;
                }
            }
        }
        self.conn.batch("CLOSE walk").await
    }

    async fn counters(&mut self) -> Result<()> {
        let sql = "SELECT message, letter, grants, rules FROM tail WHERE vault = $1";
        let tail = self.conn.row(sql, &[]).await?;
        let tail = tail.ok_or_else(|| Error::Damaged("the vault has no tail".into()))?;
        let number = |column: usize| tail.get::<_, i64>(column).cast_unsigned();
        let counters =
            Counters { message: number(0), letter: number(1), grants: number(2), rules: number(3) };
        Ok(self.out.put(Row::Counters(counters)).await?)
    }

    async fn kept(&mut self) -> Result<()> {
        for (kept, table, key) in KEPT {
            self.each(&format!("{key}, data FROM {table} t"), "", |vault, row| {
                let data = text(vault.open_bytes(table, row.get(0), row.get(1))?)?;
                Ok(vec![Row::Kept(kept, data)])
            })
            .await?;
        }
        self.each("name, position, data FROM rule t", "", |vault, row| {
            let data = text(vault.open_bytes("rule", row.get(0), row.get(2))?)?;
            Ok(vec![Row::Rule(row.get(1), data)])
        })
        .await?;
        let frames = "f.stream, f.number, f.data, t.data FROM stream t
            JOIN frame f ON f.vault = t.vault AND f.stream = t.mac";
        self.each(frames, "", |vault, row| {
            let (stream, number): (&[u8], i64) = (row.get(0), row.get(1));
            let bytes = vault.open_bytes("frame", &within(stream, number), row.get(2))?;
            let Stream { sender, id, .. } = vault.open_value("stream", stream, row.get(3))?;
            Ok(vec![Row::Frame(sender, id, number.cast_unsigned(), bytes.to_vec())])
        })
        .await
    }

    /// What is kept in order of arrival.
    async fn in_order(&mut self) -> Result<()> {
        self.each("mac, seq, data FROM letter t", " ORDER BY seq", |vault, row| {
            let data = text(vault.open_bytes("letter", row.get(0), row.get(2))?)?;
            Ok(vec![Row::Letter(row.get(1), data)])
        })
        .await?;
        self.each("mac, at, data FROM operation t", "", |vault, row| {
            let Answered { fingerprint, result, of } =
                vault.open_value("operation", row.get(0), row.get(2))?;
            let Some((caller, id)) = of else { return Ok(vec![Row::Lost("answered operations")]) };
            let operation = Operation { caller, id, fingerprint, result };
            Ok(vec![Row::Operation(Box::new(operation), row.get(1))])
        })
        .await?;
        self.each("mac, message, kind, target, at, data FROM ledger t", "", grave).await?;
        let entries = "seq, at, operation, agent, data, hash, change, changes FROM audit t";
        self.each(entries, " ORDER BY seq", entry).await?;
        self.each("memory, seq FROM audit_target t", "", |_, row| {
            Ok(vec![Row::Named(row.get(0), row.get::<_, i64>(1).cast_unsigned())])
        })
        .await?;
        self.each("seq, data FROM checkpoint t", "", |vault, row| {
            let seq: i64 = row.get(0);
            let data = text(vault.open_bytes("checkpoint", &numbered(seq), row.get(1))?)?;
            Ok(vec![Row::Checkpoint(seq.cast_unsigned(), data)])
        })
        .await
    }
}

fn setting(vault: &Vault, row: &Found) -> Result<Vec<Row>> {
    let Setting { name, value } = vault.open_value("setting", row.get(0), row.get(1))?;
    if name == SEED {
        let seed = value.as_str().and_then(|text| yore_canon::encode::from_hex(text).ok());
        let seed = seed.and_then(|bytes| Key::from_slice(&bytes));
        let unreadable = || Error::Damaged("the signing key is unreadable".into());
        return Ok(vec![Row::Seed(seed.ok_or_else(unreadable)?)]);
    }
    if name.starts_with("store:") { Ok(Vec::new()) } else { Ok(vec![Row::Setting(name, value)]) }
}

fn memory(vault: &Vault, row: &Found) -> Result<Vec<Row>> {
    let number: i64 = row.get(0);
    let said: Option<&[u8]> = row.get(11);
    let statement = said.map(|said| text(vault.open_bytes("memory", &numbered(number), said)?));
    let statement = statement.transpose()?;
    // Rows of servers that kept the digest alone: the memory is there, and is not found by what it
    // says until it gets another version.
    let lost = row.get::<_, bool>(10) && statement.is_none();
    let count = |column: usize| row.get::<_, i64>(column).cast_unsigned();
    let memory = Row::Memory(Box::new(MemoryRow {
        row: number,
        id: id(row, 1)?,
        head: row.get::<_, i32>(2).cast_unsigned(),
        head_row: row.get(3),
        class: row.get::<_, i32>(4).cast_unsigned(),
        status: code(row, 5)?,
        kind: code(row, 6)?,
        since: row.get(7),
        created: row.get(8),
        ends: row.get(9),
        statement,
        legal_hold: row.get(12),
        recalled: row.get(13),
        recalls: count(14),
        followed: count(15),
        overridden: count(16),
        ignored: count(17),
        contradicted: count(18),
        demoted: row.get(19),
    }));
    Ok(if lost { vec![memory, Row::Lost("digests of what memories say")] } else { vec![memory] })
}

fn version(vault: &Vault, row: &Found) -> Result<Vec<Row>> {
    let number: i64 = row.get(0);
    Ok(vec![Row::Version(Box::new(VersionRow {
        row: number,
        id: id(row, 1)?,
        memory: row.get(2),
        number: row.get::<_, i32>(3).cast_unsigned(),
        class: row.get::<_, i32>(4).cast_unsigned(),
        status: code(row, 5)?,
        recorded: row.get(6),
        entry: row.get::<_, i64>(7).cast_unsigned(),
        salt: row.get(8),
        data: text(vault.open_bytes("version", &numbered(number), row.get(9))?)?,
        indexed: indexed(vault, Source::Version, number, row, 10)?,
    }))])
}

fn talk(vault: &Vault, row: &Found) -> Result<Vec<Row>> {
    let number: i64 = row.get(0);
    let mut talk: Conversation = vault.open_value("conversation", &numbered(number), row.get(4))?;
    talk.updated = Timestamp::from_micros(row.get(3));
    let class = row.get::<_, i32>(1).cast_unsigned();
    Ok(vec![Row::Talk(number, class, row.get::<_, i64>(2).cast_unsigned(), Box::new(talk))])
}

fn message(vault: &Vault, row: &Found) -> Result<Vec<Row>> {
    let number: i64 = row.get(0);
    let inside: Option<&[u8]> = row.get(4);
    let inside = inside.map(|data| text(vault.open_bytes("inside", &numbered(number), data)?));
    Ok(vec![Row::Message(Box::new(MessageRow {
        row: number,
        talk: row.get(1),
        position: row.get::<_, i64>(2).cast_unsigned(),
        message: vault.open_value("message", &numbered(number), row.get(3))?,
        inside: inside.transpose()?,
        unread: row.get(5),
        indexed: indexed(vault, Source::Message, number, row, 6)?,
    }))])
}

/// What was erased. Older servers kept the names of its own as an id, and those that callers
/// chose as a digest alone.
fn grave(vault: &Vault, row: &Found) -> Result<Vec<Row>> {
    let (mac, message): (&[u8], Vec<u8>) = (row.get(0), row.get(1));
    let data: Option<&[u8]> = row.get(5);
    let (namespace, name) = match (data, row.get::<_, Option<&[u8]>>(3)) {
        (Some(data), _) => vault.open_value("ledger", &[mac, &message].concat(), data)?,
        (None, Some(_)) => (String::new(), MemoryId::from_bytes(id(row, 3)?).to_string()),
        (None, None) => return Ok(vec![Row::Lost("names of what was erased")]),
    };
    Ok(vec![Row::Grave(namespace, name, message, code(row, 2)?, row.get(4))])
}

fn entry(vault: &Vault, row: &Found) -> Result<Vec<Row>> {
    let seq: i64 = row.get(0);
    let place = numbered(seq);
    let data = text(vault.open_bytes("audit", &place, row.get(4))?)?;
    let draft: Draft = serde_json::from_str(&data)?;
    let agent = audit::agent(&draft).map(ToOwned::to_owned);
    let named = agent.as_ref().map(|agent| vault.mac("agent", &[agent]));
    if named.as_deref() != row.get::<_, Option<&[u8]>>(3) {
        return Err(Error::Damaged(format!("audit entry {seq} names another agent than it says")));
    }
    let changes: Option<&[u8]> = row.get(7);
    let changes = changes.map(|changes| text(vault.open_bytes("outbox", &place, changes)?));
    Ok(vec![Row::Entry(Box::new(EntryRow {
        seq: seq.cast_unsigned(),
        at: row.get(1),
        operation: row.get(2),
        agent,
        data,
        hash: row.get(5),
        change: row.get::<_, i64>(6).cast_unsigned(),
        changes: changes.transpose()?,
    }))])
}

/// Reads the columns scale, statics and data of a document, when there is one.
fn indexed(
    vault: &Vault,
    source: Source,
    row: i64,
    found: &Found,
    first: usize,
) -> Result<Option<Indexed>> {
    let Some(scale) = found.get::<_, Option<f32>>(first) else { return Ok(None) };
    let beside = vault.open_bytes("document", &document_key(source, row), found.get(first + 2))?;
    let beside: Beside =
        postcard::from_bytes(&beside).map_err(|error| Error::Damaged(error.to_string()))?;
    // The name of their model is not kept here.
    let values = numbers(found.get(first + 1))?;
    let statics = Vector { model: String::new(), scale, values };
    Ok(Some(Indexed { tokens: beside.tokens, statics }))
}

/// Reads a vector of whole numbers as the database spells it.
fn numbers(text: &str) -> Result<Vec<i8>> {
    let inside = text.trim_start_matches('[').trim_end_matches(']');
    let numbers = inside.split(',').map(str::parse).collect::<Result<_, _>>();
    numbers.map_err(|_| Error::Damaged("a vector is not of whole numbers".into()))
}

/// Reads bytes that are JSON.
pub(super) fn text(mut bytes: zeroize::Zeroizing<Vec<u8>>) -> Result<String> {
    let text = String::from_utf8(std::mem::take(&mut *bytes));
    text.map_err(|_| Error::Damaged("a value is not text".into()))
}

fn id(row: &Found, column: usize) -> Result<[u8; 16]> {
    let bytes: &[u8] = row.get(column);
    bytes.try_into().map_err(|_| Error::Damaged("an id has the wrong length".into()))
}

fn code(row: &Found, column: usize) -> Result<u8> {
    let code: i16 = row.get(column);
    u8::try_from(code).map_err(|_| Error::Damaged("a column holds an unknown number".into()))
}

/// How much there is of what people ask for.
pub(super) async fn counts(conn: &Conn) -> Result<Vec<(&'static str, u64)>> {
    let tables = [
        ("memories", "memory"),
        ("versions", "version"),
        ("conversations", "conversation"),
        ("messages", "message"),
        ("attachments", "blob"),
        ("vectors", "vector"),
        ("audit entries", "audit"),
    ];
    let mut counts = Vec::new();
    for (name, table) in tables {
        let whole = if table == "blob" { " AND size IS NOT NULL" } else { "" };
        let sql = format!("SELECT count(*) FROM {table} WHERE vault = $1{whole}");
        let row = conn.row(&sql, &[]).await?;
        counts.push((name, row.map_or(0, |row| row.get::<_, i64>(0).cast_unsigned())));
    }
    Ok(counts)
}
