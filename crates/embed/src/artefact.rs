//! Reads the model files compiled into the binary: a header of small numbers, then floats, then
//! int8 matrices, packed by the build script.

/// A model file read from front to back.
pub(crate) struct Reader {
    rest: &'static [u8],
}

impl Reader {
    /// Opens a file, checking its first eight bytes.
    ///
    /// # Panics
    /// If the file is another one: it was built into this very program.
    pub(crate) fn new(bytes: &'static [u8], magic: &[u8; 8]) -> Self {
        let rest = bytes
            .strip_prefix(magic)
            .expect("invariant: the compiled-in model has the expected format");
        Self { rest }
    }

    pub(crate) fn number(&mut self) -> usize {
        let bytes = self.take(4).try_into().expect("invariant: four bytes taken");
        u32::from_le_bytes(bytes) as usize
    }

    pub(crate) fn floats(&mut self, count: usize) -> Box<[f32]> {
        let (chunks, _) = self.take(count * 4).as_chunks::<4>();
        chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    /// Ends reading.
    ///
    /// # Panics
    /// If bytes are left over.
    pub(crate) fn end(self) {
        assert!(
            self.rest.is_empty(),
            "invariant: the compiled-in model holds what its header says"
        );
    }

    pub(crate) fn take(&mut self, count: usize) -> &'static [u8] {
        let (head, rest) = self
            .rest
            .split_at_checked(count)
            .expect("invariant: the compiled-in model is complete");
        self.rest = rest;
        head
    }
}
