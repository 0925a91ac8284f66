//! Batches in terms of the model, and their expected outcome.
//!
//! Non-goals: choosing the batches.

use bytes::Bytes;
use engine::{
    Batch, Conflict, Etag, FactName, ObjectName, Precondition, Result, StagedBody, Store,
};

use crate::model::{Change, Model, batch_with, stage};

/// A batch in terms of the model.
#[derive(Clone, Debug)]
pub struct ModelBatch {
    /// Changes of the batch.
    pub changes: Vec<Change>,
    /// Preconditions of the batch.
    pub preconditions: Vec<ModelPrecondition>,
}

/// A precondition in terms of the model. A required content is given as bytes; none means unknown bytes.
#[derive(Clone, Debug)]
pub enum ModelPrecondition {
    /// No object has this name.
    Absent(ObjectName),
    /// An object has this name.
    Present(ObjectName),
    /// The object has this content.
    HasContent(ObjectName, Option<Bytes>),
    /// The fact does not exist.
    FactAbsent(FactName),
    /// The fact exists.
    FactPresent(FactName),
}

/// Expected outcome of a batch: the number of deletions that find an object, or the conflict.
pub type Outcome = std::result::Result<usize, Conflict>;

impl ModelBatch {
    /// Builds the engine's batch, with its bodies uploaded.
    pub fn batch(&self, store: &Store) -> Result<Batch> {
        self.batch_with(store, &mut |body| stage(store, body))
    }

    /// Builds the engine's batch, with bodies uploaded by the given function.
    pub fn batch_with(
        &self,
        store: &Store,
        stage: &mut dyn FnMut(&Bytes) -> Result<StagedBody>,
    ) -> Result<Batch> {
        let mut batch = batch_with(&self.changes, stage)?;
        for required in &self.preconditions {
            batch = batch.require(match required {
                ModelPrecondition::Absent(name) => Precondition::KeyAbsent(name.clone()),
                ModelPrecondition::Present(name) => Precondition::KeyPresent(name.clone()),
                ModelPrecondition::FactAbsent(name) => Precondition::FactAbsent(name.clone()),
                ModelPrecondition::FactPresent(name) => Precondition::FactPresent(name.clone()),
                ModelPrecondition::HasContent(name, None) => {
                    Precondition::KeyHasEtag(name.clone(), Etag::of_hash(&[0; 32]))
                }
                ModelPrecondition::HasContent(name, Some(_)) => match store.get(name)? {
                    Some(object) => Precondition::KeyHasEtag(name.clone(), object.etag()),
                    None => panic!("{name} is missing"),
                },
            });
        }
        Ok(batch)
    }

    /// Returns the outcome of the batch on a store with the state of this model.
    pub fn expected_outcome(&self, model: &Model) -> Outcome {
        for required in &self.preconditions {
            let object = |name: &ObjectName| model.objects.get(name).map(|(body, _)| body);
            let conflict = match required {
                ModelPrecondition::Absent(name) => {
                    object(name).map(|_| Conflict::KeyPresent(name.clone()))
                }
                ModelPrecondition::Present(name) if object(name).is_none() => {
                    Some(Conflict::KeyMissing(name.clone()))
                }
                ModelPrecondition::HasContent(name, wanted) => match object(name) {
                    None => Some(Conflict::KeyMissing(name.clone())),
                    there if there != wanted.as_ref() => Some(Conflict::KeyChanged(name.clone())),
                    Some(_) => None,
                },
                ModelPrecondition::FactAbsent(name) if model.facts.contains_key(name) => {
                    Some(Conflict::FactPresent(name.clone()))
                }
                ModelPrecondition::FactPresent(name) if !model.facts.contains_key(name) => {
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
