//! Batches: submission, outcomes, and their effect on the model.

use std::sync::mpsc::{Receiver, channel};

use bytes::Bytes;
use engine::commit::CommitStep;
use engine::{BucketName, CommitInfo, Error, FactName, ObjectName, Store};
use tests::model_batch::{ModelBatch, ModelPrecondition};
use tests::store::{Change, Contents, Model, body, bucket_named, fact, name_in, stage};

use super::run::{Put, Run, TOKENS, is_read_only};

const KEYS: [&str; 18] = [
    "a",
    "a/",
    "a/b",
    "a-b",
    "a.b/c",
    "d/e/f",
    "d/e",
    "g",
    "a/b/c",
    "é",
    "é/ü",
    "d/",
    "z/1",
    "z/2",
    "many/Holiday-photos.png",
    "many/reinvoiced2026/x",
    "é/Été_vacances.jpg",
    "d/myHouse",
];

impl Run {
    /// Commits so many batches in one group.
    pub(super) fn commit(&mut self, store: &Store, count: u64) -> Result<(), String> {
        let asked = (0..count).map(|_| self.random_batch()).collect();
        self.submit(store, asked)
    }

    /// Issues a token, or consumes one together with an object, perhaps twice at once.
    pub(super) fn use_tokens(&mut self, store: &Store) -> Result<(), String> {
        let at = self.below(TOKENS as u64) as usize;
        let token = token(at);
        if self.below(2) == 0 {
            let value = self.body(40);
            self.tokens[at] = None;
            let change = Change::PutFact(token.clone(), value.clone());
            self.submit(
                store,
                vec![ModelBatch { changes: vec![change], preconditions: Vec::new() }],
            )?;
            if self.model.facts.get(&token) == Some(&value) {
                self.tokens[at] = Some(value);
            }
            return Ok(());
        }
        // A token's object has its value as its body, so that each identifies the other.
        let value = self.model.facts.get(&token).cloned().unwrap_or_default();
        let use_up = || {
            let mut required = vec![ModelPrecondition::FactPresent(token.clone())];
            if self.below(4) == 0 {
                required.push(ModelPrecondition::Absent(token_object(at)));
            }
            let put = Change::Put(token_object(at), value.clone());
            ModelBatch {
                changes: vec![put, Change::DeleteFact(token.clone())],
                preconditions: required,
            }
        };
        let asked: Vec<ModelBatch> = (0..=self.below(2)).map(|_| use_up()).collect();
        self.tally.count("tokens presented");
        self.submit(store, asked)
    }

    /// Checks that a token's value is in the token or in the object that consumed it: in one of them, never in both.
    pub(super) fn tokens_must_be_whole(&mut self, contents: &Contents) -> Result<(), String> {
        for (at, issued) in self.tokens.iter().enumerate() {
            let there = contents.facts.get(&token(at));
            let used = contents.objects.get(&token_object(at)).map(|seen| &seen.body);
            if there.is_some() && there == used {
                return Err(format!("token {at} was used up and is there"));
            }
            if issued.is_some() && there != issued.as_ref() && used != issued.as_ref() {
                return Err(format!("token {at} is gone, and nothing was put for it"));
            }
        }
        Ok(())
    }

    /// Uploads a body that waits for its batch, or drops it at some point.
    pub(super) fn upload(&mut self, store: &Store) -> Result<(), String> {
        let bytes = self.some_body();
        let mut upload = store.upload();
        let pieces = 1 + self.below(4) as usize;
        for piece in bytes.chunks(bytes.len() / pieces + 1) {
            if self.below(8) == 0 {
                self.tally.count("uploads dropped");
                return Ok(());
            }
            if let Err(error) = upload.push(piece) {
                return self.excuse(store, "an upload", error);
            }
        }
        match upload.finish() {
            Ok(staged) => self.staged = Some((staged, bytes)),
            Err(error) => return self.excuse(store, "an upload", error),
        }
        if self.below(2) == 0 {
            self.tally.count("uploads dropped");
            self.staged = None;
        }
        Ok(())
    }

