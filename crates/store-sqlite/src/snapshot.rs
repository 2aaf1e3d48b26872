//! Reading one vault through one lens.
//!
//! A view is one read transaction and the class ids its lens selects. Rows carry a class id, so
//! every method is the same statement for a hidden row and for a missing one; what has no class
//! (grants, jobs, the audit chain) is shown only where nothing is hidden.
//!
//! A version is shown to whoever sees both its own class and the class of its memory's head:
//! hiding a memory hides its past, and opening a memory does not open what it was before.

mod books;
mod chain;
mod ledger;
mod memories;
mod names;
mod post;
mod talks;
mod upkeep;
mod walk;

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;
use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;
use yore_domain::audit::{Checkpoint, Entry};
use yore_domain::change::Change;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::grant::{Grant, Token};
use yore_domain::hold::{Hold, HoldState, Rule};
use yore_domain::job::Job;
use yore_domain::memory::{Memory, Version};
use yore_domain::procedure::Procedure;
use yore_domain::profile::Profile;
use yore_domain::query::{Filter, Page, PageRequest};
use yore_domain::stream::{Frame, Letter, Stream};
use yore_domain::{
    BlobHash, ConversationId, GrantId, HoldId, JobId, MemoryId, MessageId, Result, Seq, TenantId,
    Timestamp, VaultId, VersionId,
};
use yore_policy::Permit;
use yore_store::inside::{Inside, Unread};
use yore_store::plan::{AliasTarget, Grave, Operation};
use yore_store::snapshot::{
    AuditQuery, Buried, Census, Concern, Epochs, Extent, Loaded, Snapshot, Tally,
};
use yore_store::{Answer, Candidate, RowKey, Search};

use crate::books::Books;
use crate::error::Error;
use crate::indexes::DENSE_MODEL;
use crate::search;
use crate::select::{self, Selection};
use crate::vault::{Reader, Vault};

pub(crate) use chain::choose;
pub(crate) use memories::usage_of;
pub(crate) use post::counts;
pub(crate) use talks::{extent_of, inside_of};

/// A consistent view of one vault through one lens.
pub(crate) struct SqliteSnapshot {
    vault: Arc<Vault>,
    permit: Permit,
    books: Arc<Books>,
    /// The read transaction; it begins when rows are asked for.
    opened: Mutex<Option<Opened>>,
}

struct Opened {
    reader: Reader,
    selection: Selection,
}

impl fmt::Debug for SqliteSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteSnapshot").field("vault", &self.vault.id).finish_non_exhaustive()
    }
}

impl SqliteSnapshot {
    /// Opens a view through a permit's lens.
    pub(crate) fn new(vault: Arc<Vault>, permit: &Permit) -> Self {
        let books = vault.books();
        Self { vault, permit: permit.clone(), books, opened: Mutex::new(None) }
    }

    fn open(&self) -> Result<Opened, Error> {
        // The transaction begins before the classes are asked for, so that none is missing.
        let reader = self.vault.reader()?;
        let selection = select::selection(&reader, self.permit.lens(), &self.vault.classes)?;
        let wanted = self.books.setting(DENSE_MODEL).and_then(Value::as_str);
        if let Some(model) = self.vault.indexes.model_due(wanted) {
            switch_model(Arc::clone(&self.vault), model);
        }
        Ok(Opened { reader, selection })
    }

    /// Reads what is in the books.
    fn known<'a, T: Send + 'a>(&'a self, read: impl FnOnce(&Books) -> T) -> Answer<'a, T> {
        let found = read(&self.books);
        Box::pin(async { Ok(found) })
    }

    /// Reads what is in the books, for those from whom nothing is hidden.
    fn known_behind<'a, T: Send + Default + 'a>(
        &'a self,
        read: impl FnOnce(&Books) -> T,
    ) -> Answer<'a, T> {
        let seen = self.permit.lens().sees_all();
        self.known(|books| if seen { read(books) } else { T::default() })
    }

