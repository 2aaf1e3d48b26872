//! One pair: a memory that one protocol wrote is read, revised, refused, held and erased by
//! another.

use serde_json::{Value, json};

use crate::tongues::{LESS, SURE, Target, Tongue, Traits, Verdict};
use crate::world::{Caller, HAND, WARD, World};

/// What went wrong, line by line.
pub(crate) type Faults = Vec<String>;

/// The operations that change memories; what a protocol looks up before is its own affair.
const CHANGES: [&str; 4] = ["remember", "revise", "merge", "forget"];

/// What the statements are about, and what they say of it.
const SUBJECTS: [&str; 6] = [
    "The harpsichord of aunt",
    "A bakery that belongs to",
    "Chapter nine of the thesis by",
    "The old motorcycle of",
    "Every vaccination of the cat",
    "The invoice from plumber",
];
const RESTS: [&str; 6] = [
    "was tuned on a rainy Thursday",
    "closes early because of the fair",
    "must be rewritten in Portuguese",
    "stands behind the shed of the neighbour",
    "is listed in a green booklet",
    "remains unpaid until the lawyer returns",
];

/// The story of one pair.
pub(crate) struct Pair<'a> {
    pub(crate) world: &'a World,
    /// Who wrote it.
    pub(crate) writer: Tongue,
    /// Who does everything else.
    pub(crate) other: Tongue,
    pub(crate) faults: Faults,
}

