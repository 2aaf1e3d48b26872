//! Interned terms, counted so that a term no document uses any more is forgotten at once.

use std::collections::HashMap;
use std::sync::Arc;

/// Maps terms to ids; ids are reused and never influence a result.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    ids: HashMap<Arc<str>, u32>,
    terms: Vec<Term>,
    free: Vec<u32>,
    text_bytes: usize,
}

#[derive(Debug)]
struct Term {
    text: Arc<str>,
    uses: u32,
}

impl Dictionary {
    pub(crate) fn get(&self, term: &str) -> Option<u32> {
        self.ids.get(term).copied()
    }

    /// Counts one more document for terms that are interned already.
    pub(crate) fn count(&mut self, ids: impl Iterator<Item = u32>) {
        for id in ids {
            self.terms[id as usize].uses += 1;
        }
    }

    /// Tells whether some interned term has no document.
    pub(crate) fn has_unused(&self) -> bool {
        self.ids.values().any(|&id| self.terms[id as usize].uses == 0)
    }

    /// Interns a term that no document uses yet.
    pub(crate) fn intern(&mut self, term: &str) -> u32 {
        if let Some(&id) = self.ids.get(term) {
            return id;
        }
        let text: Arc<str> = term.into();
        let entry = Term { text: Arc::clone(&text), uses: 0 };
        let id = match self.free.pop() {
            Some(id) => {
                self.terms[id as usize] = entry;
                id
            }
            None => {
                self.terms.push(entry);
                u32::try_from(self.terms.len() - 1)
                    .expect("invariant: memory holds fewer than 2^32 distinct terms")
            }
        };
        self.text_bytes += text.len();
        self.ids.insert(text, id);
        id
    }

    /// Counts one document less for each id and forgets terms that reach zero.
    pub(crate) fn release(&mut self, ids: impl Iterator<Item = u32>) {
        for id in ids {
            let term = &mut self.terms[id as usize];
            term.uses -= 1;
            if term.uses == 0 {
                let text = std::mem::replace(&mut term.text, Arc::from(""));
                self.ids.remove(&text);
                self.text_bytes -= text.len();
                self.free.push(id);
            }
        }
    }

    /// Returns one past the highest id in use or free.
    pub(crate) fn bound(&self) -> usize {
        self.terms.len()
    }

    /// Lists the terms in use with their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        self.ids.iter().map(|(text, &id)| (id, &**text))
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Estimates the bytes held, counting each reference-counted string's header.
    pub(crate) fn memory(&self) -> usize {
        self.ids.capacity() * 25
            + self.terms.capacity() * size_of::<Term>()
            + self.text_bytes
            + self.ids.len() * 24
    }
}
