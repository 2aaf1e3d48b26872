//! What the local authority may sign for.
//!
//! Whoever trusts it trusts its key, which lies on a disk. So it is bound to names that mean
//! something on this machine or in its own network only, and to what the server is called when
//! the authority is made: with its key nobody can pretend to be a site of the internet. A name
//! that is added later and that it may not sign for costs a new authority, which has to be
//! trusted anew; names that need this are rare, because public ones have public certificates.
//!
//! Addresses are not bound: clients with BoringSSL, gRPC among them, refuse every certificate
//! for an address whose authority is bound to some.

use std::net::IpAddr;
use std::path::Path;

use rcgen::{GeneralSubtree, NameConstraints};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Names that nobody owns in the internet, with all below them.
const LOCAL: [&str; 6] = ["localhost", "local", "internal", "lan", "home.arpa", "test"];

/// The bounds of an authority that is made for some names.
pub(super) fn of(names: &[String]) -> NameConstraints {
    let mut permitted = LOCAL.map(str::to_owned).to_vec();
    for name in names {
        if !holds(&permitted, name) {
            permitted.push(name.clone());
        }
    }
    let permitted_subtrees = permitted.into_iter().map(GeneralSubtree::DnsName).collect();
    NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() }
}

/// Whether an authority may sign for all the names. One from before there were bounds may.
pub(super) fn cover(authority: &Path, names: &[String]) -> bool {
    let Ok(text) = std::fs::read(authority) else { return false };
    let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(&text) else { return false };
    let Ok((_, certificate)) = X509Certificate::from_der(&pem.contents) else { return false };
    let permitted: Vec<String> = match certificate.name_constraints() {
        Err(_) => return false,
        Ok(None) => return true,
        Ok(Some(bounds)) => {
            let permitted = bounds.value.permitted_subtrees.as_deref().unwrap_or_default();
            permitted.iter().filter_map(|subtree| spelt(&subtree.base)).collect()
        }
    };
    names.iter().all(|name| holds(&permitted, name))
}

fn spelt(name: &GeneralName<'_>) -> Option<String> {
    let GeneralName::DNSName(name) = name else { return None };
    Some((*name).to_owned())
}

/// Whether a name is one of these or lies below one; addresses are always in.
fn holds(permitted: &[String], name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.parse::<IpAddr>().is_ok()
        || permitted.iter().any(|top| {
            name.strip_suffix(&top.to_ascii_lowercase())
                .is_some_and(|below| below.is_empty() || below.ends_with('.'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_what_lies_below_it() {
        let permitted = ["local".to_owned(), "Memory.example".to_owned()];
        for inside in ["local", "Nas.Local", "memory.example", "a.memory.example", "::1"] {
            assert!(holds(&permitted, inside), "{inside}");
        }
        for outside in ["notlocal", "local.example", "example", "mymemory.example"] {
            assert!(!holds(&permitted, outside), "{outside}");
        }
    }
}
