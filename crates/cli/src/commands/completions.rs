//! `yore completions`: writes a completion script for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::{Failure, Result};

/// Options of `yore completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore completions bash > ~/.local/share/bash-completion/completions/yore
  yore completions zsh > ~/.zfunc/_yore
  yore completions fish > ~/.config/fish/completions/yore.fish")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: Args) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "yore", &mut script);
    let text = String::from_utf8(script).map_err(|error| Failure::failed(error.to_string()))?;
    crate::output::raw(text.trim_end())
}
