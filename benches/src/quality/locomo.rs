//! LoCoMo: which turns and sessions hold the evidence, asked of the engine with all messages.
//!
//! Each of the conversations has a vault of its own; each session is a conversation in it, and a
//! question is asked of all its messages. The evidence is the audited one. Adversarial questions
//! count like the others: what is asked is where their evidence lies.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use yore_domain::class::Governance;
use yore_domain::conversation::{Conversation, Message, Role};
use yore_domain::query::{Corpus, Cutoff, Effort, Filter, Recall};
use yore_domain::scope::Scope;
use yore_domain::{ConversationId, MessageId, Timestamp};
use yore_engine::Found;

use super::score::{Ranking, rows};
use crate::report::Report;
use crate::world::World;

/// How many turns of a ranking are looked at; sessions are ranked by their best turn.
const DEPTH: usize = 200;
/// How many of them are written down for others to score.
const WRITTEN: usize = 50;
/// The members of a conversation that hold its sessions.
const FIRST_DAY: i64 = 1_680_000_000_000;

struct Talk {
    world: World,
    /// The names of turns, by the ids of their messages.
    turns: HashMap<MessageId, (String, String)>,
    questions: Vec<(Value, String, Vec<String>)>,
}

fn file(data: &Path, name: &str) -> Result<Vec<Value>> {
    let path = data.join("bench").join(name);
    let bytes = std::fs::read(&path).with_context(|| format!("no {name} in the data"))?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Measures both efforts and returns rankings for others to score.
pub(crate) async fn run(data: &Path, work: &Path, report: &mut Report) -> Result<Vec<Value>> {
    let conversations = file(data, "locomo-dev.json")?;
    let corrections = file(data, "locomo-dev-corrections.json")?;
    let corrections: HashMap<&str, &Value> = corrections
        .iter()
        .filter_map(|one| Some((one["question_id"].as_str()?, &one["correct_evidence"])))
        .collect();
    let mut talks = Vec::new();
    for (number, conversation) in conversations.iter().enumerate() {
        let place = work.join(format!("locomo-{number}"));
        talks.push(Talk::open(&place, number, conversation, &corrections).await?);
    }
    let (mut figures, mut written) = (Vec::new(), Vec::new());
    for (name, effort) in [("instant", Effort::Instant), ("balanced", Effort::Balanced)] {
        let (mut turns, mut sessions) = (Vec::new(), Vec::new());
        for talk in &talks {
            for (question, id, gold) in &talk.questions {
                let (turn, session) = talk.ask(question, gold, effort).await?;
                if effort == Effort::Balanced {
                    let first: Vec<&String> = turn.ranked.iter().take(WRITTEN).collect();
                    written.push(json!({
                        "question": id, "category": question["category"], "gold": turn.gold,
                        "ranked": first,
                    }));
                }
                turns.push(turn);
                sessions.push(session);
            }
        }
        for (what, all) in [("turn", &turns), ("session", &sessions)] {
            figures.extend(rows(&format!("{name}, {what}"), all));
        }
        if effort == Effort::Balanced {
            let at = |all: &[Ranking], k| Some(super::score::mean(all, |one| one.recall(k)));
            let name = "LoCoMo development split, balanced:";
            report.at_least(format!("{name} turn recall@5"), "share", 0.70, at(&turns, 5));
            report.at_least(format!("{name} turn recall@10"), "share", 0.79, at(&turns, 10));
            report.at_least(format!("{name} session recall@10"), "share", 0.94, at(&sessions, 10));
        }
    }
    report.figure("LoCoMo, development split", Value::from(figures));
    for talk in talks {
        talk.world.close().await?;
    }
    Ok(written)
}

impl Talk {
    async fn open(
        place: &Path,
        number: usize,
        conversation: &Value,
        corrections: &HashMap<&str, &Value>,
    ) -> Result<Self> {
        let world = World::open(place).await?;
        let (mut turns, mut names) = (HashMap::new(), HashMap::new());
        let said = &conversation["conversation"];
        for session in 1.. {
            let key = format!("session_{session}");
            if said[&key].is_null() && said[format!("{key}_date_time")].is_null() {
                break;
            }
            let began = FIRST_DAY + 86_400_000 * i64::from(session);
            let mut messages = Vec::new();
            for (at, turn) in (0i64..).zip(said[&key].as_array().into_iter().flatten()) {
                let message = message(turn, Timestamp::from_millis(began + 1_000 * at));
                let name = word(&turn["dia_id"]);
                names.insert(name.clone(), message.id);
                turns.insert(message.id, (name, key.clone()));
                messages.push(message);
            }
            if !messages.is_empty() {
                let talk = talk(Timestamp::from_millis(began));
                world.engine.converse(&world.owner, talk, messages).await?;
            }
        }
        world.engine.settle().await?;
        let mut questions = Vec::new();
        for (at, question) in conversation["qa"].as_array().into_iter().flatten().enumerate() {
            let id = format!("locomo_{number}_qa{at}");
            let evidence = corrections.get(id.as_str()).copied().unwrap_or(&question["evidence"]);
            let cited = evidence.as_array().into_iter().flatten().filter_map(Value::as_str);
            let cited = cited.flat_map(|cited| cited.split([';', ' ', ',']));
            let mut gold: Vec<String> =
                cited.filter(|name| names.contains_key(*name)).map(str::to_owned).collect();
            gold.sort();
            gold.dedup();
            if !gold.is_empty() {
                questions.push((question.clone(), id, gold));
            }
        }
        Ok(Self { world, turns, questions })
    }

    /// Ranks turns and sessions.
    async fn ask(
        &self,
        question: &Value,
        gold: &[String],
        effort: Effort,
    ) -> Result<(Ranking, Ranking)> {
        let recall = Recall {
            query: word(&question["question"]),
            corpus: Corpus::Messages,
            filter: Filter::default(),
            near: Scope::default(),
            limit: DEPTH,
            effort,
            prefer: Vec::new(),
            cutoff: Cutoff::Off,
        };
        let found = self.world.engine.recall(&self.world.owner, recall).await?.results;
        let (mut turns, mut sessions) = (Vec::new(), Vec::<String>::new());
        for hit in &found {
            let Found::Message { message, .. } = &hit.found else { continue };
            let Some((turn, session)) = self.turns.get(&message.id) else { continue };
            turns.push(turn.clone());
            if !sessions.contains(session) {
                sessions.push(session.clone());
            }
        }
        let session_of: HashMap<&String, &String> =
            self.turns.values().map(|(turn, session)| (turn, session)).collect();
        let mut wanted: Vec<String> =
            gold.iter().filter_map(|turn| session_of.get(turn).map(|s| (*s).clone())).collect();
        wanted.sort();
        wanted.dedup();
        let turns = Ranking { ranked: turns, gold: gold.to_vec() };
        Ok((turns, Ranking { ranked: sessions, gold: wanted }))
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn message(turn: &Value, at: Timestamp) -> Message {
    let mut text = format!("{}: {}", word(&turn["speaker"]), word(&turn["text"]));
    if let Some(caption) = turn["blip_caption"].as_str() {
        text.push_str(&format!(" [image: {caption}]"));
    }
    Message {
        id: MessageId::random(),
        role: Role::User,
        content: text.as_str().into(),
        text,
        at,
        model: None,
        platform: None,
        parent: None,
        off_path: false,
        attachments: Vec::new(),
        foreign: Map::new().into_iter().collect(),
    }
}

fn talk(at: Timestamp) -> Conversation {
    Conversation {
        id: ConversationId::random(),
        title: None,
        platform: "bench".to_owned(),
        model: None,
        created: at,
        updated: at,
        scope: Scope::default(),
        governance: Governance::default(),
        tags: Vec::new(),
        summary: None,
        language: None,
        foreign: Map::new().into_iter().collect(),
    }
}
