//! The index itself: which document is where, and the changes it takes.

use std::collections::BTreeMap;

use crate::analysis;
use crate::codec;
use crate::dictionary::Dictionary;
use crate::document::{ClassId, Document, DocumentError, Meta, STATIC_DIMS, Vector};
use crate::partition::{Arrival, Partition};
use crate::places::Places;
use crate::postings::cap_frequency;

/// The in-memory index of one corpus.
#[derive(Debug)]
pub struct Index {
    pub(crate) dense_dims: usize,
    pub(crate) sequence: u64,
    pub(crate) dictionary: Dictionary,
    pub(crate) partitions: BTreeMap<ClassId, Partition>,
    pub(crate) places: Places,
}

impl Index {
    /// Makes an empty index whose dense vectors have the given number of dimensions.
    #[must_use]
    pub fn new(dense_dims: usize) -> Index {
        Index {
            dense_dims,
            sequence: 0,
            dictionary: Dictionary::default(),
            partitions: BTreeMap::new(),
            places: Places::default(),
        }
    }

    /// Adds a document, replacing the one that has its key.
    ///
    /// # Errors
    /// Refuses vectors of other dimensions and numbers that are not finite; the index is then unchanged.
    pub fn put(&mut self, document: &Document<'_>) -> Result<(), DocumentError> {
        check(document.statics, STATIC_DIMS)?;
        if let Some(vector) = document.dense {
            check(vector, self.dense_dims)?;
        }
        check_weight(&document.meta)?;
        if self.partitions.get(&document.class).is_some_and(Partition::is_full) {
            return Err(DocumentError::Full);
        }
        self.remove(document.key);
        let dictionary = &mut self.dictionary;
        let mut ids: Vec<u32> = Vec::with_capacity(document.text.len() / 5);
        let (length, language) =
            analysis::each_term(document.text, |term| ids.push(dictionary.intern(term)));
        ids.sort_unstable();
        let terms: Vec<(u32, u32)> = ids
            .chunk_by(|one, next| one == next)
            .map(|same| (same[0], cap_frequency(u32::try_from(same.len()).unwrap_or(u32::MAX))))
            .collect();
        dictionary.count(terms.iter().map(|(term, _)| *term));
        let arrival = Arrival {
            key: document.key,
            id: document.id,
            meta: document.meta,
            blob: codec::pack(&terms, document.tokens),
            length,
            language,
            statics: document.statics,
            dense: document.dense,
        };
        self.admit(document.class, arrival);
        Ok(())
    }

    /// Forgets a document, its terms, tokens and vectors; returns whether it was there.
    pub fn remove(&mut self, key: u64) -> bool {
        let Some((class, slot)) = self.places.remove(key) else { return false };
        let partition =
            self.partitions.get_mut(&class).expect("invariant: a placed document has a partition");
        let blob = partition.remove(slot);
        self.dictionary.release(codec::terms(&blob).map(|(term, _)| term));
        if partition.len() == 0 {
            self.partitions.remove(&class);
        }
        true
    }

    /// Sets or clears the dense vector of a document; returns whether the document is there.
    ///
    /// # Errors
    /// Refuses a vector of other dimensions or with a scale that is not finite.
    pub fn set_dense(
        &mut self,
        key: u64,
        vector: Option<Vector<'_>>,
    ) -> Result<bool, DocumentError> {
        if let Some(vector) = vector {
            check(vector, self.dense_dims)?;
        }
        Ok(self.place(key).map(|(partition, slot)| partition.set_dense(slot, vector)).is_some())
    }

    /// Replaces the metadata of a document; returns whether the document is there.
    ///
    /// # Errors
    /// Refuses a weight that is not finite.
    pub fn set_meta(&mut self, key: u64, meta: Meta) -> Result<bool, DocumentError> {
        check_weight(&meta)?;
        Ok(self.place(key).map(|(partition, slot)| partition.set_meta(slot, meta)).is_some())
    }

