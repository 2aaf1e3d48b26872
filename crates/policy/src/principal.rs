//! Who is calling, once the evidence has been believed.

use yore_domain::audit::Actor;
use yore_domain::grant::{Bearer, Grant, Verb, Verbs};
use yore_domain::{Error, Result, Timestamp, VaultId};

use crate::evidence::{Evidence, Passkey, Presented, Standing};

/// A verified caller of one vault. Only [`verify`] and [`Principal::system`] make one.
#[derive(Clone, Debug)]
pub struct Principal {
    vault: VaultId,
    who: Who,
}

#[derive(Clone, Debug)]
pub(crate) enum Who {
    Owner,
    Service { name: String },
    Admin { name: String },
    Agent { grants: Vec<Grant> },
    Anonymous,
    System { reason: &'static str },
}

impl Principal {
    /// The server's own work on a vault. The reason is audited like anyone's deed.
    #[must_use]
    pub fn system(vault: VaultId, reason: &'static str) -> Self {
        Self { vault, who: Who::System { reason } }
    }

    /// Returns the vault it may call.
    #[must_use]
    pub const fn vault(&self) -> VaultId {
        self.vault
    }

    /// Returns how the audit chain names it.
    #[must_use]
    pub fn actor(&self) -> Actor {
        match &self.who {
            Who::Owner => Actor::Owner,
            Who::Service { name } | Who::Admin { name } => Actor::Service { name: name.clone() },
            Who::Agent { grants } => grants.first().map_or(Actor::Unknown, |grant| Actor::Agent {
                agent: grant.agent.to_string(),
                grant: grant.id,
            }),
            Who::Anonymous => Actor::Anonymous,
            Who::System { reason } => Actor::System { reason: (*reason).to_owned() },
        }
    }

    /// Returns the agent's name, when it is one.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        self.grants().first().map(|grant| grant.agent.as_str())
    }

    /// Returns the grants it acts under, all of which must allow.
    #[must_use]
    pub fn grants(&self) -> &[Grant] {
        match &self.who {
            Who::Agent { grants } => grants,
            Who::Owner
            | Who::Service { .. }
            | Who::Admin { .. }
            | Who::Anonymous
            | Who::System { .. } => &[],
        }
    }

    /// Whether the owner is speaking, in person or through a service of the tenant.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        matches!(self.who, Who::Owner | Who::Service { .. })
    }

    /// Whether it looks after the vault as a whole: the owner, or an admin of the tenant.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.is_owner() || matches!(self.who, Who::Admin { .. })
    }

    pub(crate) fn who(&self) -> &Who {
        &self.who
    }

    pub(crate) fn verbs(&self) -> Verbs {
        match &self.who {
            Who::Owner | Who::Service { .. } | Who::System { .. } => Verbs::ALL,
            Who::Admin { .. } => Verbs::of(&[Verb::Read, Verb::Audit, Verb::Admin]),
            Who::Anonymous => Verbs::of(&[Verb::Read]),
            Who::Agent { grants } => {
                grants.iter().fold(Verbs::ALL, |verbs, grant| verbs.and(grant.verbs))
            }
        }
    }
}

