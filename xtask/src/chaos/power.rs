//! Power cuts: takes back what was written and not yet synced, in whole or in part.
//!
//! Whoever kills a process leaves everything it wrote to the kernel. A power cut does not, and
//! what it leaves of a page may be half of it. The library in `faults.c` has noted what was there
//! before each write; here it is put back, sector by sector.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::random::Random;

/// What a disk writes as one.
const SECTOR: u64 = 512;
/// The length of what every record begins with.
const HEAD: usize = 32;
const WRITTEN: u32 = 1;
const CUT: u32 = 3;

/// A write that was not synced.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Write {
    offset: u64,
    length: u64,
    /// What was there before, up to where the file ended.
    before: Vec<u8>,
}

/// How much of it is lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Everything,
    EachWrite,
    EachSector,
    HalfOfTheLast,
}

/// Does to the files below a directory what a power cut might do; returns how many writes lost
/// something. The server that wrote them must have ended.
pub(super) fn cut(data: &Path, record: &Path, random: &mut Random) -> Result<usize> {
    let losses = [Loss::Everything, Loss::EachWrite, Loss::EachSector, Loss::HalfOfTheLast];
    let loss = *random.pick(&losses);
    let mut paths = HashMap::new();
    inodes(data, &mut paths)?;
    let mut torn = 0;
    for (inode, writes) in unsynced(&fs::read(record)?) {
        // What was removed or lies elsewhere cannot be torn.
        let Some(path) = paths.get(&inode) else { continue };
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        torn += lose(&file, &writes, loss, random)?;
    }
    fs::write(record, [])?;
    Ok(torn)
}

fn inodes(dir: &Path, paths: &mut HashMap<u64, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let about = entry.metadata()?;
        if about.is_dir() {
            inodes(&entry.path(), paths)?;
        } else if about.is_file() {
            paths.insert(about.ino(), entry.path());
        }
    }
    Ok(())
}

/// What was written to each file since it was last synced, in order.
fn unsynced(mut record: &[u8]) -> HashMap<u64, Vec<Write>> {
    let mut files: HashMap<u64, Vec<Write>> = HashMap::new();
    // A record that was cut off was noted before its write, which did not happen.
    while let Some((head, rest)) = record.split_at_checked(HEAD) {
        let short = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap_or_default());
        let long = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().unwrap_or_default());
        let (what, inode, offset, length) = (short(0), long(8), long(16), long(24));
        let Some((before, rest)) = rest.split_at_checked(short(4) as usize) else { break };
        record = rest;
        let writes = files.entry(inode).or_default();
        match what {
            WRITTEN => writes.push(Write { offset, length, before: before.to_vec() }),
            CUT => writes.retain(|write| write.offset + write.length <= length),
            _ => writes.clear(),
        }
    }
    files
}

/// Puts back what was there, the latest write first.
fn lose(file: &File, writes: &[Write], loss: Loss, random: &mut Random) -> Result<usize> {
    let mut torn = 0;
    for (back, write) in writes.iter().rev().enumerate() {
        let whole = match loss {
            Loss::Everything => true,
            Loss::EachWrite => random.one_in(2),
            Loss::EachSector | Loss::HalfOfTheLast => false,
        };
        let half = write.offset + write.length / 2;
        let mut lost = 0;
        let mut at = write.offset;
        while at < write.offset + write.length {
            let next = ((at / SECTOR + 1) * SECTOR).min(write.offset + write.length);
            let gone = whole
                || match loss {
                    Loss::EachSector => random.one_in(2),
                    Loss::HalfOfTheLast => back == 0 && at >= half,
                    Loss::Everything | Loss::EachWrite => false,
                };
            if gone {
                file.write_all_at(&piece(write, at, next), at)?;
                lost += 1;
            }
            at = next;
        }
        let end = write.offset + write.before.len() as u64;
        let grew = (write.before.len() as u64) < write.length;
        if matches!(loss, Loss::Everything) && grew && file.metadata()?.len() > end {
            file.set_len(end)?;
        }
        torn += usize::from(lost > 0);
    }
    Ok(torn)
}

/// What was between two places before a write; nothing was there beyond the file's end.
fn piece(write: &Write, from: u64, to: u64) -> Vec<u8> {
    let begin = usize::try_from(from - write.offset).unwrap_or_default();
    let end = usize::try_from(to - write.offset).unwrap_or_default();
    (begin..end).map(|at| write.before.get(at).copied().unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(what: u32, inode: u64, offset: u64, length: u64, before: &[u8]) -> Vec<u8> {
        let held = u32::try_from(before.len()).unwrap();
        let mut bytes = [what.to_ne_bytes(), held.to_ne_bytes()].concat();
        for number in [inode, offset, length] {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.extend(before);
        bytes
    }

    #[test]
    fn only_what_was_not_synced_can_be_lost() {
        let mut record = noted(WRITTEN, 1, 0, 4, b"abcd");
        record.extend(noted(2, 1, 0, 0, b""));
        record.extend(noted(WRITTEN, 1, 4, 4, b"ef"));
        record.extend(noted(WRITTEN, 2, 0, 4, b""));
        record.extend(noted(WRITTEN, 2, 8, 4, b""));
        record.extend(noted(CUT, 2, 0, 8, b""));
        let whole = unsynced(&record);
        let write = Write { offset: 4, length: 4, before: b"ef".to_vec() };
        assert_eq!(whole[&1], [write]);
        assert_eq!(whole[&2].len(), 1, "what was cut away is not put back");
        record.extend(&noted(WRITTEN, 1, 0, 4, b"abcd")[..35]);
        assert_eq!(unsynced(&record), whole, "a record that was cut off is none");
    }

    #[test]
    fn what_is_lost_is_as_it_was_before() {
        let path = std::env::temp_dir().join(format!("yore-chaos-power-{}", std::process::id()));
        let before: Vec<u8> = (0..1500_u32).map(|at| (at % 251) as u8).collect();
        let write = Write { offset: 0, length: 2048, before: before.clone() };
        let lost = |loss| {
            fs::write(&path, [255; 2048]).unwrap();
            let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
            lose(&file, std::slice::from_ref(&write), loss, &mut Random::new(3)).unwrap();
            fs::read(&path).unwrap()
        };
        assert_eq!(lost(Loss::Everything), before);
        let half = lost(Loss::HalfOfTheLast);
        assert_eq!((&half[..1024], &half[1024..1500]), (&[255; 1024][..], &before[1024..]));
        assert_eq!(half[1500..], [0; 548]);
        let sectors = lost(Loss::EachSector);
        for (at, sector) in sectors.chunks(512).enumerate() {
            let kept = sector.iter().all(|byte| *byte == 255);
            let was = &before[(512 * at).min(1500)..(512 * at + 512).min(1500)];
            assert!(kept || sector.starts_with(was), "sector {at}");
        }
        fs::remove_file(&path).unwrap();
    }
}
