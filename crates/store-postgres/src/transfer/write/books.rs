//! The rows of everything but memories and messages.

use serde::de::DeserializeOwned;
use yore_domain::grant::{Grant, Token};
use yore_domain::hold::{Hold, Rule};
use yore_domain::job::Job;
use yore_domain::procedure::Procedure;
use yore_domain::profile::Profile;
use yore_domain::stream::{Letter, Stream};
use yore_domain::{ConversationId, MemoryId};
use yore_store::plan::Operation;
use yore_store::transfer::{Kept, Row};

use super::PostgresIntake;
use crate::commit::{Answered, hold_code, job_code, letter_code, post_name};
use crate::error::{Error, Result};
use crate::pool::owned;
use crate::vault::{numbered, within};

fn of<T: DeserializeOwned>(data: &str) -> Result<T> {
    Ok(serde_json::from_str(data)?)
}

impl PostgresIntake {
    pub(super) async fn book(&self, row: Row) -> Result<()> {
        let vault = &self.vault;
        match row {
            Row::Relation(memory, number, relation) => {
                let target = vault.mac("relation", &[&relation.target]);
                let place = within(&numbered(memory), number.into());
                let data = vault.seal("relation", &place, &relation)?;
                let sql = "INSERT INTO relation (vault, memory, number, target, data)
                    VALUES ($1, $2, $3, $4, $5)";
                self.later(sql, owned![memory, number, target, data]).await
            }
            Row::Alias(namespace, name, kind, target, number) => {
                let mac = vault.mac("alias", &[&namespace, &name]);
                let word = vault.mac("name", &[&name]);
                let data = vault.seal("alias", &mac, &(namespace, name))?;
                let sql = "INSERT INTO alias (vault, mac, name, kind, target, number, data)
                    VALUES ($1, $2, $3, $4, $5, $6, $7)";
                let (kind, number) = (i16::from(kind), number.cast_signed());
                self.later(sql, owned![mac, word, kind, target.to_vec(), number, data]).await
            }
            Row::Blob(blob, size) => {
                let hash = vault.mac_of("blob", &blob.0);
                let sql = "INSERT INTO blob (vault, hash, size) VALUES ($1, $2, $3)";
                self.later(sql, owned![hash, size.cast_signed()]).await
            }
            Row::Piece(blob, number, bytes) => {
                let hash = vault.mac_of("blob", &blob.0);
                let number = number.cast_signed();
                let data = vault.seal_bytes("blob_chunk", &within(&hash, number.into()), &bytes);
                let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
                // Pieces are large: each is sent before the next is taken.
                let sql = "INSERT INTO blob_chunk (vault, hash, number, size, data)
                    VALUES ($1, $2, $3, $4, $5)";
                self.conn.run(sql, &[&hash, &number, &size, &data]).await?;
                Ok(())
            }
            Row::Kept(kept, data) => self.kept(kept, &data).await,
            Row::Rule(position, data) => {
                let rule: Rule = of(&data)?;
                let name = vault.mac("rule", &[&rule.name]);
                let data = vault.seal_bytes("rule", &name, data.as_bytes());
                let sql = "INSERT INTO rule (vault, name, position, data) VALUES ($1, $2, $3, $4)";
                self.later(sql, owned![name, position, data]).await
            }
            Row::Frame(sender, stream, number, bytes) => {
                let mac = post_name(vault, "stream", &sender, &stream);
                let number = number.cast_signed();
                let data = vault.seal_bytes("frame", &within(&mac, number), &bytes);
                let sql = "INSERT INTO frame (vault, stream, number, data) VALUES ($1, $2, $3, $4)";
                self.later(sql, owned![mac, number, data]).await
            }
            Row::Letter(seq, data) => {
                let letter: Letter = of(&data)?;
                let mac = post_name(vault, "letter", &letter.sender, &letter.id);
                let inbox = vault.mac("inbox", &[&letter.inbox]);
                let data = vault.seal_bytes("letter", &mac, data.as_bytes());
                let (state, received) = (letter_code(letter.state), letter.received.micros());
                let sql = "INSERT INTO letter (vault, mac, seq, inbox, state, received, data)
                    VALUES ($1, $2, $3, $4, $5, $6, $7)";
                self.later(sql, owned![mac, seq, inbox, state, received, data]).await
            }
            Row::Operation(operation, at) => {
                let Operation { caller, id, fingerprint, result } = *operation;
                let mac = vault.mac("operation", &[&caller, &id]);
                let answered = Answered { fingerprint, result, of: Some((caller, id)) };
                let data = vault.seal("operation", &mac, &answered)?;
                let sql = "INSERT INTO operation (vault, mac, at, data) VALUES ($1, $2, $3, $4)";
                self.later(sql, owned![mac, at, data]).await
            }
            Row::Grave(namespace, name, message, kind, at) => {
                let mac = vault.mac("alias", &[&namespace, &name]);
                // Those of the owner's own namespace are listed among the graves by their ids.
                let own = namespace.is_empty();
                let id = match kind {
                    0 => name.parse::<MemoryId>().ok().map(MemoryId::bytes),
                    _ => name.parse::<ConversationId>().ok().map(ConversationId::bytes),
                };
                let target = id.filter(|_| own).map(|id| id.to_vec());
                let place = [mac.as_slice(), &message].concat();
                let data = vault.seal("ledger", &place, &(namespace, name))?;
                let sql = "INSERT INTO ledger (vault, mac, message, kind, target, at, data)
                    VALUES ($1, $2, $3, $4, $5, $6, $7)";
                self.later(sql, owned![mac, message, i16::from(kind), target, at, data]).await
            }
            Row::Named(memory, seq) => {
                let sql = "INSERT INTO audit_target (vault, memory, seq) VALUES ($1, $2, $3)";
                self.later(sql, owned![memory, seq.cast_signed()]).await
            }
            Row::Checkpoint(seq, data) => {
                let seq = seq.cast_signed();
                let data = vault.seal_bytes("checkpoint", &numbered(seq), data.as_bytes());
                let sql = "INSERT INTO checkpoint (vault, seq, data) VALUES ($1, $2, $3)";
                self.later(sql, owned![seq, data]).await
            }
            Row::Tenant(id, name) => {
                let sql = "INSERT INTO tenant (vault, id, name) VALUES ($1, $2, $3)";
                self.later(sql, owned![id.bytes().to_vec(), name]).await
            }
            Row::Place(mac, target) => {
                let sql = "INSERT INTO locate (vault, mac, target) VALUES ($1, $2, $3)";
                self.later(sql, owned![mac, target.bytes().to_vec()]).await
            }
            Row::Seed(_)
            | Row::Counters(_)
            | Row::Class(..)
            | Row::Setting(..)
            | Row::Memory(_)
            | Row::Version(_)
            | Row::Talk(..)
            | Row::Message(_)
            | Row::Vector(..)
            | Row::Entry(_)
            | Row::Lost(_) => Err(Error::Damaged("a row went astray".into())),
        }
    }

