//! `yore agent`: agents that write to the vault, and what waits for them.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use futures::StreamExt;
use serde_json::Value;
use yore_canon::encode::base64url;
use yore_canon::key::{Algorithm, SigningKey};
use yore_client::agent::{Agent, Saying};
use yore_client::api::{self, What};
use yore_client::input::{self, Nothing};
use yore_domain::stream::Letter;
use yore_domain::{AgentId, ConversationId};
use yore_server::interrupted;

use crate::app::{App, Session};
use crate::authority;
use crate::failure::{Failure, Result};
use crate::output::{DIM, GOOD, ID, Table, cell, count, styled};

/// The platform under which messages between agents are kept.
const PLATFORM: &str = "uamp";

/// Options of `yore agent`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore agent register did:key:z6Mk… --name scheduler
  yore agent register did:web:phone.example --own
  yore agent list
  yore agent send did:key:z6Mk… \"the plumber comes on Friday\"
  yore agent ask \"what am I allergic to?\" --key agent.jwk
  yore agent inbox did:key:z6Mk…
  yore agent tail

An agent signs its messages with the key of its DID and shows a token for its name (yore token issue
--agent NAME); registering says that the two belong together. What agents say is kept as
conversations, unless --no-record says otherwise.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Doing,
}

#[derive(Debug, Subcommand)]
enum Doing {
    /// Say under which name the agent with a DID acts
    Register(Register),
    /// List registered agents
    List,
    /// Strike agents off the register
    Remove {
        /// Their DIDs
        #[arg(required = true, value_name = "DID")]
        dids: Vec<String>,
    },
    /// Write to an agent; it finds the message in its inbox
    Send {
        /// Its DID
        did: String,
        /// What to say
        text: String,
    },
    /// Ask a vault as an agent: sign the question, and show the answer as it comes
    Ask(Ask),
    /// Show what waits for an agent
    Inbox {
        /// Its DID
        did: String,
        /// How many at most
        #[arg(long, short = 'n', default_value_t = 100, value_name = "N")]
        limit: usize,
    },
    /// Follow what agents and the vault say to each other
    Tail {
        /// End after so many messages
        #[arg(long, short = 'n', value_name = "N")]
        count: Option<u64>,
    },
}

#[derive(Debug, clap::Args)]
struct Ask {
    /// The question
    question: String,
    /// The file with the agent's key, as a JSON Web Key; made when it is not there
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Whom to ask [default: the server]
    #[arg(long, value_name = "DID")]
    to: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Register {
    /// The DID it signs with: did:key:… or did:web:…
    did: String,
    /// The name its tokens state
    #[arg(long, value_name = "NAME", value_parser = authority::agent, required_unless_present = "own", conflicts_with = "own")]
    name: Option<AgentId>,
    /// It speaks as the owner, with the owner's token
    #[arg(long)]
    own: bool,
    /// Do not keep what is said with it
    #[arg(long)]
    no_record: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    match args.what {
        Doing::Register(register) => self::register(app, register).await,
        Doing::List => list(app).await,
        Doing::Remove { dids } => remove(app, dids).await,
        Doing::Send { did, text } => send(app, did, text).await,
        Doing::Ask(ask) => self::ask(app, ask).await,
        Doing::Inbox { did, limit } => inbox(app, did, limit).await,
        Doing::Tail { count } => tokio::select! {
            ended = tail(app, count) => ended,
            () = interrupted() => Ok(()),
        },
    }
}

async fn register(app: &App, given: Register) -> Result {
    let Register { did, name: agent, no_record, .. } = given;
    let mut session = app.session().await?;
    let request = input::RegisterAgent { did, agent, recorded: !no_record };
    let peer = session.change::<api::RegisterAgent>(request).await?;
    app.out.either(&peer, |peer| {
        app.out.line(format!("{GOOD}registered{GOOD:#}  {ID}{}{ID:#}", peer.did))
    })
}

async fn list(app: &App) -> Result {
    let mut session = app.session().await?;
    let peers = session.call::<api::Agents>(Nothing {}).await?;
    app.out.either(&peers, |peers| {
        if peers.is_empty() {
            app.out.remark("no agent is registered; yore agent register DID --name NAME does it");
            return Ok(());
        }
        let mut table = Table::new(&["AGENT", "NAME", "SINCE", "KEPT"]);
        for peer in peers {
            let name = peer.agent.as_ref().map_or("(owner)", AgentId::as_str);
            table.push([
                styled(peer.did.clone(), ID),
                cell(name.to_owned()),
                cell(app.out.ago(peer.registered)),
                cell(if peer.recorded { "yes" } else { "no" }.to_owned()),
            ]);
        }
        app.out.table(&table)
    })
}

async fn remove(app: &App, dids: Vec<String>) -> Result {
    let mut session = app.session().await?;
    for did in &dids {
        session.change::<api::RemoveAgent>(input::OneAgent { did: did.clone() }).await?;
    }
    app.out.either(&serde_json::json!({ "removed": dids }), |_| {
        dids.iter()
            .try_for_each(|did| app.out.line(format!("{GOOD}removed{GOOD:#}  {ID}{did}{ID:#}")))
    })
}

async fn send(app: &App, did: String, text: String) -> Result {
    let mut session = app.session().await?;
    let id = session.change::<api::WriteToAgent>(input::WriteToAgent { did, text }).await?;
    app.out.either(&serde_json::json!({ "id": id }), |_| {
        app.out.line(format!("{GOOD}waits{GOOD:#}  {ID}{id}{ID:#}"))
    })
}

async fn ask(app: &App, given: Ask) -> Result {
    let key = key(app, &given.key)?;
    let agent = Agent::new(app.link().await?, key);
    let to = match given.to {
        Some(to) => to,
        None => agent.server().await?,
    };
    let saying = Saying {
        intent: "ask",
        to: vec![to],
        kind: "text/plain".into(),
        content: given.question,
        stream: None,
        reply_to: None,
    };
    let now = app.session().await?.now();
    let sent = agent.send(&saying, now).await.map_err(|error| match error.refusal() {
        Some(refusal) if refusal.code == "4.03" => Failure::from(error)
            .hint(format!("yore agent register {} --own (or --name NAME)", agent.did())),
        _ => Failure::from(error),
    })?;
    let stream = sent.stream.ok_or_else(|| Failure::failed("the server opened no stream"))?;
    let mut deltas = agent.follow(&stream, None);
    while let Some(delta) = deltas.next().await {
        let delta = delta?;
        if app.out.json {
            app.out.row(&serde_json::json!({ "type": delta.kind, "payload": delta.payload }))?;
        } else if let Some(text) = delta.payload["text"].as_str() {
            app.out.line(text)?;
        }
        if delta.kind == "error" {
            let message = delta.payload["message"].as_str().unwrap_or("the question failed");
            return Err(Failure::failed(message));
        }
    }
    Ok(())
}

/// Reads an agent's key, or makes it.
fn key(app: &App, path: &Path) -> Result<SigningKey> {
    if !path.exists() {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| Failure::failed(error.to_string()))?;
        let key = SigningKey::generate(Algorithm::Ed25519, &random);
        let mut jwk = key.verifying_key().to_jwk();
        jwk["d"] = base64url(&*key.to_seed()).into();
        yore_server::place::write_new(path, jwk.to_string().as_bytes())?;
        app.out.remark(format!("made a key in {}", path.display()));
    }
    let text = std::fs::read(path).map_err(Failure::file(path.display()))?;
    let wrong = || Failure::usage(format!("{} does not hold a JSON Web Key", path.display()));
    let jwk: Value = serde_json::from_slice(&text).map_err(|_| wrong())?;
    SigningKey::from_jwk(&jwk).map_err(|_| wrong())
}

