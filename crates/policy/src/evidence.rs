//! What the engine found out about the presented credentials, before anything is believed.

use yore_domain::VaultId;
use yore_domain::grant::{Grant, Token};

/// How a signer stands to the vault that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The vault's owner.
    Owner,
    /// This server.
    Server,
    /// An issuer the operator configured.
    Configured,
    /// Anyone else. Nothing they sign counts.
    Stranger,
}

/// One presented credential with what is known about it.
#[derive(Clone, Debug)]
pub enum Presented {
    /// Proof of possession of the master key, over the local socket or on the command line.
    MasterKey {
        /// Whether the proof held.
        proven: bool,
    },
    /// A bearer token: the row its hash was found under, if any, and the grant it names.
    Token {
        /// The row.
        token: Option<Box<Token>>,
        /// The grant, when the token stands for one.
        grant: Option<Box<Grant>>,
    },
    /// Signed claims that describe a grant.
    Claims {
        /// The grant they describe.
        grant: Box<Grant>,
        /// Whether the signature verifies under the key they name.
        signature: bool,
        /// How that key stands to the vault.
        issuer: Standing,
        /// Whether they are meant for this server; `None` when they name no audience.
        audience: Option<bool>,
        /// Whether the vault that is asked for is the one they open.
        subject: bool,
        /// Whether their id was revoked.
        revoked: bool,
    },
    /// A grant that whoever holds the master key takes up for its agent, to go on with what the
    /// agent asked for. It counts only beside the proof.
    TakenUp {
        /// The grant as it stands now, if it is kept here.
        grant: Option<Box<Grant>>,
    },
    /// What a passkey signed.
    Passkey(Passkey),
    /// Something that could not be read as a credential at all.
    Unreadable {
        /// What was wrong, without repeating it.
        reason: &'static str,
    },
}

/// What was found out about something that a passkey signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passkey {
    /// Whether it is one of the vault's.
    pub known: bool,
    /// Whether its key made the signature.
    pub signature: bool,
    /// Whether it answers the question that was asked, on a page of the server's own.
    pub asked: bool,
    /// Whether the authenticator answered the host for which the passkey was made.
    pub here: bool,
    /// Whether the authenticator made sure who was there.
    pub verified: bool,
    /// Whether it has signed more often than before, or does not count.
    pub counted: bool,
}

/// Everything known about a caller.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The vault that is asked for.
    pub vault: VaultId,
    /// The credentials, all of which must hold.
    pub presented: Vec<Presented>,
    /// Whether the owner opened the vault for public reads.
    pub public_reads: bool,
}