/// Believes the evidence, or says why not. Every presented credential must hold, and the
/// caller's authority is what all of them allow together.
pub fn verify(evidence: &Evidence, now: Timestamp) -> Result<Principal> {
    let made = |who| Ok(Principal { vault: evidence.vault, who });
    if evidence.presented.is_empty() {
        return if evidence.public_reads {
            made(Who::Anonymous)
        } else {
            Err(Error::unauthenticated("no credential was presented"))
        };
    }
    let (mut grants, mut service, mut admin) = (Vec::new(), None, None);
    for presented in &evidence.presented {
        match presented {
            Presented::Unreadable { reason } => return Err(Error::unauthenticated(*reason)),
            Presented::MasterKey { proven: true } => {}
            Presented::MasterKey { proven: false } => {
                return Err(Error::unauthenticated("the master key does not match"));
            }
            Presented::Token { token, grant } => {
                let token =
                    token.as_ref().filter(|token| token.holds_at(now)).ok_or_else(|| {
                        Error::unauthenticated("the token is unknown, expired or revoked")
                    })?;
                let name = || token.note.clone().unwrap_or_else(|| token.id.to_string());
                match &token.bearer {
                    Bearer::Owner => {}
                    Bearer::Renewal(_) => {
                        let reason = "a token for renewal opens nothing by itself";
                        return Err(Error::unauthenticated(reason));
                    }
                    Bearer::Service(_) => service = Some(name()),
                    Bearer::Admin(_) => admin = Some(name()),
                    Bearer::Grant(id) => {
                        let grant = grant
                            .as_ref()
                            .filter(|grant| grant.id == *id && grant.holds_at(now))
                            .ok_or_else(|| {
                                Error::unauthenticated("the grant is unknown, expired or revoked")
                            })?;
                        grants.push((**grant).clone());
                    }
                }
            }
            Presented::Passkey(passkey) => believe(*passkey)?,
            Presented::TakenUp { grant } => {
                let proven = |one: &Presented| matches!(one, Presented::MasterKey { proven: true });
                let grant = grant.as_ref().filter(|grant| grant.holds_at(now));
                match grant.filter(|_| evidence.presented.iter().any(proven)) {
                    Some(grant) => grants.push((**grant).clone()),
                    None => {
                        let reason = "the grant is unknown, expired or revoked";
                        return Err(Error::unauthenticated(reason));
                    }
                }
            }
            Presented::Claims { grant, signature, issuer, audience, subject, revoked } => {
                if !signature {
                    return Err(Error::unauthenticated("the signature does not verify"));
                }
                if *issuer == Standing::Stranger {
                    return Err(Error::unauthenticated("the issuer has no standing here"));
                }
                if *audience == Some(false) {
                    return Err(Error::unauthenticated("the token is meant for another audience"));
                }
                if *revoked || !grant.holds_at(now) {
                    return Err(Error::unauthenticated("the grant is expired or revoked"));
                }
                if !subject {
                    return Err(Error::forbidden("the grant is for another vault"));
                }
                grants.push((**grant).clone());
            }
        }
    }
    match (grants.is_empty(), admin, service) {
        (false, ..) => made(Who::Agent { grants }),
        (true, Some(name), _) => made(Who::Admin { name }),
        (true, None, Some(name)) => made(Who::Service { name }),
        (true, None, None) => made(Who::Owner),
    }
}

