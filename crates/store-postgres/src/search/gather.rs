//! Candidates of one corpus: the best by words, the nearest by vector, and those around them.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use yore_domain::conversation::Conversation;
use yore_domain::memory::Feedback;
use yore_index::{NEIGHBOUR_OFFSETS, STATIC_DIMS, Soft};
use yore_store::{Candidate, RowKey, Search, Source, Standing, Vector};

use super::context::{self, Around};
use super::document::{COLUMNS, Document, SELECTED, Scope, WIDTH};
use super::lexical::{Lexical, Totals};
use super::sieve::{Scored, Sieve};
use super::{document_key, literal, source_code, token_number};
use crate::commit::Beside;
use crate::error::{Error, Result};
use crate::snapshot::{View, feedback_of, limit_of};
use crate::vault::numbered;

/// The vectors of a question, as far as they can be compared here.
struct Asked<'a> {
    statics: Option<Spelt<'a>>,
    dense: Option<Spelt<'a>>,
}

/// A vector and how the database reads it.
struct Spelt<'a> {
    vector: &'a Vector,
    text: String,
    dims: i32,
}

impl<'a> Spelt<'a> {
    fn of(vector: &'a Vector) -> Self {
        let dims = i32::try_from(vector.values.len()).unwrap_or(i32::MAX);
        Self { vector, text: literal(&vector.values), dims }
    }

    /// The cosine, from what the database computed and the row's own scale.
    #[expect(clippy::cast_possible_truncation, reason = "sums of small whole numbers are exact")]
    fn cosine(&self, distance: f64, scale: f32) -> f32 {
        -distance as f32 * scale * self.vector.scale
    }
}

pub(super) async fn gather(
    view: &View<'_>,
    search: &Search<'_>,
    source: Source,
) -> Result<Vec<Candidate>> {
    let scope = Scope::of(view, search.filter, source);
    let totals = Totals::read(view, &scope).await?;
    if totals.documents == 0 {
        return Ok(Vec::new());
    }
    let mut sieve = Sieve::new(view, search, source).await?;
    let lexical = Lexical::read(view, &scope, &totals, search.text).await?;
    let asked = Asked {
        statics: search.statics.filter(|one| one.values.len() == STATIC_DIMS).map(Spelt::of),
        // Vectors of different models are never compared.
        dense: search.dense.filter(|one| Some(one.model.as_str()) == view.model).map(Spelt::of),
    };
    let mut listed: FxHashMap<i64, Document> = FxHashMap::default();
    let mut add = |found: Vec<Scored>| {
        listed.extend(found.into_iter().map(|one| (one.document.row, one.document)));
    };
    add(sieve.best(lexical.all(), search.depth).await?);
    let exact = totals.documents <= view.inner.options.exact_up_to as usize;
    let mut nearest = Nearest { view, scope: &scope, asked: &asked, depth: search.depth, exact };
    if asked.dense.is_some() {
        add(nearest.list(&mut sieve, Which::Dense).await?);
        if asked.statics.is_some() {
            add(nearest.list(&mut sieve, Which::Pending).await?);
        }
    } else if asked.statics.is_some() {
        add(nearest.list(&mut sieve, Which::Statics).await?);
    }
    let listed: Vec<Document> = listed.into_values().collect();
    let (around, neighbours) = context::neighbours(view, &scope, &mut sieve, &listed).await?;
    let mut all: FxHashMap<i64, (Document, bool)> =
        neighbours.into_iter().map(|(row, document)| (row, (document, false))).collect();
    all.extend(listed.into_iter().map(|document| (document.row, (document, true))));
    finish(view, search, &scope, &totals, &lexical, &asked, &around, all).await
}

/// Which vectors are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// Those of the transformer.
    Dense,
    /// Static ones.
    Statics,
    /// Static ones, of documents that have none of the transformer yet.
    Pending,
}

