//! The paper's second experiment: how much a store that lies moves what several stores answer
//! together. Beside its one attack, others: two liars of three, scores without measure, and a liar
//! that knows nothing of the router and learns from answers alone.

use serde_json::{Value, json};
use yore_router::fuse::{Fusion, Lane, Rules, fuse};
use yore_router::{Record, Type, Whose};

use crate::corpus::Random;
use crate::meter::round;
use crate::report::Report;

const SEED: u64 = 1337;
const STORES: usize = 3;
const MEMORIES: usize = 50;
const QUESTIONS: usize = 20;
const K: usize = 5;
/// How many answers the router asks each store for.
const BLOCK: usize = 4 * K;
/// The largest number of poisoned answers, and the steps to it.
const BUDGET: (usize, usize) = (50, 5);
/// The budgets the paper shows.
const SHOWN: [usize; 5] = [0, 5, 10, 25, 50];
/// What a liar claims its best answer is worth.
const CLAIMS: [f64; 4] = [1.0, 2.0, 10.0, f64::INFINITY];
const FUSIONS: [(&str, Fusion); 3] =
    [("rrf", Fusion::Rrf), ("max", Fusion::Max), ("weighted", Fusion::Weighted)];

/// A question: what answers it, and in which order each store would say so.
#[derive(Debug)]
struct Question {
    gold: [usize; 2],
    orders: [Vec<usize>; STORES],
}

impl Question {
    fn is_answered_by(&self, record: &Record) -> bool {
        self.gold.iter().any(|id| record.content == memory(*id).content)
    }
}

/// What a liar puts first.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    /// Memories that do not exist.
    Invent,
    /// Ids that were answered before, with other words.
    Forge,
    /// What was answered before, the last first, and then memories that do not exist.
    Lift,
}

/// What liars do.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Attack {
    shape: Shape,
    claim: f64,
}

/// Who lies, and what it is told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Liar {
    /// It knows how many answers are asked for and fills exactly these, as in the paper.
    Informed(f64),
    /// It sees answers only, tries what it can think of, and stays with what did most harm.
    BlackBox,
}

/// How an experiment is set up.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scene {
    liars: usize,
    liar: Liar,
    quorum: usize,
}

/// What an attack did.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Harm {
    budget: usize,
    /// The share of gold among the first five.
    recall: f64,
    /// The share of poison among what was returned.
    leak: f64,
    /// The share of gold that was among the first five without an attack and no longer is.
    displaced: f64,
}

/// Runs all scenes, prints the paper's table and ours, and keeps everything by fusion.
pub(crate) fn run(report: &mut Report) {
    let questions = questions();
    let mut kept = json!({});
    let mut all = Vec::new();
    for (name, fusion) in FUSIONS {
        let mut rows = Vec::new();
        for scene in scenes() {
            let harms = swept(&questions, scene, fusion);
            rows.push(json!({
                "stores": STORES, "liars": scene.liars, "liar": told(scene.liar),
                "quorum": scene.quorum, "seed": SEED, "k": K,
                "sweep": harms.iter().copied().map(Harm::to_json).collect::<Vec<_>>(),
            }));
            all.push((scene, fusion, harms));
        }
        kept[name] = json!(rows);
    }
    report.keep("adversarial fusion", kept);
    print_published(&all);
    print_worst(&all);
    for (name, fusion) in FUSIONS {
        for quorum in [1, 2] {
            // The paper's own: without a quorum, the best score of any store wins.
            if quorum == 1 && fusion == Fusion::Max {
                continue;
            }
            let its = all.iter().filter(|(scene, used, _)| {
                let known = quorum == 2 || scene.liar != Liar::BlackBox;
                scene.liars == 1 && scene.quorum == quorum && *used == fusion && known
            });
            let harms: Vec<Harm> = its.flat_map(|(_, _, harms)| harms).copied().collect();
            let recall = harms.iter().map(|harm| harm.recall).fold(1.0, f64::min);
            let leak = harms.iter().map(|harm| harm.leak).fold(0.0, f64::max);
            let what = format!("one liar of three, {name}, quorum {quorum}");
            report.at_least(format!("{what}, recall@5"), "share", 1.0, Some(recall));
            report.at_most(format!("{what}, leak"), "share", 0.0, Some(leak));
        }
    }
}

impl Harm {
    fn to_json(self) -> Value {
        json!({
            "budget": self.budget, "recall_at_5": round(self.recall),
            "leak": round(self.leak), "gold_displacement": round(self.displaced),
        })
    }
}

fn scenes() -> Vec<Scene> {
    let mut scenes = Vec::new();
    for liars in [1, 2] {
        for quorum in [1, 2] {
            let informed = CLAIMS.into_iter().map(Liar::Informed);
            let liars_of = informed.chain([Liar::BlackBox]);
            scenes.extend(liars_of.map(|liar| Scene { liars, liar, quorum }));
        }
    }
    scenes
}

fn told(liar: Liar) -> String {
    match liar {
        Liar::Informed(claim) => format!("informed, scores of {claim}"),
        Liar::BlackBox => "sees answers only".to_owned(),
    }
}