    fn look<'a, T: Send>(
        &'a self,
        read: impl FnOnce(&View<'_>) -> rusqlite::Result<T> + Send + 'a,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            let mut opened = self.opened.lock();
            let Opened { reader, selection } = match &mut *opened {
                Some(opened) => opened,
                none @ None => none.insert(self.open()?),
            };
            let view = View {
                conn: reader,
                selection,
                vault: &self.vault,
                agent: self.permit.principal().agent(),
                sees_all: self.permit.lens().sees_all(),
            };
            Ok(read(&view).map_err(Error::from)?)
        })
    }

    /// Reads what may take longer than other tasks of the thread should wait.
    fn look_long<'a, T: Send>(
        &'a self,
        read: impl FnOnce(&View<'_>) -> rusqlite::Result<T> + Send + 'a,
    ) -> Answer<'a, T> {
        self.look(move |view| match Handle::try_current().map(|handle| handle.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) => block_in_place(|| read(view)),
            Ok(_) | Err(_) => read(view),
        })
    }

    /// Reads what only those see from whom nothing is hidden.
    fn look_behind<'a, T: Send + Default>(
        &'a self,
        read: impl FnOnce(&View<'_>) -> rusqlite::Result<T> + Send + 'a,
    ) -> Answer<'a, T> {
        self.look(move |view| if view.sees_all { read(view) } else { Ok(T::default()) })
    }
}

/// Builds the indexes for another model beside the ones that answer.
fn switch_model(vault: Arc<Vault>, model: String) {
    std::thread::spawn(move || {
        if let Err(error) = vault.indexes.switch_model(|| vault.reader(), &model) {
            tracing::warn!(vault = %vault.id, %error, "vault {} keeps its old vectors", vault.id);
        }
    });
}

/// What every read works with.
pub(crate) struct View<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) selection: &'a Selection,
    pub(crate) vault: &'a Vault,
    /// The asking agent's name, when it is one.
    pub(crate) agent: Option<&'a str>,
    /// Whether nothing is hidden: the owner, a service of the tenant, the server itself.
    pub(crate) sees_all: bool,
}

