//! Reading one vault through one lens.
//!
//! A view is one read-only transaction and the class ids its lens selects. Rows carry a class id,
//! so every method is the same statement for a hidden row and for a missing one; what has no
//! class (grants, jobs, the audit chain) is shown only where nothing is hidden.
//!
//! A version is shown to whoever sees both its own class and the class of its memory's head:
//! hiding a memory hides its past, and opening a memory does not open what it was before.

mod books;
mod memories;
mod names;
mod post;
mod talks;
mod upkeep;
mod walk;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};
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
    BlobHash, ConversationId, Error as DomainError, GrantId, HoldId, JobId, MemoryId, MessageId,
    Seq, TenantId, Timestamp, VaultId, VersionId,
};
use yore_policy::Permit;
use yore_store::inside::{Inside, Unread};
use yore_store::plan::{AliasTarget, Grave, Operation};
use yore_store::select::Selection;
use yore_store::snapshot::{
    AuditQuery, Buried, Census, Concern, Epochs, Extent, Loaded, Snapshot, Tally,
};
use yore_store::{Answer, Candidate, RowKey, Search};

use crate::audit;
use crate::books::Books;
use crate::error::{Error, Result};
use crate::pool::{Begin, Conn, Param};
use crate::search;
use crate::store::Inner;
use crate::vault::Vault;

pub(crate) use memories::{chosen, feedback_of};
pub(crate) use talks::{extent_of, inside_of};

/// A consistent view of one vault through one lens.
pub(crate) struct PostgresSnapshot {
    inner: Arc<Inner>,
    vault: Arc<Vault>,
    permit: Permit,
    books: Arc<Books>,
    epochs: Epochs,
    /// The read transaction; it begins when rows are asked for.
    opened: Mutex<Option<Opened>>,
}

/// A transaction that has begun, and the classes that the lens sees in it.
struct Opened {
    conn: Conn,
    selection: Selection,
}

impl fmt::Debug for PostgresSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSnapshot").field("vault", &self.vault.id).finish_non_exhaustive()
    }
}

impl PostgresSnapshot {
    /// Opens a view through a permit's lens. The books are those of this moment.
    pub(crate) async fn open(
        inner: Arc<Inner>,
        vault: Arc<Vault>,
        permit: &Permit,
    ) -> Result<Self> {
        let conn = inner.lookups.begin(vault.id, Begin::View).await?;
        let sql = "SELECT grants, rules, books, change FROM tail WHERE vault = $1";
        let tail = conn.row(sql, &[]).await?;
        let Some(tail) = tail else {
            inner.forget(vault.id);
            return Err(DomainError::NotFound.into());
        };
        vault.reached(Seq(tail.get::<_, i64>(3).cast_unsigned()));
        let number: i64 = tail.get(2);
        let books = match vault.books(number) {
            Some(books) => books,
            None => {
                let books = Arc::new(Books::load(&conn, &vault).await?);
                vault.keep_books(number, &books);
                books
            }
        };
        // It is rolled back behind our back: nobody has to wait for that.
        drop(conn);
        let epochs = Epochs {
            grants: tail.get::<_, i64>(0).cast_unsigned(),
            rules: tail.get::<_, i64>(1).cast_unsigned(),
        };
        let (permit, opened) = (permit.clone(), Mutex::new(None));
        Ok(Self { inner, vault, permit, books, epochs, opened })
    }

    async fn opened(&self) -> Result<MutexGuard<'_, Option<Opened>>> {
        let mut opened = self.opened.lock().await;
        if opened.is_none() {
            let conn = self.inner.readers.begin(self.vault.id, Begin::View).await?;
            let sql = "SELECT class FROM tail WHERE vault = $1";
            let tail = conn.row(sql, &[]).await?.ok_or(Error::Domain(DomainError::NotFound))?;
            let classes = self.vault.classes(&conn, tail.get(0)).await?;
            let numbered = (1u32..).zip(classes).collect();
            let selection = Selection::of(self.permit.lens(), numbered);
            *opened = Some(Opened { conn, selection });
        }
        Ok(opened)
    }

    fn view<'a>(&'a self, opened: &'a Option<Opened>) -> View<'a> {
        let Opened { conn, selection } =
            opened.as_ref().expect("invariant: a view is used only once it is open");
        View {
            conn,
            selection,
            seen: ids(selection),
            vault: &self.vault,
            inner: &self.inner,
            model: self.books.setting(crate::commit::DENSE_MODEL).and_then(Value::as_str),
            agent: self.permit.principal().agent(),
            sees_all: self.permit.lens().sees_all(),
        }
    }

    fn sees_all(&self) -> bool {
        self.permit.lens().sees_all()
    }
}

