//! Agents that may write to a vault and be written to, each by the DID it signs with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use yore_canon::did::Did;
use yore_domain::grant::Verb;
use yore_domain::{AgentId, Error, Result, Timestamp};
use yore_policy::Need;
use yore_store::{Snapshot, Write};

use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Session, Trace};

/// The setting in which all of them stand.
const PEERS: &str = "agents";
/// How many a vault knows.
const MOST: usize = 1000;

/// An agent that may write to a vault and be written to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peer {
    /// The DID it signs with.
    pub did: String,
    /// The name its grants state; absent for what speaks as the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Whether what is said with it is kept as a conversation.
    pub recorded: bool,
    /// When it was registered; set by the vault.
    #[serde(default = "unset")]
    pub registered: Timestamp,
}

const fn unset() -> Timestamp {
    Timestamp::MIN
}

impl Engine {
    /// Registers an agent by its DID, or changes what is known of it. Only the owner may: whoever
    /// is bound to a name acts under its grants.
    pub async fn register_peer(&self, call: &Call, peer: Peer) -> Result<Peer> {
        let need = Need::one("agent.register", Verb::Grant);
        self.change(call, need, peer, |_, session, snapshot, peer| {
            Box::pin(async move {
                owner_only(session)?;
                addressable(&peer.did)?;
                let peer = Peer { registered: session.now, ..peer.clone() };
                let mut known = peers(snapshot).await?;
                known.retain(|known| known.did != peer.did);
                if known.len() >= MOST {
                    return Err(Error::too_large("the register of agents", MOST));
                }
                known.push(peer.clone());
                let trace = Trace::default().with("did", peer.did.clone());
                Ok(Planned::done(peer, vec![written(&known)?]).traced(trace))
            })
        })
        .await
    }

    /// Lists the registered agents.
    pub async fn peers(&self, call: &Call) -> Result<Vec<Peer>> {
        self.look(call, Need::one("agent.list", Verb::Grant), (), |_, session, snapshot, ()| {
            Box::pin(async move {
                owner_only(session)?;
                let known = peers(snapshot).await?;
                let trace = Trace::count(known.len());
                Ok((known, trace))
            })
        })
        .await
    }

    /// Strikes an agent off the register.
    pub async fn remove_peer(&self, call: &Call, did: String) -> Result<()> {
        let need = Need::one("agent.remove", Verb::Grant);
        self.change(call, need, did, |_, session, snapshot, did| {
            Box::pin(async move {
                owner_only(session)?;
                let mut known = peers(snapshot).await?;
                let before = known.len();
                known.retain(|known| known.did != *did);
                if known.len() == before {
                    return Err(Error::NotFound);
                }
                let trace = Trace::default().with("did", did.clone());
                Ok(Planned::done((), vec![written(&known)?]).traced(trace))
            })
        })
        .await
    }
}

fn owner_only(session: &Session) -> Result<()> {
    if session.is_owner() {
        return Ok(());
    }
    Err(Error::forbidden("only the owner keeps the register of agents"))
}

fn addressable(did: &str) -> Result<()> {
    let wrong = || Error::invalid("did", "must be a did:key or did:web");
    let did: Did = did.parse().map_err(|_| wrong())?;
    let fine = match did.method() {
        "key" => did.key().is_ok(),
        "web" => did.web_url().is_ok(),
        _ => false,
    };
    if fine { Ok(()) } else { Err(wrong()) }
}

fn written(peers: &[Peer]) -> Result<Write> {
    Ok(Write::Setting(PEERS.into(), serde_json::to_value(peers).map_err(Error::internal)?))
}

/// All registered agents.
pub(crate) async fn peers(snapshot: &dyn Snapshot) -> Result<Vec<Peer>> {
    let stored = snapshot.setting(PEERS).await?;
    serde_json::from_value(stored.unwrap_or(Value::Array(Vec::new()))).map_err(Error::internal)
}

/// The sender as the vault knows it, if the caller speaks for it: it is registered under the
/// caller's name, or the caller's grant names the DID itself.
pub(crate) async fn speaking(
    session: &Session,
    snapshot: &dyn Snapshot,
    did: &str,
) -> Result<Peer> {
    let agent = session.permit.principal().agent();
    let known = peers(snapshot).await?.into_iter().find(|peer| peer.did == did);
    match known {
        Some(peer) if agent == Some(did) || is_its(session, &peer) => Ok(peer),
        None if agent == Some(did) => Ok(Peer {
            did: did.to_owned(),
            agent: Some(AgentId::new(did)?),
            recorded: true,
            registered: unset(),
        }),
        Some(_) | None => Err(Error::forbidden("the credential does not speak for the sender")),
    }
}

/// The DIDs for which the caller speaks.
pub(crate) async fn own_names(session: &Session, snapshot: &dyn Snapshot) -> Result<Vec<String>> {
    let mut names: Vec<String> =
        session.permit.principal().agent().map(str::to_owned).into_iter().collect();
    let known = peers(snapshot).await?;
    names.extend(known.into_iter().filter(|peer| is_its(session, peer)).map(|peer| peer.did));
    Ok(names)
}

fn is_its(session: &Session, peer: &Peer) -> bool {
    match (session.permit.principal().agent(), &peer.agent) {
        (Some(agent), Some(named)) => agent == named.as_str(),
        (None, None) => session.is_owner(),
        (Some(_), None) | (None, Some(_)) => false,
    }
}
