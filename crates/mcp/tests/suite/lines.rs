//! Lines over stdio that no well-behaved client would write.

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use yore_engine::{Call, Secret};
use yore_mcp::{Options, ToolNames, stdio_on};

use super::vault;

#[tokio::test]
async fn odd_lines_do_not_end_a_session() {
    let directory = TempDir::new().unwrap();
    let (surface, token) = vault::open(directory.path()).await;
    let call = Call::bearer("mcp", Secret::new(token));
    let options = Options { names: ToolNames::Underscore, ..Options::default() };
    let (near, far) = tokio::io::duplex(1 << 20);
    let (read, write) = tokio::io::split(far);
    let served = tokio::spawn(stdio_on(surface, call, options, read, write));
    let (read, mut write) = tokio::io::split(near);
    let mut lines = BufReader::new(read).lines();

    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
    } });
    write.write_all(format!("{initialize}\n").as_bytes()).await.unwrap();
    let answer: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    assert!(answer["result"]["instructions"].as_str().unwrap().contains("untrusted data"));

    let deep = format!("{}{}\n", "[".repeat(5000), "]".repeat(5000));
    let long = format!("{{\"x\":\"{}\"}}\n", "a".repeat(3 << 20));
    let odd: Vec<&[u8]> = vec![
        b"\n",
        b"nonsense\n",
        b"{\n",
        b"\xff\xfe\n",
        b"[]\n",
        b"{}\n",
        deep.as_bytes(),
        long.as_bytes(),
    ];
    for line in odd {
        write.write_all(line).await.unwrap();
    }
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    write.write_all(format!("{list}\n").as_bytes()).await.unwrap();
    loop {
        let line = lines.next_line().await.unwrap().expect("the session goes on");
        let message: Value = serde_json::from_str(&line).expect("only messages are written");
        assert_eq!(message["jsonrpc"], "2.0");
        if message["id"] == 2 {
            let names: Vec<&str> = message["result"]["tools"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| tool["name"].as_str().unwrap())
                .collect();
            assert!(names.contains(&"note_recall") && !names.iter().any(|name| name.contains('.')));
            break;
        }
        assert!(message["error"].is_object(), "{message}");
    }
    write.shutdown().await.unwrap();
    drop((write, lines));
    served.await.unwrap().unwrap();
}
