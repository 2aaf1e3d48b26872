//! Reads server-sent events: fields by line, events by blank line.

use bytes::{Buf, BytesMut};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::api::Event;
use crate::error::{Error, Result};

/// The longest event that is read.
const LONGEST: usize = 1 << 20;

pub(crate) fn events(body: Incoming) -> BoxStream<'static, Result<Event>> {
    let state = (body, Lines::default());
    stream::unfold(Some(state), |state| async move {
        let (mut body, mut lines) = state?;
        loop {
            match lines.next() {
                Ok(Some(data)) => {
                    let event = serde_json::from_str(&data)
                        .map_err(|error| Error::Answer(error.to_string()));
                    return Some((event, Some((body, lines))));
                }
                Ok(None) => {}
                Err(error) => return Some((Err(error), None)),
            }
            match body.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        lines.buffer.extend_from_slice(&data);
                    }
                }
                Err(error) => return Some((Err(Error::Answer(error.to_string())), None)),
            }
        }
    })
    .boxed()
}

/// Bytes that arrived, and the data of the event they began.
#[derive(Default)]
pub(crate) struct Lines {
    buffer: BytesMut,
    data: String,
}

impl Lines {
    /// Takes bytes as they arrive.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the data of the next whole event. Comments and other fields are skipped.
    pub(crate) fn next(&mut self) -> Result<Option<String>> {
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(end);
            self.buffer.advance(1);
            let line = std::str::from_utf8(&line)
                .map_err(|_| Error::Answer("an event that is not UTF-8".into()))?
                .trim_end_matches('\r');
            if line.is_empty() && !self.data.is_empty() {
                return Ok(Some(std::mem::take(&mut self.data)));
            }
            if let Some(data) = line.strip_prefix("data:") {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            }
        }
        if self.buffer.len() + self.data.len() > LONGEST {
            return Err(Error::Answer("an event that is too long".into()));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_arrive_in_any_slicing() {
        let text = b": keep-alive\n\nid: 1\r\ndata: {\"a\":1}\r\n\r\ndata: x\ndata: y\n\n";
        for size in 1..text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in text.chunks(size) {
                lines.buffer.extend_from_slice(piece);
                while let Some(data) = lines.next().unwrap() {
                    found.push(data);
                }
            }
            assert_eq!(found, ["{\"a\":1}", "x\ny"], "pieces of {size}");
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut lines = Lines::default();
        lines.buffer.extend_from_slice(&vec![b'x'; LONGEST + 1]);
        assert!(lines.next().is_err());
    }
}