    /// Values that are found by what they say themselves.
    async fn kept(&self, kept: Kept, data: &str) -> Result<()> {
        let vault = &self.vault;
        let sealed = |table: &str, place: &[u8]| vault.seal_bytes(table, place, data.as_bytes());
        match kept {
            Kept::Grant => {
                let grant: Grant = of(data)?;
                let (id, issued) = (grant.id.bytes(), grant.issued.micros());
                let sql = "INSERT INTO grants (vault, id, issued, data) VALUES ($1, $2, $3, $4)";
                self.later(sql, owned![id.to_vec(), issued, sealed("grants", &id)]).await
            }
            Kept::Token => {
                let token: Token = of(data)?;
                let (id, issued) = (token.id.bytes(), token.issued.micros());
                let hash = vault.mac("token", &[&token.hash]);
                let sql = "INSERT INTO token (vault, id, hash, issued, data)
                    VALUES ($1, $2, $3, $4, $5)";
                self.later(sql, owned![id.to_vec(), hash, issued, sealed("token", &id)]).await
            }
            Kept::Hold => {
                let hold: Hold = of(data)?;
                let id = hold.id.bytes();
                let agent = hold.agent.as_deref().map(|agent| vault.mac("agent", &[agent]));
                let (state, asked) = (hold_code(hold.state), hold.asked.micros());
                let data = sealed("hold", &id);
                let sql = "INSERT INTO hold (vault, id, state, asked, agent, data)
                    VALUES ($1, $2, $3, $4, $5, $6)";
                self.later(sql, owned![id.to_vec(), state, asked, agent, data]).await
            }
            Kept::Profile => {
                let profile: Profile = of(data)?;
                let whose = vault.mac("profile", &[profile.user.as_deref().unwrap_or_default()]);
                let version = profile.version.cast_signed();
                let data = sealed("profile", &within(&whose, version));
                let recorded = profile.recorded.micros();
                let sql = "INSERT INTO profile (vault, whose, version, recorded, data)
                    VALUES ($1, $2, $3, $4, $5)";
                self.later(sql, owned![whose, version, recorded, data]).await
            }
            Kept::Procedure => {
                let procedure: Procedure = of(data)?;
                let memory = procedure.memory.bytes();
                let name = vault.mac("procedure", &[&procedure.machine.name]);
                let data = sealed("procedure", &memory);
                let sql = "INSERT INTO procedure (vault, memory, name, data)
                    VALUES ($1, $2, $3, $4)";
                self.later(sql, owned![memory.to_vec(), name, data]).await
            }
            Kept::Job => {
                let job: Job = of(data)?;
                let (id, state) = (job.id.bytes(), job_code(job.state));
                let (created, data) = (job.created.micros(), sealed("job", &id));
                let sql = "INSERT INTO job (vault, id, state, created, data)
                    VALUES ($1, $2, $3, $4, $5)";
                self.later(sql, owned![id.to_vec(), state, created, data]).await
            }
            Kept::Stream => {
                let stream: Stream = of(data)?;
                let mac = post_name(vault, "stream", &stream.sender, &stream.id);
                let ended = stream.state.is_final().then(|| stream.updated.micros());
                let (revision, data) = (stream.revision.cast_signed(), sealed("stream", &mac));
                let sql = "INSERT INTO stream (vault, mac, revision, ended, data)
                    VALUES ($1, $2, $3, $4, $5)";
                self.later(sql, owned![mac, revision, ended, data]).await
            }
        }
    }
}
