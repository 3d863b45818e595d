//! Dumps as the matter of an audit: what the heads of one model saw of several texts of one length, a file for each.

use super::SHORTEST;
use super::calibrated::Shared;
use super::files::{check_sum, told};
use crate::Sources;
use crate::conduct::Error;
use esscher_audit::Error as Refusal;
use esscher_audit::calibration::{Calibration, Observations};
use esscher_audit::checkpoint::Dump;
use esscher_audit::examination::{Findings, Questions, examine_dump};
use esscher_audit::model::Shape;
use esscher_core::Monitor;
use esscher_lab::Failure;
use esscher_lab::specification::{Mistake, Section, Written};
use esscher_models::{ModelChoice, ModelFile, ModelStore, is_dump, tiny};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Dumps that fit together. Only one at a time is in memory.
pub(crate) struct Dumps {
    /// In the order in which they were given.
    pub(crate) files: Vec<DumpFile>,
    pub(crate) shape: Shape,
    /// The first dump and layer without residual stream or output projection.
    without_stream: Option<(String, usize)>,
    /// What each told of its readers.
    observed: Shared<Vec<Observations>>,
}

/// A dump by its path as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DumpFile {
    pub(crate) name: String,
    file: ModelFile,
}

/// So many texts decide something.
const DECIDING: usize = 3;

impl Dumps {
    /// The dumps at these paths, which a specification asks for; if sums are given, the files must have them.
    pub(crate) fn asked(
        section: &mut Section,
        paths: &[String],
        sums: Option<&[String]>,
        sources: &Sources,
    ) -> Result<Arc<Self>, Mistake> {
        let found = sources.store().map_err(Error::from).and_then(|store| DumpFile::find(paths, store));
        let files = found.map_err(|error| told(section, "dumps", error))?;
        for (file, expected) in files.iter().zip(sums.unwrap_or_default()) {
            check_sum(section, "dumps_sha256", expected, file.sha256(), &format!("the dump {}", file.name))?;
        }
        if sums.is_none() {
            let found = files.iter().map(|file| Written::Text(file.sha256().to_string()));
            section.fill("dumps_sha256", &Written::list(found));
        }
        Self::load(files, sources).map_err(|error| told(section, "dumps", error))
    }

    /// The dumps at these paths.
    pub(crate) fn find(paths: &[String], sources: &Sources) -> Result<Arc<Self>, Error> {
        Self::load(DumpFile::find(paths, sources.store()?)?, sources)
    }

    /// The one dump that was chosen as a model.
    pub(crate) fn chosen(choice: &ModelChoice, sources: &Sources) -> Result<Arc<Self>, Error> {
        let mut file = sources.store()?.find_path(&choice.name)?.checkpoint;
        file.sha256.clone_from(&choice.sha256.checkpoint);
        Self::load(vec![DumpFile { name: choice.name.clone(), file }], sources)
    }

    fn load(files: Vec<DumpFile>, sources: &Sources) -> Result<Arc<Self>, Error> {
        sources.dumps().get(&files, || Self::checked(&files))
    }

    fn checked(files: &[DumpFile]) -> Result<Self, Error> {
        let mut first: Option<(String, Shape)> = None;
        let (mut without_stream, mut sums) = (None, Vec::new());
        for file in files {
            let dump = file.dump()?;
            let shape = dump.shape;
            // Of the arrays: two files of one text differ in the time of their writing.
            let sum = dump.sum_of_arrays();
            if let Some(same) = sums.iter().position(|other| *other == sum) {
                let (one, other) = (files[same].name.clone(), file.name.clone());
                return Err(Refusal::SameDump { one, other }.into());
            }
            sums.push(sum);
            without_stream = without_stream
                .or_else(|| dump.first_layer_without_stream().map(|layer| (file.name.clone(), layer)));
            if (shape.context as u64) < SHORTEST {
                return Err(Refusal::TooFewTokens {
                    what: "a dump",
                    found: shape.context,
                    needed: SHORTEST as usize,
                    purpose: format!("an audit of {}", file.name),
                    remedy: "record a longer text",
                }
                .into());
            }
            let (reference, expected) = first.get_or_insert_with(|| (file.name.clone(), shape));
            if let Some((expected, found)) = difference(expected, &shape) {
                return Err(Refusal::OtherModel {
                    what: file.name.clone(),
                    reference: reference.clone(),
                    expected,
                    found,
                    remedy: "the dumps of an audit are of one model on texts of one length",
                }
                .into());
            }
        }
        let (_, shape) = first.ok_or(Refusal::NothingToAudit)?;
        Ok(Dumps { files: files.to_vec(), shape, without_stream, observed: Shared::default() })
    }

