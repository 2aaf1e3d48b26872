//! The vector versions against the portable ones, and the portable ones against plain mathematics.

use proptest::{collection::vec, prelude::*};

use crate::{
    Heads, I16_LIMIT, Layer, PANEL, SIGN_ROWS, Shares, TILE_INPUTS, TILE_OUTPUTS,
    dispatch::{PORTABLE, table, tables},
    panels_from,
};

/// Runs one kernel in the portable and the chosen version and returns both results.
macro_rules! both {
    ($kernel:ident($($argument:expr),*)) => {
        // SAFETY: portable code runs anywhere and `table` holds what this processor can run.
        unsafe { ((PORTABLE.$kernel)($($argument),*), (table().$kernel)($($argument),*)) }
    };
    ($kernel:ident($($argument:expr),*) into $out:expr) => {{
        let (mut expected, mut found) = ($out.clone(), $out);
        // SAFETY: as above.
        unsafe {
            (PORTABLE.$kernel)($($argument,)* &mut expected);
            (table().$kernel)($($argument,)* &mut found);
        }
        (expected, found)
    }};
    ($kernel:ident(mut $values:expr $(, $argument:expr)*)) => {{
        let (mut expected, mut found) = ($values.clone(), $values);
        // SAFETY: as above.
        unsafe {
            (PORTABLE.$kernel)(&mut expected $(, $argument)*);
            (table().$kernel)(&mut found $(, $argument)*);
        }
        (expected, found)
    }};
}

fn floats(length: usize) -> impl Strategy<Value = Vec<f32>> {
    vec(-8f32..8f32, length)
}

