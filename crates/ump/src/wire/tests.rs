use serde_json::json;

use super::*;

fn record() -> Object {
    let record = json!({
        "ump": "1.0", "id": "urn:ump:abc", "kind": "semantic", "body": {"text": "tea"},
        "scope": {"owner": "did:key:z6MkA", "visibility": "private"},
        "time": {"created": "2026-06-04T10:00:00Z"},
    });
    record.as_object().unwrap().clone()
}

fn refused(path: &str, member: &str, value: Value) {
    let mut spoilt = record();
    let mut at = &mut spoilt;
    let (outer, last) = member.rsplit_once('.').unwrap_or(("", member));
    for name in outer.split('.').filter(|name| !name.is_empty()) {
        at = at.entry(name).or_insert_with(|| json!({})).as_object_mut().unwrap();
    }
    at.insert(last.to_owned(), value.clone());
    let error = read(&spoilt).expect_err(&format!("{member} = {value}")).to_string();
    assert!(error.starts_with(&format!("invalid {path}: ")), "{member}: {error}");
}

#[test]
fn ump_047_what_is_no_record_is_refused_where_it_is_wrong() {
    assert!(read(&record()).is_ok());
    for (path, member, value) in [
        ("ump", "ump", json!("2.0")),
        ("ump", "ump", json!(1.0)),
        ("id", "id", json!("urn:ump:9f2c")),
        ("kind", "kind", json!("emotional")),
        ("kind", "kind", json!(null)),
        ("body.text", "body.text", json!("")),
        ("body.text", "body.text", json!(7)),
        ("body", "body", json!("tea")),
        ("body.structured", "body.structured", json!([])),
        ("scope.owner", "scope.owner", json!("")),
        ("scope.owner", "scope.owner", json!(null)),
        ("scope.visibility", "scope.visibility", json!("secret")),
        ("scope.project", "scope.project", json!(1)),
        ("time.created", "time.created", json!("yesterday")),
        ("time.valid_to", "time.valid_to", json!("2026-13-01T00:00:00Z")),
        ("lifecycle.status", "lifecycle.status", json!("done")),
        ("lifecycle.confidence", "lifecycle.confidence", json!(1.1)),
        ("lifecycle.salience", "lifecycle.salience", json!("high")),
        ("supersedes", "supersedes", json!(["x"])),
        ("superseded_by", "superseded_by", json!("urn:ump:a")),
        ("relations", "relations", json!([{"type": "about"}])),
        ("provenance.method", "provenance", json!({"actor": "a", "actor_kind": "user"})),
        (
            "provenance.actor_kind",
            "provenance",
            json!({"actor": "a", "actor_kind": "x", "method": "m"}),
        ),
        (
            "provenance.evidence",
            "provenance",
            json!({"actor": "a", "actor_kind": "user", "method": "m", "evidence": [{}]}),
        ),
        ("consent.retention", "consent.retention", json!("90 days")),
        ("consent.exportable", "consent.exportable", json!("no")),
        ("consent.redact", "consent.redact", json!("body")),
    ] {
        refused(path, member, value);
    }
    for missing in ["kind", "body", "scope"] {
        let mut spoilt = record();
        spoilt.shift_remove(missing);
        assert!(read(&spoilt).is_err(), "{missing}");
    }
}

#[test]
fn ump_002_another_major_version_is_refused() {
    for good in ["1.0", "1.1", "1.27"] {
        assert_eq!(Wire::parse(good).unwrap(), Wire::V1_0, "{good}");
    }
    assert_eq!(Wire::parse("0.1").unwrap(), Wire::V0_1);
    for bad in ["2.0", "0.2", "0.10", "1", "1.", "1.x", "", "10.0", "01.0", " 1.0"] {
        assert!(Wire::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn ump_013_all_five_kinds_are_taken() {
    for kind in KINDS {
        let mut said = record();
        said.insert("kind".into(), kind.as_str().into());
        assert_eq!(read(&said).unwrap().kind, kind);
    }
}

#[test]
fn ump_015_visibility_is_private_unless_said() {
    let mut said = record();
    said["scope"].as_object_mut().unwrap().shift_remove("visibility");
    assert_eq!(read(&said).unwrap().scope.visibility, Visibility::Private);
}

#[test]
fn ump_016_no_end_is_null_or_absent() {
    let mut said = record();
    assert_eq!(read(&said).unwrap().time.valid_to, None);
    said["time"]["valid_to"] = json!(null);
    assert_eq!(read(&said).unwrap().time.valid_to, None);
    said["time"]["valid_to"] = json!("2026-06-04T12:00:00+02:00");
    assert_eq!(read(&said).unwrap().time.valid_to, read(&said).unwrap().time.created);
}

#[test]
fn ump_017_a_half_life_is_understood_and_other_decay_is_opaque() {
    let mut said = record();
    for (decay, half_life) in
        [("half_life:P90D", Some(Span::days(90))), ("linear:0.1", None), ("half_life:soon", None)]
    {
        said.insert("lifecycle".into(), json!({"decay": decay}));
        assert_eq!(read(&said).unwrap().lifecycle.half_life, half_life, "{decay}");
    }
    assert_eq!(decay_of(Span::days(90)), "half_life:P90D");
}

#[test]
fn ump_021_durations_are_written_as_they_are_read() {
    for text in ["P90D", "PT90S", "P0D", "PT1.5S"] {
        assert_eq!(duration_of(Span::parse_iso(text).unwrap()), text);
    }
    assert_eq!(duration_of(Span::parse_iso("P1Y").unwrap()), "P365D");
}
