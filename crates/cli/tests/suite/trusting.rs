//! `yore trust` on the real stores of a system: those of a namespace of mounts of its own, which
//! nobody else sees and which end with the test.

use std::process::Command;

use crate::common::{Home, ended};

/// Empty stores in place of the system's; nothing else may be done before.
const STORES: &str = "
set -e
mount -t tmpfs none /usr/local/share/ca-certificates
mount -t tmpfs none /etc/ssl/certs
";

/// Runs a script of a shell where it changes no store but its own; returns the lines it prints.
/// `None` where that is not possible, which is told.
fn apart(home: &Home, tools: &[&str], script: &str, args: &[&str]) -> Option<Vec<String>> {
    for tool in ["unshare", "update-ca-certificates"].iter().chain(tools) {
        let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
        if !found.is_ok_and(|found| found.status.success()) {
            println!("NOT RUN: {tool} is not installed");
            return None;
        }
    }
    let run = |script: &str, args: &[&str]| {
        let args = [&["-r", "-m", "sh", "-c", script, "trust"], args].concat();
        ended(home.outside("unshare", &args).output().unwrap())
    };
    if run(STORES, &[]).code != 0 {
        println!("NOT RUN: namespaces of mounts are not allowed here");
        return None;
    }
    let said = run(&format!("{STORES}{script}"), args);
    assert_eq!(said.code, 0, "{said:?}");
    Some(said.out.lines().map(str::to_owned).collect())
}

fn yore(home: &Home) -> String {
    home.command(&[]).get_program().to_str().unwrap().to_owned()
}

#[test]
fn trusting_lets_programs_of_the_system_in_and_removing_turns_them_away() {
    let home = Home::new();
    let server = home.serve();
    let https = server.ready["https"].as_str().unwrap();
    let address = format!("https://localhost:{}", https.rsplit(':').next().unwrap());
    let script = r#"
ask() { curl --silent --output /dev/null --write-out '%{http_code}' "$2/health" || true; }
echo "before $(ask "$@")"
"$1" trust >/dev/null
echo "trusted $(ask "$@")"
ls /usr/local/share/ca-certificates
"$1" trust >/dev/null
echo "again $(ask "$@")"
"$1" trust --remove >/dev/null
echo "removed $(ask "$@")"
"#;
    let Some(lines) = apart(&home, &["curl"], script, &[&yore(&home), &address]) else { return };
    assert_eq!(lines[..2], ["before 000", "trusted 200"]);
    assert!(lines[2].starts_with("yore-local-authority-"), "{lines:?}");
    assert_eq!(lines[3..], ["again 200", "removed 000"]);
}

#[test]
fn a_browsers_database_trusts_it_until_it_is_removed() {
    let home = Home::new();
    std::fs::create_dir_all(home.path(".pki/nssdb")).unwrap();
    let script = r#"
database="sql:$HOME/.pki/nssdb"
certutil -N -d "$database" --empty-password
listed() { certutil -L -d "$database" | grep 'Yore local authority' || echo nothing; }
echo "before $(listed)"
"$1" trust >/dev/null
echo "trusted $(listed)"
"$1" trust --remove >/dev/null
echo "removed $(listed)"
"#;
    let Some(lines) = apart(&home, &["certutil"], script, &[&yore(&home)]) else { return };
    assert_eq!(lines[0], "before nothing");
    let trusted = &lines[1];
    assert!(trusted.contains("Yore local authority") && trusted.contains("C,,"), "{lines:?}");
    assert_eq!(lines[2], "removed nothing");
}

#[test]
fn what_trusting_would_do_is_told_and_not_done() {
    let home = Home::new();
    let planned = home.json(&["trust", "--dry-run"]);
    let planned = planned.as_array().unwrap();
    assert!(planned.iter().all(|store| store["state"] == "planned"), "{planned:?}");
    let told = home.run(&["trust", "--dry-run"]);
    assert!(told.err.contains("SHA-256") && told.err.contains("ca.pem"), "{told:?}");
    // The authority is there for those who are given the file itself, and its key is private.
    let key = std::fs::metadata(home.data().join("tls/ca.key")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777, 0o600);
}
