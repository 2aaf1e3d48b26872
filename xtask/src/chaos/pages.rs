//! Pages of the vault's file in which a bit is wrong.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::place::{Place, Server};
use super::random::Random;
use super::tongue::shortened;
use super::wire::Request;
use super::world::World;
use super::{End, Ground};

const PAGE: u64 = 4096;
const FLIPS: [usize; 2] = [100, 6];
/// Questions whose answers are looked at.
const QUERIES: [&str; 3] = ["copper lantern", "the harbour and the forest", "velvet"];

/// Flips a byte in a copy of the vault, again and again, and sees what is served from it.
pub(super) fn flips(ground: &Ground) -> Result<End> {
    let mut world = World::new(ground, "corrupt-page")?;
    world.begin();
    world.live(2500, 3500);
    world.pause();
    // A server that ends in order leaves everything in the file and nothing in the journal.
    world.server.stop()?;
    let texts = world.texts();
    let mut refused = 0;
    for _ in 0..ground.of(FLIPS) {
        let copy = world.place.copy(ground.dir.join("corrupt-copy"))?;
        let page = flip(&copy.data(), &mut world.random)?;
        world.faults += 1;
        let found = match copy.serve(&world.manner) {
            Ok(server) => served(&copy, &server, world.owner(), page, &texts)?,
            Err(error) => {
                refused += 1;
                let told = format!("{error:#}");
                let said = copy.log();
                let mut found = examined(&copy, page)?;
                if !told.contains("exit status: 8") || said.contains("panicked") {
                    found.push(format!("page {page}: {told}"));
                }
                found
            }
        };
        world.judge.wrong.extend(found);
        copy.remove()?;
    }
    println!("  {} bytes flipped, {refused} starts refused", world.faults);
    world.start()?;
    world.end().map(End::Ran)
}

/// Changes a byte somewhere in the largest file; returns the number of its page.
fn flip(data: &Path, random: &mut Random) -> Result<u64> {
    let mut files = Vec::new();
    collect(data, &mut files)?;
    let (length, path) = files.into_iter().max().context("a vault has a file")?;
    // The first page holds what the file is opened by; it is no page of the middle.
    let page = 1 + random.below(length / PAGE - 1);
    let at = page * PAGE + random.below(PAGE);
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at)?;
    file.write_all_at(&[byte[0] ^ (1 << random.below(8))], at)?;
    Ok(page + 1)
}

fn collect(dir: &Path, files: &mut Vec<(u64, PathBuf)>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let about = entry.metadata()?;
        if about.is_dir() {
            collect(&entry.path(), files)?;
        } else if about.is_file() {
            files.push((about.len(), entry.path()));
        }
    }
    Ok(())
}

/// What is wrong about a server on a damaged vault: it must name the page, and may say nothing
/// that was not said.
fn served(
    copy: &Place,
    server: &Server,
    owner: &str,
    page: u64,
    texts: &[String],
) -> Result<Vec<String>> {
    let mut wrong = examined(copy, page)?;
    let list = json!({"page": {"limit": 500}});
    let mut requests = vec![Request::post("/api/v1/list", &list)];
    requests.extend(QUERIES.map(|query| {
        Request::post("/api/v1/recall", &json!({"query": query, "limit": 20, "cutoff": "off"}))
    }));
    for request in requests {
        let reply = request.send(&server.address, owner)?;
        // A refusal is an honest answer.
        if reply.status != 200 {
            continue;
        }
        let mut shown = Vec::new();
        texts_in(&reply.json(), &mut shown);
        let strange = shown.iter().find(|text| !texts.contains(text));
        wrong.extend(strange.map(|text| format!("page {page}: it says {:?}", shortened(text))));
    }
    Ok(wrong)
}

/// What is wrong about what `yore doctor` says of a damaged vault: it must name the page.
fn examined(copy: &Place, page: u64) -> Result<Vec<String>> {
    // As a document: a table would break its lines anywhere.
    let doctor = copy.run(&["doctor", "--json"])?;
    let told = [doctor.stdout, doctor.stderr];
    let told = told.map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    if doctor.status.code() == Some(8) && told.contains(&format!("page {page}")) {
        return Ok(Vec::new());
    }
    let fault = told.lines().find(|line| line.contains("storage")).unwrap_or(&told);
    Ok(vec![format!("page {page}: doctor ended with {}: {fault}", doctor.status)])
}

/// Every text of a body in an answer.
fn texts_in(value: &Value, found: &mut Vec<String>) {
    if let Some(text) = value.pointer("/body/text").and_then(Value::as_str) {
        found.push(text.to_owned());
    }
    let inside: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for value in inside {
        texts_in(value, found);
    }
}
