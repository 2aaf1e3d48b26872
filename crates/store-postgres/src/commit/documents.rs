//! What makes rows findable: their terms, their static vectors, their place.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use yore_domain::conversation::Message;
use yore_domain::memory::{Feedback, Version};
use yore_index::{STATIC_DIMS, analysis, frequency_as_scored};
use yore_store::select::status_code;
use yore_store::{Source, Standing, Vector};

use super::Commit;
use crate::error::{Error, Result};
use crate::pool::{Conn, owned};
use crate::search::{document_key, literal, source_code, stem_number, token_number};
use crate::vault::Vault;

/// What is kept beside a document so that ranking need not read its row: its tokens, and what
/// priors are made of.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Beside {
    pub(crate) tokens: Vec<u16>,
    created: i64,
    confirmed: i64,
    half_life_days: f32,
    salience: Option<f32>,
    confidence: Option<f32>,
    evidence: u8,
    session: Option<String>,
}

impl Beside {
    #[expect(clippy::cast_possible_truncation, reason = "priors need no more than f32")]
    fn of_version(version: &Version, tokens: &[u16]) -> Self {
        let life = &version.content.lifecycle;
        Self {
            tokens: tokens.to_vec(),
            created: version.time.created.micros(),
            confirmed: life.confirmed.unwrap_or(version.time.created).micros(),
            half_life_days: life.half_life.map_or(0.0, |span| span.as_days() as f32),
            salience: life.salience.map(|value| value as f32),
            confidence: life.confidence.map(|value| value as f32),
            evidence: u8::try_from(version.content.provenance.evidence.len()).unwrap_or(u8::MAX),
            session: version.content.scope.session.clone(),
        }
    }

    /// Adds how the memory fared in use.
    pub(crate) fn standing(&self, feedback: Feedback, demoted: bool) -> Standing {
        Standing {
            created: self.created,
            confirmed: self.confirmed,
            half_life_days: self.half_life_days,
            salience: self.salience,
            confidence: self.confidence,
            evidence: self.evidence,
            feedback,
            demoted,
            session: self.session.as_deref().map(Into::into),
        }
    }
}

/// A row of the table of documents.
pub(crate) struct Document<'a> {
    source: Source,
    row: i64,
    home: i64,
    id: [u8; 16],
    live: bool,
    head: bool,
    own: i32,
    seen: i32,
    kind: i16,
    status: i16,
    created: i64,
    valid_from: i64,
    valid_to: i64,
    recorded: i64,
    expires: i64,
    session: i64,
    ordinal: i64,
    text: &'a str,
    beside: Beside,
}

impl<'a> Document<'a> {
    /// The head of a memory: its row, the memory's, its class, the number of its session.
    pub(crate) fn of_version(
        (row, home, class, session): (i64, i64, i32, i64),
        version: &'a Version,
        tokens: &[u16],
    ) -> Self {
        Self {
            source: Source::Version,
            row,
            home,
            id: version.id.bytes(),
            live: version.status.is_live(),
            head: true,
            own: class,
            seen: class,
            kind: i16::from(version.content.kind.code()),
            status: i16::from(status_code(version.status)),
            created: version.time.created.micros(),
            valid_from: version.time.valid_from.micros(),
            valid_to: version.time.valid_to.map_or(i64::MAX, |end| end.micros()),
            recorded: version.recorded.micros(),
            expires: version.ends().map_or(i64::MAX, |end| end.micros()),
            session,
            ordinal: 0,
            text: &version.content.body.text,
            beside: Beside::of_version(version, tokens),
        }
    }

    /// The same as a part of the past of a memory of this class. The past has no session around it.
    pub(crate) fn retired(self, seen: i32) -> Self {
        Self { live: false, head: false, session: 0, seen, ..self }
    }

