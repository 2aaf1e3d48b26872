//! One file per operation. Mutations are planned here; everything else runs by itself.

pub mod accept;
pub mod acknowledge;
pub mod amend;
pub mod append;
pub mod attach;
pub mod audit;
pub mod batch;
pub mod begin;
pub mod case;
mod certificates;
pub mod chain;
pub mod changes;
pub mod consolidate;
pub mod context;
pub mod converse;
pub mod decide_all;
pub(crate) mod diff;
mod disclose;
pub mod elsewhere;
pub mod expire;
pub mod export;
pub mod feedback;
mod forget;
pub mod get;
pub mod grants;
pub mod guardian;
pub mod hold_talk;
pub mod identify;
pub mod import;
pub mod inbox;
pub mod keep;
pub(crate) mod learn;
mod ledger;
pub mod list;
pub mod locate;
pub(crate) mod many;
mod merge;
pub mod neighbours;
pub mod passage;
pub mod passkeys;
pub mod peers;
pub mod preview;
mod prior;
pub mod profile;
pub mod propose;
pub mod public;
pub mod recall;
mod relabel;
mod remember;
pub mod renew;
mod repeat;
mod restore;
pub mod resume;
pub mod retention;
pub mod review;
mod revise;
pub mod rules;
pub mod say;
pub mod schedule;
pub mod search;
mod shown;
pub mod sign_in;
pub mod simulate;
pub mod survey;
pub mod sync;
pub mod takeout;
pub mod talk;
pub mod tenants;
pub mod tokens;
pub mod transcript;
pub mod undo;
pub mod upkeep;
pub mod vitals;
pub mod webhooks;
pub mod work;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::Result;
use yore_domain::memory::Content;
use yore_domain::mutation::Mutation;

use crate::mutate::{Ground, Steps};

pub(crate) use remember::{indexing, text_indexing};

/// Whether to only say what would happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DryRun {
    /// Do it.
    #[default]
    No,
    /// Change nothing.
    Yes,
}

/// What the target would say afterwards, where a mutation changes what it says.
pub(crate) async fn after(ground: &Ground<'_>, mutation: &Mutation) -> Result<Option<Content>> {
    match mutation {
        Mutation::Revise { patch, .. } => Ok(Some(revise::after(ground.target()?, patch))),
        Mutation::Relabel { change, .. } => Ok(Some(relabel::after(ground.target()?, change))),
        Mutation::Restore { number, .. } => restore::after(ground, *number).await.map(Some),
        Mutation::Merge { strategy, .. } => merge::after(ground, *strategy),
        Mutation::Remember { .. } | Mutation::Forget { .. } | Mutation::Disclose { .. } => Ok(None),
    }
}

/// The row changes of a mutation that may happen.
pub(crate) async fn steps(
    ground: &Ground<'_>,
    mutation: &Mutation,
    after: Option<Content>,
) -> Result<Steps> {
    match mutation {
        Mutation::Remember { draft, id } => remember::steps(ground, draft, *id).await,
        Mutation::Revise { patch, .. } => revise::steps(ground, patch, after),
        Mutation::Relabel { .. } => relabel::steps(ground, after),
        Mutation::Forget { depth, .. } => forget::steps(ground, *depth),
        Mutation::Merge { strategy, .. } => merge::steps(ground, *strategy, after),
        Mutation::Restore { number, .. } => restore::steps(ground, *number, after).await,
        Mutation::Disclose { rule, agent, .. } => disclose::steps(ground, rule, agent).await,
    }
}
