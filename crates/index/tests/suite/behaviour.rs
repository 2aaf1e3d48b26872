//! What a search finds, filters and surrounds.

use yore_index::{ClassId, DocumentError, Index, Meta, STATIC_DIMS, Vector};

use crate::common::{self, DENSE_DIMS, Draft, corpus, numbered, put_all, search_where, values};

const CLASS: [ClassId; 1] = [ClassId(1)];

fn keys(index: &Index, query: &Draft, filter: &dyn Fn(u64, &Meta) -> bool) -> Vec<u64> {
    let mut keys: Vec<u64> = search_where(index, &CLASS, query, true, 10, filter)
        .list
        .iter()
        .map(|one| one.key)
        .collect();
    keys.sort_unstable();
    keys
}

fn said(key: u64, text: &str, session: u64, ordinal: u32) -> Draft {
    Draft { text: text.to_owned(), session, ordinal, tokens: Vec::new(), ..numbered(key, 1) }
}

#[test]
fn a_refused_document_is_never_returned_even_as_a_neighbour() {
    let drafts: Vec<Draft> = (1..200).map(|n| numbered(n, 1)).collect();
    let index = corpus(&drafts);
    for n in 0..20 {
        let found = keys(&index, &numbered(900 + n, 1), &|key, _| key % 7 == 3);
        assert!(!found.is_empty());
        assert!(found.iter().all(|key| key % 7 == 3), "{found:?}");
    }
    assert!(keys(&index, &numbered(5, 1), &|_, _| false).is_empty());
}

#[test]
fn a_narrow_filter_still_finds_the_nearest_among_many_rows() {
    let mut drafts: Vec<Draft> = (0..9000).map(|n| numbered(n, 1)).collect();
    for draft in &mut drafts {
        draft.has_dense = true;
        draft.session = 0;
        draft.text = String::new();
    }
    let index = corpus(&drafts);
    let filter = |key: u64, _: &Meta| key % 300 == 17;
    let query = Draft { text: String::new(), ..numbered(17 + 300 * 4, 1) };
    let found = search_where(&index, &CLASS, &query, true, 10, &filter);
    assert_eq!(found.list.len(), 10);
    let best =
        found.list.iter().max_by(|a, b| a.dense.unwrap().total_cmp(&b.dense.unwrap())).unwrap();
    assert_eq!(best.key, 17 + 300 * 4);
    assert!(best.dense.unwrap() > 0.999);
}

#[test]
fn very_many_without_a_dense_vector_are_found_by_their_static_one() {
    let mut drafts: Vec<Draft> = (0..9000).map(|n| numbered(n, 1)).collect();
    for draft in &mut drafts {
        draft.has_dense = draft.key % 4 == 0;
        draft.session = 0;
        draft.text = String::new();
    }
    let index = corpus(&drafts);
    assert!(index.pending().count() > 6000);
    for narrow in [false, true] {
        let key = 17 + 300 * 4;
        let query = Draft { text: String::new(), ..numbered(key, 1) };
        let filter = |key: u64, _: &Meta| !narrow || key % 300 == 17;
        let found = search_where(&index, &CLASS, &query, true, 10, &filter).list;
        let waiting: Vec<_> = found.iter().filter(|one| one.dense.is_none()).collect();
        assert_eq!(waiting.len(), 10);
        assert!(waiting.iter().all(|one| one.origin.vector && one.key % 4 != 0));
        let best = waiting.iter().max_by(|a, b| a.statics.total_cmp(&b.statics)).unwrap();
        assert_eq!(best.key, key);
        assert!(best.statics > 0.999);
    }
}

#[test]
fn neighbours_come_along_and_point_at_each_other() {
    let mut drafts = vec![
        said(1, "completely unrelated words", 4, 0),
        said(2, "we spoke of zebras", 4, 1),
        said(3, "nothing to see", 4, 2),
        said(4, "elsewhere", 5, 2),
    ];
    for draft in &mut drafts {
        draft.has_dense = false;
    }
    let index = corpus(&drafts);
    let found = index.search(&yore_index::Search {
        classes: &CLASS,
        text: "zebra",
        tokens: &[],
        statics: None,
        dense: None,
        depth: 10,
        filter: &|_, _| true,
        token_table: None,
        context: true,
    });
    let at = |key| found.list.iter().position(|one| one.key == key);
    let (before, hit, after) = (at(1).unwrap(), at(2).unwrap(), at(3).unwrap());
    assert_eq!(at(4), None);
    assert!(
        found.list[hit].lexical > 0.0
            && found.list[hit].coverage == 1.0
            && found.list[hit].origin.lexical
    );
    assert_eq!(found.list[hit].neighbours, [None, Some(before as u32), Some(after as u32), None]);
    assert_eq!(found.list[before].neighbours[2], Some(hit as u32));
    assert_eq!(found.list[after].neighbours[1], Some(hit as u32));
    assert!(found.list[before].session > 0.0 && !found.list[before].origin.lexical);
}

