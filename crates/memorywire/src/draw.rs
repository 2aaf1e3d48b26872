//! A state machine as a picture: boxes for states, in columns by their distance from the first,
//! arrows for transitions, the state it stands in filled.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use yore_domain::procedure::{Machine, Transition};

/// Height of a box.
const TALL: usize = 40;
/// Space between boxes of a column, and around everything.
const GAP: usize = 56;
/// Space between columns, where the words of the arrows stand.
const LANE: usize = 150;
/// Width of a letter of a state's name.
const LETTER: usize = 9;
/// What stands for all states at once.
const ANY: &str = "*";

/// A box in the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    x: usize,
    y: usize,
    wide: usize,
    column: usize,
}

/// Draws a machine as an SVG document. Whatever its names hold, nothing of them is markup.
#[must_use]
pub fn svg(machine: &Machine) -> String {
    let places = places(machine);
    let width = places.values().map(|place| place.x + place.wide).max().unwrap_or(0) + GAP;
    let height = places.values().map(|place| place.y + TALL).max().unwrap_or(0) + 2 * GAP;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"14\" role=\"img\"><title>{}, in the state {}</title>\
         <style>.s{{fill:#fff;stroke:#374151;stroke-width:1.5}}.at{{fill:#fde68a}}\
         .e{{fill:none;stroke:#6b7280;stroke-width:1.5}}.w{{fill:#374151;font-size:12px}}</style>\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
         markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"#6b7280\"/></marker>\
         </defs>",
        plain(&machine.name),
        plain(machine.state()),
    );
    for ((from, to), words) in ways(machine) {
        if let (Some(source), Some(dest)) = (places.get(from), places.get(to)) {
            arrow(&mut out, *source, *dest, &words);
        }
    }
    for (name, place) in &places {
        state(&mut out, name, *place, *name == machine.state());
    }
    out.push_str("</svg>\n");
    out
}

/// What a transition says: its trigger and what it depends on.
#[must_use]
pub fn words(transition: &Transition) -> String {
    let needs = transition.conditions.as_slice().iter().cloned();
    let not = transition.unless.as_slice().iter().map(|name| format!("not {name}"));
    let guards: Vec<String> = needs.chain(not).collect();
    if guards.is_empty() {
        transition.trigger.clone()
    } else {
        format!("{} [{}]", transition.trigger, guards.join(", "))
    }
}

/// Arrows from one state to another, with all their words.
fn ways(machine: &Machine) -> BTreeMap<(&str, &str), String> {
    let mut ways: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for transition in &machine.transitions {
        let said = ways.entry((&transition.source, &transition.dest)).or_default();
        if !said.is_empty() {
            said.push_str(", ");
        }
        said.push_str(&words(transition));
    }
    ways
}

fn places(machine: &Machine) -> BTreeMap<&str, Place> {
    let columns = columns(machine);
    let last = columns.values().copied().max().unwrap_or(0);
    let mut places = BTreeMap::new();
    let mut x = GAP;
    for column in 0..=last {
        let of_column = |name: &&str| columns.get(*name) == Some(&column);
        let names = machine.states.iter().map(String::as_str);
        let any = machine.transitions.iter().any(|one| one.source == ANY).then_some(ANY);
        let names: Vec<&str> = names.chain(any).filter(of_column).collect();
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let wide = (longest * LETTER + 28).max(TALL);
        for (row, name) in names.iter().enumerate() {
            places.insert(*name, Place { x, y: GAP + row * (TALL + GAP), wide, column });
        }
        x += wide + LANE;
    }
    places
}

/// How far each state is from the first; what is never reached comes last.
fn columns(machine: &Machine) -> BTreeMap<&str, usize> {
    let mut columns = BTreeMap::from([(machine.initial.as_str(), 0), (ANY, 0)]);
    let mut next = VecDeque::from([machine.initial.as_str()]);
    while let Some(state) = next.pop_front() {
        let column = columns.get(state).copied().unwrap_or(0) + 1;
        for transition in &machine.transitions {
            let dest = transition.dest.as_str();
            if transition.source == state && !columns.contains_key(dest) {
                columns.insert(dest, column);
                next.push_back(dest);
            }
        }
    }
    let last = columns.values().copied().max().unwrap_or(0);
    for state in &machine.states {
        columns.entry(state).or_insert(last + 1);
    }
    columns
}

