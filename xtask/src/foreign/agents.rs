//! UAMP by programs that share nothing with the server: the example in Python, and the libraries
//! of gRPC.

use anyhow::{Context, Result};

use super::home::Home;
use super::serving::Serving;
use super::tools::Python;
use super::{Book, succeed};

const PACKAGES: [&str; 4] =
    ["cryptography==48.0.0", "grpcio==1.85.1", "grpcio-reflection==1.85.1", "protobuf==7.36.2"];
/// The example that people are given.
const EXAMPLE: &str = include_str!("../../../examples/uamp/ask.py");
/// A client that learns the service from the server itself.
const GRPC: &str = include_str!("agents/grpc_client.py");

/// A server with an agent that has the owner's token, ready to be asked.
struct Scene {
    _serving: Serving,
    url: String,
    ca: String,
    token: String,
    key: String,
}

/// Lets foreign clients speak with the real server.
pub(super) fn run(book: &mut Book) -> Result<()> {
    let python = Python::with("uamp", &PACKAGES)?;
    book.check("uamp_022_uamp_040_uamp_047_the_example_signs_asks_and_resumes", || {
        let scene = Scene::new(&python, "uamp-example")?;
        let mut ask = python.command();
        ask.args(["-c", EXAMPLE, "--url", &scene.url, "--ca", &scene.ca, "--key", &scene.key]);
        let said = succeed(ask.args(["--token", &scene.token, "what am I allergic to?"]))?;
        anyhow::ensure!(said.contains("peanuts"), "the answer is not in it:\n{said}");
        anyhow::ensure!(said.contains("2 frames over 2 connections"), "not resumed:\n{said}");
        Ok(())
    });
    book.check("uamp_064_a_grpc_client_learns_the_service_from_the_server_and_asks", || {
        let scene = Scene::new(&python, "uamp-grpc")?;
        let mut ask = python.command();
        ask.args(["-c", GRPC, &scene.url, &scene.ca, &scene.key, EXAMPLE]);
        let said = succeed(ask.env("UAMP_TOKEN", &scene.token))?;
        anyhow::ensure!(said.contains("peanuts"), "the answer is not in it:\n{said}");
        Ok(())
    });
    Ok(())
}

impl Scene {
    fn new(python: &Python, name: &str) -> Result<Self> {
        let home = Home::new(name)?;
        let (serving, ready) = home.serve_tls()?;
        let said = |member: &str| -> Result<String> {
            let value = ready[member].as_str().map(str::to_owned);
            value.with_context(|| format!("the server names its {member}"))
        };
        let (https, ca) = (said("https")?, said("ca")?);
        let port = https.rsplit(':').next().context("an address has a port")?;
        let url = format!("https://localhost:{port}");
        let key = home.path("agent.pem");
        let mut name = python.command();
        let did = succeed(name.args(["-c", EXAMPLE, "--did", "--key", &key]))?;
        succeed(&mut home.command(&["agent", "register", did.trim(), "--own"]))?;
        succeed(&mut home.command(&["remember", "I am allergic to peanuts"]))?;
        let token = succeed(&mut home.command(&["token", "owner"]))?.trim().to_owned();
        Ok(Self { _serving: serving, url, ca, token, key })
    }
}
