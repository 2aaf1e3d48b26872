//! How much is read before a source is refused.

/// Bounds on what is opened, checked before and while it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files in one source, zips inside included.
    pub entries: usize,
    /// Bytes of everything in one zip, unpacked.
    pub inflated: u64,
    /// How many times its packed size an entry may unpack to, past the first mebibyte.
    pub ratio: u64,
    /// Bytes of a zip inside a zip, which is read into memory.
    pub nested: u64,
    /// Bytes of one conversation or of another part that is parsed at once.
    pub piece: usize,
    /// Bytes of a file that is parsed at once.
    pub document: usize,
    /// Bytes of one attachment.
    pub blob: u64,
    /// Bytes of a database that lies inside a zip, which is read into memory.
    pub database: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 1_000_000,
            inflated: 1 << 40,
            // Deflate does not go beyond 1032; what Yore wrote itself must come back.
            ratio: 1040,
            nested: 256 << 20,
            piece: 128 << 20,
            document: 64 << 20,
            blob: 256 << 20,
            database: 512 << 20,
        }
    }
}
