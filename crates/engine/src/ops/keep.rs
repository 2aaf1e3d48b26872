//! Keeping a vault: counts, checks, keys, copies, legal holds and jobs.

use std::path::PathBuf;

use yore_domain::grant::{Verb, Verbs};
use yore_domain::job::{Job, JobState};
use yore_domain::memory::Status;
use yore_domain::{Error, JobId, KeyId, MemoryId, Result, VaultId, limits};
use yore_policy::{Need, Permit};
use yore_store::Write;
use yore_store::keeper::{Health, Traces};
use yore_store::key::MasterKey;
use yore_store::snapshot::Census;

use super::get::target;
use crate::call::{Call, VaultRef};
use crate::engine::Engine;
use crate::run::{Planned, Trace};

impl Engine {
    /// Protects a memory from erasure, or releases it.
    pub async fn legal_hold(&self, call: &Call, memory: MemoryId, held: bool) -> Result<()> {
        let need = Need::one("legal-hold", Verb::Admin);
        self.change(call, need, (memory, held), |_, _, snapshot, (memory, held)| {
            Box::pin(async move {
                let known = snapshot.memory(*memory).await?;
                let known = known.filter(|known| known.head.status != Status::Erased);
                let known = known.ok_or(Error::NotFound)?;
                let mut writes = vec![Write::LegalHold { memory: *memory, held: *held }];
                // A deletion that waited for this happens with it.
                let waiting = awaited(*memory);
                let waited = snapshot.setting(&waiting).await? == Some(true.into());
                if !held && waited {
                    writes.push(Write::Erase { memory: *memory });
                    writes.push(Write::Setting(waiting, false.into()));
                }
                let trace = Trace { targets: vec![target(&known.head)], ..Trace::default() };
                let trace = trace.with("held", *held).with("erased", !held && waited);
                Ok(Planned::done((), writes).traced(trace))
            })
        })
        .await
    }

    /// Erases a memory that a legal hold protects once the hold is lifted.
    pub async fn erase_memory_when_released(&self, call: &Call, memory: MemoryId) -> Result<()> {
        let need = Need::one("erase-when-released", Verb::Erase);
        self.change(call, need, memory, |_, session, snapshot, memory| {
            Box::pin(async move {
                let known = snapshot.memory(*memory).await?.ok_or(Error::NotFound)?;
                session.permit.may_write(&known.head.class())?;
                if !known.legal_hold {
                    return Err(Error::conflict("no hold protects it"));
                }
                let trace = Trace { targets: vec![target(&known.head)], ..Trace::default() };
                let write = Write::Setting(awaited(*memory), true.into());
                Ok(Planned::done((), vec![write]).traced(trace))
            })
        })
        .await
    }

    /// Counts what the vault holds.
    pub async fn census(&self, call: &Call) -> Result<Census> {
        self.look(call, Need::one("census", Verb::Admin), (), |_, _, snapshot, ()| {
            Box::pin(async move { Ok((snapshot.census().await?, Trace::default())) })
        })
        .await
    }

    /// Checks the file, the audit chain and the indexes; mends the indexes when asked to.
    pub async fn check(&self, call: &Call, repair: bool) -> Result<Health> {
        self.keep(call, Need::one("check", Verb::Admin), async |engine, permit| {
            let health = engine.keeper().check(permit, repair).await?;
            let trace = Trace::default().with("sound", health.is_sound()).with("repair", repair);
            Ok((health, trace))
        })
        .await
    }

    /// Gives the vault a new key, names it and says what was done.
    pub async fn rotate_keys(&self, call: &Call) -> Result<(KeyId, String)> {
        self.keep(call, Need::one("rotate", Verb::Admin), async |engine, permit| {
            let done = engine.keeper().rotate(permit).await?;
            let key = KeyId::random();
            let trace = Trace::default().with("new_key_id", key.to_string());
            Ok(((key, done), trace))
        })
        .await
    }

    /// Puts all vaults under another master key. Only whoever holds the present one may.
    pub async fn change_master(&self, call: &Call, master: MasterKey) -> Result<()> {
        let home = Call { vault: VaultRef::Id(VaultId::CATALOG), ..call.clone() };
        self.keep(&home, Need::one("change-master", Verb::Admin), async |engine, permit| {
            engine.keeper().change_master(permit, &master).await?;
            Ok(((), Trace::default()))
        })
        .await
    }

    /// Copies the vault into an encrypted file while it serves, and returns the bytes written.
    pub async fn backup(&self, call: &Call, to: PathBuf) -> Result<u64> {
        self.keep(call, Need::one("backup", Verb::Admin), async |engine, permit| {
            let bytes = engine.keeper().backup(permit, &to).await?;
            Ok((bytes, Trace::default().with("bytes", bytes)))
        })
        .await
    }

