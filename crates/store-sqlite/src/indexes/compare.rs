//! Comparing the indexes with the rows they were derived from.

use std::collections::BTreeMap;

use rusqlite::Connection;
use rustc_hash::FxHashSet;
use yore_index::{ClassId, Index};

use super::meta;
use super::state::{Partition, State};

/// Enough to see what is wrong without listing a whole vault.
const MOST: usize = 100;

/// Lists differences, each naming its row.
pub(super) fn differences(state: &State, conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    versions(state, conn, &mut found)?;
    messages(state, conn, &mut found)?;
    for (source, name, index) in [(0, "version", &state.versions), (1, "message", &state.messages)]
    {
        vectors(state, conn, source, name, index, &mut found)?;
    }
    found.truncate(MOST);
    Ok(found)
}

fn versions(state: &State, conn: &Connection, found: &mut Vec<String>) -> rusqlite::Result<()> {
    let partitions: Vec<Partition> = state.partitions().map(|(_, partition)| partition).collect();
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    let mut rows = 0;
    let mut statement = conn.prepare_cached(
        "SELECT v.row, v.class, m.class, v.status, m.head_row = v.row, v.recorded, m.head_row,
             m.statement
         FROM version v JOIN memory m ON m.row = v.memory WHERE v.statics IS NOT NULL",
    )?;
    let mut cursor = statement.query([])?;
    while let Some(row) = cursor.next()? {
        rows += 1;
        let key: u64 = row.get(0)?;
        let (own, head, status): (u32, u32, u8) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let (is_head, recorded): (bool, i64) = (row.get(4)?, row.get(5)?);
        let Some(meta) = state.versions.meta(key) else {
            found.push(format!("version row {key} is not indexed"));
            continue;
        };
        if meta::is_head(meta) != is_head
            || meta::status_of(meta) != status
            || meta.recorded != recorded
        {
            found.push(format!("version row {key} is described differently"));
        }
        let live = is_head && status <= 1;
        if live {
            let said = row.get::<_, Option<String>>(7)?.map(|text| meta::statement_number(&text));
            match state.beside.heads.get(&key) {
                None => found.push(format!("version row {key} has no standing")),
                Some(head) if head.said().map(|(number, _)| number) != said => {
                    found.push(format!("version row {key} is known to say something else"));
                }
                Some(_) => {}
            }
        }
        let wanted = Partition { live, own, head };
        match partitions.iter().position(|partition| *partition == wanted) {
            Some(at) => *counts.entry(at).or_default() += 1,
            None => found.push(format!("version row {key} is not in its partition")),
        }
    }
    let indexed: BTreeMap<usize, usize> =
        state.versions.classes().map(|(class, count)| (class.0 as usize, count)).collect();
    if rows != state.versions.len() {
        found.push(format!("{rows} versions are to be indexed, {} are", state.versions.len()));
    } else if counts != indexed && found.is_empty() {
        found.push("versions lie in partitions of other classes".to_owned());
    }
    Ok(())
}

fn messages(state: &State, conn: &Connection, found: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut counts: BTreeMap<ClassId, usize> = BTreeMap::new();
    let mut rows = 0;
    let mut statement = conn.prepare_cached(
        "SELECT m.row, c.class, c.row, m.position FROM message m
         JOIN conversation c ON c.row = m.conversation WHERE m.statics IS NOT NULL",
    )?;
    let mut cursor = statement.query([])?;
    while let Some(row) = cursor.next()? {
        rows += 1;
        let key: u64 = row.get(0)?;
        *counts.entry(ClassId(row.get(1)?)).or_default() += 1;
        match state.messages.meta(key) {
            None => found.push(format!("message row {key} is not indexed")),
            Some(meta) => {
                if meta.session != row.get::<_, u64>(2)? || meta.ordinal != row.get::<_, u32>(3)? {
                    found.push(format!("message row {key} is described differently"));
                }
            }
        }
    }
    let indexed: BTreeMap<ClassId, usize> = state.messages.classes().collect();
    if rows != state.messages.len() {
        found.push(format!("{rows} messages are to be indexed, {} are", state.messages.len()));
    } else if counts != indexed {
        found.push("messages lie in partitions of other classes".to_owned());
    }
    Ok(())
}

fn vectors(
    state: &State,
    conn: &Connection,
    source: u8,
    name: &str,
    index: &Index,
    found: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let Some(model) = state.model() else { return Ok(()) };
    let pending: FxHashSet<u64> = index.pending().collect();
    let mut statement = conn.prepare_cached(&format!(
        "SELECT v.row FROM vector v JOIN {name} i ON i.row = v.row
         WHERE v.source = ?1 AND v.model = ?2 AND i.statics IS NOT NULL",
    ))?;
    let mut cursor = statement.query((source, model))?;
    let mut have = 0;
    while let Some(row) = cursor.next()? {
        have += 1;
        let key: u64 = row.get(0)?;
        if pending.contains(&key) {
            found.push(format!("{name} row {key} lacks its vector"));
        }
    }
    if index.len() - pending.len() > have {
        found.push(format!("{name} rows have vectors in the index that the table lacks"));
    }
    Ok(())
}
