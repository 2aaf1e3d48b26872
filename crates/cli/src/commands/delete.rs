//! `yore delete`: erases messages, conversations, memories, what a filter finds, or everything.

use serde::Serialize;
use yore_client::api;
use yore_client::input::{self, Nothing};
use yore_domain::memory::Status;
use yore_domain::mutation::Depth;
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{ConversationId, MemoryId, MessageId, limits};

use crate::app::{App, Session};
use crate::failure::{Exit, Failure, Result};
use crate::filter::Which;
use crate::input as given;
use crate::output::count;
use crate::progress;
use crate::source::Skipped;

/// Options of `yore delete`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore delete --conversation 550e8400-e29b-41d4-a716-446655440000
  yore delete --message 550e8400-e29b-41d4-a716-446655440000/7a1b2c3d-4e5f-4061-9b8c-0d1e2f3a4b5c
  yore delete --memory 3f2a9c1e
  yore delete --platform chatgpt --until 2025-01-01
  yore delete --tag scratch --dry-run
  yore delete --everything

Says how many conversations, messages and memories would go, and asks. What goes leaves every
version, index and journal at once, and copies that a server keeps within thirty days; the ledger
of erasures keeps its ids, so that no restore and no import brings it back. What a legal hold
protects stays and is listed. A deletion that was cut off is run again.")]
pub(crate) struct Args {
    /// These conversations, with everything said in them
    #[arg(long = "conversation", value_name = "ID")]
    conversations: Vec<ConversationId>,
    /// These messages
    #[arg(long = "message", value_name = "CONVERSATION/MESSAGE", value_parser = message)]
    messages: Vec<(ConversationId, MessageId)>,
    /// These memories
    #[arg(long = "memory", value_name = "ID")]
    memories: Vec<String>,
    /// Conversations of this platform
    #[arg(long, value_name = "NAME")]
    platform: Option<String>,
    /// Conversations with this model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Everything: conversations, memories, what waits for a decision, the profile
    #[arg(long)]
    everything: bool,
    #[command(flatten)]
    which: Which,
    /// Say what would go, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

fn message(text: &str) -> Result<(ConversationId, MessageId), String> {
    let wrong = || "must be CONVERSATION/MESSAGE, both as UUIDs".to_owned();
    let (conversation, message) = text.split_once('/').ok_or_else(wrong)?;
    Ok((conversation.parse().map_err(|_| wrong())?, message.parse().map_err(|_| wrong())?))
}

/// What would go.
#[derive(Debug, Default)]
struct Scope {
    conversations: Vec<(ConversationId, u64)>,
    messages: Vec<(ConversationId, MessageId)>,
    memories: Vec<MemoryId>,
}

/// Numbers of a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Numbers {
    conversations: u64,
    messages: u64,
    memories: u64,
}

#[derive(Debug, Serialize)]
struct Done {
    scope: Numbers,
    deleted: Numbers,
    dry_run: bool,
    /// What stays, and why.
    kept: Vec<Skipped>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    let scope = scope(app, &mut session, &args).await?;
    let numbers = scope.numbers();
    let what = numbers.said();
    if args.dry_run {
        let done =
            Done { scope: numbers, deleted: Numbers::default(), dry_run: true, kept: Vec::new() };
        return app.out.either(&done, |_| app.out.line(format!("would delete {what}")));
    }
    if numbers != Numbers::default() || args.everything {
        let question = format!("delete {what} for good?");
        if !given::agreed(args.yes, &question)? {
            return Err(Failure::failed("nothing was deleted"));
        }
    }
    let (deleted, kept) = scope.erase(app, &mut session).await?;
    if args.everything && kept.is_empty() {
        session.change::<api::EraseRest>(Nothing {}).await?;
    }
    let done = Done { scope: numbers, deleted, dry_run: false, kept };
    app.out.either(&done, |done| {
        app.out.line(format!("deleted {}", done.deleted.said()))?;
        for kept in &done.kept {
            app.out.remark(format!("{} stays: {}", kept.item, kept.reason));
        }
        Ok(())
    })?;
    match done.kept.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Exit::Conflict, "some of it is protected and stays")),
    }
}

