//! Permission to do one operation on one vault: what the store asks for.

use yore_domain::audit::Actor;
use yore_domain::class::{Class, Surface};
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::{Error, Result, Timestamp, VaultId};

use crate::lens::{Lens, fits};
use crate::principal::{Principal, Who};

/// What an operation needs.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// The operation's name.
    pub operation: &'static str,
    /// Every verb it needs.
    pub verbs: Verbs,
    /// The way its answer goes out.
    pub surface: Surface,
    /// The operation it is the first step of: who is turned away wanted that one.
    pub towards: Option<&'static str>,
}

impl Need {
    /// A need of one verb on the retrieval surface.
    #[must_use]
    pub fn one(operation: &'static str, verb: Verb) -> Self {
        Self::of(operation, Verbs::of(&[verb]), Surface::Retrieval)
    }

    /// A need of several verbs, or none.
    #[must_use]
    pub const fn of(operation: &'static str, verbs: Verbs, surface: Surface) -> Self {
        Self { operation, verbs, surface, towards: None }
    }

    /// The same as the first step of another operation.
    #[must_use]
    pub const fn towards(mut self, operation: &'static str) -> Self {
        self.towards = Some(operation);
        self
    }

    /// The name under which a refusal stands in the audit chain.
    #[must_use]
    pub fn wanted(&self) -> &'static str {
        self.towards.unwrap_or(self.operation)
    }
}

/// Permission for one operation. Its fields are private and [`authorise`] is its only maker.
#[derive(Clone, Debug)]
pub struct Permit {
    principal: Principal,
    operation: &'static str,
    verbs: Verbs,
    lens: Lens,
}

/// Gives a permit for an operation, or says what the caller lacks.
pub fn authorise(principal: &Principal, need: Need, now: Timestamp) -> Result<Permit> {
    if let Some(grant) = principal.grants().iter().find(|grant| !grant.holds_at(now)) {
        return Err(Error::unauthenticated(format!("the grant {} has ended", grant.id)));
    }
    let verbs = principal.verbs();
    if let Some(verb) = need.verbs.iter().find(|verb| !verbs.has(*verb)) {
        return Err(match principal.who() {
            Who::Anonymous => Error::unauthenticated("no credential was presented"),
            Who::Owner
            | Who::Service { .. }
            | Who::Admin { .. }
            | Who::Agent { .. }
            | Who::System { .. } => {
                Error::forbidden(format!("the grant does not allow '{}'", verb.as_str()))
            }
        });
    }
    let lens = match principal.who() {
        Who::Owner | Who::Service { .. } | Who::Admin { .. } | Who::System { .. } => {
            Lens::everything(need.surface)
        }
        Who::Anonymous => Lens::public(need.surface),
        Who::Agent { grants } => Lens::of(need.surface, grants),
    };
    Ok(Permit { principal: principal.clone(), operation: need.operation, verbs, lens })
}

impl Permit {
    /// Returns the vault it is for.
    #[must_use]
    pub const fn vault(&self) -> VaultId {
        self.principal.vault()
    }

    /// Returns the operation it is for.
    #[must_use]
    pub const fn operation(&self) -> &'static str {
        self.operation
    }

    /// Returns what its holder sees.
    #[must_use]
    pub const fn lens(&self) -> &Lens {
        &self.lens
    }

    /// Returns whom it was given to.
    #[must_use]
    pub const fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Returns how the audit chain names its holder.
    #[must_use]
    pub fn actor(&self) -> Actor {
        self.principal.actor()
    }

    /// Whether its holder may do this, too.
    #[must_use]
    pub const fn allows(&self, verb: Verb) -> bool {
        self.verbs.has(verb)
    }

    /// Whether its holder may write a memory of this class: every label must be reached.
    pub fn may_write(&self, class: &Class) -> Result<()> {
        for grant in self.principal.grants() {
            if class.sensitivity > grant.ceiling {
                return Err(Error::forbidden(format!(
                    "'{}' is above the grant's ceiling",
                    class.sensitivity.as_str()
                )));
            }
            if !fits(&grant.scope, class) {
                return Err(Error::forbidden("the scope is outside the grant"));
            }
            // Whoever writes may say that a law protects it.
            if let Labels::Under(_) = grant.write
                && let Some(label) = class.topics().find(|label| !grant.write.reach(label))
            {
                return Err(Error::forbidden(format!("the label '{label}' is outside the grant")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use yore_domain::class::{Governance, Label, Sensitivity};
    use yore_domain::grant::Grant;
    use yore_domain::scope::Scope;

    use super::*;
    use crate::principal::tests::{agent, grant, owner};

    const NOW: Timestamp = Timestamp::MIN;

    #[test]
    fn a_permit_needs_every_verb() {
        let reader = agent(&[grant(&[Verb::Read])]);
        assert!(authorise(&reader, Need::one("recall", Verb::Read), NOW).is_ok());
        let error = authorise(&reader, Need::one("remember", Verb::Write), NOW).unwrap_err();
        assert_eq!(error.to_string(), "forbidden: the grant does not allow 'write'");
        assert!(authorise(&owner(), Need::one("rotate", Verb::Admin), NOW).is_ok());
    }

    #[test]
    fn oamp_343_every_label_of_a_write_must_be_reached() {
        let labels = |names: &[&str]| names.iter().map(|n| Label::new(*n).unwrap()).collect();
        let writer = agent(&[Grant {
            write: Labels::Under(labels(&["work"])),
            ceiling: Sensitivity::Internal,
            ..grant(&[Verb::Write])
        }]);
        let permit = authorise(&writer, Need::one("remember", Verb::Write), NOW).unwrap();
        let class = |names: &[&str], sensitivity| {
            let governance = Governance {
                sensitivity: Some(sensitivity),
                labels: labels(names),
                handling: None,
            };
            Class::of(&governance, &Scope::default())
        };
        assert!(permit.may_write(&class(&["work.calendar"], Sensitivity::Internal)).is_ok());
        assert!(permit.may_write(&class(&["work", "health"], Sensitivity::Internal)).is_err());
        assert!(permit.may_write(&class(&["work"], Sensitivity::Restricted)).is_err());
        assert!(permit.may_write(&class(&[], Sensitivity::Public)).is_err(), "behaviour");
    }
}
