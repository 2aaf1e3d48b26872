//! Prints the OpenAPI document; `cargo xtask openapi` writes it into `docs/`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &yore_client::openapi::document())?;
    writeln!(out)
}
