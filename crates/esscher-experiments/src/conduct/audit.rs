//! Audits a checkpoint: its heads, then the model with the heads replaced that may be, and one report on both; or the heads that
//! dumps hold.

use super::{Error, publish};
use crate::kinds::audit::dumps::Dumps;
use crate::kinds::audit::evidence::Evidence;
use crate::kinds::audit::heads::{CANDIDATES, HeadsPlan};
use crate::kinds::audit::model::ModelPlan;
use crate::kinds::audit::subject::Subject;
use crate::models::{ModelStore, is_dump};
use crate::reading::find_text;
use crate::{Planned, Settings, run_document};
use assignments::{Chosen, chosen};
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::dossier::Dossier;
use esscher_audit::head::Order;
use esscher_audit::replacement::Middle;
use esscher_audit::verdict::{Decision, Spread, Verdict};
use esscher_lab::{Experiment, Failure, Outcome, RunFolder, write_file};
use esscher_report::Document;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

mod assignments;
mod files;

pub use esscher_audit::dossier::Criterion;

/// What is to be audited.
#[derive(Debug, Clone)]
pub struct AuditRequest {
    /// A named model or the path of a checkpoint; or the paths of dumps of one model, one per text, whose heads alone are audited.
    pub models: Vec<String>,
    /// The text that calibrates and that heads are measured on, by name or path; one that suits the model if there is none.
    pub text: Option<String>,
    /// The text that the model is tested on; if only `text` is given, its last third, and the first two thirds calibrate.
    pub test: Option<String>,
    /// Tokens of a text; 256 or the model's context for none. The model is tested at the longest.
    pub lengths: Vec<u64>,
    /// Relative error of a head that is accepted.
    pub tolerance: f64,
    /// By which error.
    pub criterion: Criterion,
    /// What may replace a head; the usual ones for none.
    pub candidates: Vec<String>,
    /// Measured segments of each text; six of the first and eight of the second, or as many as there are, for none.
    pub texts: Option<u64>,
    /// Leave the model out.
    pub heads_only: bool,
    /// The folder that gets the audit's.
    pub out: PathBuf,
    /// Seed and instruction set.
    pub settings: Settings,
}

impl AuditRequest {
    /// An audit of this model with everything else as usual, below the folder `runs`.
    pub fn of(model: &str) -> Self {
        AuditRequest {
            models: vec![model.to_string()],
            text: None,
            test: None,
            lengths: Vec::new(),
            tolerance: 0.05,
            criterion: Criterion::Output,
            candidates: Vec::new(),
            texts: None,
            heads_only: false,
            out: PathBuf::from("runs"),
            settings: Settings::default(),
        }
    }
}

/// What an audit left behind.
#[derive(Debug, Clone)]
pub struct Audit {
    /// Its folder, with the runs `heads` and `model`.
    pub folder: PathBuf,
    /// What was found; nothing if it was stopped, and the same request goes on from there.
    pub found: Option<AuditFound>,
}

/// What an audit found.
#[derive(Debug, Clone)]
pub struct AuditFound {
    /// The model's name.
    pub model: String,
    /// Layers, query heads and key-value heads of a layer.
    pub sizes: [usize; 3],
    /// Tokens of the texts that verdicts are about.
    pub length: usize,
    /// Texts that heads were measured on.
    pub texts: usize,
    /// As it would be deployed: `streaming`, or `offline` where every token sees all.
    pub running: &'static str,
    /// The relative error that is accepted.
    pub tolerance: f64,
    /// Query heads, as deployed.
    pub heads: Counts,
    /// Query heads, offline.
    pub heads_offline: Counts,
    /// Key-value heads, as deployed: only these free memory.
    pub key_value_heads: Counts,
    /// The cheapest accepted replacements of key-value heads with their numbers, the most frequent first.
    pub replacements: Vec<(String, usize)>,
    /// What the model is tested by: `log loss`, or `embedding distance` where every token sees all.
    pub measured: &'static str,
    /// The model with exact attention and with replaced heads; empty for an audit of heads only.
    pub assignments: Vec<AssignmentFound>,
    /// What to try if the texts can decide nothing.
    pub advice: Option<String>,
    /// The report on all.
    pub report: PathBuf,
    /// Verdicts, errors and portraits of every head.
    pub verdicts: PathBuf,
    /// Which key-value heads must keep full attention, in the layout of DuoAttention.
    pub full_attention_heads: PathBuf,
}

