//! The conversation around a candidate: its neighbours in the session and the session as a whole.

use rustc_hash::{FxHashMap, FxHashSet};
use yore_index::NEIGHBOUR_OFFSETS;
use yore_store::Source;

use super::document::{COLUMNS, Document, SELECTED, Scope};
use super::sieve::Sieve;
use crate::error::Result;
use crate::snapshot::View;

/// The neighbours of a document, by their rows.
pub(super) type Around = [Option<i64>; NEIGHBOUR_OFFSETS.len()];

/// Returns the neighbours of documents that pass, and the documents that these are; of several at
/// one place, the one with the lowest id.
pub(super) async fn neighbours(
    view: &View<'_>,
    scope: &Scope,
    sieve: &mut Sieve<'_>,
    documents: &[Document],
) -> Result<(FxHashMap<i64, Around>, FxHashMap<i64, Document>)> {
    let near = near(view, scope, documents).await?;
    let mut places: FxHashMap<(i64, i64), Vec<&Document>> = FxHashMap::default();
    for document in near.values() {
        places.entry((document.session, document.ordinal)).or_default().push(document);
    }
    let mut wanted: Vec<(i64, Vec<Vec<&Document>>)> = Vec::new();
    for document in documents.iter().filter(|document| document.session != 0) {
        // Only the session's own list says where a memory sits.
        let Some(seated) = near.get(&document.row) else { continue };
        let around = NEIGHBOUR_OFFSETS.iter().map(|offset| {
            places.get(&(seated.session, seated.ordinal + offset)).cloned().unwrap_or_default()
        });
        wanted.push((document.row, around.collect()));
    }
    let possible = wanted.iter().flat_map(|(_, around)| around.iter().flatten().copied());
    let distinct: FxHashMap<i64, &Document> =
        possible.map(|document| (document.row, document)).collect();
    sieve.decide(distinct.values().copied()).await?;
    let mut found = FxHashMap::default();
    let mut rows: FxHashSet<i64> = FxHashSet::default();
    for (row, around) in wanted {
        let mut best: Around = Around::default();
        for (place, there) in best.iter_mut().zip(around) {
            let admitted = there.into_iter().filter(|document| sieve.passes(document));
            *place = admitted.min_by_key(|document| document.rank()).map(|document| document.row);
            rows.extend(place.iter());
        }
        found.insert(row, best);
    }
    let documents = near.into_iter().filter(|(row, _)| rows.contains(row)).collect();
    Ok((found, documents))
}

/// Selected documents of the same sessions, each with its place there.
async fn near(
    view: &View<'_>,
    scope: &Scope,
    documents: &[Document],
) -> Result<FxHashMap<i64, Document>> {
    let seated = documents.iter().filter(|document| document.session != 0);
    let (sessions, ordinals): (Vec<i64>, Vec<i64>) =
        seated.map(|document| (document.session, document.ordinal)).unzip();
    if sessions.is_empty() {
        return Ok(FxHashMap::default());
    }
    // A seat is counted inside one session and one class, in the order in which the memories
    // began, so it depends on nothing that a lens could hide. A message has its position.
    let rows = match scope.source {
        Source::Version => {
            let sql = format!(
                "SELECT {COLUMNS}, s.ordinal FROM document d JOIN (
                     SELECT row AS home, row_number() OVER (PARTITION BY session, class
                         ORDER BY row) - 1 AS ordinal
                     FROM memory WHERE vault = $1 AND session = ANY($6)) s ON s.home = d.home
                 WHERE {SELECTED} AND d.session = ANY($6)"
            );
            view.rows(&sql, &scope.with(&[&sessions])).await?
        }
        Source::Message => {
            let sql = format!(
                "SELECT {COLUMNS}, d.ordinal FROM document d
                 WHERE {SELECTED} AND EXISTS (
                     SELECT 1 FROM unnest($6::bigint[], $7::bigint[]) AS n (session, ordinal)
                     WHERE n.session = d.session
                         AND d.ordinal BETWEEN n.ordinal - 2 AND n.ordinal + 2)
                     AND d.session = ANY($6)"
            );
            view.rows(&sql, &scope.with(&[&sessions, &ordinals])).await?
        }
    };
    rows.iter()
        .map(|row| {
            let mut document = Document::of(row, 0)?;
            document.ordinal = row.get(super::document::WIDTH);
            Ok((document.row, document))
        })
        .collect()
}

/// How long the selected parts of sessions are.
pub(super) async fn lengths(
    view: &View<'_>,
    scope: &Scope,
    sessions: &[i64],
) -> Result<FxHashMap<i64, u64>> {
    if sessions.is_empty() {
        return Ok(FxHashMap::default());
    }
    let sql = format!(
        "SELECT d.session, sum(d.length)::bigint FROM document d
         WHERE {SELECTED} AND d.session = ANY($6) GROUP BY d.session"
    );
    let rows = view.rows(&sql, &scope.with(&[&sessions])).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get::<_, i64>(1).cast_unsigned())).collect())
}
