//! Attachments. The database knows them by keyed digests of their hashes; what they are called is
//! computed from their bytes, so they are read twice.

use yore_domain::BlobHasher;
use yore_store::transfer::Row;

use super::{PIECES, Walk};
use crate::error::{Error, Result};

/// How many attachments are listed at a time.
const PAGE: i64 = 500;

impl Walk<'_> {
    pub(super) async fn blobs(&mut self) -> Result<()> {
        let mut after: Vec<u8> = Vec::new();
        loop {
            let rows = self
                .conn
                .rows(
                    "SELECT hash, origin, size FROM blob
                     WHERE vault = $1 AND size IS NOT NULL AND hash > $2 ORDER BY hash LIMIT $3",
                    &[&after, &PAGE],
                )
                .await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.get(0);
            for row in &rows {
                let (hash, origin): (&[u8], Option<&[u8]>) = (row.get(0), row.get(1));
                let mut hasher = BlobHasher::default();
                self.pieces(hash, origin, |_, bytes| {
                    hasher.update(&bytes);
                    None
                })
                .await?;
                let blob = hasher.finish();
                if self.vault.mac_of("blob", &blob.0) != hash {
                    return Err(Error::Damaged("an attachment is not what its name says".into()));
                }
                let size = row.get::<_, i64>(2).cast_unsigned();
                self.out.put(Row::Blob(blob, size)).await?;
                self.pieces(hash, origin, |number, bytes| Some(Row::Piece(blob, number, bytes)))
                    .await?;
            }
        }
    }

    /// Goes through the pieces of an attachment in order, a few at a time.
    async fn pieces(
        &mut self,
        hash: &[u8],
        origin: Option<&[u8]>,
        mut each: impl FnMut(u32, Vec<u8>) -> Option<Row>,
    ) -> Result<()> {
        let (mut after, limit) = (-1i32, i64::try_from(PIECES).unwrap_or(1));
        loop {
            let rows = self
                .conn
                .rows(
                    "SELECT number, data FROM blob_chunk
                     WHERE vault = $1 AND hash = $2 AND number > $3 ORDER BY number LIMIT $4",
                    &[&hash, &after, &limit],
                )
                .await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.get(0);
            for row in &rows {
                let number: i32 = row.get(0);
                let place = self.vault.chunk(hash, origin, number)?;
                let bytes = self.vault.open_bytes("blob_chunk", &place, row.get(1))?;
                if let Some(row) = each(number.cast_unsigned(), bytes.to_vec()) {
                    self.out.put(row).await?;
                }
            }
        }
    }
}