/// How many heads got which verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Some replacement is within the tolerance.
    pub accepted: usize,
    /// The texts do not decide.
    pub uncertain: usize,
    /// None is.
    pub refused: usize,
}

impl AuditFound {
    /// Whether a difference of losses is one of log losses, whose exponential is a ratio of perplexities.
    pub fn has_perplexities(&self) -> bool {
        self.measured == LOG_LOSS
    }
}

impl Counts {
    fn of(decisions: &[Vec<Decision>]) -> Self {
        let count =
            |verdict| decisions.iter().flatten().filter(|decision| decision.verdict == verdict).count();
        Counts {
            accepted: count(Verdict::Accepted),
            uncertain: count(Verdict::Uncertain),
            refused: count(Verdict::Refused),
        }
    }

    /// All heads.
    pub fn all(&self) -> usize {
        self.accepted + self.uncertain + self.refused
    }
}

/// What the model does with some heads replaced.
#[derive(Debug, Clone)]
pub struct AssignmentFound {
    /// Its name; the first is exact attention.
    pub name: String,
    /// `offline` or `streaming`.
    pub running: &'static str,
    /// Query heads that are replaced.
    pub heads: usize,
    /// Key-value heads that need not be kept.
    pub key_value_heads: usize,
    /// The cache at the tested length as a share of exact attention's.
    pub cache_share: f64,
    /// The same at the model's context.
    pub cache_share_at_context: f64,
    /// Bytes of the cache at the model's context, exact and with this assignment.
    pub cache_bytes_at_context: (f64, f64),
    /// Mean log loss over texts; for encoders the distance of embeddings.
    pub loss: Estimated,
    /// Its difference to exact attention, paired over texts.
    pub difference: Estimated,
    /// The share of needles that are found, if any were hidden.
    pub retrieval: Option<Estimated>,
}

/// A mean over texts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimated {
    /// The mean.
    pub mean: f64,
    /// One standard error over texts.
    pub standard_error: Option<f64>,
}

impl From<Spread> for Estimated {
    fn from(spread: Spread) -> Self {
        Estimated { mean: spread.mean, standard_error: spread.standard_error }
    }
}

/// Audits a model: `run` computes a run in its folder under a label for progress, `told` hears of what takes long before.
///
/// # Errors
/// A model or a text that cannot be had, a request that does not fit the model, what `run` says, what the system refuses.
pub fn audit<E: From<Error>>(
    request: &AuditRequest,
    mut run: impl FnMut(&str, &Planned, &RunFolder) -> Result<Outcome, E>,
    told: impl Fn(&str),
) -> Result<Audit, E> {
    let prepared = Prepared::of(request, &told)?;
    let root = request.out.join(&prepared.name);
    let folder = RunFolder::open(&root.join("heads"), &prepared.heads).map_err(Error::from)?;
    let Outcome::Finished { result, provenance, .. } = run("heads", &prepared.heads, &folder)? else {
        return Ok(Audit { folder: root, found: None });
    };
    let heads = run_document(&prepared.heads, &result, &provenance).map_err(failed)?;
    publish(&folder, &heads)?;
    let plan = HeadsPlan::of_specification(prepared.heads.specification()).map_err(Error::from)?;
    let dossiers = plan.dossiers(&result).map_err(failed)?;
    let (length, dossier) = dossiers.last().ok_or_else(|| failed("no length was measured".into()))?;
    let mut found = prepared.found(request, &plan, *length, dossier, &root);
    let mut documents = vec![heads];
    if let Some(tested) = prepared.tested.as_ref().filter(|_| !request.heads_only) {
        let chosen = chosen(request, &plan, dossier, *length, prepared.heads.seed()).map_err(Error::from)?;
        let planned = tested.model(request, *length, &chosen)?;
        let folder = RunFolder::open(&root.join("model"), &planned).map_err(Error::from)?;
        let Outcome::Finished { result, provenance, .. } = run("model", &planned, &folder)? else {
            return Ok(Audit { folder: root, found: None });
        };
        let document = run_document(&planned, &result, &provenance).map_err(failed)?;
        publish(&folder, &document)?;
        let plan = ModelPlan::of_specification(planned.specification()).map_err(Error::from)?;
        found.assignments = assignments::found(&plan, &plan.losses(&result).map_err(failed)?);
        documents.insert(0, document);
    }
    let page = esscher_report::html(&joined(&found, documents));
    write_file(&found.report, page.as_bytes()).map_err(Error::from)?;
    let verdicts = files::verdicts(request, &plan, *length, dossier);
    write_file(&found.verdicts, verdicts.as_bytes()).map_err(Error::from)?;
    // Whoever reads that table drops the middle of the other heads.
    let dropped = Candidate::Measure { top: 0, middle: Middle::Dropped };
    let decisions =
        dossier.decide_groups(plan.deployed(), request.criterion, request.tolerance, &|candidate| {
            *candidate == dropped
        });
    let table = files::full_attention_heads(&decisions, request.tolerance);
    write_file(&found.full_attention_heads, table.as_bytes()).map_err(Error::from)?;
    let configuration = files::configuration(&plan.questions().frame);
    write_file(&root.join("config.json"), configuration.as_bytes()).map_err(Error::from)?;
    Ok(Audit { folder: root, found: Some(found) })
}