struct Nearest<'a> {
    view: &'a View<'a>,
    scope: &'a Scope,
    asked: &'a Asked<'a>,
    depth: usize,
    exact: bool,
}

impl Nearest<'_> {
    /// The nearest documents that pass. A list that a filter thins out too much is read on.
    async fn list(&mut self, sieve: &mut Sieve<'_>, which: Which) -> Result<Vec<Scored>> {
        let mut limit = self.depth.saturating_mul(2).max(64);
        loop {
            let found = self.read(which, limit).await?;
            let ended = found.len() < limit;
            let best = sieve.best(found, self.depth).await?;
            if ended || best.len() >= self.depth {
                return Ok(best);
            }
            limit = limit.saturating_mul(4);
        }
    }

    async fn read(&self, which: Which, limit: usize) -> Result<Vec<Scored>> {
        let asked = match which {
            Which::Dense => &self.asked.dense,
            Which::Statics | Which::Pending => &self.asked.statics,
        };
        let Some(asked) = asked else { return Ok(Vec::new()) };
        let (value, scale) = match which {
            Which::Dense => ("w.value", "w.scale"),
            Which::Statics | Which::Pending => ("d.statics", "d.scale"),
        };
        // A product with the scale cannot come from the index: it is exact. The distance alone can.
        let order = match (self.exact, which) {
            (true, _) => format!("({value} <#> $6::text::halfvec) * {scale}, d.id"),
            (false, Which::Dense) if asked.dims == 384 => {
                "w.value::halfvec(384) <=> $6::text::halfvec(384)".to_owned()
            }
            (false, _) => format!("{value} <=> $6::text::halfvec"),
        };
        let vectors = match which {
            Which::Dense => {
                "JOIN vector w ON w.vault = $1 AND w.source = $2 AND w.row = d.row
                     AND w.model = $8 AND w.dims = $9"
            }
            Which::Statics | Which::Pending => "",
        };
        let pending = match which {
            Which::Pending => {
                "AND NOT EXISTS (SELECT 1 FROM vector w WHERE w.vault = $1 AND w.source = $2
                     AND w.row = d.row AND w.model = $8)"
            }
            Which::Dense | Which::Statics => "",
        };
        let sql = format!(
            "SELECT {COLUMNS}, {value} <#> $6::text::halfvec, {scale}
             FROM document d {vectors}
             WHERE {SELECTED} {pending} ORDER BY {order} LIMIT $7"
        );
        let limit = limit_of(limit);
        let model = self.view.model;
        let mut params = self.scope.with(&[&asked.text, &limit]);
        match which {
            Which::Dense => params.extend_from_slice(&[&model, &asked.dims]),
            Which::Pending => params.push(&model),
            Which::Statics => {}
        }
        let rows = self.view.rows(&sql, &params).await?;
        rows.iter()
            .map(|row| {
                let (distance, scale): (f64, f32) = (row.get(WIDTH), row.get(WIDTH + 1));
                let score = asked.cosine(distance, scale);
                Ok(Scored { score, document: Document::of(row, 0)? })
            })
            .collect()
    }
}

/// What is read of a gathered document to rank it.
struct Detail {
    beside: Beside,
    feedback: Feedback,
    demoted: bool,
    statics: f32,
    dense: Option<f32>,
}

