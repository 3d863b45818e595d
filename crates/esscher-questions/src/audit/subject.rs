//! The subject of an audit: a checkpoint that is loaded once and shared by all plans that ask for it.

use super::excerpt::{ChosenText, Excerpt};
use super::files::{self, told};
use crate::Sources;
use crate::conduct::Error;
use esscher_audit::checkpoint::{Checkpoint, Source};
use esscher_audit::model::Model;
use esscher_audit::vocabulary::Vocabulary;
use esscher_lab::specification::{Mistake, Section};
use esscher_models::{MODELS, ModelChoice};
use esscher_report::literal;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// The texts that plans have asked for.
    cut: Mutex<Vec<CutText>>,
}

/// The first tokens of a part of a text.
struct CutText {
    sha256: String,
    excerpt: Excerpt,
    /// As many were asked for.
    most: usize,
    tokens: Arc<[u32]>,
}

/// Segments are spread over so many tokens of a text, the first ones, or over as many as they need: a longer text is not read to its
/// end for a few segments. Every text that comes with the audit is shorter, whatever the vocabulary.
const SPREAD: usize = 1 << 18;

impl Subject {
    /// Reads `model` with its sums, and loads it: lengths are checked against its context.
    pub(crate) fn read(section: &mut Section, sources: &Sources) -> Result<Arc<Self>, Mistake> {
        let store = sources.store().map_err(|error| told(section, "model", error))?;
        let choice = files::model(section, store)?;
        Self::load(&choice, sources).map_err(|error| told(section, "model", error))
    }

    /// The checkpoint of this name or path, fetched if need be.
    pub(crate) fn find(name_or_path: &str, sources: &Sources) -> Result<Arc<Self>, Error> {
        Self::load(&ModelChoice::find(name_or_path, sources.store()?)?, sources)
    }

    /// The checkpoint, fetched if need be.
    pub(crate) fn load(choice: &ModelChoice, sources: &Sources) -> Result<Arc<Self>, Error> {
        sources.subjects().get(choice, || {
            let bytes = choice.load(sources.store()?, &|what| sources.tell(what))?;
            let checkpoint = Checkpoint::read(&Source {
                name: &choice.name,
                weights: &bytes.checkpoint,
                config: bytes.configuration.as_deref(),
                tokenizer: bytes.vocabulary.as_deref(),
            })?;
            drop(bytes);
            let vocabulary = checkpoint.vocabulary.ok_or_else(|| {
                let (part, beside) = ("a vocabulary", "tokenizer.json or tokenizer.bin");
                esscher_audit::Error::MissingFile { file: choice.name.clone(), part, beside }
            })?;
            Ok(Subject {
                name: choice.name.clone(),
                sha256: choice.sha256.checkpoint.clone(),
                format: checkpoint.format.name(),
                model: Model::new(checkpoint.weights)?,
                vocabulary,
                cut: Mutex::default(),
            })
        })
    }

    /// Whether it is the model of this name, however it was given.
    pub(crate) fn is(&self, name: &str) -> bool {
        MODELS.iter().any(|model| model.is_called(name) && model.files.checkpoint.sha256 == self.sha256)
    }

    /// In words, prose.
    pub(crate) fn in_words(&self) -> String {
        format!("`{}`, {}, {}", literal(&self.name), self.format, files::short(&self.sha256))
    }

    /// The first tokens of a text, nothing put around them: so many as are needed, or as segments are spread over if that is more.
    /// The plans of an audit ask for the same texts, which are cut once.
    pub(crate) fn tokens(
        &self,
        text: &ChosenText,
        needed: usize,
    ) -> Result<Arc<[u32]>, esscher_audit::Error> {
        let mut known = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        let most = needed.max(SPREAD);
        let same =
            |cut: &&CutText| (&cut.sha256, cut.excerpt, cut.most) == (&text.text.sha256, text.excerpt, most);
        if let Some(cut) = known.iter().find(same) {
            return Ok(cut.tokens.clone());
        }
        let tokens: Arc<[u32]> = self.vocabulary.first_tokens(text.content(), most)?.into();
        let (sha256, excerpt) = (text.text.sha256.clone(), text.excerpt);
        known.push(CutText { sha256, excerpt, most, tokens: tokens.clone() });
        Ok(tokens)
    }
}