fn failed(failure: Failure) -> Error {
    Error::Lab(esscher_lab::Error::Result(failure))
}

/// A request with its heads planned.
struct Prepared {
    name: String,
    heads: Planned,
    /// What the model is tested on; dumps cannot be run.
    tested: Option<Tested>,
}

/// A checkpoint with the texts that calibrate and that test.
struct Tested {
    model: String,
    text: String,
    test: String,
    /// Whether the two are parts of one text.
    split: bool,
    /// Segments that the calibrating text is cut into, and how many of them calibrate.
    cut: u64,
    calibration: u64,
    segments: u64,
}

/// Segments of the texts, if there are as many.
const CALIBRATING: u64 = 2;
const MEASURED: u64 = 6;
const TESTED: u64 = 8;

impl Prepared {
    fn of(request: &AuditRequest, told: &dyn Fn(&str)) -> Result<Self, Error> {
        let store = ModelStore::of_user()?;
        match request.models.as_slice() {
            [model] if store.named(model).is_some() || !is_dump(Path::new(model)) => {
                Self::of_checkpoint(request, model, &store, told)
            }
            paths => Self::of_dumps(request, paths, &store, told),
        }
    }

    fn of_dumps(
        request: &AuditRequest,
        paths: &[String],
        store: &ModelStore,
        told: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        let given = [
            ("a text", request.text.is_some()),
            ("a text to test on", request.test.is_some()),
            ("a length", !request.lengths.is_empty()),
            ("a number of texts", request.texts.is_some()),
        ];
        if let Some((what, _)) = given.iter().find(|(_, given)| *given) {
            return Err(esscher_audit::Error::Request(format!(
                "{what} is given beside dumps, which hold what heads saw of their own texts: leave it out, and record other texts as \
                 other dumps"
            ))
            .into());
        }
        told(&match paths.len() {
            1 => "reading the dump".to_string(),
            count => format!("reading {count} dumps"),
        });
        // Read and checked before the specification is: a sentence about files, not about keys.
        let dumps = Dumps::find(paths, store)?;
        let listed = paths.iter().map(|path| quoted(path)).collect::<Vec<_>>().join(", ");
        let title = format!("The heads of {}", dumps.name());
        let specification = format!(
            "kind = \"audit-heads\"\ntitle = {}\ndumps = [{listed}]\n{}",
            quoted(&title),
            asked(request)
        );
        let heads = Planned::read("the request", &specification, request.settings)?;
        let name = name(paths.first().map_or("", String::as_str), &heads, "")?;
        Ok(Prepared { name, heads, tested: None })
    }

