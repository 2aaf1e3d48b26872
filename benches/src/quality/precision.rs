//! PrecisionMemBench, by its own rules: a case passes when exactly the expected beliefs come back.
//!
//! The set favours designs that look up aliases: its author's system, which does, is the only one
//! that passes everything, and most cases want an empty or an exact answer for words that stand in
//! an alias list. Here a belief is one memory with the text that the set's own adapter sends (name,
//! aliases, content, reason); its scopes are tags, what superseded it is its next version, what was
//! resolved is forgotten, and open questions are listed apart, as the adapter lists them. A question
//! is one recall for each scope with the calibrated cutoff, the same for every case.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use yore_domain::MemoryId;
use yore_domain::memory::Draft;
use yore_domain::mutation::{Depth, Mutation, Patch};
use yore_domain::query::{Corpus, Cutoff, Effort, Filter, Recall};
use yore_domain::scope::Scope;
use yore_engine::Wish;

use crate::meter::round;
use crate::report::Report;
use crate::world::World;

const USER: &str = "test-user";
/// How many beliefs a case may show unless it says otherwise.
const BELIEFS: usize = 20;

/// One belief of the set.
type Belief = Value;

fn file(data: &Path, name: &str) -> Result<Vec<Value>> {
    let path = data.join("bench/precisionmembench").join(name);
    let bytes = std::fs::read(&path).with_context(|| format!("no {name} in the data"))?;
    Ok(serde_json::from_slice(&bytes)?)
}

fn word<'a>(belief: &'a Belief, key: &str) -> &'a str {
    belief[key].as_str().unwrap_or_default()
}

fn words(value: &Value) -> Vec<String> {
    let each = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    each.map(str::to_owned).collect()
}

