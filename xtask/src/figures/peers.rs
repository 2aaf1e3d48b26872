//! The report of the comparison with the peers, its pictures, and the table of the README.

use serde_json::Value;

use super::page::{self, number};
use super::plot;

/// The size that the README shows.
const SHOWN: u64 = 10_000;

/// Every system: its name in the figures, in the tables, and whether its files are encrypted.
const SYSTEMS: [(&str, &str, bool); 9] = [
    ("yore", "**Yore**, in process", true),
    ("yore-static", "Yore, without the transformer", true),
    ("yore-http", "Yore, its server over HTTP", true),
    ("mem0", "mem0 (local Qdrant)", false),
    ("chroma", "Chroma", false),
    ("lancedb", "LanceDB", false),
    ("lancedb-tuned", "LanceDB, compacted and indexed", false),
    ("memorywire", "memorywire (sqlite-vec)", false),
    ("server-memory", "MCP server-memory (no vectors, no filter)", false),
];

/// Reasons why cells have no figure, numbered as they come.
#[derive(Debug, Default)]
struct Reasons(Vec<String>);

impl Reasons {
    fn mark(&mut self, reason: String) -> String {
        let at = self.0.iter().position(|known| *known == reason).unwrap_or_else(|| {
            self.0.push(reason);
            self.0.len() - 1
        });
        format!("({})", at + 1)
    }

    fn list(&self) -> String {
        let each = (1..).zip(&self.0).map(|(at, reason)| format!("({at}) {reason}  \n"));
        each.collect()
    }
}

/// The table of the README, with what must be known to read it.
pub(super) fn table(document: &Value) -> String {
    let mut reasons = Reasons::default();
    let mut text = of_size(document, SHOWN, &mut reasons);
    text.push('\n');
    text.push_str(&reasons.list());
    if !reasons.0.is_empty() {
        text.push('\n');
    }
    text.push_str(&at_once(document));
    text
}

/// Machine and conditions in two sentences.
fn at_once(document: &Value) -> String {
    let (machine, rows) = (&document["machine"], rows(document));
    let shown = || rows.iter().filter(|row| row["size"] == SHOWN);
    let loads: Vec<f64> = shown().filter_map(|row| row["load"].as_f64()).collect();
    let low = loads.iter().copied().fold(f64::INFINITY, f64::min);
    let high = loads.iter().copied().fold(0.0, f64::max);
    let load =
        if low.is_finite() { format!("{low:.1} to {high:.1}") } else { "unknown".to_owned() };
    let build = shown().find_map(|row| row["build"].as_str()).unwrap_or("as shipped");
    let cpu = machine["cpu"].as_str().unwrap_or("an unknown processor");
    let cores = &machine["cores"];
    format!(
        "{SHOWN} memories of ten users, 384 dimensions, the ten best of one user's; {cpu}, {cores} cores, load \
         {load} while others worked on the machine, so read CPU time rather than wall time. Yore's build: {build}.\n"
    )
}

fn of_size(document: &Value, size: u64, reasons: &mut Reasons) -> String {
    let mut text = "| | add: CPU ms | p50 ms | adds/s, 8 clients | filtered search: CPU ms | p50 ms | searches/s, 8 clients \
         | memory MB | disk MB | encrypted | syncs an add | deleted text left |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let rows = rows(document);
    for (system, name, encrypted) in SYSTEMS {
        let Some(row) = rows.iter().find(|row| row["system"] == system && row["size"] == size)
        else {
            let mark = reasons.mark(format!("not run with {size} memories"));
            text.push_str(&format!("| {name} | {mark} |{}\n", " – |".repeat(10)));
            continue;
        };
        let cell = |cell: &str| &row["cells"][cell];
        let kept = lost(row);
        let mut each = vec![name.to_owned()];
        for one in ["add", "search"] {
            let (alone, crowd) = (cell(&format!("{one}_1")), cell(&format!("{one}_8")));
            each.push(told(alone, cpu(alone), name, reasons));
            each.push(told(alone, alone["wall_ms"]["p50"].as_f64(), name, reasons));
            let mut many = told(crowd, crowd["per_second"].as_f64(), name, reasons);
            if let (Some(lost), "add") = (&kept, one) {
                many.push(' ');
                many.push_str(&reasons.mark(format!("{name}: {lost}")));
            }
            each.push(many);
        }
        each.push(scaled(&row["peak_kib"], 1024.0 / 1e6));
        each.push(scaled(&row["disk_bytes"], 1e-6));
        each.push(if encrypted { "yes" } else { "no" }.to_owned());
        each.push(syncs(document, system));
        each.push(left(document, system));
        text.push_str(&format!("| {} |\n", each.join(" | ")));
    }
    text
}

