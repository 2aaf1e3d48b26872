//! The programs in `examples/first`, as whoever reads them would run them.

use std::process::{Command, Output};

use crate::world::{Story, World};

/// The stories, by name.
pub(crate) const ALL: [Story; 3] = [
    ("examples::python", |world| runs(world, "python3", &[], "first.py", "blue")),
    ("examples::typescript", typescript),
    ("examples::curl", |world| runs(world, "sh", &[], "first.sh", "red")),
];

fn typescript(world: &World) -> Vec<String> {
    let said = Command::new("node").arg("--version").output();
    let version = said.map(|said| String::from_utf8(said.stdout).unwrap()).unwrap_or_default();
    let mut numbers = version.trim().trim_start_matches('v').split('.').map(|n| n.parse::<u32>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (22, 6) => {
            runs(world, "node", &["--experimental-strip-types"], "first.ts", "green")
        }
        _ => vec![format!("NOT RUN: Node 22.6 or newer is needed, there is {:?}", version.trim())],
    }
}

fn runs(world: &World, program: &str, arguments: &[&str], file: &str, colour: &str) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/first");
    let mut command = Command::new(program);
    command.args(arguments).arg(format!("{path}/{file}"));
    command.env("YORE_URL", world.url()).env("YORE_TOKEN", &world.owner.token);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (said, wrong) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert!(status.success(), "{file}: {said} {wrong}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("created"), "{said}");
    assert!(said.contains(&format!("in a {colour} jar")), "{said}");
    assert!(said.contains("keys"), "{said}");
    // What is left after the deletion names the jar no more.
    assert!(!lines.last().unwrap().contains(colour), "{said}");
    Vec::new()
}
