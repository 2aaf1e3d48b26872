//! Everything else a plan writes: grants, holds, rules, profiles, jobs, streams, settings.

use rusqlite::OptionalExtension as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use yore_domain::grant::{Grant, Token};
use yore_domain::hold::{Hold, HoldState, Rule};
use yore_domain::job::{Job, JobState};
use yore_domain::procedure::Procedure;
use yore_domain::profile::Profile;
use yore_domain::stream::{Frame, Letter, LetterState, Stream};
use yore_domain::{Error as DomainError, GrantId, JobId, TenantId, Timestamp, TokenId, VaultId};
use yore_store::CommitError;

use super::{Commit, GRANT_EPOCH, RULE_EPOCH, missing};
use crate::books::Page;
use crate::error::Result;

impl Commit<'_> {
    fn bump(&mut self, name: &str, page: Page) -> Result<()> {
        let epochs = &mut self.tail.epochs;
        let epoch = if name == RULE_EPOCH { &mut epochs.rules } else { &mut epochs.grants };
        *epoch += 1;
        let next = epoch.to_string();
        self.pages.push(page);
        self.put_setting(name, &next)
    }

    fn put_setting(&self, name: &str, value: &str) -> Result<()> {
        self.run("INSERT OR REPLACE INTO setting VALUES (?1, ?2)", (name, value))?;
        Ok(())
    }

    fn stored<T: DeserializeOwned>(&self, sql: &str, id: [u8; 16]) -> Result<T> {
        let text: Option<String> =
            self.conn.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?;
        Ok(serde_json::from_str(&text.ok_or_else(missing)?)?)
    }

    pub(super) fn grant(&mut self, grant: &Grant) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO grants (id, agent, data) VALUES (?1, ?2, ?3)",
            (grant.id.bytes(), grant.agent.as_str(), json(grant)?),
        )?;
        self.bump(GRANT_EPOCH, Page::Grant(grant.id))
    }

    pub(super) fn revoke_grant(&mut self, id: GrantId, at: Timestamp) -> Result<()> {
        let mut grant: Grant = self.stored("SELECT data FROM grants WHERE id = ?1", id.bytes())?;
        grant.revoked = Some(grant.revoked.map_or(at, |earlier| earlier.min(at)));
        self.grant(&grant)
    }

    pub(super) fn token(&mut self, token: &Token) -> Result<()> {
        let taken: Option<i64> = self.one(
            "SELECT 1 FROM token WHERE hash = ?1 AND id <> ?2",
            (&token.hash, token.id.bytes()),
        )?;
        if taken.is_some() {
            return Err(DomainError::conflict("the token exists already").into());
        }
        self.run(
            "INSERT OR REPLACE INTO token (id, hash, data) VALUES (?1, ?2, ?3)",
            (token.id.bytes(), &token.hash, json(token)?),
        )?;
        self.bump(GRANT_EPOCH, Page::Token(token.id))
    }

    pub(super) fn revoke_token(&mut self, id: TokenId, at: Timestamp) -> Result<()> {
        let mut token: Token = self.stored("SELECT data FROM token WHERE id = ?1", id.bytes())?;
        token.revoked = Some(token.revoked.map_or(at, |earlier| earlier.min(at)));
        self.token(&token)
    }

    pub(super) fn hold(&self, hold: &Hold) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO hold (id, state, asked, agent, data) VALUES (?1, ?2, ?3, ?4, ?5)",
            (hold.id.bytes(), hold_code(hold.state), hold.asked.micros(), &hold.agent, json(hold)?),
        )?;
        Ok(())
    }

    /// Adds a rule behind the others; one that is replaced keeps its place.
    pub(super) fn rule(&mut self, rule: &Rule) -> Result<()> {
        self.run(
            "INSERT INTO rule (name, position, data)
             VALUES (?1, (SELECT coalesce(max(position) + 1, 0) FROM rule), ?2)
             ON CONFLICT (name) DO UPDATE SET data = excluded.data",
            (&rule.name, json(rule)?),
        )?;
        self.bump(RULE_EPOCH, Page::Rules)
    }

    pub(super) fn remove_rule(&mut self, name: &str) -> Result<()> {
        if self.run("DELETE FROM rule WHERE name = ?1", [name])? == 0 {
            return Err(missing());
        }
        self.bump(RULE_EPOCH, Page::Rules)
    }

    pub(super) fn profile_version(&self, user: Option<&str>) -> Result<Option<u64>> {
        let sql = "SELECT max(version) FROM profile WHERE user = ?1";
        Ok(self.one(sql, [user.unwrap_or_default()])?.flatten())
    }

    pub(super) fn profile(&self, profile: &Profile) -> Result<(), CommitError> {
        let user = profile.user.as_deref();
        if self.profile_version(user)?.is_some_and(|newest| newest >= profile.version) {
            return Err(CommitError::Stale("profile"));
        }
        self.run(
            "INSERT INTO profile (user, version, recorded, data) VALUES (?1, ?2, ?3, ?4)",
            (user.unwrap_or_default(), profile.version, profile.recorded.micros(), json(profile)?),
        )?;
        Ok(())
    }

    pub(super) fn erase_profile(&mut self, user: Option<&str>) -> Result<()> {
        if self.run("DELETE FROM profile WHERE user = ?1", [user.unwrap_or_default()])? == 0 {
            return Err(missing());
        }
        self.erased = true;
        Ok(())
    }

    pub(super) fn procedure(&self, procedure: &Procedure) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO procedure (memory, name, data) VALUES (?1, ?2, ?3)",
            (procedure.memory.bytes(), &procedure.machine.name, json(procedure)?),
        )?;
        Ok(())
    }

    pub(super) fn job(&self, job: &Job) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO job (id, kind, state, created, data) VALUES (?1, ?2, ?3, ?4, ?5)",
            (job.id.bytes(), &job.kind, job_code(job.state), job.created.micros(), json(job)?),
        )?;
        Ok(())
    }

    pub(super) fn remove_job(&self, id: JobId) -> Result<()> {
        self.run("DELETE FROM job WHERE id = ?1", [id.bytes()])?;
        Ok(())
    }

    pub(super) fn stream_revision(&self, sender: &str, id: &str) -> Result<Option<u64>> {
        self.one(
            "SELECT data ->> '$.revision' FROM stream WHERE sender = ?1 AND id = ?2",
            [sender, id],
        )
    }

    pub(super) fn stream(&self, stream: &Stream) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO stream (sender, id, data) VALUES (?1, ?2, ?3)",
            (&stream.sender, &stream.id, json(stream)?),
        )?;
        Ok(())
    }

    pub(super) fn frame(&self, sender: &str, stream: &str, frame: &Frame) -> Result<()> {
        let added = self.run(
            "INSERT INTO frame (sender, stream, number, bytes) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING",
            (sender, stream, frame.number, &frame.bytes),
        )?;
        if added == 0 {
            let reason = format!("the stream has a frame {} already", frame.number);
            return Err(DomainError::conflict(reason).into());
        }
        Ok(())
    }

    pub(super) fn drop_frames(&self, sender: &str, stream: &str, below: u64) -> Result<()> {
        self.run(
            "DELETE FROM frame WHERE sender = ?1 AND stream = ?2 AND number < ?3",
            (sender, stream, below),
        )?;
        Ok(())
    }

    pub(super) fn drop_streams(&self, before: Timestamp) -> Result<()> {
        let ended = "SELECT sender, id FROM stream
             WHERE data ->> '$.state' <> 'in_progress' AND data ->> '$.updated' < ?1";
        let frames = format!("DELETE FROM frame WHERE (sender, stream) IN ({ended})");
        self.run(&frames, [before.micros()])?;
        let streams = format!("DELETE FROM stream WHERE (sender, id) IN ({ended})");
        self.run(&streams, [before.micros()])?;
        Ok(())
    }

    pub(super) fn drop_letters(&self, before: Timestamp) -> Result<()> {
        // Letters stand in the order in which they came: the first that is young enough ends it.
        self.run(
            "DELETE FROM letter WHERE state >= 2 AND data ->> '$.received' < ?1
                 AND seq < coalesce((SELECT seq FROM letter WHERE data ->> '$.received' >= ?1
                     ORDER BY seq LIMIT 1), 9223372036854775807)",
            [before.micros()],
        )?;
        Ok(())
    }

    pub(super) fn letter(&self, letter: &Letter) -> Result<()> {
        self.run(
            "INSERT INTO letter (inbox, sender, id, state, data) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (sender, id) DO UPDATE SET inbox = excluded.inbox,
                 state = excluded.state, data = excluded.data",
            (&letter.inbox, &letter.sender, &letter.id, letter_code(letter.state), json(letter)?),
        )?;
        Ok(())
    }

    pub(super) fn setting(&mut self, name: &str, value: &Value) -> Result<()> {
        if name.starts_with("store:") {
            return Err(
                DomainError::invalid("setting", "names with 'store:' are the store's").into()
            );
        }
        self.pages.push(Page::Setting(name.to_owned()));
        self.put_setting(name, &value.to_string())
    }

    pub(super) fn tenant(&self, id: TenantId, name: &str) -> Result<()> {
        self.only_in_the_catalog("tenant")?;
        let taken: Option<i64> =
            self.one("SELECT 1 FROM tenant WHERE name = ?1 AND id <> ?2", (name, id.bytes()))?;
        if taken.is_some() {
            return Err(DomainError::conflict("the tenant's name is taken").into());
        }
        self.run("INSERT OR REPLACE INTO tenant (id, name) VALUES (?1, ?2)", (id.bytes(), name))?;
        Ok(())
    }

    pub(super) fn locate(&self, mac: &[u8; 32], vault: VaultId) -> Result<()> {
        self.only_in_the_catalog("locate")?;
        // An id that lies in two vaults lies in none: whoever asks must say whose is meant.
        self.run(
            "INSERT INTO locate (mac, vault) VALUES (?1, ?2) ON CONFLICT (mac) DO UPDATE
             SET vault = CASE WHEN vault = excluded.vault THEN vault ELSE ?3 END",
            (mac, vault.bytes(), VaultId::CATALOG.bytes()),
        )?;
        Ok(())
    }

    fn only_in_the_catalog(&self, what: &str) -> Result<()> {
        if self.vault == VaultId::CATALOG {
            return Ok(());
        }
        Err(DomainError::invalid(what, "belongs into the catalog, not into a vault").into())
    }
}

fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value)?)
}

/// The number a hold's state has in its column.
pub(crate) const fn hold_code(state: HoldState) -> u8 {
    match state {
        HoldState::Pending => 0,
        HoldState::Approved => 1,
        HoldState::Rejected => 2,
        HoldState::Expired => 3,
    }
}

pub(crate) const fn job_code(state: JobState) -> u8 {
    match state {
        JobState::Queued => 0,
        JobState::Running => 1,
        JobState::Completed => 2,
        JobState::Failed => 3,
        JobState::Cancelled => 4,
    }
}

pub(crate) const fn letter_code(state: LetterState) -> u8 {
    match state {
        LetterState::Queued => 0,
        LetterState::Delivered => 1,
        LetterState::Acknowledged => 2,
        LetterState::Expired => 3,
        LetterState::Bounced => 4,
    }
}
