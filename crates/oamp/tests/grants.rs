//! Grants in the protocol's own form.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use yore_canon::encode::base64url;
use yore_canon::hash::hmac_sha256;
use yore_canon::jws;
use yore_canon::key::{Algorithm, SigningKey};
use yore_domain::Span;
use yore_domain::class::Sensitivity;
use yore_engine::{Secret, Settings, grant_named};
use yore_oamp::Options;

use crate::support::{NOW_SECONDS, USER, Vault, claims, did_of, fact, governed, jwt, key};

/// A vault that believes the first key.
async fn trusting() -> Vault {
    let issuer = did_of(&key(1));
    Vault::with(|settings: &mut Settings| settings.issuers.push(issuer), Options::default()).await
}

async fn with_header(vault: &Vault, bearer: Option<&str>, grant: &str, path: &str) -> (u16, Value) {
    let mut request = Request::get(path).header("oamp-grant", grant);
    if let Some(bearer) = bearer {
        request = request.header("authorization", format!("Bearer {bearer}"));
    }
    let reply = vault.send(request.body(Body::empty()).unwrap()).await;
    (reply.status, reply.body)
}

const LIST: &str = "/v1/knowledge?user_id=owner";

#[tokio::test]
async fn oamp_310_oamp_311_a_grant_comes_as_bearer_or_in_its_own_header() {
    let vault = trusting().await;
    vault.holds(&governed("calendar", "internal", &["work.calendar"])).await;
    vault.holds(&governed("diagnosis", "restricted", &["health"])).await;
    let grant = jwt(&key(1), &claims("scheduler", &["work"], "internal"));
    assert_eq!(vault.contents(&grant, "").await, ["calendar"]);
    let (status, body) = with_header(&vault, None, &grant, LIST).await;
    assert_eq!((status, body.as_array().unwrap().len()), (200, 1));
    // Beside the owner's own token it narrows; it never widens.
    let (status, body) = with_header(&vault, Some(&vault.owner), &grant, LIST).await;
    assert_eq!((status, body.as_array().unwrap().len()), (200, 1));
    let health = vault.agent("doctor", &["health"], Sensitivity::Restricted).await;
    let (status, body) = with_header(&vault, Some(&health), &grant, LIST).await;
    assert_eq!((status, body.as_array().unwrap().len()), (200, 0), "both must allow");
    for bad in ["", "x", "a.b.c", &format!("{grant}x"), &vault.owner] {
        let (status, body) = with_header(&vault, Some(&vault.owner), bad, LIST).await;
        assert_eq!((status, &body["code"]), (401, &json!("UNAUTHORIZED")), "{bad}");
    }
}

#[tokio::test]
async fn oamp_312_what_is_not_signed_by_whom_it_should_is_nobody() {
    let vault = trusting().await;
    let good = claims("scheduler", &["work"], "internal");
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        jwt(&key(1), &claims)
    };
    let without = |name: &str| {
        let mut claims = good.clone();
        claims.as_object_mut().unwrap().remove(name);
        jwt(&key(1), &claims)
    };
    let unsigned = {
        let part = |value: &Value| base64url(value.to_string().as_bytes());
        format!("{}.{}.", part(&json!({"alg": "none"})), part(&good))
    };
    let whole = jwt(&key(1), &good);
    let (head, tail) = whole.rsplit_once('.').unwrap();
    let mut flipped = yore_canon::encode::from_base64url(tail).unwrap();
    flipped[5] ^= 1;
    let flipped = format!("{head}.{}", base64url(&flipped));
    let symmetric = shared(b"a secret nobody shares", &good);
    let table = [
        ("a stranger's", jwt(&key(2), &good)),
        (
            "named after a stranger",
            jws::sign(&key(2), &did_of(&key(1)), None, good.to_string().as_bytes()),
        ),
        ("flipped", flipped),
        ("no algorithm", unsigned),
        ("a shared secret without one", symmetric),
        ("expired", with("exp", json!(NOW_SECONDS - 1))),
        ("not yet", with("nbf", json!(NOW_SECONDS + 60))),
        ("no end", without("exp")),
        ("an end in words", with("exp", json!("tomorrow"))),
        ("no user", without("sub")),
        ("no agent", without("oamp_agent_id")),
        ("no id", without("oamp_grant_id")),
        ("no ceiling", without("oamp_sensitivity_max")),
        ("unknown ceiling", with("oamp_sensitivity_max", json!("top secret"))),
        ("other audience", with("aud", json!("someone else"))),
        ("nobody's audience", with("aud", json!([]))),
        ("other issuer", with("iss", json!(did_of(&key(3))))),
        (
            "user nobody knows, a stranger's",
            jwt(&key(2), &{
                let mut claims = good.clone();
                claims["sub"] = json!("nobody");
                claims
            }),
        ),
    ];
    for (name, token) in table {
        let reply = vault.get(&token, LIST).await;
        assert_eq!(reply.refusal(), (401, "UNAUTHORIZED"), "{name}");
    }
    // A user that is not there is told from one that is by nobody without standing.
    let stranger = |user: &str| {
        let mut claims = good.clone();
        claims["sub"] = user.into();
        jwt(&key(2), &claims)
    };
    let (known, unknown) = (stranger(USER), stranger("nobody"));
    assert_eq!(vault.get(&known, LIST).await.text, vault.get(&unknown, LIST).await.text);
    // Claims that are not understood do no harm.
    for (name, value) in [
        ("iat", json!(NOW_SECONDS)),
        ("iss", json!(did_of(&key(1)))),
        ("iss", json!("https://issuer.example")),
        ("jti", json!("x")),
        ("vendor", json!({"a": [1]})),
    ] {
        assert_eq!(vault.get(&with(name, value), LIST).await.status, 200, "{name}");
    }
}

