//! `cargo xtask openapi`: writes the native API's OpenAPI document, made from its types.

use anyhow::{Context, Result, ensure};

use crate::workspace::{cargo, output, root};

const FILE: &str = "docs/openapi.json";

/// Arguments of `cargo xtask openapi`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Write nothing; fail if the document in place is not the one the types make.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let made = output(cargo().args(["run", "-q", "-p", "yore-client", "--example", "openapi"]))?;
    let path = root().join(FILE);
    if arguments.check {
        let kept = std::fs::read_to_string(&path).with_context(|| format!("cannot read {FILE}"))?;
        ensure!(kept == made, "{FILE} is not what the types make: run cargo xtask openapi");
        return Ok(());
    }
    std::fs::write(&path, made).with_context(|| format!("cannot write {FILE}"))?;
    println!("wrote {FILE}");
    Ok(())
}
