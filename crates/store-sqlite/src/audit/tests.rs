use super::*;
use crate::vault::Vault;
use crate::vault::tests::{Place, commit, plan, says};

const ENTRIES: u64 = 300;

fn filled(place: &Place) -> Vault {
    let vault = place.open().unwrap();
    for _ in 0..ENTRIES - 1 {
        vault.writer.relaxed(plan()).unwrap();
    }
    commit(&vault, says("the last one")).unwrap();
    vault
}

fn report(vault: &Vault, copy: Option<&str>) -> Report {
    let reader = vault.reader().unwrap();
    verify(&reader, vault.id, &vault.signer.verifying_key(), copy).unwrap()
}

fn tamper(vault: &Vault, sql: &'static str) {
    vault.writer.ask_blocking(move |desk| Ok(desk.conn.execute_batch(sql)?)).unwrap();
}

fn seal_now(vault: &Vault) -> String {
    vault
        .writer
        .ask_blocking(|desk| seal(desk, Some(Timestamp::from_micros(9))))
        .unwrap()
        .expect("there is something to seal")
}

#[test]
fn an_untouched_chain_verifies_with_its_checkpoints() {
    let place = Place::new();
    let vault = filled(&place);
    let first = report(&vault, None);
    assert_eq!((first.entries, first.checkpoints), (ENTRIES, 1));
    assert_eq!(first.faults, []);
    let copy = seal_now(&vault);
    let second = report(&vault, Some(&copy));
    assert_eq!((second.checkpoints, second.faults.len()), (3, 0));
    let again = vault.writer.ask_blocking(|desk| seal(desk, None)).unwrap();
    assert_eq!(again, None, "what is sealed is not sealed twice");
}

#[test]
fn every_kind_of_tampering_is_located() {
    let cases: [(&str, &str, u64); 7] = [
        ("changed", "UPDATE audit SET data = replace(data, 'test', 'best') WHERE seq = 40", 40),
        ("changed hash", "UPDATE audit SET hash = zeroblob(32) WHERE seq = 41", 41),
        ("changed column", "UPDATE audit SET operation = 'other' WHERE seq = 42", 42),
        ("removed", "DELETE FROM audit WHERE seq = 50", 50),
        ("first removed", "DELETE FROM audit WHERE seq = 1", 1),
        (
            "reordered",
            "UPDATE audit SET seq = -60 WHERE seq = 60; UPDATE audit SET seq = 60 WHERE seq = 300;
             UPDATE audit SET seq = 300 WHERE seq = -60",
            60,
        ),
        ("checkpoint forged", "UPDATE checkpoint SET data = replace(data, '256', '255')", 256),
    ];
    for (case, sql, seq) in cases {
        let place = Place::new();
        let vault = filled(&place);
        tamper(&vault, sql);
        let faults = report(&vault, None).faults;
        assert!(faults.iter().any(|fault| fault.seq == Seq(seq)), "{case}: {faults:?}");
    }
}

#[test]
fn a_cut_tail_is_noticed_by_the_copy_kept_elsewhere() {
    let place = Place::new();
    let vault = filled(&place);
    let copy = seal_now(&vault);
    tamper(&vault, "DELETE FROM audit WHERE seq > 260; DELETE FROM checkpoint WHERE seq > 260");
    assert_eq!(report(&vault, None).faults, [], "inside the file nothing is amiss");
    let faults = report(&vault, Some(&copy)).faults;
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].seq, Seq(261));
    assert!(faults[0].what.contains("261 to 300"), "{}", faults[0].what);
    tamper(&vault, "DELETE FROM audit WHERE seq > 200");
    assert_eq!(report(&vault, None).faults[0].seq, Seq(201), "the checkpoint in the file, too");
}

#[test]
fn a_chain_rebuilt_from_some_point_contradicts_its_checkpoint() {
    let place = Place::new();
    let vault = filled(&place);
    vault
        .writer
        .ask_blocking(|desk| {
            // A thief with the file's key rewrites the chain consistently from entry 100 on.
            let read = |seq: u64| -> rusqlite::Result<(String, [u8; 32])> {
                let sql = "SELECT data, hash FROM audit WHERE seq = ?1";
                desk.conn.query_row(sql, [seq], |row| Ok((row.get(0)?, row.get(1)?)))
            };
            let mut previous = Blake3::from_bytes(read(99)?.1);
            for seq in 100..=ENTRIES {
                let data = read(seq)?.0.replace("\"protocol\":\"test\"", "\"protocol\":\"tent\"");
                previous = chain::link(Some(&previous), data.as_bytes());
                desk.conn.execute(
                    "UPDATE audit SET data = ?2, hash = ?3 WHERE seq = ?1",
                    (seq, data, previous.as_bytes()),
                )?;
            }
            Ok(())
        })
        .unwrap();
    let faults = report(&vault, None).faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].seq, Seq(256));
}

#[test]
fn a_checkpoint_of_another_vault_or_time_is_refused() {
    let (here, there) = (Place::new(), Place::new());
    let (one, two) = (filled(&here), filled(&there));
    let copy = seal_now(&two);
    assert_eq!(report(&one, Some(&copy)).faults.len(), 1);
    let own = seal_now(&one).replace("\"at\":9", "\"at\":8");
    assert_eq!(report(&one, Some(&own)).faults.len(), 1);
}
