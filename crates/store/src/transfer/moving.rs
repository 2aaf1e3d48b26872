//! The move itself: vault by vault, each compared before it counts, the catalog last.
//!
//! A vault that is in the target's catalog was compared and is whole, so a move that was cut off
//! goes on with the others. The catalog ends the move: until then nothing serves the target.

use std::collections::BTreeMap;

use serde::Serialize;
use yore_domain::grant::Verb;
use yore_domain::{Error, Result, Timestamp, VaultId};
use yore_policy::{Need, Permit, Principal, authorise};

use super::{Line, Rows, Source, Standing, Tally, Target};

/// What became of a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It would be moved.
    Waits,
    /// It was moved, and both sides are the same.
    Moved,
    /// It had been moved before.
    There,
    /// Both sides were compared and are the same.
    Same,
    /// Both sides were compared and are not the same.
    Different,
}

/// What is said of one vault in the end.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// The name of its owner; the catalog has none.
    pub owner: Option<String>,
    /// Its id.
    pub vault: VaultId,
    /// What became of it.
    pub fate: Fate,
    /// How many rows of each kind it has.
    pub rows: BTreeMap<&'static str, u64>,
    /// The digest of all rows, equal on both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What could not be told apart from its digest any more and stayed behind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left: BTreeMap<&'static str, u64>,
    /// In what the sides differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// How many entries of the audit chain do not follow the one before, in the source as well.
    pub broken: u64,
}

/// How far a move is.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// It goes on with this vault: which of how many, and whose. The catalog is nobody's.
    Vault(usize, usize, Option<&'a str>),
    /// So many rows more were read or compared.
    Rows(u64),
}

