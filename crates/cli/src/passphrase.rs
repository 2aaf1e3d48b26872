//! Asks a person for the passphrase of a data directory, without showing it.

use std::io::IsTerminal;

use yore_engine::Secret;
use yore_server::{Config, KeySource};
use yore_store_sqlite::{KeyKind, key_kind};

use crate::failure::{Exit, Failure, Result};

/// Whether a person asked for a passphrase instead of a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Yes, with `--passphrase`.
    Yes,
    /// Only if the directory was made with one.
    IfNeeded,
}

/// Fills in the passphrase when the directory wants one and nothing else gave the key.
pub(crate) fn fill(config: &mut Config, wanted: Wanted) -> Result {
    if !matches!(config.key, KeySource::Default) {
        if wanted == Wanted::Yes && !matches!(config.key, KeySource::Passphrase(_)) {
            return Err(Failure::usage("--passphrase and another key exclude each other")
                .hint("leave out --key-file, YORE_KEY_FILE and YORE_MASTER_KEY"));
        }
        return Ok(());
    }
    let made = config.data.join("master.json").exists();
    let phrase = match (wanted, key_kind(&config.data)) {
        (_, Some(KeyKind::Passphrase)) => known(config)?,
        (Wanted::Yes, _) if made => known(config)?,
        (Wanted::Yes, _) => asked_twice(config)?,
        (Wanted::IfNeeded, Some(KeyKind::Bytes) | None) => return Ok(()),
    };
    config.key = KeySource::Passphrase(Secret::new(phrase));
    Ok(())
}

fn known(config: &Config) -> Result<String> {
    let data = config.data.display();
    ask(&format!("passphrase of {data}: "), &format!("{data} is protected by a passphrase"))
}

/// Returns a passphrase that takes another key's place: the variable's, or one that is asked for.
pub(crate) fn chosen(config: &Config, variable: &str) -> Result<String> {
    match std::env::var(variable) {
        Ok(phrase) if !phrase.is_empty() => Ok(phrase),
        Ok(_) | Err(_) => asked_twice(config),
    }
}

fn asked_twice(config: &Config) -> Result<String> {
    let data = config.data.display();
    let alone = format!("a new passphrase for {data} is wanted");
    let phrase = ask(&format!("new passphrase for {data}: "), &alone)?;
    if phrase.is_empty() {
        return Err(Failure::usage("the passphrase is empty").hint("nothing was changed"));
    }
    if ask("the same again: ", &alone)? != phrase {
        return Err(
            Failure::usage("the two are not the same").hint("nothing was changed; try again")
        );
    }
    anstream::eprintln!("nothing opens the vault without this passphrase: keep it safe");
    Ok(phrase)
}

/// Reads a line from the terminal, not from standard input, which may carry a text.
fn ask(prompt: &str, otherwise: &str) -> Result<String> {
    let nobody = || {
        Failure::new(Exit::Damaged, format!("{otherwise}, and there is no terminal to ask at"))
            .hint("give it in YORE_PASSPHRASE, or run the command at a terminal")
    };
    if !std::io::stderr().is_terminal() {
        return Err(nobody());
    }
    rpassword::prompt_password(prompt).map_err(|_| nobody())
}
