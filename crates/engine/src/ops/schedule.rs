//! How often a server makes copies of one vault, where its user says so.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use yore_domain::grant::Verb;
use yore_domain::{Error, Result, Span, VaultId};
use yore_policy::Need;
use yore_store::{Snapshot, Write};

use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Trace};

/// The setting that holds it.
const SETTING: &str = "backup:schedule";

/// How often copies are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Every {
    /// Never.
    #[default]
    Off,
    /// Each day.
    Daily,
    /// Each week.
    Weekly,
    /// Each thirty days.
    Monthly,
}

impl Every {
    /// Reads the word for it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Off, Self::Daily, Self::Weekly, Self::Monthly]
            .into_iter()
            .find(|every| every.as_str() == text)
    }

    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Daily => "daily",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
        }
    }

    /// The time between two copies; none where none are made.
    #[must_use]
    pub const fn span(self) -> Option<Span> {
        match self {
            Self::Off => None,
            Self::Daily => Some(Span::days(1)),
            Self::Weekly => Some(Span::days(7)),
            Self::Monthly => Some(Span::days(30)),
        }
    }
}

/// What a user wants of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// How often.
    pub every: Every,
    /// How many are kept; absent means as many as the operator says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<usize>,
}

impl Engine {
    /// Returns what the user of the vault said about copies of it.
    pub async fn schedule(&self, call: &Call) -> Result<Option<Schedule>> {
        let need = Need::one("schedule.look", Verb::Export);
        self.look(call, need, (), |_, _, snapshot, ()| {
            Box::pin(async move { Ok((stored(snapshot).await?, Trace::default())) })
        })
        .await
    }

    /// The same for the server's own work, which tells nobody.
    pub async fn scheduled(&self, vault: VaultId) -> Result<Option<Schedule>> {
        let permit = self.system(vault, "look at a schedule")?;
        let snapshot = self.store().snapshot(&permit).await?;
        stored(&*snapshot).await
    }

    /// Says how often copies of the vault are made; nothing leaves it to the operator. A copy holds
    /// everything, so only who sees everything may.
    pub async fn set_schedule(&self, call: &Call, schedule: Option<Schedule>) -> Result<()> {
        let need = Need::one("schedule.set", Verb::Export);
        self.change(call, need, schedule, |_, session, _, schedule| {
            Box::pin(async move {
                if !session.is_owner() {
                    return Err(Error::forbidden("only the owner schedules copies"));
                }
                if schedule.is_some_and(|schedule| schedule.keep == Some(0)) {
                    return Err(Error::invalid("keep", "must be at least 1"));
                }
                let every = schedule.map(|schedule| schedule.every.as_str());
                let write = Write::Setting(SETTING.to_owned(), json!(schedule));
                Ok(Planned::done((), vec![write]).traced(Trace::default().with("every", every)))
            })
        })
        .await
    }
}

async fn stored(snapshot: &dyn Snapshot) -> Result<Option<Schedule>> {
    match snapshot.setting(SETTING).await? {
        None | Some(Value::Null) => Ok(None),
        Some(value) => Ok(Some(serde_json::from_value(value).map_err(Error::internal)?)),
    }
}
