//! Children: whether a vault is a child's, and what the guardian decides.

use serde_json::{Value, json};
use yore_domain::class::Sensitivity;
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::regulated::{Guardianship, Regulated};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Error};
use yore_engine::{Call, GrantRequest};

use crate::Omp;
use crate::error::{Refusal, Result};
use crate::map::Object;
use crate::routes::Asking;
use crate::scope::Scope;

/// What a guardian may do: look at everything, take it out, remove it, stop more of it, and let
/// others see it.
const GUARDS: [Verb; 4] = [Verb::Read, Verb::Export, Verb::Erase, Verb::Grant];

impl Omp {
    /// Says whether the vault is a child's.
    pub(crate) async fn guardianship(&self, asking: &Asking) -> Result<Value> {
        Ok(out(&self.engine.guardianship(&asking.call).await?))
    }

    /// Passes the age gate: says whether the person is a child and, if so, which consent of a
    /// parent is on file and which delegate acts for the parent. That one's token is told once.
    pub(crate) async fn set_guardianship(&self, asking: &Asking, asked: &Object) -> Result<Value> {
        let text = |name: &str| match asked.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
            Some(_) => Err(Refusal::invalid(name, "must be a text")),
        };
        let Some(child) = asked.get("child").and_then(Value::as_bool) else {
            return Err(Refusal::invalid("child", "must be true or false"));
        };
        let (consent, guardian) = (text("parental_consent_id")?, text("guardian")?);
        if !child && (consent.is_some() || guardian.is_some()) {
            return Err(Refusal::invalid("child", "only a child has a guardian"));
        }
        if guardian.is_some() {
            // Before anything is written down: the guardian is given a token.
            let may = self.engine.demand(&asking.call, "grant.issue", Verb::Grant).await;
            may.map_err(|error| Refusal::from(error).at(Scope::Admin))?;
        }
        let guarded = Guardianship {
            child: Some(child),
            consent,
            guardian: guardian.clone(),
            stopped: false,
        };
        self.engine.set_guardianship(&asking.call, guarded.clone()).await?;
        let mut body = out(&guarded);
        if let Some(guardian) = guardian {
            let everything = Labels::AnyWith(Regulated::ALL.map(Regulated::label).to_vec());
            let request = GrantRequest {
                agent: AgentId::new(guardian)?,
                verbs: Verbs::of(&GUARDS),
                read: everything.clone(),
                write: everything,
                ceiling: Sensitivity::Restricted,
                scope: ScopeRule::default(),
                ttl: None,
                note: Some("acts for a parent".to_owned()),
            };
            let call = Call { operation: None, ..asking.call.clone() };
            let issued = self.engine.issue_grant(&call, request).await?;
            body["grant_id"] = json!(issued.grant.id);
            body["token"] = issued.token.into();
        }
        Ok(body)
    }

    /// Stops that anything more is stored, or lets it go on.
    pub(crate) async fn stop(&self, asking: &Asking, asked: &Object) -> Result<Value> {
        let stopped = match asked.get("stopped") {
            None => true,
            Some(Value::Bool(stopped)) => *stopped,
            Some(_) => return Err(Refusal::invalid("stopped", "must be true or false")),
        };
        self.engine.stop_collection(&asking.call, stopped).await?;
        Ok(json!({"stopped": stopped}))
    }

    /// Lists how often copies of the vault are made: what its user said, or the operator.
    pub(crate) async fn schedules(&self, asking: &Asking) -> Result<Value> {
        let said = self.engine.schedule(&asking.call).await?;
        let data: Vec<Value> = said.map(|schedule| json!(schedule)).into_iter().collect();
        Ok(json!({"data": data, "has_more": false, "next_cursor": null}))
    }

    /// Says how often copies of the vault are made.
    pub(crate) async fn set_schedule(&self, asking: &Asking, asked: Object) -> Result<Value> {
        let schedule = serde_json::from_value(Value::Object(asked)).map_err(|_| {
            let reason = "must be daily, weekly, monthly or off, and keep a whole number";
            Error::invalid("every", reason)
        })?;
        self.engine.set_schedule(&asking.call, Some(schedule)).await?;
        Ok(json!(schedule))
    }
}

fn out(guarded: &Guardianship) -> Value {
    json!({
        "child": guarded.child,
        "parental_consent_id": guarded.consent,
        "guardian": guarded.guardian,
        "stopped": guarded.stopped,
    })
}