    fn of_checkpoint(
        request: &AuditRequest,
        model: &str,
        store: &ModelStore,
        told: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        let subject = Subject::find(model, store, told)?;
        let (text, test, split) = match (&request.text, &request.test) {
            (Some(text), Some(test)) => (text.clone(), test.clone(), false),
            (Some(text), None) => (text.clone(), text.clone(), true),
            (None, Some(test)) => (default_text(&subject).to_string(), test.clone(), false),
            (None, None) if default_text(&subject) == STORIES => {
                (STORIES.to_string(), STORIES.to_string(), true)
            }
            (None, None) => ("bible".to_string(), "jargon".to_string(), false),
        };
        let context = subject.model.shape().context as u64;
        let lengths = match request.lengths.is_empty() {
            true => vec![256.min(context)],
            false => request.lengths.clone(),
        };
        // Where a short text decides: as many segments as it has, and the kind says what is missing if those are too few.
        let longest = lengths.iter().copied().max().unwrap_or(1).max(2);
        let template = subject.vocabulary.template();
        let around = (template.prefix.len() + template.suffix.len()) as u64;
        let segments = |name: &str, part: crate::kinds::audit::Excerpt| -> Result<u64, Error> {
            let tokens = subject.tokens(part.of(&find_text(name)?))?.len() as u64;
            Ok(tokens / longest.saturating_sub(around).max(1))
        };
        let [calibrating_part, testing_part] = parts(split);
        let there = segments(&text, calibrating_part)?;
        let calibration = if there < CALIBRATING + 3 { 1 } else { CALIBRATING };
        let texts = request.texts.unwrap_or(there.saturating_sub(calibration).clamp(3, MEASURED));
        let test_segments = match (request.heads_only, request.texts) {
            (true, _) => TESTED,
            (false, Some(texts)) => texts,
            (false, None) => segments(&test, testing_part)?.clamp(3, TESTED),
        };
        let specification = format!(
            "kind = \"audit-heads\"\ntitle = {}\nmodel = {}\ntext = {}\ntext_part = \"{}\"\nlengths = {lengths:?}\n\
             calibration = {calibration}\ntexts = {texts}\n{}",
            quoted(&format!("The heads of {}", subject.name)),
            quoted(model),
            quoted(&text),
            calibrating_part.name(),
            asked(request),
        );
        let heads = Planned::read("the request", &specification, request.settings)?;
        let tested = match request.heads_only {
            true => String::new(),
            false => format!("{} {:?}", esscher_lab::sha256(find_text(&test)?.as_bytes()), request.texts),
        };
        let name = name(&subject.name, &heads, &tested)?;
        let (model, cut) = (model.to_string(), calibration + texts);
        let tested = Tested { model, text, test, split, cut, calibration, segments: test_segments };
        Ok(Prepared { name, heads, tested: Some(tested) })
    }

    fn found(
        &self,
        request: &AuditRequest,
        plan: &HeadsPlan,
        length: usize,
        dossier: &Dossier,
        root: &Path,
    ) -> AuditFound {
        let running = plan.deployed();
        let heads = |running| {
            Counts::of(&dossier.decide_heads(running, request.criterion, request.tolerance, &|_| true))
        };
        let groups = dossier.decide_groups(running, request.criterion, request.tolerance, &|_| true);
        let mut replacements: BTreeMap<String, usize> = BTreeMap::new();
        for candidate in groups.iter().flatten().filter_map(|decision| decision.candidate) {
            *replacements.entry(candidate.to_string()).or_default() += 1;
        }
        let mut replacements: Vec<(String, usize)> = replacements.into_iter().collect();
        replacements.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let shape = dossier.shape();
        AuditFound {
            model: plan.evidence().name(),
            sizes: [shape.layers, shape.heads, shape.key_value_heads],
            length,
            texts: dossier.findings(0, 0).count(),
            running: running.name(),
            tolerance: request.tolerance,
            heads: heads(running),
            heads_offline: heads(Running::Offline),
            key_value_heads: Counts::of(&groups),
            replacements,
            measured: match shape.order {
                Order::Causal => LOG_LOSS,
                Order::Whole => "embedding distance",
            },
            assignments: Vec::new(),
            advice: match plan.evidence() {
                Evidence::Run(_) => None,
                Evidence::Dumps(dumps) => dumps.advice(),
            },
            report: root.join("report.html"),
            verdicts: root.join("verdicts.json"),
            full_attention_heads: root.join("full_attention_heads.tsv"),
        }
    }
}

