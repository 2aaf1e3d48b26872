//! Signing in through identity providers (OpenID Connect): people come with groups, and leave with
//! a role here.
//!
//! Authorisation code with PKCE, `state` and `nonce`; what the provider says of a person counts
//! only when one of its published keys signed it, for us, just now. The groups in it choose a role
//! that the operator wrote down: an administrator of a tenant, the owner of a vault, or somebody
//! with a grant. The engine makes the token of each, like any other.

mod claims;
mod wire;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use yore_canon::encode::base64url;
use yore_canon::hash::Sha256;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Error, Result, TenantId};
use yore_engine::{Call, Engine, GrantRequest, Issuers as _, Secret, TokenKind, VaultRef};
use yore_uamp::Fetch as _;
use yore_web::{Errand, Providers, SESSION, Seat, Seated};

use crate::oauth::{Issuer, Known};
use claims::{Person, Statement};
use wire::Wire;

/// An identity provider that lets operators in.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// What people call it.
    pub name: String,
    /// Its name, as it states it in `iss`: an https address, or http on this machine.
    pub issuer: String,
    /// Our name there.
    pub client_id: String,
    /// A file with the secret that goes with it. Default: none, for a public client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_file: Option<PathBuf>,
    /// What is asked for. Default: `openid`, `profile`, `email` and `groups`.
    #[serde(default = "scopes")]
    pub scopes: Vec<String>,
    /// The claim that holds a person's groups. Default: `groups`.
    #[serde(default = "groups")]
    pub groups: String,
    /// What groups are here, the weightiest first.
    #[serde(default)]
    pub roles: Vec<Role>,
}

fn scopes() -> Vec<String> {
    ["openid", "profile", "email", "groups"].map(str::to_owned).into()
}

fn groups() -> String {
    "groups".into()
}

/// What a group is here.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// The group.
    pub group: String,
    /// What its people are: `admin`, `owner` or `operator`.
    pub role: Kind,
    /// The tenant that an administrator looks after. Default: that of a server without tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// The vault that an owner or an operator comes to, by its owner's name; `{sub}` stands for the
    /// person's own name at the provider. Default: the server's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault: Option<String>,
    /// What an operator may do. Default: `read`.
    #[serde(default = "reading")]
    pub verbs: Vec<String>,
    /// The labels that an operator sees. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The agent whose memories alone an operator sees. Default: those of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The highest sensitivity that an operator sees. Default: internal.
    #[serde(default = "internal")]
    pub ceiling: Sensitivity,
}

fn reading() -> Vec<String> {
    vec!["read".into()]
}

const fn internal() -> Sensitivity {
    Sensitivity::Internal
}

/// What somebody is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Looks after a tenant.
    Admin,
    /// Owns a vault.
    Owner,
    /// Has a grant.
    Operator,
}

impl Role {
    /// The grant of an operator.
    fn grant(&self, person: &Person) -> Result<GrantRequest> {
        let verbs = self.verbs.iter().map(|verb| Verb::parse(verb)).collect::<Result<Vec<_>>>()?;
        let labels = self.labels.iter().map(Label::new).collect::<Result<Vec<_>>>()?;
        let labels = if labels.is_empty() { Labels::Any } else { Labels::Under(labels) };
        Ok(GrantRequest {
            agent: AgentId::new(format!("operator:{}", person.name))?,
            verbs: Verbs::of(&verbs),
            read: labels.clone(),
            write: labels,
            ceiling: self.ceiling,
            scope: ScopeRule { agent: self.agent.clone(), ..ScopeRule::default() },
            ttl: Some(SESSION),
            note: None,
        })
    }

    fn vault(&self, subject: &str) -> VaultRef {
        match &self.vault {
            None => VaultRef::Default,
            Some(owner) => VaultRef::Owner(owner.replace("{sub}", subject)),
        }
    }

    /// What a choice between several roles calls this one.
    fn label(&self) -> String {
        let whose = self.vault.as_deref().unwrap_or("this server");
        match (self.role, &self.agent) {
            (Kind::Admin, _) => "Administrator".into(),
            (Kind::Owner, _) => format!("Owner of {whose}"),
            (Kind::Operator, None) => format!("Operator of {whose}"),
            (Kind::Operator, Some(agent)) => format!("Operator of {whose}, for {agent}"),
        }
    }
}

impl Provider {
    /// Refuses what could never let anybody in.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        let wrong = |what: String| Err(format!("sign_in {}: {what}", self.name));
        if self.name.is_empty() || self.client_id.is_empty() {
            return wrong("needs a name and a client_id".into());
        }
        if let Err(reason) = wire::check(&self.issuer) {
            return wrong(format!("issuer {reason}"));
        }
        let person = Person { subject: "x".into(), name: "x".into(), groups: Vec::new() };
        for role in &self.roles {
            if let Err(error) = role.grant(&person) {
                return wrong(format!("group {}: {error}", role.group));
            }
        }
        Ok(())
    }

    fn secret(&self) -> Result<Option<Secret>> {
        let Some(path) = &self.client_secret_file else { return Ok(None) };
        let text = std::fs::read_to_string(path).map_err(Error::internal)?;
        Ok(Some(Secret::new(text.trim())))
    }
}

/// All providers, and the engine that makes the tokens.
pub(crate) struct SignIns {
    providers: Vec<Provider>,
    keys: Known,
    wire: Arc<Wire>,
    engine: Engine,
    caller: Arc<dyn Fn() -> Call + Send + Sync>,
}

impl fmt::Debug for SignIns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIns").field("providers", &self.providers).finish_non_exhaustive()
    }
}

