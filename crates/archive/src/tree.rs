//! Paths through a conversation that has branches. Sources may hold cycles and orphans.

use std::collections::HashMap;

use yore_domain::Timestamp;

/// A place in the tree; not every one was spoken at.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) key: String,
    pub(crate) parent: Option<String>,
    pub(crate) at: Option<Timestamp>,
    pub(crate) spoken: bool,
}

/// Which leaf ends the active path when the source does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// The deepest one, the newest of equals.
    Deepest,
    /// The newest one.
    Newest,
}

/// The order to read a tree in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paths {
    /// Places of the active path, from the root.
    pub(crate) active: Vec<usize>,
    /// All others, depth first.
    pub(crate) left: Vec<usize>,
    /// For each place, the nearest one above it that was spoken at.
    pub(crate) above: Vec<Option<usize>>,
}

/// Finds the active path and the order of the rest. Every place is returned exactly once.
pub(crate) fn paths(nodes: &[Node], current: Option<&str>, leaf: Leaf) -> Paths {
    let mut places = HashMap::with_capacity(nodes.len());
    for (place, node) in nodes.iter().enumerate() {
        places.entry(node.key.as_str()).or_insert(place);
    }
    let parents: Vec<Option<usize>> = nodes
        .iter()
        .enumerate()
        .map(|(place, node)| {
            let parent = *places.get(node.parent.as_deref()?)?;
            (parent != place).then_some(parent)
        })
        .collect();
    let mut children = vec![Vec::new(); nodes.len()];
    for (place, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent {
            children[*parent].push(place);
        }
    }
    for list in &mut children {
        list.sort_by_key(|place| (nodes[*place].at, *place));
    }

    let order = depth_first(nodes, &parents, &children);
    let named = current.and_then(|key| places.get(key).copied());
    let end = named.or_else(|| best_leaf(nodes, &parents, &children, leaf));
    let mut on_path = vec![false; nodes.len()];
    let mut active = Vec::new();
    let mut at = end;
    while let Some(place) = at.filter(|place| !on_path[*place]) {
        on_path[place] = true;
        active.push(place);
        at = parents[place];
    }
    active.reverse();
    let left = order.into_iter().filter(|place| !on_path[*place]).collect();
    Paths { active, left, above: spoken_above(nodes, &parents) }
}

/// All places: those under true roots first, then orphans, then what only a cycle reaches.
fn depth_first(nodes: &[Node], parents: &[Option<usize>], children: &[Vec<usize>]) -> Vec<usize> {
    let (mut seen, mut order) = (vec![false; nodes.len()], Vec::with_capacity(nodes.len()));
    let mut visit = |root: usize| {
        let mut waiting = vec![root];
        while let Some(place) = waiting.pop() {
            if !std::mem::replace(&mut seen[place], true) {
                order.push(place);
                waiting.extend(children[place].iter().rev());
            }
        }
    };
    let top = |place: &usize| parents[*place].is_none();
    (0..nodes.len()).filter(top).filter(|p| nodes[*p].parent.is_none()).for_each(&mut visit);
    (0..nodes.len()).filter(top).for_each(&mut visit);
    (0..nodes.len()).for_each(&mut visit);
    order
}

fn best_leaf(
    nodes: &[Node],
    parents: &[Option<usize>],
    children: &[Vec<usize>],
    leaf: Leaf,
) -> Option<usize> {
    // Depth under a true root; orphans and cycles have none and are never chosen before others.
    let mut depth = vec![0_usize; nodes.len()];
    let mut waiting: Vec<usize> = (0..nodes.len())
        .filter(|place| parents[*place].is_none() && nodes[*place].parent.is_none())
        .collect();
    waiting.iter().for_each(|place| depth[*place] = 1);
    while let Some(place) = waiting.pop() {
        for child in &children[place] {
            if depth[*child] == 0 {
                depth[*child] = depth[place] + 1;
                waiting.push(*child);
            }
        }
    }
    let rank = |place: &usize| {
        let (depth, node) = (depth[*place], &nodes[*place]);
        let deep = if leaf == Leaf::Deepest { depth } else { usize::from(depth > 0) };
        (deep, node.at, *place)
    };
    (0..nodes.len())
        .filter(|place| nodes[*place].spoken && children[*place].is_empty())
        .max_by_key(rank)
        .or_else(|| (0..nodes.len()).filter(|place| nodes[*place].spoken).max_by_key(rank))
}

