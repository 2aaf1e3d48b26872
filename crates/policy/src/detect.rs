//! Secrets and personal data in a text, told by their form.
//!
//! Forms with a check sum (cards, accounts) are told by it, keys by the beginnings that their
//! makers gave them, and everything else only where it can hardly be something else. What is
//! found is never repeated: only its sort.

use std::collections::BTreeSet;

use yore_domain::sensitive::Finding;

/// Beginnings of keys and tokens, and how many characters follow at least.
const KEYS: [(&str, usize); 21] = [
    ("sk-", 20),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("sk_test_", 16),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 22),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("xapp-", 20),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 35),
    ("npm_", 30),
    ("hf_", 30),
    ("ya29.", 20),
    ("SG.", 30),
];
/// No key with its beginning is shorter.
const SHORTEST_KEY: usize = 20;
/// Words before a password, in small letters.
const PASSWORDS: [&str; 8] = [
    "password",
    "passwort",
    "passphrase",
    "passwd",
    "contraseña",
    "mot de passe",
    "api key",
    "secret key",
];
/// Bytes before a sign that may be such a word.
const BEFORE: usize = 64;
/// Countries of accounts, and how long their numbers are.
const ACCOUNTS: [(&str, usize); 36] = [
    ("AD", 24),
    ("AE", 23),
    ("AT", 20),
    ("BE", 16),
    ("BG", 22),
    ("CH", 21),
    ("CY", 28),
    ("CZ", 24),
    ("DE", 22),
    ("DK", 18),
    ("EE", 20),
    ("ES", 24),
    ("FI", 18),
    ("FR", 27),
    ("GB", 22),
    ("GR", 27),
    ("HR", 21),
    ("HU", 28),
    ("IE", 22),
    ("IL", 23),
    ("IS", 26),
    ("IT", 27),
    ("LI", 21),
    ("LT", 20),
    ("LU", 20),
    ("LV", 21),
    ("MC", 27),
    ("MT", 31),
    ("NL", 18),
    ("NO", 15),
    ("PL", 28),
    ("PT", 25),
    ("RO", 24),
    ("SE", 24),
    ("SI", 19),
    ("SK", 24),
];

/// Tells whether a text holds one sort.
type Check = fn(&str) -> bool;

/// Returns what is found in a text.
#[must_use]
pub fn findings(text: &str) -> BTreeSet<Finding> {
    let mut found = BTreeSet::new();
    let checks: [(Finding, Check); 6] = [
        (Finding::Secret, has_secret),
        (Finding::Card, has_card),
        (Finding::Iban, has_account),
        (Finding::Email, has_address),
        (Finding::Phone, has_phone),
        (Finding::NationalId, has_national_id),
    ];
    // All but secrets have a digit or this sign.
    let plain = !text.bytes().any(|byte| byte.is_ascii_digit() || byte == b'@');
    for (finding, check) in checks {
        if !(plain && finding != Finding::Secret) && check(text) {
            found.insert(finding);
        }
    }
    found
}

fn has_secret(text: &str) -> bool {
    if text.contains("PRIVATE KEY-----") && text.contains("-----BEGIN ") {
        return true;
    }
    let is_part = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'/')
    };
    let mut from = 0;
    let mut word = |to: usize| {
        let word = text.get(from..to).filter(|word| word.len() >= SHORTEST_KEY);
        from = to + 1;
        word.is_some_and(|word| is_key(word) || is_signed_token(word))
    };
    text.bytes().enumerate().any(|(at, byte)| !is_part(&byte) && word(at))
        || word(text.len())
        || has_password(text)
}

/// A word that begins as keys do and goes on as nobody writes words.
fn is_key(word: &str) -> bool {
    KEYS.iter().any(|(begin, least)| {
        word.strip_prefix(begin).is_some_and(|rest| {
            let longest = rest.split(['-', '.', '_', '/']).map(str::len).max().unwrap_or(0);
            rest.len() >= *least && longest >= 12 && rest.bytes().any(|byte| byte.is_ascii_digit())
        })
    })
}

