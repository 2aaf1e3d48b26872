//! PostgreSQL with pgvector, in memorywire's tables.
//!
//! Conditions come first, then distances: exactly where an agent has few memories or the index is
//! not HNSW, through the index otherwise. A database that memorywire made keeps its tables and its
//! index; one made here gets an HNSW index under the same name. Connections are encrypted where
//! the address asks for it.

mod tls;

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row};

use self::tls::{Encryption, Trust};
use super::vectors::{DIMENSIONS, Embedder, literal};
use crate::error::{Error, Result};
use crate::record::{Found, Object, Question, Record, Type, Whose};
use crate::slot::Depth;
use crate::store::{Capabilities, Capability, Health, Keeps, MemoryStore, Page};

const BACKEND: &str = "pgvector";
/// The lock under which tables are made: PostgreSQL does not take two makers of one thing well.
const LOCK: i64 = 0x796f_7265;
/// Rows of one page of a list.
const PAGE: i64 = 500;
/// Memories of an agent up to which every search is exact.
const EXACT: i64 = 20_000;
const COLUMNS: &str = "id, agent_id, user_id, type, content, metadata, confidence, source, \
     created_at, updated_at, expires_at, last_recalled_at";

/// Things to put into a statement.
type Params = Vec<Box<dyn ToSql + Send + Sync>>;

/// A memorywire schema in PostgreSQL.
#[derive(Debug)]
pub struct Pgvector {
    config: Config,
    /// Whom to trust, where connections are encrypted.
    trust: Option<Trust>,
    schema: String,
    client: Mutex<Option<Arc<Client>>>,
    embedder: Arc<dyn Embedder>,
    exact: i64,
}

async fn until_it_ends(
    connection: impl Future<Output = std::result::Result<(), tokio_postgres::Error>>,
) {
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection to PostgreSQL ended");
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            // What the database cannot hold, such as a zero byte, it will never hold.
            Some(told) if told.code().code().starts_with("22") => {
                Self::invalid("record", "is not what the database can hold")
            }
            // The message could repeat a value; the code cannot.
            Some(told) => Self::Database(format!("SQLSTATE {}", told.code().code())),
            None => Self::Unreachable(error.to_string()),
        }
    }
}

