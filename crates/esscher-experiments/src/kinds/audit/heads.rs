//! The audit of heads: the portrait of every head of a checkpoint, and how far every replacement is from its outputs, text by text.

use super::evidence::Evidence;
use super::{check_instruction_set, check_replaced, frame};
use crate::kinds::{Kind, Plan, columns};
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::discrepancy::Discrepancy;
use esscher_audit::dossier::{Criterion, Dossier};
use esscher_audit::examination::{Findings, Questions};
use esscher_audit::head::Order;
use esscher_audit::portrait::{Portrait, Sink};
use esscher_core::Monitor;
use esscher_lab::specification::{self, Bounds, Mistake, Section};
use esscher_lab::{Column, Failure, Row, Table, Unit, Value};
use std::collections::HashMap;

pub(in crate::kinds) const KIND: Kind = Kind {
    name: "audit-heads",
    title: "The audit of a checkpoint's heads",
    summary: "Every head of a real checkpoint: score variance, effective tokens, sinks, and the error of every replacement.",
    example: r#"kind = "audit-heads"
model = "tiny-random"
text = "bible"
lengths = [96]
texts = 3
window = 16
candidates = ["dropped", "mean", "tilted-gaussian"]
"#,
    read: |section, seed, instructions| {
        check_instruction_set(section, instructions)?;
        Ok(Box::new(HeadsPlan::read(section, seed)?))
    },
};

/// What may replace a head unless somebody says otherwise, by its state about the cheapest first.
pub(crate) const CANDIDATES: [&str; 10] = [
    "dropped",
    "mean",
    "gaussian",
    "reduced-gaussian/4",
    "reduced-gaussian/8",
    "reduced-gaussian/16",
    "tilted-gaussian",
    "tilted-means/8",
    "tilted-means/32",
    "top-16+reduced-gaussian/16",
];

/// From and to.
pub(crate) const TOLERANCES: (f64, f64) = (1e-6, 10.0);

const COLUMNS: [(&str, Column); 8] = [
    ("length", Column::Integer),
    ("text", Column::Integer),
    ("layer", Column::Integer),
    ("head", Column::Integer),
    ("quantity", Column::Text),
    ("candidate", Column::Text),
    ("running", Column::Text),
    ("value", Column::Real),
];

/// What a row holds.
mod quantity {
    pub(super) const SCORE_VARIANCE: &str = "score-variance";
    pub(super) const EFFECTIVE_TOKENS: &str = "effective-tokens";
    pub(super) const HALF_TOKEN_NOISE: &str = "half-token-noise";
    pub(super) const FIRST_TOKEN_WEIGHT: &str = "first-token-weight";
    pub(super) const SINK_POSITION: &str = "sink-position";
    pub(super) const SINK_WEIGHT: &str = "sink-weight";
    pub(super) const OUTPUT_ERROR: &str = "output-error";
    pub(super) const RESIDUAL_ERROR: &str = "residual-error";
}

const CRITERIA: [(&str, Criterion); 2] = [("output", Criterion::Output), ("residual", Criterion::Residual)];

/// An audit of heads, ready to run.
pub(crate) struct HeadsPlan {
    pub(super) evidence: Evidence,
    pub(super) questions: Questions,
    pub(super) tolerance: f64,
    pub(super) criterion: Criterion,
}

impl HeadsPlan {
    /// Reads the keys of this kind.
    pub(crate) fn read(section: &mut Section, seed: u64) -> Result<Self, Mistake> {
        let evidence = Evidence::read(section)?;
        let shape = *evidence.shape();
        let frame = frame(section, &shape)?;
        for (length, _) in evidence.lengths() {
            check_replaced(section, evidence.length_key(), length, &frame)?;
        }
        let names = section.texts("candidates", 1..=64, Some(&CANDIDATES))?;
        let mut candidates: Vec<Candidate> = Vec::new();
        for name in names {
            let candidate = name.parse::<Candidate>();
            let candidate = section.accept("candidates", candidate)?;
            if candidates.contains(&candidate) {
                return Err(section.mistake("candidates", format!("`{candidate}` is given twice")));
            }
            if candidate == Candidate::Exact {
                let message = "exact attention is what candidates are compared with; leave it out";
                return Err(section.mistake("candidates", message));
            }
            candidates.push(candidate);
        }
        let tolerance = section.real("tolerance", Bounds::Between(TOLERANCES.0, TOLERANCES.1), Some(0.05))?;
        let criterion = section.choice("criterion", &CRITERIA, Some("output"))?;
        if let (Evidence::Dumps(dumps), Criterion::Residual) = (&evidence, criterion)
            && let Some(message) = dumps.no_residual()
        {
            return Err(section.mistake("criterion", message));
        }
        let questions = Questions { frame, candidates: asked(&candidates, shape.order), seed };
        Ok(HeadsPlan { evidence, questions, tolerance, criterion })
    }

