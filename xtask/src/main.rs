//! The one door for people and CI: `cargo xtask <command>`.
//!
//! `test` runs everything CI runs, `tidy` checks the house rules, `conformance` says which
//! requirement of which protocol is proven by which test, `bench` measures, `chaos` does to a server
//! what may go wrong, `probe` tries to see around grants, `openapi` describes the native API, `model`
//! rebuilds the embedding models,
//! `fuzz` tries the parsers, `supply`, `sbom` and `deb` belong to a release. Nothing here is part of
//! the shipped binary.
//!
//! This package is compiled before anything else, so it depends on little.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod backends;
mod bench;
mod chaos;
mod conformance;
mod deb;
mod figures;
mod foreign;
mod fuzz;
mod machine;
mod model;
mod openapi;
mod postgres;
mod probe;
mod requirement;
mod results;
mod supply;
mod test;
mod tidy;
mod workspace;

#[derive(Debug, Parser)]
#[command(name = "xtask", about = "Build, test and measure Yore")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run what CI runs, group by group.
    Test(test::Arguments),
    /// Check the house rules: layers, lints, file sizes, names, dependencies.
    Tidy,
    /// Print which requirement is proven by which test; fail on a claim without proof.
    Conformance(conformance::Arguments),
    /// Measure the engine or the quality of recall.
    Bench(bench::Arguments),
    /// Do everything to a server that may go wrong, and look what is lost, doubled or leaked.
    Chaos(chaos::Arguments),
    /// Try to learn of what grants hide, at random, or by the time of answers.
    Probe(probe::Arguments),
    /// Write the native API's OpenAPI document, or check the one in place.
    Openapi(openapi::Arguments),
    /// Rebuild the embedding models from the published weights, or check the ones in place.
    Model(model::Arguments),
    /// Fuzz the parsers for longer than the tests do.
    Fuzz(fuzz::Arguments),
    /// Check licences, sources and unwanted crates against deny.toml.
    Supply,
    /// Write a bill of materials of the binary.
    Sbom(supply::Arguments),
    /// Make a Debian package around the release binary.
    Deb(deb::Arguments),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Test(arguments) => test::run(&arguments),
        Command::Tidy => tidy::run(),
        Command::Conformance(arguments) => conformance::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Chaos(arguments) => chaos::run(&arguments),
        Command::Probe(arguments) => probe::run(&arguments),
        Command::Openapi(arguments) => openapi::run(&arguments),
        Command::Model(arguments) => model::run(&arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Supply => supply::check(),
        Command::Sbom(arguments) => supply::sbom(&arguments),
        Command::Deb(arguments) => deb::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