/// A JWS: three parts, of which the first two are JSON.
fn is_signed_token(word: &str) -> bool {
    let mut parts = word.split('.');
    let (Some(head), Some(claims), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    [head, claims].iter().all(|part| part.starts_with("eyJ") && part.len() >= 12)
        && signature.len() >= 20
}

/// A word for a password, then a colon or an equals sign, then something that has digits.
fn has_password(text: &str) -> bool {
    // Most texts have few of these signs: what stands before is looked at only there.
    text.match_indices([':', '=']).any(|(at, _)| {
        let before = text[..at].trim_end();
        let near = before.ceil_char_boundary(before.len().saturating_sub(BEFORE));
        let before = before[near..].to_lowercase();
        if !PASSWORDS.iter().any(|word| before.ends_with(word)) {
            return false;
        }
        let said = text[at + 1..].trim_start().trim_start_matches(['"', '\'', '`']);
        let said = said.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
        let said = said.into_iter().next().unwrap_or_default();
        let digits = said.bytes().filter(u8::is_ascii_digit).count();
        said.chars().count() >= 6 && digits > 0 && digits < said.len()
    })
}

/// Runs of digits that single separators may part, with what stands around each.
fn numbers<'a>(
    text: &'a str,
    separators: &'static [char],
) -> impl Iterator<Item = (String, &'a str, &'a str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = at + text[at..].find(|c: char| c.is_ascii_digit())?;
        let mut digits = String::new();
        let (mut end, mut parted) = (from, false);
        for (place, c) in text[from..].char_indices() {
            if c.is_ascii_digit() {
                digits.push(c);
                end = from + place + 1;
                parted = false;
            } else if separators.contains(&c) && !parted {
                parted = true;
            } else {
                break;
            }
        }
        at = end;
        Some((digits, &text[..from], &text[end..]))
    })
}

fn stands_alone(before: &str, after: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    !before.ends_with(joins) && !after.starts_with(joins)
}

fn has_card(text: &str) -> bool {
    numbers(text, &[' ', '-']).any(|(digits, before, after)| {
        // A decimal point makes it an amount, and a slash a part of an address.
        !before.ends_with(['.', '/'])
            && stands_alone(before, after)
            && is_issued(&digits)
            && digits.bytes().any(|byte| byte != digits.as_bytes()[0])
            && luhn(&digits)
    })
}

/// Whether a number lies in a range from which cards are issued, with the length of that range.
fn is_issued(digits: &str) -> bool {
    let begins = |from: u32, to: u32, length: usize| {
        digits
            .get(..length)
            .and_then(|head| head.parse().ok())
            .is_some_and(|head: u32| (from..=to).contains(&head))
    };
    match digits.len() {
        13 | 19 => begins(4, 4, 1),
        14 => begins(300, 305, 3) || begins(36, 36, 2) || begins(38, 39, 2),
        15 => begins(34, 34, 2) || begins(37, 37, 2),
        16 => {
            begins(4, 4, 1)
                || begins(51, 55, 2)
                || begins(2221, 2720, 4)
                || begins(6011, 6011, 4)
                || begins(644, 659, 3)
                || begins(3528, 3589, 4)
                || begins(62, 62, 2)
        }
        _ => false,
    }
}

fn luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(place, byte)| {
            let digit = u32::from(byte - b'0') * if place % 2 == 1 { 2 } else { 1 };
            if digit > 9 { digit - 9 } else { digit }
        })
        .sum();
    sum.is_multiple_of(10)
}

fn has_account(text: &str) -> bool {
    let bytes = text.as_bytes();
    let countries = bytes
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| pair[0].is_ascii_uppercase() && pair[1].is_ascii_uppercase());
    countries
        .filter_map(|(at, pair)| {
            let known = ACCOUNTS.iter().find(|(country, _)| country.as_bytes() == pair)?;
            Some((at, known.1))
        })
        .any(|(at, length)| {
            let alone = !text[..at].ends_with(|c: char| c.is_alphanumeric());
            let mut number = String::with_capacity(length);
            let mut rest = bytes[at..].iter();
            while number.len() < length {
                match rest.next() {
                    Some(byte) if byte.is_ascii_digit() || byte.is_ascii_uppercase() => {
                        number.push(char::from(*byte));
                    }
                    Some(b' ') if number.len().is_multiple_of(4) && !number.is_empty() => {}
                    Some(_) | None => return false,
                }
            }
            let ended = !rest.next().is_some_and(|byte| byte.is_ascii_alphanumeric());
            alone && ended && mod_97(&number) == 1
        })
}

