//! Other names of things, and links between memories.

use std::collections::BTreeSet;

use yore_domain::memory::Relation;
use yore_domain::{ConversationId, MemoryId, VersionId};
use yore_store::plan::AliasTarget;

use super::{View, id_in};
use crate::error::Result;
use crate::vault::{numbered, within};

/// What a link to a named thing begins with.
const ENTITY: &str = "entity:";

pub(super) async fn resolve(
    view: &View<'_>,
    namespace: &str,
    name: &str,
) -> Result<Option<AliasTarget>> {
    let mac = view.vault.mac("alias", &[namespace, name]);
    let row = view
        .row(
            "SELECT a.kind, a.target, a.number, m.class, v.class, c.class FROM alias a
             LEFT JOIN memory m ON m.vault = $1 AND a.kind < 2 AND m.id = a.target
             LEFT JOIN version v ON v.vault = $1 AND a.kind = 1 AND v.memory = m.row
                AND v.number = a.number
             LEFT JOIN conversation c ON c.vault = $1 AND a.kind = 2 AND c.id = a.target
             WHERE a.vault = $1 AND a.mac = $2",
            &[&mac],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let seen = |column: usize| row.get::<_, Option<i32>>(column).is_some_and(|id| view.has(id));
    let target = id_in(&row, 1)?;
    let memory = MemoryId::from_bytes(target);
    let (seen, target) = match row.get::<_, i16>(0) {
        0 => (seen(3), AliasTarget::Memory(memory)),
        1 => {
            let number = row.get::<_, i32>(2).cast_unsigned();
            (seen(3) && seen(4), AliasTarget::Version(memory, number))
        }
        _ => (seen(5), AliasTarget::Conversation(ConversationId::from_bytes(target))),
    };
    Ok(seen.then_some(target))
}

pub(super) async fn aliases(view: &View<'_>, id: MemoryId) -> Result<Vec<(String, String)>> {
    let rows = view
        .rows(
            "SELECT a.mac, a.data FROM alias a JOIN memory m ON m.vault = $1 AND m.id = a.target
             WHERE a.vault = $1 AND a.target = $2 AND a.kind = 0 AND m.class = ANY($3)",
            &[&id.bytes().as_slice(), &view.seen],
        )
        .await?;
    let mut names: Vec<(String, String)> = rows
        .iter()
        .map(|row| view.vault.open_value("alias", row.get(0), row.get(1)))
        .collect::<Result<_>>()?;
    names.sort();
    Ok(names)
}

/// Links are written in any spelling: ids of memories and versions, or names.
pub(super) async fn related(view: &View<'_>, id: MemoryId) -> Result<Vec<MemoryId>> {
    let sql = "SELECT row FROM memory WHERE vault = $1 AND id = $2 AND class = ANY($3)";
    let memory = view.row(sql, &[&id.bytes().as_slice(), &view.seen]).await?;
    let Some(row) = memory.map(|row| row.get::<_, i64>(0)) else { return Ok(Vec::new()) };
    let sql = "SELECT number::bigint, data FROM relation WHERE vault = $1 AND memory = $2";
    let mut targets = BTreeSet::new();
    for link in view.rows(sql, &[&row]).await? {
        let place = within(&numbered(row), link.get(0));
        let link: Relation = view.vault.open_value("relation", &place, link.get(1))?;
        targets.insert(link.target);
    }
    let mut found = BTreeSet::new();
    for target in &targets {
        found.extend(named(view, target).await?);
    }
    // Whoever names the same thing is related, too.
    let things = targets.into_iter().filter(|target| target.starts_with(ENTITY));
    let spellings = spellings(view, id, row).await?;
    let macs: Vec<Vec<u8>> = spellings
        .into_iter()
        .chain(things)
        .map(|spelling| view.vault.mac("relation", &[&spelling]))
        .collect();
    let rows = view
        .rows(
            "SELECT DISTINCT m.id FROM relation r JOIN memory m ON m.vault = $1 AND m.row = r.memory
             WHERE r.vault = $1 AND r.target = ANY($2) AND m.class = ANY($3)",
            &[&macs, &view.seen],
        )
        .await?;
    for row in rows {
        found.insert(MemoryId::from_bytes(id_in(&row, 0)?));
    }
    found.remove(&id);
    Ok(found.into_iter().collect())
}

/// Every text that may stand for a memory.
async fn spellings(view: &View<'_>, id: MemoryId, row: i64) -> Result<BTreeSet<String>> {
    let mut all: BTreeSet<String> = [id.to_string(), id.to_string().replace('-', "")].into();
    all.extend(aliases(view, id).await?.into_iter().map(|(_, name)| name));
    let sql = "SELECT id FROM version WHERE vault = $1 AND memory = $2";
    for version in view.rows(sql, &[&row]).await? {
        all.insert(VersionId::from_bytes(id_in(&version, 0)?).to_string());
    }
    Ok(all)
}

/// The visible memories a text stands for.
async fn named(view: &View<'_>, text: &str) -> Result<Vec<MemoryId>> {
    let id = text.parse::<MemoryId>().ok().map(MemoryId::bytes);
    let id = id.as_ref().map(<[u8; 16]>::as_slice);
    let name = view.vault.mac("name", &[text]);
    let rows = view
        .rows(
            "SELECT m.id FROM memory m WHERE m.vault = $1 AND m.id = $2 AND m.class = ANY($4)
             UNION SELECT m.id FROM version v JOIN memory m ON m.vault = $1 AND m.row = v.memory
                WHERE v.vault = $1 AND v.id = $2 AND m.class = ANY($4)
             UNION SELECT m.id FROM alias a JOIN memory m ON m.vault = $1 AND m.id = a.target
                WHERE a.vault = $1 AND a.name = $3 AND a.kind = 0 AND m.class = ANY($4)",
            &[&id, &name, &view.seen],
        )
        .await?;
    rows.iter().map(|row| id_in(row, 0).map(MemoryId::from_bytes)).collect()
}
