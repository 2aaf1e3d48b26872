//! The checker: what clients were told, against what is there and what the audit chain says.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::journal::{Fact, HIDDEN, Journal, OWN, marks};
use super::place::Place;
use super::tongue::{Speaker, Tongue, shortened};
use super::wire::{Reply, Request};

/// Rows that are asked for at once.
const PAGE: usize = 500;
/// How long a read is asked for again while the server is busy.
const PATIENCE: Duration = Duration::from_secs(15);

/// What the checker looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) place: &'a Place,
    pub(super) address: &'a str,
    pub(super) owner: &'a str,
    pub(super) speakers: &'a [(Speaker, String)],
    pub(super) journal: &'a Journal,
}

/// What was found so far, each thing once, however often it is looked at.
#[derive(Debug, Default)]
pub(super) struct Judge {
    pub(super) lost: BTreeSet<String>,
    pub(super) doubled: BTreeSet<String>,
    pub(super) leaked: BTreeSet<String>,
    /// Anything else that must not be.
    pub(super) wrong: BTreeSet<String>,
    /// Whether a server may end in disorder, for want of memory.
    pub(super) may_panic: bool,
    /// The last entry of the audit chain that was read.
    after: u64,
    /// How many entries say that they made a memory.
    made: HashMap<String, usize>,
    /// The facts that were read again after they were acknowledged.
    read: HashSet<usize>,
}

/// Something that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    /// The memory; none for a message.
    memory: Option<String>,
    number: u64,
    text: String,
}

impl Judge {
    /// Verifies the chain, and reads what was acknowledged since the last look by the ids and in
    /// the protocols of those who said it.
    pub(super) fn glance(&mut self, scene: &Scene<'_>) -> Result<()> {
        self.verify(scene)?;
        for (at, fact) in scene.journal.facts().iter().enumerate() {
            let Some(kept) = fact.acknowledged.as_deref() else { continue };
            if !self.read.insert(at) {
                continue;
            }
            let Some((speaker, token)) = scene.speakers.get(fact.client) else { continue };
            let reply = patiently(&speaker.read(fact, kept), scene.address, token)?;
            if !reply.text.contains(&fact.text()) {
                let said = shortened(&reply.text);
                self.lost.insert(fact.mark.clone());
                let agent = speaker.agent;
                self.wrong.insert(format!("{agent} reads {}: {} {said}", fact.mark, reply.status));
            }
        }
        Ok(())
    }

    /// Looks at everything that is there and at every entry of the chain.
    pub(super) fn whole(&mut self, scene: &Scene<'_>) -> Result<()> {
        self.glance(scene)?;
        // What is acknowledged from here on may be missing in the rows.
        let facts = scene.journal.facts();
        let mut rows = memories(scene)?;
        rows.extend(messages(scene)?);
        self.follow(scene)?;
        self.compare(&facts, &scene.journal.facts(), &rows, scene.speakers);
        Ok(())
    }

