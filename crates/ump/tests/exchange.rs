//! Records out of one vault and into another.

use serde_json::{Value, json};
use yore_canon::seal;
use yore_domain::Span;
use yore_domain::query::PageRequest;
use yore_ump::files::{self, Export, Format, Redaction};
use yore_ump::wire::Object;

use crate::support::Vault;

async fn exported(vault: &Vault) -> Vec<Object> {
    let page = PageRequest { limit: 100, ..PageRequest::default() };
    let call = vault.owner_call();
    vault
        .ump
        .export(
            &call,
            Default::default(),
            page,
            Export { redaction: Redaction::Keep, ..Export::default() },
        )
        .await
        .unwrap()
        .records
}

/// What must survive: everything but the proof, which each vault gives itself.
fn contents(records: &[Object]) -> Vec<Value> {
    let mut contents: Vec<Value> = records
        .iter()
        .map(|record| {
            let mut record = record.clone();
            record.shift_remove("integrity");
            record.into()
        })
        .collect();
    contents.sort_by_key(|record| record["id"].to_string());
    contents
}

#[tokio::test]
async fn ump_101_a_vault_moves_through_every_form_without_loss() {
    let vault = Vault::new().await;
    let mut said = vault.said("  two\n\nlines \n");
    said["body"]["structured"] = json!({"n": 1.0, "big": 9_007_199_254_740_993_i64});
    said["time"] =
        json!({"created": "2026-06-04T12:00:00.50+02:00", "observed": "2026-06-04T10:00:00Z"});
    said["lifecycle"] = json!({"confidence": 1, "decay": "linear", "status": "candidate"});
    said["consent"] = json!({"retention": "P2Y", "redact": []});
    said["relations"] = json!([{"type": "custom", "target": "entity:x"}]);
    vault.remember(said).await;
    let first = vault.remember(vault.said("Rome")).await;
    vault.clock.advance(Span::days(1));
    let revise = json!({"id": first, "patch": {"body": {"text": "Oslo"}}});
    vault.post(&vault.owner, "/ump/revise", &revise).await.ok();
    let before = exported(&vault).await;
    assert_eq!(before.len(), 3);
    assert!(before.iter().all(|record| seal::verify(record).is_ok()));

    for format in Format::ALL {
        let records: Vec<Object> = match format {
            Format::Json | Format::Ndjson => {
                files::parse(&files::print(&before, format).unwrap(), format).unwrap()
            }
            Format::Markdown => before
                .iter()
                .flat_map(|record| {
                    let text = files::print(std::slice::from_ref(record), format).unwrap();
                    files::parse(&text, format).unwrap()
                })
                .collect(),
        };
        assert_eq!(records, before, "{format:?}");
        let other = Vault::new().await;
        other.clock.advance(Span::days(1));
        let (items, refused) = other.ump.import_items(&other.owner_call(), &records).await.unwrap();
        assert!(refused.is_empty(), "{refused:?}");
        let imported = other.engine.import(&other.owner_call(), items.clone()).await.unwrap();
        assert_eq!((imported.imported, imported.rejected.len()), (2, 0), "{imported:?}");
        assert_eq!(contents(&exported(&other).await), contents(&before), "{format:?}");
        let again = other.engine.import(&other.owner_call(), items).await.unwrap();
        assert_eq!((again.imported, again.duplicates), (0, 2), "{again:?}");
        let old = other.record(&other.owner, &first).await.ok();
        assert_eq!(old["record"]["body"]["text"], "Rome");
    }
}