/// Finds what is meant.
async fn scope(app: &App, session: &mut Session<'_>, args: &Args) -> Result<Scope> {
    let mut scope = Scope { messages: args.messages.clone(), ..Scope::default() };
    for conversation in &args.conversations {
        let one = input::OneConversation { conversation: *conversation };
        let (_, messages) = session.call::<api::Conversation>(one).await?;
        scope.conversations.push((*conversation, messages));
    }
    for memory in &args.memories {
        scope.memories.push(session.memory_id(memory).await?);
    }
    let chosen = Filter {
        platform: args.platform.clone(),
        model: args.model.clone(),
        ..args.which.filter(app.out.now)
    };
    let named =
        !(args.conversations.is_empty() && args.messages.is_empty() && args.memories.is_empty());
    match (args.everything, chosen == Filter::default(), named) {
        (true, true, false) => scope.fill(session, &Filter::default()).await?,
        (false, true, true) => {}
        (false, false, false) => scope.fill(session, &chosen).await?,
        (false, true, false) => {
            return Err(Failure::usage("nothing says what to delete")
                .hint("name it, choose it by options, or add --everything"));
        }
        _ => {
            return Err(Failure::usage(
                "ids, options that choose and --everything exclude each other",
            ));
        }
    }
    Ok(scope)
}

impl Scope {
    /// Adds what a filter finds.
    async fn fill(&mut self, session: &mut Session<'_>, filter: &Filter) -> Result {
        let mut after = None;
        loop {
            let page = PageRequest { limit: limits::PAGE, after, ..PageRequest::default() };
            let request = input::List { filter: filter.clone(), page };
            let found = session.call::<api::Conversations>(request).await?;
            self.conversations
                .extend(found.items.into_iter().map(|(talk, messages)| (talk.id, messages)));
            after = found.next;
            if after.is_none() {
                break;
            }
        }
        // Only conversations have a platform and a model.
        if filter.platform.is_some() || filter.model.is_some() {
            return Ok(());
        }
        let mut filter = filter.clone();
        if filter.statuses.is_empty() {
            filter.statuses =
                vec![Status::Active, Status::Candidate, Status::Quarantined, Status::Tombstoned];
        }
        let mut after = None;
        loop {
            let page = PageRequest { limit: limits::PAGE, after, ..PageRequest::default() };
            let request = input::List { filter: filter.clone(), page };
            let found = session.call::<api::List>(request).await?;
            self.memories.extend(found.items.iter().map(|memory| memory.head.memory));
            after = found.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    fn numbers(&self) -> Numbers {
        let inside: u64 = self.conversations.iter().map(|(_, messages)| messages).sum();
        Numbers {
            conversations: self.conversations.len() as u64,
            messages: inside + self.messages.len() as u64,
            memories: self.memories.len() as u64,
        }
    }

    /// Erases it; what a legal hold protects stays.
    async fn erase(&self, app: &App, session: &mut Session<'_>) -> Result<(Numbers, Vec<Skipped>)> {
        let steps = self.conversations.len() + self.messages.len() + self.memories.len();
        let bar = progress::through(&app.out, steps as u64, "deleting");
        let (mut gone, mut kept) = (Numbers::default(), Vec::new());
        for (conversation, _) in &self.conversations {
            let one = input::OneConversation { conversation: *conversation };
            match session.change::<api::EraseConversation>(one).await {
                Err(failure) if failure.code == "consent" => {
                    kept.push(Skipped { item: conversation.to_string(), reason: failure.message });
                }
                done => {
                    if let Some(messages) = gone_already(done)? {
                        gone.conversations += 1;
                        gone.messages += messages;
                    }
                }
            }
            bar.inc(1);
        }
        for (conversation, message) in &self.messages {
            let one = input::OneMessage { conversation: *conversation, message: *message };
            match session.change::<api::EraseMessage>(one).await.err() {
                None => gone.messages += 1,
                Some(failure) if failure.code == "consent" => {
                    kept.push(Skipped { item: message.to_string(), reason: failure.message });
                }
                Some(failure) => return Err(failure),
            }
            bar.inc(1);
        }
        for memory in &self.memories {
            let forget = input::Forget {
                memories: vec![*memory],
                depth: Depth::Erase,
                reason: None,
                wish: api::Wish::default(),
            };
            match session.change::<api::Forget>(forget).await {
                Ok(_) => gone.memories += 1,
                Err(failure) if failure.code == "consent" => {
                    kept.push(Skipped { item: memory.to_string(), reason: failure.message });
                }
                Err(failure) => {
                    gone_already::<()>(Err(failure))?;
                }
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok((gone, kept))
    }
}

/// What somebody else erased meanwhile is gone, too.
fn gone_already<T>(done: Result<T>) -> Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(failure) if failure.exit == Exit::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

impl Numbers {
    fn said(self) -> String {
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        format!(
            "{} with {}, and {}",
            count(number(self.conversations), "conversation", "conversations"),
            count(number(self.messages), "message", "messages"),
            count(number(self.memories), "memory", "memories"),
        )
    }
}
