//! As which agent a caller speaks.

use yore_domain::grant::Verb;
use yore_domain::{Error, Result};
use yore_engine::{Call, Viewer};

use crate::Memorywire;
use crate::wire::Object;

/// As whom somebody speaks over a carrier who may speak as any agent and names none.
const ANYBODY: &str = "mcp";

/// A believed caller and the agent it speaks as.
#[derive(Clone, Debug)]
pub(crate) struct Speaker {
    pub(crate) agent: String,
    /// As whom it looks: it decides what consent leaves out.
    pub(crate) viewer: Viewer,
}

impl Memorywire {
    /// Finds out who calls. The owner and a service may speak as any agent, whoever holds a
    /// grant only as the one it was given to.
    pub(crate) async fn speaker(&self, call: &Call, agent: &str, verb: Verb) -> Result<Speaker> {
        let identity = self.engine.identify(call, verb).await?;
        if identity.agent().is_some_and(|own| own != agent) {
            return Err(Error::forbidden("the grant is for another agent"));
        }
        Ok(Speaker { agent: agent.to_owned(), viewer: identity.viewer() })
    }

    /// Fills in the agent where a request leaves it out: carriers need not know its name.
    pub(crate) async fn addressed(&self, call: &Call, mut input: Object) -> Result<Object> {
        if !input.contains_key("agent_id") {
            let identity = self.engine.identify(call, Verb::Read).await?;
            let agent = identity.agent().unwrap_or(ANYBODY);
            input.insert("agent_id".to_owned(), agent.into());
        }
        Ok(input)
    }

    /// What a caller is told of an input that is refused: whoever is nobody is told that first.
    pub(crate) async fn refused_input(&self, call: &Call, error: Error) -> Error {
        match self.engine.identify(call, Verb::Read).await {
            Err(nobody @ Error::Unauthenticated { .. }) => nobody,
            Ok(_) | Err(_) => error,
        }
    }
}
