//! What a permit lets its holder see, decided per class and never per row.

use std::sync::Arc;

use yore_domain::class::{Class, Sensitivity, Surface};
use yore_domain::grant::{Grant, Labels};
use yore_domain::scope::{ScopeRule, Visibility};

/// A predicate over classes. Only an authorisation makes one.
#[derive(Clone, Debug, PartialEq)]
pub struct Lens {
    surface: Surface,
    demands: Arc<[Demand]>,
}

/// What one grant demands of a class. All demands of a lens must be met.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Demand {
    labels: Labels,
    ceiling: Sensitivity,
    scope: ScopeRule,
    /// Who is to be shown it; absent for strangers.
    agent: Option<String>,
}

impl Lens {
    pub(crate) fn everything(surface: Surface) -> Self {
        Self { surface, demands: Arc::new([]) }
    }

    pub(crate) fn public(surface: Surface) -> Self {
        let demand = Demand {
            labels: Labels::Any,
            ceiling: Sensitivity::Public,
            scope: ScopeRule { visibility: Some(Visibility::Public), ..ScopeRule::default() },
            agent: None,
        };
        Self { surface, demands: Arc::new([demand]) }
    }

    pub(crate) fn of(surface: Surface, grants: &[Grant]) -> Self {
        let demands = grants
            .iter()
            .map(|grant| Demand {
                labels: grant.read.clone(),
                ceiling: grant.ceiling,
                scope: grant.scope.clone(),
                agent: Some(grant.agent.to_string()),
            })
            .collect();
        Self { surface, demands }
    }

    /// Whether nothing is hidden.
    #[must_use]
    pub fn sees_all(&self) -> bool {
        self.demands.is_empty()
    }

    /// Whether a class is seen.
    #[must_use]
    pub fn sees(&self, class: &Class) -> bool {
        self.demands.iter().all(|demand| demand.met_by(class, self.surface))
    }

    /// Returns the surface it was made for.
    #[must_use]
    pub const fn surface(&self) -> Surface {
        self.surface
    }
}

impl Demand {
    /// Handling lifts the demand for labels and sensitivity, never the one for scope, nor does it
    /// show to anyone what is shared with others. What a law protects is shown to those alone
    /// whose grant says so.
    fn met_by(&self, class: &Class, surface: Surface) -> bool {
        fits(&self.scope, class)
            && class.is_shared_with(self.agent.as_deref())
            && class.regulated().all(|label| self.labels.reach(label))
            && (class.handling.is_open(surface)
                || (class.sensitivity <= self.ceiling
                    && class.topics().any(|label| self.labels.reach(label))))
    }
}

/// Whether a class has every member the rule demands.
pub(crate) fn fits(rule: &ScopeRule, class: &Class) -> bool {
    let ScopeRule { user, project, agent, visibility } = rule;
    let equal =
        |demanded: &Option<String>, found: &Option<String>| demanded.is_none() || demanded == found;
    equal(user, &class.user)
        && equal(project, &class.project)
        && equal(agent, &class.agent)
        && visibility.is_none_or(|demanded| demanded == class.visibility)
}

/// The one definition of visibility: every store's answer must equal it.
#[must_use]
pub fn visible(lens: &Lens, class: &Class) -> bool {
    lens.sees(class)
}

#[cfg(test)]
mod tests {
    use yore_domain::class::{Governance, Handling, Label};
    use yore_domain::grant::Verb;
    use yore_domain::scope::Scope;

    use super::*;
    use crate::principal::tests::grant;

    fn class(label: &str, sensitivity: Sensitivity, handling: Handling) -> Class {
        let governance = Governance {
            sensitivity: Some(sensitivity),
            labels: vec![Label::new(label).unwrap()],
            handling: Some(handling),
        };
        Class::of(&governance, &Scope::default())
    }

    fn reads(labels: &[&str], ceiling: Sensitivity) -> Grant {
        let labels = labels.iter().map(|label| Label::new(*label).unwrap()).collect();
        Grant { read: Labels::Under(labels), ceiling, ..grant(&[Verb::Read]) }
    }

