//! Which tokens mean nearly the same: for each token its nearest, found once and kept.

use std::sync::OnceLock;

use yore_kernels::{dot_i8, scan_hamming};

use crate::statics::Static;
use crate::wordpiece::Wordpiece;

/// Cosines below this are noise between unrelated tokens.
const FLOOR: f32 = 0.35;
/// How many are kept for one token, the nearest first.
const MOST: usize = 256;
/// Tokens whose signs differ in more than this share of dimensions are not compared: a cosine of
/// [`FLOOR`] differs in 39 % of them, unrelated tokens in 50 %.
const SIGNS: f32 = 0.43;

/// Words and marks that carry no meaning on their own.
const IDLE: &str = "a an and are as at be been but by did do does for from had has have he her \
    hers him his how i if in into is it its me my of on or our she so that the their them then \
    there these they this to was we were what when where which who whom why will with would you \
    your about can could s t . , ! ? : ; ' \" - ( ) [ ] & /";

/// A token and how near it is: the squared cosine, 1 for the token itself.
pub type Near = (u16, f32);

/// What is known so far.
#[derive(Debug)]
pub(crate) struct Kin {
    idle: Box<[bool]>,
    signs: Box<[u64]>,
    found: Box<[OnceLock<Box<[Near]>>]>,
}

impl Kin {
    pub(crate) fn new(wordpiece: &Wordpiece, rows: &[i8], dims: usize) -> Self {
        let tokens = rows.len() / dims;
        let mut idle = vec![false; tokens].into_boxed_slice();
        for token in wordpiece.tokens(IDLE) {
            idle[usize::from(token)] = true;
        }
        let word = |values: &[i8]| {
            values.iter().rev().fold(0, |word, value| word << 1 | u64::from(*value > 0))
        };
        Self {
            idle,
            signs: rows.chunks(dims).flat_map(|row| row.chunks(64)).map(word).collect(),
            found: (0..tokens).map(|_| OnceLock::new()).collect(),
        }
    }
}

impl Static {
    /// Returns the tokens that mean nearly the same as this one, itself included, or `None`
    /// for a token that carries no meaning of its own. The first call for a token looks at the
    /// whole table, which takes a tenth of a millisecond; [`Static::meet_kin`] takes it ahead.
    pub fn kin(&self, token: u16) -> Option<&[Near]> {
        let at = usize::from(token);
        let (_, unit) = self.token_unit(token);
        if self.kin.idle[at] || unit <= 0.0 {
            return None;
        }
        Some(self.kin.found[at].get_or_init(|| self.nearest(token)))
    }

    /// Finds the kin of every token, some seconds of work that later questions are spared.
    pub fn meet_kin(&self) {
        for token in (0u16..).take(self.kin.found.len()) {
            self.kin(token);
        }
    }

    fn nearest(&self, token: u16) -> Box<[Near]> {
        let (row, unit) = self.token_unit(token);
        let words = row.len().div_ceil(64);
        let mut distances = vec![0; self.kin.idle.len()];
        let signs = &self.kin.signs[usize::from(token) * words..][..words];
        scan_hamming(signs, &self.kin.signs, &mut distances);
        #[expect(clippy::cast_possible_truncation, reason = "a share of a few hundred dimensions")]
        #[expect(clippy::cast_sign_loss, reason = "a share is positive")]
        let limit = (row.len() as f32 * SIGNS) as u32;
        let mut near: Vec<Near> = (0u16..)
            .zip(distances)
            .filter(|(other, distance)| *distance <= limit && !self.kin.idle[usize::from(*other)])
            .filter_map(|(other, _)| {
                let (values, scale) = self.token_unit(other);
                let cosine = dot_i8(row, values) as f32 * unit * scale;
                (cosine >= FLOOR).then_some((other, cosine * cosine))
            })
            .collect();
        near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        near.truncate(MOST);
        near.into()
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin;

    #[test]
    fn kin_are_near_and_idle_words_have_none() {
        let statics = &builtin().statics;
        let token = |word: &str| statics.tokens(word)[0];
        let kin = statics.kin(token("doctor")).unwrap();
        assert_eq!(kin[0].0, token("doctor"));
        assert!((kin[0].1 - 1.0).abs() < 1e-3);
        assert!(kin.iter().any(|(near, _)| *near == token("physician")));
        assert!(!kin.iter().any(|(near, _)| *near == token("guitar")));
        assert!(kin.iter().all(|(near, square)| {
            let cosine = statics.token_cosine(token("doctor"), *near);
            *square >= 0.35 * 0.35 && (cosine * cosine - square).abs() < 1e-5
        }));
        assert!(statics.kin(token("the")).is_none());
    }
}
