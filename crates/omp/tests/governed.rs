//! Compliance flags: what inherits them, and who takes them away.

use axum::http::Method;
use serde_json::{Value, json};
use yore_domain::Span;
use yore_domain::grant::Verb;

use crate::support::{NOW, Vault, record, said, talk};

#[tokio::test]
async fn omp_177_a_flag_on_a_message_is_one_of_its_conversation_and_of_what_is_drawn_from_it() {
    let vault = Vault::new().await;
    let mut tea = talk("Tea", "one", "two");
    tea["messages"][0]["x_contains_phi"] = true.into();
    tea["messages"][1]["x_risk_level"] = "medium".into();
    let path = vault.holds(&tea).await;
    let read = vault.get(&path).await.expect(200);
    assert_eq!((&read["x_contains_phi"], &read["x_risk_level"]), (&json!(true), &json!("medium")));
    let listed = vault.get("/conversations").await.expect(200);
    assert_eq!(listed["data"][0]["x_contains_phi"], true, "in lists, too");
    assert_eq!(read.get("x_contains_npi"), None);

    let mut more = said("user", "three", "2026-03-15T10:00:00Z");
    more["x_contains_npi"] = true.into();
    more["x_risk_level"] = "low".into();
    vault.post(&format!("{path}/messages"), &more).await.expect(200);
    let read = vault.get(&path).await.expect(200);
    assert_eq!(read["x_contains_npi"], true, "what is added counts as well");
    assert_eq!(read["x_risk_level"], "medium", "a lower risk lowers nothing");
    let mut again = tea.clone();
    let mut child = said("user", "four", "2026-03-15T11:00:00Z");
    child["x_risk_level"] = "high".into();
    again["messages"].as_array_mut().unwrap().push(child);
    vault.post("/conversations?merge=true", &again).await.expect(200);
    assert_eq!(vault.get(&path).await.expect(200)["x_risk_level"], "high");

    let mut drawn = record("fact", "drinks tea");
    drawn["source_conversations"] = json!([tea["id"]]);
    let made = vault.post("/memories", &drawn).await.expect(201);
    for (name, value) in [
        ("x_contains_phi", json!(true)),
        ("x_contains_npi", json!(true)),
        ("x_risk_level", json!("high")),
    ] {
        assert_eq!(made[name], value, "{name}");
    }
    let free = vault.post("/memories", &record("fact", "rides a bike")).await.expect(201);
    assert_eq!(free.get("x_contains_phi"), None);
}

#[tokio::test]
async fn omp_177_anybody_raises_a_flag_and_only_an_administrator_lowers_one() {
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let memory = record("fact", "drinks tea");
    vault.post("/memories", &memory).await.expect(201);
    let memory = format!("/memories/{}", memory["id"].as_str().unwrap());
    let verbs = [Verb::Read, Verb::Write, Verb::Derive];
    let blind = vault.agent("blind", &verbs).await;
    let asked = json!({
        "agent": "writer", "scopes": ["omp:read", "omp:write"],
        "regulated": ["phi", "npi", "child"],
    });
    let given = vault.post("/admin/grants", &asked).await.expect(201);
    let writer = given["token"].as_str().unwrap().to_owned();
    let patch = async |token: &str, path: &str, body: &Value| {
        vault.ask(Method::PATCH, token, path, &[], body).await
    };
    for path in [&path, &memory] {
        for name in ["x_contains_phi", "x_contains_npi", "x_child_user"] {
            let raise = json!({name: true, "x_parental_consent_id": "c-1"});
            // Who does not see what is protected still says that something is.
            let told = patch(&blind, path, &raise).await.expect(200);
            assert_eq!(told.as_object().unwrap().len(), 1, "{told}");
            assert_eq!(patch(&blind, path, &raise).await.status, 404);
            patch(&writer, path, &raise).await.expect(200);
            for lower in [json!({name: false}), json!({name: null})] {
                let refused = patch(&writer, path, &lower).await;
                assert_eq!(refused.refusal(), (403, "forbidden"), "{path} {lower}");
                let needed = &refused.body["error"]["details"]["required_scope"];
                assert_eq!(needed, "omp:admin", "{path} {lower}");
            }
            let done = patch(&vault.owner, path, &json!({name: false})).await.expect(200);
            assert_eq!(done[name], false);
        }
        // What protects nobody is lowered by whoever may write.
        patch(&writer, path, &json!({"x_risk_level": "high"})).await.expect(200);
        patch(&writer, path, &json!({"x_risk_level": null})).await.expect(200);
    }
}

