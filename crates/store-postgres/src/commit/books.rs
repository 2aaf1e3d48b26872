//! Everything else a plan writes: grants, holds, rules, profiles, jobs, streams, settings.

use serde_json::Value;
use yore_domain::grant::{Grant, Token};
use yore_domain::hold::{Hold, HoldState, Rule};
use yore_domain::job::{Job, JobState};
use yore_domain::procedure::Procedure;
use yore_domain::profile::Profile;
use yore_domain::stream::{Frame, Letter, LetterState, Stream};
use yore_domain::{Error as DomainError, GrantId, JobId, TenantId, Timestamp, TokenId, VaultId};
use yore_store::CommitError;

use super::{Commit, missing};
use crate::error::Result;
use crate::vault::{Setting, Vault, within};

impl Commit<'_> {
    fn bump_grants(&mut self) {
        self.tail.grants += 1;
        self.judged_by = true;
    }

    fn bump_rules(&mut self) {
        self.tail.rules += 1;
        self.judged_by = true;
    }

    pub(super) async fn grant(&mut self, grant: &Grant) -> Result<()> {
        let id = grant.id.bytes();
        let data = self.seal("grants", &id, grant)?;
        self.run(
            "INSERT INTO grants (vault, id, issued, data) VALUES ($1, $2, $3, $4)
             ON CONFLICT (vault, id) DO UPDATE SET issued = excluded.issued, data = excluded.data",
            &[&id.as_slice(), &grant.issued.micros(), &data],
        )
        .await?;
        self.bump_grants();
        Ok(())
    }

    pub(super) async fn revoke_grant(&mut self, id: GrantId, at: Timestamp) -> Result<()> {
        let sql = "SELECT data FROM grants WHERE vault = $1 AND id = $2";
        let row = self.conn.row(sql, &[&id.bytes().as_slice()]).await?.ok_or_else(missing)?;
        let mut grant: Grant = self.open("grants", &id.bytes(), row.get(0))?;
        grant.revoked = Some(grant.revoked.map_or(at, |earlier| earlier.min(at)));
        self.grant(&grant).await
    }

    pub(super) async fn token(&mut self, token: &Token) -> Result<()> {
        let (id, hash) = (token.id.bytes(), self.vault.mac("token", &[&token.hash]));
        let sql = "SELECT 1 FROM token WHERE vault = $1 AND hash = $2 AND id <> $3";
        if self.is_there(sql, &[&hash, &id.as_slice()]).await? {
            return Err(DomainError::conflict("the token exists already").into());
        }
        let data = self.seal("token", &id, token)?;
        self.run(
            "INSERT INTO token (vault, id, hash, issued, data) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (vault, id) DO UPDATE SET hash = excluded.hash, issued = excluded.issued,
                 data = excluded.data",
            &[&id.as_slice(), &hash, &token.issued.micros(), &data],
        )
        .await?;
        self.bump_grants();
        Ok(())
    }

    pub(super) async fn revoke_token(&mut self, id: TokenId, at: Timestamp) -> Result<()> {
        let sql = "SELECT data FROM token WHERE vault = $1 AND id = $2";
        let row = self.conn.row(sql, &[&id.bytes().as_slice()]).await?.ok_or_else(missing)?;
        let mut token: Token = self.open("token", &id.bytes(), row.get(0))?;
        token.revoked = Some(token.revoked.map_or(at, |earlier| earlier.min(at)));
        self.token(&token).await
    }

    pub(super) async fn hold(&self, hold: &Hold) -> Result<()> {
        let id = hold.id.bytes();
        let agent = hold.agent.as_deref().map(|agent| self.vault.mac("agent", &[agent]));
        let data = self.seal("hold", &id, hold)?;
        self.run(
            "INSERT INTO hold (vault, id, state, asked, agent, data) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (vault, id) DO UPDATE SET state = excluded.state, asked = excluded.asked,
                 agent = excluded.agent, data = excluded.data",
            &[&id.as_slice(), &hold_code(hold.state), &hold.asked.micros(), &agent, &data],
        )
        .await?;
        Ok(())
    }

    /// Adds a rule behind the others; one that is replaced keeps its place.
    pub(super) async fn rule(&mut self, rule: &Rule) -> Result<()> {
        let name = self.vault.mac("rule", &[&rule.name]);
        let data = self.seal("rule", &name, rule)?;
        self.run(
            "INSERT INTO rule (vault, name, position, data)
             VALUES ($1, $2, (SELECT coalesce(max(position) + 1, 0) FROM rule WHERE vault = $1), $3)
             ON CONFLICT (vault, name) DO UPDATE SET data = excluded.data",
            &[&name, &data],
        )
        .await?;
        self.bump_rules();
        Ok(())
    }

    pub(super) async fn remove_rule(&mut self, name: &str) -> Result<()> {
        let name = self.vault.mac("rule", &[name]);
        if self.run("DELETE FROM rule WHERE vault = $1 AND name = $2", &[&name]).await? == 0 {
            return Err(missing());
        }
        self.bump_rules();
        Ok(())
    }

    pub(super) async fn profile_version(&self, user: Option<&str>) -> Result<Option<u64>> {
        let whose = self.vault.mac("profile", &[user.unwrap_or_default()]);
        let sql = "SELECT max(version) FROM profile WHERE vault = $1 AND whose = $2";
        let row = self.conn.row(sql, &[&whose]).await?;
        Ok(row.and_then(|row| row.get::<_, Option<i64>>(0)).map(i64::cast_unsigned))
    }

    pub(super) async fn profile(&self, profile: &Profile) -> Result<(), CommitError> {
        let user = profile.user.as_deref();
        if self.profile_version(user).await?.is_some_and(|newest| newest >= profile.version) {
            return Err(CommitError::Stale("profile"));
        }
        let whose = self.vault.mac("profile", &[user.unwrap_or_default()]);
        let version = profile.version.cast_signed();
        let data = self.seal("profile", &within(&whose, version), profile)?;
        self.run(
            "INSERT INTO profile (vault, whose, version, recorded, data)
             VALUES ($1, $2, $3, $4, $5)",
            &[&whose, &version, &profile.recorded.micros(), &data],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn erase_profile(&self, user: Option<&str>) -> Result<()> {
        let whose = self.vault.mac("profile", &[user.unwrap_or_default()]);
        let sql = "DELETE FROM profile WHERE vault = $1 AND whose = $2";
        if self.run(sql, &[&whose]).await? == 0 { Err(missing()) } else { Ok(()) }
    }

    pub(super) async fn procedure(&self, procedure: &Procedure) -> Result<()> {
        let memory = procedure.memory.bytes();
        let name = self.vault.mac("procedure", &[&procedure.machine.name]);
        let data = self.seal("procedure", &memory, procedure)?;
        self.run(
            "INSERT INTO procedure (vault, memory, name, data) VALUES ($1, $2, $3, $4)
             ON CONFLICT (vault, memory) DO UPDATE SET name = excluded.name, data = excluded.data",
            &[&memory.as_slice(), &name, &data],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn job(&self, job: &Job) -> Result<()> {
        let id = job.id.bytes();
        let data = self.seal("job", &id, job)?;
        self.run(
            "INSERT INTO job (vault, id, state, created, data) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (vault, id) DO UPDATE SET state = excluded.state,
                 created = excluded.created, data = excluded.data",
            &[&id.as_slice(), &job_code(job.state), &job.created.micros(), &data],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn remove_job(&self, id: JobId) -> Result<()> {
        let sql = "DELETE FROM job WHERE vault = $1 AND id = $2";
        self.run(sql, &[&id.bytes().as_slice()]).await?;
        Ok(())
    }

    pub(super) async fn stream(&self, stream: &Stream) -> Result<()> {
        let mac = post_name(self.vault, "stream", &stream.sender, &stream.id);
        let data = self.seal("stream", &mac, stream)?;
        let ended = stream.state.is_final().then(|| stream.updated.micros());
        self.run(
            "INSERT INTO stream (vault, mac, revision, ended, data) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (vault, mac) DO UPDATE SET revision = excluded.revision,
                 ended = excluded.ended, data = excluded.data",
            &[&mac, &stream.revision.cast_signed(), &ended, &data],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn stream_revision(&self, sender: &str, id: &str) -> Result<Option<u64>> {
        let mac = post_name(self.vault, "stream", sender, id);
        let sql = "SELECT revision FROM stream WHERE vault = $1 AND mac = $2";
        let row = self.conn.row(sql, &[&mac]).await?;
        Ok(row.map(|row| row.get::<_, i64>(0).cast_unsigned()))
    }

    pub(super) async fn drop_streams(&self, before: Timestamp) -> Result<()> {
        self.run(
            "DELETE FROM frame WHERE vault = $1 AND stream IN (
                 SELECT mac FROM stream WHERE vault = $1 AND ended < $2)",
            &[&before.micros()],
        )
        .await?;
        let sql = "DELETE FROM stream WHERE vault = $1 AND ended < $2";
        self.run(sql, &[&before.micros()]).await?;
        Ok(())
    }

    pub(super) async fn drop_letters(&self, before: Timestamp) -> Result<()> {
        let sql = "DELETE FROM letter WHERE vault = $1 AND state >= 2 AND received < $2";
        self.run(sql, &[&before.micros()]).await?;
        Ok(())
    }

    pub(super) async fn is_sent(&self, sender: &str, id: &str) -> Result<bool> {
        let mac = post_name(self.vault, "letter", sender, id);
        self.is_there("SELECT 1 FROM letter WHERE vault = $1 AND mac = $2", &[&mac]).await
    }

    pub(super) async fn frame(&self, sender: &str, stream: &str, frame: &Frame) -> Result<()> {
        let mac = post_name(self.vault, "stream", sender, stream);
        let number = frame.number.cast_signed();
        let data = self.vault.seal_bytes("frame", &within(&mac, number), &frame.bytes);
        let added = self
            .run(
                "INSERT INTO frame (vault, stream, number, data) VALUES ($1, $2, $3, $4)
                 ON CONFLICT DO NOTHING",
                &[&mac, &number, &data],
            )
            .await?;
        if added == 0 {
            let reason = format!("the stream has a frame {} already", frame.number);
            return Err(DomainError::conflict(reason).into());
        }
        Ok(())
    }

    pub(super) async fn drop_frames(&self, sender: &str, stream: &str, below: u64) -> Result<()> {
        let mac = post_name(self.vault, "stream", sender, stream);
        let sql = "DELETE FROM frame WHERE vault = $1 AND stream = $2 AND number < $3";
        self.run(sql, &[&mac, &below.cast_signed()]).await?;
        Ok(())
    }

    pub(super) async fn letter(&mut self, letter: &Letter) -> Result<()> {
        let mac = post_name(self.vault, "letter", &letter.sender, &letter.id);
        let inbox = self.vault.mac("inbox", &[&letter.inbox]);
        let data = self.seal("letter", &mac, letter)?;
        self.tail.letter += 1;
        self.run(
            "INSERT INTO letter (vault, mac, seq, inbox, state, received, data)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (vault, mac) DO UPDATE SET inbox = excluded.inbox,
                 state = excluded.state, received = excluded.received, data = excluded.data",
            &[
                &mac,
                &self.tail.letter,
                &inbox,
                &letter_code(letter.state),
                &letter.received.micros(),
                &data,
            ],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn setting(&mut self, name: &str, value: &Value) -> Result<()> {
        if name.starts_with("store:") {
            return Err(
                DomainError::invalid("setting", "names with 'store:' are the store's").into()
            );
        }
        let mac = self.vault.mac("setting", &[name]);
        let setting = Setting { name: name.to_owned(), value: value.clone() };
        let data = self.seal("setting", &mac, &setting)?;
        self.run(
            "INSERT INTO setting (vault, name, data) VALUES ($1, $2, $3)
             ON CONFLICT (vault, name) DO UPDATE SET data = excluded.data",
            &[&mac, &data],
        )
        .await?;
        self.judged_by = true;
        Ok(())
    }

    pub(super) async fn tenant(&self, id: TenantId, name: &str) -> Result<()> {
        self.only_in_the_catalog("tenant")?;
        let id = id.bytes();
        let sql = "SELECT 1 FROM tenant WHERE vault = $1 AND name = $2 AND id <> $3";
        if self.is_there(sql, &[&name, &id.as_slice()]).await? {
            return Err(DomainError::conflict("the tenant's name is taken").into());
        }
        self.run(
            "INSERT INTO tenant (vault, id, name) VALUES ($1, $2, $3)
             ON CONFLICT (vault, id) DO UPDATE SET name = excluded.name",
            &[&id.as_slice(), &name],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn locate(&self, mac: &[u8; 32], vault: VaultId) -> Result<()> {
        self.only_in_the_catalog("locate")?;
        // An id that lies in two vaults lies in none: whoever asks must say whose is meant.
        let (vault, nowhere) = (vault.bytes(), VaultId::CATALOG.bytes());
        self.run(
            "INSERT INTO locate AS l (vault, mac, target) VALUES ($1, $2, $3)
             ON CONFLICT (vault, mac) DO UPDATE
             SET target = CASE WHEN l.target = excluded.target THEN l.target ELSE $4 END",
            &[&mac.as_slice(), &vault.as_slice(), &nowhere.as_slice()],
        )
        .await?;
        Ok(())
    }

    fn only_in_the_catalog(&self, what: &str) -> Result<()> {
        if self.vault.id == VaultId::CATALOG {
            return Ok(());
        }
        Err(DomainError::invalid(what, "belongs into the catalog, not into a vault").into())
    }
}

/// The keyed digest under which a stream or a letter of a sender is found.
pub(crate) fn post_name(vault: &Vault, place: &str, sender: &str, id: &str) -> Vec<u8> {
    vault.mac(place, &[sender, id])
}

/// The number a hold's state has in its column.
pub(crate) const fn hold_code(state: HoldState) -> i16 {
    match state {
        HoldState::Pending => 0,
        HoldState::Approved => 1,
        HoldState::Rejected => 2,
        HoldState::Expired => 3,
    }
}

pub(crate) const fn job_code(state: JobState) -> i16 {
    match state {
        JobState::Queued => 0,
        JobState::Running => 1,
        JobState::Completed => 2,
        JobState::Failed => 3,
        JobState::Cancelled => 4,
    }
}

pub(crate) const fn letter_code(state: LetterState) -> i16 {
    match state {
        LetterState::Queued => 0,
        LetterState::Delivered => 1,
        LetterState::Acknowledged => 2,
        LetterState::Expired => 3,
        LetterState::Bounced => 4,
    }
}
