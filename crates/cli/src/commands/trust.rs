//! `yore trust`: lets browsers and programs of this machine trust the server's own authority.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::{BAD, DIM, GOOD, Table, WARN, cell, styled};

/// Options of `yore trust`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore trust --dry-run
  sudo yore trust
  yore trust --remove

The server signs its certificate with an authority of its own, made at the first start: tls/ca.pem
in the data directory. Its key never leaves that directory, readable by you alone. Whoever trusts
the authority reaches https://localhost:7443 without a warning. It may sign only for local
names, for addresses, and for the hosts that listen.hosts named when it was made: whoever got hold
of its key could pretend to be one of those, but no site of the internet that has a name. Remove
it when you no longer use it.

It is entered into the store of the system (which needs root), and into the databases of Firefox and
Chromium with certutil (package libnss3-tools or nss-tools). A store that cannot be changed is named
with the command that does it.")]
pub(crate) struct Args {
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Take the authority out again
    #[arg(long)]
    remove: bool,
}

/// What becomes of one store.
#[derive(Debug, Serialize)]
struct Outcome {
    store: String,
    state: State,
    /// The commands that do it.
    commands: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Planned,
    Done,
    Failed,
}

/// A store and the commands that change it, in order.
#[derive(Debug, PartialEq, Eq)]
struct Store {
    name: String,
    commands: Vec<Vec<String>>,
    /// What takes out authorities that were replaced; they may not be there.
    before: Vec<Vec<String>>,
}

pub(crate) fn run(app: &App, args: &Args) -> Result {
    let config = app.config()?;
    if config.tls.certificate.is_some() {
        app.out
            .remark("the server shows a certificate of your own: there is nothing to trust here");
        return Ok(());
    }
    let authority = yore_server::authority(&config)?;
    let print = yore_server::fingerprint(&authority)?;
    let nickname = called(&print);
    let before: Vec<String> = match args.remove {
        true => yore_server::replaced_authorities(&config).iter().map(|it| called(it)).collect(),
        false => Vec::new(),
    };
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut stores = stores(Path::new("/"), home.as_deref(), &authority, &nickname, args.remove);
    for store in &mut stores {
        store.replaced(&nickname, &before);
    }
    app.out.remark(format!("authority {}", authority.display()));
    app.out.remark(format!("SHA-256   {print}"));
    let outcomes: Vec<Outcome> =
        stores.into_iter().map(|store| store.change(args.dry_run)).collect();
    let failed = outcomes.iter().any(|outcome| outcome.state == State::Failed);
    app.out.either(&outcomes, |outcomes| {
        let mut table = Table::new(&["STORE", "", ""]);
        for outcome in outcomes {
            let (word, style) = match (outcome.state, args.remove) {
                (State::Planned, _) => ("would run", WARN),
                (State::Done, false) => ("trusts it", GOOD),
                (State::Done, true) => ("removed", GOOD),
                (State::Failed, _) => ("not changed", BAD),
            };
            let more = match (&outcome.reason, outcome.state) {
                (Some(reason), _) => format!("{reason}; to do: {}", outcome.commands.join(" && ")),
                (None, State::Planned) => outcome.commands.join(" && "),
                (None, _) => String::new(),
            };
            table.push([cell(outcome.store.clone()), styled(word, style), styled(more, DIM)]);
        }
        if outcomes.is_empty() {
            app.out.remark("no store is known here; give programs the file itself");
        }
        app.out.table(&table)
    })?;
    if failed {
        return Err(Failure::new(Exit::Failed, "not every store was changed")
            .hint("run it as root, or the commands above; curl --cacert takes the file as it is"));
    }
    Ok(())
}

/// What an authority is called where it is trusted.
fn called(print: &str) -> String {
    format!("Yore local authority {}", &print[..8])
}

/// The file of an authority in the store of a system.
fn file_of(nickname: &str) -> String {
    format!("{}.crt", nickname.to_lowercase().replace(' ', "-"))
}

impl Store {
    /// Has authorities that were replaced taken out as the last one is: by the same command, with
    /// the one's name instead of the other's.
    fn replaced(&mut self, nickname: &str, before: &[String]) {
        let Some(last) = self.commands.first().cloned() else { return };
        for name in before {
            let renamed = last.iter().map(|part| match part == nickname {
                true => name.clone(),
                false => part.replace(&file_of(nickname), &file_of(name)),
            });
            let renamed: Vec<String> = renamed.collect();
            if renamed != last {
                self.before.push(renamed);
            }
        }
    }

    /// Runs the commands, up to the first that fails.
    fn change(self, dry: bool) -> Outcome {
        let all = self.before.iter().chain(&self.commands);
        let commands: Vec<String> = all.map(|line| quoted(line)).collect();
        for line in self.before.iter().filter(|_| !dry) {
            // Most stores never knew it.
            drop(Command::new(&line[0]).args(&line[1..]).output());
        }
        let reason = if dry {
            None
        } else {
            self.commands.iter().find_map(|line| {
                let done = Command::new(&line[0]).args(&line[1..]).output();
                match done {
                    Ok(output) if output.status.success() => None,
                    Ok(output) => {
                        let said = String::from_utf8_lossy(&output.stderr);
                        let said = said.lines().next().unwrap_or("it failed");
                        Some(format!("{}: {said}", line[0]))
                    }
                    Err(_) => Some(format!("{} is not installed", line[0])),
                }
            })
        };
        let state = match (dry, &reason) {
            (true, _) => State::Planned,
            (false, None) => State::Done,
            (false, Some(_)) => State::Failed,
        };
        Outcome { store: self.name, state, commands, reason }
    }
}