impl SignIns {
    pub(crate) fn new(
        providers: Vec<Provider>,
        engine: Engine,
        caller: Arc<dyn Fn() -> Call + Send + Sync>,
    ) -> Self {
        let wire = Arc::new(Wire::default());
        let issuers = providers.iter().map(|provider| Issuer::named(&provider.issuer)).collect();
        let keys = Known::new(issuers, Arc::clone(&wire) as Arc<dyn yore_uamp::Fetch>);
        Self { providers, keys, wire, engine, caller }
    }

    fn provider(&self, number: usize) -> Result<&Provider> {
        self.providers.get(number).ok_or(Error::NotFound)
    }

    /// What a provider says of itself.
    async fn described(&self, provider: &Provider) -> Result<Value> {
        let base = provider.issuer.trim_end_matches('/');
        let bytes = self.wire.fetch(&format!("{base}/.well-known/openid-configuration")).await;
        let described: Value = serde_json::from_slice(&bytes.map_err(silent)?)
            .map_err(|_| silent("what it says of itself is not JSON".into()))?;
        match described["issuer"] == provider.issuer.as_str() {
            true => Ok(described),
            false => Err(silent("what it says of itself is somebody else's".into())),
        }
    }

    /// Redeems a code and believes what is said of the person.
    async fn person(&self, provider: &Provider, errand: &Errand, code: &str) -> Result<Person> {
        let described = self.described(provider).await?;
        let place = endpoint(&described, "token_endpoint")?;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &errand.back),
            ("code_verifier", &errand.verifier),
            ("client_id", &provider.client_id),
        ];
        let secret = provider.secret()?;
        let secret = secret.as_ref().map(|secret| (provider.client_id.as_str(), secret));
        let answer = self.wire.redeem(place, &form, secret).await.map_err(|reason| {
            tracing::info!(provider = provider.name, reason, "a code was not redeemed");
            Error::unauthenticated("the code was not redeemed")
        })?;
        let token = answer["id_token"].as_str();
        let token = token.ok_or_else(|| Error::unauthenticated("nothing is said of the person"))?;
        let statement = Statement::read(token).map_err(Error::unauthenticated)?;
        if !self.keys.vouch(&provider.issuer, &statement.published).await {
            return Err(Error::unauthenticated("no key of the provider signed what is said"));
        }
        statement.about(provider, &errand.nonce, self.engine.now()).map_err(Error::unauthenticated)
    }
}

/// An address that a provider names of itself.
fn endpoint<'a>(described: &'a Value, name: &str) -> Result<&'a str> {
    let place = described[name].as_str().filter(|place| wire::check(place).is_ok());
    place.ok_or_else(|| silent(format!("it names no usable {name}")))
}

/// A provider that cannot be asked is nobody's fault here.
fn silent(reason: String) -> Error {
    tracing::warn!(reason, "an identity provider could not be asked");
    Error::Busy {
        reason: "the identity provider does not answer".into(),
        retry_after: Duration::from_secs(10),
    }
}

impl Providers for SignIns {
    fn names(&self) -> Vec<String> {
        self.providers.iter().map(|provider| provider.name.clone()).collect()
    }

    fn address<'a>(&'a self, provider: usize, errand: &'a Errand) -> BoxFuture<'a, Result<String>> {
        Box::pin(async move {
            let provider = self.provider(provider)?;
            let described = self.described(provider).await?;
            let place = endpoint(&described, "authorization_endpoint")?;
            let challenge = base64url(Sha256::of(&errand.verifier).as_bytes());
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.extend_pairs([
                ("response_type", "code"),
                ("client_id", &provider.client_id),
                ("redirect_uri", &errand.back),
                ("scope", &provider.scopes.join(" ")),
                ("state", &errand.state),
                ("nonce", &errand.nonce),
                ("code_challenge", &challenge),
                ("code_challenge_method", "S256"),
            ]);
            let mark = if place.contains('?') { '&' } else { '?' };
            Ok(format!("{place}{mark}{}", query.finish()))
        })
    }

    fn seats<'a>(
        &'a self,
        number: usize,
        errand: &'a Errand,
        code: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Seat>>> {
        Box::pin(async move {
            let provider = self.provider(number)?;
            let person = self.person(provider, errand, code).await?;
            let fits = |(_, role): &(usize, &Role)| person.groups.contains(&role.group);
            let seat = |(role, given): (usize, &Role)| Seat {
                provider: number,
                role,
                subject: person.subject.clone(),
                person: person.name.clone(),
                label: given.label(),
            };
            Ok(provider.roles.iter().enumerate().filter(fits).map(seat).collect())
        })
    }

    fn sit<'a>(&'a self, seat: &'a Seat) -> BoxFuture<'a, Result<Seated>> {
        Box::pin(async move {
            let provider = self.provider(seat.provider)?;
            let role = provider.roles.get(seat.role).ok_or(Error::NotFound)?;
            let note = Some(format!("{} through {}", seat.person, provider.name));
            let call = Call { vault: role.vault(&seat.subject), ..(self.caller)() };
            let issue = async |kind| {
                let made = self.engine.issue_token(&call, kind, Some(SESSION), note.clone()).await;
                made.map(Secret::new)
            };
            match role.role {
                Kind::Admin => {
                    let tenant = role.tenant.unwrap_or(TenantId::DEFAULT);
                    issue(TokenKind::Admin(tenant)).await.map(Seated::Admin)
                }
                Kind::Owner => issue(TokenKind::Owner).await.map(Seated::Owner),
                Kind::Operator => {
                    let person = Person {
                        subject: seat.subject.clone(),
                        name: seat.person.clone(),
                        groups: Vec::new(),
                    };
                    let request = GrantRequest { note, ..role.grant(&person)? };
                    let issued = self.engine.issue_grant(&call, request).await?;
                    Ok(Seated::Operator(Secret::new(issued.token)))
                }
            }
        })
    }
}
