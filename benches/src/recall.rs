//! What it costs to recall.

use anyhow::{Result, ensure};
use yore_domain::query::Effort;
use yore_embed::builtin;
use yore_engine::Call;

use crate::corpus::Corpus;
use crate::meter::Series;
use crate::world::World;

/// Questions asked before the clock starts, to fill caches as a running server has them.
const WARM: usize = 30;

/// Questions for a vault of this size.
pub(crate) fn questions(corpus: &Corpus, size: usize, count: usize) -> Vec<String> {
    (0..count).map(|number| corpus.question(size, number)).collect()
}

/// Asks each question once with the static table alone.
///
/// Embedding is still in these readings; [`embedding`] says how much to take off.
pub(crate) async fn instant(world: &World, call: &Call, questions: &[String]) -> Result<Series> {
    let mut found = 0;
    for question in questions.iter().rev().take(WARM) {
        found += world.ask(call, question, Effort::Instant).await?;
    }
    ensure!(found > 0, "no question was answered, so nothing would be measured");
    Series::of_each(questions, async |question| {
        world.ask(call, question, Effort::Instant).await.map(drop)
    })
    .await
}

/// Asks each question with the transformer's vector, which the engine still knows from a first
/// round, so that no embedding is in these readings.
pub(crate) async fn balanced(world: &World, call: &Call, questions: &[String]) -> Result<Series> {
    // The engine keeps the vectors of its last 512 questions.
    let questions = &questions[..questions.len().min(400)];
    for question in questions {
        world.ask(call, question, Effort::Balanced).await?;
    }
    Series::of_each(questions, async |question| {
        world.ask(call, question, Effort::Balanced).await.map(drop)
    })
    .await
}

/// What turning a question into vectors costs: the static table, and the transformer.
pub(crate) fn embedding(questions: &[String]) -> (Series, Series) {
    let models = builtin();
    let statics = |question: &String| {
        let tokens = models.statics.tokens(question);
        std::hint::black_box(models.statics.embed(&tokens));
    };
    let transformer = |question: &String| {
        std::hint::black_box(models.transformer.embed(question));
    };
    for question in questions.iter().take(WARM) {
        statics(question);
        transformer(question);
    }
    (Series::of(questions, statics), Series::of(questions, transformer))
}