    fn random_batch(&mut self) -> ModelBatch {
        let changes = (0..=self.below(5)).map(|_| self.change()).collect();
        let count = if self.below(2) == 0 { self.below(3) } else { 0 };
        let required = (0..count).map(|_| self.required()).collect();
        ModelBatch { changes, preconditions: required }
    }

    fn change(&mut self) -> Change {
        match self.below(16) {
            0..=3 => Change::Delete(self.name()),
            4 | 5 => {
                let length = [0, 40, 4_000][self.below(3) as usize];
                Change::PutFact(self.fact(), self.body(length))
            }
            6 => Change::DeleteFact(self.fact()),
            7 | 8 => Change::PutDerived(self.name(), self.some_body()),
            9 if self.staged.is_some() => {
                let bytes = self.staged.as_ref().map(|(_, bytes)| bytes.clone());
                Change::Put(self.name(), bytes.unwrap_or_default())
            }
            _ => Change::Put(self.name(), self.some_body()),
        }
    }

    fn required(&self) -> ModelPrecondition {
        match self.below(6) {
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

    pub(super) fn bucket(&self) -> BucketName {
        bucket_named(if self.below(4) == 0 { "other" } else { "photos" })
    }

    /// Returns a name from a small set, so that most operations hit an existing object.
    pub(super) fn name(&self) -> ObjectName {
        let at = self.below(28) as usize;
        let key = match KEYS.get(at) {
            Some(key) => (*key).to_owned(),
            None if at == 27 => format!("long/{}", "k".repeat(1_000)),
            None => format!("many/{at}"),
        };
        name_in(&self.bucket(), &key)
    }

    fn fact(&self) -> FactName {
        fact(&format!("fact/{}", self.below(6)))
    }

    fn some_body(&mut self) -> Bytes {
        let inline = self.world.options.inline_bytes_max;
        let length = match self.below(32) {
            0..=15 => [0, 1, 100, 700][self.below(4) as usize],
            16..=23 => [1_500, 3_000, 4_095, 4_096, 4_097][self.below(5) as usize].min(inline),
            24..=29 => [inline - 1, inline, inline / 2, inline + 1][self.below(4) as usize],
            30 => 2 * inline + 1,
            _ => [65_535, 65_536, 65_537, 131_073][self.below(4) as usize],
        };
        self.body(length)
    }

    /// Returns unique bytes, where there are enough of them.
    fn body(&mut self, length: usize) -> Bytes {
        self.bodies += 1;
        Bytes::from(body(self.bodies, length))
    }

    /// Submits batches to the committer, together, and applies the outcomes to the model.
    pub(super) fn submit(&mut self, store: &Store, asked: Vec<ModelBatch>) -> Result<(), String> {
        let was_writable = !is_read_only(store);
        let mut batches = Vec::new();
        for asked in &asked {
            let kept = &mut self.staged;
            let batch =
                asked.batch_with(store, &mut |body| match kept.take_if(|(_, kept)| kept == body) {
                    Some((staged, _)) => Ok(staged),
                    None => stage(store, body),
                });
            match batch {
                Ok(batch) => batches.push(batch),
                Err(error) => return self.excuse(store, "a body", error),
            }
        }
        let answers: Vec<Receiver<Result<CommitInfo, Error>>> = batches
            .into_iter()
            .map(|batch| {
                let (answer, answered) = channel();
                store.submit(batch, move |result| {
                    let _ = answer.send(result);
                });
                answered
            })
            .collect();
        let mut doubtful: Option<[Model; 2]> = None;
        for (asked, answered) in asked.into_iter().zip(answers) {
            let answer = loop {
                match answered.try_recv() {
                    Ok(answer) => break answer,
                    Err(_) if store.step_committer() == CommitStep::Worked => {}
                    Err(_) => return Err("a batch is not answered".to_owned()),
                }
            };
            let expected =
                asked.expected_outcome(doubtful.as_ref().map_or(&self.model, |[all, _]| all));
            match (answer, expected) {
                (Ok(committed), Ok(deleted))
                    if committed.deleted_count == deleted && doubtful.is_none() =>
                {
                    self.done(&asked, &committed)?;
                }
                (Err(Error::Conflict(found)), Err(conflict)) if found == conflict => {
                    self.tally.count("batches refused by a precondition");
                }
                // The queue and the segments have bounds that the model does not know.
                (Err(Error::TooLarge(_)), _) if asked.bytes() > self.batch_bytes_max() => {
                    self.tally.count("batches too large");
                }
                (Err(error), _) => {
                    self.excuse(store, "a batch", error)?;
                    self.tally.count("batches that failed");
                    if was_writable && is_read_only(store) {
                        let next = || [self.model.clone(), self.model.clone()];
                        let mut next = doubtful.take().unwrap_or_else(next);
                        self.doubt(&mut next, &asked);
                        doubtful = Some(next);
                    }
                }
                (answer, expected) => {
                    return Err(format!("a batch came to {answer:?}, not to {expected:?}"));
                }
            }
        }
        Ok(())
    }

    /// Records that a group failed with this batch in it. The disk may hold all of its batches so far, or, where there
    /// was no room for bodies, those without bodies.
    fn doubt(&mut self, [all, bodiless]: &mut [Model; 2], asked: &ModelBatch) {
        let had_no_space =
            self.trouble.is_full || self.world.disk.fault_count() > self.trouble.hits_before;
        if had_no_space && !asked.has_bodies() && asked.expected_outcome(bodiless).is_ok() {
            bodiless.apply(&asked.changes);
            self.doubts.push(bodiless.clone());
        }
        if asked.expected_outcome(all).is_ok() {
            all.apply(&asked.changes);
            self.doubts.push(all.clone());
            self.record_uncertain(&asked.changes);
        }
    }

    fn record_uncertain(&mut self, changes: &[Change]) {
        self.tally.count("batches in doubt");
        for change in changes {
            if let Change::Put(name, body) | Change::PutDerived(name, body) = change {
                self.unsure.entry(name.clone()).or_default().push(body.clone());
            }
        }
    }

    /// Applies an acknowledged batch.
    fn done(&mut self, asked: &ModelBatch, committed: &CommitInfo) -> Result<(), String> {
        let puts = asked.changes.iter().filter_map(|change| match change {
            Change::Put(name, body) => Some((name, body, false)),
            Change::PutDerived(name, body) => Some((name, body, true)),
            _ => None,
        });
        let puts: Vec<_> = puts.collect();
        if puts.len() != committed.objects.len() {
            return Err(format!("{} puts made {} objects", puts.len(), committed.objects.len()));
        }
        for ((name, body, derived), object) in puts.into_iter().zip(&committed.objects) {
            if object.name() != name || object.bytes() != body.len() as u64 {
                return Err(format!("{name} was put, and {} was made", object.name()));
            }
            let put = Put { bytes: body.clone(), derived, etag: object.etag() };
            self.versions.entry(name.clone()).or_default().insert(object.lsn(), put);
        }
        self.tally.count("batches committed");
        self.tally.count_many("changes", asked.changes.len() as u64);
        self.model.apply(&asked.changes);
        Ok(())
    }

    fn batch_bytes_max(&self) -> u64 {
        // The heads of records take room in addition to the bodies.
        self.world.options.segment_bytes / 2 - (16 << 10)
    }
}

/// Approximate log bytes of a batch.
trait Weigh {
    fn bytes(&self) -> u64;
    fn has_bodies(&self) -> bool;
}

impl Weigh for ModelBatch {
    fn bytes(&self) -> u64 {
        let of = |change: &Change| match change {
            Change::Put(_, body) | Change::PutDerived(_, body) | Change::PutFact(_, body) => {
                body.len() as u64
            }
            _ => 0,
        };
        self.changes.iter().map(of).sum()
    }

    fn has_bodies(&self) -> bool {
        let is_body = |it: &Change| matches!(it, Change::Put(..) | Change::PutDerived(..));
        self.changes.iter().any(is_body)
    }
}

fn token(at: usize) -> FactName {
    fact(&format!("token/{at}"))
}

fn token_object(at: usize) -> ObjectName {
    name_in(&bucket_named("tokens"), &format!("uploaded/{at}"))
}
