//! Codes: given at consent, redeemed once within a minute.

use std::collections::HashMap;

use parking_lot::Mutex;
use yore_canon::hash::Sha256;
use yore_domain::{GrantId, Span, Timestamp};
use yore_engine::{Call, GrantRequest};

/// How long a code can be redeemed, and how long it is remembered that it was.
const LIFE: Span = Span::seconds(60);
const MEMORY: Span = Span::seconds(600);
/// How many codes are kept at once.
const MOST: usize = 256;

/// What the owner agreed to.
#[derive(Clone, Debug)]
pub(super) struct Consent {
    pub(super) client: String,
    pub(super) redirect: String,
    pub(super) challenge: String,
    pub(super) resource: Option<String>,
    pub(super) request: GrantRequest,
    /// The owner's own call, with which the grant is given.
    pub(super) call: Call,
}

#[derive(Debug)]
struct Code {
    consent: Consent,
    made: Timestamp,
    state: State,
}

#[derive(Debug)]
enum State {
    Open,
    /// Presented; the grant that came of it, once there is one.
    Spent(Option<GrantId>),
}

/// What became of a code that was presented.
#[derive(Debug)]
pub(super) enum Presented {
    /// It is good, and now spent.
    Good(Box<Consent>),
    /// It was spent before: whoever holds it stole it, or was stolen from.
    Again(Box<Consent>, Option<GrantId>),
    /// Nobody knows it, or it is too old.
    Unknown,
}

/// The codes that are out.
#[derive(Debug, Default)]
pub(crate) struct Codes(Mutex<HashMap<Sha256, Code>>);

impl Codes {
    pub(super) fn keep(&self, code: &str, consent: Consent, now: Timestamp) {
        let mut codes = self.0.lock();
        codes.retain(|_, code| now < code.made.plus(MEMORY));
        if codes.len() >= MOST
            && let Some(oldest) = codes.iter().min_by_key(|(_, code)| code.made).map(|(k, _)| *k)
        {
            codes.remove(&oldest);
        }
        codes.insert(Sha256::of(code), Code { consent, made: now, state: State::Open });
    }

    pub(super) fn present(&self, code: &str, now: Timestamp) -> Presented {
        let mut codes = self.0.lock();
        let Some(found) = codes.get_mut(&Sha256::of(code)) else { return Presented::Unknown };
        match found.state {
            State::Spent(grant) => Presented::Again(Box::new(found.consent.clone()), grant),
            State::Open if now < found.made.plus(LIFE) => {
                found.state = State::Spent(None);
                Presented::Good(Box::new(found.consent.clone()))
            }
            State::Open => Presented::Unknown,
        }
    }

    /// Remembers which grant a code led to.
    pub(super) fn led_to(&self, code: &str, grant: GrantId) {
        if let Some(found) = self.0.lock().get_mut(&Sha256::of(code)) {
            found.state = State::Spent(Some(grant));
        }
    }
}