impl Pgvector {
    /// Prepares to speak to a database; nothing is sent yet.
    pub fn new(dsn: &str, schema: &str, embedder: Arc<dyn Embedder>) -> Result<Self> {
        let (dsn, trust) = tls::asked(dsn)?;
        let config = dsn
            .parse()
            .map_err(|_| Error::invalid("url", "is not the address of a PostgreSQL database"))?;
        let mut letters = schema.chars();
        let begins = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !begins || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(Error::invalid("schema", "must be letters, digits and underscores"));
        }
        let (schema, client) = (schema.to_owned(), Mutex::new(None));
        Ok(Self { config, trust, schema, client, embedder, exact: EXACT })
    }

    /// Searches exactly only for agents with at most so many memories.
    #[must_use]
    pub fn exact_up_to(mut self, memories: u32) -> Self {
        self.exact = i64::from(memories);
        self
    }

    /// A connection that works, with the tables in place.
    async fn client(&self) -> Result<Arc<Client>> {
        let mut client = self.client.lock().await;
        if let Some(client) = client.as_ref().filter(|client| !client.is_closed()) {
            return Ok(client.clone());
        }
        let fresh = match &self.trust {
            None => {
                let (fresh, connection) = self.config.connect(NoTls).await?;
                tokio::spawn(until_it_ends(connection));
                fresh
            }
            Some(trust) => {
                let (fresh, connection) = self.config.connect(Encryption::new(trust)?).await?;
                tokio::spawn(until_it_ends(connection));
                fresh
            }
        };
        fresh.batch_execute(&self.tables()).await?;
        // Known from pgvector 0.8 on; without it, an index may return too few.
        let iterative = fresh.batch_execute("SET hnsw.iterative_scan = strict_order").await;
        if let Err(error) = iterative {
            tracing::debug!(%error, "the index cannot be read on and on");
        }
        let fresh = Arc::new(fresh);
        *client = Some(fresh.clone());
        Ok(fresh)
    }

    fn tables(&self) -> String {
        let schema = &self.schema;
        format!(
            "SET client_min_messages = warning;
            SELECT pg_advisory_xact_lock({LOCK});
            CREATE EXTENSION IF NOT EXISTS vector;
            CREATE SCHEMA IF NOT EXISTS {schema};
            CREATE TABLE IF NOT EXISTS {schema}.memories (
                id text PRIMARY KEY,
                agent_id text NOT NULL,
                user_id text,
                type text NOT NULL
                    CHECK (type IN ('semantic', 'episodic', 'procedural', 'emotional')),
                content text NOT NULL,
                metadata jsonb DEFAULT '{{}}'::jsonb,
                confidence real DEFAULT 1.0,
                source text,
                embedding vector({DIMENSIONS}),
                created_at bigint NOT NULL,
                updated_at bigint NOT NULL,
                expires_at bigint,
                deleted_at bigint,
                last_recalled_at bigint
            );
            CREATE INDEX IF NOT EXISTS idx_memories_agent ON {schema}.memories (agent_id, type);
            CREATE INDEX IF NOT EXISTS idx_memories_user ON {schema}.memories (user_id);
            CREATE INDEX IF NOT EXISTS idx_memories_created ON {schema}.memories (created_at);
            CREATE INDEX IF NOT EXISTS idx_memories_embedding
                ON {schema}.memories USING hnsw (embedding vector_l2_ops);
            CREATE TABLE IF NOT EXISTS {schema}.procedures (
                id text PRIMARY KEY,
                agent_id text NOT NULL,
                name text NOT NULL,
                states jsonb NOT NULL,
                current text,
                metadata jsonb DEFAULT '{{}}'::jsonb,
                created_at bigint NOT NULL,
                updated_at bigint NOT NULL
            );
            CREATE TABLE IF NOT EXISTS {schema}.audit_log (
                id bigserial PRIMARY KEY,
                ts bigint NOT NULL,
                operation text NOT NULL,
                agent_id text,
                user_id text,
                memory_id text,
                payload jsonb NOT NULL,
                result jsonb,
                approved_by text,
                approval_at bigint
            );
            CREATE INDEX IF NOT EXISTS idx_audit_ts ON {schema}.audit_log (ts);"
        )
    }

    async fn vector(&self, text: &str) -> Result<String> {
        let (embedder, text) = (self.embedder.clone(), text.to_owned());
        let vector = tokio::task::spawn_blocking(move || embedder.embed(&text)).await;
        let vector = vector.map_err(|error| Error::Database(error.to_string()))?;
        if vector.len() != DIMENSIONS {
            return Err(Error::Database(format!("a vector must have {DIMENSIONS} numbers")));
        }
        Ok(literal(&vector))
    }

    async fn write(&self, record: &Record) -> Result<()> {
        let vector = self.vector(&record.content).await?;
        let schema = &self.schema;
        let sql = format!(
            "WITH written AS (
                INSERT INTO {schema}.memories (id, agent_id, user_id, type, content, metadata,
                    confidence, source, created_at, updated_at, expires_at, embedding)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::vector)
                ON CONFLICT (id) DO UPDATE SET agent_id = $2, user_id = $3, type = $4,
                    content = $5, metadata = $6, confidence = $7, source = $8, created_at = $9,
                    updated_at = $10, expires_at = $11, embedding = $12::text::vector,
                    deleted_at = NULL
                RETURNING id)
            INSERT INTO {schema}.audit_log (ts, operation, agent_id, user_id, memory_id, payload)
            SELECT $10::bigint, 'remember', $2::text, $3::text, id, jsonb_build_object('id', id) FROM written"
        );
        let metadata = Value::Object(record.metadata.clone());
        let confidence = record.confidence as f32;
        let params: [&(dyn ToSql + Sync); 12] = [
            &record.id,
            &record.agent_id,
            &record.user_id,
            &record.kind.as_str(),
            &record.content,
            &metadata,
            &confidence,
            &record.source,
            &record.created_at,
            &record.updated_at,
            &record.expires_at,
            &vector,
        ];
        self.client().await?.execute(&sql, &params).await?;
        Ok(())
    }

    async fn search(&self, question: &Question) -> Result<Vec<Found>> {
        let vector = self.vector(&question.query).await?;
        let Some((conditions, mut params)) = conditions(question) else { return Ok(Vec::new()) };
        let client = self.client().await?;
        let schema = &self.schema;
        let (limit, point) = (params.len() + 1, params.len() + 2);
        params.push(Box::new(i64::try_from(question.k).unwrap_or(i64::MAX)));
        params.push(Box::new(vector));
        let sql = if self.is_exact(&client, &question.whose).await? {
            format!(
                "WITH fitting AS MATERIALIZED
                    (SELECT * FROM {schema}.memories WHERE {conditions})
                SELECT {COLUMNS}, embedding <-> ${point}::text::vector AS distance FROM fitting
                ORDER BY distance, id LIMIT ${limit}"
            )
        } else {
            format!(
                "SELECT {COLUMNS}, embedding <-> ${point}::text::vector AS distance
                FROM {schema}.memories WHERE {conditions}
                ORDER BY embedding <-> ${point}::text::vector LIMIT ${limit}"
            )
        };
        let params: Vec<&(dyn ToSql + Sync)> =
            params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect();
        let rows = client.query(&sql, &params).await?;
        rows.iter()
            .map(|row| {
                let distance: Option<f64> = row.try_get("distance")?;
                let score = distance.map_or(0.0, |distance| 1.0 / (1.0 + distance));
                Ok(Found { score, ..found(row)? })
            })
            .collect()
    }

    /// Whether the index would cost answers, or is not worth asking.
    async fn is_exact(&self, client: &Client, whose: &Whose) -> Result<bool> {
        let sql = format!(
            "SELECT (SELECT count(*) FROM (SELECT 1 FROM {schema}.memories WHERE agent_id = $1
                LIMIT {exact} + 1) few) <= {exact}
             OR NOT EXISTS (SELECT 1 FROM pg_indexes WHERE schemaname = '{schema}'
                AND tablename = 'memories' AND indexdef LIKE '%USING hnsw%')
             OR current_setting('hnsw.iterative_scan', true) IS DISTINCT FROM 'strict_order'",
            schema = self.schema,
            exact = self.exact,
        );
        Ok(client.query_one(&sql, &[&whose.agent]).await?.try_get(0)?)
    }
}

