//! What holds for stores beside the vault, whose memories have no class and no rules of their own.

use yore_domain::{Error, Result};

use crate::permit::Permit;
use crate::redact::Viewer;

/// Who keeps the stores beside a vault: its owner alone.
pub fn keep_stores(permit: &Permit) -> Result<()> {
    match Viewer::of(permit.principal()) {
        Viewer::Own => Ok(()),
        Viewer::Other => Err(Error::forbidden("only the owner keeps the stores beside a vault")),
    }
}

/// Who forgets, merges or lets expire what only another store has: no agent, for rules and
/// approval, which would hold an agent's hand, are about the vault.
pub fn change_elsewhere(permit: &Permit) -> Result<()> {
    match permit.principal().agent() {
        None => Ok(()),
        Some(_) => Err(Error::forbidden("an agent changes nothing that only another store has")),
    }
}

#[cfg(test)]
mod tests {
    use yore_domain::Timestamp;
    use yore_domain::grant::Verb;

    use super::*;
    use crate::permit::{Need, authorise};
    use crate::principal::tests::{agent, grant, owner};

    #[test]
    fn no_grant_reaches_into_the_stores_beside_a_vault() {
        let need = Need::one("stores.forget", Verb::Write);
        let permit = |principal: &_| authorise(principal, need, Timestamp::MIN).unwrap();
        let everything = agent(&[grant(&[Verb::Read, Verb::Write, Verb::Erase, Verb::Admin])]);
        for (principal, may) in [(owner(), true), (everything, false)] {
            assert_eq!(keep_stores(&permit(&principal)).is_ok(), may);
            assert_eq!(change_elsewhere(&permit(&principal)).is_ok(), may);
        }
    }
}
