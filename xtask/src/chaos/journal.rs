//! What the clients know: what they said, what was acknowledged, and what they were shown.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::random::Random;

/// The beginning of every mark: of what the confined client says, and of what it must not see.
pub(super) const OWN: &str = "ownmark";
pub(super) const HIDDEN: &str = "hidmark";

/// The words that facts are made of. They are about nothing, so that hardly two facts are alike.
const WORDS: [&str; 60] = [
    "amber", "anchor", "apple", "arrow", "barley", "basket", "beacon", "blanket", "bridge",
    "bronze", "candle", "canyon", "carpet", "cedar", "chimney", "cobalt", "copper", "cotton",
    "cradle", "crystal", "desert", "dolphin", "dragon", "engine", "falcon", "feather", "fiddle",
    "forest", "garlic", "glacier", "granite", "hammer", "harbour", "hazel", "helmet", "honey",
    "island", "jacket", "jasmine", "kettle", "ladder", "lantern", "lemon", "magnet", "marble",
    "meadow", "mirror", "needle", "oyster", "paddle", "pepper", "pigeon", "planet", "quarry",
    "ribbon", "saddle", "silver", "thunder", "velvet", "walnut",
];

/// Something a client says, once.
#[derive(Clone, Debug)]
pub(super) struct Fact {
    /// Which client.
    pub(super) client: usize,
    /// Its words without the mark, to ask for it without saying what must not be said.
    pub(super) words: String,
    /// What is in no other fact.
    pub(super) mark: String,
    /// The id the client gives it, where the protocol lets clients.
    pub(super) id: String,
    /// The id of the operation, the same each time it is tried.
    pub(super) operation: String,
    /// The conversation it is said in, and whether it begins it.
    pub(super) talk: Option<(String, bool)>,
    /// The id it was acknowledged with.
    pub(super) acknowledged: Option<String>,
}

impl Fact {
    pub(super) fn new(client: usize, number: usize, confined: bool, random: &mut Random) -> Self {
        let words: Vec<&str> = (0..6).map(|_| *random.pick(&WORDS)).collect();
        let prefix = if confined { OWN } else { HIDDEN };
        Self {
            client,
            words: words.join(" "),
            mark: format!("{prefix}{client}n{number}x{:06x}", random.below(1 << 24)),
            id: random.uuid(),
            operation: random.uuid(),
            talk: None,
            acknowledged: None,
        }
    }

    /// What it says.
    pub(super) fn text(&self) -> String {
        format!("{} {}", self.words, self.mark)
    }
}

/// What all clients write down.
#[derive(Debug, Default)]
pub(super) struct Journal {
    facts: Mutex<Vec<Fact>>,
    faults: Mutex<Vec<String>>,
    leaks: Mutex<Vec<String>>,
    looks: AtomicUsize,
    own: AtomicUsize,
    again: AtomicUsize,
}

/// A poisoned lock holds what was written before somebody panicked, which still counts.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Journal {
    /// Notes that something is about to be said; returns its place.
    pub(super) fn begin(&self, fact: Fact) -> usize {
        let mut facts = locked(&self.facts);
        facts.push(fact);
        facts.len() - 1
    }

    /// Notes that it was acknowledged.
    pub(super) fn acknowledge(&self, at: usize, id: String) {
        if let Some(fact) = locked(&self.facts).get_mut(at) {
            fact.acknowledged = Some(id);
        }
    }

    /// Notes that a whole answer said to come again.
    pub(super) fn again(&self) {
        self.again.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes an answer that no fault explains.
    pub(super) fn fault(&self, what: String) {
        locked(&self.faults).push(what);
    }

    /// Notes what the confined client was shown. `door` says where it looked.
    pub(super) fn look(&self, door: &str, shown: &str) {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.own.fetch_add(usize::from(shown.contains(OWN)), Ordering::Relaxed);
        for mark in marks(shown, HIDDEN) {
            locked(&self.leaks).push(format!("{mark} through {door}"));
        }
    }

    /// All facts as they stand.
    pub(super) fn facts(&self) -> Vec<Fact> {
        locked(&self.facts).clone()
    }

    /// The last fact of another client that was acknowledged.
    pub(super) fn last_of_others(&self, client: usize) -> Option<Fact> {
        let facts = locked(&self.facts);
        let theirs = |fact: &&Fact| fact.client != client && fact.acknowledged.is_some();
        facts.iter().rev().find(theirs).cloned()
    }

    pub(super) fn acknowledged(&self) -> usize {
        locked(&self.facts).iter().filter(|fact| fact.acknowledged.is_some()).count()
    }

    pub(super) fn faults(&self) -> Vec<String> {
        locked(&self.faults).clone()
    }

    pub(super) fn leaks(&self) -> Vec<String> {
        locked(&self.leaks).clone()
    }

    /// How often the confined client looked, and how often it saw something of its own.
    pub(super) fn looks(&self) -> (usize, usize) {
        (self.looks.load(Ordering::Relaxed), self.own.load(Ordering::Relaxed))
    }

    /// How many whole answers said to come again.
    pub(super) fn retries(&self) -> usize {
        self.again.load(Ordering::Relaxed)
    }
}

/// The marks of a sort in a text.
pub(super) fn marks<'a>(text: &'a str, prefix: &str) -> Vec<&'a str> {
    let found = text.match_indices(prefix).map(|(at, _)| &text[at..]);
    let end = |rest: &str| rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    found.map(|rest| &rest[..end(rest)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_of_somebody_else_is_a_leak_and_an_own_one_is_not() {
        let (journal, mut random) = (Journal::default(), Random::new(1));
        let hidden = Fact::new(0, 1, false, &mut random);
        let own = Fact::new(7, 1, true, &mut random);
        journal.look("search", &format!("{{\"text\":\"{}\"}}", own.text()));
        assert_eq!((journal.looks(), journal.leaks().len()), ((1, 1), 0));
        journal.look("search", &format!("{{\"text\":\"{}\"}}", hidden.text()));
        assert_eq!(journal.leaks(), [format!("{} through search", hidden.mark)]);
        // Its words alone tell nothing: every fact is made of them.
        journal.look("search", &hidden.words);
        assert_eq!(journal.leaks().len(), 1);
    }

    #[test]
    fn only_what_others_got_acknowledged_is_looked_for() {
        let (journal, mut random) = (Journal::default(), Random::new(1));
        let mine = journal.begin(Fact::new(7, 1, true, &mut random));
        let theirs = journal.begin(Fact::new(0, 1, false, &mut random));
        journal.acknowledge(mine, "a".into());
        assert!(journal.last_of_others(7).is_none());
        journal.acknowledge(theirs, "b".into());
        assert_eq!(journal.last_of_others(7).unwrap().acknowledged.as_deref(), Some("b"));
        assert_eq!(journal.acknowledged(), 2);
    }
}
