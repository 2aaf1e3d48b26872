//! What the protocol's authors published: examples of requests and answers.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Vault, valid};

fn published() -> Option<PathBuf> {
    let Some(data) = std::env::var_os("YORE_TESTDATA") else {
        println!("NOT RUN: YORE_TESTDATA is not set");
        return None;
    };
    Some(Path::new(&data).join("memorywire"))
}

fn document(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[tokio::test]
async fn the_published_examples_are_understood_and_fit_the_schemas() {
    let Some(place) = published() else { return };
    let vault = Vault::new().await;
    let mut seen = 0;
    for operation in ["remember", "recall", "forget", "merge", "expire"] {
        for file in std::fs::read_dir(place.join("examples").join(operation)).unwrap() {
            let example = document(&file.unwrap().path());
            valid(operation, &example["request"]);
            valid(&format!("{operation}.response"), &example["response"]);
            vault.ask(&vault.owner, operation, &example["request"]).await.expect(200);
            seen += 1;
        }
    }
    assert!(seen >= 15, "{seen}");
}
