//! What a page says after something was done.

/// The words for a code in an address. Addresses carry codes only, so no link can put words
/// into a page.
pub(crate) fn text(code: &str) -> Option<&'static str> {
    Some(match code {
        "remembered" => "Remembered.",
        "known" => "That was known already; it counts as confirmed.",
        "revised" => "Saved as a new version.",
        "labelled" => "Saved who may see it.",
        "forgotten" => "Forgotten. It can be restored below.",
        "restored" => "Restored.",
        "held" => "It waits for review: one of your rules asks for that.",
        "undone" => "Taken back.",
        "late" => "Too late: it had been carried out already.",
        "rule" => "The rule is in force.",
        "rule-off" => "The rule is switched off.",
        "learning" => "Rules are learned from your decisions.",
        "not-learning" => "Nothing is learned from your decisions.",
        "copied" => "A copy was made.",
        "scheduled" => "Saved how often copies are made.",
        "returned" => "The vault is back at that copy. What was there before is the newest copy.",
        "unruled" => "The rule is gone.",
        "revoked" => "Taken back. It opens nothing any more.",
        "passkey" => "The passkey is added. You can sign in with it from now on.",
        "passkey-gone" => "The passkey is taken back. It signs nobody in any more.",
        "erased" => "Erased for good.",
        "stopped" => "Stopped: nothing more is stored.",
        "going" => "Storing goes on.",
        "user" => "The user has an empty vault now.",
        "user-gone" => "The user is gone.",
        "kept" => "Saved how long things are kept.",
        "legal-hold" => "It is protected: nobody can delete it.",
        "released" => "It is no longer protected.",
        "unchanged" => "Nothing had to change.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codes_say_something() {
        assert!(text("remembered").is_some());
        assert!(text("<b>x</b>").is_none() && text("").is_none());
    }
}
