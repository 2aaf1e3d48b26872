//! Whether the time of an answer tells what is hidden from what is missing.

use std::time::Instant;

use super::trusting;
use crate::support::{claims, governed, id, jwt, key, store};

/// Answers of each sort in one run.
const ANSWERS: usize = 2_000;
const RUNS: usize = 3;
/// Below this chance the two are told apart.
const CHANCE: f64 = 0.001;

#[tokio::test]
async fn hidden_and_missing_take_the_same_time() {
    if std::env::var_os("YORE_TIMING").is_none() {
        println!("NOT RUN: YORE_TIMING is not set; cargo xtask probe --timing measures");
        return;
    }
    let vault = trusting(false).await;
    let entries: Vec<_> = (0..500)
        .map(|number| governed(&format!("note {number}"), "restricted", &["health"]))
        .collect();
    vault.post(&vault.owner, "/v1/import", &store(&entries)).await.expect(201);
    let token = jwt(&key(1), &claims("scheduler", &["work"], "internal"));
    let mut alike = 0;
    for run in 1..=RUNS {
        let (mut hidden, mut missing) = (Vec::new(), Vec::new());
        for number in 0..ANSWERS * 2 {
            // Interleaved, so that whatever else the machine does falls on both.
            let (one, times) = if number % 2 == 0 {
                let entry = &entries[(number / 2 * 7) % entries.len()];
                (entry["id"].as_str().unwrap().to_owned(), &mut hidden)
            } else {
                (id(), &mut missing)
            };
            let begun = Instant::now();
            let reply = vault.entry(&token, &one).await;
            times.push(begun.elapsed().as_secs_f64());
            assert_eq!(reply.status, 404);
        }
        let (distance, chance) = kolmogorov_smirnov(&mut hidden, &mut missing);
        println!("run {run}: {ANSWERS} of each, distance {distance:.4}, p = {chance:.4}");
        alike += usize::from(chance >= CHANCE);
    }
    println!("{alike} of {RUNS} runs do not tell them apart");
    assert!(alike >= 2, "the time of an answer tells hidden from missing");
}

/// The largest distance between two samples, and how likely one as large is by chance.
fn kolmogorov_smirnov(one: &mut [f64], other: &mut [f64]) -> (f64, f64) {
    one.sort_by(f64::total_cmp);
    other.sort_by(f64::total_cmp);
    let (n, m) = (one.len() as f64, other.len() as f64);
    let (mut i, mut j, mut distance) = (0, 0, 0.0_f64);
    while i < one.len() && j < other.len() {
        let at = one[i].min(other[j]);
        while i < one.len() && one[i] <= at {
            i += 1;
        }
        while j < other.len() && other[j] <= at {
            j += 1;
        }
        distance = distance.max((i as f64 / n - j as f64 / m).abs());
    }
    let root = (n * m / (n + m)).sqrt();
    let lambda = (root + 0.12 + 0.11 / root) * distance;
    let term = |k: i32| {
        let sign = if k % 2 == 1 { 1.0 } else { -1.0 };
        sign * (-2.0 * f64::from(k * k) * lambda * lambda).exp()
    };
    let chance: f64 = 2.0 * (1..=100).map(term).sum::<f64>();
    (distance, if lambda < 0.2 { 1.0 } else { chance.clamp(0.0, 1.0) })
}

#[test]
fn the_test_tells_samples_apart_only_when_they_differ() {
    let sample = |shift: f64| -> Vec<f64> {
        let mut dice = super::Dice::new(7);
        (0..2000).map(|_| dice.below(10_000) as f64 + shift).collect()
    };
    let mut other = super::Dice::new(8);
    let mut same: Vec<f64> = (0..2000).map(|_| other.below(10_000) as f64).collect();
    assert!(kolmogorov_smirnov(&mut sample(0.0), &mut same).1 >= CHANCE);
    assert!(kolmogorov_smirnov(&mut sample(800.0), &mut same).1 < CHANCE);
}
