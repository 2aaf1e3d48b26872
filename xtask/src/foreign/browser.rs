//! The web app in a real browser: flows by mouse and keyboard, judged for accessibility by axe.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::home::Home;
use super::tools::Node;
use super::{Book, succeed};
use crate::workspace::target_dir;

const PACKAGES: [&str; 5] = [
    "playwright-core@1.65.0",
    "axe-core@4.14.0",
    "@modelcontextprotocol/sdk@1.32.2",
    "oidc-provider@9.13.3",
    "@seriousme/openapi-schema-validator@2.11.0",
];
/// What is done in the browser. Each name it prints is one check.
const FLOWS: &str = include_str!("browser/flows.mjs");
/// Where a browser may be, unless `YORE_CHROMIUM` names one.
const BROWSERS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Serves a vault and lets the flows run over it.
pub(super) fn run(book: &mut Book) -> Result<()> {
    let Some(browser) = browser().or_else(|| install().ok().and_then(|()| browser())) else {
        let reason = "no chromium is here and apt could not install it; YORE_CHROMIUM names one";
        book.not_run("web_app_in_a_browser", reason);
        return Ok(());
    };
    let node = Node::with("browser", &PACKAGES)?;
    let shots = target_dir()?.join("screenshots");
    fs::create_dir_all(&shots)?;
    let home = Home::new("browser")?;
    let provider = free_port()?;
    let config = home.path("yore.toml");
    fs::write(&config, configuration(provider))?;
    let home = home.with(&[("YORE_CONFIG", config)]);
    let (_serving, url) = home.serve()?;
    let script = target_dir()?.join("tools/browser/flows.mjs");
    fs::write(&script, FLOWS)?;
    let yore = serde_json::to_string(&home.line(&[]))?;
    let mut flows = node.command();
    flows.arg(script).env("YORE_URL", &url).env("YORE_LINE", yore);
    flows.env("YORE_PROVIDER", provider.to_string());
    let told = succeed(flows.env("YORE_CHROMIUM", browser).env("YORE_SHOTS", shots))?;
    for line in told.lines().filter(|line| line.starts_with('{')) {
        let check: Value = serde_json::from_str(line)?;
        let name = check["name"].as_str().context("a check has a name")?;
        book.check(&format!("web_{name}"), || match check["error"].as_str() {
            None => Ok(()),
            Some(error) => anyhow::bail!("{error}"),
        });
    }
    Ok(())
}

/// What the server of the flows is told: who lets operators in, and what their groups are.
fn configuration(provider: u16) -> String {
    format!(
        r#"[omp]
insecure_loopback = true
[[sign_in]]
name = "Example Corp"
issuer = "http://127.0.0.1:{provider}"
client_id = "yore"
[[sign_in.roles]]
group = "admins"
role = "admin"
[[sign_in.roles]]
group = "desk"
role = "operator"
verbs = ["read", "review"]
"#
    )
}

/// A port that nobody listens on at this moment.
fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    Ok(listener.local_addr()?.port())
}

/// Asks the system for a browser; only its administrator may.
fn install() -> Result<()> {
    for step in [&["update"][..], &["install", "--yes", "--no-install-recommends", "chromium"]] {
        let mut apt = Command::new("apt-get");
        succeed(apt.arg("--quiet").args(step).env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    Ok(())
}

fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("YORE_CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path);
    places.flat_map(|place| BROWSERS.map(|name| place.join(name))).find(|file| file.is_file())
}
