//! `yore remember`: stores something worth remembering.

use yore_client::{api, input};
use yore_domain::memory::{Draft, DraftTimes, Lifecycle};
use yore_domain::provenance::ActorKind;
use yore_domain::{MemoryId, Span};
use yore_engine::Wish;

use crate::app::App;
use crate::draft::Traits;
use crate::failure::Result;
use crate::input as given;
use crate::mutated;
use crate::when::{self, Instant};

/// Options of `yore remember`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore remember \"I am allergic to peanuts\"
  yore remember --kind procedural --project yore \"run cargo xtask test before a commit\"
  yore remember --label health --sensitivity confidential \"blood pressure 120/80\"
  echo \"the meeting moved to Friday\" | yore remember --kind episodic -

The same statement said again does not make a second memory: it makes the first one surer.")]
pub(crate) struct Args {
    /// What to remember; - or nothing reads standard input
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    #[command(flatten)]
    traits: Traits,
    /// When it was made: 2026-03-15, an RFC 3339 time, or 2h for two hours ago
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    at: Option<Instant>,
    /// Where it comes from, such as a file or a link
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// How long it may be kept
    #[arg(long, value_name = "SPAN", value_parser = when::span)]
    keep: Option<Span>,
    /// It must not leave in an export
    #[arg(long)]
    no_export: bool,
    /// Names to ask for it by later
    #[arg(long = "name", value_delimiter = ',', value_name = "NAME")]
    names: Vec<String>,
    /// The id to give it
    #[arg(long, value_name = "UUID")]
    id: Option<MemoryId>,
    /// A person shall approve it first
    #[arg(long)]
    ask: bool,
    /// Store it even if exactly this was said before
    #[arg(long)]
    keep_duplicate: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let text = given::text(&args.text, "text")?;
    let draft = draft(app, &args, text);
    draft.validate()?;
    let wish = Wish {
        approval: args.ask,
        aliases: args.names,
        keep_duplicate: args.keep_duplicate,
        ..Wish::default()
    };
    let mut session = app.session().await?;
    let done =
        session.change::<api::Remember>(input::Remember { draft, id: args.id, wish }).await?;
    mutated::show(app, &done)
}

fn draft(app: &App, args: &Args, text: String) -> Draft {
    let traits = &args.traits;
    let at = |instant: Option<Instant>| instant.map(|instant| instant.resolve(app.out.now));
    let kind = traits.kind.or(traits.facet.map(|facet| facet.kind()));
    let mut draft = kind.map_or_else(|| Draft::text(text.clone()), |kind| Draft::new(kind, &text));
    let content = &mut draft.content;
    content.facet = traits.facet.unwrap_or(content.facet);
    content.body.structured = traits.structured.as_deref().cloned();
    content.tags.clone_from(&traits.tags);
    content.governance.labels.clone_from(&traits.labels);
    content.governance.sensitivity = traits.sensitivity;
    content.scope.project.clone_from(&traits.project);
    content.scope.user.clone_from(&traits.user);
    content.scope.agent.clone_from(&traits.agent);
    content.scope.session.clone_from(&traits.session);
    content.scope.visibility = traits.visibility.unwrap_or_default();
    content.lifecycle = Lifecycle {
        confidence: traits.confidence,
        salience: traits.salience,
        half_life: traits.half_life,
        confirmed: None,
        expires: at(traits.expires),
    };
    content.consent.retention = args.keep;
    content.consent.exportable = args.no_export.then_some(false);
    content.provenance.actor_kind = ActorKind::User;
    content.provenance.method = "stated".to_owned();
    content.provenance.source.clone_from(&args.source);
    draft.time = DraftTimes {
        created: at(args.at),
        observed: None,
        valid_from: at(traits.valid_from),
        valid_to: at(traits.valid_to),
    };
    draft
}
