use super::*;

/// Texts that hold something, invented but of the true form.
const TRUE: &[(&str, Finding)] = &[
    ("my key is sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXyZ, keep it", Finding::Secret),
    ("sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", Finding::Secret),
    ("export GH=ghp_0123456789abcdefABCDEF0123456789abcd", Finding::Secret),
    ("github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz0123456789", Finding::Secret),
    ("aws: AKIAIOSFODNN7EXAMPLE", Finding::Secret),
    ("maps AIzaSyA1234567890abcdefghijklmnopqrstu", Finding::Secret),
    ("slack xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx", Finding::Secret),
    ("stripe sk_live_4eC39HqLyjWDarjtT1zdp7dc", Finding::Secret),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\n-----END", Finding::Secret),
    (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
        Finding::Secret,
    ),
    ("the wifi password: hunter2024", Finding::Secret),
    ("Passwort = \"geheim99\"", Finding::Secret),
    ("card 4111 1111 1111 1111, thanks", Finding::Card),
    ("pay with 5500-0000-0000-0004.", Finding::Card),
    ("378282246310005", Finding::Card),
    ("6011111111111117", Finding::Card),
    ("3530111333300000", Finding::Card),
    ("(30569309025904)", Finding::Card),
    ("send it to DE89 3704 0044 0532 0130 00", Finding::Iban),
    ("GB82WEST12345698765432", Finding::Iban),
    ("IBAN: CH93 0076 2011 6238 5295 7.", Finding::Iban),
    ("NL91ABNA0417164300", Finding::Iban),
    ("write to robin.smith+bees@mail.example.org!", Finding::Email),
    ("<a@b.co>", Finding::Email),
    ("Robin: robin@example.com", Finding::Email),
    ("call +49 171 2345678", Finding::Phone),
    ("+1 (555) 123-4567", Finding::Phone),
    ("+44-20-7946-0958", Finding::Phone),
    ("my number is 555-234-5678", Finding::Phone),
    ("(212) 555-0187", Finding::Phone),
    ("SSN 078-05-1120", Finding::NationalId),
];

/// Texts that look a little like it.
const FALSE: &[&str] = &[
    "",
    "scikit-learn, or sk-learn-is-a-library-for-python, is fine",
    "sk-",
    "the sk-8 board",
    "ghp_ is how tokens begin",
    "AKIA is a prefix",
    "class SG.UI.Button",
    "what is a good password?",
    "the password: forgotten",
    "password: ********",
    "api key: see the vault",
    "-----BEGIN PUBLIC KEY-----",
    "eyJ is how it begins",
    "4111 1111 1111 1112",
    "1773480413000",
    "1234567890123456",
    "0000 0000 0000 0000",
    "order 4111111111111111x",
    "commit 4242424242424242deadbeef",
    "3.4111111111111111",
    "tracking 9400 1000 0000 0000 0000 00",
    "DE89 3704 0044 0532 0130 01",
    "ISBN 978-3-16-148410-0",
    "DESIGN DOCUMENT 12345678901234567890",
    "@types/node@20.1.3",
    "user@localhost",
    "git@github.com:yore/yore.git",
    "https://user@host.example/path",
    "a @ b.com",
    "@robin",
    "2 + 2 = 4",
    "+1",
    "C++17 and 1+1234567890",
    "2026-03-14T09:26:53",
    "the years 1990-1999",
    "10-11-2026",
    "version 1.2.3-4567",
    "127.0.0.1:7070",
    "123-456-7890 is the test number, begins with one",
    "000-12-3456",
    "666-12-3456",
    "900-12-3456",
    "123-00-4567",
    "2026-10-0001-12",
    "8c4f8bd1-1234-4123-8123-123456789012",
    "ünïcödé @ über.example",
    "日本語@テスト",
];

#[test]
fn true_cases_are_found_and_false_ones_are_not() {
    for (text, finding) in TRUE {
        assert_eq!(findings(text), BTreeSet::from([*finding]), "{text}");
    }
    for text in FALSE {
        assert_eq!(findings(text), BTreeSet::new(), "{text}");
    }
}

#[test]
fn what_stands_in_the_middle_of_words_in_any_script_is_found_and_nothing_panics() {
    for (text, finding) in TRUE {
        for (before, after) in [("你好 ", "。再见"), ("— ", " —"), ("é, ", "\n"), ("🐝 ", " 🐝")]
        {
            let text = format!("{before}{text}{after}");
            assert!(findings(&text).contains(finding), "{text}");
        }
    }
    let text = "+49 é@ü.example 4111é1111 DE89é3704 sk-é password: é1234567";
    for (at, _) in text.char_indices() {
        std::hint::black_box([findings(&text[at..]), findings(&text[..at])]);
    }
}
