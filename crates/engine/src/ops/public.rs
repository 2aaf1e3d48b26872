//! Opening a vault for reading by anyone: what is public in both senses, and nothing else.

use yore_domain::Result;
use yore_domain::grant::Verb;
use yore_policy::Need;
use yore_store::Write;

use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Trace};

impl Engine {
    /// Lets strangers read public memories, or no longer.
    pub async fn set_public_reads(&self, call: &Call, open: bool) -> Result<()> {
        let need = Need::one("public-reads", Verb::Admin);
        self.change(call, need, open, |_, _, _, open| {
            Box::pin(async move {
                let write = Write::Setting("public_reads".to_owned(), (*open).into());
                let trace = Trace::default().with("open", *open);
                Ok(Planned::done((), vec![write]).traced(trace))
            })
        })
        .await
    }
}
