//! The workspace as cargo and git see it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Returns the root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// Returns cargo, to be run at the root. `cargo run` says which cargo that is.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // What cargo told this program about itself would make build scripts run again.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name.as_ref());
        }
    }
    // A build that is made once gains nothing from notes for the next, and they fill the disk.
    if std::env::var_os("CI").is_some() && std::env::var_os("CARGO_INCREMENTAL").is_none() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// Runs a command and returns what it prints.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = format!("{command:?}");
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    ensure!(
        output.status.success(),
        "{name} failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns where cargo puts what it builds.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let metadata = metadata()?;
    let path = metadata["target_directory"].as_str().context("cargo names no target directory")?;
    Ok(PathBuf::from(path))
}

/// Lists the files of the project, tracked or about to be, relative to the root.
pub(crate) fn files() -> Result<Vec<String>> {
    let listed = output(Command::new("git").current_dir(root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let mut files: Vec<String> = listed
        .split('\0')
        .filter(|path| !path.is_empty() && root().join(path).is_file())
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// A dependency as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Whether only tests, examples and benches use it.
    pub(crate) dev: bool,
    /// Whether it is a member of the workspace.
    pub(crate) own: bool,
}

/// A member of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The manifest, relative to the root.
    pub(crate) manifest: String,
    /// The root file of its library and of each binary, relative to the root.
    pub(crate) roots: Vec<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// Returns the members of the workspace.
pub(crate) fn packages() -> Result<Vec<Package>> {
    packages_of(&metadata()?)
}

fn metadata() -> Result<Value> {
    let text = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    Ok(serde_json::from_str(&text)?)
}

fn packages_of(metadata: &Value) -> Result<Vec<Package>> {
    let root = metadata["workspace_root"].as_str().context("no workspace_root")?;
    let relative = |path: &Value| -> Result<String> {
        let path = path.as_str().context("a path is missing")?;
        let inside = Path::new(path).strip_prefix(root)?;
        Ok(inside.to_str().context("a path is not UTF-8")?.replace('\\', "/"))
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    list(&metadata["packages"])
        .iter()
        .map(|package| {
            let roots = list(&package["targets"])
                .iter()
                .filter(|target| {
                    list(&target["kind"]).iter().any(|kind| kind == "lib" || kind == "bin")
                })
                .map(|target| relative(&target["src_path"]))
                .collect::<Result<_>>()?;
            let dependencies = list(&package["dependencies"])
                .iter()
                .map(|dependency| Dependency {
                    name: dependency["name"].as_str().unwrap_or_default().to_owned(),
                    dev: dependency["kind"] == "dev",
                    own: dependency["path"].is_string(),
                })
                .collect();
            Ok(Package {
                name: package["name"].as_str().context("a package has no name")?.to_owned(),
                manifest: relative(&package["manifest_path"])?,
                roots,
                dependencies,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read() {
        let metadata = serde_json::json!({
            "workspace_root": "/w",
            "packages": [{
                "name": "yore-a",
                "manifest_path": "/w/crates/a/Cargo.toml",
                "targets": [
                    {"kind": ["lib"], "src_path": "/w/crates/a/src/lib.rs"},
                    {"kind": ["test"], "src_path": "/w/crates/a/tests/t.rs"},
                ],
                "dependencies": [
                    {"name": "serde", "kind": null},
                    {"name": "yore-b", "kind": "dev", "path": "/w/crates/b"},
                ],
            }],
        });
        let packages = packages_of(&metadata).unwrap();
        assert_eq!(packages.len(), 1);
        assert_eq!(packages[0].manifest, "crates/a/Cargo.toml");
        assert_eq!(packages[0].roots, ["crates/a/src/lib.rs"]);
        let found: Vec<_> =
            packages[0].dependencies.iter().map(|d| (d.name.as_str(), d.dev, d.own)).collect();
        assert_eq!(found, [("serde", false, false), ("yore-b", true, true)]);
    }

    #[test]
    fn this_workspace_is_found() {
        let packages = packages().unwrap();
        let own = packages.iter().find(|package| package.name == "xtask").unwrap();
        assert_eq!(own.roots, ["xtask/src/main.rs"]);
        assert!(files().unwrap().contains(&"Cargo.toml".to_owned()));
    }
}
