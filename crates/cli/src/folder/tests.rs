use serde_json::json;

use super::*;

fn known(proposed: Option<Option<&str>>) -> Known {
    Known {
        memory: Some("m".into()),
        file: "f".into(),
        record: "v".into(),
        proposed: proposed.map(|file| Proposed { file: file.map(str::to_owned), hold: "h".into() }),
    }
}

#[test]
fn nothing_that_a_person_wrote_is_lost() {
    let in_step = known(None);
    let (asked, gone) = (known(Some(Some("f2"))), known(Some(None)));
    type Case<'a> = (Option<&'a Known>, Option<&'a str>, Option<&'a str>, bool, Step);
    let table: [Case<'_>; 19] = [
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
        "time": {"created": "x", "valid_to": null}, "relations": [{"type": "about"}]}));
    let mut file = vault.clone();
    assert!(same(&file, &vault) && patch(&file, &vault).unwrap().is_empty());
    file["body"]["text"] = json!("t2");
    file.shift_remove("relations");
    file["id"] = json!("b");
    let wanted = object(json!({"body": {"text": "t2"}, "relations": []}));
    assert_eq!(patch(&file, &vault).unwrap(), wanted);
    file["kind"] = json!("identity");
    assert_eq!(patch(&file, &vault), Err("kind".to_owned()));
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