/// A figure, or the mark of the reason why there is none.
fn told(cell: &Value, figure: Option<f64>, name: &str, reasons: &mut Reasons) -> String {
    match (figure, cell["error"].as_str()) {
        (Some(figure), None) => number(figure),
        (_, reason) => {
            let reason = reason.or(cell["note"].as_str()).unwrap_or("no reading");
            reasons.mark(format!("{name}: {reason}"))
        }
    }
}

/// CPU of an operation with what it leaves to do later.
fn cpu(cell: &Value) -> Option<f64> {
    cell["settled_cpu_ms"].as_f64().or(cell["cpu_ms"].as_f64())
}

/// What became of acknowledged memories, where they are not all there.
fn lost(row: &Value) -> Option<String> {
    let (acknowledged, kept) = (row["acknowledged"].as_u64()?, row["kept"].as_u64()?);
    match acknowledged.checked_sub(kept) {
        Some(0) => None,
        Some(lost) => Some(format!("{lost} acknowledged memories were lost with 8 clients")),
        None => Some(format!("{} memories are there that were refused", kept - acknowledged)),
    }
}

fn scaled(value: &Value, factor: f64) -> String {
    value.as_f64().map_or("–".to_owned(), |value| number(value * factor))
}

/// Whichever entry speaks of a system; the rows of one engine share theirs.
fn about<'a>(document: &'a Value, list: &str, system: &str) -> Option<&'a Value> {
    let same = match system {
        "yore-static" | "yore-http" => "yore",
        "lancedb-tuned" => "lancedb",
        other => other,
    };
    document["figures"][list].as_array()?.iter().find(|one| one["system"] == same)
}

fn syncs(document: &Value, system: &str) -> String {
    let each = about(document, "durability", system).and_then(|one| one["syncs_per_add"].as_f64());
    each.map_or("–".to_owned(), number)
}

fn left(document: &Value, system: &str) -> String {
    let Some(one) = about(document, "forgetting", system) else { return "–".to_owned() };
    match (one["after"].as_u64(), one["decrypting"] == true) {
        (Some(0), true) => "none, decrypted".to_owned(),
        (Some(0), false) => "none".to_owned(),
        (Some(count), _) => format!("{count} times"),
        (None, _) => "–".to_owned(),
    }
}

fn rows(document: &Value) -> Vec<Value> {
    document["figures"]["rows"].as_array().cloned().unwrap_or_default()
}

