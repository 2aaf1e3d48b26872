//! The probe: it passes our own server, and not one that only looks like a server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;

use crate::common::{Home, check};

fn probe(home: &Home, url: &str, token: &str, more: &[&str]) -> crate::common::Ended {
    let args = ["conformance", "ump", "--url", url, "--token", token, "--owner", "owner"];
    let mut command = home.command(&[&args[..], more].concat());
    command.env_remove("YORE_DATA");
    crate::common::ended(command.output().unwrap())
}

#[test]
fn ump_120_our_own_server_keeps_level_three_on_every_way() {
    let home = Home::new();
    let server = home.serve();
    let token = home.ok(&["token", "owner"]);
    let reader = home.ok(&["token", "issue", "--verbs", "read", "--max", "restricted"]);
    let badge = home.path("badge.svg");
    let more = ["--reader", reader.trim(), "--badge", badge.to_str().unwrap(), "--json"];
    let ended = probe(&home, &server.url(), token.trim(), &more);
    assert_eq!(ended.code, 0, "{ended:?}");
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["level"], "L3", "{report}");
    let mut counted = 0;
    for check in report["checks"].as_array().unwrap() {
        for (way, outcome) in check["outcomes"].as_object().unwrap() {
            let skipped = way == "file" && outcome["state"] == "skipped";
            assert!(outcome["state"] == "passed" || skipped, "{check}");
            counted += 1;
        }
    }
    assert!(counted >= 38, "every check on HTTP and on MCP: {counted}");
    let svg = std::fs::read_to_string(badge).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("L3 / MCP+HTTP"), "{svg}");
    let shown = probe(&home, &server.url(), token.trim(), &[]);
    assert!(shown.out.contains("UMP 1.0 / L3 / MCP+HTTP"), "{shown:?}");
    assert!(home.all().is_empty(), "it took back what it made");
    home.fails(&["conformance", "ump"], 2, &["--url"]);
}

/// What stands between the probe and our server, and spoils it.
type Spoil = fn(head: &mut String, body: &mut String, owner: &str);

/// Passes requests on one by one; `ask` may change them, `answer` what comes back.
fn broken(upstream: String, owner: String, ask: Spoil, answer: Spoil) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (upstream, owner) = (upstream.clone(), owner.clone());
            std::thread::spawn(move || pass(stream, &upstream, &owner, ask, answer));
        }
    });
    url
}

fn pass(
    mut stream: TcpStream,
    upstream: &str,
    owner: &str,
    ask: Spoil,
    answer: Spoil,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let lower = line.to_lowercase();
        if let Some(number) = lower.strip_prefix("content-length:") {
            length = number.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
        let dropped = ["content-length:", "connection:", "host:"];
        if !dropped.iter().any(|name| lower.starts_with(name)) {
            head.push_str(&line);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut body = String::from_utf8(body).ok()?;
    ask(&mut head, &mut body, owner);
    let address = upstream.trim_start_matches("http://");
    let mut server = TcpStream::connect(address).ok()?;
    let stop =
        format!("host: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    server.write_all(format!("{head}{stop}{body}").as_bytes()).ok()?;
    // Streams do not end by themselves, so they pass as they come.
    if head.starts_with("GET /ump/subscribe") || head.lines().any(|line| line.contains(" /mcp")) {
        std::io::copy(&mut server, &mut stream).ok()?;
        return None;
    }
    let mut read = Vec::new();
    server.read_to_end(&mut read).ok()?;
    let read = String::from_utf8(read).ok()?;
    let (head, body) = read.split_once("\r\n\r\n")?;
    let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { joined(body) } else { body.to_owned() };
    let kept = |line: &&str| {
        let lower = line.to_lowercase();
        !["content-length:", "transfer-encoding:", "connection:"]
            .iter()
            .any(|n| lower.starts_with(n))
    };
    let mut head: String = head.lines().filter(kept).map(|line| format!("{line}\r\n")).collect();
    let mut body = body;
    answer(&mut head, &mut body, owner);
    let end = format!("connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{end}{body}").as_bytes()).ok()
}

fn joined(chunks: &str) -> String {
    let (mut rest, mut text) = (chunks, String::new());
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        text.push_str(&more[..size]);
        rest = &more[size + 2..];
    }
    text
}

const AS_IT_IS: Spoil = |_, _, _| {};

#[test]
fn a_server_that_breaks_a_rule_does_not_keep_its_level() {
    let home = Home::new();
    let server = home.serve();
    let token = home.ok(&["token", "owner"]);
    let token = token.trim();
    // Whatever token comes, the owner's is passed on: strangers get everything.
    let lets_in: Spoil = |head, _, owner| {
        let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
        lines.retain(|line| !line.to_lowercase().starts_with("authorization:"));
        lines.push(format!("authorization: Bearer {owner}"));
        *head = lines.iter().map(|line| format!("{line}\r\n")).collect();
    };
    let unsigned: Spoil = |_, body, _| *body = body.replace("\"integrity\"", "\"x_integrity\"");
    let forgets_nothing: Spoil = |head, body, _| {
        if head.starts_with("POST /ump/forget") {
            *head = head.replacen("/ump/forget", "/ump/v0.1/capabilities", 1);
            *body = "{}".to_owned();
        }
    };
    let lies: Spoil = |head, body, _| {
        // Only what became of forgetting was asked in the older version.
        if head.contains("200") && body.contains("\"ump\":\"0.1\"") {
            *body = "{\"result\":\"tombstoned\"}".to_owned();
        }
    };
    let old: Spoil = |_, body, _| *body = body.replace("\"ump\":\"1.0\"", "\"ump\":\"0.9\"");
    let cases: [(&str, Spoil, Spoil, &str, &[&str]); 4] = [
        ("lets strangers in", lets_in, AS_IT_IS, "L2", &["foreign issuer", "isolation"]),
        ("signs nothing", AS_IT_IS, unsigned, "none", &["integrity"]),
        ("forgets nothing", forgets_nothing, lies, "L1", &["forget"]),
        ("speaks another version", AS_IT_IS, old, "none", &["capabilities"]),
    ];
    for (what, ask, answer, level, checks) in cases {
        let url = broken(server.url(), token.to_owned(), ask, answer);
        let ended = probe(&home, &url, token, &["--json"]);
        check(&ended, 1, &["the server keeps"]);
        let report: Value = serde_json::from_str(&ended.out).unwrap();
        let kept = report["level"].as_str().unwrap_or("none");
        assert!(kept < "L3" || kept == "none", "{what}: {report}");
        assert_eq!(kept, level, "{what}: {report:#}");
        for name in checks {
            let found =
                report["checks"].as_array().unwrap().iter().find(|one| one["name"] == *name);
            let outcome = &found.unwrap()["outcomes"]["HTTP"];
            assert_eq!(outcome["state"], "failed", "{what}: {name}: {outcome}");
        }
    }
}

#[test]
fn nobody_there_is_no_conformance() {
    let home = Home::new();
    let args = ["conformance", "ump", "--url", "http://127.0.0.1:9", "--token", "t"];
    home.fails(&args, 7, &["cannot reach"]);
}
