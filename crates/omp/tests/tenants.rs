//! Administration of tenants: users, an admin who reads and does not write, retention, reports.

use axum::http::Method;
use serde_json::{Value, json};
use yore_domain::grant::Verb;
use yore_domain::{Span, TenantId};

use crate::support::{Vault, each, record, said, talk};

#[tokio::test]
async fn omp_163_tenants_and_their_users_are_made_looked_at_and_removed() {
    let vault = Vault::new().await;
    let master = vault.master();
    let ask = async |token: &str, method: Method, path: &str, body: &Value| {
        vault.ask(method, token, path, &[], body).await
    };
    let made = ask(&master, Method::POST, "/admin/tenants", &json!({"name": "Acme"})).await;
    let tenant = made.expect(201)["id"].as_str().unwrap().to_owned();
    let again = ask(&master, Method::POST, "/admin/tenants", &json!({"name": "Acme"})).await;
    assert_eq!(again.refusal(), (409, "conflict"));
    for wrong in [json!({}), json!({"name": ""}), json!({"name": "x".repeat(300)})] {
        let reply = ask(&master, Method::POST, "/admin/tenants", &wrong).await;
        assert_eq!(reply.refusal(), (400, "invalid_request"), "{wrong}");
    }
    let users = format!("/admin/tenants/{tenant}/users");
    ask(&master, Method::POST, &users, &json!({"name": "ada"})).await.expect(201);
    let twice = ask(&master, Method::POST, &users, &json!({"name": "ada"})).await;
    assert_eq!(twice.refusal(), (409, "conflict"));
    let listed = ask(&master, Method::GET, "/admin/tenants", &Value::Null).await.expect(200);
    let acme = listed["data"].as_array().unwrap().iter().find(|one| one["id"] == tenant.as_str());
    assert_eq!(acme.unwrap(), &json!({"id": tenant, "name": "Acme", "users": 1}));

    // An admin of the tenant sees it and no other.
    let admin = vault.admin_of(tenant.parse().unwrap()).await;
    let own = ask(&admin, Method::GET, "/admin/tenants", &Value::Null).await.expect(200);
    assert_eq!(each(&own, "name"), ["Acme"]);
    let refused = ask(&admin, Method::POST, "/admin/tenants", &json!({"name": "Other"})).await;
    assert_eq!(refused.refusal(), (403, "forbidden"));
    ask(&admin, Method::POST, &users, &json!({"name": "bob"})).await.expect(201);
    let all = ask(&admin, Method::GET, &users, &Value::Null).await.expect(200);
    assert_eq!(each(&all, "name"), ["ada", "bob"]);
    let other = format!("/admin/tenants/{}/users", TenantId::DEFAULT);
    let missing = format!("/admin/tenants/{}/users", TenantId::random());
    let hidden = ask(&admin, Method::GET, &other, &Value::Null).await;
    let nothing = ask(&admin, Method::GET, &missing, &Value::Null).await;
    assert_eq!((hidden.status, hidden.body), (404, nothing.body), "as if it were not there");

    // A user goes when nothing is in the vault any more, and not before.
    let ada = format!("{users}/ada");
    let service = vault.service_of(tenant.parse().unwrap()).await;
    let for_ada = [("yore-vault", "ada")];
    let memory = record("fact", "likes tea");
    vault.ask(Method::POST, &service, "/memories", &for_ada, &memory).await.expect(201);
    let refused = ask(&admin, Method::DELETE, &ada, &Value::Null).await;
    assert_eq!(refused.refusal(), (409, "conflict"));
    let place = format!("/memories/{}", memory["id"].as_str().unwrap());
    vault.ask(Method::DELETE, &service, &place, &for_ada, &Value::Null).await.expect(200);
    ask(&admin, Method::DELETE, &ada, &Value::Null).await.expect(200);
    assert_eq!(ask(&admin, Method::GET, &ada, &Value::Null).await.status, 404);
    let stays = format!("{other}/owner");
    let refused = ask(&master, Method::DELETE, &stays, &Value::Null).await;
    assert_eq!(refused.refusal(), (409, "conflict"), "the owner of the server stays");

    for token in [vault.owner.clone(), vault.agent("agent", &Verb::ALL).await] {
        let reply = ask(&token, Method::GET, "/admin/tenants", &Value::Null).await;
        assert_eq!(reply.refusal(), (403, "forbidden"));
        assert_eq!(reply.body["error"]["details"]["required_scope"], "omp:admin");
    }
    assert_eq!(ask("", Method::GET, "/admin/tenants", &Value::Null).await.status, 401);
}

