//! Where the bytes of an asset lie: under the file's id, as `.dat`, or nowhere.

use std::collections::HashMap;

use serde_json::{Value, json};
use yore_domain::conversation::Attachment;

use crate::connector::Sink;
use crate::json::Look;
use crate::source::Source;
use crate::thread::Thread;

/// The files of an export by the ids their names begin with.
#[derive(Debug, Default)]
pub(super) struct Assets {
    files: HashMap<String, usize>,
    names: HashMap<String, String>,
    library: Vec<Value>,
}

/// Something a message points at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pointer {
    /// The file's id, or a path in the sandbox.
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) media_type: Option<String>,
}

impl Assets {
    pub(super) fn index(source: &Source) -> Self {
        let mut files = HashMap::new();
        for (place, file) in source.files().iter().enumerate() {
            for id in ids(file.name()) {
                files.entry(id.to_owned()).or_insert(place);
            }
        }
        Self { files, ..Self::default() }
    }

    pub(super) fn names(&mut self, value: &Value) {
        for (file, name) in value.as_object().into_iter().flatten() {
            if let Some(name) = name.as_str() {
                let id = file.strip_suffix(".dat").unwrap_or(file);
                self.names.insert(id.to_owned(), name.to_owned());
            }
        }
    }

    pub(super) fn library(&mut self, listed: &[Value]) {
        for file in listed {
            if let (Some(id), Some(name)) = (file.text("file_id"), file.text("file_name")) {
                self.names.entry(id.to_owned()).or_insert_with(|| name.to_owned());
            }
        }
        self.library.extend_from_slice(listed);
    }

    /// Attaches what a pointer names; without its bytes when the export lacks them.
    pub(super) fn find(
        &self,
        source: &Source,
        thread: &mut Thread,
        sink: &mut Sink<'_>,
        message: &Value,
        pointer: &Pointer,
    ) -> Attachment {
        let id = match pointer.id.strip_prefix("sandbox:") {
            Some(path) => self.made(thread, message, path).unwrap_or(&pointer.id),
            None => &pointer.id,
        };
        let blob = self.files.get(id).and_then(|place| {
            let file = &source.files()[*place];
            sink.used(file);
            source.blob(file).ok()
        });
        let named = pointer.name.as_deref().or(self.names.get(id).map(String::as_str));
        let name = named.or(id.rsplit('/').next()).unwrap_or(id);
        let mut attachment = thread.attach(name, pointer.media_type.as_deref(), blob);
        attachment.foreign.insert(super::PLATFORM.into(), json!({"file_id": pointer.id}));
        attachment
    }

    /// What the model made in its sandbox is told by the message, or the conversation and a name.
    fn made(&self, thread: &Thread, message: &Value, path: &str) -> Option<&str> {
        let name = path.rsplit('/').next();
        let of = |member: &str, id: Option<&str>| {
            self.library.iter().find(|file| {
                id.is_some() && file.text(member) == id && file.text("file_name") == name
            })
        };
        of("origination_message_id", message.text("id"))
            .or_else(|| of("origination_thread_id", Some(&thread.key)))
            .and_then(|file| file.text("file_id"))
    }
}

/// The ids a file's name may begin with.
fn ids(name: &str) -> Vec<&str> {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let mut found = vec![name, stem];
    if let Some(rest) = stem.strip_prefix("file-")
        && let Some(end) = rest.find('-')
    {
        found.push(&stem[.."file-".len() + end]);
    }
    if stem.starts_with("file_")
        && let Some(end) = stem.find('-')
    {
        found.push(&stem[..end]);
    }
    found
}

/// Strips the scheme and whatever follows a `#`.
pub(super) fn id_of(pointer: &str) -> &str {
    let id = pointer.split_once("://").map_or(pointer, |(_, id)| id);
    id.split('#').next().unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_every_kind_of_name() {
        for (name, id) in [
            ("file-7hQkZx-weights.csv", "file-7hQkZx"),
            ("file_00ab-sanitized.png", "file_00ab"),
            ("file_00ab.dat", "file_00ab"),
            ("file_00ab-3f2a.webp", "file_00ab"),
        ] {
            assert!(ids(name).contains(&id), "{name}");
        }
        assert_eq!(id_of("sediment://file_00ab#1"), "file_00ab");
        assert_eq!(id_of("file-service://file-7h"), "file-7h");
    }
}
