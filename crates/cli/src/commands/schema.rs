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
  yore schema uamp envelope

Without a name all schemas are printed as one object. They need no vault.")]
pub(crate) struct Args {
    /// The protocol
    #[arg(value_enum)]
    protocol: Protocol,
    /// An operation, its answer as NAME.response, a type of records as types/NAME, or a document
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Protocol {
    Memorywire,
    Uamp,
}

pub(crate) fn run(app: &App, args: Args) -> Result {
    let Args { protocol, name } = args;
    let schema = match (protocol, name) {
        (Protocol::Memorywire, Some(name)) => {
            let known = yore_memorywire::schema::OPERATIONS.join(", ");
            let hint = format!("name one of {known}, its answer as NAME.response, or types/NAME");
            yore_memorywire::schema::named(&name).ok_or_else(|| missing(hint))?
        }
        (Protocol::Memorywire, None) => {
            Value::Object(Map::from_iter(yore_memorywire::schema::all()))
        }
        (Protocol::Uamp, Some(name)) => {
            let hint = format!("name one of {}", yore_uamp::schema::NAMES.join(", "));
            yore_uamp::schema::named(&name).ok_or_else(|| missing(hint))?
        }
        (Protocol::Uamp, None) => Value::Object(Map::from_iter(yore_uamp::schema::all())),
    };
    app.out.document(&schema)
}

fn missing(hint: String) -> Failure {
    Failure::usage("there is no such schema").hint(hint)
}
