//! Short-term memory, what is proposed about memories, and how they are.

use crate::common::Home;

#[test]
fn mw_102_a_dry_run_shows_each_score_with_its_parts_and_a_pass_does_it() {
    let home = Home::new();
    // Nothing happens by itself here.
    let file = home.path("config/yore/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "[consolidation]\nevery_seconds = 0\n").unwrap();
    let good = home.remember(&["--kind", "working", "--salience", "0.9", "allergic to nuts"]);
    home.remember(&["--kind", "working", "--salience", "0.1", "the kettle is on"]);
    let shown = home.ok(&["consolidate", "--dry-run"]);
    for part in ["recency", "0.90×0.6", "confidence", "promote", "keep", "allergic to nuts"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let other = ["consolidate", "--dry-run", "--scorer", "reference", "--threshold", "0.9"];
    let told = home.json(&other);
    assert_eq!((&told["scorer"], &told["fates"]["keep"]), (&"reference".into(), &2.into()));
    home.fails(&["consolidate", "--scorer", "nobody"], 2, &["balanced, reference"]);
    assert_eq!(home.json(&["get", &good])["head"]["kind"], "working");

    let done = home.json(&["consolidate"]);
    assert_eq!((&done["fates"]["promote"], &done["fates"]["keep"]), (&1.into(), &1.into()));
    assert_eq!(home.json(&["get", &good])["head"]["kind"], "semantic");
    assert_eq!(home.json(&["job", "list"])[0]["kind"], "consolidate");
    let nobody = home.json(&["consolidate", "--agent", "nobody"]);
    assert_eq!(nobody["items"].as_array().unwrap().len(), 0);
}

#[test]
fn what_a_rule_holds_is_listed_with_its_reasoning() {
    let home = Home::new();
    home.ok(&["review", "rule", "add", "ask-me", "--operations", "consolidate"]);
    let id = home.remember(&["--kind", "working", "--salience", "0.9", "allergic to nuts"]);
    home.json(&["consolidate"]);
    let listed = home.ok(&["review", "list"]);
    for part in ["yore", "revise", "ask-me", "promote:", "reaches"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let waiting = home.json(&["review", "list"]);
    assert_eq!(waiting.as_array().unwrap().len(), 1, "asked once, whoever looked first");
    home.ok(&["review", "approve", waiting[0]["id"].as_str().unwrap()]);
    assert_eq!(home.json(&["get", &id])["head"]["kind"], "semantic");
}

#[test]
fn mw_126_the_doctor_says_how_memories_are() {
    let home = Home::new();
    home.remember(&["Anna takes milk in her morning coffee"]);
    home.remember(&["Anna takes no milk in her morning coffee"]);
    home.remember(&["--kind", "identity", "the car needs new tyres"]);
    let found = home.json(&["doctor"]);
    let checks = found["checks"].as_array().unwrap();
    let memories = checks.iter().find(|check| check["what"] == "memories").unwrap();
    assert_eq!(memories["state"], "ok");
    let said = memories["found"].as_str().unwrap();
    for part in ["3 live", "1 pair nearly the same", "semantic 2", "identity 1"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
