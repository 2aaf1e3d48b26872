//! The protocol as every carrier sees it.

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use yore_domain::Error;
use yore_domain::grant::Verb;
use yore_domain::query::Filter;
use yore_engine::Call;
use yore_engine::dialect::{Dialect, OperationSchema, Presented};

use crate::error::{Refusal, Result};
use crate::operations::{Wanted, facets, needed, optional, sensitivity};
use crate::stream::Subscription;
use crate::wire::{self, Object};
use crate::{GRANT_HEADER, NAME, Oamp, token};

/// Rows of a list when the caller does not say, and the most there are.
const ROWS: (usize, usize) = (20, 200);

impl Dialect for Oamp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn operations(&self) -> &[OperationSchema] {
        &self.operations
    }

    fn call<'a>(
        &'a self,
        call: Call,
        operation: &'a str,
        input: Value,
    ) -> BoxFuture<'a, std::result::Result<Value, Value>> {
        Box::pin(async move {
            let done = async { self.perform(&call, operation, members(input)?).await };
            done.await.map_err(|refusal| refusal.envelope())
        })
    }

    fn subscribe<'a>(
        &'a self,
        call: Call,
        input: Value,
    ) -> BoxFuture<'a, std::result::Result<BoxStream<'static, Value>, Value>> {
        Box::pin(async move {
            let opened = async {
                let mut input = self.addressed(&call, members(input)?).await?;
                input.entry("subscription_id").or_insert_with(|| NAME.into());
                self.follow(&call, Subscription::of(&input)?).await
            };
            let events = opened.await.map_err(|refusal| refusal.envelope())?;
            let told = events.take_while(|told| std::future::ready(told.is_ok()));
            Ok(told
                .filter_map(|told| async {
                    told.ok().map(|told| json!({"type": told.kind, "payload": told.payload}))
                })
                .boxed())
        })
    }

    fn credential(&self, token: &str) -> Option<Presented> {
        token::credential(token)
    }

    fn header(&self) -> Option<&'static str> {
        Some(GRANT_HEADER)
    }
}

impl Oamp {
    async fn perform(&self, call: &Call, operation: &str, input: Object) -> Result<Value> {
        if operation == "capabilities" {
            return Ok(self.capabilities());
        }
        let input = self.addressed(call, input).await?;
        let user = optional(&input, "user_id")?;
        let user = user.as_deref();
        match operation {
            "create" => {
                let entry = wire::object(&input, "", "entry")?.unwrap_or_default();
                let entry = self.addressed(call, entry).await?;
                Ok(json!({"entry": self.create(call, &entry).await?}))
            }
            "get" => {
                let id = needed(&input, "id")?;
                let at = wire::time(&input, "", "as_of")?.map(|at| at.min(self.engine.now()));
                Ok(json!({"entry": self.entry(call, &id, user, at).await?}))
            }
            "list" => {
                let listed = self.list(call, &self.wanted(&input)?, false).await?;
                Ok(json!({"entries": listed.entries}))
            }
            "patch" => {
                let id = needed(&input, "id")?;
                let change = wire::object(&input, "", "change")?.unwrap_or_default();
                Ok(json!({"entry": self.patch(call, &id, user, &change).await?}))
            }
            "delete" => {
                self.delete(call, &needed(&input, "id")?, user).await?;
                Ok(json!({"deleted": true}))
            }
            "import" => {
                let store = wire::object(&input, "", "store")?.unwrap_or_default();
                let store = self.addressed(call, store).await?;
                self.import(call, store).await
            }
            "user_model" => {
                let at = wire::time(&input, "", "as_of")?.map(|at| at.min(self.engine.now()));
                Ok(json!({"user_model": self.model(call, user, at).await?}))
            }
            "put_user_model" => {
                let model = wire::object(&input, "", "user_model")?.unwrap_or_default();
                let model = self.addressed(call, model).await?;
                let (created, model) = self.put_model(call, model).await?;
                Ok(json!({"created": created, "user_model": model}))
            }
            _ => Err(Error::Unsupported { what: "the operation".into() }.into()),
        }
    }

    fn wanted(&self, input: &Object) -> Result<Wanted> {
        let list =
            |name| -> Result<Vec<String>> { Ok(wire::texts(input, "", name)?.unwrap_or_default()) };
        let at = wire::time(input, "", "as_of")?.map(|at| at.min(self.engine.now()));
        let mut filter = Filter { as_of: at, ..Filter::default() };
        if let Some(word) = optional(input, "category")? {
            filter.facets = facets(&word)?;
        }
        for word in list("sensitivity_class")? {
            filter.sensitivities.push(sensitivity(&word)?);
        }
        for word in list("governance_label")? {
            filter.labels.push(yore_domain::class::Label::new(word)?);
        }
        let number = |name: &str, default: usize| match input.get(name) {
            None | Some(Value::Null) => Ok(default),
            Some(value) => value
                .as_u64()
                .and_then(|number| usize::try_from(number).ok())
                .ok_or_else(|| Refusal::invalid(name, "must be a whole number")),
        };
        Ok(Wanted {
            user: optional(input, "user_id")?,
            query: optional(input, "query")?.filter(|text| !text.trim().is_empty()),
            filter,
            limit: number("limit", ROWS.0)?.clamp(1, ROWS.1),
            offset: number("offset", 0)?,
        })
    }

    /// Fills in the person where a credential has only one: carriers need not know the name.
    async fn addressed(&self, call: &Call, mut input: Object) -> Result<Object> {
        if !input.contains_key("user_id") && self.engine.serves(call).await?.is_none() {
            let identity = self.engine.identify(call, Verb::Read).await?;
            input.insert("user_id".into(), identity.owner().into());
        }
        Ok(input)
    }
}

/// An input is an object; none at all is an empty one.
fn members(input: Value) -> Result<Object> {
    match input {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Object::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Refusal::invalid("input", "must be an object"))
        }
    }
}
