//! What a person does in the first minute, with no server anywhere.

use crate::common::Home;

#[test]
fn what_was_remembered_is_recalled_without_a_server() {
    let home = Home::new();
    home.remember(&["I am allergic to peanuts"]);
    home.remember(&["the car is parked on the third floor"]);
    let found = home.recall(&["what", "food", "should", "I", "avoid?"]);
    assert_eq!(found.first().map(String::as_str), Some("I am allergic to peanuts"));
}

#[test]
fn two_commands_at_once_share_one_vault() {
    let home = Home::new();
    let texts: Vec<String> = (0..4).map(|n| format!("statement number {n}")).collect();
    let children: Vec<_> =
        texts.iter().map(|text| home.command(&["remember", text]).spawn().unwrap()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{err}");
    }
    let mut all = home.all();
    all.sort();
    assert_eq!(all, texts);
}

#[test]
fn text_comes_through_a_pipe() {
    let home = Home::new();
    let done = home.piped(&["remember", "-"], b"tea, no sugar\n");
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(home.all(), ["tea, no sugar"]);
}

#[test]
fn saying_it_again_makes_no_second_memory() {
    let home = Home::new();
    let first = home.remember(&["tea, no sugar"]);
    let second = home.remember(&["Tea,  no SUGAR"]);
    assert_eq!(first, second);
    assert_eq!(home.all().len(), 1);
}

#[test]
fn a_memory_is_revised_shown_and_brought_back() {
    let home = Home::new();
    let id = home.remember(&["--tag", "drinks", "tea, no sugar"]);
    let short = &id[..8];
    home.ok(&["revise", short, "coffee, black"]);
    let memory = home.json(&["get", short]);
    assert_eq!(memory["head"]["body"]["text"], "coffee, black");
    assert_eq!(memory["head"]["tags"][0], "drinks");
    let history = home.json(&["history", short]);
    assert_eq!(history.as_array().unwrap().len(), 2);
    home.ok(&["revise", short, "--to-version", "1"]);
    assert_eq!(home.all(), ["tea, no sugar"]);
    home.fails(&["revise", short, "--expect", "1", "milk"], 6, &["conflict"]);
    home.fails(&["revise", short], 2, &["nothing to change"]);
}

#[test]
fn forgetting_takes_ids_from_a_pipe() {
    let home = Home::new();
    let ids: Vec<String> =
        ["one", "two", "three, the last"].map(|text| home.remember(&[text])).to_vec();
    let piped = format!("{}\n{}\n", ids[0], ids[1]);
    let done = home.piped(&["forget", "--ids", "-"], piped.as_bytes());
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(home.all(), ["three, the last"]);
    let gone = home.ok(&["list", "--status", "tombstoned", "--json"]);
    assert_eq!(gone.lines().count(), 2);
    home.fails(&["forget", "--erase", &ids[2]], 2, &["--yes"]);
    home.fails(&["traces", "three, the last"], 6, &["1 place"]);
    home.ok(&["forget", "--erase", "--yes", &ids[2]]);
    assert!(home.ok(&["traces", "three, the last"]).contains("nowhere"));
    home.fails(&["get", &ids[2]], 3, &["not found"]);
}

#[test]
fn a_context_is_a_block_of_text_alone() {
    let home = Home::new();
    home.remember(&["I am allergic to peanuts"]);
    let frame = home.ok(&["context", "--tokens", "300", "what food should I avoid?"]);
    assert!(frame.contains("I am allergic to peanuts"), "{frame}");
    let search = home.json(&["search", "peanuts"]);
    assert_eq!(search["results"].as_array().unwrap().len(), 1);
}