    #[test]
    fn oamp_340_a_label_and_the_ceiling_decide() {
        let lens = Lens::of(Surface::Retrieval, &[reads(&["health"], Sensitivity::Internal)]);
        let governed = Handling::default();
        assert!(lens.sees(&class("health.sleep", Sensitivity::Internal, governed)));
        assert!(!lens.sees(&class("health.sleep", Sensitivity::Confidential, governed)));
        assert!(!lens.sees(&class("finance", Sensitivity::Public, governed)));
    }

    #[test]
    fn oamp_323_handling_opens_one_surface_only() {
        let grants = [reads(&[], Sensitivity::Public)];
        let open = Handling { open_retrieval: true, ..Handling::default() };
        let found = class("finance", Sensitivity::Restricted, open);
        assert!(Lens::of(Surface::Retrieval, &grants).sees(&found));
        assert!(!Lens::of(Surface::Export, &grants).sees(&found));
        assert!(!Lens::of(Surface::Stream, &grants).sees(&found));
    }

    #[test]
    fn scope_is_demanded_even_of_what_handling_opens() {
        let bound = Grant {
            scope: ScopeRule { project: Some("x".into()), ..ScopeRule::default() },
            ..grant(&[Verb::Read])
        };
        let open = Handling { open_retrieval: true, ..Handling::default() };
        let lens = Lens::of(Surface::Retrieval, &[bound]);
        let without = class("work", Sensitivity::Public, open);
        assert!(!lens.sees(&without), "a memory without a project is not in project x");
        assert!(lens.sees(&Class { project: Some("x".into()), ..without }));
    }

    #[test]
    fn omp_170_171_what_a_law_protects_is_hidden_unless_the_grant_says_so() {
        use yore_domain::regulated::Regulated;
        let open = Handling { open_retrieval: true, ..Handling::default() };
        let protected = |sort: Regulated| {
            let class = class("work", Sensitivity::Public, open);
            let mut labels = class.labels.clone();
            labels.insert(sort.label());
            Class { labels, visibility: Visibility::Public, ..class }
        };
        let reads =
            |read: Labels| Lens::of(Surface::Retrieval, &[Grant { read, ..grant(&[Verb::Read]) }]);
        for sort in Regulated::ALL {
            let class = protected(sort);
            assert!(!reads(Labels::Any).sees(&class), "{sort:?}");
            assert!(!Lens::public(Surface::Retrieval).sees(&class) && !class.is_public());
            assert!(reads(Labels::AnyWith(vec![sort.label()])).sees(&class));
            assert!(Lens::everything(Surface::Retrieval).sees(&class), "the owner's it stays");
        }
        // To be given what is protected is not to be given what it is about.
        let phi = Regulated::Phi.label();
        let health = class("health", Sensitivity::Public, Handling::default());
        let labels = health.labels.iter().cloned().chain([phi.clone()]).collect();
        assert!(!reads(Labels::Under(vec![phi])).sees(&Class { labels, ..health }));
    }

    #[test]
    fn mw_200_only_those_it_is_shared_with_see_it_however_open_it_is() {
        let open = Handling { open_retrieval: true, ..Handling::default() };
        let with = |agents: &[&str]| Class {
            shared_with: Some(agents.iter().map(|name| (*name).to_owned()).collect()),
            agent: Some("writer".into()),
            visibility: Visibility::Public,
            ..class("work", Sensitivity::Public, open)
        };
        let lens = Lens::of(Surface::Retrieval, &[grant(&[Verb::Read])]);
        assert!(lens.sees(&with(&["scheduler", "other"])));
        assert!(!lens.sees(&with(&["other"])) && !lens.sees(&with(&[])));
        assert!(!Lens::public(Surface::Retrieval).sees(&with(&["scheduler"])));
        assert!(Lens::everything(Surface::Retrieval).sees(&with(&[])), "the owner's it stays");
    }

    #[test]
    fn strangers_see_only_what_is_public_in_both_senses() {
        let lens = Lens::public(Surface::Retrieval);
        let found = class("work", Sensitivity::Public, Handling::default());
        assert!(!lens.sees(&found));
        assert!(lens.sees(&Class { visibility: Visibility::Public, ..found.clone() }));
        assert!(!lens.sees(&Class {
            visibility: Visibility::Public,
            sensitivity: Sensitivity::Internal,
            ..found
        }));
    }
}
