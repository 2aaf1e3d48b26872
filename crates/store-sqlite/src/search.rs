//! Searching: the lens and the filter become partitions and a predicate, the index gathers.
//!
//! What the index keeps beside a document decides most filters. The rest is looked up row by row,
//! and only for documents that would otherwise be returned.

use std::cell::RefCell;
use std::sync::Arc;

use rusqlite::{CachedStatement, OptionalExtension};
use rustc_hash::FxHashMap;
use yore_domain::class::Class;
use yore_domain::conversation::Conversation;
use yore_domain::memory::Version;
use yore_domain::query::{Corpus, Filter};
use yore_domain::{Timestamp, limits};
use yore_index::{ClassId, Index, Meta};
use yore_store::inside::gist;
use yore_store::snapshot::Loaded;
use yore_store::{Candidate, RowKey, Search, Source, Standing, Vector};

use crate::indexes::{Head, Partition, State, is_head, session_number, status_of, tag_bits};
use crate::said;
use crate::select::{json, message_passes, needs_value, status_in, talk_possible, version_passes};
use crate::snapshot::{View, choose, inside_of, usage_of};

pub(crate) fn search(view: &View<'_>, search: &Search<'_>) -> rusqlite::Result<Vec<Candidate>> {
    let state = view.vault.indexes.read();
    let mut found = Vec::new();
    if search.corpus != Corpus::Messages {
        found = versions(view, &state, search)?;
    }
    if search.corpus != Corpus::Memories && talk_possible(search.filter) {
        let mut said = messages(view, &state, search)?;
        let shift = u32::try_from(found.len()).expect("invariant: candidates are few");
        for neighbour in said.iter_mut().flat_map(|one| one.signals.neighbours.iter_mut().flatten())
        {
            *neighbour += shift;
        }
        found.append(&mut said);
    }
    Ok(found)
}

fn versions(
    view: &View<'_>,
    state: &State,
    search: &Search<'_>,
) -> rusqlite::Result<Vec<Candidate>> {
    let filter = search.filter;
    let travels = filter.as_of.is_some() || filter.valid_at.is_some();
    let beyond_live = travels || !filter.statuses.iter().all(|status| status.is_live());
    let own = view.selection.narrowed(filter);
    let mut classes: FxHashMap<ClassId, u32> = FxHashMap::default();
    for (id, partition) in state.partitions() {
        if (partition.live || beyond_live)
            && own.has(partition.own)
            && view.selection.has(partition.head)
        {
            classes.insert(id, partition.own);
        }
    }
    let quick = Quick::of(search);
    let rows = Rows::new(|row| version_row_passes(view, filter, travels, row));
    let look_up = travels || needs_value(filter);
    let passes = |row: u64, meta: &Meta| quick.version(meta) && (!look_up || rows.pass(row));
    let gathered = gather(view, &state.versions, state.model(), search, classes.keys(), &passes);
    rows.into_result()?;
    let mut found = Vec::with_capacity(gathered.len());
    for one in gathered {
        let standing = match state.standing(one.key) {
            Some(standing) => standing,
            None => past_standing(view, one.key)?,
        };
        let class = class_of(view, classes[&one.class]);
        found.push(candidate(Source::Version, one, standing, class));
    }
    Ok(found)
}

fn messages(
    view: &View<'_>,
    state: &State,
    search: &Search<'_>,
) -> rusqlite::Result<Vec<Candidate>> {
    let filter = search.filter;
    let within: Option<Option<u64>> = filter
        .conversation
        .map(|id| {
            view.conn
                .prepare_cached("SELECT row FROM conversation WHERE id = ?1")?
                .query_one([id.bytes()], |row| row.get(0))
                .optional()
        })
        .transpose()?;
    let classes: Vec<ClassId> = view.selection.narrowed(filter).ids().map(ClassId).collect();
    let quick = Quick::of(search);
    let rows = Rows::new(|row| message_row_passes(view, filter, row));
    let look_up = needs_value(&Filter { conversation: None, ..filter.clone() });
    let passes = |row: u64, meta: &Meta| {
        within.is_none_or(|within| within == Some(meta.session))
            && quick.message(meta)
            && (!look_up || rows.pass(row))
    };
    let gathered = gather(view, &state.messages, state.model(), search, classes.iter(), &passes);
    rows.into_result()?;
    let place = |one: yore_index::Candidate| {
        let standing = Standing {
            created: one.meta.created,
            confirmed: one.meta.created,
            session: state.talk_session(one.meta.session),
            ..Standing::default()
        };
        let class = class_of(view, one.class.0);
        candidate(Source::Message, one, standing, class)
    };
    Ok(gathered.into_iter().map(place).collect())
}