/// Of what the owner sees, only a grant that names it shows what a law protects: in every list,
/// in search, in changes and in archives.
#[tokio::test]
async fn omp_170_171_delegates_see_what_a_law_protects_only_if_their_grant_says_so() {
    let vault = Vault::new().await;
    vault.holds(&talk("Tea", "marmalade tea", "green")).await;
    let mut health = talk("Pulse", "marmalade pulse", "sixty");
    health["messages"][0]["x_contains_phi"] = true.into();
    let path = vault.holds(&health).await;
    let mut money = record("fact", "owes the marmalade bank a fortune");
    money["x_contains_npi"] = true.into();
    vault.post("/memories", &money).await.expect(201);
    let delegate = async |agent: &str, regulated: Value| {
        let asked = json!({
            "agent": agent, "scopes": ["omp:read", "omp:backup"], "regulated": regulated,
        });
        let given = vault.post("/admin/grants", &asked).await.expect(201);
        assert_eq!(given["regulated"].is_null(), regulated.is_null(), "{given}");
        given["token"].as_str().unwrap().to_owned()
    };
    let count = async |token: &str, path: &str| {
        let list = vault.ask(Method::GET, token, path, &[], &Value::Null).await.expect(200);
        list["data"].as_array().unwrap().len()
    };
    let (none, phi) = (delegate("none", Value::Null).await, delegate("phi", json!(["phi"])).await);
    let both = delegate("both", json!(["phi", "npi"])).await;
    for (token, talks, records) in [(&none, 1, 0), (&phi, 2, 0), (&both, 2, 1)] {
        assert_eq!(count(token, "/conversations").await, talks);
        assert_eq!(count(token, "/memories").await, records);
        let hits = count(token, "/search?q=marmalade").await;
        assert_eq!(hits, talks + records, "search");
        let changed = vault.ask(Method::GET, token, "/changes", &[], &Value::Null).await;
        let changed = changed.expect(200).to_string();
        assert_eq!(changed.contains(health["id"].as_str().unwrap()), talks == 2, "changes");
        assert_eq!(changed.contains(money["id"].as_str().unwrap()), records == 1, "changes");
        let one = vault.ask(Method::GET, token, &path, &[], &Value::Null).await;
        assert_eq!(one.status, if talks == 2 { 200 } else { 404 });
        let job = vault.ask(Method::POST, token, "/backup", &[], &json!({})).await.expect(202);
        let state = loop {
            let path = format!("/backup/{}", job["job_id"].as_str().unwrap());
            let state = vault.ask(Method::GET, token, &path, &[], &Value::Null).await.expect(200);
            if state["status"] == "completed" {
                break state;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        };
        assert_eq!(state["counts"]["conversations"], talks, "archives");
    }
    let wrong = json!({"agent": "x", "scopes": ["omp:read"], "regulated": ["secrets"]});
    assert_eq!(vault.post("/admin/grants", &wrong).await.refusal(), (400, "invalid_request"));
    // What an agent was not given it cannot give.
    let verbs = [Verb::Read, Verb::Grant, Verb::Audit, Verb::Admin, Verb::Review];
    let boss = vault.agent("boss", &verbs).await;
    let asked = json!({"agent": "y", "scopes": ["omp:read"], "labels": ["behaviour"],
        "regulated": ["phi"]});
    let given = vault.ask(Method::POST, &boss, "/admin/grants", &[], &asked).await;
    assert_eq!(given.refusal(), (403, "forbidden"));
}

#[tokio::test]
async fn omp_172_nothing_of_a_child_is_stored_without_the_consent_of_a_parent() {
    let vault = Vault::new().await;
    let mut tea = talk("Tea", "one", "two");
    tea["x_child_user"] = true.into();
    let refused = vault.post("/conversations", &tea).await;
    assert_eq!(refused.refusal(), (403, "forbidden"));
    let reason = &refused.body["error"]["details"]["reason"];
    assert_eq!(reason, "parental_consent_required");
    let list = vault.get("/conversations").await.expect(200);
    assert_eq!(list["data"], json!([]), "nothing was stored");
    tea["x_parental_consent_id"] = "c-1".into();
    vault.holds(&tea).await;
    // No profile is made of a child.
    let mut drawn = record("preference", "likes tea");
    drawn["source_conversations"] = json!([tea["id"]]);
    let refused = vault.post("/memories", &drawn).await;
    assert_eq!(refused.body["error"]["details"]["reason"], "no_profiling");
    let mut own = record("fact", "is nine");
    own["x_child_user"] = true.into();
    assert_eq!(vault.post("/memories", &own).await.refusal(), (403, "forbidden"));
    own["x_parental_consent_id"] = "c-1".into();
    vault.post("/memories", &own).await.expect(201);
}

#[tokio::test]
async fn omp_172_a_guardian_reviews_deletes_and_stops_and_nobody_else_shows_it_to_others() {
    let vault = Vault::new().await;
    let told = json!({"child": true, "parental_consent_id": "c-1", "guardian": "mother"});
    let said = vault.post("/admin/guardianship", &told).await.expect(200);
    let mother = said["token"].as_str().unwrap().to_owned();
    let path = vault.holds(&talk("Tea", "which tea", "green")).await;
    let read = vault.get(&path).await.expect(200);
    assert_eq!(read["x_child_user"], true, "everything in a child's vault is a child's");
    let as_mother = async |method: Method, path: &str, body: &Value| {
        vault.ask(method, &mother, path, &[], body).await
    };
    let other = vault.agent("other", &[Verb::Read]).await;
    assert_eq!(vault.ask(Method::GET, &other, &path, &[], &Value::Null).await.status, 404);
    assert_eq!(as_mother(Method::GET, &path, &Value::Null).await.status, 200, "reviews");
    let grant = json!({"agent": "tutor", "scopes": ["omp:read"], "regulated": ["child"]});
    let refused = vault.post("/admin/grants", &grant).await;
    assert_eq!(refused.refusal(), (403, "forbidden"), "the child cannot");
    let stop = json!({"stopped": true});
    let other_stop = vault.ask(Method::POST, &other, "/admin/guardianship/stop", &[], &stop).await;
    assert_eq!(other_stop.refusal(), (403, "forbidden"));
    as_mother(Method::POST, "/admin/guardianship/stop", &stop).await.expect(200);
    let refused = vault.post("/conversations", &talk("Milk", "one", "two")).await;
    assert_eq!(refused.body["error"]["details"]["reason"], "collection_stopped");
    let refused = vault.post("/memories", &record("fact", "likes milk")).await;
    assert_eq!(refused.body["error"]["details"]["reason"], "collection_stopped");
    as_mother(Method::DELETE, &path, &Value::Null).await.expect(200);
    assert_eq!(vault.get(&path).await.status, 404, "deletes");
    let go_on = json!({"stopped": false});
    as_mother(Method::POST, "/admin/guardianship/stop", &go_on).await.expect(200);
    vault.holds(&talk("Milk", "one", "two")).await;
    let lines = vault.audited().await;
    assert!(lines.iter().any(|line| line == "guardian.stop"), "{lines:?}");
}

#[tokio::test]
async fn omp_173_174_risks_are_asked_for_and_a_review_is_in_the_chain() {
    let vault = Vault::new().await;
    let mut tea = talk("Tea", "one", "two");
    tea["x_risk_level"] = "high".into();
    let path = vault.holds(&tea).await;
    vault.holds(&talk("Milk", "one", "two")).await;
    let found = vault.get("/conversations?risk_level=high").await.expect(200);
    assert_eq!(crate::support::each(&found, "title"), ["Tea"]);
    let none = vault.get("/conversations?human_review=true").await.expect(200);
    assert_eq!(none["data"], json!([]));
    let wrong = vault.get("/conversations?risk_level=extreme").await;
    assert_eq!(wrong.refusal(), (400, "invalid_request"));
    vault.patch(&path, &json!({"x_human_review": true})).await.expect(200);
    let found = vault.get("/conversations?human_review=true").await.expect(200);
    assert_eq!(crate::support::each(&found, "title"), ["Tea"]);
    let query = yore_engine::AuditQuery {
        limit: 20,
        newest_first: true,
        operation: Some("amend-conversation".into()),
        ..yore_engine::AuditQuery::default()
    };
    let lines = vault.engine.audit(&vault.owner_call(), query).await.unwrap();
    assert_eq!(lines[0].draft.detail["members"], "x_human_review", "who and when, by name");
    let mut fact = record("fact", "drinks tea");
    fact["x_risk_level"] = "critical".into();
    vault.post("/memories", &fact).await.expect(201);
    vault.post("/memories", &record("fact", "rides a bike")).await.expect(201);
    let found = vault.get("/memories?risk_level=critical").await.expect(200);
    assert_eq!(crate::support::each(&found, "content"), ["drinks tea"]);
}

#[tokio::test]
async fn omp_175_what_says_when_it_ends_is_erased_then_unless_it_is_held() {
    let vault = Vault::new().await;
    let later = NOW.plus(Span::days(10)).to_string();
    let mut ends = talk("Tea", "one", "two");
    ends["x_retention_expires_at"] = later.as_str().into();
    let path = vault.holds(&ends).await;
    let mut held = talk("Held", "one", "two");
    held["x_retention_expires_at"] = later.as_str().into();
    held["x_regulatory_hold"] = true.into();
    let held = vault.holds(&held).await;
    assert_eq!(vault.get(&held).await.expect(200)["x_regulatory_hold"], true);
    let stays = vault.holds(&talk("Stays", "one", "two")).await;
    let mut fact = record("fact", "drinks tea");
    fact["x_retention_expires_at"] = later.as_str().into();
    vault.post("/memories", &fact).await.expect(201);
    let memory = format!("/memories/{}", fact["id"].as_str().unwrap());
    vault.engine.settle().await.unwrap();
    assert_eq!(vault.get(&path).await.status, 200, "not before");
    vault.clock.set(NOW.plus(Span::days(11)));
    vault.engine.settle().await.unwrap();
    for (path, status) in [(&path, 404), (&memory, 404), (&held, 200), (&stays, 200)] {
        assert_eq!(vault.get(path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn omp_176_a_document_is_held_by_who_administers_alone() {
    let vault = Vault::new().await;
    let writer = vault.agent("writer", &[Verb::Read, Verb::Write, Verb::Erase]).await;
    let mut tea = talk("Tea", "one", "two");
    tea["x_regulatory_hold"] = true.into();
    let refused = vault.ask(Method::POST, &writer, "/conversations", &[], &tea).await;
    assert_eq!(refused.refusal(), (403, "forbidden"));
    assert_eq!(refused.body["error"]["details"]["required_scope"], "omp:admin");
    let path = vault.holds(&tea).await;
    let refused = vault.delete(&path).await;
    assert_eq!(refused.body["error"]["details"]["reason"], "regulatory_hold");
    let release = json!({"x_regulatory_hold": false});
    let refused = vault.ask(Method::PATCH, &writer, &path, &[], &release).await;
    assert_eq!(refused.refusal(), (403, "forbidden"));
    let read = vault.patch(&path, &release).await.expect(200);
    assert_eq!(read.get("x_regulatory_hold"), None);
    vault.delete(&path).await.expect(200);
    let mut fact = record("fact", "drinks tea");
    fact["x_regulatory_hold"] = true.into();
    let made = vault.post("/memories", &fact).await.expect(201);
    assert_eq!(made["x_regulatory_hold"], true);
    let memory = format!("/memories/{}", fact["id"].as_str().unwrap());
    assert_eq!(vault.delete(&memory).await.refusal(), (403, "forbidden"));
}

#[tokio::test]
async fn omp_075_what_has_expired_is_inactive_and_waits_to_be_looked_at() {
    let vault = Vault::new().await;
    let mut fact = record("fact", "is on holiday");
    fact["expires_at"] = NOW.plus(Span::days(1)).to_string().into();
    vault.post("/memories", &fact).await.expect(201);
    vault.post("/memories", &record("fact", "rides a bike")).await.expect(201);
    let due = vault.get("/memories?expired=true").await.expect(200);
    assert_eq!(due["data"], json!([]));
    vault.clock.set(NOW.plus(Span::days(2)));
    let due = vault.get("/memories?expired=true").await.expect(200);
    assert_eq!(crate::support::each(&due, "content"), ["is on holiday"]);
    assert_eq!(due["data"][0]["active"], false);
    let path = format!("/memories/{}", fact["id"].as_str().unwrap());
    vault.patch(&path, &json!({"expires_at": null})).await.expect(200);
    assert_eq!(vault.get(&path).await.expect(200)["active"], true, "looked at, and kept");
}

#[tokio::test]
async fn omp_123_a_user_schedules_copies() {
    let vault = Vault::new().await;
    let none = vault.get("/backup/schedules").await.expect(200);
    assert_eq!(none["data"], json!([]));
    let weekly = json!({"every": "weekly", "keep": 3});
    vault.post("/backup/schedules", &weekly).await.expect(200);
    let some = vault.get("/backup/schedules").await.expect(200);
    assert_eq!(some["data"], json!([weekly]));
    for wrong in [json!({"every": "hourly"}), json!({"every": "daily", "keep": 0}), json!({})] {
        assert_eq!(vault.post("/backup/schedules", &wrong).await.status, 400, "{wrong}");
    }
    let agent = vault.agent("agent", &[Verb::Read, Verb::Export]).await;
    let refused = vault.ask(Method::POST, &agent, "/backup/schedules", &[], &weekly).await;
    assert_eq!(refused.refusal(), (403, "forbidden"), "a copy holds what it does not see");
}

/// Every look of a third party at what GLBA protects is in the log, which is never shortened, and
/// the look after the revocation is none.
#[tokio::test]
async fn omp_171_who_looked_at_npi_is_in_the_log_and_revocation_counts_at_once() {
    let vault = Vault::new().await;
    let mut money = record("fact", "owes the bank a fortune");
    money["x_contains_npi"] = true.into();
    vault.post("/memories", &money).await.expect(201);
    let path = format!("/memories/{}", money["id"].as_str().unwrap());
    let asked = json!({"agent": "broker", "scopes": ["omp:read"], "regulated": ["npi"]});
    let given = vault.post("/admin/grants", &asked).await.expect(201);
    let (token, grant) = (given["token"].as_str().unwrap(), given["id"].as_str().unwrap());
    let look = async || vault.ask(Method::GET, token, &path, &[], &Value::Null).await;
    assert_eq!(look().await.status, 200);
    assert_eq!(look().await.status, 200);
    vault.delete(&format!("/admin/grants/{grant}")).await.expect(200);
    assert_eq!(look().await.status, 401, "from the next request on");
    let log = vault.get("/admin/audit?agent=broker&operation=get").await.expect(200);
    let lines = log["data"].as_array().unwrap();
    assert_eq!(lines.len(), 2, "{log}");
    for line in lines {
        assert!(line.to_string().contains(money["id"].as_str().unwrap()), "which: {line}");
        assert!(line["timestamp"].is_string(), "when: {line}");
        assert!(!line.to_string().contains("fortune"), "no content: {line}");
    }
}

#[tokio::test]
async fn omp_174_who_reviewed_and_when_is_in_the_log_by_name() {
    let vault = Vault::new().await;
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let asked = json!({"agent": "reviewer", "scopes": ["omp:read", "omp:write"]});
    let given = vault.post("/admin/grants", &asked).await.expect(201);
    let token = given["token"].as_str().unwrap();
    let review = json!({"x_human_review": true});
    vault.ask(Method::PATCH, token, &path, &[], &review).await.expect(200);
    let log = vault.get("/admin/audit?operation=amend-conversation").await.expect(200);
    let line = &log["data"][0];
    assert!(line.to_string().contains("reviewer"), "who: {line}");
    assert!(line.to_string().contains("x_human_review"), "what: {line}");
    assert_eq!(line["timestamp"], NOW.to_string(), "when: {line}");
    let wrong = vault.patch(&path, &json!({"x_human_review": "yes"})).await;
    assert_eq!(wrong.refusal(), (400, "invalid_request"));
    let found = vault.get("/conversations?human_review=true").await.expect(200);
    assert_eq!(crate::support::each(&found, "title"), ["Tea"]);
}
