//! memorywire's files: what others wrote, what may not be seen, and what must be gone.

use rusqlite::Connection;
use yore_router::adapters::SqliteVec;
use yore_router::suite::NOW;
use yore_router::{Depth, Forget, MemoryStore, Object, Put, Question, Record, Type, Whose};

use crate::{alice, embedder, question, record, slot, texts};

fn count(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn mw_075_rows_of_others_are_recalled_under_their_own_ids_and_forgotten_by_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    // Written by somebody else: no mapping knows of it.
    let theirs = SqliteVec::open(&path, embedder()).unwrap();
    theirs.remember(&record("theirs", "the lighthouse is white")).await.unwrap();
    let ours = slot("file", SqliteVec::open(&path, embedder()).unwrap(), 5000);
    let lane = ours.recall(&question("lighthouse", 5)).await.unwrap();
    assert_eq!(lane.hits.len(), 1);
    assert_eq!(lane.hits[0].0.id, "theirs");
    let forget = Forget {
        whose: alice(),
        ids: vec!["theirs".into()],
        filter: Object::new(),
        depth: Depth::Tombstone,
        now: NOW,
    };
    assert_eq!(ours.forget(&forget).await, Ok(vec!["theirs".to_owned()]));
    assert_eq!(texts(&ours, "lighthouse").await, [""; 0]);
    assert_eq!(ours.forget(&forget).await, Ok(Vec::new()), "once");
}

#[tokio::test]
async fn mw_122_what_waits_for_a_person_is_seen_by_nothing_and_takes_no_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let slot = slot("file", SqliteVec::open(&path, embedder()).unwrap(), 5000);
    slot.put(&record("live", "the answer about harbours, with other words")).await.unwrap();
    for number in 0..80 {
        let waiting = record(&format!("w{number}"), "where is the harbour");
        slot.store().remember(&waiting).await.unwrap();
    }
    let file = Connection::open(&path).unwrap();
    file.execute("UPDATE memories SET deleted_at = -1 WHERE id LIKE 'w%'", []).unwrap();
    let found = texts(&slot, "where is the harbour").await;
    assert_eq!(found, ["the answer about harbours, with other words"]);
    let forget = Forget {
        whose: alice(),
        ids: vec!["w1".into()],
        filter: Object::new(),
        depth: Depth::Erase,
        now: NOW,
    };
    assert_eq!(slot.forget(&forget).await, Ok(Vec::new()));
}

#[tokio::test]
async fn mw_035_a_hard_delete_leaves_no_row_no_words_and_no_vector() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let slot = slot("file", SqliteVec::open(&path, embedder()).unwrap(), 5000);
    for (id, text) in [("a", "xylophone lessons"), ("b", "piano lessons")] {
        slot.put(&record(id, text)).await.unwrap();
    }
    let forget = Forget {
        whose: alice(),
        ids: vec!["a".into()],
        filter: Object::new(),
        depth: Depth::Erase,
        now: NOW,
    };
    assert_eq!(slot.forget(&forget).await, Ok(vec!["a".to_owned()]));
    let file = Connection::open(&path).unwrap();
    assert_eq!(count(&file, "SELECT count(*) FROM memories"), 1);
    assert_eq!(count(&file, "SELECT count(*) FROM memories_vec_rowids"), 1);
    let words = "SELECT count(*) FROM memories_fts WHERE memories_fts MATCH 'xylophone'";
    assert_eq!(count(&file, words), 0);
    let log = "SELECT count(*) FROM audit_log WHERE payload LIKE '%xylophone%'";
    assert_eq!(count(&file, log), 0);
    file.execute_batch("INSERT INTO memories_fts (memories_fts) VALUES ('integrity-check')")
        .unwrap();
    let (validity, vectors): (Vec<u8>, Vec<u8>) = file
        .query_row(
            "SELECT c.validity, v.vectors FROM memories_vec_chunks c \
             JOIN memories_vec_vector_chunks00 v ON v.rowid = c.chunk_id",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!(validity[0], 0b10, "the second place is taken, the first is free");
    assert!(vectors[..384 * 4].iter().all(|byte| *byte == 0), "nothing is left of the vector");
    assert!(vectors[384 * 4..2 * 384 * 4].iter().any(|byte| *byte != 0));
    // The place is used again, and the chunk does not grow.
    slot.put(&record("c", "violin lessons")).await.unwrap();
    assert_eq!(count(&file, "SELECT count(*) FROM memories_vec_chunks"), 1);
    assert_eq!(texts(&slot, "violin").await.first().map(String::as_str), Some("violin lessons"));
}

