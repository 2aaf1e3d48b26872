//! The paths through a conversation that has branches: one is read at a time, and wherever it
//! parts from another one can switch.

use std::collections::{HashMap, HashSet};

use yore_domain::MessageId;
use yore_domain::conversation::Message;

/// How the messages of a conversation follow each other, by their places in it.
#[derive(Debug)]
pub(crate) struct Branches<'a> {
    messages: &'a [Message],
    parents: Vec<Option<usize>>,
    /// What follows a message; under `None` what follows nothing.
    children: HashMap<Option<usize>, Vec<usize>>,
}

impl<'a> Branches<'a> {
    /// Nothing where nobody says what follows what, or nothing ever parts.
    pub(crate) fn of(messages: &'a [Message]) -> Option<Self> {
        let places: HashMap<MessageId, usize> =
            messages.iter().enumerate().map(|(place, message)| (message.id, place)).collect();
        let said = |message: &Message| places.get(&message.parent?).copied();
        if !messages.iter().any(|message| said(message).is_some()) {
            return None;
        }
        let mut parents = Vec::with_capacity(messages.len());
        let mut last = None;
        for (place, message) in messages.iter().enumerate() {
            // What was added later without a word about its parent goes on where the talk was.
            let parent = said(message).or(if message.off_path { None } else { last });
            parents.push(parent.filter(|parent| *parent != place));
            if !message.off_path {
                last = Some(place);
            }
        }
        let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (place, parent) in parents.iter().enumerate() {
            children.entry(*parent).or_default().push(place);
        }
        let parts = children.values().any(|some| some.len() > 1);
        parts.then_some(Self { messages, parents, children })
    }

    /// The path through a message, or the one that was not left.
    pub(crate) fn path(&self, through: Option<usize>) -> Vec<usize> {
        let mut seen = HashSet::new();
        let mut path = Vec::new();
        let mut above = through;
        // Sources may hold rings.
        while let Some(place) = above.filter(|place| seen.insert(*place)) {
            path.push(place);
            above = self.parents.get(place).copied().flatten();
        }
        path.reverse();
        let mut at = through;
        while let Some(next) = self.onwards(at).filter(|place| seen.insert(*place)) {
            path.push(next);
            at = Some(next);
        }
        path
    }

    /// What follows by itself: what was not left, or else what was said last.
    fn onwards(&self, at: Option<usize>) -> Option<usize> {
        let some = self.children.get(&at)?;
        let kept = some.iter().find(|place| !self.messages[**place].off_path);
        kept.or(some.last()).copied()
    }

    /// All that was said at the place of a message, itself among them.
    pub(crate) fn instead(&self, place: usize) -> &[usize] {
        let parent = self.parents.get(place).copied().flatten();
        self.children.get(&parent).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use yore_domain::Timestamp;
    use yore_domain::conversation::Role;

    use super::*;

    /// Messages by their parents; those that are marked were left.
    fn talk(shape: &[(Option<usize>, bool)]) -> Vec<Message> {
        let ids: Vec<MessageId> = shape.iter().map(|_| MessageId::random()).collect();
        let one = |(place, (parent, left)): (usize, &(Option<usize>, bool))| Message {
            id: ids[place],
            role: Role::User,
            content: json!(""),
            text: String::new(),
            at: Timestamp::from_micros(0),
            model: None,
            platform: None,
            parent: parent.map(|parent| ids[parent]),
            off_path: *left,
            attachments: Vec::new(),
            foreign: Default::default(),
        };
        shape.iter().enumerate().map(one).collect()
    }

    #[test]
    fn a_path_goes_through_what_was_chosen_and_else_where_the_talk_went() {
        // 0 ─ 1 ─ 2        on the path
        //   └ 3 ─ 4        left
        //       └ 5        left, and said last
        let messages = talk(&[
            (None, false),
            (Some(0), false),
            (Some(1), false),
            (Some(0), true),
            (Some(3), true),
            (Some(3), true),
        ]);
        let branches = Branches::of(&messages).unwrap();
        assert_eq!(branches.path(None), [0, 1, 2]);
        assert_eq!(branches.path(Some(3)), [0, 3, 5]);
        assert_eq!(branches.path(Some(4)), [0, 3, 4]);
        assert_eq!(branches.path(Some(1)), [0, 1, 2]);
        assert_eq!(branches.instead(3), [1, 3]);
        assert_eq!(branches.instead(0), [0]);
    }

    #[test]
    fn a_first_message_that_was_edited_is_a_branch_and_what_came_later_goes_on() {
        let messages = talk(&[(None, true), (None, false), (Some(1), false), (None, false)]);
        let branches = Branches::of(&messages).unwrap();
        assert_eq!(branches.path(None), [1, 2, 3]);
        assert_eq!((branches.path(Some(0)), branches.instead(1)), (vec![0], &[0, 1][..]));
    }

    #[test]
    fn rings_end_and_plain_talks_have_no_branches() {
        let messages = talk(&[(Some(1), false), (Some(0), false), (Some(0), true)]);
        let branches = Branches::of(&messages).unwrap();
        assert_eq!(branches.path(Some(2)).len(), 3);
        assert!(branches.path(None).is_empty());
        assert!(Branches::of(&talk(&[(None, false), (None, false), (None, true)])).is_none());
        assert!(Branches::of(&talk(&[(None, false), (Some(0), false)])).is_none());
    }
}