    /// A message by a text: the row, its conversation, its class and its position.
    pub(crate) fn of_message(
        (row, home, class, position): (i64, i64, i32, i64),
        message: &Message,
        text: &'a str,
        tokens: &[u16],
    ) -> Self {
        let at = message.at.micros();
        Self {
            source: Source::Message,
            row,
            home,
            id: message.id.bytes(),
            live: true,
            head: true,
            own: class,
            seen: class,
            kind: 0,
            status: 0,
            created: at,
            valid_from: at,
            valid_to: i64::MAX,
            recorded: at,
            expires: i64::MAX,
            session: home,
            ordinal: position,
            text,
            beside: Beside {
                tokens: tokens.to_vec(),
                created: at,
                confirmed: at,
                ..Beside::default()
            },
        }
    }
}

impl Commit<'_> {
    /// Makes what was the head of a memory, and what was before it, a part of the past of a
    /// memory of this class. The past has no session around it.
    pub(super) async fn retire(&self, memory_row: i64, class: i32) -> Result<()> {
        self.later(
            "UPDATE document SET live = false, head = false, session = 0, seen = $3
             WHERE vault = $1 AND source = 0 AND home = $2",
            owned![memory_row, class],
        )
        .await
    }

    /// Takes rows out of everything they could be found by.
    pub(super) async fn unfind(&self, source: Source, rows: &[i64]) -> Result<()> {
        let source = source_code(source);
        for table in ["document", "posting", "vector"] {
            let sql =
                format!("DELETE FROM {table} WHERE vault = $1 AND source = $2 AND row = ANY($3)");
            self.run(&sql, &[&source, &rows]).await?;
        }
        Ok(())
    }
}

/// Indexes a row, unless it is not to be found.
pub(crate) async fn put(
    conn: &Conn,
    vault: &Vault,
    document: Document<'_>,
    statics: Option<&Vector>,
) -> Result<()> {
    let Some(statics) = statics else { return Ok(()) };
    // A vector of a foreign shape must not make the words unfindable.
    let fits = statics.values.len() == STATIC_DIMS && statics.scale.is_finite();
    let blank = [0i8; STATIC_DIMS];
    let (values, scale) =
        if fits { (statics.values.as_slice(), statics.scale) } else { (&blank[..], 0.0) };
    let analysed = analysis::document(document.text);
    let source = source_code(document.source);
    let beside =
        postcard::to_stdvec(&document.beside).map_err(|error| Error::Damaged(error.to_string()))?;
    let key = document_key(document.source, document.row);
    let data = vault.seal_bytes("document", &key, &beside);
    conn.later(
        "INSERT INTO document (vault, source, row, home, id, live, head, own, seen, kind, status,
             created, valid_from, valid_to, recorded, expires, session, ordinal, length, language,
             scale, statics, data)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
             $19, $20, $21, $22::text::halfvec, $23)",
        owned![
            source,
            document.row,
            document.home,
            document.id.to_vec(),
            document.live,
            document.head,
            document.own,
            document.seen,
            document.kind,
            document.status,
            document.created,
            document.valid_from,
            document.valid_to,
            document.recorded,
            document.expires,
            document.session,
            document.ordinal,
            i32::try_from(analysed.length).unwrap_or(i32::MAX),
            analysed.language as i16,
            scale,
            literal(values),
            data,
        ],
        None,
    )
    .await?;
    let mut postings: FxHashMap<i64, i16> = FxHashMap::default();
    for (term, frequency) in &analysed.terms {
        let frequency = i16::try_from(frequency_as_scored(*frequency)).unwrap_or(i16::MAX);
        postings.insert(stem_number(vault, term), frequency);
    }
    for token in &document.beside.tokens {
        postings.insert(token_number(vault, *token), 1);
    }
    let (terms, frequencies): (Vec<i64>, Vec<i16>) = postings.into_iter().unzip();
    conn.later(
        "INSERT INTO posting (vault, term, source, row, frequency)
         SELECT $1, p.term, $2, $3, p.frequency
         FROM unnest($4::bigint[], $5::smallint[]) AS p (term, frequency)
         ON CONFLICT DO NOTHING",
        owned![source, document.row, terms, frequencies],
        None,
    )
    .await
}
