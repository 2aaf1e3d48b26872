//! Vectors rounded to int8, as they are stored and compared.

use yore_kernels::{dot_f32, dot_i8};

/// A vector of length one in int8: `values × scale`.
///
/// The scale is one over the length of the integers, so that rounding costs direction only: the
/// cosine of a vector with itself is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantised {
    /// The factor that turns the values back into a vector of length one.
    pub scale: f32,
    /// The rounded values.
    pub values: Box<[i8]>,
}

impl Quantised {
    /// Rounds a vector of any length; a zero vector gives a zero scale.
    pub fn from_floats(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0f32, |best, value| best.max(value.abs()));
        if largest == 0.0 || !dot_f32(vector, vector).is_finite() {
            return Self { scale: 0.0, values: vec![0; vector.len()].into() };
        }
        let factor = 127.0 / largest;
        let values: Box<[i8]> = vector.iter().map(|value| (value * factor).round() as i8).collect();
        Self { scale: inverse_length(&values), values }
    }

    /// Restores a vector from stored values.
    pub fn from_values(values: Box<[i8]>) -> Self {
        Self { scale: inverse_length(&values), values }
    }

    /// Returns the number of dimensions.
    pub fn dims(&self) -> usize {
        self.values.len()
    }

    /// Returns the cosine with another vector, zero if either is zero.
    ///
    /// # Panics
    /// If the dimensions differ: such vectors come from different models.
    pub fn cosine(&self, other: &Self) -> f32 {
        let dot = dot_i8(&self.values, &other.values) as f32;
        (dot * self.scale * other.scale).clamp(-1.0, 1.0)
    }

    /// Returns the vector as floats.
    pub fn to_floats(&self) -> Vec<f32> {
        self.values.iter().map(|&value| f32::from(value) * self.scale).collect()
    }
}

/// One over the length of an integer vector, zero for a zero vector.
pub(crate) fn inverse_length(values: &[i8]) -> f32 {
    let square = dot_i8(values, values);
    if square == 0 { 0.0 } else { 1.0 / (square as f32).sqrt() }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn rounding_keeps_the_direction(vector in vec(-1f32..1.0, 384)) {
            let rounded = Quantised::from_floats(&vector);
            let length = dot_f32(&vector, &vector).sqrt();
            let cosine = dot_f32(&rounded.to_floats(), &vector) / length;
            prop_assert!(cosine > 0.999_9, "cosine {}", cosine);
            prop_assert!((rounded.cosine(&rounded) - 1.0).abs() < 1e-5);
        }

        #[test]
        fn stored_values_are_enough(vector in vec(-1f32..1.0, 1..300)) {
            let rounded = Quantised::from_floats(&vector);
            prop_assert_eq!(&Quantised::from_values(rounded.values.clone()), &rounded);
        }
    }

    #[test]
    fn opposite_vectors_have_cosine_minus_one() {
        let a = Quantised::from_floats(&[0.6, -0.8, 0.0]);
        let b = Quantised::from_floats(&[-0.6, 0.8, 0.0]);
        assert!((a.cosine(&b) + 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_vector_without_direction_is_like_nothing() {
        for vector in [[0.0; 4], [f32::NAN; 4], [f32::INFINITY; 4]] {
            let rounded = Quantised::from_floats(&vector);
            assert_eq!(rounded.scale, 0.0);
            assert_eq!(rounded.cosine(&Quantised::from_floats(&[1.0; 4])), 0.0);
        }
    }
}
