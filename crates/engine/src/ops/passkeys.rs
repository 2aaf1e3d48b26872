//! Passkeys of the owner: kept in the vault, listed, taken back, and believed when they sign.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use yore_canon::encode::base64url;
use yore_canon::hash::Sha256;
use yore_canon::key::VerifyingKey;
use yore_canon::webauthn::{ClientData, Purpose, Told, verifies};
use yore_domain::grant::Verb;
use yore_domain::{Error, Result, Timestamp, limits};
use yore_policy::{Need, Passkey as Believed};
use yore_store::{Precondition, Snapshot, Write};

use crate::call::{Asked, Assertion, Call};
use crate::engine::Engine;
use crate::run::{Planned, Trace};

/// The setting that holds them.
const SETTING: &str = "passkeys";
/// How many a vault has at most.
const MOST: usize = 50;

/// What is kept of a passkey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passkey {
    /// Its id, in base64url.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// The host it belongs to.
    pub host: String,
    /// Its public key, in multibase.
    key: String,
    /// How often it had signed when it was last seen.
    counter: u32,
    /// When it was added.
    pub added: Timestamp,
    /// When somebody last signed in with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Timestamp>,
}

/// A passkey that a browser made, as it came.
#[derive(Clone, Debug)]
pub struct NewPasskey {
    /// What the browser was asked.
    pub asked: Asked,
    /// What the browser says that it asked, as JSON.
    pub client_data: Vec<u8>,
    /// What the authenticator says.
    pub attestation: Vec<u8>,
    /// What its owner calls it.
    pub name: String,
}

impl Engine {
    /// Lists the passkeys of the vault.
    pub async fn passkeys(&self, call: &Call) -> Result<Vec<Passkey>> {
        let need = Need::one("passkey.list", Verb::Admin);
        self.look(call, need, (), |_, _, snapshot, ()| {
            Box::pin(async move {
                let (_, kept) = kept(snapshot).await?;
                let trace = Trace::count(kept.len());
                Ok((kept, trace))
            })
        })
        .await
    }

    /// Adds a passkey. Only the owner may.
    pub async fn add_passkey(&self, call: &Call, made: NewPasskey) -> Result<()> {
        let need = Need::one("passkey.add", Verb::Admin);
        let passkey = read(&made, self.now())?;
        self.change(call, need, passkey, |_, session, snapshot, passkey| {
            Box::pin(async move {
                if !session.is_owner() {
                    return Err(Error::forbidden("only the owner adds passkeys"));
                }
                let (before, mut all) = kept(snapshot).await?;
                if all.iter().any(|known| known.id == passkey.id) {
                    return Err(Error::conflict("the passkey is known already"));
                }
                if all.len() >= MOST {
                    return Err(Error::invalid("passkey", "there are too many; remove some first"));
                }
                all.push(passkey.clone());
                Ok(changed((), before, &all).traced(trace(&passkey.id)))
            })
        })
        .await
    }

    /// Takes a passkey back. Who signed in with it before stays signed in.
    pub async fn remove_passkey(&self, call: &Call, id: String) -> Result<()> {
        let need = Need::one("passkey.remove", Verb::Admin);
        self.change(call, need, id, |_, session, snapshot, id| {
            Box::pin(async move {
                if !session.is_owner() {
                    return Err(Error::forbidden("only the owner removes passkeys"));
                }
                let (before, mut all) = kept(snapshot).await?;
                let count = all.len();
                all.retain(|known| known.id != *id);
                if all.len() == count {
                    return Err(Error::NotFound);
                }
                Ok(changed((), before, &all).traced(trace(id)))
            })
        })
        .await
    }
}

/// What the audit chain says of a passkey: enough to tell it from others.
pub(super) fn trace(id: &str) -> Trace {
    Trace::default().with("passkey", Sha256::of(id).to_hex().chars().take(16).collect::<String>())
}

/// Writes all passkeys down, if they are still those that were read.
fn changed<T>(output: T, before: Option<Value>, all: &[Passkey]) -> Planned<T> {
    let write = Write::Setting(SETTING.to_owned(), json!(all));
    let mut planned = Planned::done(output, vec![write]);
    planned.preconditions.push(Precondition::Setting(SETTING.to_owned(), before));
    planned
}

