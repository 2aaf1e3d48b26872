//! What a change did, in words.

use yore_engine::{Effect, Mutated};

use crate::app::App;
use crate::failure::Result;
use crate::output::{DIM, GOOD, ID};

/// Shows the answer to a change.
pub(crate) fn show(app: &App, done: &Mutated) -> Result {
    app.out.either(done, |done| {
        let words = match done.effect {
            Effect::Created => "remembered",
            Effect::Merged => "merged into what was known",
            Effect::Revised => "revised",
            Effect::Tombstoned => "forgotten",
            Effect::Erased => "erased",
            Effect::Unchanged => "unchanged",
        };
        for head in &done.memories {
            app.out.line(format!(
                "{GOOD}{words}{GOOD:#}  {ID}{}{ID:#}  {DIM}version {}{DIM:#}",
                head.memory, head.number
            ))?;
        }
        Ok(())
    })
}
