//! The operations by name, and what they share.

use serde::Serialize;
use serde_json::Value;
use yore_domain::{Error, HoldId, Result};
use yore_engine::{Call, Mutated};

use crate::Memorywire;
use crate::wire::{Object, read};

/// The five operations of the protocol and the two of recovery, in the order in which they are
/// listed.
pub const OPERATIONS: [&str; 7] =
    ["remember", "recall", "forget", "merge", "expire", "recover", "restore"];

/// What became of a change.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done(Mutated),
    Waits(HoldId),
}

/// A change that waits for a person is an answer, not a failure.
pub(crate) fn outcome(result: Result<Mutated>) -> Result<Outcome> {
    match result {
        Ok(done) => Ok(Outcome::Done(done)),
        Err(Error::Held { hold }) => Ok(Outcome::Waits(hold)),
        Err(error) => Err(error),
    }
}

impl Memorywire {
    /// Carries out an operation by its name.
    pub(crate) async fn perform(&self, call: &Call, name: &str, input: Object) -> Result<Value> {
        self.scoped(&input)?;
        match name {
            "remember" => answer(self.remember(call, read(input)?).await?),
            "recall" => answer(self.recall(call, read(input)?).await?),
            "forget" => answer(self.forget(call, read(input)?).await?),
            "merge" => answer(self.merge(call, read(input)?).await?),
            "expire" => answer(self.expire(call, read(input)?).await?),
            "recover" => answer(self.recover(call, read(input)?).await?),
            "restore" => answer(self.restore(call, read(input)?).await?),
            _ => Err(Error::Unsupported { what: "the operation".to_owned() }),
        }
    }

    /// Checks that a request names a person, or says that it means none, where the operator wants
    /// that: what is left out by mistake would reach everybody's memories.
    pub(crate) fn scoped(&self, input: &Object) -> Result<()> {
        let named = input.get("user_id").is_some_and(|user| !user.is_null());
        let on_purpose = input.get("agent_only") == Some(&Value::Bool(true));
        if self.options.require_user && !named && !on_purpose {
            let reason = "is required here; agent_only says that no person is meant";
            return Err(Error::invalid("user_id", reason));
        }
        Ok(())
    }

    /// What the call's operation id was answered before, if it was: what a request names may
    /// be gone by the time it is sent again.
    pub(crate) async fn before(
        &self,
        call: &Call,
        operation: &'static str,
    ) -> Result<Option<Outcome>> {
        match self.engine.answered(call, operation).await {
            Ok(None) => Ok(None),
            Ok(Some(done)) => Ok(Some(Outcome::Done(done))),
            Err(Error::Held { hold }) => Ok(Some(Outcome::Waits(hold))),
            Err(error) => Err(error),
        }
    }
}

pub(crate) fn answer(of: impl Serialize) -> Result<Value> {
    serde_json::to_value(of).map_err(Error::internal)
}
