//! What a lens and a filter select: class ids for the lens, a predicate for the rest.
//!
//! A lens never tests rows. It picks class ids once per view; every statement and every index
//! then works inside those. A filter narrows the classes where it can and tests the value otherwise.

use std::sync::Arc;

use serde_json::Value;
use yore_domain::class::{Class, Governance};
use yore_domain::conversation::{Conversation, Message};
use yore_domain::memory::{Foreign, Status, Version};
use yore_domain::query::{Filter, ScopeMatch};
use yore_domain::scope::ScopeRule;
use yore_policy::Lens;

/// The classes a view may look at.
#[derive(Clone, Debug)]
pub struct Selection {
    classes: Vec<(u32, Arc<Class>)>,
}

impl Selection {
    /// Picks the classes a lens sees out of all, which are in order of their ids.
    #[must_use]
    pub fn of(lens: &Lens, mut classes: Vec<(u32, Arc<Class>)>) -> Self {
        debug_assert!(classes.is_sorted_by_key(|(id, _)| *id), "classes are searched by id");
        classes.retain(|(_, class)| yore_policy::visible(lens, class));
        Self { classes }
    }

    /// Whether rows of this class may be shown.
    #[must_use]
    pub fn has(&self, class: u32) -> bool {
        self.classes.binary_search_by_key(&class, |(id, _)| *id).is_ok()
    }

    /// Returns a class that may be shown.
    #[must_use]
    pub fn get(&self, class: u32) -> Option<&Arc<Class>> {
        let at = self.classes.binary_search_by_key(&class, |(id, _)| *id).ok()?;
        Some(&self.classes[at].1)
    }

    /// Lists the class ids, ascending.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.classes.iter().map(|(id, _)| *id)
    }

    /// Leaves out classes in which nothing can pass the filter.
    #[must_use]
    pub fn narrowed(&self, filter: &Filter) -> Selection {
        let fits = |class: &Class| {
            scope_fits(filter, class)
                && (filter.labels.is_empty()
                    || filter.labels.iter().any(|label| class.labels.contains(label)))
                && (filter.sensitivities.is_empty()
                    || filter.sensitivities.contains(&class.sensitivity))
        };
        Self { classes: self.classes.iter().filter(|(_, class)| fits(class)).cloned().collect() }
    }
}

/// Whether a class has every member the filter demands.
fn scope_fits(filter: &Filter, class: &Class) -> bool {
    let ScopeRule { user, project, agent, visibility } = &filter.scope;
    let fits = |wanted: &Option<String>, found: &Option<String>| belongs(filter, wanted, found);
    fits(user, &class.user)
        && fits(project, &class.project)
        && fits(agent, &class.agent)
        && visibility.is_none_or(|wanted| wanted == class.visibility)
}

/// Whether a member of a scope is the one that is asked for, or absent where that counts too.
fn belongs(filter: &Filter, wanted: &Option<String>, found: &Option<String>) -> bool {
    wanted.is_none()
        || wanted == found
        || (found.is_none() && filter.scope_match == ScopeMatch::OrAbsent)
}

/// Whether a status passes; an empty list means the live ones.
#[must_use]
pub fn status_passes(filter: &Filter, status: Status) -> bool {
    if filter.statuses.is_empty() { status.is_live() } else { filter.statuses.contains(&status) }
}

/// The number that columns use for a status.
#[must_use]
pub const fn status_code(status: Status) -> u8 {
    match status {
        Status::Active => 0,
        Status::Candidate => 1,
        Status::Quarantined => 2,
        Status::Tombstoned => 3,
        Status::Erased => 4,
    }
}

/// Whether a status passes, by its number.
#[must_use]
pub fn status_in(filter: &Filter, code: u8) -> bool {
    const ALL: [Status; 5] = [
        Status::Active,
        Status::Candidate,
        Status::Quarantined,
        Status::Tombstoned,
        Status::Erased,
    ];
    ALL.into_iter().any(|status| status_code(status) == code && status_passes(filter, status))
}

/// Whether a kind passes, by its number.
#[must_use]
pub fn kind_in(filter: &Filter, code: u8) -> bool {
    filter.kinds.is_empty() || filter.kinds.iter().any(|kind| kind.code() == code)
}

/// Whether the filter asks for something that only the value itself tells.
#[must_use]
pub fn needs_value(filter: &Filter) -> bool {
    !filter.facets.is_empty()
        || filter.session.is_some()
        || !filter.labels.is_empty()
        || !filter.sensitivities.is_empty()
        || !filter.tags.is_empty()
        || filter.min_confidence.is_some()
        || filter.source.is_some()
        || filter.platform.is_some()
        || filter.model.is_some()
        || filter.conversation.is_some()
        || !filter.members.is_empty()
}

