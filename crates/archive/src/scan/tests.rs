use std::io::Read;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Gives out a few bytes at a time, so that every border is met.
struct Drops<'a>(&'a [u8], usize);

impl Read for Drops<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.max(1).min(self.0.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

fn split(text: &[u8], step: usize, most: usize) -> Vec<Piece> {
    let mut pieces = Pieces::new(Drops(text, step), most);
    let mut found = Vec::new();
    while let Some(piece) = pieces.take().unwrap() {
        found.push(piece);
    }
    found
}

fn texts(pieces: &[Piece]) -> Vec<(Option<&str>, Result<&str, Broken>)> {
    pieces
        .iter()
        .map(|piece| {
            let text = piece.text.as_ref().map(|text| std::str::from_utf8(text).unwrap());
            (piece.key.as_deref(), text.map_err(|broken| *broken))
        })
        .collect()
}

#[test]
fn documents_fall_into_their_parts() {
    type Parts = Vec<(Option<&'static str>, Result<&'static str, Broken>)>;
    let cases: [(&str, Parts); 8] = [
        (
            "[1, {\"a\":[2]},\"]\"]",
            vec![(None, Ok("1")), (None, Ok("{\"a\":[2]}")), (None, Ok("\"]\""))],
        ),
        ("\u{feff} [ ]", vec![]),
        ("", vec![]),
        (
            "{\"a\":[1,[2]],\"b\":{\"c\":3},\"d\":\"x\\\"\"}",
            vec![
                (Some("a"), Ok("1")),
                (Some("a"), Ok("[2]")),
                (Some("b"), Ok("{\"c\":3}")),
                (Some("d"), Ok("\"x\\\"\"")),
            ],
        ),
        ("[{\"a\":1},{\"b\":", vec![(None, Ok("{\"a\":1}")), (None, Err(Broken::CutOff))]),
        ("[1234567890123456789012345,2]", vec![(None, Err(Broken::TooLarge)), (None, Ok("2"))]),
        ("{\"a\":1}", vec![(Some("a"), Ok("1"))]),
        ("true", vec![(None, Ok("true"))]),
    ];
    for (text, expected) in cases {
        for step in [1, 3, 100] {
            assert_eq!(texts(&split(text.as_bytes(), step, 24)), expected, "{text}");
        }
    }
}

#[test]
fn a_million_levels_need_no_stack() {
    let deep = [b"[".repeat(1_000_000), b"]".repeat(1_000_000)].concat();
    let pieces = split(&deep, 1 << 16, 10 << 20);
    assert_eq!(pieces.len(), 1);
    assert_eq!(pieces[0].text.as_ref().unwrap().len(), 1_999_998);
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((".{0,4}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn the_parts_of_a_document_are_its_elements(
        items in prop::collection::vec(value(), 0..8), pretty: bool, step in 1_usize..40,
    ) {
        let document = json!(items);
        let text = if pretty {
            serde_json::to_string_pretty(&document).unwrap()
        } else {
            document.to_string()
        };
        let found: Vec<Value> = split(text.as_bytes(), step, 1 << 20)
            .iter()
            .map(|piece| serde_json::from_slice(piece.text.as_ref().unwrap()).unwrap())
            .collect();
        prop_assert_eq!(found, items);
    }

    #[test]
    fn no_bytes_make_it_panic_or_hang(
        bytes in prop::collection::vec(prop_oneof![
            Just(b'['), Just(b']'), Just(b'{'), Just(b'}'), Just(b'"'), Just(b'\\'), Just(b','),
            Just(b':'), any::<u8>(),
        ], 0..200),
        step in 1_usize..9,
    ) {
        prop_assert!(split(&bytes, step, 64).len() <= bytes.len());
    }
}
