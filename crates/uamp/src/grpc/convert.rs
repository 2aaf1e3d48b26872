//! Between JSON and protobuf, without adding or losing a member.

use serde_json::{Map, Number, Value, json};
use yore_canon::json::Object;
use yore_domain::Error;

use super::proto;
use crate::receive;
use crate::refusal::{Refusal, Result};
use prost_types::value::Kind;

/// Rebuilds the JSON that a sender signed.
///
/// # Errors
/// Fails when a number is none that JSON has.
pub fn object(envelope: proto::Envelope) -> Result<Object> {
    let mut object = Object::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            object.insert(name.to_owned(), value);
        }
    };
    let proto::Envelope { id, ts, from, to, intent, reply_to, context, .. } = envelope;
    put("id", id.map(Value::from));
    put("ts", ts.map(Value::from));
    put("from", from.map(Value::from));
    // A list of nobody and no list are the same here; neither is taken.
    put("to", (!to.is_empty()).then(|| to.into()));
    put("intent", intent.map(Value::from));
    put("reply_to", reply_to.map(Value::from));
    put("context", context.map(|list| list.items.into_iter().map(reference).collect()));
    put("stream_id", envelope.stream_id.map(Value::from));
    put("delta_window", envelope.delta_window.map(Value::from));
    put("body", envelope.body.map(body));
    put("cap_token", envelope.cap_token.map(Value::from));
    put("sig", envelope.sig.map(Value::from));
    put("ext", envelope.ext.map(of_struct).transpose()?.map(Value::Object));
    Ok(object)
}

fn reference(reference: proto::ContextRef) -> Value {
    texts([("id", reference.id), ("hash", reference.hash)])
}

fn body(body: proto::Body) -> Value {
    texts([
        ("type", body.r#type),
        ("content", body.content),
        ("encoding", body.encoding),
        ("compression", body.compression),
    ])
}

fn texts<const N: usize>(members: [(&str, Option<String>); N]) -> Value {
    let given = members.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?)));
    Value::Object(given.map(|(name, text)| (name, text.into())).collect())
}