impl Tested {
    /// The run of the model with the assignments that the heads gave.
    fn model(&self, request: &AuditRequest, length: usize, chosen: &[Chosen]) -> Result<Planned, Error> {
        let [calibrating, testing] = parts(self.split);
        let mut specification = format!(
            "kind = \"audit-model\"\ntitle = {}\nmodel = {}\ntext = {}\ntext_part = \"{}\"\ntest = {}\ntest_part = \"{}\"\n\
             length = {length}\ncalibration = {}\nsegments = {}\ntexts = {}\n",
            quoted(&format!("{} with replaced heads", self.model)),
            quoted(&self.model),
            quoted(&self.text),
            calibrating.name(),
            quoted(&self.test),
            testing.name(),
            self.calibration,
            self.cut,
            self.segments,
        );
        for one in chosen {
            specification.push_str(&one.specification());
        }
        Ok(Planned::read("the request", &specification, request.settings)?)
    }
}

const STORIES: &str = "stories";
const LOG_LOSS: &str = "log loss";

/// A model is best judged by its own language: that of stories15M is children's stories, sampled from it.
fn default_text(subject: &Subject) -> &'static str {
    if subject.name == "stories15M" { STORIES } else { "bible" }
}

/// The parts of the texts that calibrate and that test.
fn parts(split: bool) -> [crate::kinds::audit::Excerpt; 2] {
    use crate::kinds::audit::Excerpt;
    match split {
        true => [Excerpt::FirstTwoThirds, Excerpt::LastThird],
        false => [Excerpt::Whole, Excerpt::Whole],
    }
}

/// What is asked of every head, as the specification writes it.
fn asked(request: &AuditRequest) -> String {
    let candidates = match request.candidates.is_empty() {
        true => CANDIDATES.map(String::from).to_vec(),
        false => request.candidates.clone(),
    };
    let listed = candidates.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let (tolerance, criterion) = (request.tolerance, request.criterion.name());
    format!("candidates = [{listed}]\ntolerance = {tolerance:?}\ncriterion = \"{criterion}\"\n")
}

/// The audit's folder: the model's name and the beginning of a checksum of all that was asked, so that the same request goes on
/// in the same folder.
fn name(model: &str, heads: &Planned, tested: &str) -> Result<String, Error> {
    let stem =
        Path::new(model).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let stem: String = stem.chars().filter(|sign| sign.is_alphanumeric() || "-_.".contains(*sign)).collect();
    if stem.is_empty() || stem.starts_with('.') {
        return Err(Error::NoName { file: PathBuf::from(model) });
    }
    let digest = esscher_lab::sha256(format!("{}\n{tested}", heads.specification()).as_bytes());
    Ok(format!("{stem}-{}", digest.chars().take(8).collect::<String>()))
}

/// A text as specifications quote it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// One document on both runs: what can be saved, then why.
fn joined(found: &AuditFound, documents: Vec<Document>) -> Document {
    let (heads, groups) = (found.heads, found.key_value_heads);
    let mut summary = format!(
        "**{} of {} query heads and {} of {} key-value heads may be replaced** within a relative error of {} at {} tokens, {} \
         ({} and {} are uncertain).",
        heads.accepted,
        heads.all(),
        groups.accepted,
        groups.all(),
        found.tolerance,
        found.length,
        found.running,
        heads.uncertain,
        groups.uncertain
    );
    if let Some(advice) = &found.advice {
        summary.push_str(&format!(" **Note:** {advice}."));
    }
    if found.assignments.is_empty() {
        summary.push_str(" What that does to the model's predictions was not measured.");
    } else {
        summary.push_str(
            " The first table says what that saves and what it does to predictions on text that calibrated nothing, beside as many \
             random heads, all heads, and equal budgets of what is used today.",
        );
    }
    let (mut sections, mut provenance) = (Vec::new(), Vec::new());
    for document in documents {
        let title = document.title;
        sections.extend(document.sections);
        provenance
            .extend(document.provenance.into_iter().map(|(name, value)| (format!("{title}: {name}"), value)));
    }
    Document { title: format!("The audit of {}", found.model), summary, sections, provenance }
}
