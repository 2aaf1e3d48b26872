//! What may be done to conversations, which are appended to and never revised.

use yore_domain::class::Class;
use yore_domain::{Error, Result};

use crate::permit::Permit;

/// Whether a legal hold protects a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// It may be removed by whoever may remove.
    None,
    /// Nobody removes any of it until the hold is lifted.
    LegalHold,
}

/// Whether a conversation of this class, or a message of it, may be removed for good.
pub fn may_erase(permit: &Permit, class: &Class, protection: Protection) -> Result<()> {
    permit.may_write(class)?;
    match protection {
        Protection::None => Ok(()),
        Protection::LegalHold => Err(Error::consent("a legal hold protects it from erasure")),
    }
}

#[cfg(test)]
mod tests {
    use yore_domain::Timestamp;
    use yore_domain::class::Governance;
    use yore_domain::grant::Verb;
    use yore_domain::scope::Scope;

    use super::*;
    use crate::permit::{Need, authorise};
    use crate::principal::tests::owner;

    #[test]
    fn omp_178_a_hold_stops_even_the_owner() {
        let permit = authorise(&owner(), Need::one("x", Verb::Erase), Timestamp::MIN).unwrap();
        let class = Class::of(&Governance::default(), &Scope::default());
        assert!(may_erase(&permit, &class, Protection::None).is_ok());
        let refused = may_erase(&permit, &class, Protection::LegalHold).unwrap_err();
        assert_eq!(refused.code(), "consent");
    }
}
