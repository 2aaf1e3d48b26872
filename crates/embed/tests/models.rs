//! The built-in models against the vectors and tokens of the original, and against common sense.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{fs, path::Path};

use sha2::{Digest, Sha256};
use yore_embed::{Embedder, builtin, wordpiece::Wordpiece};
use yore_kernels::dot_f32;

#[test]
fn model_files_match_their_checksums() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let sums = fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), 3);
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        let found = hex::encode(Sha256::digest(fs::read(folder.join(name)).unwrap()));
        assert_eq!(found, sum, "{name}");
    }
}

#[test]
fn transformer_follows_the_original() {
    let mut checked = 0;
    for (text, tokens, expected) in references() {
        assert_eq!(builtin().transformer.tokens(&text), tokens, "{text:?}");
        // One word or none leaves little to average over, and rounding shows more.
        let least = if tokens.len() > 3 { 0.999 } else { 0.996 };
        let cosine = |vector: &[f32]| dot_f32(vector, &expected);
        let found = cosine(&builtin().transformer.vector(&text));
        assert!(found >= least, "cosine {found} for {text:?}");
        let rounded = cosine(&builtin().transformer.embed(&text).to_floats());
        assert!(rounded >= least - 0.000_5, "rounded cosine {rounded} for {text:?}");
        checked += 1;
    }
    assert_eq!(checked, 25);
}

#[test]
fn a_batch_gives_what_single_texts_give() {
    let texts: Vec<String> = references().into_iter().map(|(text, ..)| text).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let batch = builtin().transformer.vectors(&texts);
    assert_eq!(batch.len(), texts.len());
    for (text, vector) in texts.iter().zip(&batch) {
        assert_eq!(&builtin().transformer.vector(text), vector, "{text:?}");
    }
}

#[test]
fn a_long_text_is_cut_and_a_huge_one_is_cheap() {
    let transformer = &builtin().transformer;
    let long = "memory ".repeat(254);
    let huge = "memory ".repeat(3_000_000);
    assert_eq!(transformer.tokens(&long).len(), 256);
    assert_eq!(transformer.tokens(&huge), transformer.tokens(&long));
}

#[test]
fn both_models_order_texts_by_meaning() {
    // A query, what it should find, and what it should not.
    let table = [
        ("what do I like to drink", "prefers strong coffee", "parks the car behind the house"),
        ("pet", "the dog is called Bruno", "the invoice is due on Friday"),
        ("illness and health", "was in hospital with a fever", "bought a new bicycle"),
        ("where does she live", "her home is in Lisbon", "the printer is out of ink"),
        ("music", "plays the violin in an orchestra", "the server runs Debian"),
    ];
    let models: [&dyn Embedder; 2] = [&*builtin().statics, &*builtin().transformer];
    for model in models {
        for (query, near, far) in table {
            let vectors = model.embed(&[query, near, far]).unwrap();
            let near_cosine = dot_f32(&vectors[0], &vectors[1]);
            let far_cosine = dot_f32(&vectors[0], &vectors[2]);
            assert!(
                near_cosine > far_cosine,
                "{}: {query:?} is {near_cosine} to {near:?} but {far_cosine} to {far:?}",
                model.id()
            );
        }
    }
}

#[test]
fn token_cosines_know_synonyms() {
    let statics = &builtin().statics;
    let token = |word: &str| {
        let tokens = statics.tokens(word);
        assert_eq!(tokens.len(), 1, "{word}");
        tokens[0]
    };
    for (word, near, far) in [
        ("car", "automobile", "bread"),
        ("doctor", "physician", "guitar"),
        ("happy", "glad", "concrete"),
        ("paris", "france", "keyboard"),
    ] {
        let near = statics.token_cosine(token(word), token(near));
        let far = statics.token_cosine(token(word), token(far));
        assert!(near > 0.35 && near > far + 0.2, "{word}: {near} against {far}");
        assert!((statics.token_cosine(token(word), token(word)) - 1.0).abs() < 1e-5);
    }
    // The special tokens mean nothing, not even to themselves.
    assert_eq!(statics.token_cosine(100, 100), 0.0);
    assert_eq!(statics.token_unit(102).1, 0.0);
}

#[test]
fn a_static_text_is_the_weighted_sum_of_its_tokens() {
    let statics = &builtin().statics;
    let tokens = statics.tokens("the violin teacher");
    let mut sum = vec![0f32; 256];
    for &token in &tokens {
        let (row, _) = statics.token_unit(token);
        for (total, &value) in sum.iter_mut().zip(row) {
            *total += f32::from(value) * statics.token_weight(token);
        }
    }
    let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
    for (found, sum) in statics.vector(&tokens).iter().zip(&sum) {
        assert!((found - sum / length).abs() < 1e-5);
    }
    let rounded = statics.embed(&tokens);
    assert_eq!((rounded.dims(), rounded.values.iter().max()), (256, Some(&127)));
}

#[test]
fn a_text_without_tokens_has_no_direction() {
    let statics = &builtin().statics;
    assert_eq!(statics.embed(&[]).scale, 0.0);
    assert_eq!(statics.tokens(" \u{200b}\n"), Vec::<u16>::new());
}

#[test]
fn tokens_are_those_of_the_original() {
    let cases: Vec<(String, Vec<u16>)> = serde_json::from_str(include_str!("tokens.json")).unwrap();
    assert!(cases.len() > 60);
    for (text, expected) in cases {
        assert_eq!(Wordpiece::builtin().tokens(&text), expected, "{text:?}");
    }
}

#[test]
fn special_tokens_cannot_be_written() {
    let tokens = Wordpiece::builtin().tokens("[CLS] ignore the rest [SEP] [PAD] [MASK]");
    assert!(tokens.iter().all(|token| ![0, 100, 101, 102, 103].contains(token)));
}

fn references() -> Vec<(String, Vec<u16>, Vec<f32>)> {
    let texts: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("reference.json")).unwrap();
    let (floats, _) = include_bytes!("reference.f32").as_chunks::<4>();
    let vectors: Vec<f32> = floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let vectors = vectors.chunks_exact(384).map(<[f32]>::to_vec);
    texts
        .iter()
        .zip(vectors)
        .map(|(case, vector)| {
            let tokens = serde_json::from_value(case["tokens"].clone()).unwrap();
            (case["text"].as_str().unwrap().to_owned(), tokens, vector)
        })
        .collect()
}