/// A command as it is typed.
fn quoted(line: &[String]) -> String {
    let plain = |part: &String| match part.contains([' ', '\'', '"', '$']) {
        true => format!("'{}'", part.replace('\'', "'\\''")),
        false => part.clone(),
    };
    line.iter().map(plain).collect::<Vec<_>>().join(" ")
}

fn line(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

/// The stores of this machine.
fn stores(
    root: &Path,
    home: Option<&Path>,
    authority: &Path,
    nickname: &str,
    remove: bool,
) -> Vec<Store> {
    let file = authority.display().to_string();
    let mut stores = Vec::new();
    if cfg!(target_os = "macos") {
        let command = match remove {
            true => line(&["security", "remove-trusted-cert", &file]),
            false => line(&["security", "add-trusted-cert", "-r", "trustRoot", &file]),
        };
        stores.push(Store {
            name: "login keychain".into(),
            commands: vec![command],
            before: Vec::new(),
        });
    } else if cfg!(windows) {
        let command = match remove {
            true => line(&["certutil", "-user", "-delstore", "Root", "Yore local authority"]),
            false => line(&["certutil", "-user", "-addstore", "Root", &file]),
        };
        stores.push(Store {
            name: "certificates of the user".into(),
            commands: vec![command],
            before: Vec::new(),
        });
        return stores;
    } else {
        stores.extend(system(root, &file, nickname, remove));
    }
    for place in home.map(databases).unwrap_or_default() {
        let database = format!("sql:{}", place.display());
        let command = match remove {
            true => line(&["certutil", "-D", "-d", &database, "-n", nickname]),
            false => {
                line(&["certutil", "-A", "-d", &database, "-n", nickname, "-t", "C,,", "-i", &file])
            }
        };
        stores.push(Store {
            name: place.display().to_string(),
            commands: vec![command],
            before: Vec::new(),
        });
    }
    stores
}

/// Where the distributions keep what they trust, and what reads it again.
const SYSTEMS: [(&str, &[&str]); 3] = [
    ("usr/local/share/ca-certificates", &["update-ca-certificates"]),
    ("etc/pki/ca-trust/source/anchors", &["update-ca-trust", "extract"]),
    ("etc/ca-certificates/trust-source/anchors", &["trust", "extract-compat"]),
];

fn system(root: &Path, file: &str, nickname: &str, remove: bool) -> Option<Store> {
    let (place, again) = SYSTEMS.into_iter().find(|(place, _)| root.join(place).is_dir())?;
    let target = root.join(place).join(file_of(nickname)).display().to_string();
    let first = match remove {
        true => line(&["rm", "-f", &target]),
        false => line(&["install", "-m", "644", file, &target]),
    };
    let mut again = line(again);
    if remove && again == ["update-ca-certificates"] {
        again.push("--fresh".into());
    }
    Some(Store { name: "system".into(), commands: vec![first, again], before: Vec::new() })
}

/// The databases of Firefox and Chromium below a home.
fn databases(home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut look = |place: PathBuf| {
        if place.join("cert9.db").is_file() {
            found.push(place);
        }
    };
    look(home.join(".pki/nssdb"));
    look(home.join("snap/chromium/current/.pki/nssdb"));
    let profiles = [
        ".mozilla/firefox",
        "snap/firefox/common/.mozilla/firefox",
        ".var/app/org.mozilla.firefox/.mozilla/firefox",
        "Library/Application Support/Firefox/Profiles",
    ];
    for folder in profiles {
        let Ok(entries) = std::fs::read_dir(home.join(folder)) else { continue };
        let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        entries.into_iter().for_each(&mut look);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn every_store_is_found_and_the_commands_are_those_that_people_know() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("me");
        for folder in
            ["usr/local/share/ca-certificates", "me/.pki/nssdb", "me/.mozilla/firefox/a.default"]
        {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        std::fs::create_dir_all(home.join(".mozilla/firefox/Crash Reports")).unwrap();
        for database in [".pki/nssdb/cert9.db", ".mozilla/firefox/a.default/cert9.db"] {
            std::fs::write(home.join(database), "").unwrap();
        }
        let told = |remove| -> Vec<String> {
            let authority = Path::new("/d/tls/ca.pem");
            let stores = stores(root.path(), Some(&home), authority, "Yore local 12", remove);
            let mut stores = stores;
            for store in &mut stores {
                let before = if remove { vec!["Yore local 07".to_owned()] } else { Vec::new() };
                store.replaced("Yore local 12", &before);
            }
            let lines = stores.iter().flat_map(|store| store.before.iter().chain(&store.commands));
            let place = root.path().display().to_string();
            lines.map(|line| quoted(line).replace(&place, "")).collect()
        };
        let add = |database: &str| {
            format!("certutil -A -d sql:{database} -n 'Yore local 12' -t C,, -i /d/tls/ca.pem")
        };
        assert_eq!(
            told(false),
            [
                "install -m 644 /d/tls/ca.pem /usr/local/share/ca-certificates/yore-local-12.crt",
                "update-ca-certificates",
                &add("/me/.pki/nssdb"),
                &add("/me/.mozilla/firefox/a.default"),
            ]
        );
        assert_eq!(
            told(true),
            [
                "rm -f /usr/local/share/ca-certificates/yore-local-07.crt",
                "rm -f /usr/local/share/ca-certificates/yore-local-12.crt",
                "update-ca-certificates --fresh",
                "certutil -D -d sql:/me/.pki/nssdb -n 'Yore local 07'",
                "certutil -D -d sql:/me/.pki/nssdb -n 'Yore local 12'",
                "certutil -D -d sql:/me/.mozilla/firefox/a.default -n 'Yore local 07'",
                "certutil -D -d sql:/me/.mozilla/firefox/a.default -n 'Yore local 12'",
            ]
        );
    }
}