/// Puts an envelope into the form of gRPC. Members that it has no place for are left out.
#[must_use]
pub fn envelope(object: &Object) -> proto::Envelope {
    let text =
        |object: &Object, name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let list = |name: &str| object.get(name).and_then(Value::as_array);
    let reference = |item: &Value| {
        let item = item.as_object()?;
        Some(proto::ContextRef { id: text(item, "id"), hash: text(item, "hash") })
    };
    let window = object.get("delta_window").and_then(Value::as_u64);
    proto::Envelope {
        id: text(object, "id"),
        ts: text(object, "ts"),
        from: text(object, "from"),
        to: list("to")
            .map(|to| to.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_default(),
        intent: text(object, "intent"),
        reply_to: text(object, "reply_to"),
        context: list("context").map(|items| proto::ContextList {
            items: items.iter().filter_map(reference).collect(),
        }),
        stream_id: text(object, "stream_id"),
        delta_window: window.and_then(|window| u32::try_from(window).ok()),
        body: object.get("body").and_then(Value::as_object).map(|body| proto::Body {
            r#type: text(body, "type"),
            content: text(body, "content"),
            encoding: text(body, "encoding"),
            compression: text(body, "compression"),
        }),
        cap_token: text(object, "cap_token"),
        sig: text(object, "sig"),
        ext: object.get("ext").and_then(Value::as_object).map(to_struct),
    }
}

/// The receipt of a message.
pub(super) fn receipt(receipt: receive::Receipt) -> proto::Receipt {
    let receive::Receipt { id, stream, duplicate, .. } = receipt;
    proto::Receipt { id, stream_id: stream.unwrap_or_default(), duplicate }
}

/// A frame that was kept, as a delta.
pub(super) fn delta(bytes: &[u8]) -> Result<proto::Delta> {
    let frame: Object = serde_json::from_slice(bytes).map_err(Error::internal)?;
    let text = |name: &str| frame.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(proto::Delta {
        delta_seq: frame.get("delta_seq").and_then(Value::as_u64).unwrap_or_default(),
        stream_id: text("stream_id"),
        ts: text("ts"),
        r#type: text("type"),
        payload: frame.get("payload").and_then(Value::as_object).map(to_struct),
    })
}

/// A delta of the client's, as the JSON it would be elsewhere.
pub(super) fn delta_object(delta: proto::Delta) -> Result<Object> {
    let mut object = Object::new();
    object.insert("stream_id".into(), delta.stream_id.into());
    if let Some(payload) = delta.payload {
        let mut payload = of_struct(payload)?;
        // Every number of a struct has a fraction; that of a frame has none.
        for name in ["ack", "expected"] {
            let whole = payload.get(name).and_then(Value::as_f64).and_then(whole);
            if let Some(whole) = whole {
                payload.insert(name.to_owned(), json!(whole));
            }
        }
        object.insert("payload".into(), Value::Object(payload));
    }
    Ok(object)
}

fn whole(number: f64) -> Option<u64> {
    // Beyond this one, not every whole number is one.
    const LAST: f64 = 9_007_199_254_740_991.0;
    ((0.0..=LAST).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

fn of_struct(fields: prost_types::Struct) -> Result<Object> {
    let mut object = Map::new();
    for (name, value) in fields.fields {
        object.insert(name, of_value(value)?);
    }
    Ok(object)
}

fn of_value(value: prost_types::Value) -> Result<Value> {
    Ok(match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(truth)) => truth.into(),
        Some(Kind::StringValue(text)) => text.into(),
        Some(Kind::NumberValue(number)) => {
            let wrong = || Refusal::malformed("ext", "has a number that JSON does not have");
            Value::Number(Number::from_f64(number).ok_or_else(wrong)?)
        }
        Some(Kind::StructValue(fields)) => Value::Object(of_struct(fields)?),
        Some(Kind::ListValue(list)) => {
            let mut items = Vec::with_capacity(list.values.len());
            for value in list.values {
                items.push(of_value(value)?);
            }
            items.into()
        }
    })
}

fn to_struct(object: &Object) -> prost_types::Struct {
    let fields = object.iter().map(|(name, value)| (name.clone(), to_value(value)));
    prost_types::Struct { fields: fields.collect() }
}

fn to_value(value: &Value) -> prost_types::Value {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(truth) => Kind::BoolValue(*truth),
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Value::String(text) => Kind::StringValue(text.clone()),
        Value::Array(items) => {
            let values = items.iter().map(to_value).collect();
            Kind::ListValue(prost_types::ListValue { values })
        }
        Value::Object(object) => Kind::StructValue(to_struct(object)),
    };
    prost_types::Value { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use yore_canon::{encode, jcs};

    use super::*;

    #[test]
    fn uamp_064_the_vectors_bytes_give_the_json_that_was_signed_and_back() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/uamp/vectors.json");
        let vectors: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let accepted = vectors["accept"].as_array().unwrap();
        for vector in vectors["grpc"].as_array().unwrap() {
            let bytes = encode::from_hex(vector["envelope_pb_hex"].as_str().unwrap()).unwrap();
            let read = proto::Envelope::decode(&bytes[..]).unwrap();
            let case = accepted.iter().find(|case| case["name"] == vector["name"]).unwrap();
            let rebuilt = object(read.clone()).unwrap();
            let sent = case["envelope"].as_object().unwrap();
            assert_eq!(jcs::canonical_object(&rebuilt), jcs::canonical_object(sent));
            assert_eq!(envelope(sent), read, "{}", vector["name"]);
        }
        // Every envelope of the vectors survives the way there and back.
        for case in accepted {
            let sent = case["envelope"].as_object().unwrap();
            let rebuilt = object(envelope(sent)).unwrap();
            assert_eq!(jcs::canonical_object(&rebuilt), jcs::canonical_object(sent));
        }
    }

    #[test]
    fn uamp_064_numbers_that_json_does_not_have_are_refused() {
        for number in [f64::NAN, f64::INFINITY] {
            let value = prost_types::Value { kind: Some(Kind::NumberValue(number)) };
            let ext = prost_types::Struct { fields: [("n".to_owned(), value)].into() };
            let envelope = proto::Envelope { ext: Some(ext), ..proto::Envelope::default() };
            assert!(object(envelope).is_err());
        }
    }
}