#[tokio::test]
async fn both_kinds_of_keys_and_a_shared_secret_sign_grants() {
    let p256 = SigningKey::generate(Algorithm::P256, &[9; 32]);
    let issuers = vec![did_of(&key(1)), did_of(&p256)];
    let vault = Vault::with(
        |settings: &mut Settings| {
            settings.issuers = issuers;
            settings.shared_secret = Some(Secret::new("between the two of us"));
        },
        Options::default(),
    )
    .await;
    let grant = claims("scheduler", &["work"], "internal");
    assert_eq!(vault.get(&jwt(&key(1), &grant), LIST).await.status, 200);
    assert_eq!(vault.get(&jwt(&p256, &grant), LIST).await.status, 200);
    assert_eq!(vault.get(&shared(b"between the two of us", &grant), LIST).await.status, 200);
    assert_eq!(vault.get(&shared(b"between the three of us", &grant), LIST).await.status, 401);
    let said = vault.get("", "/v1/capabilities").await.expect(200);
    let known = &said["capabilities"]["metadata"]["grant_algorithms"];
    assert_eq!(*known, json!(["EdDSA", "ES256", "HS256"]));
}

fn shared(secret: &[u8], claims: &Value) -> String {
    let part = |value: &Value| base64url(value.to_string().as_bytes());
    let text = format!("{}.{}", part(&json!({"alg": "HS256", "typ": "JWT"})), part(claims));
    format!("{text}.{}", base64url(&hmac_sha256(secret, text.as_bytes())))
}

#[tokio::test]
async fn oamp_313_a_grant_without_usable_labels_reads_nothing() {
    let vault = trusting().await;
    vault.holds(&governed("work", "public", &["work"])).await;
    vault.holds(&fact("behaviour")).await;
    for labels in [json!([]), Value::Null, json!("work"), json!([1, ""]), json!({"work": true})] {
        let mut grant = claims("scheduler", &[], "restricted");
        grant["oamp_read_labels"] = labels.clone();
        let token = jwt(&key(1), &grant);
        assert!(vault.contents(&token, "").await.is_empty(), "{labels}");
        assert_eq!(vault.export(&token).await["entries"], json!([]), "{labels}");
    }
}

#[tokio::test]
async fn oamp_201_oamp_202_oamp_314_a_grant_is_for_one_user() {
    let vault = trusting().await;
    let mut annas = fact("Anna's");
    annas["user_id"] = "anna".into();
    vault.post(&vault.service, "/v1/knowledge", &annas).await.expect(201);
    let mut grant = claims("scheduler", &["behaviour"], "internal");
    grant["sub"] = "anna".into();
    let token = jwt(&key(1), &grant);
    let hers = vault.get(&token, "/v1/knowledge?user_id=anna").await.expect(200);
    assert_eq!(hers.as_array().unwrap().len(), 1);
    assert_eq!(vault.get(&token, LIST).await.refusal(), (403, "FORBIDDEN"));
    for (path, body) in [
        ("/v1/knowledge", fact("for another")),
        ("/v1/export", json!({"user_id": USER})),
        ("/v1/import", crate::support::store(&[])),
    ] {
        assert_eq!(vault.post(&token, path, &body).await.status, 403, "{path}");
    }
    // Together with the owner's token the grant opens neither vault.
    let (status, _) = with_header(&vault, Some(&vault.owner), &token, LIST).await;
    assert_eq!(status, 403);
    assert_eq!(vault.contents(&vault.owner, "").await.len(), 0, "nothing was written");
}

#[tokio::test]
async fn oamp_315_a_grant_is_revoked_by_its_own_id_from_the_next_request_on() {
    let vault = trusting().await;
    let grant = jwt(&key(1), &claims("scheduler", &["work"], "internal"));
    let other = jwt(&key(1), &claims("coder", &["work"], "internal"));
    assert_eq!(vault.get(&grant, LIST).await.status, 200);
    let owner = vault.owner_call();
    vault.engine.revoke_grant(&owner, grant_named("grant-of-scheduler")).await.unwrap();
    assert_eq!(vault.get(&grant, LIST).await.refusal(), (401, "UNAUTHORIZED"));
    assert_eq!(vault.get(&other, LIST).await.status, 200);
    let lines = vault.audit("&action=grant_revoke").await;
    assert_eq!(lines.len(), 1);
}