async fn details(
    view: &View<'_>,
    source: Source,
    asked: &Asked<'_>,
    rows: &[i64],
) -> Result<FxHashMap<i64, Detail>> {
    let blank = literal(&[0; STATIC_DIMS]);
    let statics = asked.statics.as_ref().map_or(&blank, |asked| &asked.text);
    let (join, column) = match &asked.dense {
        Some(_) => (
            "LEFT JOIN vector w ON w.vault = $1 AND w.source = $2 AND w.row = d.row
                 AND w.model = $5 AND w.dims = $6",
            "w.value <#> $7::text::halfvec, w.scale",
        ),
        None => ("", "NULL::float8, NULL::real"),
    };
    let sql = format!(
        "SELECT d.row, d.data, d.statics <#> $4::text::halfvec, d.scale, {column},
             coalesce(m.followed, 0), coalesce(m.overridden, 0), coalesce(m.ignored, 0),
             coalesce(m.contradicted, 0), coalesce(m.demoted, false)
         FROM document d
         LEFT JOIN memory m ON m.vault = $1 AND d.source = 0 AND m.row = d.home {join}
         WHERE d.vault = $1 AND d.source = $2 AND d.row = ANY($3)"
    );
    let code = source_code(source);
    let mut params: Vec<crate::pool::Param<'_>> = vec![&code, &rows, statics];
    if let Some(dense) = &asked.dense {
        params.extend_from_slice(&[&view.model, &dense.dims, &dense.text]);
    }
    let mut found = FxHashMap::default();
    for row in view.rows(&sql, &params).await? {
        let number: i64 = row.get(0);
        let data = view.vault.open_bytes("document", &document_key(source, number), row.get(1))?;
        let beside: Beside =
            postcard::from_bytes(&data).map_err(|error| Error::Damaged(error.to_string()))?;
        let (distance, scale): (f64, f32) = (row.get(2), row.get(3));
        let near: (Option<f64>, Option<f32>) = (row.get(4), row.get(5));
        let dense = asked.dense.as_ref().and_then(|asked| Some(asked.cosine(near.0?, near.1?)));
        let statics = asked.statics.as_ref().map_or(0.0, |asked| asked.cosine(distance, scale));
        let (feedback, demoted) = (feedback_of(&row, 6), row.get(10));
        found.insert(number, Detail { beside, feedback, demoted, statics, dense });
    }
    Ok(found)
}

/// The sessions that conversations state.
async fn stated_sessions(
    view: &View<'_>,
    homes: &[i64],
) -> Result<FxHashMap<i64, Option<Arc<str>>>> {
    let sql = "SELECT row, data FROM conversation WHERE vault = $1 AND row = ANY($2)";
    let mut found = FxHashMap::default();
    for row in view.rows(sql, &[&homes]).await? {
        let number: i64 = row.get(0);
        let conversation: Conversation =
            view.vault.open_value("conversation", &numbered(number), row.get(1))?;
        found.insert(number, conversation.scope.session.as_deref().map(Arc::from));
    }
    Ok(found)
}

/// Prepares the comparison of tokens, when the store was given any.
async fn soft(
    view: &View<'_>,
    scope: &Scope,
    totals: &Totals,
    tokens: &[u16],
) -> Result<Option<Soft>> {
    let Some(table) = view.inner.options.tokens.as_deref() else { return Ok(None) };
    let telling: FxHashMap<i64, u16> = tokens
        .iter()
        .filter(|token| table.kin(**token).is_some())
        .map(|token| (token_number(view.vault, *token), *token))
        .collect();
    let numbers: Vec<i64> = telling.keys().copied().collect();
    let mut holders: FxHashMap<u16, usize> = FxHashMap::default();
    if !numbers.is_empty() {
        let sql = format!(
            "SELECT p.term, count(*) FROM posting p JOIN document d
                 ON d.vault = $1 AND d.source = p.source AND d.row = p.row
             WHERE p.vault = $1 AND p.source = $2 AND p.term = ANY($6) AND {SELECTED}
             GROUP BY p.term"
        );
        for row in view.rows(&sql, &scope.with(&[&numbers])).await? {
            if let Some(token) = telling.get(&row.get::<_, i64>(0)) {
                holders.insert(*token, usize::try_from(row.get::<_, i64>(1)).unwrap_or(0));
            }
        }
    }
    let held = |token: u16| holders.get(&token).copied().unwrap_or(0);
    Ok(Some(Soft::new(totals.documents, &held, table, tokens)))
}

