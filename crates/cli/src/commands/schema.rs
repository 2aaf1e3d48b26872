//! `yore schema`: prints the JSON Schemas of a protocol.

use clap::ValueEnum;
use serde_json::{Map, Value};

use crate::app::App;
use crate::failure::{Failure, Result};

/// Options of `yore schema`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore schema memorywire
  yore schema memorywire remember
  yore schema memorywire remember.response > remember.response.json
  yore schema memorywire types/episodic

Without a name all schemas are printed as one object. They need no vault.")]
pub(crate) struct Args {
    /// The protocol
    #[arg(value_enum)]
    protocol: Protocol,
    /// An operation, its answer as NAME.response, or a type of records as types/NAME
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Protocol {
    Memorywire,
}

pub(crate) fn run(app: &App, args: Args) -> Result {
    let Args { protocol: Protocol::Memorywire, name } = args;
    let schema = match name {
        Some(name) => yore_memorywire::schema::named(&name).ok_or_else(|| {
            let known = yore_memorywire::schema::OPERATIONS.join(", ");
            Failure::usage("there is no such schema")
                .hint(format!("name one of {known}, its answer as NAME.response, or types/NAME"))
        })?,
        None => Value::Object(Map::from_iter(yore_memorywire::schema::all())),
    };
    app.out.document(&schema)
}
