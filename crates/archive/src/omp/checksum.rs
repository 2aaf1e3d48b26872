//! The checksum of an archive: SHA-256 over the lines that `sha256sum` prints for its files.

use std::collections::BTreeMap;

use yore_canon::hash::Sha256;

/// How a checksum was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `omp-sha256sums-v1`: over the sorted lines of hash and path.
    Sums,
    /// Over the bytes of all files in the order of their paths.
    PathOrder,
    /// Over the bytes of all files in the order of the zip's directory.
    DirectoryOrder,
    /// Over the bytes of conversations, then memories, in the order of their paths.
    ConversationsAndMemories,
}

impl Method {
    /// The name a manifest states.
    pub const NAME: &'static str = "omp-sha256sums-v1";
}

/// The hashes of an archive's files by path; the manifest is not one of them.
#[derive(Clone, Debug, Default)]
pub struct Sums(BTreeMap<String, Sha256>);

impl Sums {
    /// Adds a file.
    pub fn add(&mut self, path: &str, hash: Sha256) {
        self.0.insert(path.to_owned(), hash);
    }

    /// Returns the hash of a file.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Sha256> {
        self.0.get(path)
    }

    /// Returns the checksum of them all.
    #[must_use]
    pub fn total(&self) -> Sha256 {
        let mut hasher = Sha256::hasher();
        for (path, hash) in &self.0 {
            hasher.update(format!("{}  {path}\n", hash.to_hex()));
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omp_084_the_empty_set_has_the_hash_of_nothing() {
        let empty = Sums::default().total().to_string();
        assert!(empty.starts_with("sha256:e3b0c442") && empty.ends_with("b855"));
    }

    #[test]
    fn omp_084_the_order_of_files_does_not_matter_and_their_names_do() {
        let sums = |paths: &[&str]| {
            let mut sums = Sums::default();
            paths.iter().for_each(|path| sums.add(path, Sha256::of("x")));
            sums.total()
        };
        assert_eq!(sums(&["a", "b"]), sums(&["b", "a"]));
        assert_ne!(sums(&["a", "b"]), sums(&["a", "c"]));
    }
}
