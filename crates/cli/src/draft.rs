//! Options that describe a memory, shared by remember and revise.

use clap::Args;
use serde_json::{Map, Value};
use yore_domain::Span;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::kind::{Facet, Kind};
use yore_domain::scope::Visibility;

use crate::filter::{facet, kind, label, sensitivity, unit, visibility};
use crate::when::{self, Instant};

/// What a memory is like.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What it is")]
pub(crate) struct Traits {
    /// Its kind: semantic, episodic, procedural, working, identity, emotional
    #[arg(long, short, value_name = "KIND", value_parser = kind)]
    pub(crate) kind: Option<Kind>,
    /// Its facet: fact, preference, pattern, correction, decision, summary, entity, instruction
    #[arg(long, value_name = "FACET", value_parser = facet)]
    pub(crate) facet: Option<Facet>,
    /// Tags, separated by commas or given again
    #[arg(long = "tag", alias = "tags", short = 't', value_delimiter = ',', value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Labels that grants are given by, such as health or work.calendar
    #[arg(long = "label", alias = "labels", short = 'l', value_delimiter = ',', value_name = "LABEL", value_parser = label)]
    pub(crate) labels: Vec<Label>,
    /// How much harm a leak would do: public, internal, confidential, restricted
    #[arg(long, value_name = "CLASS", value_parser = sensitivity)]
    pub(crate) sensitivity: Option<Sensitivity>,
    /// The project it belongs to
    #[arg(long, short, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// The user it is about
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The agent whose memory it is
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The session it arose in
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Who may be shown it: private, shared, public
    #[arg(long, value_name = "WHO", value_parser = visibility)]
    pub(crate) visibility: Option<Visibility>,
    /// How sure it is, from 0 to 1
    #[arg(long, value_name = "NUMBER", value_parser = unit)]
    pub(crate) confidence: Option<f64>,
    /// How much it matters, from 0 to 1
    #[arg(long, value_name = "NUMBER", value_parser = unit)]
    pub(crate) salience: Option<f64>,
    /// In what time its weight halves, such as 30d
    #[arg(long, value_name = "SPAN", value_parser = when::span)]
    pub(crate) half_life: Option<Span>,
    /// From when it is no longer recalled
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    pub(crate) expires: Option<Instant>,
    /// From when it is true: 2026-03-15, an RFC 3339 time, or 2h for two hours ago
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    pub(crate) valid_from: Option<Instant>,
    /// Until when it is true
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    pub(crate) valid_to: Option<Instant>,
    /// A structured part, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub(crate) structured: Option<Members>,
}

/// A JSON object from the command line.
pub(crate) type Members = Box<Map<String, Value>>;

fn object(text: &str) -> Result<Members, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Ok(Box::new(members)),
        Ok(_) => Err("must be a JSON object".to_owned()),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}
