//! `yore man`: writes the manual pages.

use std::path::PathBuf;

use clap::CommandFactory;

use crate::args::Cli;
use crate::failure::{Failure, Result};

/// Options of `yore man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore man ~/.local/share/man/man1
  man yore-recall")]
pub(crate) struct Args {
    /// The directory they go to, one file for each command; it is made if it is not there
    dir: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("cannot write to {}: {error}", args.dir.display()))
    };
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), &args.dir).map_err(failed)
}
