//! Frames of a stream, in their one canonical form.

use serde_json::{Value, json};
use yore_canon::jcs;
use yore_domain::Timestamp;
use yore_domain::stream::StreamState;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Chunk,
    Progress,
    Done,
    Cancel,
    Error,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Chunk => "chunk",
            Self::Progress => "progress",
            Self::Done => "done",
            Self::Cancel => "cancel",
            Self::Error => "error",
        }
    }

    /// How a stream ends with it, if it does.
    pub(crate) const fn ends(self) -> Option<StreamState> {
        match self {
            Self::Chunk | Self::Progress => None,
            Self::Done => Some(StreamState::Completed),
            Self::Cancel => Some(StreamState::Cancelled),
            Self::Error => Some(StreamState::Error),
        }
    }
}

/// Writes a frame.
pub(crate) fn written(seq: u64, stream: &str, at: Timestamp, kind: Kind, payload: Value) -> String {
    jcs::canonical(&json!({
        "delta_seq": seq,
        "stream_id": stream,
        "ts": stamp(at),
        "type": kind.as_str(),
        "payload": payload,
    }))
}

/// Writes a time: UTC, no finer than milliseconds.
pub(crate) fn stamp(at: Timestamp) -> String {
    Timestamp::from_millis(at.millis()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uamp_050_frames_are_written_as_the_vectors_have_them() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/uamp/vectors.json");
        let vectors: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let (deltas, frames) = (&vectors["deltas"], &vectors["websocket_big_endian"]);
        for (delta, frame) in deltas.as_array().unwrap().iter().zip(frames.as_array().unwrap()) {
            let kind = [Kind::Chunk, Kind::Progress, Kind::Done]
                .into_iter()
                .find(|kind| delta["type"] == kind.as_str());
            let at = delta["ts"].as_str().unwrap().parse().unwrap();
            let seq = delta["delta_seq"].as_u64().unwrap();
            let text = written(seq, "str-42", at, kind.unwrap(), delta["payload"].clone());
            assert_eq!(text, frame["json"].as_str().unwrap());
        }
    }
}
