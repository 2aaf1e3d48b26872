//! Handing a record out: as it was signed, or from the model under the vault's own signature.

use yore_canon::seal::MEMBER;
use yore_domain::memory::{Cause, Version};
use yore_domain::{Result, Timestamp};
use yore_engine::{Call, Chain, Identity, Purpose, Reference};

use crate::map::{self, Place};
use crate::wire::{self, Object, Wire};
use crate::{Ump, integrity};

impl Ump {
    /// Writes a version as this caller may see it.
    pub(crate) async fn emit(
        &self,
        identity: &Identity,
        version: &Version,
        place: &Place,
        wire: Wire,
    ) -> Result<Object> {
        let now = self.engine.now();
        let crosses = !identity.viewer().withheld(&version.content.consent).is_empty();
        let mut record = map::record(version, place, identity.did(), wire, now);
        if !crosses
            && let Some(signed) = original(version, place, identity.did(), wire, &record, now)
            && self.proven(version, &signed)
        {
            return Ok(signed);
        }
        if crosses {
            // The copy is not what anybody signed, and the vault signs no part for the whole.
            integrity::redact(&mut record);
        } else {
            integrity::sign(&self.engine, &self.seals, identity, &mut record).await?;
        }
        Ok(record)
    }

    /// What does not verify is not handed out as if it did, nor what somebody else signed.
    fn proven(&self, version: &Version, record: &Object) -> bool {
        let Ok(Some(signer)) = integrity::verified_before(&self.seals, record) else {
            return false;
        };
        let owner = record.get("scope").and_then(|scope| scope.get("owner")?.as_str());
        let sealed = version.content.seal.as_ref().map(|seal| seal.signer.as_str());
        sealed == Some(&signer) && owner == Some(&signer)
    }

    /// Writes the statement that a chain was asked for, as it stands now.
    pub(crate) async fn emit_from(
        &self,
        identity: &Identity,
        chain: &Chain,
        wire: Wire,
    ) -> Result<Object> {
        let version = standing(chain);
        let place = Place::of(version, &chain.versions, self.engine.now());
        self.emit(identity, version, &place, wire).await
    }

    /// Finds the place of a version that may no longer be the last word.
    pub(crate) async fn place(&self, call: &Call, version: &Version) -> Result<Place> {
        let wanted = vec![Reference::Version(version.id)];
        let chain = self.engine.chain(call, wanted, Purpose::Reading).await?;
        Ok(Place::of(version, &chain.versions, self.engine.now()))
    }
}

/// The newest version of the statement that was asked for: it may have been marked since.
pub(crate) fn standing(chain: &Chain) -> &Version {
    let origin = chain.asked.origin();
    chain.versions.iter().rev().find(|one| one.origin() == origin).unwrap_or(&chain.asked)
}

/// The owner's own signed bytes, while they say what is meant: to the model, as long as nothing
/// was derived since, and word for word from then on.
fn original(
    version: &Version,
    place: &Place,
    own: &str,
    wire: Wire,
    meant: &Object,
    now: Timestamp,
) -> Option<Object> {
    let seal = version.content.seal.as_ref().filter(|seal| seal.by_owner)?;
    let record = map::unsealed(seal, wire)?;
    let untouched = version.cause == Cause::Created
        && version.status.is_live()
        && *place == Place::default()
        && version.ends().is_none_or(|end| now < end);
    let mut said = record.clone();
    said.shift_remove(MEMBER);
    let same = said == *meant
        || (untouched && reread(&record, version, own, wire, now).as_ref() == Some(meant));
    same.then_some(record)
}

/// What the model makes of a record: members that it does not know are no part of it.
fn reread(
    record: &Object,
    version: &Version,
    own: &str,
    wire: Wire,
    now: Timestamp,
) -> Option<Object> {
    let said = wire::read(record).ok()?;
    let draft = map::draft(record, &said, own, said.id.clone(), now);
    let first = Version::first(version.memory, draft, now, version.writer.clone());
    Some(map::record(&first, &Place::default(), own, wire, now))
}

#[cfg(test)]
mod tests;
