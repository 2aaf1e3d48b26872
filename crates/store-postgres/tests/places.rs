//! What is sealed opens in its own row alone: whoever writes to the database can swap values, and
//! nobody is shown the wrong one.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

use serde_json::json;
use yore_domain::BlobHash;
use yore_domain::conversation::Attachment;
use yore_domain::memory::{Draft, Foreign, Relation};
use yore_domain::profile::Profile;
use yore_domain::stream::Frame;
use yore_store::suite::Scene;
use yore_store::suite::talks::{message, saying, talk};
use yore_store::{Keeper, Write};

const ONE: &[u8] = b"a picture of the harbour";
const OTHER: &[u8] = b"a picture of the station";

/// Two of everything that several rows of one number belong to.
async fn pairs(scene: &Scene<'_>) -> [yore_domain::MemoryId; 2] {
    let mut writes = Vec::new();
    for user in ["ada", "bob"] {
        writes.push(Write::Profile(Box::new(Profile {
            user: Some(user.into()),
            version: 1,
            document: json!({"name": user}).as_object().cloned().unwrap(),
            recorded: scene.tick(),
        })));
        let frame = Frame { number: 0, bytes: user.as_bytes().to_vec() };
        writes.push(Write::Frame { sender: "did:a".into(), stream: user.into(), frame });
    }
    scene.commit(writes).await;
    let mut memories = Vec::new();
    for target in ["entity:ada", "entity:bob"] {
        let mut draft = Draft::text(target);
        let link = |kind: &str, target: &str| Relation { kind: kind.into(), target: target.into() };
        draft.content.relations = vec![link("about", target), link("from", "entity:town")];
        memories.push(scene.remember(draft).await.memory);
    }
    let talk = talk(scene, "claude").await;
    for bytes in [ONE, OTHER] {
        let (staged, blob) = (BlobHash::of(&bytes[1..]), BlobHash::of(bytes));
        let size = bytes.len() as u64;
        for (number, part) in (0u32..).zip(bytes.chunks(12)) {
            let (bytes, complete) = (part.to_vec(), None);
            scene.commit(vec![Write::BlobChunk { blob: staged, number, bytes, complete }]).await;
        }
        let mut said = message(scene, "see this");
        said.attachments = vec![Attachment {
            filename: "a.png".into(),
            media_type: "image/png".into(),
            blob: Some(blob),
            size: None,
            foreign: Foreign::new(),
        }];
        scene.commit(vec![Write::BlobNamed { staged, blob, size }, saying(talk.id, &said)]).await;
    }
    memories.try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swapped_value_is_refused() {
    let Some((store, ())) = support::empty_store().await else { return };
    let address = support::database().await.unwrap();
    let scene = Scene::new(&store, &store).await;
    let [one, _] = pairs(&scene).await;
    let permit = support::system(scene.owner().vault());
    let attached = async || {
        let view = scene.look().await;
        let mut read = view.blob_chunk(BlobHash::of(ONE), 0).await?.unwrap();
        read.extend(view.blob_chunk(BlobHash::of(ONE), 1).await?.unwrap());
        Ok::<_, yore_domain::Error>(read)
    };
    // What is there once more when it is whole stays as it came.
    let again = |number: u32, bytes: &[u8], complete| Write::BlobChunk {
        blob: BlobHash::of(ONE),
        number,
        bytes: bytes.to_vec(),
        complete,
    };
    scene.commit(vec![again(0, &ONE[..12], None), again(1, &ONE[12..], Some(24))]).await;
    assert_eq!(attached().await.unwrap(), ONE);
    assert!(store.check(&permit, false).await.unwrap().is_sound());
    let owner = support::connect(&address).await;
    let vault = permit.vault().bytes();
    // Each pair has the same numbers; only what they belong to tells them apart.
    for (table, column, same, faults) in [
        ("profile", "data", "a.version = b.version AND a.whose <> b.whose", 2),
        ("frame", "data", "a.number = b.number AND a.stream <> b.stream", 2),
        ("relation", "data", "a.number = b.number AND a.memory <> b.memory", 4),
        ("relation", "data", "a.number <> b.number AND a.memory = b.memory", 4),
        ("blob_chunk", "data", "a.number = b.number AND a.hash <> b.hash", 4),
        ("blob_chunk", "data", "a.number <> b.number AND a.hash = b.hash", 4),
        // Neither name of origin opens for the other, and so none of the pieces.
        ("blob", "origin", "a.hash <> b.hash", 6),
    ] {
        let swap = format!(
            "UPDATE yore.{table} a SET {column} = b.{column} FROM yore.{table} b
             WHERE a.vault = $1 AND b.vault = $1 AND {same}"
        );
        owner.execute(&swap, &[&vault.as_slice()]).await.unwrap();
        let view = scene.look().await;
        let refused = match table {
            "profile" => view.profile(Some("ada"), None).await.is_err(),
            "frame" => view.frames("did:a", "ada", 0, 9).await.is_err(),
            "relation" => view.related(one).await.is_err(),
            _ => attached().await.is_err(),
        };
        assert!(refused, "{table} shows what is not its own: {same}");
        let health = store.check(&permit, false).await.unwrap();
        assert_eq!(health.storage.len(), faults, "{table}: {health:?}");
        // Swapped back, everything is as it was.
        owner.execute(&swap, &[&vault.as_slice()]).await.unwrap();
        assert!(store.check(&permit, false).await.unwrap().is_sound(), "{table}");
    }
    assert_eq!(attached().await.unwrap(), ONE);
}
