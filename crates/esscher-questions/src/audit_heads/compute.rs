//! The plan of an audit of heads: a unit for every text, whose heads are examined with every candidate.

use super::answer::{Quantity, Row};
use super::ask::Ask;
use super::evidence::Evidence;
use crate::Sources;
use crate::audit::{check_replaced, frame};
use crate::question::{Awaiting, Compute};
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::discrepancy::Discrepancy;
use esscher_audit::dossier::{Criterion, Dossier};
use esscher_audit::examination::{Findings, Questions};
use esscher_audit::head::Order;
use esscher_audit::portrait::{Portrait, Sink};
use esscher_core::Monitor;
use esscher_lab::specification::{Mistake, Section};
use esscher_lab::{Failure, Unit};
use std::collections::HashMap;

/// An audit of heads, ready to run.
pub(crate) struct HeadsPlan {
    pub(super) evidence: Evidence,
    pub(super) questions: Questions,
    pub(super) tolerance: f64,
    pub(super) criterion: Criterion,
}

impl HeadsPlan {
    /// Reads the keys of this kind, and plans if there are sources.
    pub(crate) fn read(section: &mut Section, seed: u64) -> Result<Result<Self, Awaiting>, Mistake> {
        let ask = Ask::checked(section)?;
        let Some(sources) = section.provided::<Sources>() else {
            return Ok(Err(Awaiting { model: ask.model }));
        };
        let evidence = Evidence::find(&ask, section, &sources)?;
        let frame = frame(section, ask.window, evidence.shape())?;
        for (length, _) in evidence.lengths() {
            check_replaced(section, evidence.length_key(), length, &frame)?;
        }
        let Ask { candidates, tolerance, criterion, .. } = ask;
        if let (Evidence::Dumps(dumps), Criterion::Residual) = (&evidence, criterion)
            && let Some(message) = dumps.no_residual()
        {
            return Err(section.mistake("criterion", message));
        }
        let questions = Questions { frame, candidates: asked(&candidates, evidence.shape().order), seed };
        Ok(Ok(HeadsPlan { evidence, questions, tolerance, criterion }))
    }

    /// What the texts told, length by length.
    ///
    /// # Errors
    /// Rows that are not an answer to this plan.
    pub(crate) fn dossiers(&self, rows: &[Row]) -> Result<Vec<(usize, Dossier)>, Failure> {
        let shape = self.evidence.shape();
        // What no row has told stays not a number.
        let untold = f64::NAN;
        let blank = Findings {
            layer: 0,
            head: 0,
            portrait: Portrait {
                score_variance: untold,
                effective_tokens: untold,
                half_token_noise: untold,
                first_token_weight: untold,
                sink: Sink { position: 0, weight: untold },
            },
            errors: vec![Discrepancy { relative: untold, residual: None }; self.questions.candidates.len()],
        };
        let heads = shape.layers * shape.heads;
        let nobody: Vec<Findings> = (0..heads)
            .map(|place| Findings { layer: place / shape.heads, head: place % shape.heads, ..blank.clone() })
            .collect();
        let measured = self.evidence.lengths();
        let mut found: Vec<Vec<Vec<Findings>>> =
            measured.iter().map(|(_, texts)| vec![nobody.clone(); *texts]).collect();
        let lengths: HashMap<usize, usize> =
            measured.iter().enumerate().map(|(number, (length, _))| (*length, number)).collect();
        let candidates: HashMap<(String, &str), usize> = self
            .questions
            .candidates
            .iter()
            .enumerate()
            .map(|(number, (candidate, running))| ((candidate.to_string(), running.name()), number))
            .collect();
        for row in rows {
            let foreign = || Failure::from("the table is a result of another audit");
            let length = lengths.get(&row.length).ok_or_else(foreign)?;
            let text = found[*length].get_mut(row.text).ok_or_else(foreign)?;
            if row.head >= shape.heads || row.layer >= shape.layers {
                return Err(foreign());
            }
            let one = text.get_mut(row.layer * shape.heads + row.head).ok_or_else(foreign)?;
            // What is missing is not finite.
            let value = row.value.unwrap_or(f64::INFINITY);
            let error = || -> Result<usize, Failure> {
                let (Some(candidate), Some(running)) = (&row.candidate, &row.running) else {
                    return Err(foreign());
                };
                candidates.get(&(candidate.clone(), running.as_str())).copied().ok_or_else(foreign)
            };
            match row.quantity {
                Quantity::ScoreVariance => one.portrait.score_variance = value,
                Quantity::EffectiveTokens => one.portrait.effective_tokens = value,
                Quantity::HalfTokenNoise => one.portrait.half_token_noise = value,
                Quantity::FirstTokenWeight => one.portrait.first_token_weight = value,
                Quantity::SinkPosition => one.portrait.sink.position = value as usize,
                Quantity::SinkWeight => one.portrait.sink.weight = value,
                Quantity::OutputError => one.errors[error()?].relative = value,
                Quantity::ResidualError => one.errors[error()?].residual = Some(value),
            }
        }
        if found.iter().flatten().flatten().any(|one| self.lacks(one)) {
            return Err("the table is not a whole result of this audit".into());
        }
        measured
            .iter()
            .zip(found)
            .map(|((length, _), texts)| {
                Ok((*length, Dossier::new(shape, self.questions.candidates.clone(), texts)?))
            })
            .collect()
    }