    /// What to call them together.
    pub(crate) fn name(&self) -> String {
        let first = self.files.first().map_or("", |file| &file.name);
        match self.files.len() {
            0 | 1 => first.to_string(),
            2 => format!("{first} and another dump"),
            count => format!("{first} and {} other dumps", count - 1),
        }
    }

    /// Why no error relative to the residual stream can be told, if none can.
    pub(crate) fn no_residual(&self) -> Option<String> {
        let (name, layer) = self.without_stream.as_ref()?;
        Some(format!(
            "`residual` needs the residual stream and the output projection of every layer, but layer {layer} of {name} was \
             recorded without: record `layer.{layer}.residual` and `layer.{layer}.output`, or take `output`"
        ))
    }

    /// Which are measured. Of two the first calibrates and the second is measured: errors with each other's readers would not be
    /// independent, so that they would be one text all the same.
    pub(crate) fn measured(&self) -> Range<usize> {
        match self.files.len() {
            2 => 1..2,
            count => 0..count,
        }
    }

    /// Which calibrate the readers for one that is measured: the others, or if there is none itself.
    fn calibrating(&self, measured: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.files.len();
        (0..count).filter(move |number| *number != measured || count == 1)
    }

    /// What calibrates what, in words.
    pub(crate) fn in_words(&self) -> String {
        match self.files.len() {
            0 | 1 => "one, which calibrates its own readers".to_string(),
            2 => "two: the first calibrates the readers' tilts, the second is measured".to_string(),
            count => format!(
                "{count}: each is measured with readers that the others calibrate, so that the texts' errors share calibration and \
                 are not quite independent"
            ),
        }
    }

    /// What to try if nothing can be decided.
    pub(crate) fn advice(&self) -> Option<String> {
        let count = self.files.len();
        (count < DECIDING).then(|| {
            let found = if count == 1 { "one dump is" } else { "two dumps measure" };
            format!(
                "{found} one text, which decides nothing: every verdict is uncertain. Several dumps decide: record texts of the \
                 same length, four or more, and give all of them"
            )
        })
    }

    /// Examines the dump with this number; nothing if the monitor asked to stop.
    pub(crate) fn examine(
        &self,
        number: usize,
        questions: &Questions,
        monitor: &dyn Monitor,
    ) -> Result<Option<Vec<Findings>>, Failure> {
        let file = self.files.get(number).ok_or_else(|| format!("there is no dump {number}"))?;
        let Some(observed) = self.observed.get(monitor, |monitor| self.observe(monitor))? else {
            return Ok(None);
        };
        let others = self.calibrating(number).filter_map(|number| observed.get(number));
        let calibration: Calibration = Observations::calibration(others)?;
        Ok(examine_dump(&file.dump()?, questions, &calibration, monitor)?)
    }

    fn observe(&self, monitor: &dyn Monitor) -> Result<Option<Vec<Observations>>, Failure> {
        let observe = |file: &DumpFile| -> Result<Option<Observations>, Failure> {
            if monitor.should_stop() {
                return Ok(None);
            }
            Ok(Observations::of_dump(&file.dump()?, monitor)?)
        };
        self.files.iter().map(|file| observe(file).transpose()).collect::<Option<_>>().transpose()
    }
}

impl DumpFile {
    fn find(paths: &[String], store: &ModelStore) -> Result<Vec<Self>, Error> {
        let found = |path: &String| {
            // A name that is also a model's is meant as one; what is there and no dump needs no other reason to be refused.
            let is_model = store.named(path).is_some() || path == tiny::NAME;
            let is_other = Path::new(path).is_file() && !is_dump(Path::new(path));
            if !is_model && !is_other {
                let file = store.find_path(path)?.checkpoint;
                if is_dump(&file.path) {
                    return Ok(DumpFile { name: path.clone(), file });
                }
            }
            Err(Refusal::NotADump { file: path.clone() }.into())
        };
        paths.iter().map(found).collect()
    }

    /// In hexadecimal.
    pub(crate) fn sha256(&self) -> &str {
        &self.file.sha256
    }

    fn dump(&self) -> Result<Dump, Error> {
        Ok(Dump::read(&self.name, &self.file.read()?)?)
    }
}

/// In what two dumps differ that must be alike: expected and found.
fn difference(expected: &Shape, found: &Shape) -> Option<(String, String)> {
    if expected.order != found.order {
        return Some((format!("the order {}", expected.order), found.order.to_string()));
    }
    let sizes = |shape: &Shape| {
        [
            ("layers", shape.layers),
            ("query heads", shape.heads),
            ("key-value heads", shape.key_value_heads),
            ("numbers per head", shape.head_dimension),
            ("tokens", shape.context),
        ]
    };
    let mut pairs = sizes(expected).into_iter().zip(sizes(found));
    let ((what, expected), (_, found)) = pairs.find(|(expected, found)| expected != found)?;
    Some((format!("{expected} {what}"), format!("{found} {what}")))
}
