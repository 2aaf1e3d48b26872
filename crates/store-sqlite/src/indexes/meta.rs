//! What the index keeps beside a document so that filters need not fetch the row.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use yore_domain::memory::{Feedback, Version};
use yore_index::Meta;
use yore_store::Standing;

use crate::select::status_code;

/// The bit of [`Meta::flags`] that marks the newest version of a memory.
const HEAD: u8 = 1 << 3;

/// Describes a version while it is the head of its memory.
pub(crate) fn of_head(version: &Version, place: Place) -> Meta {
    Meta {
        kind: version.content.kind.code(),
        flags: status_code(version.status) | HEAD,
        created: version.time.created.micros(),
        valid_from: version.time.valid_from.micros(),
        valid_to: version.time.valid_to.map_or(i64::MAX, |end| end.micros()),
        recorded: version.recorded.micros(),
        retired: i64::MAX,
        expires: version.ends().map_or(i64::MAX, |end| end.micros()),
        session: place.session,
        ordinal: place.ordinal,
        weight: 1.0,
        tags: version.content.tags.iter().fold(0, |bloom, tag| bloom | tag_bits(tag)),
    }
}

/// Describes the same version once another replaced it. The past has no session around it.
pub(crate) const fn retired(mut head: Meta, at: i64) -> Meta {
    head.flags &= !HEAD;
    head.retired = at;
    head.session = 0;
    head.ordinal = 0;
    head
}

/// Whether the description is of a head.
pub(crate) const fn is_head(meta: &Meta) -> bool {
    meta.flags & HEAD != 0
}

/// The status code in the description.
pub(crate) const fn status_of(meta: &Meta) -> u8 {
    meta.flags & 0b111
}

/// The bits a tag sets in the Bloom filter.
pub(crate) fn tag_bits(tag: &str) -> u64 {
    let hash = hashed(tag);
    1 << (hash & 63) | 1 << (hash >> 6 & 63)
}

/// Where a document lies in its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) session: u64,
    pub(crate) ordinal: u32,
}

/// The number of a session, from its name alone; never 0, which means none.
pub(crate) fn session_number(name: Option<&str>) -> u64 {
    name.map_or(0, |name| hashed(name).max(1))
}

/// The number of a statement, from its digest alone; never 0. Two statements may share one.
pub(crate) fn statement_number(digest: &str) -> u64 {
    hashed(digest).max(1)
}

/// FNV-1a: saved indexes hold these numbers, so they must not depend on the build.
fn hashed(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What priors are made of, for a version that can be recalled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The row of its memory.
    pub(crate) memory: u64,
    created: i64,
    confirmed: i64,
    half_life_days: f32,
    salience: Option<f32>,
    confidence: Option<f32>,
    evidence: u8,
    session: Option<Box<str>>,
    /// The number of what it says; 0 when nothing can be said again.
    said: u64,
}

impl Head {
    #[expect(clippy::cast_possible_truncation, reason = "priors need no more than f32")]
    pub(crate) fn of(memory: u64, version: &Version, statement: &str) -> Self {
        let life = &version.content.lifecycle;
        Self {
            memory,
            created: version.time.created.micros(),
            confirmed: life.confirmed.unwrap_or(version.time.created).micros(),
            half_life_days: life.half_life.map_or(0.0, |span| span.as_days() as f32),
            salience: life.salience.map(|value| value as f32),
            confidence: life.confidence.map(|value| value as f32),
            evidence: u8::try_from(version.content.provenance.evidence.len()).unwrap_or(u8::MAX),
            session: version.content.scope.session.as_deref().map(Box::from),
            said: if statement.is_empty() { 0 } else { statement_number(statement) },
        }
    }

    /// The number of what it says and the memory that says it.
    pub(crate) fn said(&self) -> Option<(u64, u64)> {
        (self.said != 0).then_some((self.said, self.memory))
    }

    /// The session and class it sits in, if it arose in a session.
    pub(crate) fn bench(&self, class: u32) -> Option<(u64, u32)> {
        Some((session_number(Some(self.session.as_deref()?)), class))
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
            session: self.session.as_deref().map(Arc::from),
        }
    }
}
