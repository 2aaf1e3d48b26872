//! Ids: `urn:ump:` and lower-case base32.
//!
//! An id names a statement, that is, the version of a memory that first made it. What was made
//! through this protocol is addressed by its content: the first half of the hash is the
//! version's own id, so that it is found without a table. What was made in another way, or by
//! an older server, is spelled by its version's id; a memory's UUID is an alias of its head.

use yore_canon::encode::{base32, from_base32};
use yore_canon::hash::Blake3;
use yore_canon::seal;
use yore_domain::{Error, MemoryId, Result, VersionId};
use yore_engine::Reference;

use crate::wire::Object;

/// What every id begins with.
pub const PREFIX: &str = "urn:ump:";
/// The longest id that is taken.
const LONGEST: usize = 256;

/// Checks the form of an id.
pub fn check(path: &str, text: &str) -> Result<()> {
    let well = text.len() <= LONGEST
        && text.strip_prefix(PREFIX).is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'))
        });
    if well {
        return Ok(());
    }
    Err(Error::invalid(path, "must be urn:ump: and lower-case base32"))
}

/// Returns the id of a record that is addressed by its content.
#[must_use]
pub fn of_content(record: &Object) -> String {
    format!("{PREFIX}{}", seal::content_id(record).to_base32())
}

/// Returns the id that spells a version's own id.
#[must_use]
pub fn of_version(version: VersionId) -> String {
    format!("{PREFIX}{}", base32(&version.bytes()))
}

/// Returns the alias that spells a memory's own id.
#[must_use]
pub fn of_memory(memory: MemoryId) -> String {
    format!("{PREFIX}{}", base32(&memory.bytes()))
}

/// Returns the version an id stands for.
#[must_use]
pub fn version_of(text: &str) -> VersionId {
    let rest = text.strip_prefix(PREFIX).unwrap_or(text);
    let mut bytes = [0; 16];
    let half = match from_base32(rest) {
        Ok(spelled) if matches!(spelled.len(), 16 | 32) => spelled,
        _ => Blake3::of(text).as_bytes().to_vec(),
    };
    bytes.copy_from_slice(&half[..16]);
    VersionId::from_bytes(bytes)
}

/// Returns everything an id may mean, in the order in which it is tried.
pub fn references(text: &str) -> Result<Vec<Reference>> {
    if let Ok(memory) = text.parse::<MemoryId>() {
        return Ok(vec![Reference::Memory(memory)]);
    }
    check("id", text)?;
    let version = version_of(text);
    let mut meanings = vec![Reference::Version(version)];
    if text == of_version(version) {
        meanings.push(Reference::Memory(MemoryId::from_bytes(version.bytes())));
    }
    meanings.push(Reference::Name(text.to_owned()));
    Ok(meanings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ump_012_ids_are_lower_case_base32() {
        for good in ["urn:ump:a", "urn:ump:jbswy3dpehpk3pxp", "urn:ump:234567"] {
            assert!(check("id", good).is_ok(), "{good}");
        }
        for bad in
            ["", "urn:ump:", "urn:ump:9f2c", "urn:ump:A", "urn:ump:a b", "ump:a", "urn:ump:ä"]
        {
            assert!(check("id", bad).is_err(), "{bad}");
        }
        assert!(check("id", &format!("{PREFIX}{}", "a".repeat(300))).is_err());
    }

    #[test]
    fn ump_037_every_spelling_leads_to_one_version() {
        let version = VersionId::random();
        let short = of_version(version);
        assert_eq!((short.len(), version_of(&short)), (8 + 26, version));
        let mut hash = version.bytes().to_vec();
        hash.extend([7; 16]);
        assert_eq!(version_of(&format!("{PREFIX}{}", base32(&hash))), version);
        assert_ne!(version_of("urn:ump:jbswy3dpehpk3pxp"), version_of("urn:ump:jbswy3dpehpk3pxq"));
        assert_eq!(references(&short).unwrap().len(), 3);
        let uuid = MemoryId::random();
        assert_eq!(references(&uuid.to_string()).unwrap(), [Reference::Memory(uuid)]);
        assert!(references("no id").is_err());
    }
}
