//! A document outside the selected classes changes no bit of an answer.

use crate::common;

use crate::common::{Draft, corpus, draft, drafts, encode, put_all};
use proptest::prelude::*;
use yore_index::{ClassId, Index};

const VISIBLE: [ClassId; 2] = [ClassId(3), ClassId(8)];
const HIDDEN: [u32; 3] = [1, 5, 9];

fn visible(mut drafts: Vec<Draft>) -> Vec<Draft> {
    for draft in &mut drafts {
        draft.class = VISIBLE[draft.class as usize % 2].0;
    }
    drafts
}

fn hidden(mut drafts: Vec<Draft>) -> Vec<Draft> {
    for (at, draft) in drafts.iter_mut().enumerate() {
        draft.class = HIDDEN[draft.class as usize % 3];
        draft.key = 1_000_000 + at as u64;
        draft.id[0] = 0xff;
    }
    drafts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn hidden_documents_change_no_bit(
        seen in drafts(1..60),
        unseen in drafts(0..60),
        removed in drafts(0..10),
        query in draft(),
        with_dense in any::<bool>(),
    ) {
        let (seen, unseen, removed) = (visible(seen), hidden(unseen), hidden(removed));
        let alone = corpus(&seen);
        let mut mixed = Index::new(common::DENSE_DIMS);
        // Hidden documents come before, between and after the visible ones, and some go again.
        put_all(&mut mixed, &removed);
        for (at, draft) in seen.iter().enumerate() {
            if let Some(other) = unseen.get(at) {
                put_all(&mut mixed, std::slice::from_ref(other));
            }
            put_all(&mut mixed, std::slice::from_ref(draft));
        }
        for draft in &removed {
            mixed.remove(draft.key);
        }
        put_all(&mut mixed, &unseen);
        let (a, b) = (common::search(&alone, &VISIBLE, &query, with_dense), common::search(&mixed, &VISIBLE, &query, with_dense));
        prop_assert_eq!(encode(&a), encode(&b));
    }

    #[test]
    fn insertion_order_and_keys_change_nothing_but_the_keys(
        seen in drafts(1..60),
        query in draft(),
        with_dense in any::<bool>(),
    ) {
        let seen = visible(seen);
        let mut turned: Vec<Draft> = seen.iter().rev().cloned().collect();
        let count = turned.len() as u64;
        for draft in &mut turned {
            draft.key = count * 2 - draft.key;
        }
        let mut a = common::search(&corpus(&seen), &VISIBLE, &query, with_dense);
        let mut b = common::search(&corpus(&turned), &VISIBLE, &query, with_dense);
        for candidate in a.list.iter_mut().chain(&mut b.list) {
            candidate.key = 0;
        }
        prop_assert_eq!(encode(&a), encode(&b));
    }

    #[test]
    fn what_is_removed_leaves_no_trace(
        seen in drafts(1..40),
        gone in drafts(1..40),
        query in draft(),
    ) {
        let seen = visible(seen);
        let mut gone = visible(gone);
        for draft in &mut gone {
            draft.key += 500;
            draft.id[0] = 0xee;
        }
        let mut index = Index::new(common::DENSE_DIMS);
        put_all(&mut index, &gone[..gone.len() / 2]);
        put_all(&mut index, &seen);
        put_all(&mut index, &gone[gone.len() / 2..]);
        for draft in &gone {
            prop_assert!(index.remove(draft.key));
            prop_assert!(!index.remove(draft.key));
        }
        let never = corpus(&seen);
        prop_assert_eq!(
            encode(&common::search(&index, &VISIBLE, &query, true)),
            encode(&common::search(&never, &VISIBLE, &query, true))
        );
        let (mut a, mut b) = (Vec::new(), Vec::new());
        index.snapshot(&mut a).unwrap();
        never.snapshot(&mut b).unwrap();
        prop_assert_eq!(a, b);
    }
}

#[test]
fn many_rows_take_the_sign_bit_path_and_stay_isolated() {
    let mut seen: Vec<Draft> =
        (0..21_000).map(|n| common::numbered(n, VISIBLE[n as usize % 2].0)).collect();
    for draft in &mut seen {
        draft.has_dense = true;
    }
    let alone = corpus(&seen);
    let mut mixed = corpus(&seen);
    let unseen: Vec<Draft> = (0..3000).map(|n| common::numbered(100_000 + n, HIDDEN[0])).collect();
    put_all(&mut mixed, &unseen);
    for n in 0..20 {
        let query = common::numbered(700_000 + n, 0);
        let (a, b) = (
            common::search(&alone, &VISIBLE, &query, true),
            common::search(&mixed, &VISIBLE, &query, true),
        );
        assert!(a.list.len() >= 100);
        assert_eq!(encode(&a), encode(&b));
    }
}