/// The questions, each with gold of its own and an order for each store.
fn questions() -> Vec<Question> {
    let mut random = Random::new(SEED);
    let drawn = shuffled((0..MEMORIES).collect(), &mut random);
    let question = |pair: &[usize]| {
        let gold = [pair[0], pair[1]];
        let rest: Vec<usize> = (0..MEMORIES).filter(|id| !gold.contains(id)).collect();
        let orders = std::array::from_fn(|_| {
            let tail = shuffled(rest.clone(), &mut random);
            gold.into_iter().chain(tail).collect()
        });
        Question { gold, orders }
    };
    drawn.chunks(2).take(QUESTIONS).map(question).collect()
}

fn shuffled(mut list: Vec<usize>, random: &mut Random) -> Vec<usize> {
    for last in (1..list.len()).rev() {
        list.swap(last, random.below(last + 1));
    }
    list
}

/// Attacks with every budget.
fn swept(questions: &[Question], scene: Scene, fusion: Fusion) -> Vec<Harm> {
    let rules = Rules { fusion, quorum: scene.quorum, ..Rules::default() };
    let nothing = Attack { shape: Shape::Invent, claim: 1.0 };
    let calm = answers(questions, scene.liars, 0, nothing, &[], rules);
    let budgets = (0..=BUDGET.0).step_by(BUDGET.1);
    budgets
        .map(|budget| {
            let attacked = match scene.liar {
                Liar::Informed(claim) => {
                    let attack = Attack { shape: Shape::Invent, claim };
                    answers(questions, scene.liars, budget, attack, &calm, rules)
                }
                Liar::BlackBox => most_harmful(questions, scene.liars, budget, &calm, rules),
            };
            harm(questions, budget, &calm, &attacked)
        })
        .collect()
}

/// What is answered under the attack that a liar stays with: the one after which it sees most of
/// its own among the answers, else the one that changed most of them.
fn most_harmful(
    questions: &[Question],
    liars: usize,
    budget: usize,
    calm: &[Vec<Record>],
    rules: Rules,
) -> Vec<Vec<Record>> {
    let shapes = [Shape::Invent, Shape::Forge, Shape::Lift];
    let attacks = shapes.into_iter().flat_map(|shape| CLAIMS.map(|claim| Attack { shape, claim }));
    let seen = |answers: &Vec<Vec<Record>>| {
        let own = answers.iter().flatten().filter(|record| is_poison(record)).count();
        let changed = answers.iter().zip(calm).filter(|(now, before)| now != before).count();
        (own, changed)
    };
    let tried = attacks.map(|attack| answers(questions, liars, budget, attack, calm, rules));
    tried.max_by_key(seen).unwrap_or_default()
}

/// What the router answers to each question when the last stores lie. `before` is what it
/// answered to the same questions when none did.
fn answers(
    questions: &[Question],
    liars: usize,
    budget: usize,
    attack: Attack,
    before: &[Vec<Record>],
    rules: Rules,
) -> Vec<Vec<Record>> {
    let one = |(number, question): (usize, &Question)| {
        let seen = before.get(number).map_or(&[][..], Vec::as_slice);
        let lane = |(store, order): (usize, &Vec<usize>)| {
            let mut hits = Vec::new();
            if store >= STORES - liars {
                hits = poisoned(budget, attack, seen);
            }
            hits.extend(honest(order));
            hits.truncate(BLOCK);
            Lane { store: format!("store-{store}"), weight: 1.0, hits }
        };
        let lanes: Vec<Lane> = question.orders.iter().enumerate().map(lane).collect();
        fuse(&lanes, rules).into_iter().take(K).map(|hit| hit.record).collect::<Vec<_>>()
    };
    questions.iter().enumerate().map(one).collect()
}

fn honest(order: &[usize]) -> impl Iterator<Item = (Record, f64)> {
    let row = |(place, id): (usize, &usize)| (memory(*id), 1.0 - 0.01 * place as f64);
    order.iter().enumerate().map(row)
}

/// What a liar puts before its honest answers.
fn poisoned(budget: usize, attack: Attack, seen: &[Record]) -> Vec<(Record, f64)> {
    let invented = |number: usize| record(&format!("a{number:03}"), &poison(number));
    let row = |number: usize| match (attack.shape, seen.len()) {
        (Shape::Invent, _) | (_, 0) => invented(number),
        (Shape::Forge, many) => record(&seen[number % many].id, &poison(number)),
        (Shape::Lift, many) if number < many => seen[many - 1 - number].clone(),
        (Shape::Lift, _) => invented(number),
    };
    (0..budget).map(|n| (row(n), attack.claim * (1.0 - 0.001 * n as f64))).collect()
}

fn poison(number: usize) -> String {
    format!("poison number {number}")
}

fn is_poison(record: &Record) -> bool {
    record.content.starts_with("poison")
}

fn memory(id: usize) -> Record {
    record(&format!("m{id:03}"), &format!("memory number {id}"))
}

fn record(id: &str, text: &str) -> Record {
    let whose = Whose { agent: "agent-a".into(), user: None };
    Record::new(id, &whose, Type::Semantic, text, 0)
}

