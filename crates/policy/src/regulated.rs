//! What a law protects: who takes the protection away, and what is taken in of a child.

use yore_domain::class::{Class, Governance, Label};
use yore_domain::grant::{Labels, Verb};
use yore_domain::regulated::{
    AGE_GATE, Guardianship, NO_PROFILE, PARENTAL_CONSENT, Regulated, STOPPED, is_regulated,
};
use yore_domain::{Error, Result};

use crate::permit::Permit;

/// Whether it must be known of a person that they are no child before anything is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    /// It need not.
    #[default]
    Open,
    /// It must.
    Closed,
}

/// Whoever writes may say that a law protects something; that it no longer does is said by who
/// administers alone.
pub fn may_lower(permit: &Permit, before: &Class, after: &Class) -> Result<()> {
    let lost = before.regulated().find(|label| !after.labels.contains(label));
    match lost {
        Some(label) if !permit.allows(Verb::Admin) => {
            Err(Error::forbidden(format!("only who administers takes '{label}' away")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Governance that is said anew keeps what protected the thing before.
pub fn keep_protection(before: &Governance, after: &mut Governance) {
    protect(after, before.labels.iter().filter(|label| is_regulated(label)));
}

/// Adds labels that are not there.
pub fn protect<'a>(governance: &mut Governance, labels: impl IntoIterator<Item = &'a Label>) {
    for label in labels {
        if !governance.labels.contains(label) {
            governance.labels.push(label.clone());
        }
    }
}

/// Whether something of this class is taken into a vault. `consent` is that of a parent, as far
/// as the thing itself names one.
pub fn may_collect(
    class: &Class,
    consent: Option<&str>,
    guarded: &Guardianship,
    gate: Gate,
) -> Result<()> {
    if guarded.stopped {
        return Err(Error::consent(STOPPED));
    }
    if gate == Gate::Closed && guarded.child.is_none() {
        return Err(Error::consent(AGE_GATE));
    }
    let child = guarded.child == Some(true) || class.labels.contains(&Regulated::Child.label());
    if child && consent.is_none() && guarded.consent.is_none() {
        return Err(Error::consent(PARENTAL_CONSENT));
    }
    Ok(())
}

/// Whether something may be concluded from what has these labels: of a child no profile is made.
pub fn may_derive<'a>(sources: impl IntoIterator<Item = &'a Label>) -> Result<()> {
    let child = Regulated::Child.label();
    if sources.into_iter().any(|label| *label == child) {
        return Err(Error::consent(NO_PROFILE));
    }
    Ok(())
}

/// Whether the caller acts for a child's parent, or looks after the vault.
pub fn may_guard(permit: &Permit, guarded: &Guardianship) -> Result<()> {
    let principal = permit.principal();
    let guardian = guarded.guardian.as_deref();
    if principal.keeps() || (guardian.is_some() && principal.agent() == guardian) {
        return Ok(());
    }
    Err(Error::forbidden("only a guardian, or who looks after the whole vault, may"))
}

/// Whether the caller may let an agent see so much: of a child, the parent decides.
pub fn may_disclose(
    permit: &Permit,
    agent: &str,
    labels: &Labels,
    guarded: &Guardianship,
) -> Result<()> {
    let guardian = guarded.guardian.as_deref();
    let concerns = labels.reach(&Regulated::Child.label());
    if !concerns || guardian.is_none() || guardian == Some(agent) {
        return Ok(());
    }
    if permit.principal().agent() == guardian {
        return Ok(());
    }
    Err(Error::forbidden("the guardian decides who sees what a child said"))
}

#[cfg(test)]
mod tests {
    use yore_domain::Timestamp;
    use yore_domain::scope::Scope;

    use super::*;
    use crate::permit::{Need, authorise};
    use crate::principal::tests::{agent, grant, owner};

    fn class(labels: &[Label]) -> Class {
        let governance = Governance { labels: labels.to_vec(), ..Governance::default() };
        Class::of(&governance, &Scope::default())
    }

    #[test]
    fn omp_177_only_who_administers_takes_protection_away() {
        let (before, after) = (class(&[Regulated::Phi.label()]), class(&[]));
        let need = Need::one("x", Verb::Write);
        let permit = |verbs: &[Verb]| authorise(&agent(&[grant(verbs)]), need, Timestamp::MIN);
        let writer = permit(&[Verb::Write]).unwrap();
        assert_eq!(may_lower(&writer, &before, &after).unwrap_err().code(), "forbidden");
        assert!(may_lower(&writer, &after, &before).is_ok(), "anybody adds some");
        let admin = permit(&[Verb::Write, Verb::Admin]).unwrap();
        assert!(may_lower(&admin, &before, &after).is_ok());
        let mut anew = Governance::default();
        let had = Governance { labels: vec![Regulated::Npi.label()], ..Governance::default() };
        keep_protection(&had, &mut anew);
        assert_eq!(anew.labels, had.labels);
    }

    #[test]
    fn omp_172_a_childs_data_needs_consent_and_a_guardian_stops_it() {
        let (plain, child) = (class(&[]), class(&[Regulated::Child.label()]));
        let none = Guardianship::default();
        let reason = |result: Result<()>| match result {
            Err(Error::Consent { reason }) => reason,
            other => panic!("{other:?}"),
        };
        let open = Gate::Open;
        assert!(may_collect(&plain, None, &none, open).is_ok());
        assert_eq!(reason(may_collect(&child, None, &none, open)), PARENTAL_CONSENT);
        assert!(may_collect(&child, Some("c-1"), &none, open).is_ok());
        assert_eq!(reason(may_collect(&plain, None, &none, Gate::Closed)), AGE_GATE);
        let mut guarded = Guardianship { child: Some(true), ..Guardianship::default() };
        assert_eq!(reason(may_collect(&plain, None, &guarded, open)), PARENTAL_CONSENT);
        guarded.consent = Some("c-2".into());
        assert!(may_collect(&plain, None, &guarded, Gate::Closed).is_ok());
        guarded.stopped = true;
        assert_eq!(reason(may_collect(&plain, Some("c-1"), &guarded, open)), STOPPED);
        assert_eq!(reason(may_derive(&child.labels)), NO_PROFILE);
        assert!(may_derive(&plain.labels).is_ok());
    }

    #[test]
    fn omp_172_the_guardian_alone_shows_others_what_a_child_said() {
        let guarded = Guardianship { guardian: Some("scheduler".into()), ..Default::default() };
        let need = Need::one("grant.issue", Verb::Grant);
        let verbs = [Verb::Grant];
        // The agent of these tests is called so.
        let guardian = authorise(&agent(&[grant(&verbs)]), need, Timestamp::MIN).unwrap();
        let owner = authorise(&owner(), need, Timestamp::MIN).unwrap();
        let child = Labels::AnyWith(vec![Regulated::Child.label()]);
        assert!(may_disclose(&owner, "tutor", &child, &guarded).is_err());
        assert!(may_disclose(&guardian, "tutor", &child, &guarded).is_ok());
        assert!(may_disclose(&owner, "scheduler", &child, &guarded).is_ok());
        assert!(may_disclose(&owner, "tutor", &Labels::Any, &guarded).is_ok());
        assert!(may_guard(&guardian, &guarded).is_ok() && may_guard(&owner, &guarded).is_ok());
        assert!(may_guard(&guardian, &Guardianship::default()).is_err());
    }
}
