//! What a filter lets through: most of it by what is in clear, the rest by reading rows.

use rustc_hash::FxHashMap;
use yore_domain::Timestamp;
use yore_domain::conversation::Conversation;
use yore_domain::query::Filter;
use yore_store::select::{kind_in, message_passes, needs_value, status_in, version_passes};
use yore_store::{Search, Source};

use super::document::Document;
use crate::error::Result;
use crate::snapshot::{View, chosen};
use crate::vault::numbered;

/// How many rows are read at a time.
const CHUNK: usize = 64;

/// A document and how well it answers by one list.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    pub(super) score: f32,
    pub(super) document: Document,
}

/// Decides which documents pass, each once.
pub(super) struct Sieve<'a> {
    view: &'a View<'a>,
    filter: &'a Filter,
    source: Source,
    now: i64,
    known_at: i64,
    true_at: i64,
    travels: bool,
    look_up: bool,
    session: Option<i64>,
    /// The row of the conversation that is asked for, if there is one with that id.
    within: Option<Option<i64>>,
    decided: FxHashMap<i64, bool>,
}

impl<'a> Sieve<'a> {
    pub(super) async fn new(
        view: &'a View<'a>,
        search: &'a Search<'a>,
        source: Source,
    ) -> Result<Self> {
        let filter = search.filter;
        let travels = filter.as_of.is_some() || filter.valid_at.is_some();
        let mut within = None;
        if let Some(id) = filter.conversation.filter(|_| source == Source::Message) {
            let sql = "SELECT row FROM conversation WHERE vault = $1 AND id = $2";
            let row = view.row(sql, &[&id.bytes().as_slice()]).await?;
            within = Some(row.map(|row| row.get(0)));
        }
        let look_up = match source {
            Source::Version => travels || needs_value(filter),
            Source::Message => needs_value(&Filter { conversation: None, ..filter.clone() }),
        };
        let session = filter.session.as_deref().filter(|_| source == Source::Version);
        Ok(Self {
            view,
            filter,
            source,
            now: search.now.micros(),
            known_at: filter.as_of.map_or(i64::MAX, Timestamp::micros),
            true_at: filter.valid_at.or(filter.as_of).unwrap_or(search.now).micros(),
            travels: travels && source == Source::Version,
            look_up,
            session: session.map(|name| view.vault.number("session", name.as_bytes())),
            within,
            decided: FxHashMap::default(),
        })
    }

    /// What the columns decide by themselves.
    fn is_possible(&self, document: &Document) -> bool {
        let filter = self.filter;
        let in_time = filter.from.is_none_or(|from| from.micros() <= document.created)
            && filter.until.is_none_or(|until| document.created < until.micros())
            && document.recorded <= self.known_at;
        in_time
            && match self.source {
                Source::Version => {
                    kind_in(filter, document.kind)
                        && document.valid_from <= self.true_at
                        && self.true_at <= document.valid_to
                        // What has ended is not recalled any more, whichever time is asked about.
                        && self.now < document.expires
                        && (self.travels || (document.head && status_in(filter, document.status)))
                        && (document.session == 0
                            || self.session.is_none_or(|wanted| wanted == document.session))
                }
                Source::Message => {
                    self.within.is_none_or(|within| within == Some(document.home))
                        && filter.valid_at.is_none_or(|at| document.created <= at.micros())
                }
            }
    }

    /// Whether a document that was looked at passes.
    pub(super) fn passes(&self, document: &Document) -> bool {
        self.decided.get(&document.row).copied().unwrap_or(false)
    }

    /// Decides documents, reading the rows of those that columns do not decide.
    pub(super) async fn decide(
        &mut self,
        documents: impl Iterator<Item = &Document>,
    ) -> Result<()> {
        let mut open: Vec<(i64, i64)> = Vec::new();
        for document in documents {
            if self.decided.contains_key(&document.row) {
                continue;
            }
            let possible = self.is_possible(document);
            self.decided.insert(document.row, possible && !self.look_up);
            if possible && self.look_up {
                open.push((document.row, document.home));
            }
        }
        if open.is_empty() {
            return Ok(());
        }
        match self.source {
            Source::Version => self.read_versions(&open).await,
            Source::Message => self.read_messages(&open).await,
        }
    }

    async fn read_versions(&mut self, open: &[(i64, i64)]) -> Result<()> {
        let (rows, homes): (Vec<i64>, Vec<i64>) = open.iter().copied().unzip();
        let chosen = match self.travels {
            true => Some(chosen(self.view, &homes, self.filter).await?),
            false => None,
        };
        let sql = "SELECT row, data, memory FROM version WHERE vault = $1 AND row = ANY($2)";
        for found in self.view.rows(sql, &[&rows]).await? {
            let (row, home): (i64, i64) = (found.get(0), found.get(2));
            let stands = chosen.as_ref().is_none_or(|chosen| {
                chosen.get(&home).is_some_and(|one| one.row == row && one.passes(self.filter))
            });
            if stands {
                let version =
                    self.view.vault.open_value("version", &numbered(row), found.get(1))?;
                self.decided.insert(row, version_passes(self.filter, &version));
            }
        }
        Ok(())
    }

    async fn read_messages(&mut self, open: &[(i64, i64)]) -> Result<()> {
        let rows: Vec<i64> = open.iter().map(|(row, _)| *row).collect();
        let found = self
            .view
            .rows(
                "SELECT m.row, m.data, c.row, c.data
                 FROM message m JOIN conversation c ON c.vault = $1 AND c.row = m.conversation
                 WHERE m.vault = $1 AND m.row = ANY($2)",
                &[&rows],
            )
            .await?;
        let vault = self.view.vault;
        for found in found {
            let (row, home): (i64, i64) = (found.get(0), found.get(2));
            let message = vault.open_value("message", &numbered(row), found.get(1))?;
            let conversation: Conversation =
                vault.open_value("conversation", &numbered(home), found.get(3))?;
            self.decided.insert(row, message_passes(self.filter, &conversation, &message));
        }
        Ok(())
    }

    /// The best documents that pass, best first.
    pub(super) async fn best(
        &mut self,
        mut list: Vec<Scored>,
        depth: usize,
    ) -> Result<Vec<Scored>> {
        list.sort_unstable_by(|a, b| {
            b.score.total_cmp(&a.score).then_with(|| a.document.rank().cmp(&b.document.rank()))
        });
        let mut kept = Vec::new();
        for chunk in list.chunks(depth.max(CHUNK)) {
            self.decide(chunk.iter().map(|one| &one.document)).await?;
            for one in chunk.iter().filter(|one| self.passes(&one.document)) {
                if kept.len() == depth {
                    return Ok(kept);
                }
                kept.push(one.clone());
            }
        }
        Ok(kept)
    }
}
