//! Options that say which memories are meant, shared by recall, search, context, list and export.

use clap::Args;
use yore_domain::Timestamp;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::kind::{Facet, Kind};
use yore_domain::memory::Status;
use yore_domain::query::Filter;
use yore_domain::scope::{ScopeRule, Visibility};

use crate::when::{self, Instant};

/// Which memories are meant. What is given must all hold; lists mean any of them.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which memories")]
pub(crate) struct Which {
    /// Of these kinds: semantic, episodic, procedural, working, identity, emotional
    #[arg(long = "kind", short = 'k', value_delimiter = ',', value_name = "KIND", value_parser = kind)]
    kinds: Vec<Kind>,
    /// Of these facets: fact, preference, pattern, correction, decision, summary, entity, instruction
    #[arg(long = "facet", value_delimiter = ',', value_name = "FACET", value_parser = facet)]
    facets: Vec<Facet>,
    /// With all of these tags
    #[arg(long = "tag", short = 't', value_delimiter = ',', value_name = "TAG")]
    tags: Vec<String>,
    /// With any of these labels
    #[arg(long = "label", short = 'l', value_delimiter = ',', value_name = "LABEL", value_parser = label)]
    labels: Vec<Label>,
    /// Of these classes: public, internal, confidential, restricted
    #[arg(long = "sensitivity", value_delimiter = ',', value_name = "CLASS", value_parser = sensitivity)]
    sensitivities: Vec<Sensitivity>,
    /// In these states: active, candidate, quarantined, tombstoned, erased [default: the live ones]
    #[arg(long = "status", value_delimiter = ',', value_name = "STATUS", value_parser = status)]
    statuses: Vec<Status>,
    /// Of this project
    #[arg(long, short = 'p', value_name = "NAME")]
    project: Option<String>,
    /// Of this user
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Made at or after this time: 2026-03-15, an RFC 3339 time, or 2h for two hours ago
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    since: Option<Instant>,
    /// Made before this time
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    until: Option<Instant>,
    /// At least this sure, from 0 to 1
    #[arg(long, value_name = "NUMBER", value_parser = unit)]
    min_confidence: Option<f64>,
    /// From this source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// True at this time
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    valid_at: Option<Instant>,
    /// As the vault stood at this time
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    as_of: Option<Instant>,
}

impl Which {
    /// Returns the filter it means.
    pub(crate) fn filter(&self, now: Timestamp) -> Filter {
        let at = |instant: Option<Instant>| instant.map(|instant| instant.resolve(now));
        Filter {
            kinds: self.kinds.clone(),
            facets: self.facets.clone(),
            statuses: self.statuses.clone(),
            scope: ScopeRule {
                user: self.user.clone(),
                project: self.project.clone(),
                agent: self.agent.clone(),
                visibility: None,
            },
            session: self.session.clone(),
            labels: self.labels.clone(),
            sensitivities: self.sensitivities.clone(),
            tags: self.tags.clone(),
            from: at(self.since),
            until: at(self.until),
            min_confidence: self.min_confidence,
            source: self.source.clone(),
            valid_at: at(self.valid_at),
            as_of: at(self.as_of),
            ..Filter::default()
        }
    }
}

/// Reads a kind.
pub(crate) fn kind(text: &str) -> Result<Kind, String> {
    text.parse().map_err(said)
}

/// Reads a facet.
pub(crate) fn facet(text: &str) -> Result<Facet, String> {
    text.parse().map_err(said)
}

/// Reads a label.
pub(crate) fn label(text: &str) -> Result<Label, String> {
    Label::new(text).map_err(said)
}

/// Reads a class of sensitivity.
pub(crate) fn sensitivity(text: &str) -> Result<Sensitivity, String> {
    Sensitivity::parse(text).map_err(said)
}

/// Reads a visibility.
pub(crate) fn visibility(text: &str) -> Result<Visibility, String> {
    Visibility::parse(text).map_err(said)
}

/// Reads a number from 0 to 1.
pub(crate) fn unit(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| "must be a number from 0 to 1".to_owned())
}

fn status(text: &str) -> Result<Status, String> {
    [Status::Active, Status::Candidate, Status::Quarantined, Status::Tombstoned, Status::Erased]
        .into_iter()
        .find(|status| status.as_str() == text)
        .ok_or_else(|| "must be active, candidate, quarantined, tombstoned or erased".to_owned())
}

/// What a domain error says about a value, for clap to show beside it.
pub(crate) fn said(error: yore_domain::Error) -> String {
    if let yore_domain::Error::Invalid { reason, .. } = error { reason } else { error.to_string() }
}
