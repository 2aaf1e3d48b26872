//! `yore connect`: tells an agent host how to start `yore mcp`, or writes it into its settings.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{BAD, DIM, GOOD, HEAD};

/// Options of `yore connect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore connect claude-code
  yore connect cursor --dry-run
  yore connect codex --write

Without --write the snippet is printed and nothing is changed. With it the host's settings get one
more server called yore; everything else in the file stays as it is. The host then starts yore mcp
by itself and acts as the owner of the vault. To give it less, set YORE_TOKEN in the host's
settings to a token of yore token issue.")]
pub(crate) struct Args {
    /// Which host
    #[arg(value_name = "HOST")]
    host: Host,
    /// Write it into the host's settings
    #[arg(long, conflicts_with = "dry_run")]
    write: bool,
    /// Show what --write would change
    #[arg(long)]
    dry_run: bool,
    /// The settings file [default: the host's own]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// An agent host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Host {
    ClaudeCode,
    Cursor,
    Codex,
    Vscode,
    ClaudeDesktop,
    GeminiCli,
    Windsurf,
}

impl Host {
    /// Where its settings lie under the home directory.
    const fn settings(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".claude.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Codex => ".codex/config.toml",
            Self::Vscode if cfg!(target_os = "macos") => {
                "Library/Application Support/Code/User/mcp.json"
            }
            Self::Vscode => ".config/Code/User/mcp.json",
            Self::ClaudeDesktop if cfg!(target_os = "macos") => {
                "Library/Application Support/Claude/claude_desktop_config.json"
            }
            Self::ClaudeDesktop => ".config/Claude/claude_desktop_config.json",
            Self::GeminiCli => ".gemini/settings.json",
            Self::Windsurf => ".codeium/windsurf/mcp_config.json",
        }
    }

    /// The member that holds the servers.
    const fn member(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::Codex => "mcp_servers",
            Self::ClaudeCode
            | Self::Cursor
            | Self::ClaudeDesktop
            | Self::GeminiCli
            | Self::Windsurf => "mcpServers",
        }
    }

    /// Whether it refuses tools with a dot in their name.
    const fn refuses_dots(self) -> bool {
        match self {
            Self::ClaudeDesktop | Self::Vscode | Self::GeminiCli | Self::Windsurf => true,
            Self::ClaudeCode | Self::Cursor | Self::Codex => false,
        }
    }
}

pub(crate) fn run(app: &App, args: Args) -> Result {
    let Args { host, write, dry_run, file } = args;
    let entry = Entry::of(app, host)?;
    let path = match file {
        Some(path) => path,
        None => home()?.join(host.settings()),
    };
    if !write && !dry_run {
        app.out.line(format!("{DIM}{}{DIM:#}", path.display()))?;
        return app.out.line(entry.snippet(host).trim_end());
    }
    let before = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::file(path.display())(error)),
    };
    let after = entry.added(host, &before).map_err(|reason| {
        Failure::usage(format!("{}: {reason}", path.display()))
            .hint("put the file right, or paste what yore connect prints without --write")
    })?;
    if dry_run {
        return show(app, &path, &before, &after);
    }
    if before == after {
        return app.out.line(format!("{} knows yore already", path.display()));
    }
    replace(&path, &after).map_err(Failure::file(path.display()))?;
    app.out.line(format!("{GOOD}wrote{GOOD:#} {}: restart the host", path.display()))
}

/// How a host starts `yore mcp`.
struct Entry {
    command: String,
    args: Vec<String>,
}

impl Entry {
    fn of(app: &App, host: Host) -> Result<Self> {
        let command = std::env::current_exe().map_err(Failure::file("the yore binary"))?;
        let mut args = vec!["mcp".to_owned()];
        if host.refuses_dots() {
            args.extend(["--tool-names".to_owned(), "underscore".to_owned()]);
        }
        if let Some(data) = app.chosen_data() {
            let data = std::path::absolute(data).map_err(Failure::file(data.display()))?;
            args.extend(["--data".to_owned(), data.display().to_string()]);
        }
        Ok(Self { command: command.display().to_string(), args })
    }

    fn value(&self, host: Host) -> Value {
        let mut entry = Map::new();
        if matches!(host, Host::ClaudeCode | Host::Vscode) {
            entry.insert("type".to_owned(), json!("stdio"));
        }
        entry.insert("command".to_owned(), json!(self.command));
        entry.insert("args".to_owned(), json!(self.args));
        entry.into()
    }

    fn snippet(&self, host: Host) -> String {
        match host {
            Host::Codex => self.table(),
            Host::ClaudeCode
            | Host::Cursor
            | Host::Vscode
            | Host::ClaudeDesktop
            | Host::GeminiCli
            | Host::Windsurf => pretty(&json!({ host.member(): { "yore": self.value(host) } })),
        }
    }