fn harm(
    questions: &[Question],
    budget: usize,
    calm: &[Vec<Record>],
    attacked: &[Vec<Record>],
) -> Harm {
    let gold = |answers: &[Vec<Record>]| -> f64 {
        let pairs = questions.iter().zip(answers);
        let each = pairs.map(|(question, answer)| {
            answer.iter().filter(|record| question.is_answered_by(record)).count()
        });
        each.sum::<usize>() as f64
    };
    let returned = attacked.iter().map(Vec::len).sum::<usize>().max(1) as f64;
    let leaked = attacked.iter().flatten().filter(|record| is_poison(record)).count() as f64;
    let stayed = gold(attacked) / gold(calm).max(1.0);
    Harm {
        budget,
        recall: gold(attacked) / (2 * questions.len()) as f64,
        leak: leaked / returned,
        displaced: 1.0 - stayed.min(1.0),
    }
}

type Swept = (Scene, Fusion, Vec<Harm>);

/// The paper's table, with what it published in brackets.
fn print_published(all: &[Swept]) {
    let paper = Scene { liars: 1, liar: Liar::Informed(1.0), quorum: 1 };
    println!("\nadversarial fusion: recall@5, leak and gold displacement, (published)");
    print!("{:>6}", "budget");
    for (name, _) in FUSIONS {
        print!("  {name:^32}");
    }
    println!();
    for budget in SHOWN {
        print!("{budget:>6}");
        for (_, fusion) in FUSIONS {
            let swept = all.iter().find(|(scene, used, _)| *scene == paper && *used == fusion);
            let harms = swept.map_or(&[][..], |(_, _, harms)| harms.as_slice());
            for harm in harms.iter().filter(|harm| harm.budget == budget) {
                let (recall, leak) = published(fusion, budget);
                print!("  {:.3} ({recall:.3})  {:.3} ({leak:.3})", harm.recall, harm.leak);
                print!(" {:.3}", harm.displaced);
            }
        }
        println!();
    }
}

/// Recall and leak as published.
fn published(fusion: Fusion, budget: usize) -> (f64, f64) {
    match fusion {
        Fusion::Max if budget > 0 => (0.5, 0.8),
        Fusion::Max | Fusion::Rrf | Fusion::Weighted => (1.0, 0.0),
    }
}

/// The most harm done in each scene over all budgets.
fn print_worst(all: &[Swept]) {
    println!("\nworst of all budgets: recall@5, leak, gold displacement");
    println!("{:<44} {:^20} {:^20} {:^20}", "scene", "rrf", "max", "weighted");
    for scene in scenes() {
        let liars = format!("{} of {STORES}", scene.liars);
        let what = format!("{liars}, {}, quorum {}", told(scene.liar), scene.quorum);
        print!("{what:<44}");
        for (_, fusion) in FUSIONS {
            let swept = all.iter().find(|(set, used, _)| *set == scene && *used == fusion);
            let harms = swept.map_or(&[][..], |(_, _, harms)| harms.as_slice());
            let least = harms.iter().map(|harm| harm.recall).fold(1.0, f64::min);
            let leak = harms.iter().map(|harm| harm.leak).fold(0.0, f64::max);
            let displaced = harms.iter().map(|harm| harm.displaced).fold(0.0, f64::max);
            print!("  {least:.3} {leak:.3} {displaced:.3} ");
        }
        println!();
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(liars: usize, liar: Liar, quorum: usize, fusion: Fusion) -> (f64, f64, f64) {
        let harms = swept(&questions(), Scene { liars, liar, quorum }, fusion);
        assert_eq!(harms.len(), 11);
        (
            harms.iter().map(|harm| harm.recall).fold(1.0, f64::min),
            harms.iter().map(|harm| harm.leak).fold(0.0, f64::max),
            harms.iter().map(|harm| harm.displaced).fold(0.0, f64::max),
        )
    }

    #[test]
    fn one_liar_of_three_moves_neither_places_nor_weighted_scores() {
        for claim in CLAIMS {
            for fusion in [Fusion::Rrf, Fusion::Weighted] {
                assert_eq!(worst(1, Liar::Informed(claim), 1, fusion), (1.0, 0.0, 0.0));
            }
        }
    }

    #[test]
    fn a_quorum_of_two_withstands_one_liar_in_every_fusion() {
        for liar in CLAIMS.map(Liar::Informed).into_iter().chain([Liar::BlackBox]) {
            for (name, fusion) in FUSIONS {
                assert_eq!(worst(1, liar, 2, fusion), (1.0, 0.0, 0.0), "{name} {liar:?}");
            }
        }
    }

    #[test]
    fn the_experiment_can_fail() {
        let (recall, leak, displaced) = worst(1, Liar::Informed(10.0), 1, Fusion::Max);
        assert!(recall < 1.0 && leak >= 0.8 && displaced > 0.0, "{recall} {leak} {displaced}");
        let (recall, leak, _) = worst(2, Liar::Informed(1.0), 2, Fusion::Rrf);
        assert!(recall < 1.0 && leak > 0.0, "two liars of three agree: {recall} {leak}");
    }
}
