//! OAMP over a large vault: search by how much matches, and the export of everything.

use std::sync::Arc;

use anyhow::{Result, ensure};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use serde_json::json;
use tower::ServiceExt;
use yore_domain::kind::Kind;
use yore_domain::memory::Draft;
use yore_engine::TokenKind;
use yore_engine::dialect::Registry;
use yore_http::Surface;
use yore_oamp::{Oamp, Options};

use crate::corpus::Corpus;
use crate::meter::{Series, Took, start};
use crate::world::World;

/// A word in every tenth memory, and one in every thousandth.
const OFTEN: &str = "harbourmaster";
const SELDOM: &str = "quadrantal";

/// The protocol over HTTP, as its owner uses it.
pub(crate) struct Desk {
    router: Router,
    token: String,
}

/// What an export took.
#[derive(Debug)]
pub(crate) struct Exported {
    pub(crate) took: Took,
    pub(crate) bytes: usize,
    pub(crate) entries: usize,
    /// How much larger the process became meanwhile, at the most.
    pub(crate) grown_mb: f64,
}

/// Fills a vault: every memory as in the corpus, some with a word besides.
pub(crate) async fn fill(world: &World, corpus: &Corpus, size: usize) -> Result<()> {
    world
        .load_with(0..size, |number| {
            let mut text = corpus.memory(number);
            for (word, every) in [(OFTEN, 10), (SELDOM, 1000)] {
                if number.is_multiple_of(every) {
                    text = format!("{text} {word}");
                }
            }
            Draft::new(Kind::Semantic, text)
        })
        .await
}

impl Desk {
    pub(crate) async fn open(world: &World) -> Result<Self> {
        let token = world.engine.issue_token(&world.owner, TokenKind::Owner, None, None).await?;
        let oamp = Arc::new(Oamp::new(world.engine.clone(), Options::default()));
        let registry = Arc::new(Registry::new(vec![Box::new((*oamp).clone())]));
        let surface = Surface::new(world.engine.clone(), registry);
        Ok(Self { router: yore_oamp::routes(surface, oamp), token })
    }

    fn asking(&self, method: &str, path: &str, body: Body) -> Result<Request<Body>> {
        Ok(Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(body)?)
    }

    /// Searches for the seldom and the frequent word in turns, and returns what each took.
    pub(crate) async fn searches(&self, repeats: usize) -> Result<(Series, Series)> {
        let (mut seldom, mut often) = (Series::default(), Series::default());
        for _ in 0..repeats {
            for (word, series) in [(SELDOM, &mut seldom), (OFTEN, &mut often)] {
                let path = format!("/v1/knowledge?user_id=owner&query={word}&limit=50");
                let request = self.asking("GET", &path, Body::empty())?;
                let took = start();
                let answer = self.router.clone().oneshot(request).await?;
                let status = answer.status();
                let body = answer.into_body().collect().await?.to_bytes();
                series.push(took());
                ensure!(status.is_success() && body.len() > 1000, "{status}: {body:?}");
            }
        }
        Ok((seldom, often))
    }

    /// Exports everything and watches how large the process gets.
    pub(crate) async fn export(&self) -> Result<Exported> {
        let before = resident_mb()?;
        let body = Body::from(json!({ "user_id": "owner" }).to_string());
        let request = self.asking("POST", "/v1/export", body)?;
        let took = start();
        let answer = self.router.clone().oneshot(request).await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        let mut body = answer.into_body();
        let (mut bytes, mut entries, mut most) = (0, 0, before);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            bytes += data.len();
            let mark = b"\"type\":\"knowledge_entry\"";
            entries += data.windows(mark.len()).filter(|window| window == mark).count();
            most = most.max(resident_mb()?);
        }
        Ok(Exported { took: took(), bytes, entries, grown_mb: most - before })
    }
}

fn resident_mb() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = text.split_whitespace().nth(1).unwrap_or_default().parse()?;
    Ok(pages * rustix::param::page_size() as f64 / 1e6)
}