fn gather<'a>(
    view: &View<'_>,
    index: &Index,
    model: Option<&str>,
    search: &Search<'_>,
    classes: impl Iterator<Item = &'a ClassId>,
    passes: &dyn Fn(u64, &Meta) -> bool,
) -> Vec<yore_index::Candidate> {
    let classes: Vec<ClassId> = classes.copied().collect();
    let dense = search.dense.filter(|vector| Some(vector.model.as_str()) == model);
    index
        .search(&yore_index::Search {
            classes: &classes,
            text: search.text,
            tokens: search.tokens,
            statics: search.statics.map(borrowed),
            dense: dense.map(borrowed),
            depth: search.depth,
            filter: passes,
            token_table: view
                .vault
                .tokens
                .as_deref()
                .map(|table| table as &dyn yore_index::TokenTable),
            context: true,
        })
        .list
}

fn borrowed(vector: &Vector) -> yore_index::Vector<'_> {
    yore_index::Vector { values: &vector.values, scale: vector.scale }
}

fn class_of(view: &View<'_>, class: u32) -> Arc<Class> {
    let class = view.selection.get(class);
    Arc::clone(class.expect("invariant: only selected classes are searched"))
}

fn candidate(
    source: Source,
    one: yore_index::Candidate,
    standing: Standing,
    class: Arc<Class>,
) -> Candidate {
    Candidate {
        row: RowKey { source, row: one.key },
        signals: yore_rank::Candidate {
            key: one.key,
            id: one.id,
            lexical: one.lexical,
            dense: one.dense,
            statics: one.statics,
            soft: one.soft,
            coverage: one.coverage,
            session: (one.meta.session != 0).then_some(one.session),
            neighbours: one.neighbours,
            listed: one.origin.lexical || one.origin.vector,
            prior: yore_rank::Prior::default(),
        },
        standing,
        class,
    }
}

/// What the description of a document decides by itself.
struct Quick<'a> {
    filter: &'a Filter,
    now: i64,
    known: i64,
    truth: i64,
    session: Option<u64>,
    tags: u64,
}

impl<'a> Quick<'a> {
    fn of(search: &Search<'a>) -> Self {
        let filter = search.filter;
        Self {
            filter,
            now: search.now.micros(),
            known: filter.as_of.map_or(i64::MAX, Timestamp::micros),
            truth: filter.valid_at.or(filter.as_of).unwrap_or(search.now).micros(),
            session: filter.session.as_deref().map(|name| session_number(Some(name))),
            tags: filter.tags.iter().fold(0, |bits, tag| bits | tag_bits(tag)),
        }
    }

    fn version(&self, meta: &Meta) -> bool {
        let filter = self.filter;
        let travels = filter.as_of.is_some() || filter.valid_at.is_some();
        (filter.kinds.is_empty() || filter.kinds.iter().any(|kind| kind.code() == meta.kind))
            && self.made_in_time(meta)
            && meta.valid_from <= self.truth
            && self.truth <= meta.valid_to
            && meta.recorded <= self.known
            // What has ended is not recalled any more, whichever time is asked about.
            && self.now < meta.expires
            && meta.tags & self.tags == self.tags
            && (travels || (is_head(meta) && status_in(filter, status_of(meta))))
            && (meta.session == 0 || self.session.is_none_or(|wanted| wanted == meta.session))
    }

    fn message(&self, meta: &Meta) -> bool {
        self.made_in_time(meta)
            && meta.recorded <= self.known
            && self.filter.valid_at.is_none_or(|at| meta.created <= at.micros())
    }

    fn made_in_time(&self, meta: &Meta) -> bool {
        self.filter.from.is_none_or(|from| from.micros() <= meta.created)
            && self.filter.until.is_none_or(|until| meta.created < until.micros())
    }
}

/// Asks about rows lazily, each once, and keeps the first failure.
struct Rows<F> {
    ask: F,
    known: RefCell<FxHashMap<u64, bool>>,
    failure: RefCell<Option<rusqlite::Error>>,
}

