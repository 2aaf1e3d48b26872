//! The `yore` command.
//!
//! Every command is one file under `commands/`: its options, one or two calls of the native
//! API, and how the answer looks. Commands hold no rules: whatever they ask walks the same
//! pipeline as every protocol. Without a server the command opens the data directory itself
//! and talks to it through the same socket, so there is one way in.
//!
//! Start at `args.rs` (the tree of commands), then `app.rs` (how the vault is reached) and
//! `failure.rs` (the documented exit codes).

mod app;
mod archive;
mod args;
mod asking;
mod authority;
mod commands;
mod draft;
mod editor;
mod failure;
mod file;
mod filter;
mod folder;
mod input;
mod local;
mod memorywire;
mod mutated;
mod output;
mod passphrase;
mod password;
mod peer;
mod prefix;
mod probe;
mod progress;
mod proxy;
mod show;
mod source;
mod ump;
mod when;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::app::App;
use crate::args::{Cli, Command, Global};
use crate::failure::{Exit, Failure, Result};
use crate::local::Stay;
use crate::output::{BAD, DIM};

/// Memory is taken and given back in small pieces all the time; this allocator halves that cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let mut cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.format(&mut Cli::command()).exit(),
    };
    if let Err(failure) = emptied(&matches, &mut cli.global) {
        report(&failure, cli.global.json);
        return failure.exit.into();
    }
    // A data directory that was typed means more than an address that the environment names.
    if typed(&matches, "data") && !typed(&matches, "url") {
        cli.global.url = None;
    }
    let json = cli.global.json;
    let ended = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))
        .and_then(|runtime| runtime.block_on(run(cli)));
    match ended {
        Ok(()) => Exit::Ok.into(),
        Err(failure) => {
            report(&failure, json);
            failure.exit.into()
        }
    }
}

async fn run(cli: Cli) -> Result {
    let stays = matches!(&cli.command, Command::Mcp(_) | Command::Proxy(_) | Command::Migrate(_))
        || matches!(&cli.command, Command::Sync(args) if args.watch || args.is_host())
        || matches!(&cli.command, Command::Watch(args) if args.stays());
    let stay = if stays { Stay::Long } else { Stay::Short };
    let app = Arc::new(App::new(cli.global, stay));
    let done = Box::pin(commands::run(&app, cli.command)).await;
    let finished = app.finish().await;
    done.and(finished)
}

/// Writes the log to standard error, as much of it as the filter lets through.
pub(crate) fn log(filter: &str) -> Result {
    let filter = tracing_subscriber::EnvFilter::try_new(filter).map_err(|error| {
        Failure::usage(format!("log: {error}")).hint("write info or yore=debug")
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(anstream::stderr)
        .try_init()
        .map_err(|error| Failure::failed(error.to_string()))
}

/// Takes an empty variable for an unset one, and refuses an option that was typed without value.
fn emptied(matches: &ArgMatches, global: &mut Global) -> Result {
    let Global { data, config, key_file, url, token, ca, vault, .. } = global;
    let paths = [("data", data), ("config", config), ("key_file", key_file), ("ca", ca)];
    let texts = [("url", url), ("token", token), ("vault", vault)];
    let mut empty = Vec::new();
    for (name, value) in paths {
        if value.take_if(|path| path.as_os_str().is_empty()).is_some() {
            empty.push(name);
        }
    }
    for (name, value) in texts {
        if value.take_if(|text| text.is_empty()).is_some() {
            empty.push(name);
        }
    }
    match empty.into_iter().find(|name| typed(matches, name)) {
        Some(name) => Err(Failure::usage(format!("--{} is empty", name.replace('_', "-")))
            .hint("give it a value, or leave it out")),
        None => Ok(()),
    }
}

fn typed(matches: &ArgMatches, option: &str) -> bool {
    let here = matches.value_source(option) == Some(ValueSource::CommandLine);
    here || matches.subcommand().is_some_and(|(_, below)| typed_below(below, option))
}

fn typed_below(matches: &ArgMatches, option: &str) -> bool {
    let known = matches.ids().any(|id| id.as_str() == option);
    (known && matches.value_source(option) == Some(ValueSource::CommandLine))
        || matches.subcommand().is_some_and(|(_, below)| typed_below(below, option))
}

/// Says what was wrong and what to do. Nothing more can be done if even that fails.
fn report(failure: &Failure, json: bool) {
    if failure.message.is_empty() {
        return;
    }
    if json {
        if let Some(hold) = &failure.hold {
            output::raw(&serde_json::json!({ "held": hold }).to_string()).unwrap_or_default();
        }
        let error = serde_json::json!({ "error": {
            "code": failure.code,
            "message": failure.message,
            "hint": failure.hint,
            "hold": failure.hold,
            "exit": failure.exit as u8,
        } });
        writeln!(std::io::stderr(), "{error}").unwrap_or_default();
        return;
    }
    let mut err = anstream::stderr();
    let message = output::clean(&failure.message);
    writeln!(err, "{BAD}error{BAD:#}: {message}").unwrap_or_default();
    if let Some(hint) = &failure.hint {
        writeln!(err, "  {DIM}{}{DIM:#}", output::clean(hint)).unwrap_or_default();
    }
}
