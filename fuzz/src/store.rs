//! A store on a simulated disk matches its model after any sequence of operations.
//!
//! The input is a sequence of operations: batches with preconditions, one or several in one group; checkpoints, rolls,
//! idle moments; listings and reads; closing, killing, losing the index; power cuts at any operation of the disk and
//! under any loss policy, also while the store is being opened. After a power cut every acknowledged batch is present,
//! and a prefix of those in progress, each whole. Open bodies stay readable, whatever happens to their objects.
//!
//! Non-goals: damage and failing disks; the test suites cover them.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, channel};

use bytes::Bytes;
use engine::commit::CommitStep;
use engine::disk::Disk;
use engine::disk::sim::LossPolicy;
use engine::listing::FolderCursor;
use engine::rng::{Rng, SeededRng};
use engine::{
    Body, BucketName, CommitInfo, Error, FactName, FolderKey, ObjectKey, ObjectName, Store,
};

use crate::choice_sequence::ChoiceSequence;
use crate::model::{
    Change, Contents, Model, World, body, bucket_named, fact, idle, keys, name_in, read, roll_over,
    stage,
};
use crate::model_batch::{ModelBatch, ModelPrecondition, Outcome};

/// Maximum number of steps of an input: more would take longer without covering more.
const STEPS_MAX: u64 = 80;
/// Maximum number of bodies held open at once.
const STAGED_MAX: usize = 3;
/// Body lengths: small, at the edge of a block, and with a segment of their own.
const BODY_BYTES: [usize; 8] = [0, 1, 100, 3_000, 4_096, 4_097, 9_000, 70_000];
/// Few keys, so that most operations hit an existing object: files and folders with similar names.
const KEYS: [&str; 8] = ["a", "a/", "a/b", "a-b", "a.b/c", "d/e/f", "d/e", "g"];
const FOLDERS: [&str; 5] = ["", "a/", "a.b/", "d/", "d/e/"];
const PREFIXES: [&str; 6] = ["", "a", "a/", "d/e", "h", "a-b"];

/// Summary of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// Number of executed steps.
    pub steps: u64,
    /// Number of power cuts.
    pub crashes: u64,
}

/// Checks the property.
pub fn run(input: &[u8]) {
    if let Err(what) = play(input) {
        panic!("{what}");
    }
}

/// Plays the input to its end.
pub fn play(input: &[u8]) -> Result<Played, String> {
    let mut run = Run::new(input)?;
    while !run.choices.is_exhausted() && run.played.steps < STEPS_MAX {
        let step = run.played.steps;
        run.step().map_err(|what| format!("step {step}: {what}"))?;
        run.played.steps += 1;
    }
    run.end().map_err(|what| format!("the end: {what}"))
}

/// Receiver of a batch's result.
type PendingResult = Receiver<Result<CommitInfo, Error>>;

struct Run<'a> {
    choices: ChoiceSequence<'a>,
    world: World,
    store: Option<Store>,
    model: Model,
    /// Batches in progress when power was cut, in order; their preconditions hold.
    under_way: VecDeque<Vec<Change>>,
    staged: Vec<(Body, Bytes)>,
    played: Played,
}

impl<'a> Run<'a> {
    fn new(input: &'a [u8]) -> Result<Self, String> {
        let world = World::new(7);
        let (store, _) = world.try_open().map_err(describe)?;
        Ok(Self {
            choices: ChoiceSequence::new(input),
            world,
            store: Some(store),
            model: Model::default(),
            under_way: VecDeque::new(),
            staged: Vec::new(),
            played: Played::default(),
        })
    }

    fn step(&mut self) -> Result<(), String> {
        self.under_way.clear();
        let done = match self.choices.below(20) {
            0..=6 => self.commit(1),
            7 | 8 => {
                let count = 2 + self.choices.below(3);
                self.commit(count)
            }
            9 => self.store().checkpoint().map(|_| ()).map_err(describe),
            10 => roll_over(self.store()).map_err(describe),
            11 => {
                idle(self.store());
                Ok(())
            }
            12 => {
                self.world.clock.advance(10 * u64::from(self.choices.pair()));
                Ok(())
            }
            13 => {
                let after = self.world.disk.operations() + self.choices.below(24) as u64;
                self.world.disk.cut_power_after(after);
                Ok(())
            }
            14 => self.abandon_upload(),
            15 => self.stage_body(),
            16 => self.list(),
            17 => self.reopen(),
            18 => {
                self.world.disk.cut_power();
                Ok(())
            }
            _ => self.compare(),
        };
        if self.world.disk.is_off() { self.recover() } else { done }
    }

