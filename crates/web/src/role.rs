//! As whom a browser is signed in. It decides what the frame offers; what is allowed, the engine
//! decides by the token.

use yore_engine::SignedIn;

/// As whom somebody is signed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// The owner of the vault.
    #[default]
    Owner,
    /// Who decides for the child whose vault it is.
    Guardian,
    /// Somebody with a grant, let in by an identity provider.
    Operator,
    /// Who looks after a tenant.
    Admin,
}

/// A page of the frame: its address, its name, and the section it belongs to.
pub(crate) type Entry = (&'static str, &'static str, &'static str);

const OWNER: [Entry; 10] = [
    ("/app", "Home", "home"),
    ("/app/search", "Search", "search"),
    ("/app/review", "Review", "review"),
    ("/app/conversations", "Conversations", "conversations"),
    ("/app/import", "Import", "import"),
    ("/app/backup", "Backup", "backup"),
    ("/app/access", "Access", "access"),
    ("/app/audit", "Audit", "audit"),
    ("/app/health", "Health", "health"),
    ("/app/api", "API", "api"),
];
const GUARDIAN: [Entry; 3] = [
    ("/app/guardian", "Guardian", "guardian"),
    ("/app/search", "Search", "search"),
    ("/app/conversations", "Conversations", "conversations"),
];
const OPERATOR: [Entry; 4] = [
    ("/app/search", "Search", "search"),
    ("/app/review", "Review", "review"),
    ("/app/conversations", "Conversations", "conversations"),
    ("/app/audit", "Audit", "audit"),
];
const ADMIN: [Entry; 1] = [("/app/admin", "Tenant", "admin")];

impl Role {
    /// The word for it, as the cookie carries it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Owner => "",
            Self::Guardian => "guardian",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// Reads the word; what is none of them is the owner's, who is told the most by mistakes.
    pub(crate) fn parse(word: &str) -> Self {
        let roles = [Self::Guardian, Self::Operator, Self::Admin];
        roles.into_iter().find(|role| role.word() == word).unwrap_or_default()
    }

    /// What the frame offers.
    pub(crate) const fn pages(self) -> &'static [Entry] {
        match self {
            Self::Owner => &OWNER,
            Self::Guardian => &GUARDIAN,
            Self::Operator => &OPERATOR,
            Self::Admin => &ADMIN,
        }
    }

    /// Where one begins.
    pub(crate) const fn home(self) -> &'static str {
        match self {
            Self::Owner => crate::PREFIX,
            Self::Guardian => "/app/guardian",
            Self::Operator => "/app/search",
            Self::Admin => "/app/admin",
        }
    }
}

impl From<SignedIn> for Role {
    fn from(who: SignedIn) -> Self {
        match who {
            SignedIn::Owner => Self::Owner,
            SignedIn::Guardian => Self::Guardian,
            SignedIn::Admin(_) => Self::Admin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_and_others_are_nobodys() {
        for role in [Role::Owner, Role::Guardian, Role::Operator, Role::Admin] {
            assert_eq!(Role::parse(role.word()), role);
            assert!(role.home().starts_with(crate::PREFIX));
        }
        assert_eq!(Role::parse("root"), Role::Owner);
    }
}