async fn inbox(app: &App, did: String, limit: usize) -> Result {
    let mut session = app.session().await?;
    let letters = session.call::<api::Inbox>(input::Inbox { did, limit }).await?;
    app.out.either(&letters, |letters| {
        for letter in letters {
            let (from, text) = said(letter);
            app.out.line(format!(
                "{ID}{from}{ID:#}  {text}  {DIM}{}{DIM:#}",
                app.out.ago(letter.received)
            ))?;
        }
        app.out.remark(count(letters.len(), "letter waits", "letters wait"));
        Ok(())
    })
}

/// Who wrote a letter, and the words of it.
fn said(letter: &Letter) -> (String, String) {
    let envelope: Value = serde_json::from_slice(&letter.bytes).unwrap_or_default();
    let text = envelope["body"]["content"].as_str().unwrap_or_default();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (letter.sender.clone(), line.chars().take(200).collect())
}

async fn tail(app: &App, count: Option<u64>) -> Result {
    let (mut after, mut left) = (None, count);
    let mut session = app.session().await?;
    while left != Some(0) {
        let mut events = session.watch(after.clone()).await?;
        // A stream ends with its server: asking again tells whether it is gone.
        while let Some(Ok(event)) = events.next().await {
            after = Some(event.cursor);
            let What::Message { conversation, .. } = event.change else { continue };
            if show(app, &mut session, conversation).await? {
                left = left.map(|left| left - 1);
                if left == Some(0) {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Shows the last message of a conversation, when agents hold it.
async fn show(app: &App, session: &mut Session<'_>, conversation: ConversationId) -> Result<bool> {
    let one = input::OneConversation { conversation };
    let (talk, messages) = session.call::<api::Conversation>(one).await?;
    if talk.platform != PLATFORM {
        return Ok(false);
    }
    let last = input::Messages { conversation, from: messages.saturating_sub(1), limit: 1 };
    for message in session.call::<api::Messages>(last).await? {
        if app.out.json {
            app.out.row(&message)?;
            continue;
        }
        let about = message.foreign.get(PLATFORM).cloned().unwrap_or_default();
        let from = about["uamp_from"].as_str().unwrap_or("vault").to_owned();
        let intent = about["uamp_intent"].as_str().unwrap_or("answer").to_owned();
        let line = message.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line: String = line.chars().take(200).collect();
        app.out.line(format!("{ID}{from}{ID:#}  {intent}  {line}"))?;
    }
    Ok(true)
}
