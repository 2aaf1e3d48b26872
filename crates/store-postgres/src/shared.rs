//! What servers on one database must agree on: who does which work, and how much callers may do.
//!
//! Leases last by the clock of the database, so the clocks of the servers do not matter. Buckets
//! go by the time of whoever draws: between servers whose clocks differ a little, so do their
//! ideas of a minute.

use std::time::Duration;

use yore_domain::{Timestamp, VaultId};

use crate::error::Result;
use crate::pool::Begin;
use crate::store::Inner;

const MICROS_A_MINUTE: f64 = 60_000_000.0;

impl Inner {
    /// Takes work, or goes on having it.
    pub(crate) async fn lease(&self, id: VaultId, work: &str, time: Duration) -> Result<bool> {
        let conn = self.writers.begin(id, Begin::Strict).await?;
        let seconds = time.as_secs_f64();
        let taken = conn
            .run(
                "INSERT INTO lease AS l (vault, work, holder, ends)
                 VALUES ($1, $2, $3, now() + $4 * interval '1 second')
                 ON CONFLICT (vault, work) DO UPDATE
                 SET holder = excluded.holder, ends = excluded.ends
                 WHERE l.holder = excluded.holder OR l.ends <= now()",
                &[&work, &self.options.node.as_slice(), &seconds],
            )
            .await?;
        conn.commit().await?;
        Ok(taken > 0)
    }

    pub(crate) async fn give_back(&self, id: VaultId, work: &str) -> Result<()> {
        let conn = self.writers.begin(id, Begin::Relaxed).await?;
        let sql = "DELETE FROM lease WHERE vault = $1 AND work = $2 AND holder = $3";
        conn.run(sql, &[&work, &self.options.node.as_slice()]).await?;
        conn.commit().await
    }

    /// Takes one from a bucket. The table is not written to the journal: after a crash of the
    /// database every bucket is full, and nothing worse.
    pub(crate) async fn draw(
        &self,
        id: VaultId,
        bucket: &str,
        per_minute: u32,
        now: Timestamp,
    ) -> Result<bool> {
        let vault = self.vault(id).await?;
        let conn = self.writers.begin(id, Begin::Relaxed).await?;
        let most = f64::from(per_minute);
        let each = most / MICROS_A_MINUTE;
        let drawn = conn
            .run(
                "INSERT INTO bucket AS b (vault, name, amount, at)
                 SELECT $1, $2, $3::float8 - 1, $4 WHERE $3::float8 >= 1
                 ON CONFLICT (vault, name) DO UPDATE
                 SET amount = least($3, b.amount + greatest($4 - b.at, 0) * $5::float8) - 1,
                     at = greatest(b.at, $4)
                 WHERE least($3, b.amount + greatest($4 - b.at, 0) * $5::float8) >= 1",
                &[&vault.mac("bucket", &[bucket]), &most, &now.micros(), &each],
            )
            .await?;
        conn.commit().await?;
        Ok(drawn > 0)
    }
}
