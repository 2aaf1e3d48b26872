//! Keeping the stores beside the vault: how they are, and mending them.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use yore_domain::{Error, Result};
use yore_engine::Call;
use yore_router::deliver::Delivered;

use crate::wire::Object;
use crate::{Memorywire, STORE};

/// How long nothing must come before a repair has seen everything.
const QUIET: Duration = Duration::from_millis(500);

impl Memorywire {
    /// Says how every store is, and nothing more: anybody may ask.
    pub(crate) async fn health(&self) -> Value {
        let own = json!({"status": "ok", "backend": STORE, "capabilities": crate::CAPABILITIES});
        let Some(stores) = &self.stores else { return own };
        let health = stores.health().await;
        let mut capabilities: BTreeSet<&str> = crate::CAPABILITIES.into_iter().collect();
        capabilities.extend(stores.router.capabilities().iter().map(|one| one.as_str()));
        let one = |(name, health): &(String, std::result::Result<_, String>)| {
            let status = if health.is_ok() { "ok" } else { "error" };
            json!({"store": name, "status": status})
        };
        let mut rows = vec![json!({"store": STORE, "status": "ok"})];
        rows.extend(health.stores.iter().map(one));
        let status = if health.status == "ok" { "ok" } else { "degraded" };
        json!({"status": status, "backend": health.backend, "capabilities": capabilities, "stores": rows})
    }

    /// Lists the other stores and how they are, or delivers everything to them once more.
    pub(crate) async fn keep(&self, call: &Call, what: &str, input: Object) -> Result<Value> {
        let operation = match what {
            "list" => "stores.list",
            "repair" => "stores.repair",
            _ => return Err(Error::NotFound),
        };
        self.engine.keep_stores(call, operation).await?;
        let Some(stores) = self.beside(call).await? else { return Ok(json!({"stores": []})) };
        let named = input.get("store").and_then(Value::as_str);
        if named.is_some_and(|name| !stores.names().any(|one| one == name)) {
            return Err(Error::NotFound);
        }
        let rows = match what {
            "list" => {
                let health = stores.router.health().await;
                let slots = stores.router.slots().iter().zip(health.stores);
                slots
                    .map(|(slot, (name, health))| {
                        let capabilities = slot.store().capabilities();
                        json!({
                            "store": name,
                            "status": health.as_ref().map_or("error", |health| health.status.as_str()),
                            "detail": health.as_ref().ok(),
                            "error": health.as_ref().err(),
                            "left_alone": slot.is_open(),
                            "weight": slot.terms().weight,
                            "read_only": slot.terms().read_only,
                            "deadline_ms": slot.terms().deadline.as_millis() as u64,
                            "capabilities": capabilities,
                        })
                    })
                    .collect()
            }
            "repair" => {
                let mut rows = Vec::new();
                for (slot, delivery) in stores.kept().zip(stores.deliveries(&self.engine)) {
                    if named.is_none_or(|name| name == slot.name()) {
                        let done = delivery.repair(QUIET).await;
                        rows.push(repaired(slot.name(), &done.map_err(|error| error.to_string())));
                    }
                }
                rows
            }
            _ => return Err(Error::NotFound),
        };
        Ok(json!({"stores": rows}))
    }
}

fn repaired(store: &str, done: &std::result::Result<Delivered, String>) -> Value {
    match done {
        Ok(done) => json!({
            "store": store,
            "created": done.created,
            "replaced": done.replaced,
            "withdrawn": done.withdrawn,
            "unchanged": done.unchanged,
            "refused": done.refused,
        }),
        Err(error) => json!({"store": store, "error": error}),
    }
}