impl Snapshot for SqliteSnapshot {
    fn memory(&self, id: MemoryId) -> Answer<'_, Option<Memory>> {
        self.look(move |view| memories::memory(view, id))
    }

    fn memory_as_of(&self, id: MemoryId, at: Timestamp) -> Answer<'_, Option<Version>> {
        self.look(move |view| memories::as_of(view, id, at))
    }

    fn history(&self, id: MemoryId) -> Answer<'_, Vec<Version>> {
        self.look(move |view| memories::history(view, id))
    }

    fn version(&self, id: VersionId) -> Answer<'_, Option<Version>> {
        self.look(move |view| memories::version(view, id))
    }

    fn resolve<'a>(&'a self, namespace: &'a str, name: &'a str) -> Answer<'a, Option<AliasTarget>> {
        self.look(move |view| names::resolve(view, namespace, name))
    }

    fn aliases(&self, id: MemoryId) -> Answer<'_, Vec<(String, String)>> {
        self.look(move |view| names::aliases(view, id))
    }

    fn memories<'a>(
        &'a self,
        filter: &'a Filter,
        page: &'a PageRequest,
    ) -> Answer<'a, Page<Memory>> {
        self.look_long(move |view| memories::list(view, filter, page))
    }

    fn count<'a>(&'a self, filter: &'a Filter) -> Answer<'a, u64> {
        self.look_long(move |view| memories::count(view, filter))
    }

    fn said<'a>(&'a self, statement: &'a str) -> Answer<'a, Option<MemoryId>> {
        self.look(move |view| memories::said(view, statement))
    }

    fn ended(&self, now: Timestamp, limit: usize) -> Answer<'_, Vec<MemoryId>> {
        self.look(move |view| memories::ended(view, now, limit))
    }

    fn related(&self, id: MemoryId) -> Answer<'_, Vec<MemoryId>> {
        self.look(move |view| names::related(view, id))
    }

    fn search<'a>(&'a self, search: &'a Search<'a>) -> Answer<'a, Vec<Candidate>> {
        self.look_long(move |view| search::search(view, search))
    }

    fn load<'a>(&'a self, rows: &'a [RowKey]) -> Answer<'a, Vec<(RowKey, Loaded)>> {
        self.look(move |view| search::load(view, rows))
    }

    fn unembedded<'a>(&'a self, model: &'a str, limit: usize) -> Answer<'a, Vec<(RowKey, String)>> {
        self.look_long(move |view| search::unembedded(view, model, limit))
    }

    fn conversation(&self, id: ConversationId) -> Answer<'_, Option<(Conversation, u64)>> {
        self.look(move |view| talks::conversation(view, id))
    }

    fn conversations<'a>(
        &'a self,
        filter: &'a Filter,
        page: &'a PageRequest,
    ) -> Answer<'a, Page<(Conversation, u64)>> {
        self.look_long(move |view| talks::list(view, filter, page))
    }

    fn extent(&self, id: ConversationId) -> Answer<'_, Option<Extent>> {
        self.look(move |view| talks::extent(view, id))
    }

    fn messages(
        &self,
        conversation: ConversationId,
        from: u64,
        limit: usize,
    ) -> Answer<'_, Vec<Message>> {
        self.look(move |view| talks::messages(view, conversation, from, limit))
    }

    fn message(
        &self,
        conversation: ConversationId,
        id: MessageId,
    ) -> Answer<'_, Option<(u64, Message)>> {
        self.look(move |view| talks::message(view, conversation, id))
    }

    fn unread(&self, limit: usize) -> Answer<'_, Vec<Unread>> {
        self.look(move |view| talks::unread(view, limit))
    }

    fn inside(&self, conversation: ConversationId, id: MessageId) -> Answer<'_, Vec<Inside>> {
        self.look(move |view| talks::inside(view, conversation, id))
    }

    fn buried<'a>(&'a self, namespace: &'a str, name: &'a str) -> Answer<'a, Buried> {
        self.look(move |view| ledger::buried(view, namespace, name))
    }

    fn graves(&self) -> Answer<'_, Vec<(Grave, Timestamp)>> {
        self.look_behind(ledger::graves)
    }

    fn blob(&self, blob: BlobHash) -> Answer<'_, Option<u64>> {
        self.look(move |view| talks::blob(view, blob))
    }

    fn blob_chunk(&self, blob: BlobHash, number: u32) -> Answer<'_, Option<Vec<u8>>> {
        self.look(move |view| talks::blob_chunk(view, blob, number))
    }

    fn grant(&self, id: GrantId) -> Answer<'_, Option<Grant>> {
        self.known_behind(|books| books.grant(id))
    }

    fn grants(&self) -> Answer<'_, Vec<Grant>> {
        self.look_behind(books::grants)
    }

    fn token<'a>(&'a self, hash: &'a str) -> Answer<'a, Option<Token>> {
        self.known_behind(|books| books.token(hash))
    }

    fn tokens(&self) -> Answer<'_, Vec<Token>> {
        self.look_behind(books::tokens)
    }

    fn hold(&self, id: HoldId) -> Answer<'_, Option<Hold>> {
        self.look(move |view| books::hold(view, id))
    }

    fn holds(&self, state: HoldState, limit: usize) -> Answer<'_, Vec<Hold>> {
        self.look(move |view| books::holds(view, state, limit))
    }

    // Rules, epochs and settings are facts that a judgement of anyone's write rests on: hiding
    // them from an agent's view would let its writes pass unjudged.
    fn rules(&self) -> Answer<'_, Vec<Rule>> {
        self.known(Books::rules)
    }

    fn epochs(&self) -> Answer<'_, Epochs> {
        self.known(Books::epochs)
    }

    fn operation<'a>(&'a self, caller: &'a str, id: &'a str) -> Answer<'a, Option<Operation>> {
        self.look(move |view| books::operation(view, caller, id))
    }

    fn setting<'a>(&'a self, name: &'a str) -> Answer<'a, Option<Value>> {
        self.known(|books| books.setting(name).cloned())
    }

    fn profile<'a>(
        &'a self,
        user: Option<&'a str>,
        as_of: Option<Timestamp>,
    ) -> Answer<'a, Option<Profile>> {
        let seen = self.permit.lens().sees(&Profile::class());
        self.look(move |view| if seen { books::profile(view, user, as_of) } else { Ok(None) })
    }

    fn tenants(&self) -> Answer<'_, Vec<(TenantId, String)>> {
        let here = self.vault.id == VaultId::CATALOG;
        self.look_behind(move |view| if here { books::tenants(view) } else { Ok(Vec::new()) })
    }

    fn located<'a>(&'a self, mac: &'a [u8; 32]) -> Answer<'a, Option<VaultId>> {
        let here = self.vault.id == VaultId::CATALOG;
        self.look_behind(move |view| if here { books::located(view, mac) } else { Ok(None) })
    }

    fn procedure(&self, memory: MemoryId) -> Answer<'_, Option<Procedure>> {
        self.look(move |view| books::procedure(view, memory))
    }

    fn procedures<'a>(&'a self, name: Option<&'a str>) -> Answer<'a, Vec<Procedure>> {
        self.look(move |view| books::procedures(view, name))
    }

    fn job(&self, id: JobId) -> Answer<'_, Option<Job>> {
        self.look_behind(move |view| books::job(view, id))
    }

    fn jobs(&self, limit: usize) -> Answer<'_, Vec<Job>> {
        self.look_behind(move |view| books::jobs(view, limit))
    }

    fn changes(&self, after: Seq, limit: usize) -> Answer<'_, Vec<Change>> {
        self.look(move |view| post::changes(view, after, limit))
    }

    fn audit<'a>(&'a self, query: &'a AuditQuery) -> Answer<'a, Vec<Entry>> {
        self.look_behind(move |view| post::audit(view, query))
    }

    fn checkpoint(&self) -> Answer<'_, Option<Checkpoint>> {
        self.look_behind(post::checkpoint)
    }

    fn census(&self) -> Answer<'_, Census> {
        self.look_behind(post::census)
    }

    fn concerning(&self, concern: Concern, limit: usize) -> Answer<'_, (u64, Vec<MemoryId>)> {
        self.look_behind(move |view| upkeep::concerning(view, concern, limit))
    }

    fn tally(&self) -> Answer<'_, Vec<Tally>> {
        self.look_behind(upkeep::tally)
    }

    fn stream<'a>(&'a self, sender: &'a str, id: &'a str) -> Answer<'a, Option<Stream>> {
        self.look(move |view| post::stream(view, sender, id))
    }

    fn frames<'a>(
        &'a self,
        sender: &'a str,
        id: &'a str,
        from: u64,
        limit: usize,
    ) -> Answer<'a, Vec<Frame>> {
        self.look(move |view| post::frames(view, sender, id, from, limit))
    }

    fn letter<'a>(&'a self, sender: &'a str, id: &'a str) -> Answer<'a, Option<Letter>> {
        self.look(move |view| post::letter(view, sender, id))
    }

    fn letters<'a>(&'a self, inbox: &'a str, limit: usize) -> Answer<'a, Vec<Letter>> {
        self.look(move |view| post::letters(view, inbox, limit))
    }

    fn waiting<'a>(&'a self, inbox: &'a str) -> Answer<'a, Vec<(String, u64)>> {
        self.look(move |view| post::waiting(view, inbox))
    }
}
