//! Copies, archives, and the way back.

use axum::http::Method;
use axum::http::header::COOKIE;
use yore_domain::memory::Draft;
use yore_domain::{Span, Timestamp, VaultId};
use yore_engine::{Every, Schedule};
use yore_web::{Copies, Options};

use crate::support::{Vault, form};

fn named(vault: VaultId, made: Timestamp) -> String {
    format!("{vault}-{}", made.micros())
}

/// A vault whose copies lie in a folder.
async fn kept(folder: &std::path::Path) -> Vault {
    let copies = Copies {
        folder: folder.to_owned(),
        every: "off",
        keep: 7,
        name: named,
        told: |path| {
            let name = path.file_name()?.to_str()?;
            let (vault, made) = name.rsplit_once('-')?;
            Some((vault.parse().ok()?, Timestamp::from_micros(made.parse().ok()?)))
        },
    };
    Vault::with(Options { copies: Some(copies), ..Options::default() }).await
}

#[tokio::test]
async fn the_schedule_is_shown_and_changed() {
    let folder = tempfile::tempdir().unwrap();
    let vault = kept(folder.path()).await;
    let browser = vault.browser().await;
    let page = browser.get("/app/backup").await.expect(200);
    assert!(page.contains("No copies are made by themselves"), "{page}");
    let wanted = [("every", "weekly"), ("keep", "3")];
    let page = browser.follow("/app/backup/schedule", &wanted).await;
    assert!(page.contains("<strong>weekly</strong>; 3 are kept"), "{page}");
    let said = vault.engine.schedule(&vault.owner_call()).await.unwrap();
    assert_eq!(said, Some(Schedule { every: Every::Weekly, keep: Some(3) }));
    for wrong in [("every", "hourly"), ("keep", "some")] {
        assert_eq!(browser.post("/app/backup/schedule", &[wrong]).await.status, 400);
    }
    assert_eq!(browser.post("/app/backup/schedule", &[wanted[0], ("keep", "0")]).await.status, 400);
    browser.follow("/app/backup/schedule", &[("every", "")]).await;
    assert_eq!(vault.engine.schedule(&vault.owner_call()).await.unwrap(), None);
}

#[tokio::test]
async fn a_vault_goes_back_to_a_copy_after_it_was_shown_what_that_means() {
    let folder = tempfile::tempdir().unwrap();
    let vault = kept(folder.path()).await;
    let browser = vault.browser().await;
    let before = vault.remember(Draft::text("from before")).await;
    let page = browser.follow("/app/backup", &[]).await;
    let (_, rest) = page.split_once("href=\"/app/backup/").expect("a copy is listed");
    let made = rest.split('"').next().unwrap().to_owned();
    vault.clock.advance(Span::seconds(60));
    let after = vault.remember(Draft::text("from after")).await;
    let place = format!("/app/backup/{made}/restore");
    let page = browser.get(&place).await.expect(200);
    let row = "memories</th><td class=\"number\">1</td><td class=\"number\"><strong>2</strong>";
    assert!(page.contains(row), "{page}");
    assert_eq!(browser.post(&place, &[]).await.status, 400, "nobody said that they mean it");
    assert_eq!(browser.get(&format!("/app/memory/{after}")).await.status, 200);
    let reply = browser.post(&place, &[("sure", "yes")]).await;
    assert_eq!((reply.status, reply.place()), (303, "/app/backup?said=returned"));
    assert_eq!(browser.get(&format!("/app/memory/{before}")).await.status, 200);
    assert_eq!(browser.get(&format!("/app/memory/{after}")).await.status, 404);
    // What was there is a copy now, and the way back.
    let page = browser.get("/app/backup").await.expect(200);
    assert_eq!(page.matches("Go back to it").count(), 2, "{page}");
    let leftover = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().to_string_lossy().contains("partial")
    };
    assert!(!std::fs::read_dir(folder.path()).unwrap().any(leftover));
    assert_eq!(browser.get("/app/backup/1/restore").await.status, 404);
}

#[tokio::test]
async fn the_archive_holds_every_version_and_comes_in_again() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let id = vault.remember(Draft::text("Kim lives in Oslo")).await;
    browser.follow(&format!("/app/memory/{id}/revise"), &[("text", "Kim lives in Bergen")]).await;
    let taken = |password: &'static str, again: &'static str| {
        let (vault, cookie) = (&vault, browser.cookie());
        let pairs = [("csrf", browser.mark.as_str()), ("password", password), ("again", again)];
        let body = form(&pairs);
        async move {
            let kind = ("content-type", "application/x-www-form-urlencoded");
            let lines = [kind, (COOKIE.as_str(), cookie.as_str())];
            vault.bytes(Method::POST, "/app/backup/archive", &lines, body).await
        }
    };
    assert_eq!(taken("one", "other").await.0.status, 400);
    let (reply, plain) = taken("", "").await;
    assert_eq!(reply.header("content-type"), "application/zip");
    assert!(reply.header("content-disposition").contains("yore-2027-01-15.omp.zip\""), "{reply:?}");
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("all.omp.zip");
    std::fs::write(&file, &plain).unwrap();
    let source = yore_archive::Source::open(&[file], yore_archive::Limits::default()).unwrap();
    let mut texts = Vec::new();
    let report = yore_archive::read(&source, &mut |item| {
        if let yore_archive::Item::Memory(note) = item {
            texts.extend(note.versions.into_iter().map(|version| version.content.body.text));
        }
        Ok(())
    });
    assert_eq!(report.unwrap().memories, 1);
    assert_eq!(texts, ["Kim lives in Oslo", "Kim lives in Bergen"]);
    let (reply, sealed) = taken("a password", "a password").await;
    assert!(reply.header("content-disposition").contains(".omp.zip.enc\""), "{reply:?}");
    assert!(sealed.starts_with(b"Salted__"));
    let file = place.path().join("all.omp.zip.enc");
    std::fs::write(&file, &sealed).unwrap();
    let limits = yore_archive::Limits::default();
    yore_archive::omp::Reader::open_sealed(&file, "a password", None, limits).unwrap();
}
