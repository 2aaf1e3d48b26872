//! `cargo xtask probe`: tries to see around grants.
//!
//! The probes are a test of `yore-oamp`, so that every test run has some of them; here they
//! are asked for in any number, and the times of answers are compared.

use anyhow::{Result, ensure};

use crate::workspace::cargo;

/// Arguments of `cargo xtask probe`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many random probes are made.
    #[arg(long, default_value_t = 20_000)]
    n: usize,
    /// Compare the times of 2 000 answers each for hidden and for missing ids, three times.
    #[arg(long)]
    timing: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut command = cargo();
    command.args(["test", "--package", "yore-oamp", "--test", "protocol", "--"]);
    if arguments.timing {
        command.args(["hiding::timing::", "--show-output"]).env("YORE_TIMING", "1");
    } else {
        command.args(["hiding::probes::", "--show-output"]);
        command.env("YORE_PROBES", arguments.n.to_string());
    }
    let status = command.status()?;
    ensure!(status.success(), "what is hidden can be learned of, or the probes could not be made");
    Ok(())
}