/// The class ids of a selection, as statements take them.
pub(crate) fn ids(selection: &Selection) -> Vec<i32> {
    selection.ids().map(u32::cast_signed).collect()
}

/// What every read works with.
pub(crate) struct View<'a> {
    pub(crate) conn: &'a Conn,
    pub(crate) selection: &'a Selection,
    /// The class ids of the selection.
    pub(crate) seen: Vec<i32>,
    pub(crate) vault: &'a Vault,
    pub(crate) inner: &'a Inner,
    /// Whose vectors are compared.
    pub(crate) model: Option<&'a str>,
    /// The asking agent's name, when it is one.
    pub(crate) agent: Option<&'a str>,
    /// Whether nothing is hidden: the owner, a service of the tenant, the server itself.
    pub(crate) sees_all: bool,
}

impl View<'_> {
    pub(crate) async fn rows(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<tokio_postgres::Row>> {
        self.conn.rows(sql, params).await
    }

    pub(crate) async fn row(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Option<tokio_postgres::Row>> {
        self.conn.row(sql, params).await
    }

    /// Whether rows of a class may be shown.
    pub(crate) fn has(&self, class: i32) -> bool {
        self.selection.has(class.cast_unsigned())
    }
}

/// Sixteen bytes of a column.
pub(crate) fn id_in(row: &tokio_postgres::Row, column: usize) -> Result<[u8; 16]> {
    let bytes: &[u8] = row.get(column);
    bytes.try_into().map_err(|_| Error::Damaged("an id has the wrong length".into()))
}

/// A limit as statements take it.
pub(crate) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Reads rows inside the view's transaction.
macro_rules! look {
    ($self:ident, $view:ident => $read:expr) => {
        Box::pin(async move {
            let opened = $self.opened().await?;
            let view = $self.view(&opened);
            let $view = &view;
            Ok($read.await?)
        })
    };
}

/// Reads what only those see from whom nothing is hidden.
macro_rules! look_behind {
    ($self:ident, $view:ident => $read:expr) => {
        Box::pin(async move {
            if !$self.sees_all() {
                return Ok(Default::default());
            }
            let opened = $self.opened().await?;
            let view = $self.view(&opened);
            let $view = &view;
            Ok($read.await?)
        })
    };
}

/// Answers at once.
fn known<'a, T: Send + 'a>(value: T) -> Answer<'a, T> {
    Box::pin(async { Ok(value) })
}