impl Pair<'_> {
    pub(crate) fn run(mut self) -> Faults {
        let (text, owner) = (self.text("Rosa"), &self.world.owner);
        let Some(target) = self.written(HAND, &text) else { return self.faults };
        self.read(&text, &target);
        self.denied(&text, &target);
        self.hidden(&text, &target);
        self.revised(&text, &target);
        self.erased(owner, HAND, &text, &target);
        self.held();
        self.faults
    }

    /// A statement that no other pair makes, nor anything like it.
    fn text(&self, about: &str) -> String {
        let at = |tongue| Tongue::ALL.iter().position(|one| *one == tongue).unwrap_or(0);
        let (subject, rest) = (SUBJECTS[at(self.writer)], RESTS[at(self.other)]);
        let (writer, other) = (self.writer.name(), self.other.name());
        format!("{subject} {about} {rest}, said {about}{writer}{other}")
    }

    fn fault(&mut self, what: impl Into<String>) {
        self.faults.push(what.into());
    }

    fn expect<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, found: &T, wanted: &T) {
        if found != wanted {
            self.fault(format!("{what}: {found:?} instead of {wanted:?}"));
        }
    }

    /// Writes it as the owner.
    fn written(&mut self, agent: &str, text: &str) -> Option<Target> {
        let (world, writer) = (self.world, self.writer);
        let mark = world.mark();
        let (verdict, answer) = writer.write(world, &world.owner, agent, text);
        if verdict != Verdict::Done {
            self.fault(format!("written: {verdict:?} {answer}"));
            return None;
        }
        let head = world.head_of(text)?;
        let memory = head["memory"].as_str()?.parse().ok()?;
        let target = Target { memory, urn: self.urn(agent, text) };
        let lines = self.lines(mark, writer, &target, &CHANGES);
        self.expect("audit of writing", &lines, &vec!["remember owner done M1".to_owned()]);
        Some(target)
    }

    /// The statement that stands for it now.
    fn urn(&mut self, agent: &str, text: &str) -> String {
        let (world, owner) = (self.world, &self.world.owner);
        match Tongue::Ump.find_soon(world, owner, agent, text) {
            Some(record) => record["id"].as_str().unwrap_or_default().to_owned(),
            None => {
                self.fault("UMP does not find it");
                String::new()
            }
        }
    }

    /// The other finds it and says the same of it.
    fn read(&mut self, text: &str, target: &Target) {
        let (world, other, writer) = (self.world, self.other, self.writer);
        for (who, caller) in [("owner", &world.owner), ("agent", &world.reader)] {
            let Some(seen) = other.find_soon(world, caller, HAND, text) else {
                self.fault(format!("read: the {who} does not find it"));
                continue;
            };
            let own = writer.find_soon(world, caller, HAND, text).unwrap_or_default();
            let (said, shown) = (writer.traits(&own), other.traits(&seen));
            self.same("read", &said, &shown);
            let (verdict, _) = other.get(world, caller, HAND, target, text);
            self.expect(&format!("read by id, {who}"), &verdict, &Verdict::Done);
        }
    }

    /// What both can say, both say alike.
    fn same(&mut self, what: &str, said: &Traits, shown: &Traits) {
        for (name, value) in said {
            // What another protocol leaves out or cannot say is no loss of this one.
            let Some(found) = shown.get(name) else {
                let missing = self.other_holds(name) && !is_filled_in(name);
                if missing {
                    self.fault(format!("{what}: {name} is lost ({value})"));
                }
                continue;
            };
            if found != value {
                self.fault(format!("{what}: {name} is {found} instead of {value}"));
            }
        }
    }

    fn other_holds(&self, name: &str) -> bool {
        let holds: &[&str] = match self.other {
            Tongue::Ump | Tongue::Uamp | Tongue::Mcp => &[
                "text",
                "members",
                "kind",
                "confidence",
                "salience",
                "half_life",
                "agent",
                "session",
                "source",
                "retention",
                "made",
            ],
            Tongue::Memorywire => &[
                "text",
                "members",
                "kind",
                "confidence",
                "salience",
                "agent",
                "source",
                "retention",
                "ends",
                "made",
            ],
            Tongue::Oamp => {
                &["text", "facet", "confidence", "half_life", "session", "tags", "made"]
            }
            Tongue::Omp => &["text", "facet", "confidence", "tags", "ends", "made"],
        };
        holds.contains(&name)
    }

    /// Who may only read changes nothing, and is told so.
    fn denied(&mut self, text: &str, target: &Target) {
        let (world, other) = (self.world, self.other);
        let reader = &world.reader;
        let mark = world.mark();
        let (write, _) = other.write(world, reader, HAND, &self.text("Tess"));
        let (revise, _) = other.revise(world, reader, HAND, target, &format!("{text} now"));
        let (erase, _) = other.erase(world, reader, HAND, target);
        self.expect("a reader writes", &write, &Verdict::Denied);
        self.expect("a reader revises", &revise, &Verdict::Denied);
        self.expect("a reader erases", &erase, &Verdict::Denied);
        let lines = self.refusals(mark);
        let revised = if other == Tongue::Memorywire { "merge" } else { "revise" };
        let wanted = ["remember", revised, "forget"];
        let wanted = wanted.map(|name| format!("{name} hand refused forbidden"));
        if lines != wanted {
            self.fault(format!("audit of what is denied: {lines:?}"));
        }
        self.unchanged(text);
    }

    /// Who does not see it cannot tell it from what never was.
    fn hidden(&mut self, text: &str, target: &Target) {
        let (world, other) = (self.world, self.other);
        let narrow = &world.narrow;
        let nothing = Target {
            memory: yore_domain::MemoryId::random(),
            urn: format!("urn:ump:{}", "a".repeat(target.urn.len().saturating_sub(8))),
        };
        if other.find(world, narrow, HAND, text).is_some() {
            self.fault("hidden: it is found");
        }
        let missing = "this was never said to anybody";
        for (what, found, wanted) in [
            (
                "read",
                other.get(world, narrow, HAND, target, text),
                other.get(world, narrow, HAND, &nothing, missing),
            ),
            (
                "revise",
                other.revise(world, narrow, HAND, target, &format!("{text} now")),
                other.revise(world, narrow, HAND, &nothing, &format!("{text} now")),
            ),
            (
                "erase",
                other.erase(world, narrow, HAND, target),
                other.erase(world, narrow, HAND, &nothing),
            ),
        ] {
            self.expect(&format!("hidden, {what}"), &found.0, &Verdict::Missing);
            let told = told(&found.1, target);
            self.expect(
                &format!("hidden, {what}: the answer"),
                &told,
                &self::told(&wanted.1, &nothing),
            );
        }
        self.unchanged(text);
    }

    fn unchanged(&mut self, text: &str) {
        let number = self.world.head_of(text).map(|head| head["number"].clone());
        self.expect("the vault's version", &number, &Some(json!(1)));
    }

    /// The owner revises it by the other; the writer sees that and loses nothing else.
    fn revised(&mut self, text: &str, target: &Target) {
        let (world, writer, other) = (self.world, self.writer, self.other);
        let owner = &world.owner;
        let before = writer.find_soon(world, owner, HAND, text).unwrap_or_default();
        let mark = world.mark();
        let (verdict, answer) = other.revise(world, owner, HAND, target, &format!("{text} now"));
        if verdict != Verdict::Done {
            self.fault(format!("revised: {verdict:?} {answer}"));
            return;
        }
        let operation = if other == Tongue::Memorywire { "merge" } else { "revise" };
        let lines = self.lines(mark, other, target, &[operation]);
        let joined = if other == Tongue::Memorywire { " and another" } else { "" };
        let wanted = format!("{operation} owner done M2{joined}");
        self.expect("audit of revising", &lines, &vec![wanted]);
        let Some(after) = writer.find_soon(world, owner, HAND, text) else {
            self.fault("revised: the writer does not find it");
            return;
        };
        let said = writer.traits(&after);
        if other == Tongue::Oamp {
            self.expect("revised: confidence", &said.get("confidence"), &Some(&json!(LESS)));
        } else {
            let now = said["text"].as_str().is_some_and(|now| now.ends_with(" now"));
            self.expect("revised: the text", &now, &true);
            // What is merged grows surer.
            if other != Tongue::Memorywire {
                self.expect("revised: confidence", &said.get("confidence"), &Some(&json!(SURE)));
            }
        }
        self.expect("revised: what is the writer's own", &writer.own(&after), &writer.own(&before));
    }

    /// Once erased it is gone for everybody.
    fn erased(&mut self, caller: &Caller, agent: &str, text: &str, target: &Target) {
        let (world, writer, other) = (self.world, self.writer, self.other);
        let target = Target { urn: self.urn(agent, text), ..target.clone() };
        let mark = world.mark();
        let (verdict, answer) = other.erase(world, caller, agent, &target);
        if verdict != Verdict::Done {
            self.fault(format!("erased: {verdict:?} {answer}"));
            return;
        }
        let lines = self.lines(mark, other, &target, &["forget"]);
        let lines: Vec<&str> =
            lines.iter().map(|line| line.trim_end_matches(char::is_numeric)).collect();
        self.expect("audit of erasing", &lines, &vec!["forget owner done M"]);
        for tongue in [writer, other] {
            if tongue.find(world, caller, agent, text).is_some() {
                self.fault(format!("erased: {} still finds it", tongue.name()));
            }
            let (verdict, answer) = tongue.get(world, caller, agent, &target, text);
            // UMP keeps a shell without a word of what it said.
            if verdict == Verdict::Done && answer.to_string().contains(text) {
                self.fault(format!("erased: {} still shows it", tongue.name()));
            }
        }
        // Long texts are looked for in pieces, and pieces of other stories are alike; the last word
        // is in no other.
        let word = text.rsplit(' ').next().unwrap_or(text);
        // A reader that began before, such as the server's own work, delays the cutting of the journal.
        let mut left = json!(null);
        for _ in 0..100 {
            left = world.native("traces", &json!({"text": word}))["found"].take();
            if left == json!([]) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        self.expect("erased: places where the text is left", &left, &json!([]));
    }

    /// What an agent wants whose writes wait is held alike, and done alike once it is approved.
    fn held(&mut self) {
        let (world, writer, other) = (self.world, self.writer, self.other);
        let (ward, text) = (&world.ward, self.text("Tulla"));
        let Some(target) = self.written(WARD, &text) else { return };
        let mark = world.mark();
        let (write, _) = other.write(world, ward, WARD, &self.text("Orson"));
        let (revise, _) = other.revise(world, ward, WARD, &target, &format!("{text} now"));
        self.expect("held, write", &write, &Verdict::Held);
        self.expect("held, revise", &revise, &Verdict::Held);
        let number = world.head_of(&text).map(|head| head["number"].clone());
        self.expect("held: the vault's version", &number, &Some(json!(1)));
        let waits = world.approve_all();
        self.expect("held: what waits", &waits, &2);
        let now = writer.find_soon(world, &world.owner, WARD, &text).unwrap_or_default();
        let said = writer.traits(&now);
        let changed = if other == Tongue::Oamp {
            said.get("confidence") == Some(&json!(LESS))
        } else {
            said.get("text").is_some_and(|text| text.to_string().contains(" now"))
        };
        self.expect("held: the approved revision is seen", &changed, &true);
        if writer.find_soon(world, &world.owner, WARD, &self.text("Orson")).is_none() {
            self.fault("held: what was approved is not found by the writer's protocol");
        }
        let target = Target { urn: self.urn(WARD, &text), ..target };
        let (erase, _) = other.erase(world, ward, WARD, &target);
        self.expect("held, erase", &erase, &Verdict::Held);
        let revised = if other == Tongue::Memorywire { "merge" } else { "revise" };
        let wanted = ["remember", revised, "forget"].map(|name| format!("{name} ward held"));
        let lines = self.lines(mark, other, &target, &CHANGES);
        let lines = lines.iter().filter(|line| line.contains("ward held"));
        let lines: Vec<String> = lines.map(|line| first_words(line)).collect();
        self.expect("audit of what is held", &lines, &wanted.to_vec());
        let waits = world.approve_all();
        self.expect("held: the erasure waits", &waits, &1);
        if writer.find(world, &world.owner, WARD, &text).is_some() {
            self.fault("held: the approved erasure left it");
        }
        // What the next pair says shall be alone.
        if let Some(head) = world.head_of(&self.text("Orson")) {
            world.native("forget", &json!({"memories": [head["memory"]], "depth": "erase"}));
        }
    }

    /// What the chain says of changes by one protocol since a mark.
    fn lines(&self, mark: u64, by: Tongue, target: &Target, names: &[&str]) -> Vec<String> {
        let entries = self.world.since(mark, by.name());
        let changes = entries
            .iter()
            .filter(|entry| names.contains(&entry["operation"].as_str().unwrap_or_default()));
        changes.map(|entry| line(entry, target)).collect()
    }

    /// What it says of refusals by the other protocol.
    fn refusals(&self, mark: u64) -> Vec<String> {
        let entries = self.world.since(mark, self.other.name());
        let refused = entries.iter().filter(|entry| entry["outcome"]["result"] == "refused");
        refused
            .map(|entry| {
                format!(
                    "{} {}",
                    heading(entry),
                    entry["outcome"]["code"].as_str().unwrap_or_default()
                )
            })
            .collect()
    }
}

