//! Bodies of requests, as the HTTP surface reads them: within limits, then into the model.
#![no_main]

use libfuzzer_sys::fuzz_target;
use yore_canon::json::{self, Limits};
use yore_domain::conversation::{Conversation, Message};
use yore_domain::memory::Draft;
use yore_domain::mutation::{Mutation, Patch};
use yore_domain::query::Recall;

const LIMITS: Limits = Limits { bytes: 2 << 20, depth: 32, nodes: 2_000_000 };

fuzz_target!(|bytes: &[u8]| {
    if let Ok(draft) = json::parse_as::<Draft>(bytes, LIMITS) {
        let _ = draft.validate();
        let text = serde_json::to_vec(&draft).expect("a draft is JSON");
        let again: Draft = json::parse_as(&text, LIMITS).expect("our own spelling");
        assert_eq!(again, draft);
    }
    if let Ok(message) = json::parse_as::<Message>(bytes, LIMITS) {
        let _ = message.validate();
    }
    if let Ok(mutation) = json::parse_as::<Mutation>(bytes, LIMITS) {
        let text = serde_json::to_vec(&mutation).expect("a mutation is JSON");
        let again: Mutation = json::parse_as(&text, LIMITS).expect("our own spelling");
        assert_eq!(again, mutation);
    }
    let _ = json::parse_as::<Recall>(bytes, LIMITS);
    let _ = json::parse_as::<Patch>(bytes, LIMITS);
    let _ = json::parse_as::<Conversation>(bytes, LIMITS);
});