#[tokio::test]
async fn a_grant_of_the_vault_can_be_signed_by_it_and_extended_for_a_while() {
    let vault = Vault::new().await;
    vault.holds(&governed("appointment", "internal", &["health.appointment"])).await;
    vault.holds(&governed("consult", "restricted", &["health.consult"])).await;
    let (portal, grant) =
        vault.agent_with("portal", &["health.appointment"], &[], Sensitivity::Confidential).await;
    let owner = vault.owner_call();
    assert!(vault.oamp.signed_grant(&owner, grant).await.is_err(), "it must end by itself");
    vault.engine.extend_grant(&owner, grant, Span::days(1)).await.unwrap();
    let signed = vault.oamp.signed_grant(&owner, grant).await.unwrap();
    assert_eq!(vault.contents(&signed, "").await, ["appointment"]);
    let extension = yore_engine::Extension {
        ttl: Span::seconds(1800),
        read: vec![yore_domain::class::Label::new("health.consult").unwrap()],
        write: vec![],
        ceiling: Some(Sensitivity::Restricted),
        note: Some("for this consultation".into()),
    };
    let wider = vault.engine.widen_grant(&owner, grant, extension.clone()).await.unwrap();
    let widened = vault.oamp.signed_grant(&owner, wider.grant.id).await.unwrap();
    assert_eq!(vault.contents(&widened, "").await.len(), 2);
    assert_eq!(vault.contents(&portal, "").await, ["appointment"], "the first stays as it was");
    let agent = yore_engine::Call::bearer("test", Secret::new(portal));
    assert!(vault.engine.widen_grant(&agent, grant, extension).await.is_err());
    assert!(vault.oamp.signed_grant(&agent, grant).await.is_err());
    vault.clock.advance(Span::seconds(1801));
    assert_eq!(vault.get(&widened, LIST).await.status, 401, "it ends by itself");
    assert_eq!(vault.get(&signed, LIST).await.status, 200);
    vault.engine.revoke_grant(&owner, grant).await.unwrap();
    assert_eq!(vault.get(&signed, LIST).await.status, 401);
    let fallen = vault.engine.grant(&owner, wider.grant.id).await.unwrap();
    assert!(fallen.revoked.is_some(), "an extension falls with what it extends");
}

#[tokio::test]
async fn oamp_343_oamp_344_a_write_must_lie_inside_the_grant() {
    let vault = trusting().await;
    let agent = jwt(&key(1), &claims("scheduler", &["work", "preferences"], "internal"));
    let stated = |agent: &str| {
        let mut entry = governed("x", "internal", &["work"]);
        entry["source"]["agent_id"] = agent.into();
        entry
    };
    let open = |class: &str, surface: &str| {
        let mut entry = governed("x", class, &["work"]);
        entry["governance"]["handling"] = json!({surface: "ungoverned"});
        entry
    };
    let allowed = [
        governed("one label", "internal", &["work.calendar"]),
        governed("both labels", "public", &["work", "preferences.style"]),
        stated("scheduler"),
        open("public", "retrieval"),
    ];
    for entry in &allowed {
        assert_eq!(vault.post(&agent, "/v1/knowledge", entry).await.expect(201), *entry);
    }
    let denied = [
        governed("one label too many", "internal", &["work", "health"]),
        governed("too sensitive", "confidential", &["work"]),
        fact("behaviour is not granted"),
        governed("a longer word", "internal", &["workshop"]),
        stated("doctor"),
        open("internal", "retrieval"),
        open("internal", "export"),
        open("internal", "stream"),
    ];
    for entry in &denied {
        let reply = vault.post(&agent, "/v1/knowledge", entry).await;
        assert_eq!(reply.refusal(), (403, "SCOPE_DENIED_WRITE"), "{entry}");
    }
    assert_eq!(vault.contents(&vault.owner, "").await.len(), allowed.len());
    // The person may open what is theirs.
    vault.holds(&open("confidential", "retrieval")).await;
}

#[tokio::test]
async fn oamp_348_what_is_readable_but_not_writable_is_forbidden_and_what_is_hidden_missing() {
    let vault = trusting().await;
    let mut grant = claims("reader", &["work"], "internal");
    grant["oamp_write_labels"] = json!(["work.notes"]);
    let agent = jwt(&key(1), &grant);
    let readable = vault.holds(&governed("readable", "internal", &["work"])).await;
    let writable = vault.holds(&governed("writable", "internal", &["work.notes"])).await;
    let hidden = vault.holds(&governed("hidden", "internal", &["health"])).await;
    let change = json!({"confidence": 0.1});
    for (id, status) in [(&readable, 403), (&writable, 200), (&hidden, 404)] {
        assert_eq!(vault.patch(&agent, id, &change).await.status, status, "patch {status}");
    }
    for (id, status) in [(&readable, 403), (&writable, 204), (&hidden, 404)] {
        assert_eq!(vault.delete(&agent, id).await.status, status, "delete {status}");
    }
    assert_eq!(vault.contents(&vault.owner, "").await.len(), 2);
}
