//! The same operation by two protocols, at random: the same verdict, the same line in the audit
//! chain, the same state of the vault.

use serde_json::{Value, json};

use crate::pair::heading;
use crate::tongues::{Target, Tongue, Verdict};
use crate::world::{Caller, HAND, Story, WARD, World};

/// The stories, by name.
pub(crate) const ALL: [Story; 1] = [("differential::operations", operations)];

/// What is done to a memory.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Write,
    Get,
    Revise,
    Erase,
}

/// How often: some, or as often as a long run allows.
fn rounds() -> usize {
    if std::env::var_os("YORE_FULL").is_some() { 2_000 } else { 40 }
}

/// xorshift64: the same story each time.
struct Dice(u64);

impl Dice {
    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        choices[usize::try_from(self.0 >> 33).unwrap_or(0) % choices.len()]
    }
}

fn operations(world: &World) -> Vec<String> {
    let mut dice = Dice(0x2026_1118);
    let mut faults = Vec::new();
    for round in 0..rounds() {
        let deed = dice.of(&[Deed::Write, Deed::Get, Deed::Revise, Deed::Erase]);
        let (writer, one, other) =
            (dice.of(&Tongue::ALL), dice.of(&Tongue::ALL), dice.of(&Tongue::ALL));
        // memorywire reads by question alone, and answers nothing where nothing seems relevant.
        if matches!(deed, Deed::Get) && [one, other].contains(&Tongue::Memorywire) {
            continue;
        }
        let who = dice.of(&["owner", "hand", "reader", "narrow", "ward"]);
        let first = outcome(world, deed, writer, one, who, &name(2 * round));
        let second = outcome(world, deed, writer, other, who, &name(2 * round + 1));
        world.reject_all();
        if first != second {
            faults.push(format!(
                "{deed:?} of what {} wrote, as {who}: {} {first:?}, {} {second:?}",
                writer.name(),
                one.name(),
                other.name()
            ));
        }
    }
    faults
}

/// A word that no other round has.
fn name(number: usize) -> String {
    let letters = number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'b')).collect();
    format!("quz{}", String::from_iter::<Vec<char>>(letters))
}

/// What came of it: the verdict, the chain's line about it, and the version that is then the head.
type Came = (Verdict, Vec<String>, Option<Value>);

fn outcome(world: &World, deed: Deed, writer: Tongue, by: Tongue, who: &str, name: &str) -> Came {
    let (caller, agent): (&Caller, &str) = match who {
        "owner" => (&world.owner, HAND),
        "hand" => (&world.hand, HAND),
        "reader" => (&world.reader, HAND),
        "narrow" => (&world.narrow, HAND),
        _ => (&world.ward, WARD),
    };
    let text = format!("Locker number {name} is kept by the porter of house {name}");
    writer.write(world, &world.owner, agent, &text);
    let head = world.head_of(&text).unwrap();
    let memory = head["memory"].as_str().unwrap().parse().unwrap();
    let record = Tongue::Ump.find_soon(world, &world.owner, agent, &text).unwrap_or_default();
    let urn = record["id"].as_str().unwrap_or_default().to_owned();
    let target = Target { memory, urn };
    let fresh = format!("Key {name} opens cellar {name}");
    let mark = world.mark();
    let (verdict, _) = match deed {
        Deed::Write => by.write(world, caller, agent, &fresh),
        Deed::Get => by.get(world, caller, agent, &target, &text),
        Deed::Revise => by.revise(world, caller, agent, &target, &format!("{text} now")),
        Deed::Erase => by.erase(world, caller, agent, &target),
    };
    let wanted: &[&str] = match deed {
        Deed::Write => &["remember"],
        Deed::Get => &[],
        Deed::Revise => &["revise", "merge"],
        Deed::Erase => &["forget"],
    };
    let entries = world.since(mark, by.name());
    // memorywire revises by merging what the owner wrote a moment before.
    let lines = entries.iter().filter(|entry| {
        let operation = entry["operation"].as_str().unwrap_or_default();
        wanted.contains(&operation)
    });
    let lines = lines.map(|entry| heading(entry).replace("merge", "revise"));
    // A refusal may stand under the name of a look before the change.
    let lines = lines.filter(|line| !line.ends_with("refused")).collect();
    let number = world.head_of(&text).map(|head| head["number"].clone());
    // What the next round says shall be alone.
    for left in [&text, &fresh] {
        if let Some(head) = world.head_of(left) {
            world.native("forget", &json!({"memories": [head["memory"]], "depth": "erase"}));
        }
    }
    (verdict, lines, number)
}