    /// Commits so many batches at once: they are queued together and decided one after the other.
    fn commit(&mut self, count: usize) -> Result<(), String> {
        let mut expected = self.model.clone();
        let mut answers: Vec<(PendingResult, Outcome)> = Vec::new();
        for part in 0..count as u64 {
            let asked = self.random_batch(part);
            let batch = asked.batch(self.store()).map_err(describe)?;
            let outcome = asked.expected_outcome(&expected);
            if outcome.is_ok() {
                expected.apply(&asked.changes);
                self.under_way.push_back(asked.changes);
            }
            let (answer, answered) = channel();
            self.store().submit(batch, move |result| {
                let _ = answer.send(result);
            });
            answers.push((answered, outcome));
        }
        for (answered, outcome) in answers {
            let answer = loop {
                match answered.try_recv() {
                    Ok(answer) => break answer,
                    Err(_) if self.store().step_committer() == CommitStep::Worked => {}
                    Err(_) => return Err("a batch is not answered".to_owned()),
                }
            };
            match (answer, outcome) {
                (Ok(committed), Ok(deleted)) if committed.deleted_count == deleted => {
                    // An acknowledged batch is applied, whatever happens to those after it.
                    self.model.apply(&self.under_way.pop_front().unwrap_or_default());
                }
                (Err(Error::Conflict(found)), Err(conflict)) if found == conflict => {}
                (Err(error), _) if self.world.disk.is_off() => return Err(describe(error)),
                (answer, outcome) => {
                    return Err(format!("a batch came to {answer:?}, not to {outcome:?}"));
                }
            }
        }
        Ok(())
    }

    fn random_batch(&mut self, part: u64) -> ModelBatch {
        let seed = 100 * self.played.steps + 10 * part;
        let shape = self.choices.byte();
        let changes = (0..=u64::from(shape % 4)).map(|at| self.change(seed + at)).collect();
        let required = (0..(shape / 4) % 3).map(|_| self.required()).collect();
        ModelBatch { changes, preconditions: required }
    }

    fn name(&mut self) -> ObjectName {
        let bucket = self.bucket();
        name_in(&bucket, self.choices.one_of(&KEYS))
    }

    fn bucket(&mut self) -> BucketName {
        bucket_named(self.choices.one_of(&["photos", "photos", "photos", "other"]))
    }

    fn fact(&mut self) -> FactName {
        fact(self.choices.one_of(&["fact/0", "fact/1", "fact/2", "other"]))
    }

    fn change(&mut self, seed: u64) -> Change {
        let kind = self.choices.below(8);
        match kind {
            0 | 1 => Change::Delete(self.name()),
            2 => Change::PutFact(self.fact(), Bytes::from(body(seed, 40))),
            3 => Change::DeleteFact(self.fact()),
            _ => {
                let (name, length) = (self.name(), self.choices.one_of(&BODY_BYTES));
                let bytes = Bytes::from(body(seed, length));
                if kind == 4 { Change::PutDerived(name, bytes) } else { Change::Put(name, bytes) }
            }
        }
    }

    fn required(&mut self) -> ModelPrecondition {
        match self.choices.below(6) {
            0 => ModelPrecondition::Absent(self.name()),
            1 => ModelPrecondition::Present(self.name()),
            2 => ModelPrecondition::FactAbsent(self.fact()),
            3 => ModelPrecondition::FactPresent(self.fact()),
            4 => ModelPrecondition::HasContent(self.name(), None),
            _ => {
                let name = self.name();
                let there = self.model.objects.get(&name).map(|(body, _)| body.clone());
                ModelPrecondition::HasContent(name, there)
            }
        }
    }

    fn abandon_upload(&mut self) -> Result<(), String> {
        let length = self.choices.one_of(&BODY_BYTES);
        stage(self.store(), &body(self.played.steps, length)).map(drop).map_err(describe)
    }

    fn stage_body(&mut self) -> Result<(), String> {
        let name = self.name();
        let Some(object) = self.store().get(&name).map_err(describe)? else { return Ok(()) };
        let body = self.store().body(&object).map_err(describe)?;
        let (bytes, _) = self.model.objects.get(&name).ok_or("nothing of this name was put")?;
        if self.staged.len() == STAGED_MAX {
            self.staged.remove(0);
        }
        self.staged.push((body, bytes.clone()));
        Ok(())
    }

    fn list(&mut self) -> Result<(), String> {
        let bucket = self.bucket();
        let page = 1 + self.choices.below(7);
        let prefix = self.choices.one_of(&PREFIXES);
        let listed = keys(self.store(), &bucket, prefix, page).map_err(describe)?;
        let expected: Vec<ObjectKey> = self.keys_of(&bucket, prefix).collect();
        if listed != expected {
            return Err(format!("{prefix:?} lists {listed:?}, not {expected:?}"));
        }
        let folder = self.choices.one_of(&FOLDERS);
        let listed = self.list_folder(&bucket, folder, page)?;
        let mut folders = Vec::new();
        let mut files = Vec::new();
        for key in self.keys_of(&bucket, folder) {
            match key.as_str()[folder.len()..].split_once('/') {
                Some((component, _)) => folders.push(format!("{folder}{component}")),
                None if key.as_str() != folder => files.push(key.as_str().to_owned()),
                None => {}
            }
        }
        folders.sort();
        folders.dedup();
        let mut expected: Vec<String> = folders.iter().map(|folder| format!("{folder}/")).collect();
        expected.append(&mut files);
        if listed != expected {
            return Err(format!("the folder {folder:?} holds {listed:?}, not {expected:?}"));
        }
        Ok(())
    }

