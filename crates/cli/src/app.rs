//! What every command has at hand: where the vault is, how to reach it, where to answer.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use futures::stream::BoxStream;
use tokio::sync::Mutex;
use yore_client::api::{self, Endpoint, Event, Reference};
use yore_client::{Client, Target, input};
use yore_domain::memory::{Memory, Status};
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{MemoryId, limits};
use yore_engine::{Call, Clock, Engine, Secret};
use yore_http::{Limits, Peer, Way};
use yore_server::{Config, Held, Layers, Near, SystemClock, place};

use crate::args::Global;
use crate::failure::{Exit, Failure, Result};
use crate::local::{Local, Stay};
use crate::output::Output;
use crate::passphrase::{self, Wanted};
use crate::prefix;

/// How many memories are looked through for an id that was cut short.
const RECENT_PAGES: usize = 10;
/// How often a call is made anew when the process that served it ends.
const RETRIES: usize = 5;

/// What every command has at hand.
#[derive(Debug)]
pub(crate) struct App {
    /// Where answers go.
    pub(crate) out: Output,
    global: Global,
    stay: Stay,
    local: Mutex<Option<Local>>,
    /// Whose vault a command means, over what was said for every command.
    meant: OnceLock<String>,
}

impl App {
    /// Reads the surroundings.
    pub(crate) fn new(global: Global, stay: Stay) -> Self {
        let width = textwrap::termwidth().clamp(40, 120);
        let now = SystemClock::default().now();
        let out = Output { json: global.json, quiet: global.quiet, width, now };
        Self { out, global, stay, local: Mutex::new(None), meant: OnceLock::new() }
    }

    /// Whether the vault lies in a data directory of this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.global.url.is_none()
    }

    /// The server that was named, when one was.
    pub(crate) fn url(&self) -> Option<&str> {
        self.global.url.as_deref()
    }

    /// The token that was given, when one was.
    pub(crate) fn token(&self) -> Option<&str> {
        self.global.token.as_deref()
    }

    /// The certificate authority to trust, when one was named.
    pub(crate) fn authority(&self) -> Option<&Path> {
        self.global.ca.as_deref()
    }

    /// Returns the layers of configuration: file, environment, then the options given.
    pub(crate) fn layers(&self) -> Result<Layers> {
        let layers = match &self.global.config {
            Some(path) => Layers::new().file(path),
            None => Layers::new().usual_file(),
        };
        let mut layers = layers.env(|name| std::env::var(name).ok())?;
        if let Some(data) = &self.global.data {
            layers = layers.set("data", text(data, "--data")?);
        }
        if let Some(file) = &self.global.key_file {
            layers = layers.set("key_file", text(file, "--key-file")?);
        }
        Ok(layers)
    }

    /// Returns the configuration file that is read, whether it is there or not.
    pub(crate) fn config_file(&self) -> Result<PathBuf> {
        match &self.global.config {
            Some(path) => Ok(path.clone()),
            None => Ok(place::config()?.join("config.toml")),
        }
    }

    /// Returns the data directory that was named, when one was.
    pub(crate) fn chosen_data(&self) -> Option<&Path> {
        self.global.data.as_deref()
    }

    /// Returns the effective configuration.
    pub(crate) fn config(&self) -> Result<Config> {
        Ok(Config::load(self.layers()?)?)
    }

    /// Returns the configuration with the passphrase, asking for it when it is wanted.
    pub(crate) fn unlocked(&self, mut config: Config) -> Result<Config> {
        let wanted = if self.global.passphrase { Wanted::Yes } else { Wanted::IfNeeded };
        passphrase::fill(&mut config, wanted)?;
        Ok(config)
    }

    /// Returns a path as the server must read it.
    pub(crate) fn server_path(&self, path: &Path) -> Result<PathBuf> {
        if self.is_local() {
            return std::path::absolute(path).map_err(Failure::file(path.display()));
        }
        if path.file_name() != Some(path.as_os_str()) {
            return Err(Failure::usage(format!("{} is not a plain file name", path.display()))
                .hint("a server elsewhere keeps its copies in a directory of its own"));
        }
        Ok(path.to_owned())
    }

    /// Says whose vault is meant from now on; said once.
    pub(crate) fn mean(&self, user: Option<String>) {
        if let Some(user) = user {
            self.meant.get_or_init(|| user);
        }
    }

    /// Reaches the vault.
    pub(crate) async fn session(&self) -> Result<Session<'_>> {
        Ok(Session { app: self, client: self.link().await? })
    }

    /// Lets go of a vault that was opened here, once others are done with it.
    pub(crate) async fn finish(&self) -> Result {
        match self.local.lock().await.take() {
            Some(local) => local.close().await,
            None => Ok(()),
        }
    }

    /// Finds the way to the vault, or makes it.
    pub(crate) async fn link(&self) -> Result<Client> {
        let client = match &self.global.url {
            Some(url) => self.remote(url).await?,
            None => self.here().await?,
        };
        Ok(match self.meant.get().or(self.global.vault.as_ref()) {
            Some(vault) => client.with_vault(vault)?,
            None => client,
        })
    }

    /// The server of the vault, when it is this process.
    pub(crate) async fn near(&self) -> Option<Near> {
        self.local.lock().await.as_ref().and_then(Local::near).cloned()
    }

    async fn remote(&self, url: &str) -> Result<Client> {
        let mut target: Target = url.parse()?;
        if let Some(ca) = &self.global.ca {
            target = target.trusting(ca);
        }
        let token = self.global.token.as_ref().ok_or_else(|| {
            Failure::new(Exit::NotAuthorised, "a server at --url wants a token")
                .hint("pass --token or YORE_TOKEN; yore token issue makes one where the vault is")
        })?;
        let client = Client::connect(target).await.map_err(|error| {
            Failure::from(error).hint(
                "is yore serve running there? https with a certificate made by yore wants --ca \
                 DIR/tls/ca.pem",
            )
        })?;
        Ok(client.with_token(Secret::new(token)))
    }

    async fn here(&self) -> Result<Client> {
        let mut slot = self.local.lock().await;
        let local = match slot.as_mut() {
            Some(local) => local,
            None => slot.insert(Local::new(self.unlocked(self.config()?)?, self.out, self.stay)),
        };
        let client = local.reach().await?;
        Ok(match &self.global.token {
            Some(token) => client.with_token(Secret::new(token)),
            None => client,
        })
    }
}

