//! What an examination of a database finds: nothing where all is well, and each fault by its name.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

use std::time::{SystemTime, UNIX_EPOCH};

use yore_domain::Timestamp;
use yore_store_postgres::doctor::{Finding, Verdict, examine};
use yore_store_postgres::{Options, PostgresStore};

#[expect(clippy::disallowed_methods, reason = "the clock of the database is a real one")]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap())
}

fn of<'a>(findings: &'a [Finding], what: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.what == what);
    found.unwrap_or_else(|| panic!("{what} was not looked at: {findings:?}"))
}

/// The findings that must not stay so, except what the test's server is like on purpose.
fn wrong(findings: &[Finding]) -> Vec<&Finding> {
    let meant = |finding: &&Finding| !matches!(finding.what, "durability" | "replication");
    findings.iter().filter(|one| one.verdict == Verdict::Wrong).filter(meant).collect()
}

#[tokio::test]
async fn a_sound_database_has_nothing_wrong_and_every_fault_is_named() {
    let Some(address) = support::empty_database().await else { return };
    let options = support::options(&address);
    let findings = examine(&options, now).await;
    assert_eq!(of(&findings, "schema").verdict, Verdict::Doubtful, "no tables yet");
    let store = PostgresStore::open(options.clone()).await.unwrap();
    drop(store);

    let findings = examine(&options, now).await;
    assert!(wrong(&findings).is_empty(), "{findings:?}");
    for what in [
        "database",
        "encryption",
        "pgvector",
        "clock",
        "schema",
        "role",
        "walls between vaults",
        "partitions",
        "indexes of the database",
        "timeouts",
        "connections",
        "vacuum",
    ] {
        assert_eq!(of(&findings, what).verdict, Verdict::Fine, "{what}: {findings:?}");
    }
    assert!(findings.iter().all(|one| (one.verdict == Verdict::Fine) == one.advice.is_none()));
    // The server of the tests does without the disk, and says so.
    let lax = of(&findings, "durability");
    assert!(lax.verdict == Verdict::Wrong && lax.found.contains("is off"), "{lax:?}");
    let login = of(&findings, "login");
    assert_eq!(login.verdict, Verdict::Doubtful, "the tests are a superuser");

    let owner = support::connect(&address).await;
    let faults = [
        (
            "ALTER TABLE yore.memory_3 NO FORCE ROW LEVEL SECURITY",
            "walls between vaults",
            "memory_3",
        ),
        ("ALTER TABLE yore.memory_3 FORCE ROW LEVEL SECURITY", "walls between vaults", ""),
        ("DROP POLICY own ON yore.version", "walls between vaults", "version"),
        (
            "CREATE POLICY own ON yore.version USING (true) WITH CHECK (true)",
            "walls between vaults",
            "version",
        ),
        ("DROP TABLE yore.posting_7", "partitions", "posting (15)"),
        (
            "UPDATE pg_index SET indisvalid = false
             WHERE indexrelid = 'yore.memory_0_vault_id_key'::regclass",
            "indexes of the database",
            "memory_0_vault_id_key",
        ),
        (
            "UPDATE pg_index SET indisvalid = true
             WHERE indexrelid = 'yore.memory_0_vault_id_key'::regclass;
             DROP INDEX yore.document_by_statics",
            "indexes of the database",
            "document has 0 of 16",
        ),
        ("INSERT INTO yore.migration (number) VALUES (99)", "schema", "version 99"),
    ];
    for (sql, what, named) in faults {
        owner.batch_execute(sql).await.unwrap();
        let findings = examine(&options, now).await;
        let found = of(&findings, what);
        if named.is_empty() {
            assert_eq!(found.verdict, Verdict::Fine, "{sql}: {found:?}");
        } else {
            assert_ne!(found.verdict, Verdict::Fine, "{sql}");
            assert!(found.found.contains(named), "{sql}: {found:?}");
        }
    }
    let hour = 3_600_000_000;
    let late = examine(&options, || Timestamp::from_micros(now().micros() - hour)).await;
    let clock = of(&late, "clock");
    assert!(clock.verdict == Verdict::Wrong && clock.found.contains("3600"), "{clock:?}");
    let greedy = Options { readers: 5000, ..options.clone() };
    assert_eq!(of(&examine(&greedy, now).await, "connections").verdict, Verdict::Wrong);
}

#[tokio::test]
async fn what_cannot_be_reached_is_said_with_what_helps() {
    let gone = support::options("postgres://postgres@127.0.0.1:1/yore");
    let findings = examine(&gone, now).await;
    assert_eq!(findings.len(), 1);
    assert!(findings[0].verdict == Verdict::Wrong && findings[0].advice.is_some());
    let nonsense = support::options("mysql://somewhere");
    assert!(examine(&nonsense, now).await[0].found.contains("PostgreSQL"));
    let Some(address) = support::database().await else { return };
    let (place, _) = address.rsplit_once('/').unwrap();
    let missing = support::options(&format!("{place}/yore_is_not_here"));
    let findings = examine(&missing, now).await;
    assert!(findings[0].advice.as_ref().unwrap().contains("createdb"), "{findings:?}");
}
