use crate::common::Home;

#[test]
fn a_server_keeps_the_stores_of_its_configuration_up_to_date() {
    let home = Home::new();
    home.ok(&["remember", "--agent", "assistant", "tea is served at four"]);
    assert_eq!(home.json(&["stores", "list"]), serde_json::json!([]), "nobody serves yet");
    let file = home.path("notes.db");
    let config = home.path("config/yore/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let block =
        format!("[[stores]]\nname = \"notes\"\nurl = \"sqlite-vec://{}\"\n", file.display());
    std::fs::write(&config, block).unwrap();

    let server = home.serve();
    let listed = home.ok(&["stores", "check"]);
    assert!(listed.contains("notes") && listed.contains("sqlite-vec"), "{listed}");
    home.ok(&["remember", "--agent", "assistant", "coffee is served at ten"]);
    let repaired = home.json(&["stores", "repair", "notes"]);
    let delivered = ["created", "unchanged"].map(|name| repaired[0][name].as_u64().unwrap());
    assert_eq!(delivered.iter().sum::<u64>(), 2, "{repaired}");
    assert!(file.exists());
    assert_eq!(home.run(&["stores", "repair", "other"]).code, 3);
    drop(server);

    std::fs::write(&config, "[[stores]]\nname = \"notes\"\nurl = \"redis://x\"\n").unwrap();
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0"]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("names no store that is known"), "{refused:?}");
}
