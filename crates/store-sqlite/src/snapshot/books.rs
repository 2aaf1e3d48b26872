//! The vault's books: grants, tokens, holds, rules, settings, profiles, procedures, jobs.

use rusqlite::{OptionalExtension, Params};
use serde::de::DeserializeOwned;
use yore_domain::grant::{Grant, Token};
use yore_domain::hold::{Hold, HoldState};
use yore_domain::job::Job;
use yore_domain::procedure::Procedure;
use yore_domain::profile::Profile;
use yore_domain::{HoldId, JobId, MemoryId, TenantId, Timestamp, VaultId};
use yore_store::plan::Operation;

use super::View;
use crate::commit::hold_code;
use crate::select::json;

/// Reads the value in the first column of at most one row.
pub(super) fn one<T: DeserializeOwned>(
    view: &View<'_>,
    sql: &str,
    params: impl Params,
) -> rusqlite::Result<Option<T>> {
    view.conn.prepare_cached(sql)?.query_one(params, |row| json(row, 0)).optional()
}

/// Reads the values in the first column.
pub(super) fn all<T: DeserializeOwned>(
    view: &View<'_>,
    sql: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<T>> {
    view.conn.prepare_cached(sql)?.query_map(params, |row| json(row, 0))?.collect()
}

pub(super) fn grants(view: &View<'_>) -> rusqlite::Result<Vec<Grant>> {
    all(view, "SELECT data FROM grants ORDER BY data ->> '$.issued', id", [])
}

pub(super) fn tokens(view: &View<'_>) -> rusqlite::Result<Vec<Token>> {
    all(view, "SELECT data FROM token ORDER BY data ->> '$.issued', id", [])
}

/// Whether a hold may be shown: everything to those who see all, to an agent what it asked for.
fn hold_seen(view: &View<'_>, hold: &Hold) -> bool {
    view.sees_all || (view.agent.is_some() && hold.agent.as_deref() == view.agent)
}

pub(super) fn hold(view: &View<'_>, id: HoldId) -> rusqlite::Result<Option<Hold>> {
    let found: Option<Hold> = one(view, "SELECT data FROM hold WHERE id = ?1", [id.bytes()])?;
    Ok(found.filter(|hold| hold_seen(view, hold)))
}

pub(super) fn holds(
    view: &View<'_>,
    state: HoldState,
    limit: usize,
) -> rusqlite::Result<Vec<Hold>> {
    if !view.sees_all && view.agent.is_none() {
        return Ok(Vec::new());
    }
    all(
        view,
        "SELECT data FROM hold WHERE state = ?1 AND (?2 OR agent = ?3)
         ORDER BY asked, id LIMIT ?4",
        (hold_code(state), view.sees_all, view.agent, limit),
    )
}

pub(super) fn operation(
    view: &View<'_>,
    caller: &str,
    id: &str,
) -> rusqlite::Result<Option<Operation>> {
    view.conn
        .prepare_cached("SELECT result, fingerprint FROM operation WHERE caller = ?1 AND id = ?2")?
        .query_one([caller, id], |row| {
            Ok(Operation {
                caller: caller.to_owned(),
                id: id.to_owned(),
                fingerprint: row.get(1)?,
                result: json(row, 0)?,
            })
        })
        .optional()
}

pub(super) fn profile(
    view: &View<'_>,
    user: Option<&str>,
    as_of: Option<Timestamp>,
) -> rusqlite::Result<Option<Profile>> {
    one(
        view,
        "SELECT data FROM profile WHERE user = ?1 AND recorded <= ?2
         ORDER BY version DESC LIMIT 1",
        (user.unwrap_or_default(), as_of.map_or(i64::MAX, Timestamp::micros)),
    )
}

pub(super) fn tenants(view: &View<'_>) -> rusqlite::Result<Vec<(TenantId, String)>> {
    view.conn
        .prepare_cached("SELECT id, name FROM tenant ORDER BY name")?
        .query_map([], |row| Ok((TenantId::from_bytes(row.get(0)?), row.get(1)?)))?
        .collect()
}

pub(super) fn located(view: &View<'_>, mac: &[u8; 32]) -> rusqlite::Result<Option<VaultId>> {
    let found = view.conn.query_row("SELECT vault FROM locate WHERE mac = ?1", [mac], |row| {
        row.get::<_, [u8; 16]>(0).map(VaultId::from_bytes)
    });
    found.optional()
}

pub(super) fn procedure(view: &View<'_>, memory: MemoryId) -> rusqlite::Result<Option<Procedure>> {
    view.conn
        .prepare_cached(
            "SELECT m.class, p.data FROM procedure p JOIN memory m ON m.id = p.memory
             WHERE p.memory = ?1",
        )?
        .query_one([memory.bytes()], |row| {
            view.selection.has(row.get(0)?).then(|| json(row, 1)).transpose()
        })
        .optional()
        .map(Option::flatten)
}

pub(super) fn procedures(view: &View<'_>, name: Option<&str>) -> rusqlite::Result<Vec<Procedure>> {
    let mut statement = view.conn.prepare_cached(
        "SELECT m.class, p.data FROM procedure p JOIN memory m ON m.id = p.memory
         WHERE ?1 IS NULL OR p.name = ?1 ORDER BY p.name, p.memory",
    )?;
    let rows = statement.query_map([name], |row| {
        view.selection.has(row.get(0)?).then(|| json(row, 1)).transpose()
    })?;
    rows.filter_map(Result::transpose).collect()
}

pub(super) fn job(view: &View<'_>, id: JobId) -> rusqlite::Result<Option<Job>> {
    one(view, "SELECT data FROM job WHERE id = ?1", [id.bytes()])
}

pub(super) fn jobs(view: &View<'_>, limit: usize) -> rusqlite::Result<Vec<Job>> {
    all(view, "SELECT data FROM job ORDER BY created DESC, id DESC LIMIT ?1", [limit])
}
