//! Passwords of archives: from the environment for programs, from the terminal for people.

use std::io::IsTerminal;
use std::path::Path;

use crate::failure::{Failure, Result};

const VARIABLE: &str = "YORE_ARCHIVE_PASSWORD";

/// The password that opens an archive.
pub(crate) fn for_reading() -> Result<String> {
    match given() {
        Some(password) => Ok(password),
        None if std::io::stderr().is_terminal() => ask("password of the archive: "),
        None => Err(nobody("the archive has a password")),
    }
}

/// The password to put around an archive, when its name asks for one.
pub(crate) fn for_writing(out: &Path) -> Result<Option<String>> {
    if !is_sealed(out) {
        return Ok(None);
    }
    if let Some(password) = given() {
        return Ok(Some(password));
    }
    if !std::io::stderr().is_terminal() {
        return Err(nobody("an archive that ends in .enc gets a password"));
    }
    let password = ask("password for the archive: ")?;
    if password.is_empty() {
        return Err(Failure::usage("the password is empty"));
    }
    if ask("the same again: ")? != password {
        return Err(Failure::usage("the two are not the same"));
    }
    Ok(Some(password))
}

/// Whether the name of an archive says that a password is around it.
pub(crate) fn is_sealed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "enc")
}

fn given() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|password| !password.is_empty())
}

fn ask(question: &str) -> Result<String> {
    rpassword::prompt_password(question).map_err(|_| nobody("a password is wanted"))
}

fn nobody(why: &str) -> Failure {
    Failure::usage(format!("{why}, and there is no terminal to ask at"))
        .hint(format!("give it in {VARIABLE}, or run the command at a terminal"))
}