proptest! {
    #[test]
    fn int8_dot_is_the_same_in_every_version(
        pairs in vec((any::<i8>(), any::<i8>()), 0..900)
    ) {
        let (a, b): (Vec<i8>, Vec<i8>) = pairs.into_iter().unzip();
        let exact: i64 = a.iter().zip(&b).map(|(&x, &y)| i64::from(x) * i64::from(y)).sum();
        let (expected, found) = both!(dot_i8(&a, &b));
        prop_assert_eq!(i64::from(expected), exact);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn scans_give_each_row_its_own_result(
        (width, values) in (1usize..70).prop_flat_map(|width| {
            (Just(width), vec(any::<u64>(), width * 7))
        })
    ) {
        let bytes: Vec<i8> = values.iter().map(|&value| value as i8).collect();
        let (query, rows) = bytes.split_at(width);
        let mut sums = vec![0; 6];
        crate::scan_i8(query, rows, &mut sums);
        let (bit_query, bit_rows) = values.split_at(width);
        let (expected_bits, bits) = both!(scan_hamming(bit_query, bit_rows) into vec![0; 6]);
        prop_assert_eq!(&expected_bits, &bits);
        for row in 0..6 {
            prop_assert_eq!(sums[row], crate::dot_i8(query, &rows[row * width..][..width]));
            let plain: u32 = bit_query
                .iter()
                .zip(&bit_rows[row * width..][..width])
                .map(|(a, b)| (0..64).filter(|bit| (a ^ b) >> bit & 1 == 1).count() as u32)
                .sum();
            prop_assert_eq!(bits[row], plain);
            prop_assert_eq!(plain, crate::hamming(bit_query, &bit_rows[row * width..][..width]));
        }
    }

    #[test]
    fn picked_rows_give_their_own_products(
        (width, values, picks) in (1usize..200).prop_flat_map(|width| {
            (Just(width), vec(any::<i8>(), width * 9), vec(0u32..8, 0..40))
        })
    ) {
        let (query, rows) = values.split_at(width);
        let exact: Vec<i32> = picks
            .iter()
            .map(|&row| crate::dot_i8(query, &rows[row as usize * width..][..width]))
            .collect();
        for table in tables() {
            let mut found = vec![0; picks.len()];
            // SAFETY: `tables` holds what this processor can run.
            unsafe { (table.pick_i8)(query, rows, &picks, &mut found) };
            prop_assert_eq!(&found, &exact);
        }
    }

    #[test]
    fn signs_add_up_to_the_same_in_every_version(
        (columns, blocks, seed) in (0usize..70, 0usize..4, any::<u64>())
    ) {
        let mut random = Random(seed | 1);
        let shares: Vec<Shares> = (0..columns)
            .map(|_| std::array::from_fn(|_| (random.next() % 128) as u8))
            .collect();
        let signs: Vec<u8> =
            (0..columns * blocks * SIGN_ROWS).map(|_| random.next() as u8).collect();
        for table in tables() {
            let mut found = vec![1u16; blocks * SIGN_ROWS];
            // SAFETY: as above.
            unsafe { (table.scan_signs)(&shares, &signs, &mut found) };
            for (row, &sum) in found.iter().enumerate() {
                let (block, place) = (row / SIGN_ROWS, row % SIGN_ROWS);
                let plain: u32 = (0..columns)
                    .map(|column| {
                        let byte = signs[(block * columns + column) * SIGN_ROWS + place];
                        u32::from(shares[column][usize::from(byte % 16)])
                            + u32::from(shares[column][16 + usize::from(byte / 16)])
                    })
                    .sum();
                prop_assert_eq!(u32::from(sum), plain);
            }
        }
    }

    #[test]
    fn a_dense_layer_is_the_same_to_the_bit(
        (inputs, outputs, rows, seed) in (1usize..140, 1usize..11, 1usize..40, any::<u64>())
    ) {
        let mut random = Random(seed | 1);
        let weights: Vec<i8> = (0..inputs * outputs).map(|_| random.next() as i8).collect();
        let activations: Vec<i16> = (0..inputs * rows)
            .map(|_| (random.next() % (2 * I16_LIMIT as u64)) as i16 - I16_LIMIT)
            .collect();
        let scales: Vec<f32> = (0..outputs).map(|_| random.float()).collect();
        let bias: Vec<f32> = (0..outputs).map(|_| random.float()).collect();
        let row_scales: Vec<f32> = (0..rows).map(|_| random.float()).collect();
        let layer = Layer { inputs, weights: &weights, tiles: None, scales: &scales, bias: &bias };

        let mut found = vec![0f32; rows * outputs];
        let mut expected = Vec::new();
        for table in tables() {
            // SAFETY: `tables` holds what this processor can run.
            unsafe { (table.matmul_a16w8)(layer, &activations, &row_scales, &mut found) };
            if expected.is_empty() {
                expected = bits(&found);
            }
            prop_assert_eq!(&expected, &bits(&found));
        }
        for row in 0..rows {
            for output in 0..outputs {
                let exact: f64 = (0..inputs)
                    .map(|i| f64::from(activations[row * inputs + i]) * f64::from(weights[output * inputs + i]))
                    .sum::<f64>() * f64::from(row_scales[row]) * f64::from(scales[output])
                    + f64::from(bias[output]);
                let error = (f64::from(found[row * outputs + output]) - exact).abs();
                prop_assert!(error <= 1e-6 * (exact.abs() + 1.0), "off by {error} from {exact}");
            }
        }
    }

    #[test]
    fn a_layer_on_the_matrix_unit_is_the_same_to_the_bit(
        (inputs, outputs, rows, seed) in (1usize..7, 1usize..4, 1usize..200, any::<u64>())
    ) {
        let (inputs, outputs) = (inputs * TILE_INPUTS, outputs * TILE_OUTPUTS);
        let mut random = Random(seed | 1);
        let weights: Vec<i8> = (0..inputs * outputs).map(|_| random.next() as i8).collect();
        let Some(tiles) = crate::tiles_from(&weights, inputs) else {
            println!("NOT RUN: this processor has no matrix unit");
            return Ok(());
        };
        let activations: Vec<i16> = (0..inputs * rows)
            .map(|_| (random.next() % (2 * I16_LIMIT as u64 + 1)) as i16 - I16_LIMIT)
            .collect();
        let mut draw = |count: usize| (0..count).map(|_| random.float()).collect::<Vec<_>>();
        let (scales, bias, row_scales) = (draw(outputs), draw(outputs), draw(rows));
        let plain =
            Layer { inputs, weights: &weights, tiles: None, scales: &scales, bias: &bias };
        let mut expected = vec![0f32; rows * outputs];
        // SAFETY: portable code runs anywhere.
        unsafe { (PORTABLE.matmul_a16w8)(plain, &activations, &row_scales, &mut expected) };
        let mut found = vec![0f32; rows * outputs];
        let tiled = Layer { tiles: Some(&tiles), ..plain };
        crate::matmul_a16w8(tiled, &activations, &row_scales, &mut found);
        prop_assert_eq!(bits(&expected), bits(&found));
    }

    #[test]
    fn float_kernels_are_the_same_to_the_bit(values in (1usize..90).prop_flat_map(floats)) {
        let gain: Vec<f32> = values.iter().map(|value| value + 1.0).collect();
        let row: Vec<i8> = values.iter().map(|value| (value * 15.0) as i8).collect();
        let (expected, found) = both!(dot_f32(&values, &gain));
        prop_assert_eq!(expected.to_bits(), found.to_bits());
        let (expected, found) = both!(softmax(mut values.clone()));
        prop_assert_eq!(bits(&expected), bits(&found));
        let (expected, found) = both!(gelu(mut values.clone()));
        prop_assert_eq!(bits(&expected), bits(&found));
        let (expected, found) = both!(add_layer_norm(mut values.clone(), &gain, &gain, &values));
        prop_assert_eq!(bits(&expected), bits(&found));
        let table: Vec<i8> = row.iter().chain(row.iter().rev()).copied().collect();
        let (expected, found) = both!(add_rows_i8(mut values.clone(), &table, &[1, 0, 1], &[0.37, -1.25]));
        prop_assert_eq!(bits(&expected), bits(&found));
        let (expected, found) = both!(quantise_i16(&values) into vec![0; values.len()]);
        prop_assert_eq!(expected, found);
    }

    #[test]
    fn attention_is_the_same_to_the_bit(values in (1usize..20).prop_flat_map(|rows| floats(rows * 3 * 12))) {
        let heads = Heads { values: &values, width: 12, size: 4 };
        let (expected, found) = both!(attend(heads) into vec![0f32; values.len() / 3]);
        prop_assert_eq!(bits(&expected), bits(&found));
    }

    #[test]
    fn a_float_layer_sums_its_products(
        (inputs, rows, seed) in (1usize..40, 1usize..12, any::<u64>())
    ) {
        let outputs = 2 * PANEL;
        let mut random = Random(seed | 1);
        let mut draw = |count: usize| (0..count).map(|_| random.float()).collect::<Vec<_>>();
        let (weights, bias, input) = (draw(inputs * outputs), draw(outputs), draw(inputs * rows));
        let panels = panels_from(&weights, inputs);

        let (expected, found) =
            both!(matmul_f32(&panels, &bias, &input) into vec![0f32; rows * outputs]);

        prop_assert_eq!(bits(&expected), bits(&found));
        for (at, &value) in found.iter().enumerate() {
            let (row, output) = (at / outputs, at % outputs);
            let exact: f64 = (0..inputs)
                .map(|i| f64::from(input[row * inputs + i]) * f64::from(weights[output * inputs + i]))
                .sum::<f64>() + f64::from(bias[output]);
            prop_assert!((f64::from(value) - exact).abs() < 1e-5);
        }
    }

    #[test]
    fn rounding_to_int16_loses_half_a_step_at_most(values in (1usize..90).prop_flat_map(floats)) {
        let mut rounded = vec![0; values.len()];
        let scale = crate::quantise_i16(&values, &mut rounded);
        for (&value, &integer) in values.iter().zip(&rounded) {
            prop_assert!((-I16_LIMIT..=I16_LIMIT).contains(&integer));
            prop_assert!((f32::from(integer) * scale - value).abs() <= 0.501 * scale);
        }
    }

    #[test]
    fn softmax_shares_out_one(values in (1usize..90).prop_flat_map(floats)) {
        let mut shares = values.clone();
        crate::softmax(&mut shares);
        let sum: f64 = values.iter().map(|&value| f64::from(value).exp()).sum();
        for (&value, &share) in values.iter().zip(&shares) {
            let exact = f64::from(value).exp() / sum;
            prop_assert!((f64::from(share) - exact).abs() <= 2e-6 * exact + 1e-12);
        }
    }

    #[test]
    fn layer_norm_centres_and_scales(values in floats(64)) {
        let (zeros, ones) = (vec![0f32; 64], vec![1f32; 64]);
        let mut row = values.clone();
        crate::add_layer_norm(&mut row, &zeros, &ones, &zeros);
        let mean = row.iter().map(|&v| f64::from(v)).sum::<f64>() / 64.0;
        let variance = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / 64.0;
        prop_assert!(mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-3);
    }
}

#[test]
fn gelu_follows_the_error_function() {
    // x and GELU(x) to seven digits.
    let table = [
        (-6.0, -5.919_527e-9),
        (-3.0, -0.004_049_694),
        (-1.0, -0.158_655_25),
        (-0.5, -0.154_268_77),
        (0.0, 0.0),
        (0.1, 0.053_982_784),
        (1.0, 0.841_344_8),
        (2.5, 2.484_475_8),
        (6.0, 6.0),
    ];
    for (input, expected) in table {
        let mut value = [input];
        crate::gelu(&mut value);
        assert!((value[0] - expected).abs() < 1e-6, "gelu({input}) = {}", value[0]);
    }
}

#[test]
fn attention_to_equal_keys_averages_the_values() {
    // Two rows, one head of two: queries differ, keys are equal, so each row gets the mean value.
    let values = [9.0, -3.0, 1.0, 1.0, 2.0, 4.0, 0.5, 7.0, 1.0, 1.0, 6.0, 8.0];
    let mut out = [0f32; 4];
    let heads = Heads { values: &values, width: 2, size: 2 };
    crate::attend(heads, &mut out);
    assert_eq!(out, [4.0, 6.0, 4.0, 6.0]);
}

#[test]
fn a_zero_vector_stays_zero() {
    let mut values = [0f32; 5];
    crate::normalise(&mut values);
    assert_eq!(values, [0.0; 5]);
    let mut rounded = [1i16; 5];
    assert_eq!(crate::quantise_i16(&values, &mut rounded), 0.0);
    assert_eq!(rounded, [0; 5]);
}

#[test]
#[should_panic(expected = "no such row")]
fn a_row_that_is_not_there_is_refused() {
    crate::pick_i8(&[1, 2], &[1, 2, 3, 4], &[0, 2], &mut [0; 2]);
}

#[test]
#[should_panic(expected = "large share")]
fn a_share_that_would_spill_over_is_refused() {
    crate::scan_signs(&[[128; 32]], &[0; SIGN_ROWS], &mut [0; SIGN_ROWS]);
}

#[test]
#[should_panic(expected = "lengths differ")]
fn unequal_lengths_are_refused() {
    crate::dot_i8(&[1, 2, 3], &[1, 2]);
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn float(&mut self) -> f32 {
        (self.next() % 2_000) as f32 / 1_000.0 - 1.0
    }
}