/// Notes that a passkey signed: how often it has by now, and when.
pub(super) async fn counted(
    snapshot: &dyn Snapshot,
    assertion: &Assertion,
    now: Timestamp,
) -> Result<(Planned<()>, String)> {
    let id = base64url(&assertion.passkey);
    let told = Told::read(&assertion.data)
        .map_err(|_| Error::unauthenticated("the passkey did not sign this"))?;
    let (before, mut all) = kept(snapshot).await?;
    let known = all.iter_mut().find(|known| known.id == id).ok_or(Error::NotFound)?;
    // Of two who come with the same count, the second finds it counted already.
    if !goes_on(known.counter, told.counter) {
        return Err(Error::unauthenticated("the passkey signed this before"));
    }
    known.counter = told.counter;
    known.used = Some(now);
    Ok((changed((), before, &all), id))
}

/// The passkeys of a vault, as they are kept and as they are meant.
async fn kept(snapshot: &dyn Snapshot) -> Result<(Option<Value>, Vec<Passkey>)> {
    let before = snapshot.setting(SETTING).await?;
    let all = match &before {
        None | Some(Value::Null) => Vec::new(),
        Some(value) => serde_json::from_value(value.clone()).map_err(Error::internal)?,
    };
    Ok((before, all))
}

/// Reads a new passkey, and refuses one that was not made here and now.
fn read(made: &NewPasskey, now: Timestamp) -> Result<Passkey> {
    let wrong = |reason: &str| Error::invalid("passkey", reason.to_owned());
    let client = ClientData::read(&made.client_data).map_err(|error| wrong(&error.to_string()))?;
    let told =
        Told::read_attestation(&made.attestation).map_err(|error| wrong(&error.to_string()))?;
    if !answers(&client, Purpose::Create, &made.asked) {
        return Err(wrong("answers another question"));
    }
    if told.host != Sha256::of(&made.asked.host) {
        return Err(wrong("is for another place"));
    }
    if !(told.present && told.verified) {
        return Err(wrong("must make sure who uses it"));
    }
    let new = told.made.ok_or_else(|| wrong("is not a new one"))?;
    let name = made.name.trim();
    if name.is_empty() || name.len() > limits::NAME_BYTES || name.chars().any(char::is_control) {
        return Err(Error::invalid("name", "must be 1 to 256 bytes without control characters"));
    }
    Ok(Passkey {
        id: base64url(&new.id),
        name: name.to_owned(),
        host: made.asked.host.clone(),
        key: new.key.to_multibase(),
        counter: told.counter,
        added: now,
        used: None,
    })
}

fn answers(client: &ClientData, purpose: Purpose, asked: &Asked) -> bool {
    client.purpose == purpose
        && !client.framed
        && !asked.challenge.is_empty()
        && client.challenge == asked.challenge
        && asked.origins.contains(&client.origin)
}

/// Whether a counter went on. An authenticator that does not count always says 0.
const fn goes_on(before: u32, now: u32) -> bool {
    now > before || (before == 0 && now == 0)
}

/// Finds out about something that a passkey signed. What cannot be read is not a signature.
pub(crate) async fn shown(snapshot: &dyn Snapshot, assertion: &Assertion) -> Result<Believed> {
    let nothing = Believed {
        known: false,
        signature: false,
        asked: false,
        here: false,
        verified: false,
        counted: false,
    };
    let Assertion { asked, passkey, client_data, data, signature } = assertion;
    let id = base64url(passkey);
    let (_, all) = kept(snapshot).await?;
    let Some(known) = all.into_iter().find(|known| known.id == id) else { return Ok(nothing) };
    let (Ok(client), Ok(told)) = (ClientData::read(client_data), Told::read(data)) else {
        return Ok(Believed { known: true, ..nothing });
    };
    let key = VerifyingKey::from_multibase(&known.key).map_err(Error::internal)?;
    Ok(Believed {
        known: true,
        signature: verifies(&key, data, client_data, signature),
        asked: answers(&client, Purpose::Get, asked),
        here: known.host == asked.host && told.host == Sha256::of(&asked.host),
        verified: told.present && told.verified,
        counted: goes_on(known.counter, told.counter),
    })
}
