//! What may be done to conversations, which are appended to and never revised.

use std::collections::BTreeSet;

use yore_domain::class::{Class, Governance, Label, Sensitivity};
use yore_domain::sensitive::{Care, Finding};
use yore_domain::{Error, Result};

use crate::detect::findings;
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

/// Returns how a conversation is governed once this is said in it too, as the operator wants
/// secrets and personal data treated.
///
/// What was found before stays found: only the owner takes such a label off, by name. Where an
/// agent's writes wait for the owner, a conversation is not lost over one word and not shown
/// either: it is stored, and nobody below the highest class sees it until the owner says so.
#[must_use]
pub fn careful_talk<'a>(
    care: Care,
    permit: &Permit,
    asked: &Governance,
    known: Option<&Governance>,
    texts: impl Iterator<Item = &'a str>,
) -> Governance {
    let mut governance = asked.clone();
    if care == Care::Off {
        return governance;
    }
    let found: BTreeSet<Finding> = texts.flat_map(findings).collect();
    let before = known.into_iter().flat_map(|known| &known.labels);
    let before = before.filter(|label| Finding::ALL.iter().any(|one| one.label() == **label));
    let labels: Vec<Label> = found.iter().map(|one| one.label()).chain(before.cloned()).collect();
    for label in labels {
        if !governance.labels.contains(&label) {
            governance.labels.push(label);
        }
    }
    let held = care == Care::Hold && permit.principal().agent().is_some() && !found.is_empty();
    let was = known.and_then(|known| known.sensitivity);
    if held {
        governance.sensitivity = Some(Sensitivity::Restricted);
    } else if permit.principal().agent().is_some() {
        // An agent that goes on does not lower what keeps others from reading.
        governance.sensitivity = governance.sensitivity.max(was);
    }
    governance
}

#[cfg(test)]
mod tests {
    use yore_domain::Timestamp;
    use yore_domain::grant::Verb;
    use yore_domain::scope::Scope;

    use super::*;
    use crate::permit::{Need, authorise};
    use crate::principal::tests::{agent, grant, owner};

    #[test]
    fn omp_178_a_hold_stops_even_the_owner() {
        let permit = authorise(&owner(), Need::one("x", Verb::Erase), Timestamp::MIN).unwrap();
        let class = Class::of(&Governance::default(), &Scope::default());
        assert!(may_erase(&permit, &class, Protection::None).is_ok());
        let refused = may_erase(&permit, &class, Protection::LegalHold).unwrap_err();
        assert_eq!(refused.code(), "consent");
    }
    #[test]
    fn what_is_found_in_a_conversation_labels_it_and_stays() {
        let permit = authorise(&owner(), Need::one("x", Verb::Write), Timestamp::MIN).unwrap();
        let plain = Governance::default();
        let said = ["hello", "my key is ghp_0123456789abcdefghijklmnopqrstuv1234"];
        let weighed = |care, known: Option<&Governance>, said: &[&str]| {
            careful_talk(care, &permit, &plain, known, said.iter().copied())
        };
        assert_eq!(weighed(Care::Off, None, &said), plain);
        assert_eq!(weighed(Care::Label, None, &said[..1]), plain);
        let labelled = weighed(Care::Label, None, &said);
        assert_eq!(labelled.labels, [Finding::Secret.label()]);
        assert_eq!(weighed(Care::Label, Some(&labelled), &said[..1]), labelled, "it stays");
        assert_eq!(weighed(Care::Hold, None, &said).sensitivity, None, "the owner's does not wait");
    }

    #[test]
    fn an_agents_conversation_with_a_secret_is_kept_from_others_until_the_owner_decides() {
        let agent = agent(&[grant(&[Verb::Read, Verb::Write])]);
        let permit = authorise(&agent, Need::one("x", Verb::Write), Timestamp::MIN).unwrap();
        let said = ["the card is 4111 1111 1111 1111"];
        let plain = Governance::default();
        let held = careful_talk(Care::Hold, &permit, &plain, None, said.into_iter());
        assert_eq!(held.sensitivity, Some(Sensitivity::Restricted));
        assert_eq!(held.labels, [Finding::Card.label()]);
        let more = careful_talk(Care::Hold, &permit, &plain, Some(&held), std::iter::empty());
        assert_eq!(more, held, "going on does not lower it");
    }
}