impl Snapshot for PostgresSnapshot {
    fn memory(&self, id: MemoryId) -> Answer<'_, Option<Memory>> {
        look!(self, view => memories::memory(view, id))
    }

    fn memory_as_of(&self, id: MemoryId, at: Timestamp) -> Answer<'_, Option<Version>> {
        look!(self, view => memories::as_of(view, id, at))
    }

    fn history(&self, id: MemoryId) -> Answer<'_, Vec<Version>> {
        look!(self, view => memories::history(view, id))
    }

    fn version(&self, id: VersionId) -> Answer<'_, Option<Version>> {
        look!(self, view => memories::version(view, id))
    }

    fn resolve<'a>(&'a self, namespace: &'a str, name: &'a str) -> Answer<'a, Option<AliasTarget>> {
        look!(self, view => names::resolve(view, namespace, name))
    }

    fn aliases(&self, id: MemoryId) -> Answer<'_, Vec<(String, String)>> {
        look!(self, view => names::aliases(view, id))
    }

    fn memories<'a>(
        &'a self,
        filter: &'a Filter,
        page: &'a PageRequest,
    ) -> Answer<'a, Page<Memory>> {
        look!(self, view => memories::list(view, filter, page))
    }

    fn count<'a>(&'a self, filter: &'a Filter) -> Answer<'a, u64> {
        look!(self, view => memories::count(view, filter))
    }

    fn said<'a>(&'a self, statement: &'a str) -> Answer<'a, Option<MemoryId>> {
        look!(self, view => memories::said(view, statement))
    }

    fn ended(&self, now: Timestamp, limit: usize) -> Answer<'_, Vec<MemoryId>> {
        look!(self, view => memories::ended(view, now, limit))
    }

    fn related(&self, id: MemoryId) -> Answer<'_, Vec<MemoryId>> {
        look!(self, view => names::related(view, id))
    }

    fn search<'a>(&'a self, search: &'a Search<'a>) -> Answer<'a, Vec<Candidate>> {
        look!(self, view => Box::pin(search::search(view, search)))
    }

    fn load<'a>(&'a self, rows: &'a [RowKey]) -> Answer<'a, Vec<(RowKey, Loaded)>> {
        look!(self, view => search::load(view, rows))
    }

    fn unembedded<'a>(&'a self, model: &'a str, limit: usize) -> Answer<'a, Vec<(RowKey, String)>> {
        look!(self, view => search::unembedded(view, model, limit))
    }

    fn conversation(&self, id: ConversationId) -> Answer<'_, Option<(Conversation, u64)>> {
        look!(self, view => talks::conversation(view, id))
    }

    fn conversations<'a>(
        &'a self,
        filter: &'a Filter,
        page: &'a PageRequest,
    ) -> Answer<'a, Page<(Conversation, u64)>> {
        look!(self, view => talks::list(view, filter, page))
    }

    fn extent(&self, id: ConversationId) -> Answer<'_, Option<Extent>> {
        look!(self, view => talks::extent(view, id))
    }

    fn messages(
        &self,
        conversation: ConversationId,
        from: u64,
        limit: usize,
    ) -> Answer<'_, Vec<Message>> {
        look!(self, view => talks::messages(view, conversation, from, limit))
    }

    fn message(
        &self,
        conversation: ConversationId,
        id: MessageId,
    ) -> Answer<'_, Option<(u64, Message)>> {
        look!(self, view => talks::message(view, conversation, id))
    }

    fn unread(&self, limit: usize) -> Answer<'_, Vec<Unread>> {
        look!(self, view => talks::unread(view, limit))
    }

    fn inside(&self, conversation: ConversationId, id: MessageId) -> Answer<'_, Vec<Inside>> {
        look!(self, view => talks::inside(view, conversation, id))
    }

    fn buried<'a>(&'a self, namespace: &'a str, name: &'a str) -> Answer<'a, Buried> {
        look!(self, view => talks::buried(view, namespace, name))
    }

    fn graves(&self) -> Answer<'_, Vec<(Grave, Timestamp)>> {
        look_behind!(self, view => talks::graves(view))
    }

    fn blob(&self, blob: BlobHash) -> Answer<'_, Option<u64>> {
        look!(self, view => talks::blob(view, blob))
    }

    fn blob_chunk(&self, blob: BlobHash, number: u32) -> Answer<'_, Option<Vec<u8>>> {
        look!(self, view => talks::blob_chunk(view, blob, number))
    }

    fn grant(&self, id: GrantId) -> Answer<'_, Option<Grant>> {
        known(if self.sees_all() { self.books.grant(id) } else { None })
    }

    fn grants(&self) -> Answer<'_, Vec<Grant>> {
        let all = || self.books.grants.iter().map(|grant| (**grant).clone()).collect();
        known(if self.sees_all() { all() } else { Vec::new() })
    }

    fn token<'a>(&'a self, hash: &'a str) -> Answer<'a, Option<Token>> {
        known(if self.sees_all() { self.books.token(hash) } else { None })
    }

    fn tokens(&self) -> Answer<'_, Vec<Token>> {
        let all = || self.books.tokens.iter().map(|token| (**token).clone()).collect();
        known(if self.sees_all() { all() } else { Vec::new() })
    }

    fn hold(&self, id: HoldId) -> Answer<'_, Option<Hold>> {
        look!(self, view => books::hold(view, id))
    }

    fn holds(&self, state: HoldState, limit: usize) -> Answer<'_, Vec<Hold>> {
        look!(self, view => books::holds(view, state, limit))
    }

    // Rules, epochs and settings are facts that a judgement of anyone's write rests on: hiding
    // them from an agent's view would let its writes pass unjudged.
    fn rules(&self) -> Answer<'_, Vec<Rule>> {
        known(self.books.rules())
    }

    fn epochs(&self) -> Answer<'_, Epochs> {
        known(self.epochs)
    }

    fn operation<'a>(&'a self, caller: &'a str, id: &'a str) -> Answer<'a, Option<Operation>> {
        look!(self, view => books::operation(view, caller, id))
    }

    fn setting<'a>(&'a self, name: &'a str) -> Answer<'a, Option<Value>> {
        known(self.books.setting(name).cloned())
    }

    fn tenants(&self) -> Answer<'_, Vec<(TenantId, String)>> {
        look_behind!(self, view => books::tenants(view))
    }

    fn located<'a>(&'a self, mac: &'a [u8; 32]) -> Answer<'a, Option<VaultId>> {
        look_behind!(self, view => books::located(view, mac))
    }

    fn profile<'a>(
        &'a self,
        user: Option<&'a str>,
        as_of: Option<Timestamp>,
    ) -> Answer<'a, Option<Profile>> {
        let seen = self.permit.lens().sees(&Profile::class());
        look!(self, view => books::profile(view, user, as_of, seen))
    }

    fn procedure(&self, memory: MemoryId) -> Answer<'_, Option<Procedure>> {
        look!(self, view => books::procedure(view, memory))
    }

    fn procedures<'a>(&'a self, name: Option<&'a str>) -> Answer<'a, Vec<Procedure>> {
        look!(self, view => books::procedures(view, name))
    }

    fn job(&self, id: JobId) -> Answer<'_, Option<Job>> {
        look_behind!(self, view => books::job(view, id))
    }

    fn jobs(&self, limit: usize) -> Answer<'_, Vec<Job>> {
        look_behind!(self, view => books::jobs(view, limit))
    }

    fn changes(&self, after: Seq, limit: usize) -> Answer<'_, Vec<Change>> {
        look!(self, view => post::changes(view, after, limit))
    }

    fn audit<'a>(&'a self, query: &'a AuditQuery) -> Answer<'a, Vec<Entry>> {
        look_behind!(self, view => post::audit(view, query))
    }

    fn checkpoint(&self) -> Answer<'_, Option<Checkpoint>> {
        look_behind!(self, view => audit::newest(view.conn, view.vault))
    }

    fn census(&self) -> Answer<'_, Census> {
        look_behind!(self, view => post::census(view))
    }

    fn concerning(&self, concern: Concern, limit: usize) -> Answer<'_, (u64, Vec<MemoryId>)> {
        look_behind!(self, view => upkeep::concerning(view, concern, limit))
    }

    fn tally(&self) -> Answer<'_, Vec<Tally>> {
        look_behind!(self, view => upkeep::tally(view))
    }

    fn stream<'a>(&'a self, sender: &'a str, id: &'a str) -> Answer<'a, Option<Stream>> {
        look!(self, view => post::stream(view, sender, id))
    }

    fn frames<'a>(
        &'a self,
        sender: &'a str,
        id: &'a str,
        from: u64,
        limit: usize,
    ) -> Answer<'a, Vec<Frame>> {
        look!(self, view => post::frames(view, sender, id, from, limit))
    }

    fn letter<'a>(&'a self, sender: &'a str, id: &'a str) -> Answer<'a, Option<Letter>> {
        look!(self, view => post::letter(view, sender, id))
    }

    fn waiting<'a>(&'a self, inbox: &'a str) -> Answer<'a, Vec<(String, u64)>> {
        look!(self, view => post::waiting(view, inbox))
    }

    fn letters<'a>(&'a self, inbox: &'a str, limit: usize) -> Answer<'a, Vec<Letter>> {
        look!(self, view => post::letters(view, inbox, limit))
    }
}
