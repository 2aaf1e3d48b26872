//! An MCP host that follows the authorisation specification, from the first refusal to a tool.

use serde_json::{Value, json};
use yore_canon::encode::base64url;
use yore_canon::hash::Sha256;
use yore_client::api;

use crate::support::{Server, exchange, remember};

const VERIFIER: &str = "a-verifier-that-is-long-enough-to-be-one-0123456789";
const PLACE: &str = "http://127.0.0.1:39999/callback";

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        });
        line.unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

async fn send(server: &Server, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut head = format!("{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", server.http());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let (status, text) = exchange(server.http(), head.as_bytes()).await;
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

/// The path of an address of this server.
fn path<'a>(server: &Server, address: &'a str) -> &'a str {
    address.strip_prefix(&format!("http://{}", server.http())).unwrap()
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// The owner signs in and agrees; answers with the code.
async fn agree(server: &Server, query: &str) -> String {
    let form = format!("token={}", server.token.expose());
    let entered = send(server, "POST /app/login", &[FORM], &form).await;
    let cookie = entered.header("set-cookie").split(';').next().unwrap().to_owned();
    let cookie = ("Cookie", cookie.as_str());
    let asked = send(server, &format!("GET /app/oauth/authorize?{query}"), &[cookie], "").await;
    assert_eq!(asked.status, 200, "{}", asked.body);
    let (_, mark) = asked.body.split_once("name=\"csrf\" value=\"").unwrap();
    let mark = mark.split('"').next().unwrap();
    let form = format!("{query}&csrf={mark}&decision=allow&agent=host&verbs=read&verbs=write");
    let agreed = send(server, "POST /app/oauth/authorize", &[FORM, cookie], &form).await;
    let place = agreed.header("location");
    assert!(place.starts_with(PLACE), "{place}");
    let (_, code) = place.split_once("code=").unwrap();
    code.split('&').next().unwrap().to_owned()
}

#[tokio::test]
async fn an_mcp_host_connects_without_a_token_typed_by_hand() {
    let server = Server::start().await;
    server.client().call::<api::Remember>(remember("the kettle is blue")).await.unwrap();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let accept = ("Accept", "application/json, text/event-stream");
    let refused = send(&server, "POST /mcp", &[JSON, accept], &list).await;
    assert_eq!(refused.status, 401);
    let challenge = refused.header("www-authenticate").to_owned();
    let (_, place) = challenge.split_once("resource_metadata=\"").unwrap();
    let place = place.split('"').next().unwrap();
    let resource = send(&server, &format!("GET {}", path(&server, place)), &[], "").await.json();
    let issuer = resource["authorization_servers"][0].as_str().unwrap().to_owned();
    let described = "/.well-known/oauth-authorization-server";
    let place = format!("{}{described}", path(&server, &issuer));
    let described = send(&server, &format!("GET {place}"), &[], "").await.json();
    assert_eq!(described["issuer"], issuer.as_str());
    let endpoint = |name: &str| path(&server, described[name].as_str().unwrap()).to_owned();

    let said = json!({ "client_name": "A Host", "redirect_uris": [PLACE] }).to_string();
    let place = endpoint("registration_endpoint");
    let client = send(&server, &format!("POST {place}"), &[JSON], &said).await.json();
    let client = client["client_id"].as_str().unwrap().to_owned();
    let resource = resource["resource"].as_str().unwrap().to_owned();
    let challenge = base64url(Sha256::of(VERIFIER).as_bytes());
    let query = format!(
        "response_type=code&client_id={client}&redirect_uri={}&code_challenge={challenge}\
         &code_challenge_method=S256&state=x&scope=read+write&resource={}",
        encoded(PLACE),
        encoded(&resource),
    );
    assert_eq!(endpoint("authorization_endpoint"), "/app/oauth/authorize");
    let code = agree(&server, &query).await;
    let form = format!(
        "grant_type=authorization_code&code={code}&client_id={client}&redirect_uri={}\
         &code_verifier={VERIFIER}&resource={}",
        encoded(PLACE),
        encoded(&resource),
    );
    let place = endpoint("token_endpoint");
    let token = send(&server, &format!("POST {place}"), &[FORM], &form).await.json();
    let bearer = format!("Bearer {}", token["access_token"].as_str().unwrap());

    let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "host", "version": "1" },
    } });
    let headers = [JSON, accept, ("Authorization", bearer.as_str())];
    let begun = send(&server, "POST /mcp", &headers, &begin.to_string()).await;
    assert_eq!(begun.status, 200, "{}", begun.body);
    assert!(begun.body.contains("serverInfo"), "{}", begun.body);
    server.end().await;
}
