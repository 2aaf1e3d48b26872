//! From conversations to memories, by rules that need no model.
//!
//! A person who says "remember that…", "I prefer…" or "from now on…" says something that is worth
//! keeping. What is found is a proposal: a candidate with the message it was drawn from, which a
//! person accepts or not. The conversation stays as it was said.

use yore_domain::conversation::Role;
use yore_domain::kind::Facet;
use yore_domain::memory::{Draft, Status, normalised};
use yore_domain::provenance::{ActorKind, MessageRef};

use crate::ids;
use crate::item::{Note, Standing, Talk};

/// How a sentence begins that is worth keeping, what it is, and how sure that is.
struct Rule {
    begins: &'static [&'static str],
    facet: Facet,
    confidence: f64,
    /// Whether the words themselves are part of the memory.
    keeps: bool,
    name: &'static str,
}

const RULES: [Rule; 4] = [
    Rule {
        begins: &[
            "please remember that ",
            "please remember: ",
            "remember that ",
            "remember: ",
            "don't forget that ",
            "do not forget that ",
            "keep in mind that ",
            "for the record, ",
            "merk dir, dass ",
            "merke dir, dass ",
            "merk dir: ",
            "vergiss nicht, dass ",
            "souviens-toi que ",
            "retiens que ",
            "n'oublie pas que ",
            "recuerda que ",
        ],
        facet: Facet::Fact,
        confidence: 0.9,
        keeps: false,
        name: "remember",
    },
    Rule {
        begins: &[
            "from now on, ",
            "from now on ",
            "in future, ",
            "in the future, always ",
            "always answer ",
            "always use ",
            "always write ",
            "never use ",
            "never write ",
            "never answer ",
            "ab jetzt ",
            "ab sofort ",
            "désormais, ",
            "a partir de ahora, ",
        ],
        facet: Facet::Instruction,
        confidence: 0.7,
        keeps: true,
        name: "instruction",
    },
    Rule {
        begins: &[
            "i prefer ",
            "i'd rather ",
            "i like ",
            "i don't like ",
            "i do not like ",
            "i hate ",
            "i love ",
            "my favourite ",
            "my favorite ",
            "ich bevorzuge ",
            "ich mag ",
            "je préfère ",
            "prefiero ",
        ],
        facet: Facet::Preference,
        confidence: 0.6,
        keeps: true,
        name: "preference",
    },
    Rule {
        begins: &[
            "my name is ",
            "i live in ",
            "i work as ",
            "i work at ",
            "i work for ",
            "i am allergic to ",
            "i'm allergic to ",
            "ich heiße ",
            "ich wohne in ",
            "je m'appelle ",
            "j'habite à ",
            "me llamo ",
            "vivo en ",
        ],
        facet: Facet::Fact,
        confidence: 0.7,
        keeps: true,
        name: "identity",
    },
];

/// The shortest and the longest sentence that is looked at, in characters.
const LENGTHS: std::ops::RangeInclusive<usize> = 12..=400;

/// Returns what a conversation proposes to remember, each once.
#[must_use]
pub fn proposals(talk: &Talk) -> Vec<Note> {
    let mut found: Vec<Note> = Vec::new();
    for message in &talk.messages {
        if message.role != Role::User || message.off_path {
            continue;
        }
        for sentence in sentences(&message.text) {
            let Some((rule, text)) = matched(sentence) else { continue };
            let mut draft = Draft::new(rule.facet.kind(), text);
            draft.content.facet = rule.facet;
            draft.content.lifecycle.confidence = Some(rule.confidence);
            draft.time.created = Some(message.at);
            draft.status = Status::Candidate;
            let provenance = &mut draft.content.provenance;
            provenance.actor_kind = ActorKind::Import;
            provenance.method = format!("rule:{}", rule.name);
            provenance.provider = Some(talk.head.platform.clone());
            provenance.at = Some(message.at);
            let from = MessageRef { conversation: talk.head.id, message: message.id };
            provenance.messages.push(from);
            // The same words in another conversation are the same proposal.
            let id = ids::memory("proposal", &["said", &normalised(text)]);
            if !found.iter().any(|known| known.id == id) {
                found.push(Note {
                    id,
                    draft,
                    active: true,
                    standing: Standing::Proposed,
                    versions: Vec::new(),
                });
            }
        }
    }
    found
}