/// Confidence and agent are filled in where a writer leaves them out.
fn is_filled_in(name: &str) -> bool {
    matches!(name, "agent")
}

/// Who did what, and what came of it.
pub(crate) fn heading(entry: &Value) -> String {
    let actor = match entry["actor"]["agent"].as_str() {
        Some(agent) => agent,
        None => entry["actor"]["kind"].as_str().unwrap_or_default(),
    };
    let operation = entry["operation"].as_str().unwrap_or_default();
    format!("{operation} {actor} {}", entry["outcome"]["result"].as_str().unwrap_or_default())
}

/// An entry in a line: who did what to which of the memories.
fn line(entry: &Value, target: &Target) -> String {
    let memory = target.memory.to_string();
    let targets = entry["targets"].as_array().cloned().unwrap_or_default();
    let mut line = heading(entry);
    let mine = targets.iter().find(|one| one["memory"] == memory.as_str());
    if let Some(mine) = mine {
        line.push_str(" M");
        if let Some(number) = mine["number"].as_u64() {
            line.push_str(&number.to_string());
        }
    }
    if targets.len() > usize::from(mine.is_some()) {
        line.push_str(" and another");
    }
    line
}

fn first_words(line: &str) -> String {
    line.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// An answer without what the request itself named.
fn told(answer: &Value, target: &Target) -> String {
    let text = answer.to_string();
    text.replace(&target.urn, "URN").replace(&target.memory.to_string(), "ID")
}
