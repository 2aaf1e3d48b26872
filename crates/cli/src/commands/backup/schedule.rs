//! `yore backup schedule`: how often a server makes copies by itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use yore_server::backup::{Backups, Every, Failed};

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::file;
use crate::output::{BAD, GOOD, clean};

/// Options of `yore backup schedule`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// daily, weekly, monthly, or off [default: show what is set]
    #[arg(value_name = "HOW OFTEN", value_parser = every)]
    every: Option<Every>,
    /// The folder for the copies
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// How many copies of a vault are kept
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// A command to run after each copy; YORE_BACKUP_FILE names the copy
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// An S3-compatible bucket for the copies, as https://host/bucket/prefix
    #[arg(long, value_name = "URL")]
    bucket: Option<String>,
}

fn every(text: &str) -> Result<Every, String> {
    Every::parse(text).ok_or_else(|| "must be daily, weekly, monthly or off".to_owned())
}

pub(super) fn run(app: &App, args: Args) -> Result {
    let config = app.config()?;
    let Some(every) = args.every else {
        return show(app, &config.backup, &config.backup.folder(&config.data));
    };
    let to = match args.to {
        Some(to) => Some(std::path::absolute(&to).map_err(Failure::file(to.display()))?),
        None => config.backup.to.clone(),
    };
    let backups = Backups {
        every,
        to,
        keep: args.keep.unwrap_or(config.backup.keep),
        command: args.command.or_else(|| config.backup.command.clone()),
        bucket: args.bucket.or_else(|| config.backup.bucket.clone()),
        mail: config.backup.mail.clone(),
    };
    backups.check()?;
    let path = app.config_file()?;
    let before = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::file(path.display())(error)),
    };
    let after = set(&before, &backups)?;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(Failure::file(parent.display()))?;
    }
    file::write(&path, after.as_bytes())?;
    app.out
        .remark(format!("written to {}; a running server reads it when it starts", path.display()));
    show(app, &backups, &backups.folder(&config.data))
}

fn show(app: &App, backups: &Backups, folder: &Path) -> Result {
    let copies = yore_server::backup::copies(folder)
        .map_err(|error| Failure::file(folder.display())(error))?;
    let deliveries = yore_server::backup::deliveries(folder)
        .map_err(|error| Failure::file(folder.display())(error))?;
    let newest = copies.last().map(|copy| copy.made.to_string());
    let done = json!({
        "every": backups.every.as_str(),
        "to": folder,
        "keep": backups.keep,
        "command": backups.command,
        "bucket": backups.bucket,
        "mail": backups.mail.as_ref().map(|mail| &mail.to),
        "deliveries": deliveries,
        "copies": copies.len(),
        "newest": newest,
    });
    app.out.either(&done, |_| {
        app.out.line(format!("{GOOD}{}{GOOD:#}  {}", backups.every.as_str(), folder.display()))?;
        app.out.line(format!(
            "{} copies, {} are kept of each vault",
            copies.len(),
            backups.keep
        ))?;
        if let Some(newest) = newest {
            app.out.line(format!("the newest was made at {newest}"))?;
        }
        for (to, delivery) in &deliveries {
            if let Some(failed) = &delivery.failed {
                let Failed { since, why, times } = failed;
                let told = format!("{to}: failed {times} times since {since}: {why}");
                app.out.line(format!("{BAD}{}{BAD:#}", clean(&told)))?;
            }
        }
        Ok(())
    })
}

/// Puts the table into a configuration, and leaves everything else as it is.
fn set(before: &str, backups: &Backups) -> Result<String> {
    let wrong =
        |error: &dyn std::fmt::Display| Failure::usage(format!("the configuration: {error}"));
    before.parse::<toml::Table>().map_err(|error| wrong(&error))?;
    let mut kept = String::new();
    let mut inside = false;
    for line in before.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with('[') {
            inside = trimmed == "[backup]" || trimmed.starts_with("[backup.");
        }
        if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    let whole = BTreeMap::from([("backup", backups)]);
    let table = toml::to_string(&whole).map_err(|error| wrong(&error))?;
    let gap = if kept.trim().is_empty() { "" } else { "\n" };
    let after = format!("{}{gap}{table}", with_end(kept.trim_end()));
    let read: toml::Table = after.parse().map_err(|error| wrong(&error))?;
    // A table that was written in another way is not understood here, and nothing is lost.
    match read.get("backup") {
        Some(_) => Ok(after),
        None => Err(Failure::usage("the configuration has a [backup] of another form")),
    }
}

fn with_end(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{text}\n") }
}

#[cfg(test)]
mod tests {
    use yore_server::mail::Mail;

    use super::*;

    #[test]
    fn the_table_is_replaced_and_everything_else_stays() {
        let backups = Backups {
            every: Every::Weekly,
            to: Some("/mnt/copies".into()),
            keep: 3,
            command: Some("cp \"$YORE_BACKUP_FILE\" /x".into()),
            bucket: Some("https://s3.example.org/b".into()),
            mail: Some(Mail {
                server: "smtp://mail.example.org".into(),
                from: "a@example.org".into(),
                to: "b@example.org".into(),
                user: None,
                attach: 1,
                link: None,
                ca: None,
            }),
        };
        let before = "# mine\nlog = \"info\"\n\n[backup]\nevery = \"daily\"\nkeep = 9\n\n[limits]\nbody = 1\n";
        let after = set(before, &backups).unwrap();
        assert!(after.starts_with("# mine\nlog = \"info\"\n"), "{after}");
        let read: toml::Table = after.parse().unwrap();
        assert_eq!(read["limits"]["body"].as_integer(), Some(1));
        let table: Backups = read["backup"].clone().try_into().unwrap();
        assert_eq!((table.every, table.keep), (Every::Weekly, 3));
        assert_eq!(table, backups);
        assert_eq!(set(&after, &backups).unwrap(), after, "a second time changes nothing");
        assert!(set("", &backups).unwrap().starts_with("[backup]"));
        assert!(set("backup = {", &backups).is_err());
        assert!(set("backup = { keep = 1 }", &backups).is_err(), "written in another way");
    }
}
