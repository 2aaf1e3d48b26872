//! The conversation around a candidate: its neighbours in the session and the session as a whole.

use rustc_hash::FxHashMap;

use crate::document::Meta;
use crate::lexical::Lexical;
use crate::partition::Partition;

/// Where neighbours are looked for, in ordinals from the candidate.
pub const NEIGHBOUR_OFFSETS: [i64; 4] = [-2, -1, 1, 2];

/// A document by partition (among the selected ones) and slot.
pub(crate) type Place = (u32, u32);

/// Returns the admitted neighbours of a document; of several at one ordinal, the one with the lowest id.
pub(crate) fn neighbours(
    parts: &[&Partition],
    of: Place,
    admit: &dyn Fn(u64, &Meta) -> bool,
) -> [Option<Place>; NEIGHBOUR_OFFSETS.len()] {
    let meta = &parts[of.0 as usize].docs[of.1 as usize].meta;
    let mut found: [Option<Place>; NEIGHBOUR_OFFSETS.len()] = [None; NEIGHBOUR_OFFSETS.len()];
    if meta.session == 0 {
        return found;
    }
    let first = meta.ordinal.saturating_sub(2);
    let last = meta.ordinal.saturating_add(2);
    for (at, part) in (0u32..).zip(parts) {
        let Some((_, session)) = part.session(meta.session) else { continue };
        let start = session.members.partition_point(|member| member.0 < first);
        for &(ordinal, slot) in
            session.members[start..].iter().take_while(|member| member.0 <= last)
        {
            let offset = i64::from(ordinal) - i64::from(meta.ordinal);
            let Some(place) = NEIGHBOUR_OFFSETS.iter().position(|&wanted| wanted == offset) else {
                continue;
            };
            let doc = &part.docs[slot as usize];
            let closer = found[place].is_none_or(|(part, slot)| {
                let other = &parts[part as usize].docs[slot as usize];
                (doc.id, doc.key) < (other.id, other.key)
            });
            if closer && admit(doc.key, &doc.meta) {
                found[place] = Some((at, slot));
            }
        }
    }
    found
}

/// Scores the sessions of the given documents as whole texts, by session id.
pub(crate) fn sessions(
    parts: &[&Partition],
    lexical: &Lexical<'_>,
    places: &[Place],
) -> FxHashMap<u64, f32> {
    let mut marks: Vec<Vec<u32>> = parts.iter().map(|part| vec![0; part.sessions.len()]).collect();
    let mut order: FxHashMap<u64, usize> = FxHashMap::default();
    let mut lengths: Vec<u64> = Vec::new();
    for &(part, slot) in places {
        let id = parts[part as usize].docs[slot as usize].meta.session;
        if id == 0 || order.contains_key(&id) {
            continue;
        }
        let mut length = 0;
        for (at, part) in parts.iter().enumerate() {
            if let Some((session, whole)) = part.session(id) {
                marks[at][session as usize] =
                    u32::try_from(lengths.len() + 1).expect("invariant: few candidates");
                length += whole.length;
            }
        }
        order.insert(id, lengths.len());
        lengths.push(length);
    }
    let scores = lexical.sessions(&marks, &lengths);
    order.into_iter().map(|(id, at)| (id, scores[at])).collect()
}
