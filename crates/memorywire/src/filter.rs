//! The filter: equal members, all of them, and nothing else.
//!
//! A filter only narrows. Whatever it says about the agent or the person comes on top of what
//! the request says, so it never reaches another's memories. What it cannot mean (a list, an
//! operator, null) matches nothing.

use serde_json::Value;
use yore_domain::kind::Kind;
use yore_domain::memory::Content;
use yore_domain::query::{Filter, ScopeMatch};
use yore_domain::scope::ScopeRule;
use yore_domain::{Span, Timestamp};

use crate::map::{confidence, kinds};
use crate::wire::{Object, Recall, Type};

/// What rows must be like.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Narrowed {
    /// What the engine looks at.
    pub(crate) filter: Filter,
    /// Exactly this sure: the engine knows only a least.
    confidence: Option<f64>,
}

impl Narrowed {
    /// All memories of an agent, or of one person with it.
    pub(crate) fn of(agent: &str, user: Option<&str>) -> Self {
        let scope = ScopeRule {
            agent: Some(agent.to_owned()),
            user: user.map(str::to_owned),
            ..ScopeRule::default()
        };
        Self { filter: Filter { scope, ..Filter::default() }, confidence: None }
    }

    /// Lets in what belongs to no agent: it is the person's, whoever asks for them. Where a person
    /// is named, or the filter itself names the agent, only what says so counts.
    pub(crate) fn or_nobodys(mut self, members: Option<&Object>) -> Self {
        let named = members.is_some_and(|members| members.contains_key("agent_id"));
        if self.filter.scope.user.is_none() && !named {
            self.filter.scope_match = ScopeMatch::OrAbsent;
        }
        self
    }

    /// Whether the engine's answer must be looked through once more.
    pub(crate) const fn is_exact(&self) -> bool {
        self.confidence.is_none()
    }

    /// Whether content that the engine found passes.
    pub(crate) fn passes(&self, content: &Content) -> bool {
        self.confidence.is_none_or(|wanted| confidence(content) == wanted)
    }

    /// Narrows to types; none means all.
    pub(crate) fn types(mut self, types: &[Type]) -> Self {
        let wanted: Vec<Kind> = types.iter().flat_map(|of| kinds(*of)).copied().collect();
        self.filter.kinds = wanted;
        self
    }

    /// Narrows by the members of a filter; `None` when nothing can pass.
    pub(crate) fn by(mut self, members: &Object) -> Option<Self> {
        for (name, value) in members {
            match value {
                Value::String(_) | Value::Number(_) | Value::Bool(_) => {}
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            }
            match name.as_str() {
                "agent_id" => {
                    same(self.filter.scope.agent.as_deref(), value.as_str()?)?;
                }
                "user_id" => {
                    same(self.filter.scope.user.as_deref(), value.as_str()?)?;
                    self.filter.scope.user = value.as_str().map(str::to_owned);
                }
                "type" => self.only(Type::named(value.as_str()?)?)?,
                "source" => self.filter.source = Some(value.as_str()?.to_owned()),
                "confidence" => {
                    let wanted = value.as_f64()?;
                    self.filter.min_confidence = Some(wanted);
                    self.confidence = Some(wanted);
                }
                _ => {
                    self.filter.members.insert(name.clone(), value.clone());
                }
            }
        }
        Some(self)
    }

    fn only(&mut self, of: Type) -> Option<()> {
        let wanted = kinds(of);
        let kinds = &mut self.filter.kinds;
        if kinds.is_empty() {
            *kinds = wanted.to_vec();
        } else {
            kinds.retain(|kind| wanted.contains(kind));
        }
        (!kinds.is_empty()).then_some(())
    }
}

impl Recall {
    /// What it looks among, as the engine is asked; `None` when nothing can pass.
    #[must_use]
    pub fn among(&self, now: Timestamp) -> Option<Filter> {
        self.narrowed(now).map(|narrowed| narrowed.filter)
    }

    pub(crate) fn narrowed(&self, now: Timestamp) -> Option<Narrowed> {
        let types = self.types.as_deref().unwrap_or_default();
        let all = Narrowed::of(&self.agent_id, self.user_id.as_deref()).types(types);
        let members = self.filter.as_ref();
        let narrowed = members.map_or(Some(all.clone()), |members| all.by(members))?;
        let mut narrowed = narrowed.or_nobodys(members);
        narrowed.filter.from = self.fresher_than_days.map(|days| now.minus(Span::days(days)));
        Some(narrowed)
    }
}

/// Whether what the request says, if it says anything, is what the filter says.
fn same(stated: Option<&str>, wanted: &str) -> Option<()> {
    stated.is_none_or(|stated| stated == wanted).then_some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn by(members: Value) -> Option<Narrowed> {
        Narrowed::of("a", None).types(&[]).by(members.as_object().unwrap())
    }

    #[test]
    fn mw_060_columns_are_known_by_name_and_everything_else_is_metadata() {
        let narrowed = by(json!({
            "agent_id": "a", "user_id": "u", "type": "emotional", "source": "chat",
            "confidence": 0.5, "city.name": "Rome", "n": 1, "open": true,
        }))
        .unwrap();
        let filter = &narrowed.filter;
        assert_eq!(filter.scope.user.as_deref(), Some("u"));
        assert_eq!(filter.kinds, [Kind::Emotional]);
        assert_eq!((filter.source.as_deref(), filter.min_confidence), (Some("chat"), Some(0.5)));
        assert_eq!(filter.members.len(), 3);
        assert!(!narrowed.is_exact());
    }

    #[test]
    fn mw_060_what_a_filter_cannot_mean_matches_nothing() {
        for members in [
            json!({"n": {"gt": 1}}),
            json!({"n": [1]}),
            json!({"n": null}),
            json!({"type": "wisdom"}),
            json!({"source": 1}),
            json!({"confidence": "high"}),
        ] {
            assert!(by(members.clone()).is_none(), "{members}");
        }
        let typed = Narrowed::of("a", None).types(&[Type::Semantic]);
        assert!(typed.by(json!({"type": "episodic"}).as_object().unwrap()).is_none());
    }

    #[test]
    fn what_is_nobodys_counts_unless_a_person_or_the_agent_is_named() {
        let plain = Narrowed::of("a", None).or_nobodys(None);
        assert_eq!(plain.filter.scope_match, ScopeMatch::OrAbsent);
        let bound = Narrowed::of("a", Some("alice")).or_nobodys(None);
        assert_eq!(bound.filter.scope_match, ScopeMatch::Exact);
        let members = json!({"agent_id": "a"});
        let named = by(members.clone()).unwrap().or_nobodys(members.as_object());
        assert_eq!(named.filter.scope_match, ScopeMatch::Exact);
    }

    #[test]
    fn mw_061_a_filter_never_widens_what_the_request_says() {
        assert!(by(json!({"agent_id": "b"})).is_none());
        let bound = Narrowed::of("a", Some("alice"));
        assert!(bound.clone().by(json!({"user_id": "bob"}).as_object().unwrap()).is_none());
        assert!(bound.by(json!({"user_id": "alice"}).as_object().unwrap()).is_some());
    }
}