/// Whether a version passes, apart from status and the two clocks.
#[must_use]
pub fn version_passes(filter: &Filter, version: &Version) -> bool {
    let content = &version.content;
    any(&filter.kinds, &content.kind)
        && any(&filter.facets, &content.facet)
        && scope_fits(filter, &version.class())
        && belongs(filter, &filter.session, &content.scope.session)
        && governance_passes(filter, &content.governance)
        && filter.tags.iter().all(|tag| content.tags.contains(tag))
        && filter.from.is_none_or(|from| from <= version.time.created)
        && filter.until.is_none_or(|until| version.time.created < until)
        && filter
            .min_confidence
            .is_none_or(|least| content.lifecycle.confidence.is_some_and(|found| found >= least))
        && equal(filter.source.as_ref(), content.provenance.source.as_ref())
        // What has no platform was not held on one; an import names where it came from.
        && equal(filter.platform.as_ref(), content.provenance.provider.as_ref())
        && filter.model.is_none()
        && filter.conversation.is_none_or(|wanted| {
            content.provenance.messages.iter().any(|message| message.conversation == wanted)
        })
        && members_pass(filter, content.body.structured.as_ref(), &[&content.foreign])
}

/// Whether a conversation passes.
#[must_use]
pub fn conversation_passes(filter: &Filter, conversation: &Conversation) -> bool {
    about_talk(filter, conversation)
        && equal(filter.model.as_ref(), conversation.model.as_ref())
        && equal(filter.platform.as_ref(), Some(&conversation.platform))
        && filter.from.is_none_or(|from| from <= conversation.created)
        && filter.until.is_none_or(|until| conversation.created < until)
        && filter.as_of.is_none_or(|at| conversation.created <= at)
        && filter.valid_at.is_none_or(|at| conversation.created <= at)
        && members_pass(filter, None, &[&conversation.foreign])
}

/// Whether a message passes; what it does not say itself, its conversation says for it.
#[must_use]
pub fn message_passes(filter: &Filter, conversation: &Conversation, message: &Message) -> bool {
    let platform = message.platform.as_ref().unwrap_or(&conversation.platform);
    about_talk(filter, conversation)
        && equal(filter.model.as_ref(), message.model.as_ref().or(conversation.model.as_ref()))
        && equal(filter.platform.as_ref(), Some(platform))
        && members_pass(filter, None, &[&message.foreign, &conversation.foreign])
}

/// What a filter may ask of a conversation and of its messages alike.
fn about_talk(filter: &Filter, conversation: &Conversation) -> bool {
    talk_possible(filter)
        && scope_fits(filter, &conversation.class())
        && belongs(filter, &filter.session, &conversation.scope.session)
        && governance_passes(filter, &conversation.governance)
        && filter.tags.iter().all(|tag| conversation.tags.contains(tag))
        && filter.conversation.is_none_or(|wanted| wanted == conversation.id)
}

/// Whether anything that was said can pass: it has no kind, facet, confidence or stated source.
#[must_use]
pub fn talk_possible(filter: &Filter) -> bool {
    filter.kinds.is_empty()
        && filter.facets.is_empty()
        && filter.min_confidence.is_none()
        && filter.source.is_none()
        && status_passes(filter, Status::Active)
}

fn governance_passes(filter: &Filter, declared: &Governance) -> bool {
    (filter.labels.is_empty() || filter.labels.iter().any(|label| declared.labels.contains(label)))
        && (filter.sensitivities.is_empty()
            || declared.sensitivity.is_some_and(|found| filter.sensitivities.contains(&found)))
}

fn any<T: PartialEq>(wanted: &[T], found: &T) -> bool {
    wanted.is_empty() || wanted.contains(found)
}

fn equal<T: PartialEq>(wanted: Option<&T>, found: Option<&T>) -> bool {
    wanted.is_none() || wanted == found
}

/// A member of the structured body decides where there is one, a protocol's own otherwise.
fn members_pass(
    filter: &Filter,
    structured: Option<&serde_json::Map<String, Value>>,
    foreign: &[&Foreign],
) -> bool {
    filter.members.iter().all(|(path, wanted)| {
        if let Some(found) = structured.and_then(|map| member(map, path)) {
            return same(found, wanted);
        }
        foreign.iter().any(|foreign| {
            foreign
                .values()
                .filter_map(Value::as_object)
                .any(|map| member(map, path).is_some_and(|found| same(found, wanted)))
        })
    })
}