    fn verify(&mut self, scene: &Scene<'_>) -> Result<()> {
        let done = scene.place.run(&["audit", "verify"])?;
        if !done.status.success() {
            let said =
                [done.stdout, done.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
            self.wrong.insert(format!(
                "audit verify ended with {}: {}",
                done.status,
                said.concat()
            ));
        }
        Ok(())
    }

    /// Compares what was said with what is there. `later` are the facts as they stood after the
    /// rows were read: nothing else can be among the rows.
    fn compare(
        &mut self,
        facts: &[Fact],
        later: &[Fact],
        rows: &[Row],
        speakers: &[(Speaker, String)],
    ) {
        let mut there: HashMap<&str, Vec<&Row>> = HashMap::new();
        for row in rows {
            there.entry(&row.text).or_default().push(row);
        }
        for fact in facts {
            let text = fact.text();
            let found = there.get(text.as_str()).map_or(&[][..], Vec::as_slice);
            if found.is_empty() && fact.acknowledged.is_some() {
                self.lost.insert(fact.mark.clone());
            }
            if found.len() > 1 || found.iter().any(|row| row.number > 1) {
                self.doubled.insert(fact.mark.clone());
            }
            let talks =
                speakers.get(fact.client).is_some_and(|(one, _)| one.tongue == Tongue::Talks);
            for row in found {
                match (&row.memory, talks) {
                    (Some(memory), false) => self.count(memory, fact),
                    (None, true) => {}
                    (Some(_), true) | (None, false) => {
                        self.wrong.insert(format!("{} is not what it was said as", fact.mark));
                    }
                }
            }
        }
        let said: HashSet<String> = later.iter().map(Fact::text).collect();
        for row in rows.iter().filter(|row| !said.contains(&row.text)) {
            self.wrong.insert(format!("nobody said {:?}", shortened(&row.text)));
        }
    }

    /// The chain says once that a memory was made.
    fn count(&mut self, memory: &str, fact: &Fact) {
        match self.made.get(memory) {
            Some(1) => {}
            Some(_) => {
                self.doubled.insert(fact.mark.clone());
            }
            None => {
                self.wrong.insert(format!("the chain does not know who made {}", fact.mark));
            }
        }
    }

    /// Reads the chain on from where it was read to.
    fn follow(&mut self, scene: &Scene<'_>) -> Result<()> {
        loop {
            let page = json!({"after": self.after, "limit": PAGE, "newest_first": false});
            let entries = native(scene, "audit.query", &page)?;
            let entries = entries.as_array().cloned().unwrap_or_default();
            for entry in &entries {
                self.after = self.after.max(entry["seq"].as_u64().unwrap_or_default());
                for memory in made_by(entry) {
                    *self.made.entry(memory).or_default() += 1;
                }
            }
            if entries.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Looks for what was said in the files and in the log, where nothing of it may lie in clear.
    pub(super) fn traces(&mut self, scene: &Scene<'_>) -> Result<()> {
        let log = scene.place.log();
        let panics = log.lines().filter(|line| line.contains("panicked"));
        if !self.may_panic {
            self.wrong.extend(panics.map(shortened));
        }
        for prefix in [HIDDEN, OWN] {
            self.leaked.extend(marks(&log, prefix).iter().map(|mark| format!("{mark} in the log")));
        }
        self.clear_text(&scene.place.seen(&scene.place.data()))
    }

    fn clear_text(&mut self, dir: &Path) -> Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.clear_text(&entry.path())?;
            } else if kind.is_file() {
                let bytes = fs::read(entry.path())?;
                for prefix in [HIDDEN, OWN] {
                    if bytes.windows(prefix.len()).any(|at| at == prefix.as_bytes()) {
                        let name = entry.file_name();
                        self.leaked.insert(format!("{prefix} in {}", name.to_string_lossy()));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The memories that an entry of the chain says were made.
fn made_by(entry: &Value) -> Vec<String> {
    if entry["operation"] != "remember" || entry["outcome"]["result"] != "done" {
        return Vec::new();
    }
    let targets = entry["targets"].as_array().cloned().unwrap_or_default();
    let first = targets.iter().filter(|target| target["number"] == 1);
    first.filter_map(|target| target["memory"].as_str().map(str::to_owned)).collect()
}

/// Every memory that is live, as the owner sees it.
fn memories(scene: &Scene<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    each(scene, "list", |item| {
        let head = &item["head"];
        rows.push(Row {
            memory: Some(text(&head["memory"])?),
            number: head["number"].as_u64().context("a memory has a version")?,
            text: text(&head["body"]["text"])?,
        });
        Ok(())
    })?;
    Ok(rows)
}

/// Every message of every conversation, as the owner sees it.
fn messages(scene: &Scene<'_>) -> Result<Vec<Row>> {
    let mut talks = Vec::new();
    each(scene, "conversations", |item| {
        talks.push(text(&item[0]["id"])?);
        Ok(())
    })?;
    let mut rows = Vec::new();
    for talk in talks {
        let page = json!({"conversation": talk, "limit": PAGE});
        for message in native(scene, "messages", &page)?.as_array().cloned().unwrap_or_default() {
            rows.push(Row { memory: None, number: 1, text: text(&message["text"])? });
        }
    }
    Ok(rows)
}

/// Goes through the pages of a list, oldest first.
fn each(
    scene: &Scene<'_>,
    operation: &str,
    mut take: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let mut page = json!({"limit": PAGE, "order": "oldest_first"});
    loop {
        let found = native(scene, operation, &json!({"page": page}))?;
        for item in found["items"].as_array().context("a page has items")? {
            take(item)?;
        }
        if found["next"].is_null() {
            return Ok(());
        }
        page["after"] = found["next"].clone();
    }
}

fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).with_context(|| format!("no text: {value}"))
}

/// Asks the native API as the owner.
pub(super) fn native(scene: &Scene<'_>, operation: &str, input: &Value) -> Result<Value> {
    let request = Request::post(format!("/api/v1/{operation}"), input);
    let reply = patiently(&request, scene.address, scene.owner)?;
    ensure!(reply.status == 200, "{operation}: {} {}", reply.status, shortened(&reply.text));
    Ok(reply.json())
}

/// Sends a request until its answer is whole and not a fault that passes.
fn patiently(request: &Request, address: &str, token: &str) -> Result<Reply> {
    let end = Instant::now() + PATIENCE;
    loop {
        let sent = request.send(address, token);
        match sent {
            Ok(reply) if reply.status < 500 && reply.status != 429 => return Ok(reply),
            Ok(reply) if Instant::now() > end => return Ok(reply),
            Err(error) if Instant::now() > end => {
                return Err(error).context("the checker gets no answer");
            }
            Ok(_) | Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::super::tongue::SPEAKERS;
    use super::*;

    fn fact(acknowledged: bool, random: &mut Random) -> Fact {
        let fact = Fact::new(0, 1, false, random);
        Fact { acknowledged: acknowledged.then(|| "id".to_owned()), ..fact }
    }

    fn row(memory: &str, fact: &Fact) -> Row {
        Row { memory: Some(memory.to_owned()), number: 1, text: fact.text() }
    }

    fn judged(facts: &[Fact], rows: &[Row], made: &[(&str, usize)]) -> Judge {
        let made = made.iter().map(|(memory, count)| ((*memory).to_owned(), *count)).collect();
        let mut judge = Judge { made, ..Judge::default() };
        let speakers = SPEAKERS.map(|speaker| (speaker, String::new()));
        judge.compare(facts, facts, rows, &speakers);
        judge
    }

    #[test]
    fn what_was_acknowledged_is_there_once_and_the_rest_at_most_once() {
        let mut random = Random::new(1);
        let (kept, open) = (fact(true, &mut random), fact(false, &mut random));
        let facts = [kept.clone(), open.clone()];
        let fine = judged(&facts, &[row("a", &kept)], &[("a", 1)]);
        assert!(fine.lost.is_empty() && fine.doubled.is_empty() && fine.wrong.is_empty());
        let both = judged(&facts, &[row("a", &kept), row("b", &open)], &[("a", 1), ("b", 1)]);
        assert!(both.lost.is_empty() && both.doubled.is_empty() && both.wrong.is_empty());
        assert_eq!(judged(&facts, &[], &[]).lost.len(), 1);
        let twice = [row("a", &kept), row("b", &open), row("c", &open)];
        assert_eq!(judged(&facts, &twice, &[("a", 1), ("b", 1), ("c", 1)]).doubled.len(), 1);
        let again = Row { number: 2, ..row("a", &kept) };
        assert_eq!(judged(&facts, &[again], &[("a", 1)]).doubled.len(), 1);
    }

    #[test]
    fn the_chain_must_say_once_who_made_what_is_there() {
        let kept = fact(true, &mut Random::new(1));
        let rows = [row("a", &kept)];
        assert_eq!(judged(std::slice::from_ref(&kept), &rows, &[]).wrong.len(), 1);
        assert_eq!(judged(std::slice::from_ref(&kept), &rows, &[("a", 2)]).doubled.len(), 1);
        let strange = Row { text: "garbled".to_owned(), ..row("b", &kept) };
        assert_eq!(judged(&[kept], &[rows[0].clone(), strange], &[("a", 1)]).wrong.len(), 1);
    }

    #[test]
    fn only_the_first_version_of_something_done_counts_as_made() {
        let entry = |result: &str, number: u64| {
            json!({
                "operation": "remember", "outcome": {"result": result},
                "targets": [{"memory": "a", "number": number}],
            })
        };
        assert_eq!(made_by(&entry("done", 1)), ["a"]);
        assert!(made_by(&entry("done", 2)).is_empty() && made_by(&entry("refused", 1)).is_empty());
    }
}
