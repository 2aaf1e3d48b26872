use yore_domain::class::Label;
use yore_domain::memory::Draft;
use yore_engine::{Call, Secret};

use crate::support::Vault;

async fn filled() -> Vault {
    let vault = Vault::new().await;
    for (text, label) in [("stand-up is at nine", "work.calendar"), ("blood is fine", "health")] {
        let mut draft = Draft::text(text);
        draft.content.governance.labels = vec![Label::new(label).unwrap()];
        vault.remember(draft).await;
    }
    vault
}

const FIELDS: [(&str, &str); 6] = [
    ("agent", "claude-code"),
    ("verbs", "read"),
    ("read", "work"),
    ("max", "internal"),
    ("life", "86400"),
    ("note", "for the laptop"),
];

#[tokio::test]
async fn a_grant_is_previewed_given_and_taken_back() {
    let vault = filled().await;
    let browser = vault.browser().await;
    let page = browser.get("/app/access").await.expect(200);
    assert!(page.contains("No agent may do anything") && page.contains("this sign-in"), "{page}");
    let preview = browser.post("/app/access/preview", &FIELDS).await.expect(200);
    assert!(preview.contains("What claude-code would see"), "{preview}");
    assert!(preview.contains("stand-up is at nine") && !preview.contains("blood"), "{preview}");
    assert!(vault.engine.grants(&vault.owner_call()).await.unwrap().is_empty(), "nothing is given");
    let issued = browser.post("/app/access/issue", &FIELDS).await.expect(200);
    let (_, rest) = issued.split_once("<code id=\"token\">").unwrap();
    let agent = Call::bearer("test", Secret::new(rest.split('<').next().unwrap()));
    assert_eq!(vault.engine.count(&agent, Default::default()).await.unwrap(), 1);
    assert!(issued.contains("http://localhost/mcp"), "{issued}");
    let page = browser.get("/app/access").await.expect(200);
    assert!(page.contains("claude-code") && page.contains("for the laptop"), "{page}");
    assert!(page.contains("in 24 h") || page.contains("in 1 day"), "{page}");
    let grant = vault.engine.grants(&vault.owner_call()).await.unwrap()[0].id.to_string();
    let page = browser.follow("/app/access/revoke", &[("grant", &grant)]).await;
    assert!(page.contains("It opens nothing any more") && page.contains("1 that ended"), "{page}");
    assert!(vault.engine.count(&agent, Default::default()).await.is_err());
}

#[tokio::test]
async fn a_preview_carries_the_form_to_the_grant_unchanged() {
    let vault = filled().await;
    let browser = vault.browser().await;
    let preview = browser.post("/app/access/preview", &FIELDS).await.expect(200);
    for (name, value) in FIELDS {
        let field = format!("<input type=\"hidden\" name=\"{name}\" value=\"{value}\">");
        assert!(preview.contains(&field), "{field} in {preview}");
    }
}

#[tokio::test]
async fn a_token_can_be_taken_back() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let other = vault.browser().await;
    let tokens = vault.engine.tokens(&vault.owner_call()).await.unwrap();
    let digest = yore_engine::token::digest(&Secret::new(&*other.session));
    let token = tokens.iter().find(|token| token.hash == digest).unwrap().id.to_string();
    browser.follow("/app/access/revoke", &[("token", &token)]).await;
    assert_eq!(other.get("/app").await.place(), "/app/login");
    assert_eq!(browser.post("/app/access/revoke", &[]).await.status, 404);
}

#[tokio::test]
async fn what_makes_no_grant_is_refused() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    for (name, value) in [("verbs", "fly"), ("max", "odd"), ("life", "7"), ("agent", "")] {
        let mut fields: Vec<(&str, &str)> =
            FIELDS.into_iter().filter(|(other, _)| *other != name).collect();
        fields.push((name, value));
        for path in ["/app/access/preview", "/app/access/issue"] {
            assert_eq!(browser.post(path, &fields).await.status, 400, "{path} {name}={value}");
        }
    }
    assert!(vault.engine.grants(&vault.owner_call()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_grant_is_tried_on_the_last_week() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let agent = vault.agent("scheduler").await;
    let mut secret = Draft::text("the blood test is on Monday");
    secret.content.governance.labels = vec![yore_domain::class::Label::new("health").unwrap()];
    vault.remember(secret).await;
    vault.remember(Draft::text("the stand-up is on Monday")).await;
    let fields = |read: &'static str| {
        vec![
            ("agent", "scheduler"),
            ("verbs", "read"),
            ("read", read),
            ("max", "internal"),
            ("life", ""),
        ]
    };
    let page = browser.post("/app/access/preview", &fields("")).await.expect(200);
    assert!(!page.contains("Its last week"), "it asked nothing yet");
    let recall = yore_domain::query::Recall {
        query: "what is on Monday?".into(),
        corpus: Default::default(),
        filter: Default::default(),
        near: Default::default(),
        limit: 5,
        effort: Default::default(),
        prefer: Vec::new(),
        cutoff: yore_domain::query::Cutoff::Off,
    };
    let found = vault.engine.recall(&agent, recall).await.unwrap();
    assert_eq!(found.results.len(), 2);
    let page = browser.post("/app/access/preview", &fields("")).await.expect(200);
    assert!(page.contains("Nothing of that would have been missing"), "{page}");
    let page = browser.post("/app/access/preview", &fields("work")).await.expect(200);
    assert!(page.contains("<strong>1</strong> of the answers would have lacked"), "{page}");
    assert!(page.contains("the blood test is on Monday"), "{page}");
    vault.clock.advance(yore_domain::Span::days(8));
    let browser = vault.browser().await;
    let page = browser.post("/app/access/preview", &fields("work")).await.expect(200);
    assert!(!page.contains("Its last week"), "{page}");
}
