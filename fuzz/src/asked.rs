//! Batches in terms of the model, and their expected outcome.
//!
//! Non-goals: choosing the batches.

use bytes::Bytes;
use engine::{Batch, Conflict, Etag, FactName, ObjectName, Precondition, Result, Staged, Store};

use crate::model::{Change, Model, batch_with, stage};

/// A batch in terms of the model.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Changes of the batch.
    pub changes: Vec<Change>,
    /// Preconditions of the batch.
    pub required: Vec<Required>,
}

/// A precondition in terms of the model. A required content is given as bytes; none means unknown bytes.
#[derive(Clone, Debug)]
pub enum Required {
    /// No object has this name.
    Absent(ObjectName),
    /// An object has this name.
    Present(ObjectName),
    /// The object has this content.
    Is(ObjectName, Option<Bytes>),
    /// The fact does not exist.
    FactAbsent(FactName),
    /// The fact exists.
    FactPresent(FactName),
}

/// Expected outcome of a batch: the number of deletions that find an object, or the conflict.
pub type Outcome = std::result::Result<usize, Conflict>;

impl Asked {
    /// Builds the engine's batch, with its bodies uploaded.
    pub fn batch(&self, store: &Store) -> Result<Batch> {
        self.batch_with(store, &mut |body| stage(store, body))
    }

    /// Builds the engine's batch, with bodies uploaded by the given function.
    pub fn batch_with(
        &self,
        store: &Store,
        stage: &mut dyn FnMut(&Bytes) -> Result<Staged>,
    ) -> Result<Batch> {
        let mut batch = batch_with(&self.changes, stage)?;
        for required in &self.required {
            batch = batch.require(match required {
                Required::Absent(name) => Precondition::KeyAbsent(name.clone()),
                Required::Present(name) => Precondition::KeyPresent(name.clone()),
                Required::FactAbsent(name) => Precondition::FactAbsent(name.clone()),
                Required::FactPresent(name) => Precondition::FactPresent(name.clone()),
                Required::Is(name, None) => {
                    Precondition::KeyIs(name.clone(), Etag::of_hash(&[0; 32]))
                }
                Required::Is(name, Some(_)) => match store.get(name)? {
                    Some(object) => Precondition::KeyIs(name.clone(), object.etag()),
                    None => panic!("{name} is missing"),
                },
            });
        }
        Ok(batch)
    }

    /// Returns the outcome of the batch on a store with the state of this model.
    pub fn outcome(&self, model: &Model) -> Outcome {
        for required in &self.required {
            let object = |name: &ObjectName| model.objects.get(name).map(|(body, _)| body);
            let conflict = match required {
                Required::Absent(name) => object(name).map(|_| Conflict::KeyPresent(name.clone())),
                Required::Present(name) if object(name).is_none() => {
                    Some(Conflict::KeyMissing(name.clone()))
                }
                Required::Is(name, wanted) => match object(name) {
                    None => Some(Conflict::KeyMissing(name.clone())),
                    there if there != wanted.as_ref() => Some(Conflict::KeyChanged(name.clone())),
                    Some(_) => None,
                },
                Required::FactAbsent(name) if model.facts.contains_key(name) => {
                    Some(Conflict::FactPresent(name.clone()))
                }
                Required::FactPresent(name) if !model.facts.contains_key(name) => {
                    Some(Conflict::FactMissing(name.clone()))
                }
                _ => None,
            };
            if let Some(conflict) = conflict {
                return Err(conflict);
            }
        }
        let mut model = model.clone();
        let mut deleted = 0;
        for change in &self.changes {
            if let Change::Delete(name) = change {
                deleted += usize::from(model.objects.contains_key(name));
            }
            model.apply(std::slice::from_ref(change));
        }
        Ok(deleted)
    }
}
