//! The walls between users, tenants and grants, and what must not get through them.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Span, TenantId};
use yore_engine::{Call, GrantRequest, Secret, TokenKind, token};

use crate::hiding::trusting;
use crate::support::{
    LOCAL_KEY, NOW, Reply, USER, Vault, claims, fact, governed, id, jwt, key, store,
};

impl Vault {
    /// A token that acts for every user of another tenant.
    async fn service_of(&self, tenant: TenantId) -> String {
        let master = Call::bearer("test", token::proof(&LOCAL_KEY, NOW));
        self.engine.issue_token(&master, TokenKind::Service(tenant), None, None).await.unwrap()
    }

    /// A request of a service that shows somebody's grant.
    async fn shown(&self, method: Method, grant: &str, path: &str, body: &Value) -> Reply {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", self.service))
            .header("oamp-grant", grant)
            .header("content-type", "application/json");
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        self.send(request.body(body).unwrap()).await
    }

    async fn repeated(&self, method: Method, operation: &str, path: &str, body: &Value) -> Reply {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", self.owner))
            .header("yore-operation-id", operation)
            .header("content-type", "application/json");
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    /// A page as an envelope.
    async fn enveloped(&self, path: &str) -> Value {
        let request = Request::get(path)
            .header("authorization", format!("Bearer {}", self.owner))
            .header("accept", "application/json+oamp");
        self.send(request.body(Body::empty()).unwrap()).await.expect(200)
    }
}

fn of(user: &str, mut entry: Value) -> Value {
    entry["user_id"] = user.into();
    entry
}

#[tokio::test]
async fn oamp_342_an_id_that_left_an_agents_sight_is_free_to_it() {
    let vault = trusting(true).await;
    let token = jwt(&key(1), &claims("scheduler", &["work"], "internal"));
    let mut told = Vec::new();
    for gone in ["raised", "erased"] {
        let mine = governed(&format!("{gone} meeting"), "internal", &["work"]);
        let name = mine["id"].as_str().unwrap();
        vault.post(&token, "/v1/knowledge", &mine).await.expect(201);
        let listed = vault.get(&vault.owner, "/v1/knowledge?user_id=owner").await.expect(200);
        let entries = listed.as_array().unwrap();
        let real = entries.iter().find(|entry| entry["content"] == mine["content"]).unwrap();
        let real = real["id"].as_str().unwrap();
        if gone == "raised" {
            let mut raised = governed("raised meeting", "restricted", &["health"]);
            raised["id"] = real.into();
            raised["confidence"] = 1.0.into();
            let done = vault.post(&vault.owner, "/v1/import", &store(&[raised])).await.expect(201);
            assert_eq!(done["imported"], 1);
        } else {
            assert_eq!(vault.delete(&vault.owner, real).await.status, 204);
        }
        let mut said = vec![vault.entry(&token, name).await.status];
        said.push(vault.post(&token, "/v1/knowledge", &mine).await.status);
        said.push(vault.delete(&token, name).await.status);
        let other = governed(&format!("{gone} beside"), "internal", &["work"]);
        let both = vault.post(&token, "/v1/import", &store(&[mine.clone(), other])).await;
        assert_eq!(both.expect(201)["imported"], 2);
        said.push(vault.entry(&token, name).await.status);
        told.push(said);
    }
    assert_eq!(told[0], told[1]);
    let all = vault.contents(&vault.owner, "").await;
    assert_eq!(all.iter().filter(|text| *text == "raised meeting").count(), 2, "{all:?}");
}

#[tokio::test]
async fn tenants_learn_nothing_of_each_others_ids() {
    let vault = Vault::new().await;
    let other = vault.service_of(TenantId::random()).await;
    let entry = of("anna", fact("Anna's of the first tenant"));
    let one = entry["id"].as_str().unwrap();
    vault.post(&vault.service, "/v1/knowledge", &entry).await.expect(201);
    let missing = vault.entry(&other, &id()).await;
    let hidden = vault.entry(&other, one).await;
    assert_eq!((hidden.status, &hidden.text), (missing.status, &missing.text));
    assert_eq!(hidden.refusal(), (404, "NOT_FOUND"));
    // The same id in another tenant makes it ambiguous to nobody.
    let mut theirs = entry.clone();
    theirs["content"] = "Anna's of the second tenant".into();
    vault.post(&other, "/v1/knowledge", &theirs).await.expect(201);
    assert_eq!(vault.entry(&vault.service, one).await.expect(200), entry);
    assert_eq!(vault.entry(&other, one).await.expect(200), theirs);
}

#[tokio::test]
async fn a_write_that_is_refused_notes_no_place() {
    let vault = Vault::new().await;
    let entry = of("anna", fact("Anna's"));
    let one = entry["id"].as_str().unwrap();
    vault.post(&vault.service, "/v1/knowledge", &entry).await.expect(201);
    let ben = of("ben", fact("Ben's first"));
    vault.post(&vault.service, "/v1/knowledge", &ben).await.expect(201);
    let rule = json!({"name": "never", "action": "refuse", "operations": ["remember"]});
    let bens = Call {
        vault: yore_engine::VaultRef::Owner("ben".into()),
        ..Call::bearer("test", Secret::new(vault.service.clone()))
    };
    vault.engine.put_rule(&bens, serde_json::from_value(rule).unwrap()).await.unwrap();
    let mut refused = entry.clone();
    refused["user_id"] = "ben".into();
    assert_eq!(vault.post(&vault.service, "/v1/knowledge", &refused).await.status, 403);
    assert_eq!(vault.entry(&vault.service, one).await.expect(200), entry);
}

#[tokio::test]
async fn oamp_311_a_service_that_shows_a_grant_reaches_whom_the_grant_is_about() {
    let vault = trusting(true).await;
    let bens = of("ben", governed("Ben's calendar", "internal", &["work"]));
    vault.post(&vault.service, "/v1/knowledge", &bens).await.expect(201);
    let annas = of("anna", governed("Anna's calendar", "internal", &["work"]));
    vault.post(&vault.service, "/v1/knowledge", &annas).await.expect(201);
    let mut about_ben = claims("scheduler", &["work"], "internal");
    about_ben["sub"] = "ben".into();
    let grant = jwt(&key(1), &about_ben);
    let of_ben = format!("/v1/knowledge/{}", bens["id"].as_str().unwrap());
    let of_anna = format!("/v1/knowledge/{}", annas["id"].as_str().unwrap());
    let nobodys = format!("/v1/knowledge/{}", id());
    let (nothing, change) = (Value::Null, json!({"confidence": 0.5}));
    assert_eq!(vault.shown(Method::GET, &grant, &of_ben, &nothing).await.expect(200), bens);
    for method in [Method::GET, Method::PATCH, Method::DELETE] {
        let body = if method == Method::PATCH { &change } else { &nothing };
        let hers = vault.shown(method.clone(), &grant, &of_anna, body).await;
        let missing = vault.shown(method.clone(), &grant, &nobodys, body).await;
        assert_eq!((hers.status, &hers.text), (404, &missing.text), "{method}");
    }
    // What the agent wrote itself is found the same way, without a word about whose it is.
    let mine = of("ben", governed("noted for Ben", "internal", &["work"]));
    vault.shown(Method::POST, &grant, "/v1/knowledge", &mine).await.expect(201);
    let path = format!("/v1/knowledge/{}", mine["id"].as_str().unwrap());
    assert_eq!(vault.shown(Method::GET, &grant, &path, &nothing).await.expect(200), mine);
    let list = vault.shown(Method::GET, &grant, "/v1/knowledge?user_id=anna", &nothing).await;
    assert_eq!(list.refusal(), (403, "FORBIDDEN"));
    let mut about_nobody = claims("scheduler", &["work"], "internal");
    about_nobody["sub"] = "zoe".into();
    let stray = of("zoe", governed("for nobody", "internal", &["work"]));
    let grant = jwt(&key(1), &about_nobody);
    let reply = vault.shown(Method::POST, &grant, "/v1/knowledge", &stray);
    assert_eq!(reply.await.refusal(), (404, "NOT_FOUND"), "a grant makes no vault");
}

#[tokio::test]
async fn signing_a_grant_adds_no_verb() {
    let vault = Vault::new().await;
    let one = vault.holds(&governed("calendar", "internal", &["work"])).await;
    let under = || Labels::Under([Label::new("work").unwrap()].into());
    let request = GrantRequest {
        agent: AgentId::new("reader").unwrap(),
        verbs: Verbs::of(&[Verb::Read, Verb::Write]),
        read: under(),
        write: under(),
        ceiling: Sensitivity::Internal,
        scope: ScopeRule::default(),
        ttl: Some(Span::seconds(3600)),
        note: None,
    };
    let owner = vault.owner_call();
    let issued = vault.engine.issue_grant(&owner, request).await.unwrap();
    let signed = vault.oamp.signed_grant(&owner, issued.grant.id).await.unwrap();
    for token in [&issued.token, &signed] {
        assert_eq!(vault.contents(token, "").await, ["calendar"]);
        let export = vault.post(token, "/v1/export", &json!({"user_id": USER})).await;
        assert_eq!(export.status, 403, "{}", export.text);
        assert_eq!(vault.delete(token, &one).await.status, 403);
    }
}

#[tokio::test]
async fn a_name_is_somebody_within_one_tenant_only() {
    let vault = trusting(true).await;
    let other = vault.service_of(TenantId::random()).await;
    let entry = of("alice", governed("Alice of the other tenant", "public", &["work"]));
    vault.post(&other, "/v1/knowledge", &entry).await.expect(201);
    let call = Call::bearer("test", Secret::new(other.clone()));
    let theirs = vault.engine.served_vaults(&call).await.unwrap()[0].clone();
    let mut about = claims("scheduler", &["work"], "internal");
    about["sub"] = "alice".into();
    let grant = jwt(&key(1), &about);
    let request = Request::get("/v1/knowledge?user_id=alice")
        .header("authorization", format!("Bearer {grant}"))
        .header("yore-vault", theirs.id.to_string());
    let reply = vault.send(request.body(Body::empty()).unwrap()).await;
    assert!(reply.status == 401 || reply.status == 403, "{}", reply.text);
    assert!(!reply.text.contains("other tenant"));
}

#[tokio::test]
async fn unseen_changes_cost_a_subscriber_nothing() {
    let few = |settings: &mut yore_engine::Settings| settings.reads_per_minute = Some(5);
    let vault = Vault::with(few, yore_oamp::Options::default()).await;
    let agent = vault.agent("a", &["work"], Sensitivity::Internal).await;
    let call = Call::bearer("test", Secret::new(agent.clone()));
    let mut events = vault.engine.subscribe(&call, None).await.unwrap();
    for number in 0..12 {
        vault.holds(&governed(&format!("unseen {number}"), "restricted", &["health"])).await;
        let waiting = futures::StreamExt::next(&mut events);
        let told = tokio::time::timeout(std::time::Duration::from_millis(20), waiting).await;
        assert!(told.is_err(), "{told:?}");
    }
    assert_eq!(vault.get(&agent, "/v1/knowledge?user_id=owner").await.status, 200);
}

#[tokio::test]
async fn oamp_065_what_is_no_path_is_refused_in_the_same_form() {
    let vault = Vault::new().await;
    for path in ["/v1", "/v1/", "/v1/knowledge/%ff", "/v1/user-model/%ff", "/v1/knowledge/a/b"] {
        let reply = vault.get(&vault.owner, path).await;
        assert_eq!(reply.refusal(), (404, "NOT_FOUND"), "{path}: {}", reply.text);
        assert!(reply.body["error"].is_string(), "{path}");
    }
    for method in [Method::PATCH, Method::DELETE] {
        let reply = vault.ask(method, &vault.owner, "/v1/knowledge/%ff", &json!({})).await;
        assert_eq!(reply.refusal(), (404, "NOT_FOUND"));
    }
}

#[tokio::test]
async fn oamp_150_what_was_proposed_about_a_person_goes_with_them() {
    let vault = Vault::new().await;
    let rule = json!({"name": "ask", "action": "hold", "operations": ["remember"]});
    let rule = serde_json::from_value(rule).unwrap();
    vault.engine.put_rule(&vault.owner_call(), rule).await.unwrap();
    let agent = vault.agent("a", &["work"], Sensitivity::Internal).await;
    let entry = governed("a cerulean proposal", "internal", &["work"]);
    let held = vault.post(&agent, "/v1/knowledge", &entry).await;
    assert_eq!(held.refusal(), (202, "PENDING_APPROVAL"));
    let path = "/v1/user-model/owner";
    let reply = vault.ask(Method::DELETE, &vault.owner, path, &Value::Null).await;
    assert_eq!(reply.status, 204);
    let traces = vault.engine.traces(&vault.owner_call(), "cerulean".into()).await.unwrap();
    assert!(traces.found.is_empty(), "{traces:?}");
    let waiting = vault.engine.holds(&vault.owner_call(), Default::default(), 10).await.unwrap();
    assert!(waiting.is_empty(), "nothing is left to approve");
}

#[tokio::test]
async fn an_import_of_several_commits_can_be_sent_again() {
    let vault = Vault::new().await;
    let known = fact("known before");
    vault.holds(&known).await;
    let mut surer = known.clone();
    surer["content"] = "known better".into();
    surer["confidence"] = 1.0.into();
    let mut entries: Vec<Value> = (0..620).map(|number| fact(&format!("note {number}"))).collect();
    entries.push(surer);
    let sent = store(&entries);
    let first = vault.repeated(Method::POST, "op-1", "/v1/import", &sent).await.expect(201);
    assert_eq!((&first["imported"], &first["rejected"]), (&json!(621), &json!(0)));
    let again = vault.repeated(Method::POST, "op-1", "/v1/import", &sent).await.expect(201);
    assert_eq!((&again["imported"], &again["skipped"]), (&json!(0), &json!(621)));
}

#[tokio::test]
async fn a_patch_that_is_sent_again_is_answered_and_not_done_twice() {
    let vault = Vault::new().await;
    let one = vault.holds(&fact("tea, no sugar")).await;
    let other = vault.holds(&fact("coffee")).await;
    let path = format!("/v1/knowledge/{one}");
    let change = json!({"confidence": 0.4});
    let first = vault.repeated(Method::PATCH, "op-2", &path, &change).await.expect(200);
    let again = vault.repeated(Method::PATCH, "op-2", &path, &change).await.expect(200);
    assert_eq!(first, again);
    let lines = vault.audit("&action=update").await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    let wrong = format!("/v1/knowledge/{other}");
    let reply = vault.repeated(Method::PATCH, "op-2", &wrong, &change).await;
    assert_eq!(reply.status, 409, "{}", reply.text);
}

#[tokio::test]
async fn looking_for_an_entry_makes_no_vault() {
    let vault = Vault::new().await;
    let count = async || {
        let call = Call::bearer("test", Secret::new(vault.service.clone()));
        vault.engine.served_vaults(&call).await.unwrap().len()
    };
    let before = count().await;
    let path = format!("/v1/knowledge/{}?user_id=typo", id());
    let change = json!({"confidence": 0.4});
    for (method, body) in
        [(Method::GET, &Value::Null), (Method::DELETE, &Value::Null), (Method::PATCH, &change)]
    {
        assert_eq!(vault.ask(method, &vault.service, &path, body).await.status, 404);
    }
    assert_eq!(count().await, before);
}

#[tokio::test]
async fn totals_count_everything_that_matches() {
    let vault = Vault::new().await;
    for number in 0..30 {
        vault.holds(&fact(&format!("the harbour report of day {number}"))).await;
    }
    let found = vault.enveloped("/v1/knowledge?user_id=owner&query=harbour%20report&limit=4").await;
    assert_eq!((&found["total"], &found["has_more"]), (&json!(30), &json!(true)));
    assert_eq!(found["entries"].as_array().unwrap().len(), 4);
    let audit = vault.enveloped("/v1/admin/audit?user_id=owner&action=create&limit=4").await;
    assert_eq!(audit["total"], 30);
    assert_eq!(audit["entries"].as_array().unwrap().len(), 4);
    // What lies further back than one reading of the chain counts, too.
    let missing = format!("/v1/knowledge/{}", crate::support::id());
    for _ in 0..1_000 {
        vault.get(&vault.owner, &missing).await;
    }
    for number in 0..5 {
        vault.holds(&fact(&format!("the pier report of day {number}"))).await;
    }
    let audit = vault.enveloped("/v1/admin/audit?user_id=owner&action=create&limit=4").await;
    assert_eq!(audit["total"], 35);
}

#[tokio::test]
async fn a_service_that_names_nobody_gives_all_its_users_new_keys() {
    if yore_scratch::is_elsewhere("vaults in a database keep their keys") {
        return;
    }
    let vault = Vault::new().await;
    for user in ["anna", "ben"] {
        let entry = of(user, fact("before"));
        vault.post(&vault.service, "/v1/knowledge", &entry).await.expect(201);
    }
    vault.post(&vault.service, "/v1/admin/keys/rotate", &Value::Null).await.expect(200);
    for user in ["anna", "ben"] {
        let path = format!("/v1/admin/audit?user_id={user}&action=rotate_key");
        let lines = vault.get(&vault.service, &path).await.expect(200);
        assert_eq!(lines.as_array().unwrap().len(), 1, "{user}");
    }
}

#[tokio::test]
async fn oamp_316_a_grant_that_asks_for_everything_exports_what_it_sees() {
    let vault = trusting(true).await;
    vault.holds(&governed("calendar", "internal", &["work"])).await;
    // Each is hidden by one rule alone.
    vault.holds(&governed("diagnosis", "internal", &["health"])).await;
    vault.holds(&governed("salary", "restricted", &["work"])).await;
    let mut greedy = claims("backup", &["work"], "internal");
    greedy["oamp_export_full"] = true.into();
    let exported = vault.export(&jwt(&key(1), &greedy)).await;
    assert_eq!(crate::support::contents(&exported["entries"]), ["calendar"]);
}

#[tokio::test]
async fn oamp_400_nothing_is_written_in_clear() {
    if yore_scratch::is_elsewhere("what a database holds is looked at in store-postgres") {
        return;
    }
    let vault = Vault::new().await;
    vault.holds(&fact("the cerulean ledger")).await;
    let mut model = crate::model::model(1);
    model["metadata"]["colour"] = "cerulean".into();
    vault.post(&vault.owner, "/v1/user-model", &model).await.expect(201);
    vault.contents(&vault.owner, "&query=cerulean").await;
    let mut files = 0;
    let mut folders = vec![vault.directory.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for found in std::fs::read_dir(folder).unwrap() {
            let path = found.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                files += 1;
                let bytes = std::fs::read(&path).unwrap();
                let clear = bytes.windows(8).any(|window| window == b"cerulean");
                assert!(!clear, "{}", path.display());
            }
        }
    }
    assert!(files >= 2, "the catalog and the vault");
}
