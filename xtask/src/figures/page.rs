//! The report of one measuring program: where it ran, its bars, and every figure.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::plot;

/// Returns the report.
pub(super) fn page(name: &str, document: &Value) -> String {
    let mut text = format!("# {}\n\n{}", title(name), origin(name, document));
    text.push_str(&bars(document));
    let figures = document["figures"].as_object().cloned().unwrap_or_default();
    for (name, figure) in &figures {
        write_figure(&mut text, name, figure);
    }
    text
}

/// The share of each bar that was used up, where bars were measured.
pub(super) fn picture(document: &Value) -> Option<String> {
    let bars = document["bars"].as_array()?;
    let shares: Vec<(String, Option<f64>)> = bars
        .iter()
        .filter_map(|bar| {
            let (limit, found) = (bar["bar"].as_f64()?, bar["measured"].as_f64()?);
            let share = if bar["rule"] == "at most" { found / limit } else { limit / found };
            Some((bar["what"].as_str()?.to_owned(), share.is_finite().then_some(share)))
        })
        .collect();
    if shares.is_empty() {
        return None;
    }
    Some(plot::bars("Measured against its bar: up to 1 it holds", "of the bar", &shares))
}

/// Where the figures come from.
pub(super) fn origin(name: &str, document: &Value) -> String {
    let machine = &document["machine"];
    let told = |key: &str| match &machine[key] {
        Value::String(text) => text.clone(),
        Value::Null => "unknown".to_owned(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other.to_string()
        }
    };
    let commit = document["commit"].as_str().unwrap_or("unknown");
    let commit = match commit.split_once('-') {
        Some((hash, _)) => format!("{} with changes", short(hash)),
        None => short(commit).to_owned(),
    };
    let build = match document["figures"]["run"]["build"].as_str() {
        Some(build) => format!(", built as {build}"),
        None => String::new(),
    };
    format!(
        "Written from [{name}.json]({name}.json). {}, {} cores, {}, Linux {}; {}; commit {commit}{build}; load \
         when it was written {}.\n\n",
        told("cpu"),
        told("cores"),
        told("memory"),
        told("kernel"),
        told("rustc"),
        told("load"),
    )
}

/// Bars and verdicts.
pub(super) fn bars(document: &Value) -> String {
    let bars = document["bars"].as_array().cloned().unwrap_or_default();
    if bars.is_empty() {
        return String::new();
    }
    let mut text = "| bar | limit | measured | verdict |\n|---|---|---|---|\n".to_owned();
    for bar in &bars {
        let sign = if bar["rule"] == "at most" { "≤" } else { "≥" };
        let found = bar["measured"].as_f64().map_or("–".to_owned(), number);
        let limit = bar["bar"].as_f64().map_or("–".to_owned(), number);
        let (what, unit) = (word(&bar["what"]), word(&bar["unit"]));
        let verdict = word(&bar["verdict"]);
        let line = format!("| {what} [{unit}] | {sign} {limit} | {found} | {verdict} |\n");
        text.push_str(&line);
    }
    text.push('\n');
    text
}

fn write_figure(text: &mut String, name: &str, figure: &Value) {
    let heading = format!("## {}\n\n", title(name));
    match figure {
        Value::Object(members) => {
            text.push_str(&heading);
            text.push_str("| | |\n|---|---|\n");
            for (key, value) in members {
                let line = format!("| {} | {} |\n", spaced(key), shown(value));
                text.push_str(&line);
            }
            text.push('\n');
        }
        Value::Array(rows) if rows.iter().all(Value::is_object) && !rows.is_empty() => {
            text.push_str(&heading);
            text.push_str(&table(rows));
        }
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => {
            let _ = write!(text, "{heading}{}\n\n", shown(other)); // a String takes everything
        }
    }
}

/// Objects with the same members as a table.
fn table(rows: &[Value]) -> String {
    let empty = Map::new();
    let first = rows[0].as_object().unwrap_or(&empty);
    let keys: Vec<&String> = first.keys().collect();
    let head: Vec<String> = keys.iter().map(|key| spaced(key)).collect();
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(keys.len()));
    for row in rows {
        let cells: Vec<String> = keys.iter().map(|key| shown(&row[key.as_str()])).collect();
        let line = format!("| {} |\n", cells.join(" | "));
        text.push_str(&line);
    }
    text.push('\n');
    text
}

/// A value in a cell.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::Number(found) if found.is_f64() => found.as_f64().map_or("–".to_owned(), number),
        Value::String(text) => text.replace('|', "\\|"),
        Value::Object(members) => {
            let each =
                members.iter().map(|(key, value)| format!("{} {}", spaced(key), shown(value)));
            each.collect::<Vec<_>>().join(", ")
        }
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join("; "),
        other @ (Value::Bool(_) | Value::Number(_)) => other.to_string(),
    }
}

/// A number with as many digits as tell something.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || (size.fract() == 0.0 && size >= 1.0) => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn short(hash: &str) -> &str {
    hash.get(..10).unwrap_or(hash)
}

fn spaced(key: &str) -> String {
    key.replace('_', " ")
}

fn title(name: &str) -> String {
    let spaced = name.replace(['-', '_'], " ");
    let mut letters = spaced.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_uppercase().to_string() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_where_what_and_whether() {
        let document = serde_json::json!({
            "commit": "0123456789abcdef-dirty",
            "machine": { "cpu": "A", "cores": 2, "load": "1 2 3" },
            "bars": [
                { "what": "recall", "unit": "ms", "rule": "at most", "bar": 1.0, "measured": 0.5, "verdict": "holds" },
                { "what": "million", "unit": "ms", "rule": "at most", "bar": 10.0, "measured": null, "verdict": "not measured" },
            ],
            "figures": { "one_thing": { "cpu_ms": 0.25 }, "many": [{ "a": 1, "b": "x|y" }] },
        });
        let text = page("recall-quality", &document);
        assert!(text.starts_with("# Recall quality\n"));
        for said in [
            "commit 0123456789 with changes",
            "| recall [ms] | ≤ 1 | 0.50 | holds |",
            "| million [ms] | ≤ 10 | – | not measured |",
            "| cpu ms | 0.25 |",
            "| 1 | x\\|y |",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(picture(&document).unwrap().contains("recall"));
    }

    #[test]
    fn numbers_have_the_digits_that_tell_something() {
        for (value, told) in [
            (0.0, "0.00"),
            (0.0123, "0.01"),
            (0.00456, "0.0046"),
            (3.456, "3.46"),
            (34.56, "34.6"),
            (345.6, "346"),
        ] {
            assert_eq!(number(value), told);
        }
    }
}
