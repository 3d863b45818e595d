//! The dossier of a model: findings on several texts of one length, decisions on heads, and the assignments that follow.

use crate::Error;
use crate::assignment::{Assignment, Running};
use crate::candidate::Candidate;
use crate::examination::Findings;
use crate::model::Shape;
use crate::names::names;
use crate::portrait::Portrait;
use crate::verdict::{Decision, Offer, Spread, Verdict, decide, spread};

/// By which error a head is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Criterion {
    /// Of the head's output relative to itself.
    Output,
    /// After the output projection relative to the residual stream: what the next layer can notice.
    Residual,
}

names!(Criterion, "a criterion", { Output => "output", Residual => "residual" });

/// By what heads are judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standard {
    /// How candidates run.
    pub running: Running,
    /// Which of their errors counts.
    pub criterion: Criterion,
    /// The mean error that is accepted.
    pub tolerance: f64,
    /// The only candidate that is offered; all are if there is none.
    pub only: Option<Candidate>,
}

/// What several texts of one length told about every head.
#[derive(Debug, Clone)]
pub struct Dossier {
    shape: Shape,
    candidates: Vec<(Candidate, Running)>,
    /// Per text, layers × heads.
    texts: Vec<Vec<Findings>>,
}

impl Dossier {
    /// Collects findings, a list per text, each with every head in order.
    ///
    /// # Errors
    /// Findings that are not of this model, or with another number of candidates.
    pub fn new(
        shape: &Shape,
        candidates: Vec<(Candidate, Running)>,
        texts: Vec<Vec<Findings>>,
    ) -> Result<Self, Error> {
        for findings in &texts {
            let in_order = findings
                .iter()
                .enumerate()
                .all(|(place, found)| found.layer * shape.heads + found.head == place);
            let complete = findings.len() == shape.layers * shape.heads && in_order;
            if !complete || findings.iter().any(|found| found.errors.len() != candidates.len()) {
                let words = |heads: usize, errors: usize| format!("{heads} heads with {errors} errors each");
                let errors = findings.iter().map(|found| found.errors.len());
                let errors = errors.clone().find(|count| *count != candidates.len()).or(errors.max());
                return Err(Error::other_model(
                    "the list of findings on a text".to_string(),
                    words(shape.layers * shape.heads, candidates.len()) + " in order",
                    words(findings.len(), errors.unwrap_or(0)),
                ));
            }
        }
        Ok(Dossier { shape: *shape, candidates, texts })
    }

    /// The sizes of the model.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The candidates that were measured, and how each ran.
    pub fn candidates(&self) -> &[(Candidate, Running)] {
        &self.candidates
    }

    /// The findings on a head, one per text.
    pub fn findings(&self, layer: usize, head: usize) -> impl Iterator<Item = &Findings> {
        let place = layer * self.shape.heads + head;
        self.texts.iter().map(move |findings| &findings[place])
    }

    /// A head's errors with a candidate (by its number), one per text.
    pub fn errors(&self, layer: usize, head: usize, candidate: usize, criterion: Criterion) -> Vec<f64> {
        self.findings(layer, head)
            .filter_map(|found| match criterion {
                Criterion::Output => Some(found.errors[candidate].relative),
                Criterion::Residual => found.errors[candidate].residual,
            })
            .collect()
    }

    /// Their mean and its uncertainty over texts.
    pub fn spread(
        &self,
        layer: usize,
        head: usize,
        candidate: usize,
        criterion: Criterion,
    ) -> Option<Spread> {
        spread(&self.errors(layer, head, candidate, criterion))
    }

    /// The mean over texts of a number of a head's portrait, and its uncertainty.
    pub fn portrayed(&self, layer: usize, head: usize, pick: impl Fn(&Portrait) -> f64) -> Option<Spread> {
        spread(&self.findings(layer, head).map(|found| pick(&found.portrait)).collect::<Vec<_>>())
    }

    /// A decision for every query head: a row per layer.
    pub fn decide_heads(&self, standard: &Standard) -> Vec<Vec<Decision>> {
        self.decide(1, self.shape.heads, standard)
    }

    /// A decision for every key-value head, which all its readers must accept: a row per layer.
    pub fn decide_groups(&self, standard: &Standard) -> Vec<Vec<Decision>> {
        self.decide(self.shape.readers(), self.shape.key_value_heads, standard)
    }

    fn decide(&self, readers: usize, groups: usize, standard: &Standard) -> Vec<Vec<Decision>> {
        let offered: Vec<usize> = (0..self.candidates.len())
            .filter(|number| {
                let (candidate, running) = self.candidates[*number];
                running == standard.running && standard.only.is_none_or(|only| only == candidate)
            })
            .collect();
        let of_group = |layer: usize, group: usize| {
            let offers: Vec<Offer> = offered
                .iter()
                .map(|&number| Offer {
                    candidate: self.candidates[number].0,
                    state_tokens: self.candidates[number].0.middle_tokens(self.shape.head_dimension),
                    errors: (group * readers..(group + 1) * readers)
                        .map(|head| self.errors(layer, head, number, standard.criterion))
                        .collect(),
                })
                .collect();
            decide(&offers, standard.tolerance)
        };
        (0..self.shape.layers)
            .map(|layer| (0..groups).map(|group| of_group(layer, group)).collect())
            .collect()
    }

    /// The assignment that decisions on query heads or on key-value heads make: accepted heads get their candidate, others stay
    /// exact.
    ///
    /// # Errors
    /// Decisions of another model.
    pub fn assignment(&self, decisions: &[Vec<Decision>]) -> Result<Assignment, Error> {
        let rows = decisions
            .iter()
            .map(|row| {
                let readers = self.shape.heads / row.len().max(1);
                let chosen = |decision: &Decision| match (decision.verdict, decision.candidate) {
                    (Verdict::Accepted, Some(candidate)) => candidate,
                    _ => Candidate::Exact,
                };
                row.iter().flat_map(|decision| vec![chosen(decision); readers]).collect()
            })
            .collect();
        Assignment::new(&self.shape, rows)
    }
}
