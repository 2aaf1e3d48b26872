//! Identity providers (OpenID Connect) that let operators in. The server knows them and speaks
//! with them; pages send the browser there and take it back.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use yore_domain::Result;
use yore_engine::Secret;

/// All providers that the operator of the server names.
#[derive(Clone, Debug)]
pub struct Operators(pub Arc<dyn Providers>);

/// What the server does about identity providers.
pub trait Providers: fmt::Debug + Send + Sync {
    /// What people call them, in order.
    fn names(&self) -> Vec<String>;

    /// The address at which a provider asks who somebody is.
    fn address<'a>(&'a self, provider: usize, errand: &'a Errand) -> BoxFuture<'a, Result<String>>;

    /// As what the person may sign in whom the provider gave this code, the weightiest first.
    fn seats<'a>(
        &'a self,
        provider: usize,
        errand: &'a Errand,
        code: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Seat>>>;

    /// Signs the person in.
    fn sit<'a>(&'a self, seat: &'a Seat) -> BoxFuture<'a, Result<Seated>>;
}

/// What a browser that is sent to a provider brings back.
#[derive(Clone, Debug)]
pub struct Errand {
    /// What the answer must repeat.
    pub state: String,
    /// What the statement about the person must repeat.
    pub nonce: String,
    /// What shows that the code is redeemed by whom it was asked for (PKCE).
    pub verifier: String,
    /// Where the browser comes back.
    pub back: String,
}

/// One of the roles that the groups of a person give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The provider.
    pub provider: usize,
    /// Which of the roles that the operator gives away.
    pub role: usize,
    /// The person's name at the provider, which never means somebody else.
    pub subject: String,
    /// A name of the person for people.
    pub person: String,
    /// What a choice between several calls it.
    pub label: String,
}

/// Somebody who was let in.
#[derive(Clone, Debug)]
pub enum Seated {
    /// To look after a tenant.
    Admin(Secret),
    /// As the owner of a vault.
    Owner(Secret),
    /// Under a grant.
    Operator(Secret),
}
