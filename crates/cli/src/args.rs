//! The command line: global options and the tree of commands.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};

use crate::commands;

const EXAMPLES: &str = "\
Examples:
  yore remember \"I am allergic to peanuts\"
  yore recall what food should I avoid
  git log -1 --format=%B | yore remember --project yore -
  yore serve
  yore token issue --verbs read,write --project yore --agent assistant --ttl 24h

Where the vault is:
  Without --url every command works on the data directory (--data, YORE_DATA, or the platform's
  own). If a server runs there, the command talks to it; if none does, the command opens the
  vault itself, so nothing needs to be started first. With --url and --token the command talks
  to a server anywhere.

The key to it:
  The first use makes a key file in the configuration directory. With --passphrase a passphrase
  protects the vault instead: it is asked for at the terminal, or read from YORE_PASSPHRASE.
  YORE_MASTER_KEY gives the 32 bytes themselves in hex or base64.

Exit codes:
  0  done
  1  failed
  2  wrong usage or input
  3  not found
  4  not authorised
  5  held: a person must approve it first (yore review list)
  6  conflict: the state moved on, or a rule forbids it
  7  not available: no server answers, the disk is full or cannot be written, or another process
     holds the data directory or the address
  8  damaged data, data of a newer version, or no key that opens it (yore doctor)

With --json every command writes one JSON document (or one value a line where it says so), and
errors are JSON on standard error. NO_COLOR and pipes switch colour off.";