#[tokio::test]
async fn omp_151_an_admin_reads_all_of_a_tenant_and_writes_nothing_and_the_user_sees_it() {
    let vault = Vault::new().await;
    let mut private = talk("Tea", "one", "two");
    private["x_yore"] = json!({"governance": {"labels": ["health"], "sensitivity": "restricted"}});
    let path = vault.holds(&private).await;
    let id = path.rsplit('/').next().unwrap().to_owned();
    let admin = vault.admin_of(TenantId::DEFAULT).await;
    let ask = async |method: Method, path: &str, body: &Value| {
        vault.ask(method, &admin, path, &[("yore-vault", "owner")], body).await
    };
    ask(Method::GET, &path, &Value::Null).await.expect(200);
    ask(Method::GET, "/search?q=one", &Value::Null).await.expect(200);
    let message = said("user", "three", "2026-03-15T10:00:00Z");
    for (method, path, body) in [
        (Method::POST, "/conversations", talk("x", "a", "b")),
        (Method::POST, "/memories", record("fact", "x")),
        (Method::PATCH, path.as_str(), json!({"title": "x"})),
        (Method::POST, &format!("{path}/messages"), message),
        (Method::DELETE, path.as_str(), Value::Null),
        (Method::POST, "/backup", json!({})),
        (Method::POST, "/admin/grants", json!({"agent": "x", "scopes": ["omp:read"]})),
        (Method::POST, "/deletions/preview", json!({"vault": true})),
    ] {
        let reply = ask(method.clone(), path, &body).await;
        assert_eq!(reply.refusal(), (403, "forbidden"), "{method} {path}");
    }
    // Compliance is its business.
    ask(Method::POST, "/admin/holds", &json!({"conversation_id": id})).await.expect(200);
    assert_eq!(vault.delete(&path).await.refusal(), (403, "forbidden"));
    ask(Method::GET, "/admin/audit", &Value::Null).await.expect(200);
    // It makes no vaults by asking for them, and sees none of another tenant.
    let nobody = [("yore-vault", "nobody")];
    let reply = vault.ask(Method::POST, &admin, "/memories", &nobody, &record("fact", "x")).await;
    assert_eq!(reply.status, 404);
    let stranger = vault.admin_of(TenantId::random()).await;
    let there = [("yore-vault", "owner")];
    let reply = vault.ask(Method::GET, &stranger, &path, &there, &Value::Null).await;
    assert!([401, 404].contains(&reply.status), "{}", reply.status);
    // The user is told who looked.
    let chain = vault.get("/admin/audit?limit=200").await.expect(200);
    let lines = chain["data"].as_array().unwrap();
    let looked = |line: &&Value| line["who"]["role"] == "admin" && line["action"] == "read";
    assert!(lines.iter().filter(looked).any(|line| line["target"] == id.as_str()));
}