/// Believes that the owner holds a passkey. All of it must be right; what was wrong is said.
fn believe(passkey: Passkey) -> Result<()> {
    let Passkey { known, signature, asked, here, verified, counted } = passkey;
    let demands = [
        (known, "the passkey is unknown or was taken back"),
        (signature, "the passkey did not sign this"),
        (asked, "the passkey answers another question"),
        (here, "the passkey is for another place"),
        (verified, "the authenticator did not make sure who was there"),
        (counted, "the passkey signed less often than it did before: it may have been copied"),
    ];
    match demands.into_iter().find(|(met, _)| !met) {
        Some((_, reason)) => Err(Error::unauthenticated(reason)),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use yore_domain::class::Sensitivity;
    use yore_domain::grant::{Labels, Token};
    use yore_domain::scope::ScopeRule;
    use yore_domain::{AgentId, GrantId, TenantId, TokenId};

    use super::*;

    const NOW: Timestamp = Timestamp::MIN;

    pub(crate) fn grant(verbs: &[Verb]) -> Grant {
        Grant {
            id: GrantId::random(),
            agent: AgentId::new("scheduler").unwrap(),
            issuer: "did:key:owner".into(),
            verbs: Verbs::of(verbs),
            read: Labels::Any,
            write: Labels::Any,
            ceiling: Sensitivity::Restricted,
            scope: ScopeRule::default(),
            not_before: None,
            expires: None,
            issued: NOW,
            revoked: None,
            note: None,
        }
    }

    pub(crate) fn agent(grants: &[Grant]) -> Principal {
        let presented = grants.iter().map(|grant| claims(grant.clone())).collect();
        verify(&evidence(presented), NOW).unwrap()
    }

    pub(crate) fn owner() -> Principal {
        verify(&evidence(vec![Presented::MasterKey { proven: true }]), NOW).unwrap()
    }

    fn evidence(presented: Vec<Presented>) -> Evidence {
        Evidence { vault: VaultId::CATALOG, presented, public_reads: false }
    }

    fn claims(grant: Grant) -> Presented {
        Presented::Claims {
            grant: Box::new(grant),
            signature: true,
            issuer: Standing::Owner,
            audience: None,
            subject: true,
            revoked: false,
        }
    }

    fn token(bearer: Bearer) -> Token {
        Token {
            id: TokenId::random(),
            hash: String::new(),
            bearer,
            issued: NOW,
            expires: None,
            revoked: None,
            note: None,
        }
    }

    #[test]
    fn only_what_holds_is_believed() {
        let spoilt: [(&str, Presented); 7] = [
            ("unreadable", Presented::Unreadable { reason: "not a token" }),
            ("master key", Presented::MasterKey { proven: false }),
            ("unknown token", Presented::Token { token: None, grant: None }),
            (
                "expired token",
                Presented::Token {
                    token: Some(Box::new(Token { expires: Some(NOW), ..token(Bearer::Owner) })),
                    grant: None,
                },
            ),
            (
                "token of a grant that is gone",
                Presented::Token {
                    token: Some(Box::new(token(Bearer::Grant(GrantId::random())))),
                    grant: Some(Box::new(grant(&[Verb::Read]))),
                },
            ),
            (
                "stranger",
                Presented::Claims {
                    grant: Box::new(grant(&[Verb::Read])),
                    signature: true,
                    issuer: Standing::Stranger,
                    audience: None,
                    subject: true,
                    revoked: false,
                },
            ),
            (
                "wrong audience",
                Presented::Claims {
                    grant: Box::new(grant(&[Verb::Read])),
                    signature: true,
                    issuer: Standing::Owner,
                    audience: Some(false),
                    subject: true,
                    revoked: false,
                },
            ),
        ];
        for (name, presented) in spoilt {
            let with_owner = vec![Presented::MasterKey { proven: true }, presented];
            assert!(
                matches!(verify(&evidence(with_owner), NOW), Err(Error::Unauthenticated { .. })),
                "{name}"
            );
        }
    }

    #[test]
    fn nobody_is_nobody_unless_the_vault_is_open() {
        assert!(verify(&evidence(vec![]), NOW).is_err());
        let open = Evidence { public_reads: true, ..evidence(vec![]) };
        assert_eq!(verify(&open, NOW).unwrap().actor(), Actor::Anonymous);
    }

    #[test]
    fn a_grant_beside_an_owner_token_narrows_it() {
        let both = vec![
            Presented::Token { token: Some(Box::new(token(Bearer::Owner))), grant: None },
            claims(grant(&[Verb::Read])),
        ];
        let principal = verify(&evidence(both), NOW).unwrap();
        assert_eq!(principal.verbs(), Verbs::of(&[Verb::Read]));
        assert!(!principal.is_owner());
    }

    #[test]
    fn uamp_073_a_second_grant_never_widens() {
        let principal =
            agent(&[grant(&[Verb::Read, Verb::Write]), grant(&[Verb::Read, Verb::Export])]);
        assert_eq!(principal.verbs(), Verbs::of(&[Verb::Read]));
    }

    #[test]
    fn omp_151_an_admin_reads_and_keeps_and_changes_nothing_of_the_content() {
        let presented = Presented::Token {
            token: Some(Box::new(token(Bearer::Admin(TenantId::DEFAULT)))),
            grant: None,
        };
        let principal = verify(&evidence(vec![presented]), NOW).unwrap();
        assert!(!principal.is_owner());
        assert_eq!(principal.verbs(), Verbs::of(&[Verb::Read, Verb::Audit, Verb::Admin]));
    }

    #[test]
    fn a_grant_is_taken_up_beside_the_master_key_alone_and_only_while_it_holds() {
        let taken = |grant: Option<Grant>| Presented::TakenUp { grant: grant.map(Box::new) };
        let master = || Presented::MasterKey { proven: true };
        let reader = grant(&[Verb::Read]);
        let believed = |presented| verify(&evidence(presented), NOW);
        let principal = believed(vec![master(), taken(Some(reader.clone()))]).unwrap();
        assert!(!principal.is_owner(), "it is no more than the agent");
        assert_eq!(principal.verbs(), Verbs::of(&[Verb::Read]));
        let owner = Presented::Token { token: Some(Box::new(token(Bearer::Owner))), grant: None };
        let ended = Grant { revoked: Some(NOW), ..reader.clone() };
        for wrong in [
            vec![taken(Some(reader.clone()))],
            vec![owner, taken(Some(reader.clone()))],
            vec![Presented::MasterKey { proven: false }, taken(Some(reader))],
            vec![master(), taken(Some(ended))],
            vec![master(), taken(None)],
        ] {
            assert!(believed(wrong).is_err());
        }
    }

    #[test]
    fn a_passkey_speaks_for_the_owner_when_all_of_it_is_right() {
        let right = Passkey {
            known: true,
            signature: true,
            asked: true,
            here: true,
            verified: true,
            counted: true,
        };
        let believed = |passkey| verify(&evidence(vec![Presented::Passkey(passkey)]), NOW);
        assert!(believed(right).unwrap().is_owner());
        for wrong in [
            Passkey { known: false, ..right },
            Passkey { signature: false, ..right },
            Passkey { asked: false, ..right },
            Passkey { here: false, ..right },
            Passkey { verified: false, ..right },
            Passkey { counted: false, ..right },
        ] {
            assert_eq!(believed(wrong).unwrap_err().code(), "unauthenticated");
        }
    }

    #[test]
    fn a_service_token_speaks_for_the_owner() {
        let presented = Presented::Token {
            token: Some(Box::new(token(Bearer::Service(TenantId::DEFAULT)))),
            grant: None,
        };
        let principal = verify(&evidence(vec![presented]), NOW).unwrap();
        assert!(principal.is_owner());
        assert!(matches!(principal.actor(), Actor::Service { .. }));
    }
}
