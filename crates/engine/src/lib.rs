//! The pipeline: the only crate that calls policy and store.
//!
//! Every operation, whichever protocol it came in by, walks the same way: credentials become
//! evidence, evidence a principal, the principal a permit; facts are read through the
//! permit's lens, judged, planned and committed together with their audit entry, and what
//! changed is published from the outbox. There is no second way in. Protocol crates build a
//! [`Call`], choose an operation, and translate the answer.
//!
//! Start at [`Engine`], then `run.rs` (reads) and `mutate.rs` (writes); each operation has a
//! file of its own under `ops/`.

mod ask;
mod audit_copy;
mod background;
mod budget;
mod call;
mod clock;
pub mod dialect;
mod engine;
mod evidence;
mod feed;
pub mod frame;
mod kept;
mod mutate;
pub mod ops;
mod run;
mod stated;
pub mod token;

pub use audit_copy::{Checker, CopyReport, Line, Sealed};
pub use background::Background;
pub use background::notify::{Answered, Notice, Post};
pub use call::{
    Asked, Assertion, Call, Claims, Credentials, Issuers, Proof, Published, Secret, Shown,
    Thumbprint, VaultRef,
};
pub use clock::{Clock, FixedClock};
pub use engine::{DEFAULT_OWNER, Engine, Parts, Settings};
pub use feed::Event;
pub use mutate::{Effect, Head, Mutated, Wish};
pub use ops::DryRun;
pub use ops::accept::{Acceptance, Accepted, Incoming, Opening, Ticket};
pub use ops::acknowledge::Acknowledged;
pub use ops::amend::Amendment;
pub use ops::append::Appending;
pub use ops::attach::{Download, Upload};
pub use ops::audit::AuditQuery;
pub use ops::batch::{BATCH, Each};
pub use ops::case::{Case, Changes, FieldChange, FieldValue};
pub use ops::chain::{Chain, Purpose};
pub use ops::changes::Since;
pub use ops::consolidate::{
    Consolidated, Consolidating, Consolidation, Fate, ScorePart, Scored, WINDOW,
};
pub use ops::context::Context;
pub use ops::converse::Conversed;
pub use ops::decide_all::{Decided, Which};
pub use ops::elsewhere::{ChangedElsewhere, Elsewhere};
pub use ops::expire::{Among, Expired};
pub use ops::export::{CONVERSATIONS, Hands, Item};
pub use ops::get::Reference;
pub use ops::grants::{Extension, GrantRequest, Issued, grant_named};
pub use ops::identify::{Caller, Identity};
pub use ops::import::{Imported, fingerprint};
pub use ops::inbox::Putting;
pub use ops::neighbours::{HOPS, Neighbour};
pub use ops::passage::Passage;
pub use ops::passkeys::{NewPasskey, Passkey};
pub use ops::peers::Peer;
pub use ops::preview::Preview;
pub use ops::propose::{Proposal, Proposed};
pub use ops::recall::{Found, Hit, Recalled};
pub use ops::renew::Renewable;
pub use ops::resume::Reader;
pub use ops::retention::Retention;
pub use ops::review::{Decision, Reviewed};
pub use ops::say::Said;
pub use ops::schedule::{Every, Schedule};
pub use ops::search::{Place, Results, Seen, Sought};
pub use ops::sign_in::{Session as SignIn, SignedIn};
pub use ops::simulate::Simulated;
pub use ops::takeout::{Contents, Part, Step, Takeout};
pub use ops::talk::{Listed, Talk};
pub use ops::tenants::Tenant;
pub use ops::tokens::TokenKind;
pub use ops::transcript::Spoken;
pub use ops::undo::{Undo, Undone};
pub use ops::upkeep::{Care, Upkeep};
pub use ops::vitals::{Drift, Vitals};
pub use ops::work::Work;
pub use yore_policy::Gate;
pub use yore_policy::orders::directs;
pub use yore_policy::redact::{Viewer, redact};
pub use yore_rank::promote;
pub use yore_store::keeper::{Health, Traces, VaultInfo};
pub use yore_store::snapshot::{Buried, Census, Tally};
pub use yore_store::transfer;