/// The check of ISO 13616: the first four go to the end, letters become numbers.
fn mod_97(number: &str) -> u32 {
    let (head, tail) = number.split_at(4);
    tail.chars().chain(head.chars()).fold(0, |rest, c| match c.to_digit(36) {
        Some(value) if value < 10 => (rest * 10 + value) % 97,
        Some(value) => (rest * 100 + value) % 97,
        None => rest,
    })
}

fn has_address(text: &str) -> bool {
    text.match_indices('@').any(|(at, _)| {
        let is_local =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '%' | '+' | '-');
        let local = &text[text[..at]
            .rfind(|c| !is_local(c))
            .map_or(0, |place| place + text[place..].chars().next().map_or(1, char::len_utf8))
            ..at];
        let rest = &text[at + 1..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-')));
        let (domain, after) = rest.split_at(end.unwrap_or(rest.len()));
        let domain = domain.trim_end_matches(['.', '-']);
        // What a colon and a path follow is a place of a repository.
        let path = after
            .strip_prefix(':')
            .is_some_and(|path| path.starts_with(|c: char| c.is_alphanumeric() || c == '/'));
        let Some((name, top)) = domain.rsplit_once('.') else { return false };
        let is_top = top.len() >= 2 && top.bytes().all(|byte| byte.is_ascii_alphabetic());
        let host = text[..at - local.len()].ends_with("://") || text[..at].ends_with('/');
        !local.is_empty()
            && !local.starts_with(['.', '-'])
            && !name.is_empty()
            && !name.starts_with(['.', '-'])
            && is_top
            && !path
            && !host
    })
}

fn has_phone(text: &str) -> bool {
    abroad(text) || at_home(text)
}

/// `+`, a country and a number, parted in any way.
fn abroad(text: &str) -> bool {
    text.match_indices('+').any(|(at, _)| {
        let before = &text[..at];
        let alone = !before.ends_with(|c: char| c.is_alphanumeric() || c == '+');
        let mut digits = 0;
        let mut first = None;
        let mut ended = None;
        for c in text[at + 1..].chars() {
            if c.is_ascii_digit() {
                first.get_or_insert(c);
                digits += 1;
            } else if !matches!(c, ' ' | '-' | '.' | '(' | ')' | '/') {
                ended = Some(c);
                break;
            }
            if digits > 15 {
                break;
            }
        }
        let first_is_next = text[at + 1..].starts_with(|c: char| matches!(c, '1'..='9'));
        alone
            && first_is_next
            && (9..=15).contains(&digits)
            && !ended.is_some_and(|c| c.is_alphabetic() && digits < 9)
    })
}

/// `(555) 123-4567` and `555-123-4567`.
fn at_home(text: &str) -> bool {
    numbers(text, &['-']).any(|(digits, before, after)| {
        if !stands_alone(before, after) {
            return false;
        }
        let written = &text[before.len()..text.len() - after.len()];
        let parts: Vec<usize> = written.split('-').map(str::len).collect();
        let begins =
            |place: usize| digits.as_bytes().get(place).is_some_and(|digit| *digit >= b'2');
        let area = before.trim_end().strip_suffix(')').is_some_and(|before| {
            let area = before.rsplit('(').next().unwrap_or_default();
            area.len() == 3 && area.bytes().all(|byte| byte.is_ascii_digit())
        });
        (parts == [3, 3, 4] && begins(0) && begins(3)) || (parts == [3, 4] && area && begins(0))
    })
}

/// A social security number of the United States, in the way it is always written.
fn has_national_id(text: &str) -> bool {
    numbers(text, &['-']).any(|(digits, before, after)| {
        let written = &text[before.len()..text.len() - after.len()];
        let parts: Vec<&str> = written.split('-').collect();
        let [area, group, serial] = parts.as_slice() else { return false };
        (area.len(), group.len(), serial.len()) == (3, 2, 4)
            && digits.len() == 9
            && stands_alone(before, after)
            && !before.ends_with('-')
            && !after.starts_with('-')
            && !["000", "666"].contains(area)
            && !area.starts_with('9')
            && *group != "00"
            && *serial != "0000"
    })
}

#[cfg(test)]
mod tests;
