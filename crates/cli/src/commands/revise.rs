//! `yore revise`: a new version with another text, other marks or another place.

use yore_client::{api, input};
use yore_domain::memory::{Body, Memory};
use yore_domain::mutation::{Patch, Relabel};

use crate::app::App;
use crate::draft::Traits;
use crate::failure::{Failure, Result};
use crate::when::Instant;
use crate::{input as given, mutated};

/// Options of `yore revise`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore revise 3f2a9c1e \"I am allergic to peanuts and cashews\"
  yore revise 3f2a9c1e --tag food --confidence 0.9
  yore revise 3f2a9c1e --label health --sensitivity confidential
  yore revise 3f2a9c1e --to-version 2

What is not given stays as it is; tags and labels are replaced as a whole. The earlier version
stays in yore history.")]
pub(crate) struct Args {
    /// The memory
    #[arg(value_name = "ID")]
    id: String,
    /// What it says from now on; - reads standard input
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    #[command(flatten)]
    traits: Traits,
    /// Only if its newest version still has this number
    #[arg(long, value_name = "NUMBER")]
    expect: Option<u32>,
    /// Bring back what this version said
    #[arg(long, value_name = "NUMBER", conflicts_with = "text")]
    to_version: Option<u32>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let text = match args.text.as_slice() {
        [] => None,
        words => Some(given::text(words, "text")?),
    };
    let mut session = app.session().await?;
    let memory = session.memory(&args.id).await?;
    let id = memory.head.memory;
    let wish = yore_engine::Wish::default();
    if let Some(number) = args.to_version {
        let request = input::RestoreVersion { memory: id, number, wish };
        let done = session.change::<api::RestoreVersion>(request).await?;
        return mutated::show(app, &done);
    }
    let patch = patch(app, &args.traits, text, &memory);
    let change = relabel(&args.traits, &memory);
    let mut last = None;
    if patch != Patch::default() {
        let expected = args.expect;
        let request = input::Revise { memory: id, patch, expected, wish: wish.clone() };
        last = Some(session.change::<api::Revise>(request).await?);
    }
    if change != Relabel::default() {
        let request = input::Relabel { memory: id, change, wish };
        last = Some(session.change::<api::Relabel>(request).await?);
    }
    match last {
        Some(done) => mutated::show(app, &done),
        None => Err(Failure::usage("nothing to change was given")
            .hint("write the new text after the id, or see yore revise --help")),
    }
}

fn patch(app: &App, traits: &Traits, text: Option<String>, memory: &Memory) -> Patch {
    let content = &memory.head.content;
    let at = |instant: Option<Instant>| instant.map(|instant| instant.resolve(app.out.now));
    let structured = traits.structured.as_deref().cloned();
    let body = (text.is_some() || structured.is_some()).then(|| Body {
        text: text.unwrap_or_else(|| content.body.text.clone()),
        structured: structured.or_else(|| content.body.structured.clone()),
    });
    let mut lifecycle = content.lifecycle.clone();
    lifecycle.confidence = traits.confidence.or(lifecycle.confidence);
    lifecycle.salience = traits.salience.or(lifecycle.salience);
    lifecycle.half_life = traits.half_life.or(lifecycle.half_life);
    lifecycle.expires = at(traits.expires).or(lifecycle.expires);
    Patch {
        body,
        kind: traits.kind,
        facet: traits.facet,
        lifecycle: (lifecycle != content.lifecycle).then_some(lifecycle),
        tags: (!traits.tags.is_empty()).then(|| traits.tags.clone()),
        valid_from: at(traits.valid_from),
        valid_to: at(traits.valid_to),
        ..Patch::default()
    }
}

fn relabel(traits: &Traits, memory: &Memory) -> Relabel {
    let content = &memory.head.content;
    let mut governance = content.governance.clone();
    if !traits.labels.is_empty() {
        governance.labels.clone_from(&traits.labels);
    }
    governance.sensitivity = traits.sensitivity.or(governance.sensitivity);
    let mut scope = content.scope.clone();
    let given = [
        (&traits.project, &mut scope.project),
        (&traits.user, &mut scope.user),
        (&traits.agent, &mut scope.agent),
        (&traits.session, &mut scope.session),
    ];
    for (new, place) in given {
        if new.is_some() {
            place.clone_from(new);
        }
    }
    scope.visibility = traits.visibility.unwrap_or(scope.visibility);
    Relabel {
        governance: (governance != content.governance).then_some(governance),
        scope: (scope != content.scope).then_some(scope),
        consent: None,
    }
}
