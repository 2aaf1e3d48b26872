//! Other names of things, and links between memories.

use std::collections::BTreeSet;

use rusqlite::OptionalExtension;
use yore_domain::{ConversationId, MemoryId, VersionId};
use yore_store::plan::AliasTarget;

use super::View;
use crate::select::its_versions;

/// What a link to a named thing begins with.
const ENTITY: &str = "entity:";

pub(super) fn resolve(
    view: &View<'_>,
    namespace: &str,
    name: &str,
) -> rusqlite::Result<Option<AliasTarget>> {
    let mut statement = view.conn.prepare_cached(concat!(
        "SELECT a.kind, a.target, a.number, m.class, v.class, c.class FROM alias a
         LEFT JOIN memory m ON a.kind < 2 AND m.id = a.target
         LEFT JOIN version v ON a.kind = 1 AND v.number = a.number
            AND ",
        its_versions!(),
        "
         LEFT JOIN conversation c ON a.kind = 2 AND c.id = a.target
         WHERE a.namespace = ?1 AND a.name = ?2"
    ))?;
    statement
        .query_one([namespace, name], |row| {
            let seen = |class: Option<u32>| class.is_some_and(|class| view.selection.has(class));
            let target: [u8; 16] = row.get(1)?;
            let memory = seen(row.get(3)?);
            let (seen, target) = match row.get::<_, u8>(0)? {
                0 => (memory, AliasTarget::Memory(MemoryId::from_bytes(target))),
                1 => (
                    memory && seen(row.get(4)?),
                    AliasTarget::Version(MemoryId::from_bytes(target), row.get(2)?),
                ),
                _ => (
                    seen(row.get(5)?),
                    AliasTarget::Conversation(ConversationId::from_bytes(target)),
                ),
            };
            Ok(seen.then_some(target))
        })
        .optional()
        .map(Option::flatten)
}

pub(super) fn aliases(view: &View<'_>, id: MemoryId) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = view.conn.prepare_cached(
        "SELECT m.class, a.namespace, a.name FROM alias a JOIN memory m ON m.id = a.target
         WHERE a.target = ?1 AND a.kind = 0 ORDER BY a.namespace, a.name",
    )?;
    let rows = statement.query_map([id.bytes()], |row| {
        let seen = view.selection.has(row.get(0)?);
        seen.then(|| Ok((row.get(1)?, row.get(2)?))).transpose()
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// Links are written in any spelling: ids of memories and versions, or names.
pub(super) fn related(view: &View<'_>, id: MemoryId) -> rusqlite::Result<Vec<MemoryId>> {
    let mut found = BTreeSet::new();
    let class: Option<(u64, u32)> = view
        .conn
        .prepare_cached("SELECT row, class FROM memory WHERE id = ?1")?
        .query_one([id.bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((row, _)) = class.filter(|(_, class)| view.selection.has(*class)) else {
        return Ok(Vec::new());
    };
    let mut outgoing =
        view.conn.prepare_cached("SELECT DISTINCT target FROM relation WHERE memory = ?1")?;
    let targets: Vec<String> =
        outgoing.query_map([row], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for target in &targets {
        found.extend(named(view, target)?);
    }
    let mut incoming = view.conn.prepare_cached(
        "SELECT m.id, m.class FROM relation r JOIN memory m ON m.row = r.memory
         WHERE r.target = ?1",
    )?;
    // Whoever names the same thing is related, too.
    let things = targets.into_iter().filter(|target| target.starts_with(ENTITY));
    for spelling in spellings(view, id, row)?.into_iter().chain(things) {
        let mut rows = incoming.query([spelling])?;
        while let Some(row) = rows.next()? {
            if view.selection.has(row.get(1)?) {
                found.insert(MemoryId::from_bytes(row.get(0)?));
            }
        }
    }
    found.remove(&id);
    Ok(found.into_iter().collect())
}

/// Every text that may stand for a memory.
fn spellings(view: &View<'_>, id: MemoryId, row: u64) -> rusqlite::Result<BTreeSet<String>> {
    let mut all: BTreeSet<String> = [id.to_string(), id.to_string().replace('-', "")].into();
    all.extend(aliases(view, id)?.into_iter().map(|(_, name)| name));
    let mut statement = view.conn.prepare_cached(concat!(
        "SELECT v.id FROM memory m JOIN version v
            ON ",
        its_versions!(),
        "
         WHERE m.row = ?1"
    ))?;
    let versions = statement.query_map([row], |row| row.get(0))?;
    for version in versions {
        all.insert(VersionId::from_bytes(version?).to_string());
    }
    Ok(all)
}

/// The visible memories a text stands for.
fn named(view: &View<'_>, text: &str) -> rusqlite::Result<Vec<MemoryId>> {
    let mut statement = view.conn.prepare_cached(
        "SELECT m.id, m.class FROM memory m WHERE m.id = ?1
         UNION SELECT m.id, m.class FROM version v JOIN memory m ON m.row = v.memory
            WHERE v.id = ?1
         UNION SELECT m.id, m.class FROM alias a JOIN memory m ON m.id = a.target
            WHERE a.name = ?2 AND a.kind = 0",
    )?;
    let id = text.parse::<MemoryId>().ok().map(MemoryId::bytes);
    let rows = statement.query_map((id, text), |row| {
        Ok(view.selection.has(row.get(1)?).then_some(MemoryId::from_bytes(row.get(0)?)))
    })?;
    rows.filter_map(Result::transpose).collect()
}