impl<F: Fn(u64) -> rusqlite::Result<bool>> Rows<F> {
    fn new(ask: F) -> Self {
        Self { ask, known: RefCell::default(), failure: RefCell::default() }
    }

    fn pass(&self, row: u64) -> bool {
        if let Some(known) = self.known.borrow().get(&row) {
            return *known;
        }
        let passes = (self.ask)(row).unwrap_or_else(|error| {
            self.failure.borrow_mut().get_or_insert(error);
            false
        });
        self.known.borrow_mut().insert(row, passes);
        passes
    }

    fn into_result(self) -> rusqlite::Result<()> {
        self.failure.into_inner().map_or(Ok(()), Err)
    }
}

fn version_row_passes(
    view: &View<'_>,
    filter: &Filter,
    travels: bool,
    row: u64,
) -> rusqlite::Result<bool> {
    let mut statement =
        view.conn.prepare_cached("SELECT memory, data FROM version WHERE row = ?1")?;
    let Some((memory, version)) = statement
        .query_one([row], |row| Ok((row.get::<_, u64>(0)?, json::<Version>(row, 1)?)))
        .optional()?
    else {
        return Ok(false);
    };
    if !version_passes(filter, &version) {
        return Ok(false);
    }
    if !travels {
        return Ok(true);
    }
    let chosen = choose(view.conn, memory, filter.as_of, filter.valid_at)?;
    Ok(chosen.is_some_and(|chosen| {
        chosen.row == row && status_in(filter, chosen.status) && status_in(filter, chosen.standing)
    }))
}

const SAID: &str = "SELECT c.class, c.data, c.updated, m.position, m.data
    FROM message m JOIN conversation c ON c.row = m.conversation WHERE m.row = ?1";

fn message_row_passes(view: &View<'_>, filter: &Filter, row: u64) -> rusqlite::Result<bool> {
    let found = view
        .conn
        .prepare_cached(SAID)?
        .query_one([row], |row| Ok((json::<Conversation>(row, 1)?, said::message(row, 4)?)))
        .optional()?;
    Ok(found.is_some_and(|(conversation, message)| message_passes(filter, &conversation, &message)))
}

/// How a version stands that is not a live head, read from its row.
fn past_standing(view: &View<'_>, row: u64) -> rusqlite::Result<Standing> {
    let found = view
        .conn
        .prepare_cached(
            "SELECT v.memory, v.data, m.recalled, m.recalls, m.followed, m.overridden, m.ignored,
                m.contradicted, m.demoted
             FROM version v JOIN memory m ON m.row = v.memory WHERE v.row = ?1",
        )?
        .query_one([row], |row| {
            let usage = usage_of(row, 2)?;
            let version: Version = json(row, 1)?;
            Ok(Head::of(row.get(0)?, &version, "").standing(usage.feedback, usage.demoted))
        })
        .optional()?;
    // A row that this view does not hold yet will not be loaded through it either.
    Ok(found.unwrap_or_default())
}

pub(crate) fn load(view: &View<'_>, rows: &[RowKey]) -> rusqlite::Result<Vec<(RowKey, Loaded)>> {
    let mut indexed = view.conn.prepare_cached("SELECT data FROM version WHERE row = ?1")?;
    let mut versions = view.conn.prepare_cached(
        "SELECT m.class, v.class, v.data, m.head_row = v.row
         FROM version v JOIN memory m ON m.row = v.memory WHERE v.row = ?1",
    )?;
    let mut messages = view.conn.prepare_cached(SAID)?;
    let mut found = Vec::with_capacity(rows.len());
    for key in rows {
        let loaded = match key.source {
            Source::Version => {
                // Reading rows under the lock of the indexes would hold up the writer.
                let placed = view.vault.indexes.read().placed(key.row);
                match placed {
                    Some((place, head)) => load_placed(view, &mut indexed, key.row, place, head)?,
                    None => load_version(view, &mut versions, key.row)?,
                }
            }
            Source::Message => load_message(view, &mut messages, key.row)?,
        };
        found.extend(loaded.map(|loaded| (*key, loaded)));
    }
    Ok(found)
}

