//! What a platform exported, kept beside each message without saying anything twice.
//!
//! Every message carries the native message it was made from under its platform's name, member
//! `native`. Long texts that the message's content holds already are replaced by their place in
//! it, and a conversation's native form names its messages by id instead of repeating them. So
//! [`native`] gives back exactly what was exported, from what the vault holds.

use std::collections::HashMap;

use serde_json::{Map, Value};
use yore_domain::conversation::{Conversation, Message};
use yore_domain::memory::Foreign;

/// The only member of an object that stands for something else: a number for a text of the
/// content, a text for a message, an object for an object that looks like one of these.
const MARK: &str = "$";
/// Texts shorter than this are cheaper to repeat than to look up.
const LONG: usize = 40;

/// The member of a platform's foreign object that holds the native form.
pub const NATIVE: &str = "native";

/// Returns the native form without what the content holds already.
#[must_use]
pub fn pack(native: &Value, content: &Value) -> Value {
    let places: HashMap<&str, usize> =
        leaves(content).into_iter().enumerate().map(|(place, text)| (text, place)).collect();
    walk(native, &|value| {
        let place = places.get(value.as_str()?)?;
        Some(Value::from(*place))
    })
}

/// Returns the native form of a conversation with `messages` in place of the values they were
/// made from. A value is told by its address in `native`.
pub(crate) fn skeleton(native: &Value, messages: &HashMap<usize, String>) -> Value {
    walk(native, &|value| messages.get(&address(value)).map(|id| Value::from(id.as_str())))
}

/// Returns what tells a value from its equals.
pub(crate) fn address(value: &Value) -> usize {
    std::ptr::from_ref(value) as usize
}

/// Returns what [`pack`] was given.
#[must_use]
pub fn unpack(packed: &Value, content: &Value) -> Value {
    let texts = leaves(content);
    unwalk(packed, &|mark| {
        let place = usize::try_from(mark.as_u64()?).ok()?;
        texts.get(place).map(|text| Value::from(*text))
    })
}

/// Rebuilds what the platform exported for this conversation. `None` when it was not made from
/// an export.
#[must_use]
pub fn native(head: &Conversation, messages: &[Message]) -> Option<Value> {
    let held = |foreign: &Foreign| foreign.get(&head.platform)?.get(NATIVE).cloned();
    let skeleton = held(&head.foreign)?;
    let by_id: HashMap<String, &Message> =
        messages.iter().map(|message| (message.id.to_string(), message)).collect();
    Some(unwalk(&skeleton, &|mark| {
        let message = by_id.get(mark.as_str()?)?;
        Some(unpack(&held(&message.foreign)?, &message.content))
    }))
}

/// Collects the long texts of a content, each once and sorted: the order of members may change on
/// the way through other programs.
fn leaves(content: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut waiting = vec![content];
    while let Some(value) = waiting.pop() {
        if let Some(text) = value.as_str() {
            if text.len() >= LONG {
                found.push(text);
            }
        } else if let Some(items) = value.as_array() {
            waiting.extend(items.iter().rev());
        } else if let Some(members) = value.as_object() {
            waiting.extend(members.values().rev());
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn mark(what: Value) -> Value {
    Value::Object(Map::from_iter([(MARK.to_owned(), what)]))
}

fn walk(value: &Value, replace: &dyn Fn(&Value) -> Option<Value>) -> Value {
    if let Some(what) = replace(value) {
        return mark(what);
    }
    if let Some(items) = value.as_array() {
        return items.iter().map(|item| walk(item, replace)).collect();
    }
    let Some(members) = value.as_object() else { return value.clone() };
    let copied = members.iter().map(|(name, value)| (name.clone(), walk(value, replace)));
    let copied = Value::Object(copied.collect());
    if members.len() == 1 && members.contains_key(MARK) { mark(copied) } else { copied }
}

fn unwalk(value: &Value, resolve: &dyn Fn(&Value) -> Option<Value>) -> Value {
    if let Some(items) = value.as_array() {
        return items.iter().map(|item| unwalk(item, resolve)).collect();
    }
    let Some(members) = value.as_object() else { return value.clone() };
    let plain = |members: &Map<String, Value>| {
        members.iter().map(|(name, value)| (name.clone(), unwalk(value, resolve))).collect()
    };
    let marked = members.get(MARK).filter(|_| members.len() == 1);
    match marked {
        None => Value::Object(plain(members)),
        Some(what) => match what.as_object() {
            Some(looks_like_one) => Value::Object(plain(looks_like_one)),
            None => resolve(what).unwrap_or(Value::Null),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i32>().prop_map(Value::from),
            "[a-c]{0,3}".prop_map(Value::from),
            "[a-b]{40,42}".prop_map(Value::from),
            Just(Value::Null),
        ];
        leaf.prop_recursive(4, 40, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[$a-b]{1}", inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_was_packed_comes_back(native in value(), content in value()) {
            prop_assert_eq!(unpack(&pack(&native, &content), &content), native.clone());
            // A content made of the native form itself is the case that is met in practice.
            prop_assert_eq!(unpack(&pack(&native, &native), &native), native);
        }
    }

    #[test]
    fn a_long_text_is_not_kept_twice() {
        let text = "a sentence that is long enough to be worth a reference";
        let native = json!({"parts": [text], "note": "short"});
        let packed = pack(&native, &json!([{"type": "text", "text": text}]));
        assert_eq!(packed, json!({"parts": [{"$": 0}], "note": "short"}));
    }

    #[test]
    fn an_object_that_looks_like_a_mark_is_kept() {
        for native in
            [json!({"$": 0}), json!({"$": "x"}), json!({"$": {"$": 1}}), json!({"$": null})]
        {
            let content = json!("a sentence that is long enough to be worth a reference");
            assert_eq!(unpack(&pack(&native, &content), &content), native);
        }
    }
}