    /// The table of a TOML file. JSON's strings and lists are TOML's.
    fn table(&self) -> String {
        format!(
            "[mcp_servers.yore]\ncommand = {}\nargs = {}\n",
            json!(self.command),
            json!(self.args)
        )
    }

    /// Returns the settings with this entry, and everything else as it was.
    fn added(&self, host: Host, before: &str) -> Result<String, String> {
        if host == Host::Codex {
            return self.added_table(before);
        }
        let text = if before.trim().is_empty() { "{}" } else { before };
        let mut settings: Value = serde_json::from_str(text)
            .map_err(|error| format!("it is not plain JSON ({error})"))?;
        let servers = settings
            .as_object_mut()
            .ok_or("it is not a JSON object")?
            .entry(host.member())
            .or_insert_with(|| json!({}))
            .as_object_mut()
            .ok_or_else(|| format!("its member {} is not an object", host.member()))?;
        let entry = self.value(host);
        if servers.get("yore") == Some(&entry) {
            return Ok(before.to_owned());
        }
        servers.insert("yore".to_owned(), entry);
        Ok(pretty(&settings))
    }

    fn added_table(&self, before: &str) -> Result<String, String> {
        let settings: toml::Table =
            before.parse().map_err(|error| format!("it is not TOML ({error})"))?;
        let servers = settings.get("mcp_servers").and_then(toml::Value::as_table);
        match servers.and_then(|servers| servers.get("yore")) {
            Some(known) => {
                let same = known.get("command").and_then(toml::Value::as_str)
                    == Some(self.command.as_str());
                if same { Ok(before.to_owned()) } else { Err("it has another yore".to_owned()) }
            }
            None if before.trim().is_empty() => Ok(self.table()),
            None => Ok(format!("{}\n\n{}", before.trim_end(), self.table())),
        }
    }
}

fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// Shows the lines that go and the lines that come.
fn show(app: &App, path: &Path, before: &str, after: &str) -> Result {
    app.out.line(format!("{HEAD}{}{HEAD:#}", path.display()))?;
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b);
    let tail = tail.count();
    for line in &old[head..old.len() - tail] {
        app.out.line(format!("{BAD}-{line}{BAD:#}"))?;
    }
    for line in &new[head..new.len() - tail] {
        app.out.line(format!("{GOOD}+{line}{GOOD:#}"))?;
    }
    Ok(())
}

fn home() -> Result<PathBuf> {
    std::env::home_dir()
        .ok_or_else(|| Failure::usage("no home directory is known").hint("name one with --file"))
}

/// Writes the file so that a crash leaves the old or the new one.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let place = path.parent().filter(|place| !place.as_os_str().is_empty());
    let place = place.unwrap_or(Path::new("."));
    std::fs::create_dir_all(place)?;
    let mut fresh = tempfile::NamedTempFile::new_in(place)?;
    std::io::Write::write_all(&mut fresh, text.as_bytes())?;
    if let Ok(about) = std::fs::metadata(path) {
        fresh.as_file().set_permissions(about.permissions())?;
    }
    fresh.as_file().sync_all()?;
    fresh.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry { command: "/opt/yore \"x\"".into(), args: vec!["mcp".into()] }
    }

    #[test]
    fn other_settings_stay_and_a_second_time_changes_nothing() {
        let before = r#"{"theme":"dark","mcpServers":{"other":{"command":"x"}},"z":[1]}"#;
        let after = entry().added(Host::Cursor, before).unwrap();
        let value: Value = serde_json::from_str(&after).unwrap();
        assert_eq!(value["theme"], "dark");
        assert_eq!(value["mcpServers"]["other"]["command"], "x");
        assert_eq!(value["mcpServers"]["yore"]["command"], "/opt/yore \"x\"");
        assert_eq!(entry().added(Host::Cursor, &after).unwrap(), after);
        let members: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(members, ["theme", "mcpServers", "z"]);
    }

    #[test]
    fn toml_keeps_its_comments() {
        let before = "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"\n";
        let after = entry().added(Host::Codex, before).unwrap();
        assert!(after.starts_with(before));
        let value: toml::Table = after.parse().unwrap();
        let command = &value["mcp_servers"]["yore"]["command"];
        assert_eq!(command.as_str(), Some("/opt/yore \"x\""));
        assert_eq!(entry().added(Host::Codex, &after).unwrap(), after);
    }

    #[test]
    fn what_cannot_be_read_is_not_overwritten() {
        for before in ["{ // comment\n}", "[]", "{\"mcpServers\": 3}"] {
            assert!(entry().added(Host::Cursor, before).is_err(), "{before}");
        }
        for before in ["x = ", "[mcp_servers.yore]\ncommand = \"another\"\n"] {
            assert!(entry().added(Host::Codex, before).is_err(), "{before}");
        }
        assert!(entry().added(Host::Vscode, " \n").unwrap().contains("\"servers\""));
    }
}