    /// The plan of a specification that is known to be of this kind.
    ///
    /// # Errors
    /// Any other specification.
    pub(crate) fn of_specification(text: &str) -> Result<Self, Mistake> {
        let (plan, _) = specification::read("spec.toml", text, |section| {
            section.choice("kind", &[(KIND.name, ())], None)?;
            section.text("title", Some(KIND.title))?;
            let seed = section.integer("seed", 0..=u64::MAX >> 1, Some(0))?;
            HeadsPlan::read(section, seed)
        })?;
        Ok(plan)
    }

    /// What the texts told, length by length.
    ///
    /// # Errors
    /// A table that is not a result of this plan.
    pub(crate) fn dossiers(&self, result: &Table) -> Result<Vec<(usize, Dossier)>, Failure> {
        columns::check(result, &COLUMNS)?;
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
        for row in result.rows() {
            let foreign = || Failure::from("the table is a result of another audit");
            let length = lengths.get(&whole(&row, "length")?).ok_or_else(foreign)?;
            let text = found[*length].get_mut(whole(&row, "text")?).ok_or_else(foreign)?;
            let (layer, head) = (whole(&row, "layer")?, whole(&row, "head")?);
            if head >= shape.heads {
                return Err(foreign());
            }
            let one = text.get_mut(layer * shape.heads + head).ok_or_else(foreign)?;
            let value = row.optional_real("value")?.unwrap_or(f64::INFINITY);
            let error = || -> Result<usize, Failure> {
                let asked = (row.text("candidate")?.to_string(), row.text("running")?);
                candidates.get(&asked).copied().ok_or_else(foreign)
            };
            match row.text("quantity")? {
                quantity::SCORE_VARIANCE => one.portrait.score_variance = value,
                quantity::EFFECTIVE_TOKENS => one.portrait.effective_tokens = value,
                quantity::HALF_TOKEN_NOISE => one.portrait.half_token_noise = value,
                quantity::FIRST_TOKEN_WEIGHT => one.portrait.first_token_weight = value,
                quantity::SINK_POSITION => one.portrait.sink.position = value as usize,
                quantity::SINK_WEIGHT => one.portrait.sink.weight = value,
                quantity::OUTPUT_ERROR => one.errors[error()?].relative = value,
                quantity::RESIDUAL_ERROR => one.errors[error()?].residual = Some(value),
                _ => return Err(foreign()),
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
        match self.evidence.shape().order {
            Order::Causal => Running::Streaming,
            Order::Whole => Running::Offline,
        }
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

fn whole(row: &Row<'_>, column: &str) -> Result<usize, Failure> {
    Ok(usize::try_from(row.integer(column)?)?)
}

impl Plan for HeadsPlan {
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

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let mut text = unit;
        for (number, (length, texts)) in self.evidence.lengths().into_iter().enumerate() {
            if text < texts {
                let examined = self.evidence.examine(number, text, &self.questions, monitor)?;
                return examined.map(|findings| self.table(length, text, &findings)).transpose();
            }
            text -= texts;
        }
        Err(format!("there is no unit {unit}").into())
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        let dossiers = self.dossiers(result)?;
        Ok(self.describe(&dossiers))
    }
}

impl HeadsPlan {
    fn table(&self, length: usize, text: usize, findings: &[Findings]) -> Result<Table, Failure> {
        let mut table = Table::new(&COLUMNS);
        for found in findings {
            let mut push = |quantity: &str, asked: Option<&(Candidate, Running)>, value: f64| {
                // Tables hold finite numbers only: what is missing is read as infinite.
                let value = if value.is_finite() { Value::Real(value) } else { Value::Missing };
                table.push([
                    (length as i64).into(),
                    (text as i64).into(),
                    (found.layer as i64).into(),
                    (found.head as i64).into(),
                    quantity.into(),
                    asked.map(|(candidate, _)| candidate.to_string()).into(),
                    asked.map(|(_, running)| running.name()).into(),
                    value,
                ])
            };
            let portrait = &found.portrait;
            push(quantity::SCORE_VARIANCE, None, portrait.score_variance)?;
            push(quantity::EFFECTIVE_TOKENS, None, portrait.effective_tokens)?;
            push(quantity::HALF_TOKEN_NOISE, None, portrait.half_token_noise)?;
            push(quantity::FIRST_TOKEN_WEIGHT, None, portrait.first_token_weight)?;
            push(quantity::SINK_POSITION, None, portrait.sink.position as f64)?;
            push(quantity::SINK_WEIGHT, None, portrait.sink.weight)?;
            for (asked, error) in self.questions.candidates.iter().zip(&found.errors) {
                push(quantity::OUTPUT_ERROR, Some(asked), error.relative)?;
                if let Some(residual) = error.residual {
                    push(quantity::RESIDUAL_ERROR, Some(asked), residual)?;
                }
            }
        }
        Ok(table)
    }
}
