//! Where each document is, by its key.
//!
//! Keys are the row ids of one table and lie close together, so they are kept by the page: a map
//! with an entry for each would take four times the memory.

use rustc_hash::FxHashMap;

use crate::document::ClassId;

/// Keys of one page.
const PAGE: u64 = 64;
/// Stands for a key that is not there; slots are numbered far below.
const NOWHERE: (ClassId, u32) = (ClassId(u32::MAX), u32::MAX);

type Page = [(ClassId, u32); PAGE as usize];

/// Classes and slots by key.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pages: FxHashMap<u64, Box<Page>>,
    count: usize,
}

impl Places {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn get(&self, key: u64) -> Option<(ClassId, u32)> {
        let place = self.pages.get(&(key / PAGE))?[(key % PAGE) as usize];
        (place != NOWHERE).then_some(place)
    }

    pub(crate) fn insert(&mut self, key: u64, class: ClassId, slot: u32) {
        let page =
            self.pages.entry(key / PAGE).or_insert_with(|| Box::new([NOWHERE; PAGE as usize]));
        let before = std::mem::replace(&mut page[(key % PAGE) as usize], (class, slot));
        self.count += usize::from(before == NOWHERE);
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<(ClassId, u32)> {
        let page = self.pages.get_mut(&(key / PAGE))?;
        let before = std::mem::replace(&mut page[(key % PAGE) as usize], NOWHERE);
        if page.iter().all(|place| *place == NOWHERE) {
            self.pages.remove(&(key / PAGE));
        }
        self.count -= usize::from(before != NOWHERE);
        (before != NOWHERE).then_some(before)
    }

    pub(crate) fn memory(&self) -> usize {
        self.pages.capacity() * 8 / 7 * 17 + self.pages.len() * (size_of::<Page>() + 16)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn places_are_those_of_a_map(changes in vec((0u64..300, any::<bool>(), 0u32..9), 0..400)) {
            let (mut places, mut map) = (Places::default(), BTreeMap::new());
            for (key, there, slot) in changes {
                if there {
                    places.insert(key, ClassId(slot), slot);
                    map.insert(key, (ClassId(slot), slot));
                } else {
                    prop_assert_eq!(places.remove(key), map.remove(&key));
                }
                prop_assert_eq!(places.len(), map.len());
            }
            for key in 0..300 {
                prop_assert_eq!(places.get(key), map.get(&key).copied());
            }
            let pages: std::collections::BTreeSet<u64> = map.keys().map(|key| key / PAGE).collect();
            prop_assert_eq!(places.pages.len(), pages.len(), "an empty page goes");
        }
    }
}
