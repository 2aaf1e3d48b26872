//! The published types of OAMP: what they write is taken, and what is answered they read.

use anyhow::Result;

use super::home::Home;
use super::tools::Python;
use super::{Book, succeed};

const PACKAGES: [&str; 2] = ["oamp-types==1.0.1", "pydantic==2.12.5"];
/// A client that has no words of its own for documents.
const CLIENT: &str = include_str!("types/client.py");

/// Lets the types judge the real server.
pub(super) fn run(book: &mut Book) -> Result<()> {
    let python = Python::with("oamp", &PACKAGES)?;
    book.check("oamp_published_types_write_and_read_every_document", || {
        let home = Home::new("oamp-types")?;
        let (_serving, url) = home.serve()?;
        let token = succeed(&mut home.command(&["token", "service"]))?;
        let mut client = python.command();
        client.args(["-c", CLIENT, &url]).env("OAMP_TOKEN", token.trim());
        succeed(&mut client).map(drop)
    });
    Ok(())
}