/// The memory that belongs to you: one encrypted vault for everything your agents remember
#[derive(Debug, Parser)]
#[command(name = "yore", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub(crate) global: Global,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// The data directory
    #[arg(long, global = true, env = "YORE_DATA", value_name = "DIR", hide_env_values = true, value_parser = path())]
    pub(crate) data: Option<PathBuf>,
    /// The configuration file
    #[arg(long, global = true, env = "YORE_CONFIG", value_name = "FILE", hide_env_values = true, value_parser = path())]
    pub(crate) config: Option<PathBuf>,
    /// A file with the master key
    #[arg(long, global = true, env = "YORE_KEY_FILE", value_name = "FILE", hide_env_values = true, value_parser = path())]
    pub(crate) key_file: Option<PathBuf>,
    /// Ask for a passphrase instead of using a key file; asked twice when the vault is new
    #[arg(long, global = true)]
    pub(crate) passphrase: bool,
    /// Talk to the server at this address instead of the data directory
    #[arg(long, global = true, env = "YORE_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) url: Option<String>,
    /// The token to show there
    #[arg(long, global = true, env = "YORE_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// A certificate authority to trust there, in PEM
    #[arg(long, global = true, env = "YORE_CA", value_name = "FILE", hide_env_values = true, value_parser = path())]
    pub(crate) ca: Option<PathBuf>,
    /// Whose vault, for credentials that reach several
    #[arg(long, global = true, env = "YORE_VAULT", value_name = "OWNER", hide_env_values = true)]
    pub(crate) vault: Option<String>,
    /// Answer in JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Leave out remarks and progress
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// A path that may be empty: an empty variable of the environment counts as unset.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the vault to agents, until it is told to stop
    Serve(commands::serve::Args),
    /// Open the web app, signed in
    Open(commands::open::Args),
    /// Tell an agent host how to use the vault
    Connect(commands::connect::Args),
    /// Speak MCP on standard input and output, for an agent host that starts it
    Mcp(commands::mcp::Args),
    /// Forward to a provider of models, and record what is said
    Proxy(commands::proxy::Args),
    /// Store something worth remembering
    Remember(Box<commands::remember::Args>),
    /// Find what answers a question
    Recall(commands::recall::Args),
    /// Search memories and conversations
    Search(commands::search::Args),
    /// Make a safe block of memories for a prompt, within a budget of tokens
    Context(commands::context::Args),
    /// Show memories in full
    Get(commands::get::Args),
    /// List memories, newest first
    List(commands::list::Args),
    /// Show every version of a memory
    History(commands::history::Args),
    /// Change what a memory says or where it belongs, as a new version
    Revise(Box<commands::revise::Args>),
    /// Make several memories one
    Merge(commands::merge::Args),
    /// Forget, archive or demote what a policy describes
    Expire(commands::expire::Args),
    /// Look through short-term memory: promote what is of use, let go what never was
    Consolidate(commands::consolidate::Args),
    /// Take memories out of recall, or erase them for good
    Forget(commands::forget::Args),
    /// Erase messages, conversations, memories or everything, and let nothing bring it back
    Delete(Box<commands::delete::Args>),
    /// Take back what an agent did
    Undo(commands::undo::Args),
    /// Report how a memory fared when it was used
    Feedback(commands::feedback::Args),
    /// Decide what waits for approval
    Review(commands::review::Args),
    /// Say which writes and reads wait for approval, and learn from decisions
    Rule(commands::rule::Args),
    /// Take poisoned memories of an agent out
    Recover(commands::recover::Args),
    /// Show and move the state machines that agents remember
    Procedure(commands::procedure::Args),
    /// Show and mend the stores beside the vault
    Stores(commands::stores::Args),
    /// Give agents access by label, sensitivity, scope and time
    Grant(commands::grant::Args),
    /// Make and revoke tokens
    Token(commands::token::Args),
    /// Register agents that write to the vault, and write to them
    Agent(commands::agent::Args),
    /// Keep files beside what was said about them
    Attach(commands::attach::Args),
    /// Protect memories from erasure
    LegalHold(commands::legal_hold::Args),
    /// Change the key the vault is encrypted with, or what opens it
    Key(commands::key::Args),
    /// Show long work and end it
    Job(commands::job::Args),
    /// Follow what changes
    Watch(commands::watch::Args),
    /// Read and verify the audit chain
    Audit(commands::audit::Args),
    /// Take in memories and conversations
    Import(commands::import::Args),
    /// Write everything out, in the native form or as portable records
    Export(commands::export::Args),
    /// Keep another host, or a directory of Markdown files, in step with the vault, both ways
    Sync(commands::sync::Args),
    /// Move everything to another host, after saying what will not be seen there
    Migrate(commands::migrate::Args),
    /// Move all vaults between a data directory and a PostgreSQL, while no server runs
    MigrateStore(commands::migrate_store::Args),
    /// Write what is public where anybody can fetch it
    Publish(commands::publish::Args),
    /// Check a server against its protocol
    Conformance(commands::conformance::Args),
    /// Print the JSON Schemas of a protocol
    Schema(commands::schema::Args),
    /// Copy the vault, while it serves, into an encrypted file
    Backup(commands::backup::Args),
    /// Put a copy made by backup in the vault's place
    Restore(commands::restore::Args),
    /// Look for a text in everything the vault keeps on disk
    Traces(commands::traces::Args),
    /// Check keys, permissions, storage, audit chain and indexes
    Doctor(commands::doctor::Args),
    /// Let browsers and programs of this machine trust the server's certificate
    Trust(commands::trust::Args),
    /// Show and check the configuration
    Config(commands::config::Args),
    /// Write a completion script for a shell
    Completions(commands::completions::Args),
    /// Write the manual pages
    Man(commands::man::Args),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_says_what_it_does_and_gives_an_example() {
        fn walk(command: &clap::Command, path: &str) {
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                let path = format!("{path} {}", sub.get_name());
                let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
                assert!(!about.is_empty() && !about.contains('\n'), "{path}: {about:?}");
                if path.split(' ').count() == 2 {
                    let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
                    assert!(help.contains(&format!("  {path}")), "{path}: {help:?}");
                }
                walk(sub, &path);
            }
        }
        walk(&Cli::command(), "yore");
    }
}
