//! What a ranking is worth, without a judge.

use serde_json::{Value, json};

use crate::meter::round;

/// Where rankings are cut.
const CUTS: [usize; 3] = [1, 5, 10];

/// A ranking, and what would have been right; the best first.
#[derive(Clone, Debug)]
pub(crate) struct Ranking {
    pub(crate) ranked: Vec<String>,
    pub(crate) gold: Vec<String>,
}

impl Ranking {
    fn hits(&self, k: usize) -> usize {
        self.ranked.iter().take(k).filter(|id| self.gold.contains(id)).count()
    }

    /// The share of the gold among the first k.
    pub(crate) fn recall(&self, k: usize) -> f64 {
        self.hits(k) as f64 / self.gold.len().max(1) as f64
    }

    /// Gain with a discount by place, against the best order there could be.
    fn ndcg(&self, k: usize) -> f64 {
        let worth = |place: usize| 1.0 / ((place + 2) as f64).log2();
        let found = self.ranked.iter().take(k).enumerate();
        let gain: f64 =
            found.filter(|(_, id)| self.gold.contains(id)).map(|(at, _)| worth(at)).sum();
        let best: f64 = (0..k.min(self.gold.len())).map(worth).sum();
        if best == 0.0 { 0.0 } else { gain / best }
    }
}

/// The mean of one measure.
pub(crate) fn mean(all: &[Ranking], of: impl Fn(&Ranking) -> f64) -> f64 {
    all.iter().map(of).sum::<f64>() / all.len().max(1) as f64
}

/// A row for each cut; each says how many questions there were.
pub(crate) fn rows(what: &str, all: &[Ranking]) -> Vec<Value> {
    let row = |k: usize| {
        let any = mean(all, |one| f64::from(u8::from(one.hits(k) > 0)));
        let whole = mean(all, |one| f64::from(u8::from(one.recall(k) >= 1.0)));
        json!({
            "what": what, "n": all.len(), "k": k, "recall": round(mean(all, |one| one.recall(k))),
            "recall_any": round(any), "recall_all": round(whole),
            "ndcg": round(mean(all, |one| one.ndcg(k))),
        })
    };
    CUTS.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(ranked: &[&str], gold: &[&str]) -> Ranking {
        let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        Ranking { ranked: owned(ranked), gold: owned(gold) }
    }

    #[test]
    fn any_and_all_differ_where_there_are_two_answers() {
        let all = [ranking(&["a", "x", "b"], &["a", "b"]), ranking(&["x", "y"], &["c"])];
        let rows = rows("turn", &all);
        assert_eq!(
            (&rows[0]["recall"], &rows[0]["recall_any"], &rows[0]["recall_all"]),
            (&json!(0.25), &json!(0.5), &json!(0.0))
        );
        assert_eq!(
            (&rows[1]["recall"], &rows[1]["recall_any"], &rows[1]["recall_all"]),
            (&json!(0.5), &json!(0.5), &json!(0.5))
        );
        assert_eq!(rows[2]["n"], 2);
    }

    #[test]
    fn gain_falls_with_the_place() {
        let at = |place: usize| {
            let mut ids = vec!["x"; 10];
            ids[place] = "a";
            ranking(&ids, &["a"]).ndcg(10)
        };
        assert_eq!(at(0), 1.0);
        assert!(at(0) > at(1) && at(1) > at(9) && at(9) > 0.0);
        assert_eq!(ranking(&["x"], &["a"]).ndcg(10), 0.0);
    }
}
