//! Copies of the audit chain in a folder and in a bucket.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;

use crate::common::{Home, check};

#[test]
fn mw_203_copies_of_the_audit_chain_are_added_to_and_checked_without_the_vault() {
    let home = Home::new();
    home.remember(&["tea is hot"]);
    let place = home.path("copies");
    let to = place.to_str().unwrap();
    home.ok(&["audit", "export", "--to", to]);
    home.remember(&["coffee is hotter"]);
    home.ok(&["audit", "export", "--to", to]);
    let mut files: Vec<String> = std::fs::read_dir(&place)
        .unwrap()
        .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
        .collect();
    files.sort_by_key(|name| !name.contains("audit-1-"));
    assert_eq!(files.len(), 2);
    let verify = |more: &[&str]| {
        let mut args = vec!["audit", "verify", "--file"];
        args.extend(files.iter().map(String::as_str));
        args.extend(more);
        home.run(&args)
    };
    let good = verify(&["--json"]);
    assert_eq!(good.code, 0, "{good:?}");
    let report: serde_json::Value = serde_json::from_str(&good.out).unwrap();
    let signer = report["signers"][0].as_str().unwrap();
    assert_eq!(report["first"], 1);
    assert_eq!(verify(&["--signer", signer]).code, 0);
    check(&verify(&["--signer", "did:key:z6MkSomebodyElse"]), 8, &["somebody else"]);
    home.fails(&["audit", "verify", "--file", &files[1], &files[0]], 8, &["faults"]);

    let whole = home.path("whole.ndjson");
    home.ok(&["audit", "export", "--sign", "--out", whole.to_str().unwrap()]);
    home.ok(&["audit", "verify", "--file", whole.to_str().unwrap()]);
    let text = std::fs::read_to_string(&whole).unwrap();
    std::fs::write(&whole, text.replacen("remember", "forgotten", 1)).unwrap();
    let broken =
        home.fails(&["audit", "verify", "--file", whole.to_str().unwrap()], 8, &["faults"]);
    assert!(broken.out.contains("was changed"), "{broken:?}");
    let filtered = ["audit", "export", "--sign", "--agent", "x"];
    assert_eq!(home.run(&filtered).code, 2, "a part cannot be signed as the whole");
}

/// A bucket that lists nothing and takes everything; it hands on what it was asked.
fn bucket() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (told, asked) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut read = Vec::new();
            let mut piece = [0; 4096];
            // A request is whole when its body is as long as its head says.
            let whole = |read: &[u8]| {
                let text = String::from_utf8_lossy(read).into_owned();
                let (head, body) = text.split_once("\r\n\r\n")?;
                let length = head.lines().find_map(|line| {
                    line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned)
                });
                let length = length.map_or(0, |length| length.parse().unwrap());
                (body.len() >= length).then_some(text.clone())
            };
            let request = loop {
                let count = stream.read(&mut piece).unwrap();
                read.extend_from_slice(&piece[..count]);
                if let Some(request) = whole(&read) {
                    break request;
                }
                assert_ne!(count, 0, "the request was cut off");
            };
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(answer.as_bytes()).unwrap();
            if told.send(request).is_err() {
                return;
            }
        }
    });
    (format!("http://{address}/archive/yore"), asked)
}

#[test]
fn mw_203_a_copy_goes_to_a_bucket_and_is_locked_there() {
    let home = Home::new();
    home.remember(&["tea is hot"]);
    let (to, asked) = bucket();
    let args = ["audit", "export", "--to", &to, "--lock-days", "30"];
    home.fails(&args, 2, &["AWS_ACCESS_KEY_ID"]);
    let mut command = home.command(&args);
    command.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "secret");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let list = asked.recv().unwrap();
    assert!(list.starts_with("GET /archive?list-type=2&prefix=yore%2F "), "{list}");
    let put = asked.recv().unwrap();
    assert!(put.starts_with("PUT /archive/yore/audit-1-"), "{put}");
    let head = put.split("\r\n\r\n").next().unwrap().to_lowercase();
    for line in [
        "x-amz-object-lock-mode: compliance",
        "x-amz-object-lock-retain-until-date: 2",
        "if-none-match: *",
        "x-amz-checksum-sha256: ",
        "authorization: aws4-hmac-sha256 credential=id/",
    ] {
        assert!(head.contains(line), "{line}: {head}");
    }
    assert!(put.contains("\"checkpoint\""));
}