    /// Whether something is untold that the verdict or the report needs: a mean over fewer texts would pass for one over all.
    fn lacks(&self, found: &Findings) -> bool {
        let portrait = &found.portrait;
        let told = [
            portrait.score_variance,
            portrait.effective_tokens,
            portrait.half_token_noise,
            portrait.first_token_weight,
            portrait.sink.weight,
        ];
        told.iter().any(|value| value.is_nan())
            || found.errors.iter().any(|error| match self.criterion {
                Criterion::Output => error.relative.is_nan(),
                Criterion::Residual => error.residual.is_none(),
            })
    }

    /// How a head would be deployed: in constant memory, unless every token sees all.
    pub(crate) fn deployed(&self) -> Running {
        Running::deployed(self.evidence.shape().order)
    }

    /// What heads are measured on: for whoever goes on from here.
    pub(crate) fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    pub(crate) fn questions(&self) -> &Questions {
        &self.questions
    }
}

/// Every candidate in both ways of running; where every token sees all nothing streams.
fn asked(candidates: &[Candidate], order: Order) -> Vec<(Candidate, Running)> {
    let runnings: &[Running] = match order {
        Order::Causal => &Running::ALL,
        Order::Whole => &[Running::Offline],
    };
    // What is evicted stays evicted: there is nothing to look up offline.
    let sensible = |candidate: &Candidate, running: Running| {
        !matches!(candidate, Candidate::Kept { .. }) || order == Order::Whole || running == Running::Streaming
    };
    candidates
        .iter()
        .flat_map(|candidate| runnings.iter().map(|running| (*candidate, *running)))
        .filter(|(candidate, running)| sensible(candidate, *running))
        .collect()
}

impl Compute for HeadsPlan {
    type Row = Row;

    fn units(&self) -> Vec<Unit> {
        let shape = self.evidence.shape();
        // What was dumped is not run again.
        let width = match self.evidence {
            Evidence::Run(_) => shape.width,
            Evidence::Dumps(_) => 0,
        };
        self.evidence
            .lengths()
            .into_iter()
            .flat_map(|(length, texts)| {
                let tokens = length as f64;
                let forward = tokens * (12 * width * width * shape.layers) as f64;
                let heads = (shape.layers * shape.heads * shape.head_dimension) as f64;
                let answers = tokens * tokens * heads * self.questions.candidates.len() as f64;
                // Measured: a few multiplications in a nanosecond, on one core.
                let cost = 0.01 + 3e-10 * (forward + answers);
                (0..texts).map(move |text| Unit { label: self.evidence.label(length, text), cost })
            })
            .collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        let mut text = unit;
        for (number, (length, texts)) in self.evidence.lengths().into_iter().enumerate() {
            if text < texts {
                let examined = self.evidence.examine(number, text, &self.questions, monitor)?;
                return Ok(examined.map(|findings| self.rows(length, text, &findings)));
            }
            text -= texts;
        }
        Err(format!("there is no unit {unit}").into())
    }

    fn describe(&self, rows: &[Row]) -> Result<Vec<esscher_report::Section>, Failure> {
        Ok(self.sections_of(&self.dossiers(rows)?))
    }
}

impl HeadsPlan {
    fn rows(&self, length: usize, text: usize, findings: &[Findings]) -> Vec<Row> {
        let mut rows = Vec::new();
        for found in findings {
            let mut push = |quantity, asked: Option<&(Candidate, Running)>, value: f64| {
                rows.push(Row {
                    length,
                    text,
                    layer: found.layer,
                    head: found.head,
                    quantity,
                    candidate: asked.map(|(candidate, _)| candidate.to_string()),
                    running: asked.map(|(_, running)| running.name().to_string()),
                    // Tables hold finite numbers only.
                    value: Some(value).filter(|value| value.is_finite()),
                });
            };
            let portrait = &found.portrait;
            push(Quantity::ScoreVariance, None, portrait.score_variance);
            push(Quantity::EffectiveTokens, None, portrait.effective_tokens);
            push(Quantity::HalfTokenNoise, None, portrait.half_token_noise);
            push(Quantity::FirstTokenWeight, None, portrait.first_token_weight);
            push(Quantity::SinkPosition, None, portrait.sink.position as f64);
            push(Quantity::SinkWeight, None, portrait.sink.weight);
            for (asked, error) in self.questions.candidates.iter().zip(&found.errors) {
                push(Quantity::OutputError, Some(asked), error.relative);
                if let Some(residual) = error.residual {
                    push(Quantity::ResidualError, Some(asked), residual);
                }
            }
        }
        rows
    }
}