impl MemoryStore for Pgvector {
    fn capabilities(&self) -> Capabilities {
        Capabilities::from([
            Capability::Semantic,
            Capability::Episodic,
            Capability::Procedural,
            Capability::Emotional,
            Capability::Vector,
            Capability::RecallTracking,
            Capability::Governance,
        ])
    }

    fn keeps(&self) -> Keeps {
        Keeps::Columns
    }

    fn health(&self) -> BoxFuture<'_, Result<Health>> {
        async move {
            let schema = &self.schema;
            let sql = format!("SELECT count(*) FROM {schema}.memories WHERE deleted_at IS NULL");
            let row = self.client().await?.query_one(&sql, &[]).await?;
            let count: i64 = row.try_get(0)?;
            Ok(Health::ok(BACKEND).with("schema", schema.as_str()).with("memory_count", count))
        }
        .boxed()
    }

    fn remember<'a>(&'a self, record: &'a Record) -> BoxFuture<'a, Result<String>> {
        async move {
            self.write(record).await?;
            Ok(record.id.clone())
        }
        .boxed()
    }

    fn replace<'a>(&'a self, place: &'a str, record: &'a Record) -> BoxFuture<'a, Result<String>> {
        // A row keeps the name it has in the table, whatever its canonical id.
        let record = Record { id: place.to_owned(), ..record.clone() };
        async move { self.remember(&record).await }.boxed()
    }

    fn locate<'a>(
        &'a self,
        whose: &'a Whose,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>> {
        async move {
            let sql = format!(
                "SELECT id FROM {}.memories WHERE id = $1 AND agent_id = $2
                 AND ($3::text IS NULL OR user_id = $3) AND deleted_at IS NULL",
                self.schema
            );
            let client = self.client().await?;
            let row = client.query_opt(&sql, &[&id, &whose.agent, &whose.user]).await?;
            Ok(row.map(|_| id.to_owned()))
        }
        .boxed()
    }

    fn recall<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Found>>> {
        self.search(question).boxed()
    }

    fn list<'a>(&'a self, whose: &'a Whose, after: Option<&'a str>) -> BoxFuture<'a, Result<Page>> {
        async move {
            let sql = format!(
                "SELECT {COLUMNS} FROM {}.memories WHERE agent_id = $1 AND deleted_at IS NULL
                 AND ($2::text IS NULL OR user_id = $2)
                 AND ($3::text IS NULL OR id COLLATE \"C\" > $3)
                 ORDER BY id COLLATE \"C\" LIMIT {PAGE}",
                self.schema
            );
            let client = self.client().await?;
            let rows = client.query(&sql, &[&whose.agent, &whose.user, &after]).await?;
            let items = rows.iter().map(found).collect::<Result<Vec<_>>>()?;
            let full = items.len() as i64 == PAGE;
            let next = items.last().filter(|_| full).map(|last| last.place.clone());
            Ok(Page { items, next })
        }
        .boxed()
    }

    fn forget<'a>(
        &'a self,
        whose: &'a Whose,
        place: &'a str,
        depth: Depth,
    ) -> BoxFuture<'a, Result<bool>> {
        async move {
            let schema = &self.schema;
            let which = "id = $1 AND agent_id = $2 AND ($3::text IS NULL OR user_id = $3)
                         AND deleted_at IS NULL";
            let now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
            let change = match depth {
                Depth::Tombstone => format!(
                    "UPDATE {schema}.memories SET deleted_at = {now}, updated_at = {now}
                     WHERE {which}"
                ),
                Depth::Erase => format!("DELETE FROM {schema}.memories WHERE {which}"),
            };
            let hard = depth == Depth::Erase;
            let sql = format!(
                "WITH gone AS ({change} RETURNING id),
                machine AS (DELETE FROM {schema}.procedures WHERE $4::bool AND id IN (SELECT id FROM gone)),
                blank AS (UPDATE {schema}.audit_log SET payload = '{{\"erased\": true}}'
                    WHERE $4::bool AND memory_id IN (SELECT id FROM gone))
                INSERT INTO {schema}.audit_log (ts, operation, agent_id, user_id, memory_id, payload)
                SELECT {now}, 'forget', $2::text, $3::text, id,
                    jsonb_build_object('id', id, 'hard_delete', $4::bool)
                FROM gone"
            );
            let params: [&(dyn ToSql + Sync); 4] = [&place, &whose.agent, &whose.user, &hard];
            Ok(self.client().await?.execute(&sql, &params).await? > 0)
        }
        .boxed()
    }

    fn touch<'a>(&'a self, places: &'a [String], at: i64) -> BoxFuture<'a, Result<()>> {
        async move {
            let schema = &self.schema;
            let sql =
                format!("UPDATE {schema}.memories SET last_recalled_at = $2 WHERE id = ANY ($1)");
            self.client().await?.execute(&sql, &[&places, &at]).await?;
            Ok(())
        }
        .boxed()
    }
}

