//! The targets, for whoever runs them.

pub mod targets;

#[cfg(feature = "protocols")]
pub mod spoken;

/// Runs a target by its name.
pub fn run(name: &str, data: &[u8]) {
    #[cfg(feature = "protocols")]
    let all = targets::TARGETS.iter().chain(spoken::TARGETS);
    #[cfg(not(feature = "protocols"))]
    let all = targets::TARGETS.iter();
    let mut all = all;
    let (_, target, _) = all.find(|(known, ..)| *known == name).expect("a target of that name");
    target(data);
}
