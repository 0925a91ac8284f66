//! A batch in words of the model, and what it is to come to.
//!
//! Never here: which batches are asked for.

use bytes::Bytes;
use engine::{Batch, Conflict, Etag, FactName, ObjectName, Precondition, Result, Staged, Store};

use crate::model::{Change, Model, batch_with, stage};

/// A batch in words of the model.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What is to change.
    pub changes: Vec<Change>,
    /// What must hold for it.
    pub required: Vec<Required>,
}

/// A precondition in words of the model: a key that is to have a content has these bytes, or none known.
#[derive(Clone, Debug)]
pub enum Required {
    /// Nothing has this name.
    Absent(ObjectName),
    /// Something has.
    Present(ObjectName),
    /// It has this content.
    Is(ObjectName, Option<Bytes>),
    /// There is no such fact.
    FactAbsent(FactName),
    /// There is.
    FactPresent(FactName),
}

/// What a batch is to come to: how many of its deletions find something, or the conflict.
pub type Outcome = std::result::Result<usize, Conflict>;

impl Asked {
    /// The batch as the store takes it; bodies are uploaded.
    pub fn batch(&self, store: &Store) -> Result<Batch> {
        self.batch_with(store, &mut |body| stage(store, body))
    }

    /// The same, with bodies uploaded in another way.
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

    /// What the batch comes to on a store of this model.
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
