use serde_json::json;

use super::*;

#[test]
fn every_facet_counts_as_one_category() {
    for facet in Facet::ALL {
        let homes = CATEGORIES.iter().filter(|(_, facets)| facets.contains(&facet)).count();
        assert_eq!(homes, 1, "{facet}");
    }
    for (word, facets) in CATEGORIES {
        assert_eq!(category_of(word), Some(facets[0]));
        assert_eq!(category_word(facets[0]), word);
    }
    assert_eq!(category_of("opinion"), None);
}

#[test]
fn oamp_031_no_half_life_or_none_of_days_means_no_fading() {
    let of = |decay: Value| decay_of(decay.as_object().unwrap()).unwrap();
    for decay in [json!({}), json!({"half_life_days": null}), json!({"half_life_days": 0})] {
        assert_eq!(of(decay), (None, None));
    }
    assert_eq!(of(json!({"half_life_days": 1.5})).0, Some(Span::seconds(129_600)));
    assert!(of(json!({"half_life_days": 1e300})).0.is_some());
}

#[test]
fn oamp_322_absent_handling_is_governed() {
    let of = |handling: Value| {
        let governance = json!({"sensitivity_class": "public", "handling": handling});
        governance_of(governance.as_object().unwrap()).unwrap().handling.unwrap()
    };
    assert_eq!(of(json!({})), Handling::default());
    let open = of(json!({"export": "ungoverned"}));
    assert!(open.open_export && !open.open_retrieval && !open.open_stream);
}

#[test]
fn ids_are_uuids_of_version_4() {
    for good in ["550e8400-e29b-41d4-a716-446655440000", "550E8400-E29B-41D4-B716-44665544000F"] {
        assert!(uuid(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "550e8400e29b41d4a716446655440000",
        "550e8400-e29b-11d4-a716-446655440000",
        "550e8400-e29b-41d4-c716-446655440000",
        "{550e8400-e29b-41d4-a716-446655440000}",
        "550e8400-e29b-41d4-a716-44665544000g",
    ] {
        assert!(uuid(bad).is_err(), "{bad}");
    }
}
