//! Whose knowledge a request is about, and who asks.

use yore_domain::grant::Verb;
use yore_domain::{Error, MemoryId};
use yore_engine::{Call, Identity, VaultRef};

use crate::Oamp;
use crate::error::{Refusal, Result};

/// The longest user id that is taken; it names a vault.
const USER_BYTES: usize = 256;

/// A believed caller, addressed to one person's vault.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) call: Call,
    pub(crate) identity: Identity,
}

impl Person {
    /// Whether the person asks, and not an agent under a grant.
    pub(crate) fn is_direct(&self) -> bool {
        self.identity.is_owner()
    }

    /// Turns the refusal of a write into the one for agents.
    pub(crate) fn refuse_write(&self, refusal: Refusal) -> Refusal {
        if self.is_direct() { refusal } else { refusal.of_write() }
    }
}

impl Oamp {
    /// Finds out who asks and about whom. A service acts for whomever the request names;
    /// everybody else has one person.
    pub(crate) async fn person(
        &self,
        call: &Call,
        user: Option<&str>,
        verb: Verb,
    ) -> Result<Person> {
        if user.is_some_and(|user| user.is_empty() || user.len() > USER_BYTES) {
            return Err(Refusal::invalid("user_id", "must be 1 to 256 bytes"));
        }
        let mut call = call.clone();
        if call.vault == VaultRef::Default
            && call.credentials.subject().is_none()
            && self.engine.serves(&call).await?.is_some()
        {
            let Some(user) = user else { return Err(Refusal::invalid("user_id", "is required")) };
            call.vault = VaultRef::Owner(user.to_owned());
        }
        self.believed(call, user, verb).await
    }

    /// The same for a request that names an entry: where it lies says whose it is. Looking for
    /// an entry makes no vault, whatever shall be done with it.
    pub(crate) async fn keeper_of(
        &self,
        call: &Call,
        user: Option<&str>,
        id: Option<MemoryId>,
    ) -> Result<Person> {
        let verb = Verb::Read;
        if user.is_some() {
            return self.person(call, user, verb).await;
        }
        let Some(id) = id else {
            // What is no id is nobody's; whoever asks must still be somebody.
            if call.vault != VaultRef::Default || self.engine.serves(call).await?.is_none() {
                self.believed(call.clone(), None, verb).await?;
            }
            return Err(Error::NotFound.into());
        };
        let call = self.engine.locate(call, id).await?;
        self.believed(call, None, verb).await
    }

    /// What a caller is told of an input that is refused: whoever is nobody is told that first.
    pub(crate) async fn refused_input(&self, call: &Call, error: Error) -> Refusal {
        match self.known(call).await {
            Err(refusal) if refusal.status == 401 => refusal,
            Ok(()) | Err(_) => error.into(),
        }
    }

    /// Whether the caller is anybody at all.
    pub(crate) async fn known(&self, call: &Call) -> Result<()> {
        if self.engine.serves(call).await?.is_none() {
            self.engine.identify(call, Verb::Read).await?;
        }
        Ok(())
    }

    async fn believed(&self, call: Call, user: Option<&str>, verb: Verb) -> Result<Person> {
        let identity = self.engine.identify(&call, verb).await?;
        if user.is_some_and(|user| user != identity.owner() && user != identity.did()) {
            return Err(Error::forbidden("the credential is for another user").into());
        }
        Ok(Person { call, identity })
    }
}
