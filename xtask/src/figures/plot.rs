//! Pictures as plain SVG: bars and lines on scales of powers of ten.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const LABELS: f64 = 250.0;
const ROW: f64 = 26.0;
const COLOURS: [&str; 9] = [
    "#0b6e4f", "#2f9e77", "#7fc8a9", "#b5541c", "#8a3fb0", "#1f6fb2", "#5aa0d8", "#a0812b",
    "#777777",
];

/// Horizontal bars; what has no value says so.
pub(super) fn bars(title: &str, unit: &str, rows: &[(String, Option<f64>)]) -> String {
    let (low, high) = powers(rows.iter().filter_map(|(_, value)| *value));
    let height = 74.0 + ROW * rows.len() as f64;
    let mut svg = open(title, height);
    let wide = WIDTH - LABELS - 90.0;
    let place = |value: f64| LABELS + wide * (value.log10() - low) / (high - low);
    grid(&mut svg, low, high, height - 24.0, &place);
    for (number, (label, value)) in rows.iter().enumerate() {
        let y = 44.0 + ROW * number as f64;
        text(&mut svg, LABELS - 8.0, y + 13.0, "end", label);
        match value {
            Some(value) => {
                let (end, colour) = (place(*value), COLOURS[number % COLOURS.len()]);
                let width = (end - LABELS).max(1.0);
                let _ = writeln!(
                    svg,
                    "<rect x=\"{LABELS}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"18\" fill=\"{colour}\"/>"
                ); // a String takes everything
                text(&mut svg, end + 6.0, y + 13.0, "start", &super::page::number(*value));
            }
            None => text(&mut svg, LABELS + 6.0, y + 13.0, "start", "no figure"),
        }
    }
    text(&mut svg, WIDTH - 8.0, height - 6.0, "end", unit);
    svg.push_str("</svg>\n");
    svg
}

/// A line of points: what it is called, and where its points lie.
pub(super) type Line = (String, Vec<(f64, f64)>);

/// Lines over sizes.
pub(super) fn lines(title: &str, unit: &str, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|(_, points)| points.iter().copied());
    let (left, right) = powers(points().map(|(x, _)| x));
    let (low, high) = powers(points().map(|(_, y)| y));
    let (height, bottom) = (420.0, 370.0);
    let mut svg = open(title, height);
    let wide = WIDTH - LABELS - 60.0;
    let across = |value: f64| 60.0 + wide * (value.log10() - left) / (right - left);
    let up = |value: f64| bottom - (bottom - 44.0) * (value.log10() - low) / (high - low);
    grid(&mut svg, left, right, bottom, &across);
    let mut power = low;
    while power <= high {
        let y = up(10f64.powf(power));
        let _ = writeln!(
            svg,
            "<line x1=\"60\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>",
            60.0 + wide
        ); // a String takes everything
        text(&mut svg, 54.0, y + 4.0, "end", &tick(power));
        power += 1.0;
    }
    for (number, (label, points)) in lines.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let each = points.iter().map(|(x, y)| format!("{:.1},{:.1}", across(*x), up(*y)));
        let path = each.collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            svg,
            "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        ); // the same
        for (x, y) in points {
            let (x, y) = (across(*x), up(*y));
            let _ =
                writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
        }
        let y = 56.0 + 22.0 * number as f64;
        let x = WIDTH - LABELS + 30.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>",
            y - 10.0
        ); // the same
        text(&mut svg, x + 18.0, y, "start", label);
    }
    text(&mut svg, 60.0, height - 10.0, "start", unit);
    svg.push_str("</svg>\n");
    svg
}

/// The powers of ten around values.
fn powers(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let known: Vec<f64> = values.filter(|value| *value > 0.0).map(f64::log10).collect();
    let low = known.iter().copied().fold(f64::INFINITY, f64::min);
    let high = known.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !low.is_finite() || !high.is_finite() {
        return (0.0, 1.0);
    }
    let (low, high) = (low.floor(), high.ceil());
    if high > low { (low, high) } else { (low - 1.0, low + 1.0) }
}

fn open(title: &str, height: f64) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"13\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n",
        escaped(title)
    );
    text(&mut svg, 12.0, 24.0, "start", title);
    svg
}

fn grid(svg: &mut String, low: f64, high: f64, bottom: f64, place: &dyn Fn(f64) -> f64) {
    let mut power = low;
    while power <= high {
        let x = place(10f64.powf(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"38\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#dddddd\"/>"
        ); // a String takes everything
        text(svg, x, bottom + 14.0, "middle", &tick(power));
        power += 1.0;
    }
}

/// A power of ten as it is written.
fn tick(power: f64) -> String {
    let value = 10f64.powf(power);
    if value >= 1.0 { format!("{value:.0}") } else { format!("{value}") }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, said: &str) {
    let said = escaped(said);
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#222222\">{said}</text>"
    ); // a String takes everything
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_value_stands_there_all_the_same() {
        let rows = [("a < b".to_owned(), Some(0.5)), ("c".to_owned(), None)];
        let svg = bars("t", "ms", &rows);
        assert!(svg.contains("a &lt; b") && svg.contains("no figure"), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 2, "the ground and one bar: {svg}");
    }

    #[test]
    fn a_longer_line_lies_higher_where_more_is_measured() {
        let line = ("a".to_owned(), vec![(1_000.0, 1.0), (10_000.0, 100.0)]);
        let svg = lines("t", "ms", &[line]);
        let circles: Vec<f64> = svg
            .split("cy=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next()?.parse().ok())
            .collect();
        assert!(circles[1] < circles[0], "{circles:?}");
    }
}
