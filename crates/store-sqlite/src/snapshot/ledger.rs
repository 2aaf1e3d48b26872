//! What was erased, by its names.

use rusqlite::Row;
use yore_domain::{ConversationId, MemoryId, MessageId, Timestamp};
use yore_store::plan::Grave;
use yore_store::snapshot::Buried;

use super::View;

pub(super) fn buried(view: &View<'_>, namespace: &str, name: &str) -> rusqlite::Result<Buried> {
    let mut statement = view
        .conn
        .prepare_cached("SELECT message FROM ledger WHERE namespace = ?1 AND name = ?2")?;
    let mut rows = statement.query([namespace, name])?;
    let mut buried = Buried::default();
    while let Some(row) = rows.next()? {
        match message(row, 0)? {
            Some(message) => buried.messages.push(message),
            None => buried.whole = true,
        }
    }
    Ok(buried)
}

pub(super) fn graves(view: &View<'_>) -> rusqlite::Result<Vec<(Grave, Timestamp)>> {
    let mut statement = view.conn.prepare_cached(
        "SELECT name, kind, message, at FROM ledger WHERE namespace = '' ORDER BY at, name, message",
    )?;
    let rows = statement.query_map([], |row| {
        let (name, kind): (String, u8) = (row.get(0)?, row.get(1)?);
        let at = Timestamp::from_micros(row.get(3)?);
        let grave = match (kind, message(row, 2)?) {
            (0, _) => name.parse::<MemoryId>().map(Grave::Memory),
            (_, None) => name.parse::<ConversationId>().map(Grave::Conversation),
            (_, Some(message)) => {
                name.parse::<ConversationId>().map(|talk| Grave::Message(talk, message))
            }
        };
        Ok(grave.ok().map(|grave| (grave, at)))
    })?;
    rows.filter_map(Result::transpose).collect()
}

fn message(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<MessageId>> {
    let bytes = row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?;
    Ok(<[u8; 16]>::try_from(bytes).ok().map(MessageId::from_bytes))
}
