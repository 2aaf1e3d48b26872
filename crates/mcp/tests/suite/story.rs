//! What a host does with a memory, by every way and in both lifecycles.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ErrorCode,
    GetPromptRequestParams, ReadResourceRequestParams, ResourceContents, SubscriptionFilter,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Value, json};

use super::host::{Life, Person, Session, Setting, WAYS, Way, setting};
use super::notes::WAITING;

async fn call(
    client: &Session,
    tool: &str,
    arguments: Value,
) -> Result<CallToolResult, ServiceError> {
    let arguments = arguments.as_object().cloned().unwrap();
    client.call_tool(CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)).await
}

async fn done(client: &Session, tool: &str, arguments: Value) -> Value {
    let result = call(client, tool, arguments).await.unwrap();
    assert_ne!(result.is_error, Some(true), "{tool}: {result:?}");
    let value = result.structured_content.unwrap();
    let text = &result.content[0].as_text().unwrap().text;
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), value, "the copy says the same");
    value
}

async fn remembered(client: &Session, text: &str) -> String {
    let done = done(client, "note.remember", json!({ "text": text, "project": "garden" })).await;
    assert_eq!(done["result"], "created");
    done["id"].as_str().unwrap().to_owned()
}

fn code(error: &ServiceError) -> ErrorCode {
    match error {
        ServiceError::McpError(error) => error.code,
        other => panic!("not an error of the protocol: {other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_come_from_the_registry() {
    for (way, life) in WAYS {
        let Setting { client, .. } = &setting(way, life, Person::Nobody).await;
        let tools = client.list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        let dotted =
            ["note.recall", "note.remember", "note.get", "note.forget", "note.burn", "note.wait"];
        let expected: Vec<String> = dotted
            .iter()
            .map(
                |name| if way == Way::Compat { name.replace('.', "_") } else { (*name).to_owned() },
            )
            .chain(["search".to_owned(), "fetch".to_owned()])
            .collect();
        assert_eq!(names, expected, "{way:?} {life:?}");
        for tool in &tools {
            assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
            assert!(tool.output_schema.is_some() && tool.title.is_some(), "{}", tool.name);
            assert!(tool.annotations.as_ref().unwrap().read_only_hint.is_some(), "{}", tool.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_go_in_and_come_out() {
    for (way, life) in WAYS {
        let Setting { client, .. } = &setting(way, life, Person::Nobody).await;
        let id = remembered(client, "The roses by the gate want water in June.").await;
        let found = done(client, "note_recall", json!({ "query": "watering roses" })).await;
        assert_eq!(
            found["found"][0], "The roses by the gate want water in June.",
            "{way:?} {life:?}"
        );

        let again =
            json!({ "text": "The roses by the gate want water in June.", "project": "garden" });
        assert_eq!(done(client, "note.remember", again).await["result"], "merged");

        let hits = done(client, "search", json!({ "query": "roses" })).await;
        assert_eq!(hits["results"][0]["id"], id.as_str());
        let whole = done(client, "fetch", json!({ "id": id })).await;
        assert_eq!(whole["text"], "The roses by the gate want water in June.");
        assert_eq!(whole["metadata"]["project"], "garden");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_carry_the_dialects_code() {
    for (way, life) in WAYS {
        let Setting { client, .. } = &setting(way, life, Person::Nobody).await;
        let missing = json!({ "id": "00000000-0000-4000-8000-000000000000" });
        for (tool, input, expected) in [
            ("note.get", missing.clone(), "not_found"),
            ("note.recall", json!({ "query": 7 }), "invalid"),
            ("fetch", missing, "not_found"),
            ("search", json!({ "query": "x", "extra": 1 }), "invalid"),
        ] {
            let result = call(client, tool, input).await.unwrap();
            assert_eq!(result.is_error, Some(true), "{tool} {way:?} {life:?}");
            let text: Value =
                serde_json::from_str(&result.content[0].as_text().unwrap().text).unwrap();
            assert_eq!(text["error"]["code"], expected, "{tool} {way:?} {life:?}");
            match life {
                // Older clients hold structured content against the output schema.
                Life::Session => assert!(result.structured_content.is_none()),
                Life::Alone => assert_eq!(result.structured_content, Some(text)),
            }
        }
        let unknown = call(client, "note.nothing", json!({})).await.unwrap_err();
        assert_eq!(code(&unknown), ErrorCode::INVALID_PARAMS, "{way:?} {life:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_prompts_and_completions() {
    for (way, life) in WAYS {
        let Setting { client, .. } = &setting(way, life, Person::Nobody).await;
        let id = remembered(client, "Tomatoes stay inside until the ice saints.").await;
        let uri = format!("note://garden/{id}");
        let listed = client.list_all_resources().await.unwrap();
        assert_eq!(listed.iter().map(|found| &found.uri).collect::<Vec<_>>(), [&uri]);
        let templates = client.list_all_resource_templates().await.unwrap();
        assert_eq!(templates[0].uri_template, "note://{project}/{id}");

        for uri in [uri, format!("yore://memory/{id}")] {
            let read = client.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
            let ResourceContents::TextResourceContents { text, .. } = &read.contents[0] else {
                panic!("not a text")
            };
            assert!(text.contains("ice saints"));
        }
        let missing = "note://garden/00000000-0000-4000-8000-000000000000";
        for uri in [missing, "other://x", "yore://memory/x"] {
            let error =
                client.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap_err();
            let expected = match life {
                Life::Session => ErrorCode::RESOURCE_NOT_FOUND,
                Life::Alone => ErrorCode::INVALID_PARAMS,
            };
            assert_eq!(code(&error), expected, "{uri} {way:?} {life:?}");
            let ServiceError::McpError(error) = error else { unreachable!() };
            assert_eq!(error.data.unwrap()["uri"], uri);
        }

        let prompts = client.list_all_prompts().await.unwrap();
        assert!(prompts.iter().any(|prompt| prompt.name == "recall-context"));
        let asked = GetPromptRequestParams::new("recall-context").with_arguments(
            json!({ "query": "tomatoes", "project": "garden" }).as_object().cloned().unwrap(),
        );
        let prompt = client.get_prompt(asked).await.unwrap();
        let frame = serde_json::to_string(&prompt.messages).unwrap();
        assert!(frame.contains("untrusted-data") && frame.contains("ice saints"), "{frame}");
        let unknown = client.get_prompt(GetPromptRequestParams::new("nothing")).await.unwrap_err();
        assert_eq!(code(&unknown), ErrorCode::INVALID_PARAMS);

        let projects =
            client.complete_prompt_simple("recall-context", "project", "GA").await.unwrap();
        assert_eq!(projects, ["garden"]);
        let template = "note://{project}/{id}";
        let ids = client.complete_resource_simple(template, "id", &id[..4]).await.unwrap();
        assert_eq!(ids, [id]);
        let none = client.complete_prompt_simple("recall-context", "project", "x").await.unwrap();
        assert!(none.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_told_to_whoever_watches() {
    for (way, life) in WAYS {
        let Setting { client, mut updates, _directory } = setting(way, life, Person::Nobody).await;
        let id = remembered(&client, "The key is under the third pot.").await;
        let uri = format!("note://garden/{id}");
        let change = json!({ "id": id });
        let told = match life {
            Life::Session => {
                #[expect(deprecated, reason = "older clients subscribe this way")]
                client
                    .subscribe(rmcp::model::SubscribeRequestParams::new(uri.clone()))
                    .await
                    .unwrap();
                // The relay opens its stream behind the client's back.
                tokio::time::sleep(Duration::from_millis(300)).await;
                done(&client, "note.forget", change).await;
                tokio::time::timeout(Duration::from_secs(10), updates.recv())
                    .await
                    .unwrap()
                    .unwrap()
            }
            Life::Alone => {
                let filter =
                    SubscriptionFilter::builder().resource_subscription(uri.clone()).build();
                let mut stream = client.listen(filter).await.unwrap();
                tokio::time::sleep(Duration::from_millis(300)).await;
                done(&client, "note.forget", change).await;
                let next = tokio::time::timeout(Duration::from_secs(10), stream.next()).await;
                let told = serde_json::to_value(next.unwrap().unwrap().unwrap()).unwrap();
                assert_eq!(told["method"], "notifications/resources/updated");
                told["params"]["uri"].as_str().unwrap().to_owned()
            }
        };
        assert_eq!(told, uri, "{way:?} {life:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_before_an_erasure() {
    for (way, life) in WAYS {
        for (person, erased) in
            [(Person::Agrees, true), (Person::Declines, false), (Person::Nobody, true)]
        {
            let Setting { client, .. } = &setting(way, life, person).await;
            for (tool, hard) in [("note.forget", true), ("note.burn", false)] {
                let id = remembered(client, &format!("A secret that should go by {tool}.")).await;
                let mut input = json!({ "id": id });
                if hard {
                    input["hard"] = true.into();
                }
                let result = call(client, tool, input).await.unwrap();
                let text = &result.content[0].as_text().unwrap().text;
                let which = format!("{way:?} {life:?} {person:?} {tool}: {text}");
                assert_eq!(result.is_error == Some(true), !erased, "{which}");
                if !erased {
                    assert!(text.contains("declined"), "{which}");
                    done(client, "note.get", json!({ "id": id })).await;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_work_is_told_of_and_can_be_cancelled() {
    for (way, life) in WAYS {
        let Setting { client, .. } = &setting(way, life, Person::Nobody).await;
        let arguments = json!({ "seconds": 60 }).as_object().cloned().unwrap();
        let params = CallToolRequestParams::new("note.wait").with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let mut progress = client.service().progress();
        let pending = client.send_cancellable_request(request, options).await.unwrap();
        let told = tokio::time::timeout(Duration::from_secs(20), progress.recv()).await;
        let told = told.unwrap_or_else(|_| panic!("no progress: {way:?} {life:?}")).unwrap();
        assert!(told > 0.0, "{way:?} {life:?}");
        assert_eq!(WAITING.load(Ordering::SeqCst), 1, "{way:?} {life:?}");
        pending.cancel(None).await.unwrap();
        let ended = async {
            while WAITING.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
        assert!(ended.is_ok(), "the work goes on: {way:?} {life:?}");
        // The server goes on for others.
        done(client, "note.wait", json!({ "seconds": 0 })).await;
    }
}