fn text<'a>(path: &'a Path, option: &str) -> Result<&'a str> {
    path.to_str().ok_or_else(|| Failure::usage(format!("{option}: the path is not UTF-8 text")))
}

/// What the audit chain calls the way of commands.
const PROTOCOL: &str = "native";

/// The server of a vault, while it is this process. It does not end before this is dropped.
#[derive(Debug)]
pub(crate) struct Here {
    /// Its engine.
    pub(crate) engine: Engine,
    /// What it takes from others, and so from this command.
    pub(crate) limits: Limits,
    /// The call of this session.
    pub(crate) call: Call,
    _held: Held,
}

/// A conversation with the server of a vault.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    app: &'a App,
    client: Client,
}

impl Session<'_> {
    /// Asks something.
    pub(crate) async fn call<E: Endpoint>(&mut self, input: E::Input) -> Result<E::Output>
    where
        E::Input: Clone,
    {
        self.send::<E>(input, None).await
    }

    /// Asks for a change, under an id of its own: sent twice, it is still done once.
    pub(crate) async fn change<E: Endpoint>(&mut self, input: E::Input) -> Result<E::Output>
    where
        E::Input: Clone,
    {
        let operation = MemoryId::random().to_string();
        self.send::<E>(input, Some(&operation)).await
    }

    /// The engine, where this process is the server: what is large need not be written as JSON
    /// and read again.
    pub(crate) async fn here(&self) -> Result<Option<Here>> {
        let Some(near) = self.app.near().await else { return Ok(None) };
        let Some((held, surface)) = near.hold().zip(near.surface()) else { return Ok(None) };
        let mut head = self.client.head()?;
        head.extensions.insert(Peer { way: Way::Socket, address: None });
        let call = surface.call(&head, PROTOCOL)?;
        Ok(Some(Here { engine: surface.engine, limits: surface.limits, call, _held: held }))
    }

    /// Follows changes, from now on or after a cursor.
    pub(crate) async fn watch(
        &mut self,
        after: Option<String>,
    ) -> Result<BoxStream<'static, yore_client::Result<Event>>> {
        let mut tries = 0;
        loop {
            match self.client.watch(after.clone()).await {
                Err(yore_client::Error::Unreachable { .. })
                    if self.app.is_local() && tries < RETRIES =>
                {
                    tries += 1;
                    self.relink().await?;
                }
                events => return Ok(events?),
            }
        }
    }

    /// What time it is, as far as this command is concerned.
    pub(crate) fn now(&self) -> yore_domain::Timestamp {
        self.app.out.now
    }

    /// The client itself, for what is not one question and one answer.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The process that served the socket has ended: the next one is asked, or made.
    async fn relink(&mut self) -> Result {
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.client = self.app.link().await?;
        Ok(())
    }

    async fn send<E: Endpoint>(
        &mut self,
        input: E::Input,
        operation: Option<&str>,
    ) -> Result<E::Output>
    where
        E::Input: Clone,
    {
        let mut tries = 0;
        loop {
            match self.client.call_once::<E>(input.clone(), operation).await {
                Err(yore_client::Error::Unreachable { .. })
                    if self.app.is_local() && tries < RETRIES =>
                {
                    tries += 1;
                    self.relink().await?;
                }
                Err(error) if is_internal(&error) => return Err(self.explained(error).await),
                answer => return Ok(answer?),
            }
        }
    }

    /// A server does not tell what went wrong inside it; a check of the vault tells whether the
    /// data is to blame.
    async fn explained(&self, error: yore_client::Error) -> Failure {
        let check = self.client.call::<api::Check>(input::Check { repair: false }).await;
        let faults = match check {
            Ok(health) if health.storage.is_empty() => None,
            Ok(health) => Some(health.storage.join("; ")),
            Err(error) if is_internal(&error) => Some("it cannot be opened".to_owned()),
            Err(_) => None,
        };
        match faults {
            Some(faults) => {
                Failure::new(Exit::Damaged, format!("the vault is damaged: {faults}")).hinted()
            }
            None => Failure::from(error).hint("the server's log says what went wrong"),
        }
    }

    /// Returns the memory that an id, the beginning of one, or a name stands for.
    pub(crate) async fn memory(&mut self, text: &str) -> Result<Memory> {
        let reference = match self.recent(text).await? {
            Some(id) => Reference::Memory(id),
            None => Reference::parse(text),
        };
        self.call::<api::Get>(input::Get { reference }).await.map_err(|failure| {
            if failure.exit == Exit::NotFound {
                failure.at(crate::output::clean(text))
            } else {
                failure
            }
        })
    }

    /// Returns the id that an id, the beginning of one, or a name stands for.
    pub(crate) async fn memory_id(&mut self, text: &str) -> Result<MemoryId> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        match self.recent(text).await? {
            Some(id) => Ok(id),
            None => Ok(self.memory(text).await?.head.memory),
        }
    }

    /// Looks for an id that begins so among recent memories.
    async fn recent(&mut self, text: &str) -> Result<Option<MemoryId>> {
        if !prefix::plausible(text) {
            return Ok(None);
        }
        let statuses = vec![
            Status::Active,
            Status::Candidate,
            Status::Quarantined,
            Status::Tombstoned,
            Status::Erased,
        ];
        let (mut found, mut after) = (Vec::new(), None);
        for _ in 0..RECENT_PAGES {
            let filter = Filter { statuses: statuses.clone(), ..Filter::default() };
            let page = PageRequest { limit: limits::PAGE, after, ..PageRequest::default() };
            let rows = self.call::<api::List>(input::List { filter, page }).await?;
            found.extend(rows.items.iter().map(|memory| memory.head.memory));
            after = rows.next;
            if after.is_none() {
                break;
            }
        }
        match prefix::one(found, text, "yore list shows what there is") {
            Ok(id) => Ok(Some(id)),
            Err(failure) if failure.exit == Exit::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

impl From<yore_client::Error> for Failure {
    fn from(error: yore_client::Error) -> Self {
        let message = error.to_string();
        match error {
            yore_client::Error::Target(_) | yore_client::Error::Authorities { .. } => {
                Self::usage(message).hint("write http://HOST:PORT, https://HOST:PORT or unix:PATH")
            }
            yore_client::Error::Unreachable { .. } | yore_client::Error::Timeout(_) => {
                Self::new(Exit::Unreachable, message)
            }
            yore_client::Error::Answer(_) => Self::failed(message)
                .hint("is that a yore server of the same version? yore --version says yours"),
            yore_client::Error::Refused(refusal) => refused(refusal),
        }
    }
}

fn is_internal(error: &yore_client::Error) -> bool {
    error.refusal().is_some_and(|refusal| refusal.code == "internal")
}

fn refused(refusal: yore_client::Refusal) -> Failure {
    let exit = match refusal.code.as_str() {
        // What UAMP says of the same.
        "unauthenticated" | "forbidden" | "4.01" | "4.03" => Exit::NotAuthorised,
        "not_found" | "4.04" => Exit::NotFound,
        "invalid" | "too_large" | "signature" | "unsupported" => Exit::Usage,
        "conflict" | "consent" => Exit::Conflict,
        "pending_approval" => Exit::Held,
        "busy" => Exit::Unreachable,
        _ => Exit::Failed,
    };
    let mut failure = Failure::new(exit, refusal.message);
    failure.code = refusal.code;
    failure.hold = refusal.hold.map(|hold| hold.to_string());
    failure = failure.hinted();
    if let Some(wait) = refusal.retry_after.filter(|_| failure.hint.is_none()) {
        failure = failure.hint(format!("try again in {} s", wait.as_secs().max(1)));
    }
    failure
}
