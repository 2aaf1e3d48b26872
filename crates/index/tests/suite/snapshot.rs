//! Snapshots come back equal, and damaged ones come back as errors.

use crate::common;

use crate::common::{corpus, draft, drafts, encode};
use proptest::prelude::*;
use yore_index::{ClassId, Index, SnapshotError};

const ALL: [ClassId; 6] = [ClassId(0), ClassId(1), ClassId(2), ClassId(3), ClassId(4), ClassId(5)];

fn bytes(index: &Index) -> Vec<u8> {
    let mut out = Vec::new();
    index.snapshot(&mut out).expect("memory takes any write");
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_snapshot_comes_back_equal(seen in drafts(0..50), query in draft(), sequence in any::<u64>()) {
        let mut index = corpus(&seen);
        index.set_sequence(sequence);
        let written = bytes(&index);
        let back = Index::restore(&written).unwrap();
        prop_assert_eq!(back.sequence(), sequence);
        prop_assert_eq!(back.len(), index.len());
        prop_assert_eq!(&bytes(&back), &written);
        for with_dense in [false, true] {
            prop_assert_eq!(
                encode(&common::search(&back, &ALL, &query, with_dense)),
                encode(&common::search(&index, &ALL, &query, with_dense))
            );
        }
    }

    #[test]
    fn damage_is_an_error_or_harmless(
        seen in drafts(0..12),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 0..4),
        cut in any::<prop::sample::Index>(),
        truncate in any::<bool>(),
        resealed in any::<bool>(),
    ) {
        let written = bytes(&corpus(&seen));
        let mut damaged = written.clone();
        for (at, mask) in &flips {
            let at = at.index(damaged.len());
            damaged[at] ^= mask;
        }
        if truncate {
            damaged.truncate(cut.index(damaged.len() + 1));
        }
        // A valid checksum over damaged content exercises the bounds behind it.
        if resealed && damaged.len() >= 32 {
            let at = damaged.len() - 32;
            let seal = blake3::hash(&damaged[..at]);
            damaged[at..].copy_from_slice(seal.as_bytes());
        }
        match Index::restore(&damaged) {
            Err(_) => {}
            Ok(_) if resealed => {}
            Ok(back) => prop_assert_eq!(bytes(&back), written),
        }
    }
}

#[test]
fn what_is_wrong_is_said() {
    let written = bytes(&Index::new(common::DENSE_DIMS));
    assert_eq!(Index::restore(b"something else").unwrap_err(), SnapshotError::Foreign);
    let mut newer = written.clone();
    newer[8] = 9;
    assert_eq!(Index::restore(&newer).unwrap_err(), SnapshotError::Version(9));
    let mut flipped = written.clone();
    flipped[12] ^= 1;
    assert_eq!(Index::restore(&flipped).unwrap_err(), SnapshotError::Damaged("checksum"));
    assert_eq!(Index::restore(&written[..20]).unwrap_err(), SnapshotError::Damaged("length"));
}