#[expect(clippy::too_many_arguments, reason = "everything a search found out meets here")]
async fn finish(
    view: &View<'_>,
    search: &Search<'_>,
    scope: &Scope,
    totals: &Totals,
    lexical: &Lexical,
    asked: &Asked<'_>,
    around: &FxHashMap<i64, Around>,
    all: FxHashMap<i64, (Document, bool)>,
) -> Result<Vec<Candidate>> {
    let mut order: Vec<(Document, bool)> = all.into_values().collect();
    order.sort_unstable_by_key(|(document, _)| document.rank());
    let rows: Vec<i64> = order.iter().map(|(document, _)| document.row).collect();
    let places: FxHashMap<i64, u32> = rows.iter().copied().zip(0u32..).collect();
    let details = details(view, scope.source, asked, &rows).await?;
    let mut sessions: Vec<i64> = order.iter().map(|(document, _)| document.session).collect();
    sessions.sort_unstable();
    sessions.dedup();
    sessions.retain(|session| *session != 0);
    let lengths = context::lengths(view, scope, &sessions).await?;
    let session_scores = lexical.sessions(&lengths);
    let stated = match scope.source {
        Source::Message => stated_sessions(view, &sessions).await?,
        Source::Version => FxHashMap::default(),
    };
    let neighbours = both_ways(&order, around, &places);
    let soft = soft(view, scope, totals, search.tokens).await?;
    let mut found = Vec::with_capacity(order.len());
    for ((document, listed), neighbours) in order.into_iter().zip(neighbours) {
        let Some(detail) = details.get(&document.row) else { continue };
        let class = view.selection.get(document.own.cast_unsigned());
        let class = class.ok_or_else(|| Error::Damaged("a hidden row was searched".into()))?;
        let standing = match scope.source {
            Source::Version => detail.beside.standing(detail.feedback, detail.demoted),
            Source::Message => Standing {
                created: document.created,
                confirmed: document.created,
                session: stated.get(&document.home).cloned().flatten(),
                ..Standing::default()
            },
        };
        let mut signals = yore_rank::Candidate {
            key: document.row.cast_unsigned(),
            id: document.id,
            lexical: 0.0,
            dense: None,
            statics: 0.0,
            soft: 0.0,
            coverage: 0.0,
            session: (document.session != 0)
                .then(|| session_scores.get(&document.session).copied().unwrap_or(0.0)),
            neighbours,
            listed,
            prior: yore_rank::Prior::default(),
        };
        if listed {
            (signals.lexical, signals.coverage) = lexical.score(document.row);
            signals.dense = detail.dense;
            signals.statics = detail.statics;
            let tokens = detail.beside.tokens.iter().copied();
            signals.soft = soft.as_ref().map_or(0.0, |soft| soft.score(tokens));
        }
        found.push(Candidate {
            row: RowKey { source: scope.source, row: document.row.cast_unsigned() },
            signals,
            standing,
            class: Arc::clone(class),
        });
    }
    Ok(found)
}

/// Everyone's neighbours by their places. A document that is only a neighbour has the candidate
/// on its other side; other neighbours of its own were found by no list.
fn both_ways(
    order: &[(Document, bool)],
    around: &FxHashMap<i64, Around>,
    places: &FxHashMap<i64, u32>,
) -> Vec<[Option<u32>; NEIGHBOUR_OFFSETS.len()]> {
    let mut found = vec![[None; NEIGHBOUR_OFFSETS.len()]; order.len()];
    for (at, (document, _)) in (0u32..).zip(order) {
        let Some(around) = around.get(&document.row) else { continue };
        for (side, row) in around.iter().enumerate() {
            let Some(place) = row.and_then(|row| places.get(&row).copied()) else { continue };
            found[at as usize][side] = Some(place);
            if !order[place as usize].1 {
                // Places are in order of ids, so of several the first has the lowest.
                let back = &mut found[place as usize][NEIGHBOUR_OFFSETS.len() - 1 - side];
                *back = Some(back.map_or(at, |other| other.min(at)));
            }
        }
    }
    found
}
