use serde_json::{Value, json};

use crate::support::{NOW, Vault, of_agent};

const DOOR: &str = r#"{"name":"door","initial":"shut","states":["shut","open"],"transitions":[
    {"trigger":"open","source":"shut","dest":"open","conditions":"unlocked","unless":["jammed"]},
    {"trigger":"close","source":"open","dest":"shut"},
    {"trigger":"reset","source":"*","dest":"shut"}]}"#;

async fn door(vault: &Vault) -> String {
    vault.holds(json!({"type": "procedural", "content": DOOR, "metadata": {"room": 1}})).await
}

#[tokio::test]
async fn mw_090_mw_091_mw_093_only_a_machine_that_names_no_code_is_remembered() {
    let vault = Vault::new().await;
    let spoil = |from: &str, to: &str| DOOR.replacen(from, to, 1);
    for content in [
        "open the door".to_owned(),
        "[]".to_owned(),
        spoil(r#""name":"door","#, ""),
        spoil(r#""initial":"shut""#, r#""initial":"ajar""#),
        spoil(r#""dest":"open""#, r#""dest":"gone""#),
        spoil(r#""source":"open""#, r#""source":"gone""#),
        spoil(r#""unlocked""#, r#""os.system""#),
        spoil(r#""trigger":"close","#, r#""trigger":"close","before":"rm","#),
        spoil(r#""trigger":"reset""#, r#""trigger":"close""#),
        spoil(r#""initial":"shut""#, r#""initial":"shut","current":"ajar""#),
    ] {
        let body = json!({"type": "procedural", "content": content});
        assert_eq!(vault.refused("remember", body).await.0, 400, "{content}");
    }
    let id = door(&vault).await;
    let hits = vault.hits(json!({"query": DOOR, "types": ["procedural"]})).await;
    assert_eq!((&hits[0]["id"], &hits[0]["content"]), (&json!(id), &json!(DOOR)));
}

#[tokio::test]
async fn mw_092_a_machine_moves_where_it_may_and_remembers_how() {
    let vault = Vault::new().await;
    let id = door(&vault).await;
    let stands = vault.ok("procedures/available", json!({"procedure": "door"})).await;
    assert_eq!(
        stands,
        json!({"id": id, "name": "door", "current": "shut", "available": ["open", "reset"]})
    );
    for spoilt in [
        json!({"trigger": "close"}),
        json!({"trigger": "open"}),
        json!({"trigger": "open", "guards": {"unlocked": true, "jammed": true}}),
    ] {
        let mut asked = spoilt.clone();
        asked["procedure"] = id.as_str().into();
        let refused = vault.refused("procedures/trigger", asked).await;
        assert_eq!(refused, (409, "conflict".to_owned()), "{spoilt}");
    }
    vault.days_pass(1);
    let guards = json!({"unlocked": true});
    let asked = json!({"procedure": "door", "trigger": "open", "guards": guards});
    let moved = vault.ok("procedures/trigger", asked).await;
    assert_eq!((&moved["from"], &moved["current"]), (&json!("shut"), &json!("open")));
    assert_eq!(moved["available"], json!(["close", "reset"]));
    assert_eq!(moved["pending_approval"], false);

    // It is still the same memory, made when it was made, and says where it stands.
    let hits = vault.hits(json!({"query": "door", "types": ["procedural"]})).await;
    assert_eq!((&hits[0]["id"], &hits[0]["created_at"]), (&json!(id), &json!(NOW.millis())));
    assert_eq!(hits[0]["metadata"], json!({"room": 1}));
    let machine: Value = serde_json::from_str(hits[0]["content"].as_str().unwrap()).unwrap();
    assert_eq!(machine["current"], "open");
    assert!(hits[0].get("yore_move").is_none());

    vault.ok("procedures/trigger", json!({"procedure": id, "trigger": "close"})).await;
    let told = vault.ok("procedures/history", json!({"procedure": id})).await;
    let steps = told["steps"].as_array().unwrap();
    let words = |step: &Value| (step["trigger"].clone(), step["from"].clone(), step["to"].clone());
    assert_eq!(
        steps.iter().map(words).collect::<Vec<_>>(),
        [
            (json!("open"), json!("shut"), json!("open")),
            (json!("close"), json!("open"), json!("shut")),
        ]
    );
    assert_eq!((&steps[0]["guards"], &steps[0]["agent_id"]), (&guards, &json!("agent-a")));
    assert_eq!(vault.audit("revise").await.len(), 2);
}

#[tokio::test]
async fn mw_092_a_replay_starts_over_and_moves_nothing() {
    let vault = Vault::new().await;
    let id = door(&vault).await;
    let asked = json!({"procedure": id, "trigger": "open", "guards": {"unlocked": true}});
    vault.ok("procedures/trigger", asked).await;
    let replay = async |triggers: Value| {
        let mut asked = json!({"procedure": id});
        if !triggers.is_null() {
            asked["triggers"] = triggers;
        }
        vault.ask(&vault.owner, "procedures/replay", &of_agent(asked)).await
    };
    let given = replay(json!(["open", "close"])).await.expect(200);
    assert_eq!(
        (&given["current"], &given["triggers"]),
        (&json!("shut"), &json!(["open", "close"]))
    );
    let past = replay(Value::Null).await.expect(200);
    assert_eq!((&past["current"], &past["triggers"]), (&json!("open"), &json!(["open"])));
    assert_eq!(replay(json!(["close"])).await.refusal(), (409, "conflict"));
    let stands = vault.ok("procedures/available", json!({"procedure": id})).await;
    assert_eq!(stands["current"], "open");
}

#[tokio::test]
async fn mw_093_a_machine_is_its_agents_own() {
    let vault = Vault::new().await;
    let id = door(&vault).await;
    for asked in [
        json!({"procedure": id, "agent_id": "agent-b"}),
        json!({"procedure": "door", "agent_id": "agent-b"}),
        json!({"procedure": "window"}),
    ] {
        let refused = vault.refused("procedures/available", asked.clone()).await;
        assert_eq!(refused, (404, "not_found".to_owned()), "{asked}");
    }
    let fact = vault.fact(DOOR).await;
    let asked = json!({"procedure": fact, "trigger": "reset"});
    assert_eq!(vault.refused("procedures/trigger", asked).await.0, 404);
    let twin = DOOR.replace("shut", "locked");
    vault.holds(json!({"type": "procedural", "content": twin})).await;
    let refused = vault.refused("procedures/available", json!({"procedure": "door"})).await;
    assert_eq!(refused, (409, "conflict".to_owned()));
}

#[tokio::test]
async fn machines_are_listed_by_name_and_shown_whole() {
    let vault = Vault::new().await;
    let id = door(&vault).await;
    let gate = DOOR.replace(r#""name":"door""#, r#""name":"a gate""#);
    vault.holds(json!({"type": "procedural", "content": gate})).await;
    let listed = vault.ok("procedures/list", json!({})).await;
    let names: Vec<&Value> =
        listed["procedures"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, [&json!("a gate"), &json!("door")]);
    let shown = vault.ok("procedures/show", json!({"procedure": "door"})).await;
    assert_eq!((&shown["id"], &shown["current"]), (&json!(id), &json!("shut")));
    assert_eq!(shown["machine"]["transitions"].as_array().unwrap().len(), 3);
    let others = vault.ok("procedures/list", json!({"agent_id": "agent-b"})).await;
    assert_eq!(others, json!({"procedures": []}));
}

#[tokio::test]
async fn mw_090_what_a_machine_leaves_open_is_filled_in() {
    let vault = Vault::new().await;
    let content = r#"{"name":"bake","states":["mix","fold","bake"],"current":"fold"}"#;
    vault.holds(json!({"type": "procedural", "content": content})).await;
    let stands = vault.ok("procedures/available", json!({"procedure": "bake"})).await;
    assert_eq!((&stands["current"], &stands["available"]), (&json!("fold"), &json!([])));
    let hits = vault.hits(json!({"query": "bake", "types": ["procedural"]})).await;
    assert_eq!(hits[0]["content"], content, "and what was said stays as it was said");
}