    /// Returns the keys of the model with a prefix, in byte order.
    fn keys_of(&self, bucket: &BucketName, prefix: &str) -> impl Iterator<Item = ObjectKey> {
        let names = self.model.objects.keys().filter(|name| name.bucket == *bucket);
        names.map(|name| name.key.clone()).filter(move |key| key.as_str().starts_with(prefix))
    }

    /// Lists the direct children of a folder, page by page: its folders, then its files.
    fn list_folder(
        &self,
        bucket: &BucketName,
        folder: &str,
        page: usize,
    ) -> Result<Vec<String>, String> {
        let folder = FolderKey::parse(folder).map_err(|why| why.to_string())?;
        let mut all = Vec::new();
        let mut after: Option<FolderCursor> = None;
        loop {
            let found = self
                .store()
                .list_folder(bucket, &folder, after.as_ref(), page)
                .map_err(describe)?;
            if found.folders.len() + found.files.len() > page {
                return Err(format!("a page of {page} holds more"));
            }
            all.extend(found.folders.iter().map(|folder| folder.as_str().to_owned()));
            all.extend(found.files.iter().map(|file| file.name().key.as_str().to_owned()));
            after = found.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// Ends the process in one of several ways and starts it again, possibly without the index.
    fn reopen(&mut self) -> Result<(), String> {
        let way = self.choices.byte();
        self.staged.clear();
        if way.is_multiple_of(2) {
            self.store().close().map_err(describe)?;
        }
        if way % 4 == 1 {
            self.world.disk.restart_process();
        }
        let loses_index = way >= 192;
        self.open(|world| {
            if loses_index {
                let _ = world.disk.remove("index.redb");
            }
        })
    }

    /// Drops the store and opens another. Fails when power is cut before it is open.
    fn open(&mut self, before: impl FnOnce(&World)) -> Result<(), String> {
        self.store = None;
        before(&self.world);
        let (store, report) = self.world.try_open().map_err(describe)?;
        if !report.damage.is_empty() {
            return Err(format!("damage: {report}"));
        }
        self.store = Some(store);
        Ok(())
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("a step begins with an open store")
    }

    /// Restores power, possibly with further cuts, until the store is open.
    fn recover(&mut self) -> Result<(), String> {
        self.staged.clear();
        loop {
            self.played.crashes += 1;
            let (policy, seed) = (self.choices.one_of(&LossPolicy::ALL), self.choices.pair());
            let again = self.choices.byte();
            let opened = self.open(|world| {
                world.disk.power_on(policy, seed.into());
                if again >= 192 {
                    let after = world.disk.operations() + u64::from(again % 16);
                    world.disk.cut_power_after(after);
                }
            });
            match opened {
                Err(_) if self.world.disk.is_off() => {}
                opened => break opened?,
            }
        }
        // An armed cut that was not reached would hit the reads that follow.
        self.world.disk.cut_power_after(u64::MAX);
        let contents = Contents::of(self.store())?;
        let mut possible = self.model.clone();
        let mut faults = Vec::new();
        for changes in [Vec::new()].into_iter().chain(std::mem::take(&mut self.under_way)) {
            possible.apply(&changes);
            match contents.check_against(&possible) {
                Ok(()) => {
                    self.model = possible;
                    return Ok(());
                }
                Err(fault) => faults.push(fault),
            }
        }
        Err(faults.join("; or: "))
    }

    fn compare(&mut self) -> Result<(), String> {
        for (held, bytes) in &self.staged {
            let from = SeededRng::new(self.played.steps).below(1 + held.bytes());
            let mut seen = Vec::new();
            while from + (seen.len() as u64) < held.bytes() {
                let start = from + seen.len() as u64;
                seen.extend_from_slice(&held.read(start..held.bytes()).map_err(describe)?);
            }
            if bytes[from as usize..] != seen {
                return Err(format!("a held body of {} bytes reads otherwise", bytes.len()));
            }
        }
        for (name, (bytes, _)) in &self.model.objects {
            if read(self.store(), name).map_err(describe)?.as_ref() != Some(&bytes.to_vec()) {
                return Err(format!("{name} reads otherwise"));
            }
        }
        Contents::of(self.store())?.check_against(&self.model)
    }

    /// Checks that the current state survives a power cut, and the loss of the index.
    fn end(mut self) -> Result<Played, String> {
        self.under_way.clear();
        self.world.disk.cut_power_after(u64::MAX);
        self.compare()?;
        self.world.disk.cut_power();
        self.choices = ChoiceSequence::new(&[]);
        self.recover()?;
        let before = Contents::of(self.store())?;
        self.open(|world| {
            let _ = world.disk.remove("index.redb");
        })?;
        if Contents::of(self.store())? != before {
            return Err("the rebuilt index shows something else".to_owned());
        }
        Ok(self.played)
    }
}

fn describe(error: Error) -> String {
    error.to_string()
}
