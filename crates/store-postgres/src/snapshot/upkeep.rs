//! What tells an owner how the whole vault is: which memories need care, and what was said where.

use std::collections::BTreeMap;

use yore_domain::MemoryId;
use yore_domain::conversation::Conversation;
use yore_store::snapshot::{Concern, Tally};

use super::{View, id_in, limit_of};
use crate::error::{Error, Result};
use crate::vault::numbered;

/// The condition of a concern with its two numbers, and what comes first.
fn condition(concern: Concern) -> (&'static str, [i64; 2], &'static str) {
    match concern {
        Concern::Unused(before) => {
            ("since < $2 AND recalls = 0 AND $3::bigint = 0", [before.micros(), 0], "since")
        }
        Concern::Stale(since) => (
            "since < $2 AND coalesce(recalled, 0) < $2 AND $3::bigint = 0",
            [since.micros(), 0],
            "coalesce(recalled, since)",
        ),
        Concern::Ending(from, until) => {
            ("ends > $2 AND ends < $3", [from.micros(), until.micros()], "ends")
        }
        Concern::Changing(versions) => {
            ("head > $2::bigint AND $3::bigint = 0", [i64::from(versions), 0], "head DESC")
        }
    }
}

pub(super) async fn concerning(
    view: &View<'_>,
    concern: Concern,
    limit: usize,
) -> Result<(u64, Vec<MemoryId>)> {
    let (condition, [first, second], order) = condition(concern);
    let count =
        format!("SELECT count(*) FROM memory WHERE vault = $1 AND status <= 1 AND {condition}");
    let count = view.row(&count, &[&first, &second]).await?;
    let count = count.ok_or_else(|| Error::Damaged("nothing was counted".into()))?;
    let named = format!(
        "SELECT id FROM memory WHERE vault = $1 AND status <= 1 AND {condition}
         ORDER BY {order}, id LIMIT $4"
    );
    let rows = view.rows(&named, &[&first, &second, &limit_of(limit)]).await?;
    let ids = rows.iter().map(|row| id_in(row, 0).map(MemoryId::from_bytes));
    Ok((count.get::<_, i64>(0).cast_unsigned(), ids.collect::<Result<_>>()?))
}

/// Platform and time are encrypted with the rest of a conversation, so each is opened.
pub(super) async fn tally(view: &View<'_>) -> Result<Vec<Tally>> {
    let rows =
        view.rows("SELECT row, data, messages FROM conversation WHERE vault = $1", &[]).await?;
    let mut counted: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for row in &rows {
        let head: Conversation =
            view.vault.open_value("conversation", &numbered(row.get(0)), row.get(1))?;
        let month = head.created.to_string().get(..7).unwrap_or_default().to_owned();
        let (conversations, messages) = counted.entry((month, head.platform)).or_default();
        *conversations += 1;
        *messages += row.get::<_, i64>(2).cast_unsigned();
    }
    let told = |((month, platform), (conversations, messages))| Tally {
        platform,
        month,
        conversations,
        messages,
    };
    Ok(counted.into_iter().map(told).collect())
}