    /// Puts a copy in place of the vault. What was erased since the copy was made is erased in
    /// it, too.
    pub async fn restore_backup(&self, call: &Call, from: PathBuf) -> Result<()> {
        // It replaces everything that was said and remembered.
        let verbs = Verbs::of(&[Verb::Admin, Verb::Write, Verb::Erase]);
        let need = Need { verbs, ..Need::one("restore-backup", Verb::Admin) };
        self.keep(call, need, async |engine, permit| {
            // A vault that cannot be read any more has no ledger to follow.
            let graves = engine.graves(permit).await.unwrap_or_else(|error| {
                tracing::warn!(vault = %permit.vault(), %error, "the ledger of erasures is lost");
                Vec::new()
            });
            engine.keeper().restore(permit, &from).await?;
            let gone = engine.bury_again(permit.vault(), graves).await?;
            Ok(((), Trace::default().with("erased_again", gone)))
        })
        .await
    }

    /// Counts what a copy of the vault holds, before it is put in place of it.
    pub async fn survey_backup(&self, call: &Call, copy: PathBuf) -> Result<Census> {
        self.keep(call, Need::one("survey-backup", Verb::Admin), async |engine, permit| {
            let census = engine.keeper().survey(permit, &copy).await?;
            let trace = Trace::default().with("memories", census.memories);
            Ok((census, trace))
        })
        .await
    }

    /// Decrypts everything the vault keeps on disk and looks for a text in it.
    pub async fn traces(&self, call: &Call, text: String) -> Result<Traces> {
        self.keep(call, Need::one("traces", Verb::Admin), async |engine, permit| {
            if text.is_empty() {
                return Err(Error::invalid("text", "must not be empty"));
            }
            let traces = engine.keeper().traces(permit, &text).await?;
            let trace = Trace::default().with("found", traces.found.len());
            Ok((traces, trace))
        })
        .await
    }

    /// The same in a copy of the vault.
    pub async fn traces_in(&self, call: &Call, copy: PathBuf, text: String) -> Result<Traces> {
        self.keep(call, Need::one("traces-in-copy", Verb::Admin), async |engine, permit| {
            if text.is_empty() {
                return Err(Error::invalid("text", "must not be empty"));
            }
            let traces = engine.keeper().traces_in(permit, &copy, &text).await?;
            let trace = Trace::default().with("found", traces.found.len());
            Ok((traces, trace))
        })
        .await
    }

    /// Lists jobs, newest first.
    pub async fn jobs(&self, call: &Call, limit: usize) -> Result<Vec<Job>> {
        self.look(call, Need::one("job.list", Verb::Admin), limit, |_, _, snapshot, limit| {
            Box::pin(async move {
                let jobs = snapshot.jobs((*limit).min(limits::PAGE)).await?;
                let trace = Trace::count(jobs.len());
                Ok((jobs, trace))
            })
        })
        .await
    }

    /// Returns one job.
    pub async fn job(&self, call: &Call, job: JobId) -> Result<Job> {
        self.look(call, Need::one("job.show", Verb::Admin), job, |_, _, snapshot, job| {
            Box::pin(async move {
                let found = snapshot.job(*job).await?.ok_or(Error::NotFound)?;
                Ok((found, Trace::default().with("job", job.to_string())))
            })
        })
        .await
    }

    /// Ends a job that has not ended.
    pub async fn cancel_job(&self, call: &Call, job: JobId) -> Result<()> {
        let need = Need::one("job.cancel", Verb::Admin);
        self.change(call, need, job, |_, session, snapshot, job| {
            Box::pin(async move {
                let mut found = snapshot.job(*job).await?.ok_or(Error::NotFound)?;
                if found.state.is_final() {
                    return Err(Error::conflict("the job has ended already"));
                }
                found.state = JobState::Cancelled;
                found.updated = session.now;
                let trace = Trace::default().with("job", job.to_string());
                Ok(Planned::done((), vec![Write::Job(Box::new(found))]).traced(trace))
            })
        })
        .await
    }

    /// Runs the keeper's work behind the same door as everything else.
    pub(crate) async fn keep<T, F>(&self, call: &Call, need: Need, work: F) -> Result<T>
    where
        F: AsyncFnOnce(&Self, &Permit) -> Result<(T, Trace)>,
    {
        let session = self.enter(call, need).await?;
        let worked = work(self, &session.permit).await;
        self.leave(call, &session, worked).await
    }
}

/// The setting that says that a deletion waits for the end of a hold.
fn awaited(memory: MemoryId) -> String {
    format!("erase:memory:{memory}")
}