#[tokio::test]
async fn mw_076_chunks_grow_past_their_size_and_every_search_is_exact() {
    let slot = slot("file", crate::file(), 60_000);
    let (agents, each) = (6, 200);
    for agent in 0..agents {
        for number in 0..each {
            let whose = Whose { agent: format!("agent-{agent}"), user: None };
            let text = format!("topic{number} of agent{agent} is about word{}", number * 7);
            let id = format!("{agent}-{number}");
            let record = Record::new(id, &whose, Type::Semantic, &text, NOW);
            assert_eq!(slot.put(&record).await, Ok(Put::Created));
        }
    }
    for agent in 0..agents {
        let whose = Whose { agent: format!("agent-{agent}"), user: None };
        for number in (0..each).step_by(23) {
            let query = format!("topic{number} word{}", number * 7);
            let lane = slot.recall(&Question::new(whose.clone(), &query, 5, NOW)).await.unwrap();
            assert_eq!(lane.hits.len(), 5);
            assert_eq!(lane.hits[0].0.id, format!("{agent}-{number}"), "{query}");
        }
    }
    let whose = Whose { agent: "agent-1".into(), user: None };
    let all = slot.recall(&Question::new(whose, "topic", 1000, NOW)).await.unwrap();
    assert_eq!(all.hits.len(), each, "as many as are asked for, up to all");
}

#[tokio::test]
async fn two_hundred_writers_at_once_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let slot = slot("file", SqliteVec::open(&path, embedder()).unwrap(), 60_000);
    let writers = (0..200).map(|number| {
        let slot = slot.clone();
        tokio::spawn(async move {
            slot.put(&record(&format!("{number}"), &format!("note number{number}"))).await
        })
    });
    for done in futures::future::join_all(writers).await {
        assert_eq!(done.unwrap(), Ok(Put::Created));
    }
    let file = Connection::open(&path).unwrap();
    assert_eq!(count(&file, "SELECT count(*) FROM memories"), 200);
    assert_eq!(count(&file, "SELECT count(*) FROM memories_vec_rowids"), 200);
    assert_eq!(count(&file, "SELECT count(DISTINCT chunk_offset) FROM memories_vec_rowids"), 200);
    let words = "SELECT count(*) FROM memories_fts WHERE memories_fts MATCH 'note'";
    assert_eq!(count(&file, words), 200);
    assert_eq!(count(&file, "SELECT count(*) FROM audit_log WHERE operation = 'remember'"), 200);
}

#[tokio::test]
async fn a_file_with_vectors_of_another_size_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory.db");
    let file = Connection::open(&path).unwrap();
    file.execute_batch(
        "PRAGMA writable_schema = on;
         INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES ('table',
             'memories_vec', 'memories_vec', 0,
             'CREATE VIRTUAL TABLE memories_vec USING vec0(embedding float[768])');",
    )
    .unwrap();
    drop(file);
    let refused = SqliteVec::open(&path, embedder()).unwrap_err();
    assert_eq!(refused.to_string(), "unsupported: vectors that have not 384 numbers");
    let file = Connection::open(&path).unwrap();
    assert_eq!(count(&file, "SELECT count(*) FROM sqlite_schema"), 1);
}