    /// Moves a document to another visibility class; returns whether the document is there.
    ///
    /// # Errors
    /// Refuses when the class is full; the document then stays where it was.
    pub fn reclass(&mut self, key: u64, class: ClassId) -> Result<bool, DocumentError> {
        let Some((from, slot)) = self.places.get(key) else { return Ok(false) };
        if from == class {
            return Ok(true);
        }
        if self.partitions.get(&class).is_some_and(Partition::is_full) {
            return Err(DocumentError::Full);
        }
        let partition =
            self.partitions.get_mut(&from).expect("invariant: a placed document has a partition");
        let doc = &partition.docs[slot as usize];
        let (key, id, meta, length, language) =
            (doc.key, doc.id, doc.meta, doc.length, doc.language);
        let statics = owned(partition.statics.vector(doc.statics));
        let dense = doc.dense().map(|row| owned(partition.dense.vector(row)));
        let blob = partition.remove(slot);
        if partition.len() == 0 {
            self.partitions.remove(&from);
        }
        let arrival = Arrival {
            key,
            id,
            meta,
            blob,
            length,
            language,
            statics: Vector { values: &statics.0, scale: statics.1 },
            dense: dense.as_ref().map(|(values, scale)| Vector { values, scale: *scale }),
        };
        self.admit(class, arrival);
        Ok(true)
    }

    /// Returns the number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Tells whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.len() == 0
    }

    /// Tells whether a document is there.
    #[must_use]
    pub fn contains(&self, key: u64) -> bool {
        self.places.get(key).is_some()
    }

    /// Returns the metadata of a document.
    #[must_use]
    pub fn meta(&self, key: u64) -> Option<&Meta> {
        let (class, slot) = self.places.get(key)?;
        Some(&self.partitions.get(&class)?.docs[slot as usize].meta)
    }

    /// Returns the visibility class of a document.
    #[must_use]
    pub fn class(&self, key: u64) -> Option<ClassId> {
        self.places.get(key).map(|(class, _)| class)
    }

    /// Lists the visibility classes that have documents, with their counts, ascending.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, usize)> + '_ {
        self.partitions.iter().map(|(&class, partition)| (class, partition.len()))
    }

    /// Lists the keys of documents that have no dense vector yet, in no particular order.
    pub fn pending(&self) -> impl Iterator<Item = u64> + '_ {
        self.partitions.values().flat_map(|partition| {
            partition.pending.iter().map(|&slot| partition.docs[slot as usize].key)
        })
    }

    /// Returns the number of dimensions of dense vectors.
    #[must_use]
    pub fn dense_dims(&self) -> usize {
        self.dense_dims
    }

    /// Returns the last change the caller says is contained; 0 if never said.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Notes the last change contained, to be found again after a restore.
    pub fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Estimates the bytes of memory held.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.dictionary.memory()
            + self.places.memory()
            + self.partitions.values().map(Partition::memory).sum::<usize>()
    }

    /// Stores an arrival whose terms are already acquired and whose key is free.
    pub(crate) fn admit(&mut self, class: ClassId, arrival: Arrival<'_>) {
        let key = arrival.key;
        let dims = self.dense_dims;
        let slot =
            self.partitions.entry(class).or_insert_with(|| Partition::new(dims)).insert(arrival);
        self.places.insert(key, class, slot);
    }

    /// Makes room for so many documents of a class.
    pub(crate) fn expect(&mut self, class: ClassId, documents: usize) {
        let dims = self.dense_dims;
        self.partitions.entry(class).or_insert_with(|| Partition::new(dims)).expect(documents);
    }

    fn place(&mut self, key: u64) -> Option<(&mut Partition, u32)> {
        let (class, slot) = self.places.get(key)?;
        Some((self.partitions.get_mut(&class)?, slot))
    }
}

fn owned(vector: Vector<'_>) -> (Vec<i8>, f32) {
    (vector.values.to_vec(), vector.scale)
}

fn check(vector: Vector<'_>, expected: usize) -> Result<(), DocumentError> {
    if vector.values.len() != expected {
        return Err(DocumentError::Dimensions { expected, found: vector.values.len() });
    }
    if vector.scale.is_finite() { Ok(()) } else { Err(DocumentError::NotFinite) }
}

fn check_weight(meta: &Meta) -> Result<(), DocumentError> {
    if meta.weight.is_finite() { Ok(()) } else { Err(DocumentError::NotFinite) }
}
