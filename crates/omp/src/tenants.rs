//! Administration of tenants: their users, how long things are kept, and what models did.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use yore_domain::conversation::Role;
use yore_domain::{Error, TenantId, Timestamp};
use yore_engine::{Retention, Talk, Tenant, VaultInfo};

use crate::Omp;
use crate::error::{Refusal, Result};
use crate::flags::{self, Flags};
use crate::map::Object;
use crate::routes::{Asking, Sheet};

impl Omp {
    pub(crate) async fn tenants(&self, asking: &Asking) -> Result<Sheet> {
        let found = self.engine.tenants(&asking.call).await?;
        Ok(Sheet { data: found.iter().map(tenant_out).collect(), next: None })
    }

    pub(crate) async fn add_tenant(
        &self,
        asking: &Asking,
        asked: &Object,
    ) -> Result<(TenantId, Value)> {
        let made = self.engine.add_tenant(&asking.call, name(asked)?).await?;
        Ok((made.id, tenant_out(&made).into()))
    }

    pub(crate) async fn users(&self, asking: &Asking, tenant: &str) -> Result<Sheet> {
        let found = self.engine.users(&asking.call, parsed(tenant)?).await?;
        Ok(Sheet { data: found.iter().map(user_out).collect(), next: None })
    }

    pub(crate) async fn user(&self, asking: &Asking, tenant: &str, user: &str) -> Result<Value> {
        let found = self.engine.user(&asking.call, parsed(tenant)?, user).await?;
        Ok(user_out(&found).into())
    }

    pub(crate) async fn add_user(
        &self,
        asking: &Asking,
        tenant: &str,
        asked: &Object,
    ) -> Result<Value> {
        let made = self.engine.add_user(&asking.call, parsed(tenant)?, &name(asked)?).await?;
        Ok(user_out(&made).into())
    }

    pub(crate) async fn remove_user(
        &self,
        asking: &Asking,
        tenant: &str,
        user: &str,
    ) -> Result<Value> {
        self.engine.remove_user(&asking.call, parsed(tenant)?, user).await?;
        Ok(json!({"deleted": true, "name": user}))
    }

    pub(crate) async fn retention(&self, asking: &Asking) -> Result<Value> {
        Ok(json!(self.engine.retention(&asking.call).await?))
    }

    pub(crate) async fn set_retention(&self, asking: &Asking, asked: Object) -> Result<Value> {
        let reason = "has conversations_days and memories_days";
        let wrong = |_| Refusal::invalid("retention", reason);
        if asked.is_empty() {
            return Err(Refusal::invalid("retention", reason));
        }
        let asked: Retention = serde_json::from_value(Value::Object(asked)).map_err(wrong)?;
        self.engine.set_retention(&asking.call, asked).await?;
        Ok(json!(asked))
    }

    /// Says what each model did: in how many conversations, how much, and how risky those were.
    pub(crate) async fn model_report(&self, asking: &Asking) -> Result<Sheet> {
        let mut models: BTreeMap<String, Impact> = BTreeMap::new();
        self.engine.survey(&asking.call, |talk| count(talk, &mut models)).await?;
        let data = models.iter().map(|(model, impact)| impact.out(model)).collect();
        Ok(Sheet { data, next: None })
    }
}

/// What one model did.
#[derive(Default)]
struct Impact {
    conversations: u64,
    messages: u64,
    platforms: BTreeSet<String>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    risks: BTreeMap<&'static str, u64>,
    reviewed: u64,
    phi: u64,
    npi: u64,
}

impl Impact {
    fn out(&self, model: &str) -> Object {
        let mut out = Map::new();
        out.insert("model".into(), model.into());
        out.insert("conversations".into(), self.conversations.into());
        out.insert("messages".into(), self.messages.into());
        out.insert("platforms".into(), json!(self.platforms));
        out.insert("first_used".into(), json!(self.first.map(|at| at.to_string())));
        out.insert("last_used".into(), json!(self.last.map(|at| at.to_string())));
        out.insert("risk_levels".into(), json!(self.risks));
        out.insert("human_reviewed".into(), self.reviewed.into());
        out.insert("contains_phi".into(), self.phi.into());
        out.insert("contains_npi".into(), self.npi.into());
        out
    }
}

/// Counts a conversation for each model that spoke in it.
fn count(talk: &Talk, models: &mut BTreeMap<String, Impact>) {
    let own = Flags::stored(&talk.head.governance, &talk.head.foreign);
    let flags = talk
        .messages
        .iter()
        .fold(own, |flags, message| flags.or(Flags::in_foreign(&message.foreign)));
    let mut spoke = BTreeSet::new();
    for message in &talk.messages {
        let model = match (&message.model, message.role) {
            (Some(model), _) => model.as_str(),
            (None, Role::Assistant) => "unknown",
            (None, Role::User | Role::System | Role::Tool) => continue,
        };
        let impact = models.entry(model.to_owned()).or_default();
        impact.messages += 1;
        impact.first = Some(impact.first.map_or(message.at, |first| first.min(message.at)));
        impact.last = impact.last.max(Some(message.at));
        spoke.insert(model);
    }
    for model in spoke {
        let impact = models.entry(model.to_owned()).or_default();
        impact.conversations += 1;
        impact.platforms.insert(talk.head.platform.clone());
        if let Some(risk) = flags.risk {
            *impact.risks.entry(flags::RISKS[risk]).or_default() += 1;
        }
        impact.reviewed += u64::from(flags.reviewed);
        impact.phi += u64::from(flags.phi);
        impact.npi += u64::from(flags.npi);
    }
}

fn parsed(tenant: &str) -> Result<TenantId> {
    Ok(tenant.parse().map_err(|_| Error::NotFound)?)
}

fn name(asked: &Object) -> Result<String> {
    let name = asked.get("name").and_then(Value::as_str);
    Ok(name.ok_or_else(|| Refusal::invalid("name", "must be a text"))?.to_owned())
}

fn tenant_out(tenant: &Tenant) -> Object {
    let mut out = Map::new();
    out.insert("id".into(), json!(tenant.id));
    if let Some(name) = &tenant.name {
        out.insert("name".into(), name.as_str().into());
    }
    out.insert("users".into(), tenant.users.into());
    out
}

fn user_out(user: &VaultInfo) -> Object {
    let mut out = Map::new();
    out.insert("name".into(), user.owner.as_str().into());
    out.insert("tenant_id".into(), json!(user.tenant));
    out.insert("vault_id".into(), json!(user.id));
    out.insert("did".into(), user.did.as_str().into());
    out.insert("created_at".into(), user.created.to_string().into());
    out
}
