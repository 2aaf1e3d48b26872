//! A digest of a row in a form that does not depend on the backend.

use serde::Serialize;
use yore_canon::hash::{Blake3, Blake3Hasher};

use super::{Counters, EntryRow, Indexed, MemoryRow, MessageRow, Row, VersionRow};
use crate::plan::Operation;
use crate::search::{Source, Vector};

impl Row {
    /// The same for the same row, wherever it was read.
    pub(in crate::transfer) fn digest(&self) -> [u8; 32] {
        let mut feed = Feed(Blake3::hasher());
        feed.text(self.kind());
        match self {
            Self::Seed(key) => feed.bytes(key.bytes()),
            Self::Counters(Counters { message, letter, grants, rules }) => {
                feed.numbers(&[*message, *letter, *grants, *rules]);
            }
            Self::Class(number, class) => feed.numbers(&[(*number).into()]).json(class),
            Self::Setting(name, value) => feed.text(name).json(value),
            Self::Memory(memory) => memory.feed(&mut feed),
            Self::Version(version) => version.feed(&mut feed),
            Self::Relation(memory, number, relation) => {
                feed.signed(&[Some(*memory), Some((*number).into())]).json(relation);
            }
            Self::Alias(namespace, name, kind, target, number) => {
                let numbers = [(*kind).into(), (*number).into()];
                feed.text(namespace).text(name).numbers(&numbers).bytes(target);
            }
            Self::Talk(row, class, messages, talk) => {
                feed.signed(&[Some(*row)]).numbers(&[(*class).into(), *messages]).json(talk);
            }
            Self::Message(message) => message.feed(&mut feed),
            Self::Blob(hash, size) => feed.numbers(&[*size]).bytes(&hash.0),
            Self::Piece(hash, number, bytes) => {
                feed.numbers(&[(*number).into()]).text_of(&hash.0).bytes(bytes);
            }
            Self::Vector(key, vector) => {
                let source = match key.source {
                    Source::Version => 0,
                    Source::Message => 1,
                };
                feed.numbers(&[source, key.row]).text(&vector.model).vector(vector);
            }
            Self::Kept(_, data) => feed.bytes(data.as_bytes()),
            Self::Rule(number, data) | Self::Letter(number, data) => {
                feed.signed(&[Some(*number)]).bytes(data.as_bytes());
            }
            Self::Frame(sender, stream, number, bytes) => {
                feed.text(sender).text(stream).numbers(&[*number]).bytes(bytes);
            }
            Self::Operation(operation, at) => {
                let Operation { caller, id, fingerprint, result } = &**operation;
                feed.text(caller).text(id).text(fingerprint).signed(&[Some(*at)]).json(result);
            }
            Self::Grave(namespace, name, message, kind, at) => {
                feed.text(namespace).text(name).signed(&[Some((*kind).into()), Some(*at)]);
                feed.bytes(message);
            }
            Self::Entry(entry) => entry.feed(&mut feed),
            Self::Named(memory, seq) => {
                feed.signed(&[Some(*memory)]).numbers(&[*seq]);
            }
            Self::Checkpoint(seq, data) => feed.numbers(&[*seq]).bytes(data.as_bytes()),
            Self::Tenant(id, name) => feed.text(name).bytes(&id.bytes()),
            Self::Place(mac, vault) => feed.text_of(mac).bytes(&vault.bytes()),
            Self::Lost(_) => {}
        }
        *feed.0.finish().as_bytes()
    }
}

impl MemoryRow {
    fn feed(&self, feed: &mut Feed) {
        let Self {
            row,
            id,
            head,
            head_row,
            class,
            status,
            kind,
            since,
            created,
            ends,
            statement,
            legal_hold,
            recalled,
            recalls,
            followed,
            overridden,
            ignored,
            contradicted,
            demoted,
        } = self;
        feed.signed(&[Some(*row), Some(*head_row), Some(*since), Some(*created), *ends, *recalled]);
        feed.numbers(&[
            (*head).into(),
            (*class).into(),
            (*status).into(),
            (*kind).into(),
            (*legal_hold).into(),
            *recalls,
            *followed,
            *overridden,
            *ignored,
            *contradicted,
            (*demoted).into(),
        ]);
        feed.maybe(statement.as_ref().map(String::as_bytes)).bytes(id);
    }
}

impl VersionRow {
    fn feed(&self, feed: &mut Feed) {
        let Self { row, id, memory, number, class, status, recorded, entry, salt, data, indexed } =
            self;
        feed.signed(&[Some(*row), Some(*memory), Some(*recorded)]);
        feed.numbers(&[(*number).into(), (*class).into(), (*status).into(), *entry]);
        feed.maybe(salt.as_deref()).text(data).indexed(indexed.as_ref()).bytes(id);
    }
}

impl MessageRow {
    fn feed(&self, feed: &mut Feed) {
        let Self { row, talk, position, message, indexed, inside, unread } = self;
        feed.signed(&[Some(*row), Some(*talk)]).numbers(&[*position, (*unread).into()]);
        feed.maybe(inside.as_ref().map(String::as_bytes)).indexed(indexed.as_ref()).json(message);
    }
}

impl EntryRow {
    fn feed(&self, feed: &mut Feed) {
        let Self { seq, at, operation, agent, data, hash, change, changes } = self;
        feed.numbers(&[*seq, *change]).signed(&[Some(*at)]).text(operation).text(data);
        feed.maybe(agent.as_ref().map(String::as_bytes));
        feed.maybe(changes.as_ref().map(String::as_bytes)).bytes(hash);
    }
}

/// Digests the parts of a row so that no two rows are spelt alike: each part says how long it is.
struct Feed(Blake3Hasher);

impl Feed {
    fn text(&mut self, text: &str) -> &mut Self {
        self.text_of(text.as_bytes())
    }

    fn text_of(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update((bytes.len() as u64).to_le_bytes()).update(bytes);
        self
    }

    fn maybe(&mut self, bytes: Option<&[u8]>) -> &mut Self {
        self.0.update([u8::from(bytes.is_some())]);
        self.text_of(bytes.unwrap_or_default())
    }

    fn numbers(&mut self, numbers: &[u64]) -> &mut Self {
        for number in numbers {
            self.0.update(number.to_le_bytes());
        }
        self
    }

    fn signed(&mut self, numbers: &[Option<i64>]) -> &mut Self {
        for number in numbers {
            self.0.update([u8::from(number.is_some())]);
            self.0.update(number.unwrap_or_default().to_le_bytes());
        }
        self
    }

    fn vector(&mut self, vector: &Vector) {
        self.0.update(vector.scale.to_bits().to_le_bytes());
        let values: Vec<u8> = vector.values.iter().map(|value| value.cast_unsigned()).collect();
        self.bytes(&values);
    }

    /// The name of the model of static vectors is not compared: one backend does not keep it.
    fn indexed(&mut self, indexed: Option<&Indexed>) -> &mut Self {
        self.0.update([u8::from(indexed.is_some())]);
        if let Some(Indexed { tokens, statics }) = indexed {
            let tokens: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
            self.text_of(&tokens).vector(statics);
        }
        self
    }

    // What ends a row gives nothing back, so that the arms above are statements.

    fn json(&mut self, value: &impl Serialize) {
        let text = serde_json::to_vec(value).expect("invariant: stored values are JSON");
        self.bytes(&text);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.text_of(bytes);
    }
}
