//! Cursors: places in a list that only this server can name, each for one caller and one list.

use yore_canon::encode::{base64url, from_base64url};
use yore_domain::Timestamp;
use yore_domain::query::Position;
use yore_engine::{Engine, Identity, Place};

use crate::error::{Refusal, Result};

/// Bytes that prove a cursor was made here.
const PROOF: usize = 16;

/// One list as one caller sees it. A cursor of another list or of another caller is refused.
pub(crate) struct Roll<'a> {
    engine: &'a Engine,
    identity: &'a Identity,
    /// What is listed, and by what it is narrowed.
    list: String,
}

impl<'a> Roll<'a> {
    pub(crate) fn new(engine: &'a Engine, identity: &'a Identity, list: String) -> Self {
        Self { engine, identity, list }
    }

    /// Names a place in a list by time.
    pub(crate) fn at(&self, position: Position) -> String {
        self.sealed(&[&position.at.micros().to_be_bytes()[..], &position.id].concat())
    }

    /// Finds a place in a list by time.
    pub(crate) fn position(&self, cursor: &str) -> Result<Position> {
        let (at, id) = self.opened::<8>(cursor)?;
        Ok(Position { at: Timestamp::from_micros(i64::from_be_bytes(at)), id })
    }

    /// Names a place among results.
    pub(crate) fn among(&self, place: Place) -> String {
        let numbers = [place.seen.to_be_bytes(), place.score.to_bits().to_be_bytes()].concat();
        self.sealed(&[&numbers[..], &place.id].concat())
    }

    /// Finds a place among results.
    pub(crate) fn place(&self, cursor: &str) -> Result<Place> {
        let ([a, b, c, d, e, f, g, h], id) = self.opened::<8>(cursor)?;
        Ok(Place {
            seen: u32::from_be_bytes([a, b, c, d]),
            score: f32::from_bits(u32::from_be_bytes([e, f, g, h])),
            id,
        })
    }

    /// Names a place in a list of numbers.
    pub(crate) fn numbered(&self, number: u64) -> String {
        self.sealed(&[&number.to_be_bytes()[..], &[0; 16]].concat())
    }

    /// Finds a place in a list of numbers.
    pub(crate) fn number(&self, cursor: &str) -> Result<u64> {
        Ok(u64::from_be_bytes(self.opened::<8>(cursor)?.0))
    }

    fn sealed(&self, said: &[u8]) -> String {
        base64url(&[said, &self.proof(said)[..PROOF]].concat())
    }

    fn opened<const N: usize>(&self, cursor: &str) -> Result<([u8; N], [u8; 16])> {
        let wrong = || Refusal::invalid("cursor", "is not one of this list");
        let bytes = from_base64url(cursor).map_err(|_| wrong())?;
        let (said, proof) = bytes.split_at_checked(N + 16).ok_or_else(wrong)?;
        if proof != &self.proof(said)[..PROOF] {
            return Err(wrong());
        }
        let (first, id) = said.split_at(N);
        Ok((first.try_into().map_err(|_| wrong())?, id.try_into().map_err(|_| wrong())?))
    }

    fn proof(&self, said: &[u8]) -> [u8; 32] {
        self.engine.stamp(self.identity, &self.list, said)
    }
}