#[tokio::test]
async fn omp_163_retention_erases_what_was_kept_long_enough_and_a_hold_stops_it() {
    let vault = Vault::new().await;
    let old = vault.holds(&talk("Old", "one", "two")).await;
    let held = vault.holds(&talk("Held", "one", "two")).await;
    let mut young = talk("Young", "one", "two");
    young["messages"][1]["timestamp"] = "2027-01-10T00:00:00Z".into();
    young["updated_at"] = "2027-01-10T00:00:00Z".into();
    let young = vault.holds(&young).await;
    let id = held.rsplit('/').next().unwrap();
    vault.post("/admin/holds", &json!({"conversation_id": id})).await.expect(200);
    assert_eq!(vault.get("/admin/retention").await.expect(200), json!({}));
    vault.engine.settle().await.unwrap();
    vault.get(&old).await.expect(200);

    let put = async |token: &str, body: &Value| {
        vault.ask(Method::POST, token, "/admin/retention", &[], body).await
    };
    for wrong in [
        json!({}),
        json!({"conversations_days": 0}),
        json!({"days": 1}),
        json!({"memories_days": "x"}),
    ] {
        assert_eq!(put(&vault.owner, &wrong).await.refusal(), (400, "invalid_request"), "{wrong}");
    }
    let agent = vault.agent("agent", &Verb::ALL).await;
    let asked = json!({"conversations_days": 90, "memories_days": 30});
    assert_eq!(put(&agent, &asked).await.refusal(), (403, "forbidden"), "it does not see all");
    put(&vault.owner, &asked).await.expect(200);
    assert_eq!(vault.get("/admin/retention").await.expect(200), asked);
    let memory = record("fact", "likes tea");
    vault.post("/memories", &memory).await.expect(201);
    vault.engine.settle().await.unwrap();
    let memory = format!("/memories/{}", memory["id"].as_str().unwrap());
    assert_eq!(vault.get(&old).await.status, 404);
    vault.get(&held).await.expect(200);
    vault.get(&young).await.expect(200);
    vault.get(&memory).await.expect(200);

    vault.clock.advance(Span::days(31));
    vault.engine.settle().await.unwrap();
    assert_eq!(vault.get(&memory).await.status, 404);
    vault.get(&young).await.expect(200);
    // Once the hold is lifted, what was due happens.
    let lifted = json!({"conversation_id": id, "hold": false});
    vault.post("/admin/holds", &lifted).await.expect(200);
    vault.engine.settle().await.unwrap();
    assert_eq!(vault.get(&held).await.status, 404);
}

#[tokio::test]
async fn omp_153_the_audit_chain_is_kept_longer_than_any_profile_asks_for() {
    let vault = Vault::new().await;
    let asked = json!({"conversations_days": 1, "memories_days": 1});
    vault.ask(Method::POST, &vault.owner, "/admin/retention", &[], &asked).await.expect(200);
    let path = vault.holds(&talk("Tea", "one", "two")).await;
    let id = path.rsplit('/').next().unwrap().to_owned();
    vault.clock.advance(Span::days(7 * 365));
    vault.engine.settle().await.unwrap();
    let chain = vault.get("/admin/audit?limit=200").await.expect(200);
    let lines = chain["data"].as_array().unwrap();
    let written =
        lines.iter().find(|line| line["action"] == "write" && line["target"] == id.as_str());
    assert_eq!(written.unwrap()["timestamp"], "2027-01-15T08:00:00Z");
    assert_eq!(lines.last().unwrap()["id"], 1, "from the first entry on");
    let report = vault.engine.check(&vault.owner_call(), false).await.unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[tokio::test]
async fn omp_163_the_report_says_what_each_model_did_and_how_risky_that_was() {
    let vault = Vault::new().await;
    let mut tea = talk("Tea", "one", "two");
    tea["x_risk_level"] = "low".into();
    tea["messages"][1]["x_risk_level"] = "high".into();
    tea["messages"][1]["x_human_review"] = true.into();
    vault.holds(&tea).await;
    let mut bike = talk("Bike", "one", "two");
    bike["platform"] = "claude".into();
    bike["messages"][1]["x_contains_phi"] = true.into();
    vault.holds(&bike).await;
    let mut other = talk("Other", "one", "two");
    other["messages"][1]["model"] = "claude-4".into();
    vault.holds(&other).await;
    let report = vault.get("/admin/reports/models").await.expect(200);
    assert_eq!(each(&report, "model"), ["claude-4", "gpt-5"]);
    let gpt = &report["data"][1];
    assert_eq!((&gpt["conversations"], &gpt["messages"]), (&json!(2), &json!(2)));
    assert_eq!(gpt["platforms"], json!(["chatgpt", "claude"]));
    assert_eq!(gpt["risk_levels"], json!({"high": 1}), "the higher of the two");
    assert_eq!((&gpt["human_reviewed"], &gpt["contains_phi"]), (&json!(1), &json!(1)));
    assert_eq!(gpt["last_used"], "2026-03-15T09:30:05Z");
    let reader = vault.agent("reader", &[Verb::Read]).await;
    let path = "/admin/reports/models";
    let refused = vault.ask(Method::GET, &reader, path, &[], &Value::Null).await;
    assert_eq!(refused.refusal(), (403, "forbidden"));
}
