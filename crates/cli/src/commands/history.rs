//! `yore history`: every version of a memory.

use yore_client::{api, input};

use crate::app::App;
use crate::failure::Result;
use crate::output::{DIM, HEAD, clean};

/// Options of `yore history`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore history 3f2a9c1e
  yore revise 3f2a9c1e --to-version 2

Versions are never changed: going back is a new version that says what the old one said.")]
pub(crate) struct Args {
    /// The memory
    #[arg(value_name = "ID")]
    id: String,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    let memory = session.memory_id(&args.id).await?;
    let versions = session.call::<api::History>(input::OneMemory { memory }).await?;
    app.out.either(&versions, |versions| {
        for version in versions {
            let cause = format!("{:?}", version.cause).to_lowercase();
            let by = version.writer.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
            let facts = clean(&format!(
                "{cause}{by} · {} · {}",
                version.status.as_str(),
                app.out.ago(version.recorded)
            ));
            app.out.line(format!("{HEAD}{:>4}{HEAD:#}  {DIM}{facts}{DIM:#}", version.number))?;
            app.out.line(app.out.wrapped(&version.content.body.text, 6))?;
        }
        Ok(())
    })
}