fn matched(sentence: &str) -> Option<(&'static Rule, &str)> {
    let length = sentence.chars().count();
    if !LENGTHS.contains(&length) || sentence.ends_with('?') {
        return None;
    }
    let low = sentence.to_lowercase();
    for rule in &RULES {
        for begin in rule.begins {
            if low.starts_with(begin) {
                let rest = if rule.keeps { sentence } else { sentence.get(begin.len()..)? };
                let rest = rest.trim();
                return (rest.split_whitespace().count() >= 2).then_some((rule, rest));
            }
        }
    }
    None
}

/// Cuts a text into sentences, without what stands in fences or is quoted.
fn sentences(text: &str) -> Vec<&str> {
    let (mut found, mut fenced) = (Vec::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced || line.starts_with(['>', '\t']) || line.starts_with("    ") {
            continue;
        }
        let line = line.trim_start_matches(['-', '*', ' ']);
        let mut rest = line;
        while let Some(end) = rest.match_indices(['.', '!', '?', ';']).find_map(|(at, mark)| {
            let after = &rest[at + mark.len()..];
            let next = after.trim_start().chars().next();
            // A dot inside a number, a name or a shortened word ends nothing.
            let ends = next.is_none_or(|c| mark != "." || c.is_uppercase() || !c.is_alphanumeric());
            (ends && (after.is_empty() || after.starts_with(char::is_whitespace))).then_some(at)
        }) {
            let stop = end + usize::from(rest[end..].starts_with('?'));
            found.push(rest[..stop].trim());
            rest = rest[end + 1..].trim_start();
        }
        found.push(rest.trim());
    }
    found.retain(|sentence| !sentence.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::thread::{Said, Thread};

    fn proposed(role: Role, text: &str) -> Vec<(Facet, String)> {
        let mut thread = Thread::new("x", "c");
        thread.follow("a", None, Said::new(role, Value::from(text)));
        let talk = thread.finish(None);
        let notes = proposals(&talk);
        for note in &notes {
            assert_eq!(note.draft.content.provenance.messages[0].message, talk.messages[0].id);
            assert_eq!(note.draft.status, Status::Candidate);
            assert!(note.draft.validate().is_ok());
        }
        notes
            .into_iter()
            .map(|note| (note.draft.content.facet, note.draft.content.body.text))
            .collect()
    }

    #[test]
    fn what_a_person_asks_to_remember_is_proposed() {
        let cases = [
            (
                "Hi! Remember that my hive no. 3 weighs 41.5 kg. Thanks.",
                Facet::Fact,
                "my hive no. 3 weighs 41.5 kg",
            ),
            ("I prefer metric units.", Facet::Preference, "I prefer metric units"),
            ("From now on, answer in French!", Facet::Instruction, "From now on, answer in French"),
            ("- My name is Robin", Facet::Fact, "My name is Robin"),
            ("Merk dir, dass ich Imker bin.", Facet::Fact, "ich Imker bin"),
        ];
        for (text, facet, expected) in cases {
            assert_eq!(proposed(Role::User, text), [(facet, expected.to_owned())], "{text}");
        }
    }

    #[test]
    fn what_is_asked_quoted_or_said_by_others_is_not() {
        for text in [
            "Do you remember that I like tea?",
            "I like tea?",
            "```\nremember that x is y\n```",
            "> I prefer tabs over spaces",
            "I like it",
            "Write a text that begins with: I prefer",
        ] {
            assert_eq!(proposed(Role::User, text), [], "{text}");
        }
        assert_eq!(proposed(Role::Assistant, "Remember that bees sleep."), []);
    }

    #[test]
    fn the_same_words_are_one_proposal_everywhere() {
        let two = "I prefer metric units.\nI prefer  metric units!";
        assert_eq!(proposed(Role::User, two).len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a-zé .!?;>`\n-]{0,60}") {
            sentences(&text);
            proposed(Role::User, &text);
        }
    }
}