fn text(belief: &Belief) -> String {
    let mut parts = vec![word(belief, "canonical_name").to_owned()];
    parts.extend(words(&belief["aliases"]));
    parts.extend([word(belief, "content"), word(belief, "why_it_matters")].map(str::to_owned));
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

fn tag(user: &str, scope: &str) -> String {
    format!("{user} {scope}")
}

/// The beliefs in a vault.
struct Desk {
    world: World,
    beliefs: BTreeMap<String, Belief>,
    /// Which belief the head of a memory is.
    heads: BTreeMap<MemoryId, String>,
}

/// What came back for a question.
struct Answer {
    pinned: BTreeSet<String>,
    relevant: Vec<String>,
    questions: BTreeSet<String>,
}

impl Desk {
    async fn open(place: &Path, seeds: &[Belief]) -> Result<Self> {
        let world = World::open(place).await?;
        let mut desk = Self { world, beliefs: BTreeMap::new(), heads: BTreeMap::new() };
        let mut rest: Vec<&Belief> = seeds.iter().collect();
        // What superseded another comes after it.
        while !rest.is_empty() {
            let waits = |belief: &&&Belief| {
                rest.iter().any(|other| other["superseded_by"] == belief["_id"])
            };
            let next: Vec<&Belief> = rest.iter().filter(|belief| !waits(belief)).copied().collect();
            anyhow::ensure!(!next.is_empty(), "beliefs supersede each other in a circle");
            for belief in &next {
                desk.put(belief).await?;
            }
            rest.retain(|belief| !next.iter().any(|done| done["_id"] == belief["_id"]));
        }
        desk.world.engine.settle().await?;
        Ok(desk)
    }

    async fn put(&mut self, belief: &Belief) -> Result<()> {
        let id = word(belief, "_id").to_owned();
        self.beliefs.insert(id.clone(), belief.clone());
        let user = word(belief, "user_id");
        let mut draft = Draft::text(text(belief));
        // Open questions are listed, not recalled.
        if belief["type"] != "open_question" {
            draft.content.tags =
                words(&belief["scope"]).iter().map(|scope| tag(user, scope)).collect();
        }
        let superseded = self.heads.iter().find(|(_, old)| {
            self.beliefs.get(*old).is_some_and(|old| old["superseded_by"] == belief["_id"])
        });
        let mutation = match superseded.map(|(memory, _)| *memory) {
            Some(memory) => {
                let patch: Patch = serde_json::from_value(json!({
                    "body": { "text": draft.content.body.text }, "tags": draft.content.tags,
                }))?;
                Mutation::Revise { memory, patch: Box::new(patch), expected: None }
            }
            None => Mutation::Remember { draft: Box::new(draft), id: None },
        };
        let engine = &self.world.engine;
        let done = engine.mutate(&self.world.owner, mutation, Wish::default()).await?;
        let memory = done.memories.first().context("a belief is a memory")?.memory;
        self.heads.insert(memory, id);
        if !belief["resolved_at"].is_null() {
            let forget =
                Mutation::Forget { memories: vec![memory], depth: Depth::Tombstone, reason: None };
            engine.mutate(&self.world.owner, forget, Wish::default()).await?;
        }
        Ok(())
    }

    /// Whether a belief holds in one of the scopes of a user.
    fn holds(&self, belief: &Belief, user: &str, scopes: &[String]) -> bool {
        let own = words(&belief["scope"]);
        belief["user_id"] == user
            && belief["resolved_at"].is_null()
            && own.iter().any(|scope| scopes.contains(scope))
    }

    fn pinned(&self, user: &str, scopes: &[String], questions: bool) -> Vec<String> {
        let each = self.beliefs.values().filter(|belief| {
            self.holds(belief, user, scopes)
                && belief["pinned"] == true
                && belief["superseded_by"].is_null()
                && (belief["type"] == "open_question") == questions
        });
        each.map(|belief| word(belief, "_id").to_owned()).collect()
    }

    async fn search(
        &self,
        user: &str,
        scope: &str,
        query: &str,
        limit: usize,
    ) -> Result<Vec<String>> {
        let recall = Recall {
            query: query.to_owned(),
            corpus: Corpus::Memories,
            filter: Filter { tags: vec![tag(user, scope)], ..Filter::default() },
            near: Scope::default(),
            limit,
            effort: Effort::Balanced,
            prefer: Vec::new(),
            cutoff: Cutoff::Calibrated,
        };
        let found = self.world.engine.recall(&self.world.owner, recall).await?.results;
        let ids = found.iter().filter_map(|hit| self.heads.get(&hit.found.memory()?));
        Ok(ids.cloned().collect())
    }

    async fn ask(&self, user: &str, scopes: &[String], query: &str, most: usize) -> Result<Answer> {
        let mut pinned = self.pinned(user, scopes, false);
        let mut relevant: Vec<String> = Vec::new();
        if !query.trim().is_empty() && most > 0 {
            let mut lists = Vec::new();
            for scope in scopes {
                lists.push(self.search(user, scope, query, most).await?);
            }
            for place in 0..lists.iter().map(Vec::len).max().unwrap_or(0) {
                for id in lists.iter().filter_map(|list| list.get(place)) {
                    if !relevant.contains(id) && !pinned.contains(id) {
                        relevant.push(id.clone());
                    }
                }
            }
        }
        // Whoever takes part in a relation comes with it.
        let relations = relevant.clone();
        for relation in relations.iter().filter_map(|id| self.beliefs.get(id)) {
            for id in words(&relation["participants"]) {
                let Some(belief) = self.beliefs.get(&id) else { continue };
                let fits = self.holds(belief, user, scopes) && belief["type"] != "open_question";
                if fits && !relevant.contains(&id) && !pinned.contains(&id) {
                    relevant.push(id);
                }
            }
        }
        pinned.truncate(most);
        relevant.truncate(most - pinned.len());
        let questions = self.pinned(user, scopes, true).into_iter().collect();
        Ok(Answer { pinned: pinned.into_iter().collect(), relevant, questions })
    }
}

/// What is wrong with an answer.
fn faults(expected: &Value, answer: &Answer) -> Vec<String> {
    let mut faults = Vec::new();
    let beliefs = &expected["relevantBeliefs"];
    let there = |id: &String| answer.relevant.contains(id) || answer.pinned.contains(id);
    for id in words(&beliefs["mustInclude"]).iter().chain(&words(&beliefs["shouldInclude"])) {
        if !there(id) {
            faults.push(format!("missing {id}"));
        }
    }
    faults.extend(
        words(&beliefs["mustExclude"])
            .iter()
            .filter(|id| there(id))
            .map(|id| format!("shows {id}")),
    );
    if beliefs["shouldOnlyInclude"].is_array() {
        let only = words(&beliefs["shouldOnlyInclude"]);
        let extra = answer.relevant.iter().filter(|id| !only.contains(id));
        faults.extend(extra.map(|id| format!("shows {id}")));
        let missing = only.iter().filter(|id| !answer.relevant.contains(id));
        faults.extend(missing.map(|id| format!("missing {id}")));
    }
    for pair in beliefs["orderedBefore"].as_array().into_iter().flatten() {
        let place = |at: usize| answer.relevant.iter().position(|id| pair[at] == id.as_str());
        if !matches!((place(0), place(1)), (Some(first), Some(second)) if first < second) {
            faults.push(format!("not in order: {pair}"));
        }
    }
    let (pinned, questions) = (&expected["pinnedFacts"], &expected["openQuestions"]);
    for (expected, found, what) in
        [(pinned, &answer.pinned, "pinned"), (questions, &answer.questions, "question")]
    {
        let missing = words(&expected["mustInclude"]).into_iter().filter(|id| !found.contains(id));
        faults.extend(missing.map(|id| format!("missing {what} {id}")));
        let extra = words(&expected["mustExclude"]).into_iter().filter(|id| found.contains(id));
        faults.extend(extra.map(|id| format!("shows {what} {id}")));
    }
    let noise = words(&expected["noiseCheck"]["mustNotSurface"]);
    faults.extend(noise.iter().filter(|id| there(id)).map(|id| format!("noise: {id}")));
    faults
}

/// The share of what came back that was expected; none where nothing was expected and nothing came.
fn precision(expected: &Value, answer: &Answer) -> Option<f64> {
    let only = words(&expected["relevantBeliefs"]["shouldOnlyInclude"]);
    if answer.relevant.is_empty() && only.is_empty() {
        return None;
    }
    let hits = answer.relevant.iter().filter(|id| only.contains(id)).count();
    Some(hits as f64 / answer.relevant.len().max(1) as f64)
}

/// Runs the cases and the sessions.
pub(crate) async fn run(data: &Path, work: &Path, report: &mut Report) -> Result<Vec<Value>> {
    let seeds = file(data, "beliefs.seed.json")?;
    let desk = Desk::open(&work.join("precision"), &seeds).await?;
    let (mut written, mut precisions) = (Vec::new(), Vec::new());
    let (mut total, mut active, mut wanted) = (0, 0, 0);
    let cases = file(data, "retrieval.cases.json")?;
    for case in &cases {
        let user = case["userId"].as_str().unwrap_or(USER);
        let most =
            case["budget"]["maxBeliefs"].as_u64().and_then(|most| usize::try_from(most).ok());
        let scopes = words(&case["scope"]);
        let answer = desk.ask(user, &scopes, word(case, "query"), most.unwrap_or(BELIEFS)).await?;
        let expected = &case["expect"];
        let faults = faults(expected, &answer);
        let precision = precision(expected, &answer);
        let is_active = !words(&expected["relevantBeliefs"]["shouldOnlyInclude"]).is_empty();
        wanted += usize::from(is_active);
        total += usize::from(faults.is_empty());
        active += usize::from(faults.is_empty() && precision.is_some());
        precisions.extend(precision);
        written.push(json!({
            "question": case["caseId"], "ranked": answer.relevant,
            "gold": expected["relevantBeliefs"]["shouldOnlyInclude"], "faults": faults,
        }));
    }
    desk.world.close().await?;
    let turns = sessions(data, &work.join("precision-sessions"), &seeds, &mut written).await?;
    let mean = precisions.iter().sum::<f64>() / precisions.len().max(1) as f64;
    report.figure("PrecisionMemBench", json!({
        "note": "the set favours designs that look up aliases", "cases": cases.len(),
        "passed": total, "active_cases": wanted, "active_passed": active,
        "mean_precision": round(mean), "session_turns": turns.1, "session_turns_passed": turns.0,
    }));
    report.at_least(
        "PrecisionMemBench, active cases of 43",
        "cases",
        40.0,
        Some(f64::from(active as u32)),
    );
    report.at_least(
        "PrecisionMemBench, session turns of 12",
        "turns",
        12.0,
        Some(f64::from(turns.0 as u32)),
    );
    Ok(written)
}

/// The scripts of several turns: how many turns passed, of how many.
async fn sessions(
    data: &Path,
    place: &Path,
    seeds: &[Belief],
    written: &mut Vec<Value>,
) -> Result<(usize, usize)> {
    let mut desk = Desk::open(place, seeds).await?;
    let (mut passed, mut all) = (0, 0);
    for script in &file(data, "session-retrieval.cases.json")? {
        for turn in script["turns"].as_array().into_iter().flatten() {
            let scopes = words(&turn["scope"]);
            let answer = desk.ask(USER, &scopes, word(turn, "userMessage"), BELIEFS).await?;
            let faults = faults(&turn["expect"], &answer);
            all += 1;
            passed += usize::from(faults.is_empty());
            written.push(json!({
                "question": format!("{} {}", word(script, "caseId"), turn["turnIndex"]),
                "ranked": answer.relevant, "faults": faults,
            }));
            if turn["createBeliefAtTurn"].is_object() {
                desk.put(&turn["createBeliefAtTurn"]).await?;
            }
            let update = &turn["updateBeliefAtTurn"];
            let named = desk.beliefs.get(word(update, "beliefId")).cloned();
            if let Some(mut belief) = named {
                let mut aliases = words(&belief["aliases"]);
                aliases.extend(words(&update["addAliases"]));
                belief["aliases"] = aliases.into();
                desk.rewrite(&belief).await?;
            }
            desk.world.engine.settle().await?;
        }
    }
    desk.world.close().await?;
    Ok((passed, all))
}

impl Desk {
    /// Gives a belief a text with what was learned of it.
    async fn rewrite(&mut self, belief: &Belief) -> Result<()> {
        let id = word(belief, "_id");
        let memory = self.heads.iter().find(|(_, known)| *known == id).map(|(memory, _)| *memory);
        let memory = memory.with_context(|| format!("there is no belief {id}"))?;
        let patch: Patch = serde_json::from_value(json!({ "body": { "text": text(belief) } }))?;
        let revise = Mutation::Revise { memory, patch: Box::new(patch), expected: None };
        self.world.engine.mutate(&self.world.owner, revise, Wish::default()).await?;
        self.beliefs.insert(id.to_owned(), belief.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(relevant: &[&str], pinned: &[&str]) -> Answer {
        let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        Answer {
            pinned: owned(pinned).into_iter().collect(),
            relevant: owned(relevant),
            questions: BTreeSet::new(),
        }
    }

    #[test]
    fn a_case_passes_when_exactly_what_was_expected_came() {
        let expected = json!({ "relevantBeliefs": { "shouldOnlyInclude": ["a"] }, "pinnedFacts": { "mustInclude": ["p"] } });
        assert_eq!(faults(&expected, &answer(&["a"], &["p"])), [""; 0]);
        assert_eq!(faults(&expected, &answer(&["a", "b"], &["p"])), ["shows b"]);
        assert_eq!(faults(&expected, &answer(&[], &[])), ["missing a", "missing pinned p"]);
        assert_eq!(precision(&expected, &answer(&["a", "b"], &[])), Some(0.5));
        let nothing = json!({ "relevantBeliefs": { "shouldOnlyInclude": [] } });
        assert_eq!(precision(&nothing, &answer(&[], &[])), None);
        assert_eq!(precision(&nothing, &answer(&["b"], &[])), Some(0.0));
    }
}