fn member<'a>(map: &'a serde_json::Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(found) = map.get(path) {
        return Some(found);
    }
    let (first, rest) = path.split_once('.')?;
    member(map.get(first)?.as_object()?, rest)
}

/// Numbers are equal by value: 1 and 1.0 are the same number to every protocol.
fn same(found: &Value, wanted: &Value) -> bool {
    match (found.as_f64(), wanted.as_f64()) {
        (Some(a), Some(b)) => found == wanted || a == b,
        _ => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use yore_domain::class::{Label, Sensitivity};
    use yore_domain::kind::{Facet, Kind};
    use yore_domain::memory::Draft;
    use yore_domain::{MemoryId, Timestamp};

    use super::*;

    fn version() -> Version {
        let mut draft = Draft::new(Kind::Semantic, "tea, no sugar");
        let content = &mut draft.content;
        content.tags = vec!["drink".into(), "kitchen".into()];
        content.scope.project = Some("home".into());
        content.scope.session = Some("s1".into());
        content.lifecycle.confidence = Some(0.8);
        content.provenance.source = Some("chat".into());
        content.governance.labels = vec![Label::new("food").unwrap()];
        content.body.structured =
            json!({"item": {"name": "tea", "cups": 2}, "a.b": true}).as_object().cloned();
        content.foreign.insert("oamp".into(), json!({"item": {"name": "coffee"}, "level": 3}));
        Version::first(MemoryId::random(), draft, Timestamp::from_micros(1000), None)
    }

    #[test]
    fn every_member_of_a_filter_decides() {
        let version = version();
        let label = |text: &str| Label::new(text).unwrap();
        let at = Timestamp::from_micros;
        let member = |path: &str, value: Value| Filter {
            members: [(path.to_owned(), value)].into(),
            ..Filter::default()
        };
        let base = Filter::default;
        let user = |name: &str| ScopeRule { user: Some(name.into()), ..ScopeRule::default() };
        let project = |name: &str| ScopeRule { project: Some(name.into()), ..ScopeRule::default() };
        let table: Vec<(bool, Filter)> = vec![
            (true, base()),
            (true, Filter { kinds: vec![Kind::Working, Kind::Semantic], ..base() }),
            (false, Filter { kinds: vec![Kind::Working], ..base() }),
            (true, Filter { facets: vec![Facet::Fact], ..base() }),
            (false, Filter { facets: vec![Facet::Entity], ..base() }),
            (true, Filter { session: Some("s1".into()), ..base() }),
            (false, Filter { session: Some("s2".into()), ..base() }),
            (false, Filter { scope: user("ada"), ..base() }),
            (true, Filter { scope: user("ada"), scope_match: ScopeMatch::OrAbsent, ..base() }),
            (false, Filter { scope: project("work"), scope_match: ScopeMatch::OrAbsent, ..base() }),
            (true, Filter { labels: vec![label("x"), label("food")], ..base() }),
            (false, Filter { labels: vec![label("behaviour")], ..base() }),
            (false, Filter { sensitivities: vec![Sensitivity::Internal], ..base() }),
            (true, Filter { tags: vec!["drink".into(), "kitchen".into()], ..base() }),
            (false, Filter { tags: vec!["drink".into(), "work".into()], ..base() }),
            (true, Filter { from: Some(at(1000)), until: Some(at(1001)), ..base() }),
            (false, Filter { from: Some(at(1001)), ..base() }),
            (false, Filter { until: Some(at(1000)), ..base() }),
            (true, Filter { min_confidence: Some(0.8), ..base() }),
            (false, Filter { min_confidence: Some(0.81), ..base() }),
            (true, Filter { source: Some("chat".into()), ..base() }),
            (false, Filter { source: Some("file".into()), ..base() }),
            (false, Filter { platform: Some("chatgpt".into()), ..base() }),
            (false, Filter { model: Some("m".into()), ..base() }),
            (true, member("item.name", json!("tea"))),
            (false, member("item.name", json!("coffee"))),
            (true, member("item.cups", json!(2.0))),
            (true, member("a.b", json!(true))),
            (true, member("level", json!(3))),
            (false, member("absent", json!(null))),
        ];
        for (passes, filter) in table {
            assert_eq!(version_passes(&filter, &version), passes, "{filter:?}");
        }
    }

    #[test]
    fn only_live_memories_pass_unless_asked_otherwise() {
        let asked = Filter { statuses: vec![Status::Tombstoned], ..Filter::default() };
        assert!(status_passes(&Filter::default(), Status::Candidate));
        assert!(!status_passes(&Filter::default(), Status::Tombstoned));
        assert!(status_passes(&asked, Status::Tombstoned));
        assert!(!status_passes(&asked, Status::Active));
    }
}
