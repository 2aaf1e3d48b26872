//! Reading a version together with the chain it stands in.

use yore_domain::grant::Verb;
use yore_domain::memory::Version;
use yore_domain::{Error, Result};
use yore_policy::Need;

use super::get::{Reference, find, shown_chain, target};
use super::shown::{shown, standing};
use crate::call::Call;
use crate::engine::Engine;
use crate::run::Trace;

/// What a version is looked up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be read.
    Reading,
    /// To be changed by the operation of this name: whoever may not change anything is turned
    /// away under that name, as if the look had not been taken.
    Change(&'static str),
}

impl Purpose {
    fn need(self) -> Need {
        match self {
            Self::Reading => Need::one("get", Verb::Read),
            Self::Change(operation) => Need::one("resolve", Verb::Write).towards(operation),
        }
    }
}

/// A version and the chain it stands in.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The version that was asked for.
    pub asked: Version,
    /// Every version of its memory that the caller may see, oldest first.
    pub versions: Vec<Version>,
}

impl Engine {
    /// Returns a version and its chain. The first reference that leads anywhere counts. Whoever
    /// looks before a change needs the verb of the change, not the one for reading.
    pub async fn chain(
        &self,
        call: &Call,
        wanted: Vec<Reference>,
        purpose: Purpose,
    ) -> Result<Chain> {
        self.look(call, purpose.need(), wanted, |_, session, snapshot, wanted| {
            Box::pin(async move {
                for reference in wanted {
                    let Some(memory) = find(session, snapshot, reference).await? else { continue };
                    let versions = snapshot.history(memory.head.memory).await?;
                    let standing = standing(session, snapshot, memory.head.memory).await?;
                    let asked = shown(session, memory.head, &standing).ok_or(Error::NotFound)?;
                    let trace = Trace { targets: vec![target(&asked)], ..Trace::default() };
                    let versions = shown_chain(session, session.viewer(), versions);
                    return Ok((Chain { asked, versions }, trace));
                }
                Err(Error::NotFound)
            })
        })
        .await
    }
}
