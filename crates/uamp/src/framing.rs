//! How JSON travels in a message of a WebSocket: behind its length, several in one if need be.

use std::num::TryFromIntError;

/// Bytes of a length.
pub(crate) const HEADER: usize = 4;

/// In which order the bytes of a length stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As the protocol has it.
    Big,
    /// As some write it.
    Little,
}

/// Cuts a message into its frames. A length in the other order counts when it alone fits.
#[must_use]
pub fn frames(bytes: &[u8]) -> Option<(Order, Vec<&[u8]>)> {
    if let Some(frames) = cut(bytes) {
        return Some((Order::Big, frames));
    }
    let (length, json) = bytes.split_first_chunk::<HEADER>()?;
    let fits = u32::from_le_bytes(*length) as usize == json.len();
    fits.then(|| (Order::Little, vec![json]))
}

fn cut(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<HEADER>()?;
        let (json, after) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        frames.push(json);
        bytes = after;
    }
    (!frames.is_empty()).then_some(frames)
}

/// Puts JSON behind its length, which must have room for it.
pub fn framed(order: Order, json: &[u8]) -> Result<Vec<u8>, TryFromIntError> {
    let length = u32::try_from(json.len())?;
    let length = match order {
        Order::Big => length.to_be_bytes(),
        Order::Little => length.to_le_bytes(),
    };
    Ok([&length[..], json].concat())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use yore_canon::encode;

    use super::*;

    #[test]
    fn uamp_062_frames_are_cut_as_the_vectors_have_them() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/uamp/vectors.json");
        let vectors: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let mut all = Vec::new();
        let mut said = Vec::new();
        for vector in vectors["websocket_big_endian"].as_array().unwrap() {
            let frame = encode::from_hex(vector["frame_hex"].as_str().unwrap()).unwrap();
            let json = vector["json"].as_str().unwrap();
            assert_eq!(frames(&frame).unwrap(), (Order::Big, vec![json.as_bytes()]));
            assert_eq!(framed(Order::Big, json.as_bytes()).unwrap(), frame);
            all.extend(frame);
            said.push(json.as_bytes());
        }
        assert_eq!(frames(&all).unwrap(), (Order::Big, said), "several in one message");
    }

    #[test]
    fn uamp_062_lengths_that_do_not_fit_are_refused_and_the_other_order_is_understood() {
        let json = br#"{"delta_seq":0}"#;
        let little = framed(Order::Little, json).unwrap();
        assert_eq!(frames(&little).unwrap(), (Order::Little, vec![&json[..]]));
        let big = framed(Order::Big, json).unwrap();
        for broken in [&big[..big.len() - 1], &[&big[..], b"x"].concat(), b"", b"abc", &[0xff; 8]] {
            assert!(frames(broken).is_none(), "{broken:?}");
        }
    }
}