/// Reads a version whose classes the indexes know, as they are now.
fn load_placed(
    view: &View<'_>,
    statement: &mut CachedStatement<'_>,
    row: u64,
    place: Partition,
    head: bool,
) -> rusqlite::Result<Option<Loaded>> {
    if !view.selection.has(place.own) || !view.selection.has(place.head) {
        return Ok(None);
    }
    statement
        .query_one([row], |row| Ok(Loaded::Memory { version: Box::new(json(row, 0)?), head }))
        .optional()
}

fn load_version(
    view: &View<'_>,
    statement: &mut CachedStatement<'_>,
    row: u64,
) -> rusqlite::Result<Option<Loaded>> {
    statement
        .query_one([row], |row| {
            let seen = view.selection.has(row.get(0)?) && view.selection.has(row.get(1)?);
            seen.then(|| Ok(Loaded::Memory { version: Box::new(json(row, 2)?), head: row.get(3)? }))
                .transpose()
        })
        .optional()
        .map(Option::flatten)
}

fn load_message(
    view: &View<'_>,
    statement: &mut CachedStatement<'_>,
    row: u64,
) -> rusqlite::Result<Option<Loaded>> {
    statement
        .query_one([row], |row| {
            if !view.selection.has(row.get(0)?) {
                return Ok(None);
            }
            let mut conversation: Conversation = json(row, 1)?;
            conversation.updated = Timestamp::from_micros(row.get(2)?);
            Ok(Some(Loaded::Message {
                conversation: Box::new(conversation),
                position: row.get(3)?,
                message: Box::new(said::message(row, 4)?),
            }))
        })
        .optional()
        .map(Option::flatten)
}

/// Lists live heads and messages without a vector of a model, newest first.
pub(crate) fn unembedded(
    view: &View<'_>,
    model: &str,
    limit: usize,
) -> rusqlite::Result<Vec<(RowKey, String)>> {
    let limit = limit.min(limits::PAGE);
    let mut waiting = waiting(view, model)?;
    // After an import very many wait; ordering all of them for a few would be felt.
    if view.sees_all && waiting.len() > 2 * limit {
        waiting.select_nth_unstable_by(2 * limit, |a, b| b.cmp(a));
        waiting.truncate(2 * limit);
    }
    waiting.sort_unstable_by(|a, b| b.cmp(a));
    let mut found = Vec::new();
    for (_, key) in waiting {
        if found.len() == limit {
            break;
        }
        let text = match load(view, &[key])?.pop().map(|(_, loaded)| loaded) {
            None => continue,
            Some(Loaded::Memory { version, .. }) => version.content.body.text,
            Some(Loaded::Message { message, .. }) if message.attachments.is_empty() => message.text,
            Some(Loaded::Message { message, .. }) => {
                gist(&message.text, &inside_of(view.conn, key.row)?)
            }
        };
        found.push((key, text));
    }
    Ok(found)
}

fn waiting(view: &View<'_>, model: &str) -> rusqlite::Result<Vec<(i64, RowKey)>> {
    let state = view.vault.indexes.read();
    let key = |source, row| RowKey { source, row };
    if state.model().is_none_or(|current| current == model) {
        let versions = state.versions.pending().filter_map(|row| {
            let meta =
                state.versions.meta(row).filter(|meta| is_head(meta) && status_of(meta) <= 1)?;
            Some((meta.recorded, key(Source::Version, row)))
        });
        let messages = state
            .messages
            .pending()
            .filter_map(|row| Some((state.messages.meta(row)?.created, key(Source::Message, row))));
        return Ok(versions.chain(messages).collect());
    }
    drop(state);
    let mut statement = view.conn.prepare_cached(
        "SELECT 0, v.row, v.recorded FROM memory m JOIN version v ON v.row = m.head_row
            WHERE m.status <= 1 AND v.statics IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM vector WHERE source = 0 AND row = v.row AND model = ?1)
         UNION ALL SELECT 1, m.row, m.at FROM message m
            WHERE m.statics IS NOT NULL AND NOT EXISTS (SELECT 1 FROM vector WHERE source = 1 AND row = m.row AND model = ?1)",
    )?;
    let rows = statement.query_map([model], |row| {
        let source = if row.get::<_, u8>(0)? == 0 { Source::Version } else { Source::Message };
        Ok((row.get(2)?, key(source, row.get(1)?)))
    })?;
    rows.collect()
}
