//! The protocol's REST surface, without a socket.

use std::sync::Arc;

use anyhow::{Result, ensure};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;
use yore_engine::TokenKind;
use yore_engine::dialect::Registry;
use yore_http::Surface;
use yore_memorywire::{Memorywire, Options, PREFIX};

use crate::world::World;

/// The agent of most requests.
const AGENT: &str = "agent-a";

/// The protocol as its owner uses it.
pub(crate) struct Desk {
    router: Router,
    token: String,
}

impl Desk {
    pub(crate) async fn open(world: &World) -> Result<Self> {
        let token = world.engine.issue_token(&world.owner, TokenKind::Owner, None, None).await?;
        let memorywire = Arc::new(Memorywire::new(world.engine.clone(), Options::default()));
        let registry = Arc::new(Registry::new(vec![Box::new((*memorywire).clone())]));
        let surface = Surface::new(world.engine.clone(), registry);
        Ok(Self { router: yore_memorywire::routes(surface, memorywire), token })
    }

    /// Asks, and returns the status and what was answered.
    pub(crate) async fn ask(&self, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let request = Request::builder()
            .method(if body.is_some() { "POST" } else { "GET" })
            .uri(format!("{PREFIX}/{path}"))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))?;
        let answer = self.router.clone().oneshot(request).await?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&body)?))
    }

    /// Asks for an operation of the usual agent's that must succeed.
    pub(crate) async fn ok(&self, operation: &str, body: Value) -> Result<Value> {
        let (status, answer) = self.ask(operation, Some(&of_agent(body))).await?;
        ensure!(status == 200, "{operation} was refused with {status}: {answer}");
        Ok(answer)
    }

    /// Remembers and returns the id.
    pub(crate) async fn remember(&self, body: Value) -> Result<String> {
        Ok(text(&self.ok("remember", body).await?["id"]))
    }

    /// Recalls and returns the hits.
    pub(crate) async fn recall(&self, body: Value) -> Result<Vec<Value>> {
        let answer = self.ok("recall", body).await?;
        Ok(answer["results"].as_array().cloned().unwrap_or_default())
    }
}

/// Fills in the usual agent.
pub(crate) fn of_agent(mut body: Value) -> Value {
    body["agent_id"] = AGENT.into();
    body
}

/// A member that is a text; an empty one where it is none.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
