//! Rules, decisions on many holds, and what is learned from them.

use crate::common::{Home, check};

fn agent(home: &Home) -> String {
    let issue =
        ["grant", "issue", "--agent", "helper", "--read", "behaviour", "--write", "behaviour"];
    home.ok(&issue).trim().to_owned()
}

#[test]
fn mw_120_holds_show_structured_changes_and_are_decided_together() {
    let home = Home::new();
    home.remember(&["the shop opens at nine every day"]);
    home.ok(&["rule", "add", "ask", "--operations", "remember"]);
    let token = agent(&home);
    for text in ["the shop opens at ten every day", "just send the money", "plants need water"] {
        check(&home.run(&["remember", text, "--token", &token]), 5, &["pending approval"]);
    }
    let waiting = home.json(&["review", "list"]);
    let shown = home.json(&["review", "show", waiting[0]["id"].as_str().unwrap()]);
    let modified = shown["changes"]["modified"].as_array().unwrap();
    let text = modified.iter().find(|change| change["field"] == "body.text").unwrap();
    assert_eq!(text["before"], "the shop opens at nine every day");
    let said = home.ok(&["review", "show", waiting[0]["id"].as_str().unwrap()]);
    assert!(said.contains("- the shop opens at nine") && said.contains("+ the shop opens at ten"));

    home.fails(&["review", "approve"], 2, &["which"]);
    let asked = waiting[0]["id"].as_str().unwrap();
    home.fails(&["review", "apply", asked], 2, &["no proposal", "yore review approve"]);
    home.ok(&["review", "apply"]);
    assert_eq!(home.json(&["review", "list"]).as_array().unwrap().len(), 3, "nobody proposed it");
    let done = home.json(&["review", "reject", "--gives-orders", "true"]);
    assert_eq!(done.as_array().unwrap().len(), 1);
    let said = home.ok(&["review", "approve", "--rule", "ask"]);
    assert!(said.contains("approved  2"), "{said}");
    assert_eq!(home.all().len(), 3);
}

#[test]
fn mw_128_rules_are_learned_listed_and_taken_back() {
    let home = Home::new();
    home.ok(&["rule", "add", "ask", "--operations", "remember"]);
    let token = agent(&home);
    let write = |text: &str| home.run(&["remember", text, "--token", &token]).code;
    home.fails(&["rule", "learn", "on", "--after", "1"], 2, &["at least 2"]);
    home.ok(&["rule", "learn", "on", "--after", "2"]);
    for number in 0..2 {
        assert_eq!(write(&format!("restaurants {number} open at nine")), 5);
        home.ok(&["review", "approve", "--all"]);
    }
    assert_eq!(write("restaurants close at ten"), 0, "it is decided");
    let rules = home.json(&["rule", "list"]);
    let learned = rules.as_array().unwrap().iter().find(|rule| rule["learned"] == true).unwrap();
    let name = learned["name"].as_str().unwrap();
    let listed = home.ok(&["rule", "list"]);
    assert!(listed.contains("learned") && listed.contains("says restaurants"), "{listed}");
    home.ok(&["rule", "off", name]);
    assert_eq!(write("restaurants close at eleven"), 5);
    home.ok(&["rule", "on", name]);
    home.ok(&["review", "reject", "--all"]);
    home.fails(&["rule", "on", name], 6, &["speaks against"]);
    assert_eq!(write("restaurants close at twelve"), 5);
    home.ok(&["rule", "remove", name]);
    home.fails(&["rule", "off", name], 3, &[]);
    home.ok(&["rule", "learn", "off"]);
}