/// Hears how far a move is.
pub type Listener<'a> = &'a mut (dyn FnMut(Told<'_>) + Send);

impl Moved {
    fn of(line: Option<&Line>, fate: Fate) -> Self {
        Self {
            owner: line.map(|line| line.info.owner.clone()),
            vault: line.map_or(VaultId::CATALOG, |line| line.info.id),
            fate,
            rows: BTreeMap::new(),
            digest: None,
            left: BTreeMap::new(),
            differences: Vec::new(),
            broken: 0,
        }
    }

    fn with(mut self, tally: &Tally) -> Self {
        self.rows = tally.counts();
        self.digest = Some(tally.digest());
        self.left.clone_from(tally.lost());
        self.broken = tally.broken();
        self
    }
}

/// Says what would be moved.
pub async fn survey(from: &dyn Source) -> Result<Vec<Moved>> {
    let mut found = Vec::new();
    for line in from.lines(&keeping(VaultId::CATALOG)?).await? {
        let counts = from.counts(&keeping(line.info.id)?).await?;
        let rows = counts.into_iter().collect();
        found.push(Moved { rows, ..Moved::of(Some(&line), Fate::Waits) });
    }
    Ok(found)
}

/// Moves every vault, and the catalog in the end. What was moved before is passed over.
pub async fn transfer(
    from: &dyn Source,
    to: &dyn Target,
    told: Listener<'_>,
) -> Result<Vec<Moved>> {
    let catalog = keeping(VaultId::CATALOG)?;
    let origin = from.name(&catalog).await?;
    let lines = from.lines(&catalog).await?;
    if to.name(&catalog).await? == origin {
        let there = lines.iter().map(|line| Moved::of(Some(line), Fate::There));
        return Ok(there.chain([Moved::of(None, Fate::There)]).collect());
    }
    match to.standing(&catalog).await? {
        Standing::Empty => to.begin(&catalog, &origin).await?,
        Standing::Moving(begun) if begun == origin => {}
        Standing::Moving(_) => {
            return Err(Error::conflict("a move from another store into the target was begun"));
        }
        Standing::Used => return Err(Error::conflict("the target is not empty")),
    }
    let there = to.lines(&catalog).await?;
    // Whatever the source no longer has went after the move was begun.
    for gone in there.iter().filter(|gone| !lines.iter().any(|line| line.info.id == gone.info.id)) {
        to.discard(&keeping(gone.info.id)?).await?;
    }
    let mut done = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        told(Told::Vault(number + 1, lines.len(), Some(&line.info.owner)));
        let permit = keeping(line.info.id)?;
        if there.iter().any(|known| known.info.id == line.info.id) {
            if there.contains(line) && to.tip(&permit).await? == from.tip(&permit).await? {
                done.push(Moved::of(Some(line), Fate::There));
                continue;
            }
            to.discard(&permit).await?;
        }
        done.push(carry(from, to, &permit, Some(line), told).await?);
    }
    told(Told::Vault(lines.len(), lines.len(), None));
    done.push(carry(from, to, &catalog, None, told).await?);
    Ok(done)
}

/// Moves one vault.
async fn carry(
    from: &dyn Source,
    to: &dyn Target,
    permit: &Permit,
    line: Option<&Line>,
    told: Listener<'_>,
) -> Result<Moved> {
    let mut intake = to.intake(permit, line).await?;
    let (mut rows, mut read) = (from.rows(permit).await?, Tally::default());
    while let Some(batch) = rows.next().await? {
        batch.iter().for_each(|row| read.add(row));
        told(Told::Rows(batch.len() as u64));
        intake.put(batch).await?;
    }
    let taken = tally(intake.rows().await?, told).await?;
    let differences = read.differences(&taken);
    if !differences.is_empty() {
        let whose = line.map_or("the catalog", |line| &line.info.owner);
        return Err(Error::internal(format!(
            "{whose}: the target gives back other rows than it was given: {}",
            differences.join("; ")
        )));
    }
    intake.keep().await?;
    Ok(Moved::of(line, Fate::Moved).with(&read))
}

/// Compares both sides, row by row, and changes nothing.
pub async fn compare(from: &dyn Source, to: &dyn Source, told: Listener<'_>) -> Result<Vec<Moved>> {
    let catalog = keeping(VaultId::CATALOG)?;
    let (here, there) = (from.lines(&catalog).await?, to.lines(&catalog).await?);
    let mut done = Vec::new();
    for (number, line) in here.iter().map(Some).chain([None]).enumerate() {
        let owner = line.map(|line| line.info.owner.as_str());
        told(Told::Vault((number + 1).min(here.len()), here.len(), owner));
        let known = match line {
            Some(line) => there.iter().find(|other| other.info.id == line.info.id),
            None => None,
        };
        if line.is_some() && known.is_none() {
            let differences = vec!["it is not there".to_owned()];
            done.push(Moved { differences, ..Moved::of(line, Fate::Different) });
            continue;
        }
        let permit = keeping(line.map_or(VaultId::CATALOG, |line| line.info.id))?;
        let ours = tally(from.rows(&permit).await?, told).await?;
        let theirs = tally(to.rows(&permit).await?, told).await?;
        let mut differences = ours.differences(&theirs);
        if known != line {
            differences.push("the line of the catalog".to_owned());
        }
        let fate = if differences.is_empty() { Fate::Same } else { Fate::Different };
        done.push(Moved { differences, ..Moved::of(line, fate).with(&ours) });
    }
    let ours = |line: &&Line| here.iter().any(|known| known.info.id == line.info.id);
    for line in there.iter().filter(|line| !ours(line)) {
        let differences = vec!["it is only there".to_owned()];
        done.push(Moved { differences, ..Moved::of(Some(line), Fate::Different) });
    }
    Ok(done)
}

async fn tally(mut rows: Rows, told: Listener<'_>) -> Result<Tally> {
    let mut tally = Tally::default();
    while let Some(batch) = rows.next().await? {
        batch.iter().for_each(|row| tally.add(row));
        told(Told::Rows(batch.len() as u64));
    }
    Ok(tally)
}

fn keeping(vault: VaultId) -> Result<Permit> {
    let system = Principal::system(vault, "move vaults to another store");
    authorise(&system, Need::one("migrate-store", Verb::Admin), Timestamp::MIN)
}
