//! The subject of an audit: a checkpoint that is loaded once per process and shared by all plans that ask for it.

use crate::conduct::Error;
use crate::models::{self, MODELS, ModelStore, Part};
use crate::reading::{self, ModelChoice};
use esscher_audit::checkpoint::{Checkpoint, Source};
use esscher_audit::model::Model;
use esscher_audit::vocabulary::Vocabulary;
use esscher_lab::specification::{Mistake, Section};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A checkpoint that can be run.
pub(crate) struct Subject {
    /// Its proper name, or the path as it was given.
    pub(crate) name: String,
    /// Of its main file.
    pub(crate) sha256: String,
    /// What the main file is.
    pub(crate) format: &'static str,
    pub(crate) model: Model,
    pub(crate) vocabulary: Vocabulary,
}

/// Loaded checkpoints that somebody still holds.
static LOADED: Mutex<Vec<(ModelChoice, Weak<Subject>)>> = Mutex::new(Vec::new());

impl Subject {
    /// Reads `model` with its sums, and loads it: lengths are checked against its context.
    pub(crate) fn read(section: &mut Section) -> Result<Arc<Self>, Mistake> {
        let store = ModelStore::of_user().map_err(|error| told(section, &error))?;
        let choice = reading::model(section, &store, None)?;
        Self::load(&choice, &store, &models::told).map_err(|error| told(section, &error))
    }

    /// The checkpoint of this name or path, fetched if need be; `progress` hears of what takes long.
    pub(crate) fn find(
        name_or_path: &str,
        store: &ModelStore,
        progress: &dyn Fn(&str),
    ) -> Result<Arc<Self>, Error> {
        Self::load(&ModelChoice::find(name_or_path, store)?, store, progress)
    }

    /// The checkpoint, fetched if need be.
    pub(crate) fn load(
        choice: &ModelChoice,
        store: &ModelStore,
        progress: &dyn Fn(&str),
    ) -> Result<Arc<Self>, Error> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|(_, subject)| subject.strong_count() > 0);
        if let Some(subject) =
            loaded.iter().find(|(known, _)| known == choice).and_then(|(_, held)| held.upgrade())
        {
            return Ok(subject);
        }
        let bytes = choice.load(store, progress)?;
        let checkpoint = Checkpoint::read(&Source {
            name: &choice.name,
            weights: &bytes.checkpoint,
            config: bytes.configuration.as_deref(),
            tokenizer: bytes.vocabulary.as_deref(),
        })?;
        drop(bytes);
        let vocabulary = checkpoint.vocabulary.ok_or_else(|| {
            esscher_audit::Error::Request(format!(
                "{} comes without a vocabulary: put its tokenizer.json or tokenizer.bin beside it",
                choice.name
            ))
        })?;
        let subject = Arc::new(Subject {
            name: choice.name.clone(),
            sha256: choice.sha256.clone(),
            format: checkpoint.format.name(),
            model: Model::new(checkpoint.weights)?,
            vocabulary,
        });
        loaded.push((choice.clone(), Arc::downgrade(&subject)));
        Ok(subject)
    }

    /// Whether it is the model of this name, however it was given.
    pub(crate) fn is(&self, name: &str) -> bool {
        let named = MODELS.iter().find(|model| model.is_called(name));
        named.and_then(|model| model.sha256(Part::Checkpoint)) == Some(self.sha256.as_str())
    }

    /// The tokens of a text, nothing put around them.
    pub(crate) fn tokens(&self, text: &str) -> Result<Vec<u32>, esscher_audit::Error> {
        self.vocabulary.encode_bare(text)
    }
}

pub(super) fn told(section: &mut Section, error: &Error) -> Mistake {
    let mut mistake = section.mistake("model", error);
    mistake.hint = error.hint();
    mistake
}
