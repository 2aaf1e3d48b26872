//! `yore attach`: keeps files beside what was said about them.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Subcommand;
use futures::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio_util::io::ReaderStream;
use yore_client::{api, input};
use yore_domain::conversation::{Attachment, Conversation, Message, Role};
use yore_domain::{BlobHash, ConversationId, MessageId};

use crate::app::{App, Session};
use crate::failure::{Exit, Failure, Result};
use crate::output::{GOOD, ID, bytes};
use crate::progress;

/// Options of `yore attach`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore attach add harbour.jpg --text \"the harbour on the first evening\"
  yore attach add invoice.pdf --conversation 6f1f0a52-6c5f-4b0e-9d8f-3f6b3c1a2b4d
  yore attach get 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 --out copy.jpg

A file is kept encrypted in the vault, in a message that says what it is: yore search finds the
message, and whoever may see it may read the file. Erasing the message erases the file.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Take in a file
    Add(Add),
    /// Write a file out
    Get {
        /// The hash that add showed
        #[arg(value_name = "HASH")]
        hash: BlobHash,
        /// The file to write [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
struct Add {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What it is, to find it again [default: its name]
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// The conversation it belongs to [default: a new one]
    #[arg(long, value_name = "ID")]
    conversation: Option<ConversationId>,
    /// Its media type
    #[arg(long = "type", default_value = "application/octet-stream", value_name = "TYPE")]
    media_type: String,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    match args.what {
        What::Add(add) => take(app, &mut session, add).await,
        What::Get { hash, out } => give(app, &session, hash, out.as_deref()).await,
    }
}

async fn take(app: &App, session: &mut Session<'_>, add: Add) -> Result {
    let path = &add.file;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let file = tokio::fs::File::open(path).await.map_err(Failure::file(path.display()))?;
    let size = file.metadata().await.map_err(Failure::file(path.display()))?.len();
    let bar = progress::through_bytes(&app.out, size, "storing");
    let pieces = ReaderStream::with_capacity(file, 256 << 10).inspect({
        let bar = bar.clone();
        move |piece| bar.inc(piece.as_ref().map_or(0, |piece: &Bytes| piece.len() as u64))
    });
    let attached = session.client().attach(pieces).await;
    bar.finish_and_clear();
    let api::Attached { blob, size } = attached?;
    let talk = match add.conversation {
        Some(conversation) => {
            session.call::<api::Conversation>(input::OneConversation { conversation }).await?.0
        }
        None => conversation(app, &name),
    };
    let message = message(
        app,
        add.text.unwrap_or_else(|| name.clone()),
        Attachment {
            filename: name,
            media_type: add.media_type,
            blob: Some(blob),
            size: Some(size),
            foreign: Default::default(),
        },
    );
    let said = input::Converse { conversation: talk, messages: vec![message] };
    let said = session.change::<api::Converse>(said).await?;
    let done = serde_json::json!({ "blob": blob, "size": size, "conversation": said.conversation });
    app.out.either(&done, |_| {
        app.out.line(format!("{GOOD}stored{GOOD:#}  {ID}{blob}{ID:#}  {}", bytes(size)))?;
        app.out.line(format!("        in conversation {}", said.conversation))
    })
}

fn conversation(app: &App, title: &str) -> Conversation {
    Conversation {
        id: ConversationId::random(),
        title: Some(title.to_owned()),
        platform: "yore".to_owned(),
        model: None,
        created: app.out.now,
        updated: app.out.now,
        scope: Default::default(),
        governance: Default::default(),
        tags: Vec::new(),
        summary: None,
        language: None,
        foreign: Default::default(),
    }
}

fn message(app: &App, text: String, attachment: Attachment) -> Message {
    Message {
        id: MessageId::random(),
        role: Role::User,
        content: text.clone().into(),
        text,
        at: app.out.now,
        model: None,
        platform: None,
        parent: None,
        off_path: false,
        attachments: vec![attachment],
        foreign: Default::default(),
    }
}

async fn give(app: &App, session: &Session<'_>, blob: BlobHash, out: Option<&Path>) -> Result {
    let mut pieces = session.client().attachment(blob).await.map_err(|error| {
        let failure = Failure::from(error);
        if failure.exit == Exit::NotFound {
            return failure.hint("yore search finds the message that names it");
        }
        failure
    })?;
    let shown = out.map_or("standard output".to_owned(), |path| path.display().to_string());
    let mut file: Box<dyn tokio::io::AsyncWrite + Send + Unpin> = match out {
        Some(path) => {
            Box::new(tokio::fs::File::create(path).await.map_err(Failure::file(path.display()))?)
        }
        None => Box::new(tokio::io::stdout()),
    };
    let mut size = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        size += piece.len() as u64;
        file.write_all(&piece).await.map_err(Failure::file(&shown))?;
    }
    file.flush().await.map_err(Failure::file(&shown))?;
    app.out.remark(format!("{} written to {shown}", bytes(size)));
    Ok(())
}
