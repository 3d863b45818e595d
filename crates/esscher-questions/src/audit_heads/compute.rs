//! The plan of an audit of heads: a unit for every text, whose heads are examined with every candidate.

use super::answer::{Quantity, Row};
use super::ask::Ask;
use super::evidence::Evidence;
use crate::Sources;
use crate::audit::{check_instruction_set, check_replaced, frame};
use crate::question::{Awaiting, Compute, Plan};
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::discrepancy::Discrepancy;
use esscher_audit::dossier::{Criterion, Dossier, Standard};
use esscher_audit::examination::{Findings, Questions};
use esscher_audit::head::Order;
use esscher_audit::portrait::{Portrait, Sink, TokenWeight};
use esscher_core::Monitor;
use esscher_core::numerics::InstructionSet;
use esscher_lab::specification::{Mistake, Section};
use esscher_lab::{Failure, Unit};
use std::iter::Peekable;

/// No model of the field comes near; a report on more would be of no use to anybody.
const MOST_HEADS: usize = 1 << 16;

/// An audit of heads, ready to run.
pub(crate) struct HeadsPlan {
    /// What heads are measured on.
    pub(crate) evidence: Evidence,
    pub(crate) questions: Questions,
    /// By what they are judged, as they would be deployed.
    pub(crate) standard: Standard,
}

impl HeadsPlan {
    /// Reads the keys of this kind, and plans if there are sources.
    pub(super) fn read(
        section: &mut Section,
        seed: u64,
        instructions: InstructionSet,
    ) -> Result<Box<dyn Plan>, Mistake> {
        check_instruction_set(section, instructions)?;
        let ask = Ask::checked(section)?;
        let Some(sources) = section.provided::<Sources>() else {
            return Ok(Box::new(Awaiting { model: ask.model }));
        };
        let evidence = Evidence::find(&ask, section, &sources)?;
        let heads = evidence.shape().layers.saturating_mul(evidence.shape().heads);
        if heads > MOST_HEADS {
            let message =
                format!("there are {heads} query heads, at most {MOST_HEADS} are audited: take fewer layers");
            return Err(section.mistake(evidence.model_key(), message));
        }
        let frame = frame(section, ask.window, evidence.shape())?;
        for (length, _) in evidence.lengths() {
            check_replaced(section, evidence.length_key(), length, evidence.whose_length(), &frame)?;
        }
        let Ask { candidates, tolerance, criterion, .. } = ask;
        if let (Evidence::Dumps(dumps), Criterion::Residual) = (&evidence, criterion)
            && let Some(message) = dumps.no_residual()
        {
            return Err(section.mistake("criterion", message));
        }
        let order = evidence.shape().order;
        let questions = Questions { frame, candidates: asked(&candidates, order), seed };
        let standard = Standard { running: Running::deployed(order), criterion, tolerance, only: None };
        Ok(Box::new(HeadsPlan { evidence, questions, standard }))
    }

    /// What the texts told, length by length.
    ///
    /// # Errors
    /// Rows that are not an answer to this plan.
    pub(crate) fn dossiers(&self, rows: &[Row]) -> Result<Vec<(usize, Dossier)>, Failure> {
        let shape = self.evidence.shape();
        let mut rows = rows.iter().peekable();
        let mut dossiers = Vec::new();
        for (length, texts) in self.evidence.lengths() {
            let found: Option<Vec<Vec<Findings>>> = (0..texts)
                .map(|text| {
                    let heads = shape.places();
                    heads.map(|(layer, head)| self.findings([length, text, layer, head], &mut rows)).collect()
                })
                .collect();
            // A mean over fewer texts would pass for one over all.
            let found = found.ok_or("the table is not a whole result of this audit")?;
            dossiers.push((length, Dossier::new(shape, self.questions.candidates.clone(), found)?));
        }
        match rows.next() {
            None => Ok(dossiers),
            Some(_) => Err("the table is a result of another audit".into()),
        }
    }

    /// What the next rows tell of a head on a text, in the order in which they were written; nothing if a number is missing that the
    /// verdict or the report needs.
    fn findings<'a>(
        &self,
        place: [usize; 4],
        rows: &mut Peekable<impl Iterator<Item = &'a Row>>,
    ) -> Option<Findings> {
        let mut next = |quantity: Quantity, asked: Option<&(Candidate, Running)>| {
            let told = |row: &&Row| {
                [row.length, row.text, row.layer, row.head] == place
                    && row.quantity == quantity
                    && row.candidate == asked.map(|(candidate, _)| candidate.to_string())
                    && row.running.as_deref() == asked.map(|(_, running)| running.name())
            };
            // What is missing is not finite.
            rows.next_if(told).map(|row| row.value.unwrap_or(f64::INFINITY))
        };
        let mut portrait = Portrait {
            score_variance: next(Quantity::ScoreVariance, None)?,
            effective_tokens: next(Quantity::EffectiveTokens, None)?,
            half_token_noise: next(Quantity::HalfTokenNoise, None)?,
            first_token_weight: next(Quantity::FirstTokenWeight, None)?,
            sink: Sink {
                position: next(Quantity::SinkPosition, None)? as usize,
                weight: next(Quantity::SinkWeight, None)?,
            },
            heaviest: Vec::new(),
        };
        let errors = self.questions.candidates.iter().map(|asked| {
            let relative = next(Quantity::OutputError, Some(asked))?;
            let residual = next(Quantity::ResidualError, Some(asked));
            let told = self.standard.criterion == Criterion::Output || residual.is_some();
            told.then_some(Discrepancy { relative, residual })
        });
        let errors = errors.collect::<Option<_>>()?;
        // A short text has fewer.
        while let Some(row) = rows.next_if(|row| {
            [row.length, row.text, row.layer, row.head] == place && row.quantity == Quantity::TokenWeight
        }) {
            let weight = row.value.unwrap_or(f64::INFINITY);
            portrait.heaviest.push(TokenWeight { position: row.position?, weight });
        }
        Some(Findings { layer: place[2], head: place[3], portrait, errors })
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
            let mut push_of = |quantity, asked: Option<&(Candidate, Running)>, position, value: f64| {
                rows.push(Row {
                    length,
                    text,
                    layer: found.layer,
                    head: found.head,
                    quantity,
                    candidate: asked.map(|(candidate, _)| candidate.to_string()),
                    running: asked.map(|(_, running)| running.name().to_string()),
                    position,
                    // Tables hold finite numbers only.
                    value: Some(value).filter(|value| value.is_finite()),
                });
            };
            let mut push = |quantity, asked, value| push_of(quantity, asked, None, value);
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
            for token in &portrait.heaviest {
                push_of(Quantity::TokenWeight, None, Some(token.position), token.weight);
            }
        }
        rows
    }
}