fn state(out: &mut String, name: &str, place: Place, stands: bool) {
    let Place { x, y, wide, .. } = place;
    let (class, round) = (if stands { "s at" } else { "s" }, if name == ANY { 20 } else { 8 });
    let shown = if name == ANY { "any" } else { name };
    let (middle, line) = (x + wide / 2, y + TALL / 2 + 5);
    let drawn = write!(
        out,
        "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{TALL}\" \
         rx=\"{round}\"/><text x=\"{middle}\" y=\"{line}\" text-anchor=\"middle\">{}</text>",
        plain(shown),
    );
    debug_assert!(drawn.is_ok(), "a string takes whatever is written");
}

fn arrow(out: &mut String, source: Place, dest: Place, words: &str) {
    let middle = |place: Place| (place.x + place.wide / 2, place.y + TALL / 2);
    let ((from_x, from_y), (to_x, to_y)) = (middle(source), middle(dest));
    let (path, at_x, at_y) = if source == dest {
        let (left, right, top) = (from_x - 12, from_x + 12, source.y);
        let above = top - 34;
        (format!("M{left} {top} C{left} {above} {right} {above} {right} {top}"), from_x, top - 30)
    } else if dest.column > source.column {
        let (start, end) = (source.x + source.wide, dest.x);
        let half = usize::midpoint(start, end);
        let line = format!("M{start} {from_y} C{half} {from_y} {half} {to_y} {end} {to_y}");
        (line, half, usize::midpoint(from_y, to_y) - 6)
    } else {
        let (start, end) = (source.y + TALL, dest.y + TALL);
        let below = start.max(end) + GAP - 10;
        let line = format!("M{from_x} {start} C{from_x} {below} {to_x} {below} {to_x} {end}");
        (line, usize::midpoint(from_x, to_x), below - 2)
    };
    let drawn = write!(
        out,
        "<path class=\"e\" d=\"{path}\" marker-end=\"url(#tip)\"/>\
         <text class=\"w\" x=\"{at_x}\" y=\"{at_y}\" text-anchor=\"middle\">{}</text>",
        plain(words),
    );
    debug_assert!(drawn.is_ok(), "a string takes whatever is written");
}

/// Text without markup or control characters.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}');
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine::parse(
            r#"{"name":"<door>","initial":"shut","states":["shut","open","a & b"],"transitions":[
                {"trigger":"open","source":"shut","dest":"open","conditions":"unlocked","unless":["jammed"]},
                {"trigger":"close","source":"open","dest":"shut"},
                {"trigger":"knock","source":"shut","dest":"shut"},
                {"trigger":"reset","source":"*","dest":"shut"}]}"#,
        )
        .unwrap()
    }

    #[test]
    fn every_state_and_way_is_drawn_and_no_name_is_markup() {
        let drawn = svg(&machine());
        for shown in ["shut", "open", "a &amp; b", "any", "open [unlocked, not jammed]", "knock"] {
            assert!(drawn.contains(&format!(">{shown}<")), "{shown} in {drawn}");
        }
        assert!(drawn.contains("&lt;door&gt;, in the state shut"));
        assert_eq!(drawn.matches("<rect class=\"s at\"").count(), 1);
        assert_eq!(drawn.matches("<path class=\"e\"").count(), 4);
        assert!(!drawn.contains("<door>"));
    }

    #[test]
    fn boxes_do_not_lie_over_each_other() {
        let machine = machine();
        let places: Vec<Place> = places(&machine).into_values().collect();
        for (at, one) in places.iter().enumerate() {
            for other in &places[at + 1..] {
                let apart = one.x + one.wide <= other.x || other.x + other.wide <= one.x;
                assert!(apart || one.y.abs_diff(other.y) >= TALL, "{one:?} {other:?}");
            }
        }
    }
}
