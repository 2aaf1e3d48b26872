//! Pictures, drawn here as SVG. Attributes only: the policy allows no styles inside a page.

use std::f64::consts::TAU;

use yore_domain::Timestamp;
use yore_domain::memory::{Relation, Version};

use crate::markup::{Markup, day};
use crate::snippet::beginning;

/// Below this a signal says nothing.
const SILENT: f32 = 0.005;

/// What put a result in its place, as bars.
pub(crate) fn signals(signals: &[(String, f32)]) -> Markup {
    let mut loud: Vec<&(String, f32)> = signals.iter().filter(|(_, v)| *v > SILENT).collect();
    loud.sort_by(|a, b| b.1.total_cmp(&a.1));
    let most = loud.first().map_or(1.0, |(_, value)| value.max(1.0));
    let mut html = Markup::default();
    html.raw("<dl class=\"signals\">");
    for (name, value) in loud {
        html.raw("<div><dt>").text(meaning(name)).raw("</dt><dd><svg class=\"bar\" ");
        html.raw("viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
        html.raw("<rect class=\"fill\" height=\"6\" width=\"");
        html.number(value / most * 100.0).raw("\"/></svg><span>");
        html.text(&format!("{value:.2}")).raw("</span></dd></div>");
    }
    html.raw("</dl>");
    html
}

fn meaning(signal: &str) -> &str {
    match signal {
        "similarity" => "meaning",
        "lexical" => "words",
        "soft" => "related words",
        "neighbours" => "what was said around it",
        "session" => "its conversation",
        "recency" => "how new it is",
        "salience" => "how much it matters",
        "scope_match" => "where it belongs",
        "provenance" => "what it rests on",
        "feedback" => "how it fared before",
        "weight" => "its standing",
        other => other,
    }
}

/// When each version was true, from the first day to now.
pub(crate) fn validity(versions: &[Version], now: Timestamp) -> Markup {
    let mut html = Markup::default();
    let Some(from) = versions.iter().map(|version| version.time.valid_from).min() else {
        return html;
    };
    let until = versions.iter().filter_map(|version| version.time.valid_to).fold(now, Ord::max);
    let whole = from.days_until(until).max(1.0 / 24.0);
    let place = |at: Timestamp| from.days_until(at) / whole * 600.0;
    let height = 14.0 * f64::from(u16::try_from(versions.len()).unwrap_or(u16::MAX)) + 22.0;
    html.raw("<svg class=\"validity\" role=\"img\" aria-label=\"when each version was true\" ");
    html.raw("viewBox=\"0 0 600 ").number(height).raw("\">");
    for (row, version) in versions.iter().enumerate() {
        let (start, end) = (version.time.valid_from, version.time.valid_to.unwrap_or(until));
        let class = if row + 1 == versions.len() { "fill" } else { "past" };
        let y = 14.0 * f64::from(u16::try_from(row).unwrap_or(u16::MAX));
        html.raw("<rect class=\"").raw(class).raw("\" height=\"8\" rx=\"4\" x=\"");
        html.number(place(start)).raw("\" y=\"").number(y + 2.0).raw("\" width=\"");
        html.number((place(end) - place(start)).max(6.0)).raw("\"><title>");
        html.text(&format!("version {}: from {}", version.number, day(start)));
        html.raw("</title></rect>");
    }
    html.raw("<text x=\"0\" y=\"").number(height - 4.0).raw("\">").text(&day(from));
    html.raw("</text><text x=\"600\" text-anchor=\"end\" y=\"").number(height - 4.0).raw("\">");
    html.text(if until > now { "later" } else { "now" }).raw("</text></svg>");
    html
}

/// What a memory is linked to, around it.
pub(crate) fn relations(relations: &[Relation]) -> Markup {
    let shown = &relations[..relations.len().min(12)];
    let mut html = Markup::default();
    html.raw("<svg class=\"relations\" role=\"img\" aria-label=\"what it is linked to\" ");
    html.raw("viewBox=\"0 0 600 300\">");
    let step = TAU / f64::from(u16::try_from(shown.len().max(1)).unwrap_or(1));
    for (place, relation) in shown.iter().enumerate() {
        let angle = step * f64::from(u16::try_from(place).unwrap_or(0)) - TAU / 4.0;
        let (x, y) = (300.0 + 190.0 * angle.cos(), 150.0 + 115.0 * angle.sin());
        html.raw("<line x1=\"300\" y1=\"150\" x2=\"").number(x).raw("\" y2=\"").number(y);
        html.raw("\"/><circle class=\"node\" r=\"6\" cx=\"").number(x).raw("\" cy=\"").number(y);
        html.raw("\"/><text text-anchor=\"middle\" x=\"").number(x).raw("\" y=\"");
        html.number(y - 12.0).raw("\">").text(&beginning(&relation.target, 28));
        html.raw("</text><text class=\"kind\" text-anchor=\"middle\" x=\"");
        html.number(f64::midpoint(x, 300.0)).raw("\" y=\"").number(f64::midpoint(y, 150.0));
        html.raw("\">").text(&beginning(&relation.kind, 24)).raw("</text>");
    }
    html.raw("<circle class=\"self\" r=\"9\" cx=\"300\" cy=\"150\"/></svg>");
    html
}

/// Numbers after each other, as a line under which nothing is hidden: the highest touches the top.
pub(crate) fn line(values: &[f64]) -> Markup {
    let most = values.iter().copied().fold(1.0, f64::max);
    let step = 300.0 / f64::from(u16::try_from(values.len().max(2) - 1).unwrap_or(u16::MAX));
    let mut html = Markup::default();
    html.raw("<svg class=\"line\" viewBox=\"0 0 300 40\" preserveAspectRatio=\"none\" ");
    html.raw("aria-hidden=\"true\"><polyline points=\"");
    for (place, value) in values.iter().enumerate() {
        let x = step * f64::from(u16::try_from(place).unwrap_or(u16::MAX));
        html.number(x).raw(",").number(38.0 - value / most * 36.0).raw(" ");
    }
    html.raw("\"/></svg>");
    html
}

/// Numbers beside each other, each with its name and how it stands to the largest.
pub(crate) fn bars(rows: &[(String, u64)]) -> Markup {
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    let mut html = Markup::default();
    html.raw("<dl class=\"signals\">");
    for (name, count) in rows {
        let share = u32::try_from(count.saturating_mul(1000) / most).unwrap_or(1000);
        html.raw("<div><dt>").text(name).raw("</dt><dd><svg class=\"bar\" ");
        html.raw("viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
        html.raw("<rect class=\"fill\" height=\"6\" width=\"");
        html.number(f64::from(share) / 10.0).raw("\"/></svg><span>");
        html.text(&count.to_string()).raw("</span></dd></div>");
    }
    html.raw("</dl>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        let evil = "</text><script>alert(1)</script>";
        let relation = Relation { kind: evil.into(), target: "\" onload=\"x".into() };
        for drawn in
            [relations(&[relation]), bars(&[(evil.into(), 3)]), signals(&[(evil.into(), 0.5)])]
        {
            let drawn = drawn.as_str();
            assert!(!drawn.contains("<script") && !drawn.contains("\" onload"), "{drawn}");
        }
    }

    #[test]
    fn silent_signals_are_left_out() {
        let drawn = signals(&[("lexical".into(), 0.5), ("soft".into(), 0.0)]);
        assert!(drawn.as_str().contains("words") && !drawn.as_str().contains("related"));
    }
}