#[test]
fn documents_without_a_dense_vector_are_found_by_their_static_one() {
    let mut drafts: Vec<Draft> = (1..40).map(|n| numbered(n, 1)).collect();
    for draft in &mut drafts {
        draft.has_dense = draft.key != 8;
        draft.text = String::new();
        draft.session = 0;
    }
    let mut index = corpus(&drafts);
    let query = Draft { text: String::new(), ..numbered(8, 1) };
    assert_eq!(index.pending().collect::<Vec<_>>(), [8]);
    let found = common::search(&index, &CLASS, &query, true);
    let one = found.list.iter().find(|one| one.key == 8).unwrap();
    assert!(one.dense.is_none() && one.statics > 0.999 && one.origin.vector);
    let dense = values(8 + 77, DENSE_DIMS);
    assert_eq!(index.set_dense(8, Some(Vector { values: &dense.0, scale: dense.1 })), Ok(true));
    assert_eq!(index.pending().count(), 0);
    let found = common::search(&index, &CLASS, &query, true);
    assert!(found.list.iter().find(|one| one.key == 8).unwrap().dense.unwrap() > 0.999);
}

#[test]
fn replacing_moving_and_changing_documents() {
    let mut index = corpus(&[said(1, "likes tea", 0, 0)]);
    put_all(&mut index, &[said(1, "likes coffee", 0, 0)]);
    assert_eq!(index.len(), 1);
    let lexical = |index: &Index, text: &str, class: u32| {
        let query = Draft { text: text.to_owned(), ..numbered(3, 1) };
        common::search_where(index, &[ClassId(class)], &query, false, 5, &|_, _| true)
            .list
            .iter()
            .map(|c| c.lexical)
            .sum::<f32>()
    };
    assert_eq!(lexical(&index, "tea", 1), 0.0);
    assert!(lexical(&index, "coffee", 1) > 0.0);
    assert_eq!(index.reclass(1, ClassId(2)), Ok(true));
    assert_eq!(lexical(&index, "coffee", 1), 0.0);
    assert!(lexical(&index, "coffee", 2) > 0.0);
    assert_eq!(index.classes().collect::<Vec<_>>(), [(ClassId(2), 1)]);
    let meta = Meta { session: 7, ordinal: 3, kind: 9, ..Meta::default() };
    assert_eq!(index.set_meta(1, meta), Ok(true));
    assert_eq!(index.meta(1), Some(&meta));
    assert_eq!(index.reclass(5, ClassId(2)), Ok(false));
    assert!(index.remove(1) && index.is_empty());
    assert_eq!(index.classes().count(), 0);
}

#[test]
fn malformed_documents_change_nothing() {
    let mut index = corpus(&[said(1, "tea", 0, 0)]);
    let good = values(1, STATIC_DIMS);
    let mut document = yore_index::Document {
        key: 1,
        id: [1; 16],
        class: ClassId(1),
        text: "coffee",
        meta: Meta::default(),
        tokens: &[],
        statics: Vector { values: &good.0[..10], scale: 1.0 },
        dense: None,
    };
    assert_eq!(
        index.put(&document),
        Err(DocumentError::Dimensions { expected: STATIC_DIMS, found: 10 })
    );
    document.statics = Vector { values: &good.0, scale: f32::NAN };
    assert_eq!(index.put(&document), Err(DocumentError::NotFinite));
    document.statics.scale = 1.0;
    document.meta.weight = f32::INFINITY;
    assert_eq!(index.put(&document), Err(DocumentError::NotFinite));
    let query = Draft { text: "tea".to_owned(), ..numbered(3, 1) };
    assert!(common::search(&index, &CLASS, &query, false).list[0].lexical > 0.0);
}