/// Each place is walked over once, so that a long chain of silent ones costs no more than itself.
fn spoken_above(nodes: &[Node], parents: &[Option<usize>]) -> Vec<Option<usize>> {
    let mut known: Vec<Option<Option<usize>>> = vec![None; nodes.len()];
    let mut on_walk = vec![false; nodes.len()];
    for start in 0..nodes.len() {
        let (mut walked, mut at) = (Vec::new(), start);
        let found = loop {
            if let Some(found) = known[at] {
                break found;
            }
            on_walk[at] = true;
            walked.push(at);
            match parents[at] {
                None => break None,
                Some(parent) if nodes[parent].spoken => break Some(parent),
                Some(parent) if on_walk[parent] => break None,
                Some(parent) => at = parent,
            }
        };
        for place in walked {
            known[place] = Some(found);
            on_walk[place] = false;
        }
    }
    known.into_iter().map(Option::flatten).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nodes(edges: &[(&str, Option<&str>, i64)]) -> Vec<Node> {
        edges
            .iter()
            .map(|(key, parent, at)| Node {
                key: (*key).to_owned(),
                parent: parent.map(str::to_owned),
                at: Some(Timestamp::from_micros(*at)),
                spoken: !key.starts_with('_'),
            })
            .collect()
    }

    #[test]
    fn the_path_ends_at_the_named_leaf_or_at_the_best_one() {
        let tree = nodes(&[
            ("_r", None, 0),
            ("a", Some("_r"), 1),
            ("b", Some("a"), 2),
            ("c", Some("b"), 3),
            ("d", Some("a"), 9),
            ("lost", Some("gone"), 99),
        ]);
        let path = |current, leaf| paths(&tree, current, leaf).active;
        assert_eq!(path(Some("d"), Leaf::Newest), [0, 1, 4]);
        assert_eq!(path(None, Leaf::Deepest), [0, 1, 2, 3]);
        assert_eq!(path(None, Leaf::Newest), [0, 1, 4]);
        assert_eq!(path(Some("nowhere"), Leaf::Deepest), [0, 1, 2, 3]);
        let found = paths(&tree, Some("d"), Leaf::Newest);
        assert_eq!(found.left, [2, 3, 5]);
        assert_eq!(found.above, [None, None, Some(1), Some(2), Some(1), None]);
    }

    #[test]
    fn omp_060_cycles_end() {
        let ring = nodes(&[("a", Some("b"), 1), ("b", Some("a"), 2), ("c", Some("c"), 3)]);
        let found = paths(&ring, Some("a"), Leaf::Deepest);
        assert_eq!(found.active.len() + found.left.len(), 3);
        let silent = nodes(&[("_a", Some("_b"), 1), ("_b", Some("_a"), 2)]);
        assert_eq!(paths(&silent, None, Leaf::Newest).left.len(), 2);
    }

    proptest! {
        #[test]
        fn every_place_is_met_exactly_once(
            edges in prop::collection::vec((0_u8..12, prop::option::of(0_u8..14), 0_i64..5), 0..16),
            current in prop::option::of(0_u8..14),
            deepest: bool,
        ) {
            let tree: Vec<Node> = edges
                .iter()
                .map(|(key, parent, at)| Node {
                    key: key.to_string(),
                    parent: parent.map(|parent| parent.to_string()),
                    at: Some(Timestamp::from_micros(*at)),
                    spoken: key % 3 != 0,
                })
                .collect();
            let leaf = if deepest { Leaf::Deepest } else { Leaf::Newest };
            let found = paths(&tree, current.map(|c| c.to_string()).as_deref(), leaf);
            let mut all: Vec<usize> = found.active.iter().chain(&found.left).copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..tree.len()).collect::<Vec<_>>());
            for above in found.above.into_iter().flatten() {
                prop_assert!(tree[above].spoken);
            }
        }
    }
}
