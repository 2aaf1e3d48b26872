use serde_json::json;

use super::*;

fn known(proposed: Option<Option<&str>>) -> Known {
    Known {
        memory: Some("m".into()),
        file: "f".into(),
        record: "v".into(),
        fixed: String::new(),
        proposed: proposed.map(|file| Proposed { file: file.map(str::to_owned), hold: "h".into() }),
    }
}

#[test]
fn nothing_that_a_person_wrote_is_lost() {
    let in_step = known(None);
    let (asked, gone) = (known(Some(Some("f2"))), known(Some(None)));
    type Case<'a> = (Option<&'a Known>, Option<&'a str>, Option<&'a str>, bool, Step);
    let table: [Case<'_>; 20] = [
        (Some(&in_step), Some("f"), Some("v"), false, Step::Rest),
        (Some(&in_step), Some("f"), Some("v2"), false, Step::Write),
        (Some(&in_step), Some("f2"), Some("v"), false, Step::Revise),
        (Some(&in_step), Some("f2"), Some("v2"), false, Step::Propose),
        (Some(&in_step), Some("f2"), Some("v2"), true, Step::Settle),
        (Some(&in_step), None, Some("v"), false, Step::ProposeForgetting),
        (Some(&in_step), None, Some("v2"), false, Step::Write),
        (Some(&in_step), Some("f"), None, false, Step::Remove),
        (Some(&in_step), Some("f2"), None, false, Step::Propose),
        (Some(&in_step), None, None, false, Step::Drop),
        (None, None, Some("v"), false, Step::Write),
        (None, Some("f"), None, false, Step::TakeIn),
        (None, Some("f"), Some("v"), false, Step::Propose),
        (None, Some("f"), Some("v"), true, Step::Settle),
        (Some(&asked), Some("f2"), Some("v2"), false, Step::Wait),
        (Some(&asked), Some("f3"), Some("v2"), false, Step::Propose),
        (Some(&asked), Some("f3"), Some("v"), false, Step::Propose),
        (Some(&asked), None, Some("v2"), false, Step::Write),
        (Some(&gone), None, Some("v"), false, Step::Wait),
        (Some(&asked), Some("f2"), None, false, Step::Wait),
    ];
    for (known, file, vault, same, wanted) in table {
        assert_eq!(decide(known, file, vault, same), wanted, "{known:?} {file:?} {vault:?}");
    }
    // Whatever happens, a file that changed is neither written over nor removed.
    let all = [None, Some("f"), Some("f2"), Some("v"), Some("v2")];
    for file in [Some("f2"), Some("f3")] {
        for vault in all {
            for known in [None, Some(&in_step), Some(&asked)] {
                let step = decide(known, file, vault, false);
                assert!(!matches!(step, Step::Write | Step::Remove | Step::Drop), "{step:?}");
            }
        }
    }
}

#[test]
fn a_patch_holds_what_can_be_revised_and_names_what_cannot() {
    let object = |value: Value| value.as_object().unwrap().clone();
    let vault = object(json!({"id": "a", "kind": "semantic", "body": {"text": "t"},
        "time": {"created": "x", "valid_from": "y", "valid_to": "z"},
        "relations": [{"type": "about"}]}));
    let mut file = vault.clone();
    assert!(same(&file, &vault) && patch(&file, &vault).unwrap().is_empty());
    file["body"]["text"] = json!("t2");
    file.shift_remove("relations");
    file["id"] = json!("b");
    let wanted = object(json!({"body": {"text": "t2"}, "relations": [],
        "time": {"valid_from": "y", "valid_to": "z"}}));
    assert_eq!(patch(&file, &vault).unwrap(), wanted);
    file["time"]["valid_to"] = Value::Null;
    assert_eq!(patch(&file, &vault).unwrap()["time"]["valid_to"], Value::Null);
    file.shift_remove("time");
    assert_eq!(patch(&file, &vault).unwrap()["time"]["valid_to"], "z", "a line is no word");
    file["kind"] = json!("identity");
    assert_eq!(patch(&file, &vault), Err("kind".to_owned()));
}

fn seen(record: Value) -> Seen {
    let record = record.as_object().unwrap().clone();
    let print = files::fingerprint(&record);
    Seen { text: String::new(), record, print }
}

#[test]
fn what_only_the_vault_says_is_named_when_a_file_says_otherwise() {
    let vault = json!({"id": "a", "body": {"text": "t"}, "provenance": {"actor": "o"},
        "time": {"created": "x", "valid_from": "y", "valid_to": null}});
    let record = vault.as_object().unwrap();
    let print = files::fingerprint(record);
    let noted = Known {
        memory: Some("m".into()),
        file: print.clone(),
        record: print,
        fixed: fixed_print(record),
        proposed: None,
    };
    let older = Known { fixed: String::new(), ..noted.clone() };
    for known in [Some(&noted), Some(&older), None] {
        assert_eq!(overreach(known, &seen(vault.clone()), Some(record)), None);
        let mut text = vault.clone();
        text["body"]["text"] = json!("t2");
        text["time"]["valid_to"] = json!("z");
        assert_eq!(overreach(known, &seen(text), Some(record)), None);
        for (pointer, name) in [
            ("/time/valid_from", "time.valid_from"),
            ("/time/created", "time.created"),
            ("/provenance/actor", "provenance"),
            ("/id", "id"),
        ] {
            let mut file = vault.clone();
            *file.pointer_mut(pointer).unwrap() = json!("other");
            let found = overreach(known, &seen(file), Some(record));
            assert_eq!(found.as_deref(), Some(name), "{known:?}");
        }
    }
    // Where the vault moved on, what the file said before counts.
    let mut moved = vault.clone();
    moved["provenance"]["actor"] = json!("p");
    let mut file = vault.clone();
    file["body"]["text"] = json!("t2");
    assert_eq!(overreach(Some(&noted), &seen(file), moved.as_object()), None);
}

#[test]
fn members_that_no_record_has_are_named() {
    let object = |value: Value| value.as_object().unwrap().clone();
    assert_eq!(unknown(&object(json!({"kind": "semantic", "body": {"text": "t"}})), None), None);
    for (file, name) in [
        (json!({"tags": ["a"]}), "tags"),
        (json!({"title": "t", "body": {"text": "t"}}), "title"),
        (json!({"scope": {"project": "p", "team": "t"}}), "scope.team"),
    ] {
        assert_eq!(unknown(&object(file), None).as_deref(), Some(name));
    }
    let both = object(json!({"x": 1}));
    assert_eq!(unknown(&both, Some(&both)), None, "the vault says it, too");
}

#[test]
fn notes_name_files_of_their_own_directory_only() {
    for good in ["a.ump.md", "a b.ump.md", "a..b.ump.md"] {
        assert!(is_plain(good), "{good}");
    }
    let bad = [
        "",
        ".",
        "..",
        "../a.ump.md",
        "/etc/a.ump.md",
        "a/b.ump.md",
        "a\\b.ump.md",
        ".hidden.ump.md",
        "a.ump.md/",
        "./a.ump.md",
        "a.md",
        "a.ump.md/..",
    ];
    for bad in bad {
        assert!(!is_plain(bad), "{bad}");
    }
}
