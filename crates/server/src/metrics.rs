//! What is counted: requests by operation and status, their time, connections. Never content.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::backup::Deliveries;

/// From a tenth of a millisecond to ten seconds.
const BUCKETS: [f64; 12] =
    [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Done {
    operation: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: String,
}

/// The counters of one server.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Done, Counter>,
    seconds: Family<Operation, Histogram, fn() -> Histogram>,
    connections: Gauge,
    failing: Family<Destination, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Destination {
    to: String,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(…)")
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("yore");
        let requests = Family::default();
        let seconds: Family<_, _, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        let connections = Gauge::default();
        registry.register("requests", "Requests answered", requests.clone());
        registry.register("request_seconds", "Time until the answer began", seconds.clone());
        registry.register("connections", "Connections open", connections.clone());
        let failing = Family::default();
        let told = "How often copies failed to reach a destination, in a row";
        registry.register("copies_failing", told, failing.clone());
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What is running", build);
        Self { registry, requests, seconds, connections, failing }
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, operation: &str, status: u16, took: Duration) {
        let operation = operation.to_owned();
        self.seconds
            .get_or_create(&Operation { operation: operation.clone() })
            .observe(took.as_secs_f64());
        self.requests.get_or_create(&Done { operation, status }).inc();
    }

    /// Prints everything in the text format.
    pub(crate) fn print(&self, connections: usize, copies: Deliveries) -> String {
        for (to, delivery) in copies {
            let times = delivery.failed.map_or(0, |failed| i64::from(failed.times));
            self.failing.get_or_create(&Destination { to }).set(times);
        }
        self.connections.set(i64::try_from(connections).unwrap_or(i64::MAX));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("invariant: writing to a string cannot fail");
        text
    }
}
