//! Progress on standard error, for people who wait.

use std::borrow::Cow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;

/// Shows that work of unknown length goes on.
pub(crate) fn spinner(out: &Output, doing: impl Into<Cow<'static, str>>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, target(out));
    bar.set_style(style("{spinner} {msg} {human_pos} ({elapsed})"));
    bar.set_message(doing);
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Shows how far through a number of bytes the work is.
pub(crate) fn through_bytes(
    out: &Output,
    total: u64,
    doing: impl Into<Cow<'static, str>>,
) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), target(out));
    bar.set_style(style("{msg} {wide_bar} {bytes}/{total_bytes} {eta}"));
    bar.set_message(doing);
    bar
}

/// Shows how far through a number of steps the work is.
pub(crate) fn through(
    out: &Output,
    total: u64,
    doing: impl Into<Cow<'static, str>>,
) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), target(out));
    bar.set_style(style("{msg} {wide_bar} {pos}/{len} {eta}"));
    bar.set_message(doing);
    bar
}

/// Nothing is drawn for programs; indicatif itself draws nothing when nobody looks.
fn target(out: &Output) -> ProgressDrawTarget {
    if out.json || out.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("invariant: the templates above are valid")
}
