//! Measures the built-in models: `cargo run --release -p yore-embed --example pace`. CPU time, so
//! that a busy machine does not count.

use std::{hint::black_box, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use yore_embed::builtin;

const SHORT: &str = "The user prefers dark roast coffee in the morning";

fn main() {
    let start = cpu();
    let models = builtin();
    println!("load both models: {:.1} ms", (cpu() - start).as_secs_f64() * 1e3);
    let (statics, transformer) = (&models.statics, &models.transformer);

    let tokens = statics.tokens(SHORT);
    report("split a short text", 20_000, || statics.tokens(SHORT));
    report("static, short text split already", 20_000, || statics.embed(&tokens));
    report("static, short text", 20_000, || statics.embed(&statics.tokens(SHORT)));

    report("transformer, 11 tokens", 300, || transformer.embed(SHORT));
    let long = "memory ".repeat(126);
    report("transformer, 128 tokens", 40, || transformer.embed(&long));
    let text = "memory ".repeat(27);
    let batch = vec![text.as_str(); 32];
    report("transformer, 32 texts of 29 tokens", 15, || transformer.vectors(&batch));
}

fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Prints the best and the median time of one call.
fn report<T>(name: &str, count: usize, call: impl Fn() -> T) {
    let mut times: Vec<f64> = (0..count)
        .map(|_| {
            let start = cpu();
            black_box(call());
            (cpu() - start).as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let (best, median) = (times[0] * 1e6, times[count / 2] * 1e6);
    println!("{name}: best {best:.2} µs, median {median:.2} µs");
}
