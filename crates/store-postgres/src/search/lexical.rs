//! Words: BM25 over the selected partitions, for documents and for whole sessions.

use rustc_hash::{FxHashMap, FxHashSet};
use yore_index::{Language, analysis, length_as_scored};
use yore_rank::bm25::{average, gain, idf, norm};

use super::document::{COLUMNS, Document, SELECTED, Scope};
use super::sieve::Scored;
use super::stem_number;
use crate::error::{Error, Result};
use crate::snapshot::View;

/// Terms of a query that are looked up; a longer query loses its tail.
const WIDEST: usize = 128;

/// What is summed over the selected partitions.
#[derive(Debug)]
pub(super) struct Totals {
    pub(super) documents: usize,
    length: u64,
    /// The parts of a session that lie in different partitions count as sessions of their own.
    sessions: usize,
    session_length: u64,
    languages: Vec<Language>,
}

impl Totals {
    pub(super) async fn read(view: &View<'_>, scope: &Scope) -> Result<Self> {
        let sql = format!(
            "SELECT count(*), coalesce(sum(d.length), 0)::bigint,
                 count(DISTINCT (d.live, d.own, d.seen, d.session)) FILTER (WHERE d.session <> 0),
                 coalesce(sum(d.length) FILTER (WHERE d.session <> 0), 0)::bigint,
                 array_agg(DISTINCT d.language)
             FROM document d WHERE {SELECTED}"
        );
        let row = view.row(&sql, &scope.with(&[])).await?;
        let row = row.ok_or_else(|| Error::Damaged("nothing was counted".into()))?;
        let count = |column: usize| row.get::<_, i64>(column).cast_unsigned();
        let size = |column: usize| usize::try_from(count(column)).unwrap_or(usize::MAX);
        let languages: Vec<i16> = row.get::<_, Option<Vec<i16>>>(4).unwrap_or_default();
        let language = |code: i16| Language::ALL.get(usize::try_from(code).ok()?).copied();
        Ok(Self {
            documents: size(0),
            length: count(1),
            sessions: size(2),
            session_length: count(3),
            languages: languages.into_iter().filter_map(language).collect(),
        })
    }
}

/// A query word: its terms (stems by language) and its weight among the selected documents.
#[derive(Debug)]
struct Group {
    terms: Vec<i64>,
    idf: f32,
}

/// A selected document that holds a word of the query.
#[derive(Debug)]
struct Holder {
    document: Document,
    frequencies: FxHashMap<i64, u32>,
}

/// A query against the selected partitions.
#[derive(Debug)]
pub(super) struct Lexical {
    groups: Vec<Group>,
    mass: f32,
    average: f32,
    session_average: f32,
    sessions: usize,
    holders: FxHashMap<i64, Holder>,
}

impl Lexical {
    pub(super) async fn read(
        view: &View<'_>,
        scope: &Scope,
        totals: &Totals,
        text: &str,
    ) -> Result<Self> {
        let mut room = WIDEST;
        let groups: Vec<Vec<i64>> = analysis::query(text, &totals.languages)
            .iter()
            .map(|group| {
                let terms: Vec<i64> =
                    group.iter().take(room).map(|stem| stem_number(view.vault, stem)).collect();
                room -= terms.len();
                terms
            })
            .collect();
        let terms: Vec<i64> = groups.iter().flatten().copied().collect();
        let mut holders: FxHashMap<i64, Holder> = FxHashMap::default();
        let mut counts: FxHashMap<i64, usize> = FxHashMap::default();
        if !terms.is_empty() {
            let sql = format!(
                "SELECT p.term, p.frequency, {COLUMNS}
                 FROM posting p JOIN document d
                     ON d.vault = $1 AND d.source = p.source AND d.row = p.row
                 WHERE p.vault = $1 AND p.source = $2 AND p.term = ANY($6) AND {SELECTED}"
            );
            for row in view.rows(&sql, &scope.with(&[&terms])).await? {
                let (term, frequency): (i64, i16) = (row.get(0), row.get(1));
                *counts.entry(term).or_default() += 1;
                let document = Document::of(&row, 2)?;
                let holder = holders
                    .entry(document.row)
                    .or_insert_with(|| Holder { document, frequencies: FxHashMap::default() });
                holder.frequencies.insert(term, u32::from(frequency.cast_unsigned()));
            }
        }
        let groups: Vec<Group> = groups
            .into_iter()
            .map(|terms| {
                let found = terms.iter().filter_map(|term| counts.get(term)).sum();
                Group { terms, idf: idf(totals.documents, found) }
            })
            .collect();
        Ok(Self {
            mass: groups.iter().map(|group| group.idf).sum(),
            groups,
            average: average(totals.length, totals.documents),
            session_average: average(totals.session_length, totals.sessions),
            sessions: totals.sessions,
            holders,
        })
    }

    /// Every document that holds a word, with its score.
    pub(super) fn all(&self) -> Vec<Scored> {
        let scored = |holder: &Holder| Scored {
            score: self.score_of(holder).0,
            document: holder.document.clone(),
        };
        self.holders.values().map(scored).collect()
    }

    /// Returns a document's score and the share of the query's weight it matches.
    pub(super) fn score(&self, row: i64) -> (f32, f32) {
        self.holders.get(&row).map_or((0.0, 0.0), |holder| self.score_of(holder))
    }

    #[expect(clippy::cast_precision_loss, reason = "a text has fewer than 2^24 words")]
    fn score_of(&self, holder: &Holder) -> (f32, f32) {
        let norm = norm(length_as_scored(holder.document.length) as f32, self.average);
        let (mut score, mut matched) = (0.0, 0.0);
        for group in &self.groups {
            let before = score;
            for term in &group.terms {
                if let Some(frequency) = holder.frequencies.get(term) {
                    score += gain(group.idf, *frequency, norm);
                }
            }
            if score > before {
                matched += group.idf;
            }
        }
        (score, if self.mass > 0.0 { matched / self.mass } else { 0.0 })
    }

    /// Scores whole sessions, given with their lengths, as if each were one text.
    #[expect(clippy::cast_precision_loss, reason = "a session has fewer than 2^24 words")]
    pub(super) fn sessions(&self, lengths: &FxHashMap<i64, u64>) -> FxHashMap<i64, f32> {
        let mut scores: FxHashMap<i64, f32> = lengths.keys().map(|id| (*id, 0.0)).collect();
        for group in &self.groups {
            let mut frequencies: FxHashMap<i64, u32> = FxHashMap::default();
            let mut seen: FxHashSet<((bool, i32, i32), i64)> = FxHashSet::default();
            for Holder { document, frequencies: held } in self.holders.values() {
                let held: u32 = group.terms.iter().filter_map(|term| held.get(term)).sum();
                if document.session != 0 && held > 0 {
                    seen.insert((document.partition(), document.session));
                    *frequencies.entry(document.session).or_default() += held;
                }
            }
            let weight = idf(self.sessions, seen.len());
            for (id, frequency) in frequencies {
                if let (Some(score), Some(length)) = (scores.get_mut(&id), lengths.get(&id)) {
                    *score += gain(weight, frequency, norm(*length as f32, self.session_average));
                }
            }
        }
        scores
    }
}
