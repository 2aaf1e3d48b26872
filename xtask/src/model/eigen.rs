//! Eigenvectors of a symmetric matrix by Jacobi rotations: slow, short and the same everywhere.

/// Returns the eigenvectors of the `count` largest eigenvalues, strongest first, one per row,
/// each with its largest component positive.
pub(crate) fn strongest(mut matrix: Vec<f64>, size: usize, count: usize) -> Vec<f64> {
    let mut vectors = vec![0f64; size * size];
    for i in 0..size {
        vectors[i * size + i] = 1.0;
    }
    while off_diagonal(&matrix, size) > 1e-11 * norm(&matrix) {
        for p in 0..size {
            for q in p + 1..size {
                rotate(&mut matrix, &mut vectors, size, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&a, &b| matrix[b * size + b].total_cmp(&matrix[a * size + a]));
    order
        .into_iter()
        .take(count)
        .flat_map(|row| with_fixed_sign(&vectors[row * size..][..size]))
        .collect()
}

/// Turns rows and columns `p` and `q` so that their common element becomes zero.
fn rotate(matrix: &mut [f64], vectors: &mut [f64], size: usize, p: usize, q: usize) {
    let common = matrix[p * size + q];
    if common == 0.0 {
        return;
    }
    let theta = (matrix[q * size + q] - matrix[p * size + p]) / (2.0 * common);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let cosine = 1.0 / (t * t + 1.0).sqrt();
    let sine = t * cosine;
    let turn = |a: f64, b: f64| (cosine * a - sine * b, sine * a + cosine * b);
    for k in 0..size {
        let (a, b) = (k * size + p, k * size + q);
        (matrix[a], matrix[b]) = turn(matrix[a], matrix[b]);
    }
    for k in 0..size {
        let (a, b) = (p * size + k, q * size + k);
        (matrix[a], matrix[b]) = turn(matrix[a], matrix[b]);
        (vectors[a], vectors[b]) = turn(vectors[a], vectors[b]);
    }
}

fn norm(matrix: &[f64]) -> f64 {
    matrix.iter().map(|value| value * value).sum::<f64>().sqrt()
}

fn off_diagonal(matrix: &[f64], size: usize) -> f64 {
    let sum: f64 = matrix
        .iter()
        .enumerate()
        .filter(|(at, _)| at / size != at % size)
        .map(|(_, value)| value * value)
        .sum();
    sum.sqrt()
}

fn with_fixed_sign(vector: &[f64]) -> Vec<f64> {
    let largest = vector
        .iter()
        .copied()
        .fold(0f64, |best, value| if value.abs() > best.abs() { value } else { best });
    vector.iter().map(|value| value * largest.signum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_are_stretched_by_falling_factors() {
        let size = 12;
        let matrix: Vec<f64> = (0..size * size)
            .map(|at| {
                let (row, column) = (at / size, at % size);
                1.0 / (row + column + 1) as f64 + f64::from(u8::from(row == column)) * row as f64
            })
            .collect();
        let vectors = strongest(matrix.clone(), size, 5);
        let mut last = f64::INFINITY;
        for vector in vectors.chunks_exact(size) {
            let image: Vec<f64> = matrix
                .chunks_exact(size)
                .map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
                .collect();
            let factor: f64 = image.iter().zip(vector).map(|(a, b)| a * b).sum();
            assert!(factor <= last, "{factor} after {last}");
            last = factor;
            for (a, b) in image.iter().zip(vector) {
                assert!((a - factor * b).abs() < 1e-9);
            }
        }
    }
}
