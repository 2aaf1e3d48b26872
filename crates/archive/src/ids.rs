//! Ids that follow from what was read: the same export gives the same ids every time.

use yore_canon::hash::Sha256;
use yore_domain::{ConversationId, MemoryId, MessageId};

/// Returns the id of a conversation: the platform's own if it is a UUID v4, else one made of it.
pub(crate) fn conversation(platform: &str, native: &str) -> ConversationId {
    match kept(native) {
        Some(bytes) => ConversationId::from_bytes(bytes),
        None => ConversationId::from_bytes(made(&[platform, native])),
    }
}

/// Returns the id of a message in a conversation.
pub(crate) fn message(platform: &str, conversation: &str, native: &str) -> MessageId {
    match kept(native) {
        Some(bytes) => MessageId::from_bytes(bytes),
        None => MessageId::from_bytes(made(&[platform, conversation, native])),
    }
}

/// Returns the id of a memory, told by its parts.
pub(crate) fn memory(platform: &str, parts: &[&str]) -> MemoryId {
    if let [native] = parts
        && let Some(bytes) = kept(native)
    {
        return MemoryId::from_bytes(bytes);
    }
    let all: Vec<&str> = [platform, "memory"].into_iter().chain(parts.iter().copied()).collect();
    MemoryId::from_bytes(made(&all))
}

/// Returns the id under which something stands in an archive: its own if that is a UUID v4, else
/// one made of it.
pub(crate) fn in_archive(id: [u8; 16]) -> [u8; 16] {
    let own = MessageId::from_bytes(id).to_string();
    kept(&own).unwrap_or_else(|| made(&["yore", &own]))
}

/// A UUID v4 in the one spelling that is kept; another spelling of it is another name.
fn kept(native: &str) -> Option<[u8; 16]> {
    let id: MessageId = native.parse().ok()?;
    let bytes = id.bytes();
    let v4 = bytes[6] >> 4 == 4 && bytes[8] >> 6 == 2;
    (v4 && id.to_string() == native).then_some(bytes)
}

fn made(parts: &[&str]) -> [u8; 16] {
    let digest = Sha256::of(format!("omp:{}", parts.join(":")));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_bytes()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omp_003_ids_are_kept_or_made_and_always_v4() {
        let own = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(message("chatgpt", "c", own).to_string(), own);
        let made = message("chatgpt", "c", "msg-001");
        assert_eq!(made, message("chatgpt", "c", "msg-001"));
        assert_eq!((made.bytes()[6] >> 4, made.bytes()[8] >> 6), (4, 2));
        assert_ne!(made, message("chatgpt", "d", "msg-001"));
        assert_ne!(made, message("claude", "c", "msg-001"));
        // Two names that differ in case are two messages, as they are in the source.
        assert_ne!(message("x", "c", &own.to_uppercase()).to_string(), own);
        // sha256("omp:chatgpt:c:msg-001"), first half, with the bits of version 4.
        let digest = Sha256::of("omp:chatgpt:c:msg-001").to_hex();
        assert_eq!(made.to_string().replace('-', "")[..12], digest[..12]);
    }
}