/// The conditions of a question as SQL; `None` when nothing can fit.
fn conditions(question: &Question) -> Option<(String, Params)> {
    let Question { whose, query: _, k: _, types, filter, created_from, now } = question;
    let types: Vec<&str> = types.iter().map(|kind| kind.as_str()).collect();
    let types: Vec<String> = types.into_iter().map(str::to_owned).collect();
    let mut params: Params = vec![
        Box::new(whose.agent.clone()),
        Box::new(whose.user.clone()),
        Box::new((!types.is_empty()).then_some(types)),
        Box::new(*created_from),
        Box::new(*now),
    ];
    let mut sql = "agent_id = $1 AND ($2::text IS NULL OR user_id = $2) \
         AND ($3::text[] IS NULL OR type = ANY ($3)) \
         AND ($4::bigint IS NULL OR created_at >= $4) \
         AND (expires_at IS NULL OR expires_at > $5) AND deleted_at IS NULL"
        .to_owned();
    for (name, wanted) in filter {
        let number = params.len() + 1;
        match name.as_str() {
            "agent_id" | "user_id" | "type" | "source" => {
                params.push(Box::new(wanted.as_str()?.to_owned()));
                sql.push_str(&format!(" AND {name} = ${number}"));
            }
            "confidence" => {
                params.push(Box::new(wanted.as_f64()? as f32));
                sql.push_str(&format!(" AND confidence = ${number}"));
            }
            path => {
                if wanted.is_array() || wanted.is_object() || wanted.is_null() {
                    return None;
                }
                let (path, value) = (path.to_owned(), json!(wanted));
                params.push(Box::new(path));
                params.push(Box::new(value));
                let value = number + 1;
                sql.push_str(&format!(
                    " AND coalesce(metadata -> ${number}::text, \
                     metadata #> string_to_array(${number}::text, '.')) = ${value}::jsonb"
                ));
            }
        }
    }
    Some((sql, params))
}

fn found(row: &Row) -> Result<Found> {
    let id: String = row.try_get("id")?;
    let kind: String = row.try_get("type")?;
    let metadata: Option<Value> = row.try_get("metadata")?;
    let confidence: Option<f32> = row.try_get("confidence")?;
    // The shortest number that is the same as a float: 0.9, not 0.89999998.
    let confidence = confidence.and_then(|number| number.to_string().parse().ok());
    let record = Record {
        id: id.clone(),
        agent_id: row.try_get("agent_id")?,
        user_id: row.try_get("user_id")?,
        kind: Type::parse(&kind).ok_or_else(|| Error::Garbage("an unknown type".into()))?,
        content: row.try_get("content")?,
        metadata: super::object(metadata.as_ref()),
        confidence: confidence.unwrap_or(1.0),
        source: row.try_get("source")?,
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
        expires_at: row.try_get("expires_at")?,
        extra: Object::new(),
    };
    let recalled_at = row.try_get("last_recalled_at")?;
    Ok(Found { recalled_at, ..Found::new(id, record, 0.0) })
}