fn sizes(document: &Value) -> Vec<u64> {
    let mut sizes: Vec<u64> =
        rows(document).iter().filter_map(|row| row["size"].as_u64()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The report.
pub(super) fn page(document: &Value) -> String {
    let mut text = format!("# Beside the peers\n\n{}", page::origin("peers", document));
    text.push_str(METHOD);
    text.push_str("\n## Bars\n\n");
    text.push_str(&page::bars(document));
    text.push_str("![CPU of an add and of a search](peers-cpu.svg)\n\n");
    text.push_str("![CPU of a search by size](peers-size.svg)\n");
    for size in sizes(document) {
        let mut reasons = Reasons::default();
        text.push_str(&format!(
            "\n## {size} memories\n\n{}",
            of_size(document, size, &mut reasons)
        ));
        text.push_str(&format!("\n{}", reasons.list()));
        text.push_str(&tails(document, size));
    }
    text.push_str(&durability(document));
    text.push_str(&forgetting(document));
    text
}

/// Wall times with their tails, counts and conditions of every cell.
fn tails(document: &Value, size: u64) -> String {
    let mut text = "\n| system, cell | n | CPU ms until acknowledged | wall p50 | p95 | p99 ms | load before | commit |\n\
                    |---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let rows = rows(document);
    for (system, name, _) in SYSTEMS {
        let Some(row) = rows.iter().find(|row| row["system"] == system && row["size"] == size)
        else {
            continue;
        };
        for (cell, what) in [
            ("add_1", "add"),
            ("add_8", "add, 8 clients"),
            ("search_1", "search"),
            ("search_8", "search, 8 clients"),
        ] {
            let cell = &row["cells"][cell];
            let of = |value: &Value| value.as_f64().map_or("–".to_owned(), number);
            let walls = ["p50", "p95", "p99"].map(|share| of(&cell["wall_ms"][share]));
            let commit = row["commit"].as_str().unwrap_or("unknown");
            text.push_str(&format!(
                "| {name}, {what} | {} | {} | {} | {} | {} |\n",
                cell["n"],
                of(&cell["cpu_ms"]),
                walls.join(" | "),
                of(&row["load"]),
                commit.get(..10).unwrap_or(commit),
            ));
        }
    }
    let own = rows.iter().filter(|row| row["size"] == size && row["system"] == "yore");
    for each in own.filter_map(|row| row["own_embedding_cpu_ms"].as_f64()) {
        text.push_str(&format!(
            "\nMaking the transformer's vector of a memory, which the peers were spared, took Yore {} ms of CPU in \
             the background.\n",
            number(each)
        ));
    }
    text
}

fn durability(document: &Value) -> String {
    let mut text = "\n## What an add puts on the disk\n\nCounted with strace over single adds: calls of `fsync` and \
                    `fdatasync`. Where there is none for an add, what was acknowledged can be gone after a power cut.\n\n\
                    | system | calls for each add | adds |\n|---|---|---|\n"
        .to_owned();
    for one in document["figures"]["durability"].as_array().into_iter().flatten() {
        let system = one["system"].as_str().unwrap_or_default();
        let line = match one["error"].as_str() {
            Some(reason) => format!("| {system} | {reason} | – |\n"),
            None => format!("| {system} | {} | {} |\n", syncs(document, system), one["adds"]),
        };
        text.push_str(&line);
    }
    text
}

fn forgetting(document: &Value) -> String {
    let mut text = "\n## What is left of a deleted memory\n\n300 memories; one of them is deleted in the system's own way, \
                    without asking for a compaction; the process ends; then its text is looked for in the bytes of all \
                    its files. Yore's files are encrypted, so a plain scan would find nothing either way: there every page, \
                    journal and index is decrypted and scanned, and the same scan must find the text before.\n\n\
                    | system | scan | before | after |\n|---|---|---|---|\n"
        .to_owned();
    for one in document["figures"]["forgetting"].as_array().into_iter().flatten() {
        let system = one["system"].as_str().unwrap_or_default();
        let scan = if one["decrypting"] == true { "decrypting" } else { "plain" };
        let line = match one["error"].as_str() {
            Some(reason) => format!("| {system} | {reason} | – | – |\n"),
            None => {
                let places = one["places"].as_object().filter(|places| !places.is_empty());
                let names = |places: &serde_json::Map<String, Value>| {
                    let each = places.keys().map(|name| format!("`{name}`"));
                    format!(", in {}", each.collect::<Vec<_>>().join(", "))
                };
                let places = places.map(names).unwrap_or_default();
                format!("| {system} | {scan} | {} | {}{places} |\n", one["before"], one["after"])
            }
        };
        text.push_str(&line);
    }
    text
}

/// CPU of adds and searches at the size shown, and of searches by size.
pub(super) fn pictures(document: &Value) -> Vec<(&'static str, String)> {
    let rows = rows(document);
    let of = |system: &str, size: u64, cell: &str| {
        let row = rows.iter().find(|row| row["system"] == system && row["size"] == size)?;
        let cell = &row["cells"][cell];
        cell.get("error").is_none().then(|| cpu(cell)).flatten()
    };
    let plain = |name: &str| name.replace('*', "");
    let mut bars = Vec::new();
    for (what, cell) in [("search", "search_1"), ("add", "add_1")] {
        for (system, name, _) in SYSTEMS {
            let name = name.split(" (no").next().unwrap_or(name);
            bars.push((format!("{what}: {}", plain(name)), of(system, SHOWN, cell)));
        }
    }
    let lines: Vec<plot::Line> = SYSTEMS
        .iter()
        .map(|(system, name, _)| {
            let points = sizes(document)
                .into_iter()
                .filter_map(|size| Some((size as f64, of(system, size, "search_1")?)));
            let name = name.split(" (").next().unwrap_or(name);
            (plain(name), points.collect())
        })
        .collect();
    let title = format!("CPU milliseconds of one operation, one client, {SHOWN} memories");
    vec![
        ("-cpu.svg", plot::bars(&title, "CPU ms, less is better", &bars)),
        (
            "-size.svg",
            plot::lines(
                "CPU milliseconds of a filtered search, by memories stored",
                "memories",
                &lines,
            ),
        ),
    ]
}

/// How it was measured.
const METHOD: &str = "\
Each system runs alone in a process of its own, one after the other, on the same texts (12 to 35 generated words), the same \
vectors and the same questions. Ten users own a tenth of the memories each; a search wants the ten best of one user's (mem0 \
`user_id`, Chroma `where`, LanceDB a prefilter, memorywire `agent_id`, Yore the user of a memory's scope). A store is filled in the way its \
documentation advises, then memories are added and questions asked one by one, by one client and by eight (threads of one \
process, tasks in memorywire and Yore, requests in flight for server-memory, connections for Yore's server).

- **Vectors are supplied** to the peers, for memories and questions: those of the transformer inside Yore for the first \
2 000 memories and all questions; beyond, mixtures of three of them with noise, because making one takes some 20 ms. Yore takes no \
vectors from outside. For *in process* it made its own for every memory before the questions were asked, and knows the question's \
vector as a peer does; an add has the vector of its static table, made in the call. *Without the transformer* searches by the static \
table alone, question included.
- **CPU** is that of the process which holds the store, all threads, divided by the operations; for Yore's adds the work that \
follows in the background belongs to it. For server-memory and Yore's server the process is the server, to the hundredth of a second \
in all, and what the client spends is not counted.
- **Memory** is the most that the process ever held, with the language it is written in and, for Yore, its models.
- Yore ranks by words, static vectors, transformer vectors and tokens, checks grants and writes the audit line of every read; \
the peers rank by vectors alone. No quality is compared here. server-memory looks for one word in every text.
- A cell that failed says how. Versions are in the figures.
";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_without_a_figure_say_why() {
        let good = json!({ "n": 9, "cpu_ms": 0.5, "settled_cpu_ms": 0.75, "wall_ms": { "p50": 1.5 }, "per_second": 400.0 });
        let bad = json!({ "n": 0, "error": "it broke" });
        let document = json!({ "machine": {}, "figures": {
            "rows": [{
                "system": "chroma", "size": SHOWN, "acknowledged": 1000, "kept": 990, "load": 2.0,
                "cells": { "add_1": good, "add_8": good, "search_1": bad, "search_8": bad },
            }],
            "forgetting": [{ "system": "chroma", "decrypting": false, "before": 3, "after": 2 }],
            "durability": [{ "system": "chroma", "syncs_per_add": 1.0 }],
        }});
        let text = table(&document);
        let chroma = text.lines().find(|line| line.starts_with("| Chroma")).unwrap();
        assert!(chroma.contains("| 0.75 | 1.50 | 400 ("), "with the background: {chroma}");
        assert!(chroma.ends_with("| no | 1 | 2 times |"), "{chroma}");
        for reason in
            ["Chroma: it broke", "10 acknowledged memories were lost", "not run with 10000"]
        {
            assert!(text.contains(reason), "{reason}: {text}");
        }
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(lines.len(), 2 + SYSTEMS.len(), "every system has its line");
        let columns = |line: &str| line.matches('|').count();
        assert!(lines.iter().all(|line| columns(line) == columns(lines[0])), "{text}");
    }
}
