//! The vault's books that are not kept at hand: holds, operations, profiles, procedures, jobs.

use yore_domain::hold::{Hold, HoldState};
use yore_domain::job::Job;
use yore_domain::procedure::Procedure;
use yore_domain::profile::Profile;
use yore_domain::{HoldId, JobId, MemoryId, TenantId, Timestamp, VaultId};
use yore_store::plan::Operation;

use super::{View, id_in, limit_of};
use crate::commit::{Answered, hold_code};
use crate::error::Result;
use crate::vault::within;

pub(super) async fn hold(view: &View<'_>, id: HoldId) -> Result<Option<Hold>> {
    let sql = "SELECT data FROM hold WHERE vault = $1 AND id = $2";
    let Some(row) = view.row(sql, &[&id.bytes().as_slice()]).await? else { return Ok(None) };
    let hold: Hold = view.vault.open_value("hold", &id.bytes(), row.get(0))?;
    // Everything is shown to those who see all, to an agent what it asked for.
    let seen = view.sees_all || (view.agent.is_some() && hold.agent.as_deref() == view.agent);
    Ok(Some(hold).filter(|_| seen))
}

pub(super) async fn holds(view: &View<'_>, state: HoldState, limit: usize) -> Result<Vec<Hold>> {
    if !view.sees_all && view.agent.is_none() {
        return Ok(Vec::new());
    }
    let agent = view.agent.map(|agent| view.vault.mac("agent", &[agent]));
    let rows = view
        .rows(
            "SELECT id, data FROM hold WHERE vault = $1 AND state = $2 AND ($3 OR agent = $4)
             ORDER BY asked, id LIMIT $5",
            &[&hold_code(state), &view.sees_all, &agent, &limit_of(limit)],
        )
        .await?;
    rows.iter().map(|row| view.vault.open_value("hold", row.get(0), row.get(1))).collect()
}

pub(super) async fn operation(
    view: &View<'_>,
    caller: &str,
    id: &str,
) -> Result<Option<Operation>> {
    let mac = view.vault.mac("operation", &[caller, id]);
    let sql = "SELECT data FROM operation WHERE vault = $1 AND mac = $2";
    let Some(row) = view.row(sql, &[&mac]).await? else { return Ok(None) };
    let Answered { fingerprint, result, of: _ } =
        view.vault.open_value("operation", &mac, row.get(0))?;
    Ok(Some(Operation { caller: caller.to_owned(), id: id.to_owned(), fingerprint, result }))
}

pub(super) async fn profile(
    view: &View<'_>,
    user: Option<&str>,
    as_of: Option<Timestamp>,
    seen: bool,
) -> Result<Option<Profile>> {
    let whose = view.vault.mac("profile", &[user.unwrap_or_default()]);
    let row = view
        .row(
            "SELECT version, data FROM profile WHERE vault = $1 AND whose = $2 AND recorded <= $3
             ORDER BY version DESC LIMIT 1",
            &[&whose, &as_of.map_or(i64::MAX, Timestamp::micros)],
        )
        .await?;
    let Some(row) = row.filter(|_| seen) else { return Ok(None) };
    view.vault.open_value("profile", &within(&whose, row.get(0)), row.get(1)).map(Some)
}

pub(super) async fn tenants(view: &View<'_>) -> Result<Vec<(TenantId, String)>> {
    let rows = view.rows("SELECT id, name FROM tenant WHERE vault = $1 ORDER BY name", &[]).await?;
    rows.iter().map(|row| Ok((TenantId::from_bytes(id_in(row, 0)?), row.get(1)))).collect()
}

pub(super) async fn located(view: &View<'_>, mac: &[u8; 32]) -> Result<Option<VaultId>> {
    let sql = "SELECT target FROM locate WHERE vault = $1 AND mac = $2";
    let row = view.row(sql, &[&mac.as_slice()]).await?;
    row.map(|row| id_in(&row, 0).map(VaultId::from_bytes)).transpose()
}

pub(super) async fn procedure(view: &View<'_>, memory: MemoryId) -> Result<Option<Procedure>> {
    let id = memory.bytes();
    let row = view
        .row(
            "SELECT p.data FROM procedure p JOIN memory m ON m.vault = $1 AND m.id = p.memory
             WHERE p.vault = $1 AND p.memory = $2 AND m.class = ANY($3)",
            &[&id.as_slice(), &view.seen],
        )
        .await?;
    row.map(|row| view.vault.open_value("procedure", &id, row.get(0))).transpose()
}

pub(super) async fn procedures(view: &View<'_>, name: Option<&str>) -> Result<Vec<Procedure>> {
    let name = name.map(|name| view.vault.mac("procedure", &[name]));
    let rows = view
        .rows(
            "SELECT p.memory, p.data FROM procedure p
                 JOIN memory m ON m.vault = $1 AND m.id = p.memory
             WHERE p.vault = $1 AND ($2::bytea IS NULL OR p.name = $2) AND m.class = ANY($3)
             ORDER BY p.memory",
            &[&name, &view.seen],
        )
        .await?;
    let mut found: Vec<Procedure> = rows
        .iter()
        .map(|row| view.vault.open_value("procedure", row.get(0), row.get(1)))
        .collect::<Result<_>>()?;
    found.sort_by(|a, b| a.machine.name.cmp(&b.machine.name));
    Ok(found)
}

pub(super) async fn job(view: &View<'_>, id: JobId) -> Result<Option<Job>> {
    let sql = "SELECT data FROM job WHERE vault = $1 AND id = $2";
    let row = view.row(sql, &[&id.bytes().as_slice()]).await?;
    row.map(|row| view.vault.open_value("job", &id.bytes(), row.get(0))).transpose()
}

pub(super) async fn jobs(view: &View<'_>, limit: usize) -> Result<Vec<Job>> {
    let sql = "SELECT id, data FROM job WHERE vault = $1 ORDER BY created DESC, id DESC LIMIT $2";
    let rows = view.rows(sql, &[&limit_of(limit)]).await?;
    rows.iter().map(|row| view.vault.open_value("job", row.get(0), row.get(1))).collect()
}
