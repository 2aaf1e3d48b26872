//! The official conformance suite of MCP and the inspector's command line.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::home::Home;
use super::serving::Serving;
use super::tools::Node;
use super::{Book, succeed};
use crate::workspace::{cargo, target_dir};

const PACKAGES: [&str; 2] =
    ["@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/inspector@2.12.0"];
const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";
const INSPECTOR: &str = ".bin/mcp-inspector";
/// The requirement sets the suite has frozen.
const SETS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Builds the server with the suite's fixtures and lets the programs judge it.
pub(super) fn run(book: &mut Book) -> Result<()> {
    let node = Node::with("mcp", &PACKAGES)?;
    // The whole workspace is named, so that nothing is built a second time with other features.
    let mut build = cargo();
    build.args(["build", "--workspace", "--example", "referee"]);
    succeed(build.args(["--features", "yore-mcp/conformance-fixtures"]))?;
    let server = target_dir()?.join("debug/examples/referee");
    for names in ["mcp", "mcp/compat"] {
        for set in SETS {
            let name = format!("mcp_referee_{}_{}", set.replace('-', "_"), names.replace('/', "_"));
            // Each run has a vault of its own: the suite counts what it finds.
            book.check(&name, || {
                let (_serving, url) = Serving::start(Command::new(&server).arg("127.0.0.1:0"))?;
                let url = url.replace("/mcp", &format!("/{names}"));
                let mut suite = node.script(SUITE);
                suite.args(["server", "--url", &url, "--requirements", set]);
                succeed(suite.current_dir(target_dir()?.join("tools/mcp"))).map(drop)
            });
        }
    }
    book.check("mcp_inspector_lists_and_calls_the_tools", || inspect(&node));
    Ok(())
}

/// Lists and calls the tools of the real server, over HTTP and over stdio.
fn inspect(node: &Node) -> Result<()> {
    let home = Home::new("inspector")?;
    let words = "the kettle stands on the blue shelf";
    succeed(&mut home.command(&["remember", words]))?;
    let ask = |way: &[&str], arguments: &[&str]| -> Result<Value> {
        let mut inspector = node.script(INSPECTOR);
        let said = succeed(inspector.arg("--cli").args(way).arg("--method").args(arguments))?;
        serde_json::from_str(&said).with_context(|| format!("the inspector said {said}"))
    };
    let judge = |way: &[&str]| -> Result<()> {
        let listed = ask(way, &["tools/list"])?;
        let tools = listed["tools"].as_array().context("the inspector lists tools")?;
        for wanted in ["ump.remember", "ump.recall", "search", "fetch"] {
            ensure!(tools.iter().any(|tool| tool["name"] == wanted), "no {wanted} in {listed}");
        }
        let call =
            ["tools/call", "--tool-name", "search", "--tool-arg", "query=where is the kettle"];
        let found = ask(way, &call)?;
        ensure!(found.to_string().contains(words), "search answers {found}");
        Ok(())
    };
    let line = home.line(&["mcp"]);
    judge(&line.iter().map(String::as_str).collect::<Vec<_>>())?;
    let (_serving, url) = home.serve()?;
    let token = ["token", "issue", "--verbs", "read,write", "--agent", "inspector"];
    let header = format!("Authorization: Bearer {}", succeed(&mut home.command(&token))?.trim());
    judge(&[&format!("{url}/mcp"), "--transport", "http", "--header", &header])
}
