//! Measures the engine, memorywire and UAMP against their bars, and the same work by the peers:
//! `cargo xtask bench engine`, `memorywire`, `uamp` and `peers`.
//!
//! Everything but the peers runs on one core and is stated in CPU time of the whole process, because wall time
//! on a shared machine says little; wall time is recorded beside it. The limits of the machine,
//! a plain encrypted insert and a plain scan of int8 rows, are measured in the same run, so that
//! a number can be read against what the hardware allows.
//!
//! The corpus is generated from a seed; only that of memorywire's authors is read from outside. A
//! bar that was not measured (a size left out, a quick run) is called not measured, never held.
//! Start at `engine.rs`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod corpus;
mod engine;
mod import;
mod limits;
mod mcp;
mod memorywire;
mod messages;
mod meter;
mod oamp;
mod peers;
mod process;
mod quality;
mod recall;
mod report;
mod uamp;
mod vectors;
mod web;
mod world;
mod write;

/// Memory is taken and given back in small pieces all the time; this allocator halves that cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
#[command(name = "yore-bench", about = "Measure the engine and memorywire")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure writes, recalls, memory and start against their bars.
    Engine(engine::Arguments),
    /// Measure the import of a large export, and of the same one again.
    Import(import::Arguments),
    /// Measure searching very many messages.
    Messages(messages::Arguments),
    /// Repeat the experiments of memorywire's paper and compare with its reference.
    Memorywire(memorywire::Arguments),
    /// Run the same memories and questions through Yore and through its peers.
    Peers(peers::Arguments),
    /// Measure how well recall finds what it should.
    Quality(quality::Arguments),
    /// Measure what messages cost, how soon answers begin, and how streams are read again.
    Uamp(uamp::Arguments),
    /// Measure the pages of the web app over a large vault.
    Web(web::Arguments),
    /// Open a vault, recall once and say what that took: one half of the cold start.
    #[command(hide = true)]
    Child(process::Arguments),
    /// Do the part of one system of the comparison with the peers.
    #[command(hide = true)]
    Peer(peers::Child),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Engine(arguments) => engine::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Messages(arguments) => messages::run(&arguments),
        Command::Memorywire(arguments) => memorywire::run(&arguments),
        Command::Peers(arguments) => peers::run(&arguments),
        Command::Peer(arguments) => peers::child(&arguments),
        Command::Quality(arguments) => quality::run(&arguments),
        Command::Uamp(arguments) => uamp::run(&arguments),
        Command::Web(arguments) => web::run(&arguments),
        Command::Child(arguments) => process::child(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
