//! `cargo xtask deb`: a Debian package around the release binary.
//!
//! Everything in it is either in the repository or written by the binary itself. Times are those
//! of the commit, so the same binary gives the same package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::supply;
use crate::workspace::{cargo, output, root, target_dir};

/// Arguments of `cargo xtask deb`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Pack this binary instead of building the release.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Where the package goes; by default below the target directory.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Completions: the shell and where its scripts lie.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/yore"),
    ("zsh", "usr/share/zsh/vendor-completions/_yore"),
    ("fish", "usr/share/fish/vendor_completions.d/yore.fish"),
];

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let target = target_dir()?;
    let binary = match &arguments.binary {
        Some(binary) => fs::canonicalize(binary)?,
        None => {
            let built = cargo().args(["build", "--release", "--locked", "-p", "yore"]).status()?;
            ensure!(built.success(), "the release was not built");
            target.join("release/yore")
        }
    };
    let folder = arguments.out.clone().unwrap_or_else(|| target.join("debian"));
    let tree = folder.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    fill(&tree, &binary)?;
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let version = version(&binary)?;
    let control = control(&version, architecture.trim(), kilobytes(&tree)?);
    write(&tree.join("DEBIAN/control"), control.as_bytes())?;
    let package = folder.join(format!("yore_{version}_{}.deb", architecture.trim()));
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--root-owner-group", "--build"]).arg(&tree).arg(&package);
    pack.env("SOURCE_DATE_EPOCH", epoch()?);
    output(&mut pack)?;
    println!("{}", package.display());
    Ok(())
}

/// Lays out what the package installs.
fn fill(tree: &Path, binary: &Path) -> Result<()> {
    let place = |path: &str| tree.join(path);
    write(&place("usr/bin/yore"), &fs::read(binary)?)?;
    executable(&place("usr/bin/yore"))?;
    let unit = fs::read_to_string(root().join("deploy/yore.service"))?;
    let unit = unit.replace("/usr/local/bin/yore", "/usr/bin/yore");
    write(&place("usr/lib/systemd/system/yore.service"), unit.as_bytes())?;
    let manual = place("usr/share/man/man1");
    fs::create_dir_all(&manual)?;
    output(Command::new(binary).arg("man").arg(&manual))?;
    for (shell, path) in SHELLS {
        let script = output(Command::new(binary).args(["completions", shell]))?;
        write(&place(path), script.as_bytes())?;
    }
    let document = |name: &str| place("usr/share/doc/yore").join(name);
    write(&document("copyright"), &fs::read(root().join("LICENSE"))?)?;
    write(&document("changelog"), &fs::read(root().join("CHANGELOG.md"))?)?;
    write(&document("README.md"), &fs::read(root().join("README.md"))?)?;
    supply::sbom_at(&document("sbom.cdx.json"))?;
    for page in fs::read_dir(&manual)? {
        pack(&page?.path())?;
    }
    pack(&document("changelog"))
}

fn control(version: &str, architecture: &str, kilobytes: u64) -> String {
    format!(
        "Package: yore\nVersion: {version}\nArchitecture: {architecture}\nSection: net\n\
         Priority: optional\nInstalled-Size: {kilobytes}\nDepends: libc6, libgcc-s1\n\
         Recommends: ca-certificates\nMaintainer: The Yore project <yore@localhost>\n\
         Homepage: https://github.com/yore-memory/yore\n\
         Description: memory server that belongs to the person\n \
         One encrypted vault holds what AI agents remember, and every conversation\n \
         with them. It speaks UMP, memorywire, OAMP, OMP, UAMP and MCP.\n"
    )
}

/// The version that the binary itself names.
fn version(binary: &Path) -> Result<String> {
    let said = output(Command::new(binary).arg("--version"))?;
    let version = said.split_whitespace().nth(1).context("the binary names no version")?;
    Ok(version.to_owned())
}

/// When the last commit was made.
fn epoch() -> Result<String> {
    let mut git = Command::new("git");
    let at = output(git.current_dir(root()).args(["log", "-1", "--format=%ct"]))?;
    Ok(at.trim().to_owned())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::create_dir_all(path.parent().context("a file lies in a directory")?)?;
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Packs a file in place, without its name and time.
fn pack(path: &Path) -> Result<()> {
    output(Command::new("gzip").args(["-9", "-n"]).arg(path)).map(drop)
}

fn executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

fn kilobytes(tree: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(tree)? {
        let path = entry?.path();
        bytes += if path.is_dir() { kilobytes(&path)? * 1024 } else { fs::metadata(path)?.len() };
    }
    Ok(bytes.div_ceil(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_file_has_what_every_package_needs() {
        let control = control("0.1.0", "amd64", 7);
        for field in ["Package: yore\n", "Version: 0.1.0\n", "Architecture: amd64\n"] {
            assert!(control.contains(field), "{control}");
        }
        // The long description is indented, or it would be read as further fields.
        assert_eq!(control.lines().filter(|line| line.starts_with(' ')).count(), 2, "{control}");
    }
}
