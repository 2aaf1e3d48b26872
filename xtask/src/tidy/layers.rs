//! Which crate may use which. Arrows point down only.

use super::Findings;
use crate::workspace::Package;

/// Every crate with the crates it may use, the lowest first.
///
/// A crate may name only crates above its own line, so the table cannot hold a cycle. Policy and
/// store are reached through the engine alone: a protocol, the server or the command line that
/// could call them would be a second way in. Tests may use anything above their crate's line.
const LAYERS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("canon", &[]),
    ("kernels", &[]),
    ("text", &[]),
    ("policy", &["domain", "canon"]),
    ("rank", &["domain"]),
    ("embed", &["kernels"]),
    ("index", &["kernels", "rank"]),
    ("store", &["domain", "canon", "policy", "rank"]),
    ("store-sqlite", &["domain", "canon", "kernels", "policy", "rank", "index", "store"]),
    ("store-postgres", &["domain", "canon", "kernels", "policy", "rank", "index", "store"]),
    // Where tests find a store of either kind; no program links it.
    ("scratch", &["canon", "store", "store-sqlite", "store-postgres"]),
    ("engine", &["domain", "canon", "text", "policy", "rank", "embed", "store"]),
    ("router", &["domain", "canon", "rank", "engine"]),
    ("archive", &["domain", "canon", "engine"]),
    ("client", &["domain", "canon", "engine"]),
    ("http", &["domain", "canon", "engine", "client"]),
    ("ump", PROTOCOL),
    ("memorywire", &["domain", "canon", "engine", "http", "router"]),
    ("oamp", PROTOCOL),
    ("omp", &["domain", "canon", "engine", "archive", "http"]),
    ("mcp", &["domain", "canon", "engine", "client", "http"]),
    ("uamp", PROTOCOL),
    // Pages are a surface like the protocols; the client brings the description of the API.
    ("web", &["domain", "canon", "engine", "archive", "client", "http"]),
    ("server", ASSEMBLY),
    ("cli", ASSEMBLY_AND_SERVER),
    (
        "bench",
        &[
            "domain",
            "canon",
            "kernels",
            "embed",
            "index",
            "store-sqlite",
            "engine",
            "router",
            "archive",
            "http",
            "memorywire",
            "oamp",
            "uamp",
            "web",
        ],
    ),
    ("tests", ASSEMBLY_AND_SERVER),
    ("xtask", &["kernels"]),
];

const PROTOCOL: &[&str] = &["domain", "canon", "engine", "http"];

const ASSEMBLY: &[&str] = &[
    "domain",
    "canon",
    "embed",
    "index",
    "store-sqlite",
    "store-postgres",
    "engine",
    "router",
    "archive",
    "ump",
    "memorywire",
    "oamp",
    "omp",
    "mcp",
    "uamp",
    "web",
    "client",
    "http",
];

const ASSEMBLY_AND_SERVER: &[&str] = &[
    "domain",
    "canon",
    "embed",
    "index",
    "store-sqlite",
    "store-postgres",
    "engine",
    "router",
    "archive",
    "ump",
    "memorywire",
    "oamp",
    "omp",
    "mcp",
    "uamp",
    "web",
    "client",
    "http",
    "server",
];

/// Returns the name of a package in the table.
fn short(package: &str) -> &str {
    match package {
        "yore" => "cli",
        other => other.strip_prefix("yore-").unwrap_or(other),
    }
}

fn place(name: &str) -> Option<usize> {
    LAYERS.iter().position(|(layer, _)| *layer == name)
}

pub(super) fn check(packages: &[Package], findings: &mut Findings) {
    for package in packages {
        let name = short(&package.name);
        let Some(line) = place(name) else {
            findings.fault(format!(
                "{}: crate {name} has no place in the table of layers",
                package.manifest
            ));
            continue;
        };
        let allowed = LAYERS[line].1;
        for dependency in package.dependencies.iter().filter(|dependency| dependency.own) {
            let used = short(&dependency.name);
            let fine = if dependency.dev {
                place(used).is_some_and(|other| other < line)
            } else {
                allowed.contains(&used)
            };
            if !fine {
                let kind = if dependency.dev { "the tests of " } else { "" };
                let list = if allowed.is_empty() { "nothing".into() } else { allowed.join(", ") };
                findings.fault(format!(
                    "{}: {kind}{name} must not use {used}; {name} may use {list}",
                    package.manifest
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn faults(package: &str, used: &str, dev: bool) -> usize {
        let package = Package {
            name: package.to_owned(),
            manifest: "Cargo.toml".to_owned(),
            roots: Vec::new(),
            dependencies: vec![Dependency { name: used.to_owned(), dev, own: true }],
        };
        let mut findings = Findings::default();
        check(&[package], &mut findings);
        findings.faults.len()
    }

    #[test]
    fn the_table_points_down_only() {
        for (line, (name, allowed)) in LAYERS.iter().enumerate() {
            for used in *allowed {
                assert!(place(used).is_some_and(|other| other < line), "{name} → {used}");
            }
            assert_eq!(place(name), Some(line), "{name} is listed twice");
        }
    }

    #[test]
    fn arrows_that_point_up_or_past_the_engine_are_faults() {
        for (package, used) in [
            ("yore-domain", "yore-canon"),
            ("yore-policy", "yore-store"),
            ("yore-store", "yore-engine"),
            ("yore-engine", "yore-store-sqlite"),
            ("yore-ump", "yore-store"),
            ("yore-oamp", "yore-policy"),
            ("yore-mcp", "yore-ump"),
            ("yore-omp", "yore-router"),
            ("yore-web", "yore-policy"),
            ("yore-web", "yore-server"),
            ("yore-server", "yore-policy"),
            ("yore-client", "yore-server"),
            ("yore-unheard-of", "yore-domain"),
        ] {
            assert_eq!(faults(package, used, false), 1, "{package} → {used}");
        }
    }

    #[test]
    fn arrows_that_point_down_are_fine() {
        for (package, used, dev) in [
            ("yore-store", "yore-rank", false),
            ("yore-store-sqlite", "yore-index", false),
            ("yore-engine", "yore-store-sqlite", true),
            ("yore-index", "yore-embed", true),
            ("yore-memorywire", "yore-router", false),
            ("yore-server", "yore-store-sqlite", false),
            ("yore", "yore-server", false),
        ] {
            assert_eq!(faults(package, used, dev), 0, "{package} → {used}");
        }
        assert_eq!(faults("yore-store", "yore-store-sqlite", true), 1, "tests too");
    }
}
