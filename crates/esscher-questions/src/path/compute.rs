//! A unit per prompt, and one per law for what is expected.

use super::answer::{Row, Statistic};
use super::{Ask, describe};
use crate::asking::ScaledLaw;
use crate::measured::Measured;
use crate::question::{Compute, Failure, Given, Mistake, Monitor, Section, Unit};
use crate::seeds::part_seed;
use esscher_core::attention::Attention;
use esscher_core::measure::{Empirical, Law};
use esscher_core::numerics::linalg;
use esscher_core::prompt::{FinitePrompt, PromptLength, SampleOptions, SampledPrompts, delta_method};
use esscher_core::{Accuracy, Quantity};
use rayon::prelude::*;
use std::sync::Arc;

/// Closed forms and the delta method in double precision.
const ROUNDING: f64 = 1e-12;

pub(super) struct Path {
    ask: Ask,
    cases: Vec<ScaledLaw>,
    query_law: Law,
    given: Given,
}

pub(super) fn plan(ask: Ask, section: &mut Section, given: Given) -> Result<Path, Mistake> {
    let cases = ScaledLaw::all(section, &ask.laws, &ask.sigmas)?;
    let query_law = Empirical::from_tokens(ask.head.token_dimension(), &ask.queries.concat());
    let query_law = Arc::new(section.accept("queries", query_law)?);
    Ok(Path { ask, cases, query_law, given })
}

impl Compute for Path {
    type Row = Row;

    fn unit_count(&self) -> usize {
        self.cases.len().saturating_mul(self.ask.prompts as usize + 1)
    }

    fn units(&self) -> Vec<Unit> {
        let Ask { head, queries, prompts, lengths, .. } = &self.ask;
        let longest = lengths.last().map_or(1.0, |length| length.as_f64());
        let per_token = 25e-9 * head.token_dimension() as f64 + 8e-9 * queries.len() as f64;
        let mut units = Vec::new();
        for label in self.cases.iter().map(ScaledLaw::label) {
            units.push(Unit { label: format!("{label}: expected"), cost: 0.01 * queries.len() as f64 });
            units.extend((1..=*prompts).map(|prompt| Unit {
                label: format!("{label}: prompt {prompt}"),
                cost: 1e-3 + per_token * longest,
            }));
        }
        units
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        let per_case = 1 + self.ask.prompts as usize;
        let case = &self.cases[unit / per_case];
        match unit % per_case {
            0 => self.expected(case, monitor),
            prompt => self.prompt(case, prompt as u64, monitor),
        }
    }

    fn describe(&self, rows: &[Row]) -> Result<Vec<esscher_report::Section>, Failure> {
        Ok(describe::sections(&self.ask, rows))
    }
}

impl Path {
    fn prompt(
        &self,
        case: &ScaledLaw,
        prompt: u64,
        monitor: &dyn Monitor,
    ) -> Result<Option<Vec<Row>>, Failure> {
        let Ask { head, queries, lengths, precision, .. } = &self.ask;
        let options = SampleOptions {
            trials: 1,
            queries: queries.len() as u32,
            score_gradient: false,
            seed: part_seed(self.given.seed, prompt),
            precision: *precision,
            instruction_set: self.given.instruction_set,
        };
        let (tokens, query_law) = (case.tokens.clone(), self.query_law.clone());
        let simulation = SampledPrompts::new(head, tokens, query_law, lengths, options)?;
        let Some(found) = simulation.run_unit(0, monitor)? else { return Ok(None) };
        let rows = lengths.iter().zip(found.joint.output.mean()).map(|(length, square)| {
            let number = Measured { value: square.sqrt(), error: None, accuracy: Accuracy::Sampled };
            row(case, Statistic::Distance, Some(prompt), Some(*length), number)
        });
        Ok(Some(rows.collect()))
    }

    /// The size of the limit, and the expected distance where theory knows it.
    fn expected(&self, case: &ScaledLaw, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        let Ask { head, queries, lengths, .. } = &self.ask;
        let count = queries.len() as f64;
        let outputs: Vec<Vec<f64>> =
            queries.iter().map(|query| head.attend(case.tokens.as_ref(), query)).collect::<Result<_, _>>()?;
        // On the scale of the outputs, so that their squares are doubles.
        let exponent = linalg::exponent(&outputs.concat());
        let mut square = 0.0;
        for output in &outputs {
            square += linalg::squared_norm(&linalg::times_power_of_two(output, -exponent)) / count;
        }
        let size = linalg::times_power_of_two(&[square.sqrt()], exponent)[0];
        let limit = Measured::exact(size, ROUNDING * size);
        let mut rows = vec![row(case, Statistic::Limit, None, None, limit)];
        let (statistic, squares, tolerance) = if case.tokens.as_gaussian_mixture().is_some() {
            let prompt = FinitePrompt::exact(head, case.tokens.as_ref())?;
            // Asked for every query: with mixtures of hundreds of components one takes seconds.
            let errors = |query: &Vec<f64>| {
                let stopped = monitor.should_stop();
                (!stopped).then(|| prompt.errors_at_query(Quantity::Output, query, lengths)).transpose()
            };
            let found: Vec<Option<Vec<f64>>> = queries.par_iter().map(errors).collect::<Result<_, _>>()?;
            let Some(found) = found.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
            let mut squares = vec![0.0; lengths.len()];
            for by_length in &found {
                for (square, error) in squares.iter_mut().zip(by_length) {
                    *square += error / count;
                }
            }
            let tolerance = esscher_core::softmax_weights::RELATIVE_TOLERANCE;
            (Statistic::Expected, squares, tolerance)
        } else {
            let (mut constant, mut lost) = (0.0, 0.0_f64);
            for query in queries {
                // Where the second tilt does not exist there is no 1/L law to draw.
                let Ok(found) = delta_method(head, case.tokens.as_ref(), query) else {
                    return Ok(Some(rows));
                };
                constant += found.output_error / count;
                // Differences of log-partitions at the double tilt lose what these round.
                let twice: Vec<f64> = head.tilt(query)?.iter().map(|entry| 2.0 * entry).collect();
                lost = lost.max(4.0 * f64::EPSILON * case.tokens.log_partition(&twice)?.abs());
            }
            let squares = lengths.iter().map(|length| constant / length.as_f64()).collect();
            (Statistic::Asymptote, squares, ROUNDING + lost)
        };
        for (length, square) in lengths.iter().zip(squares) {
            let number = Measured::exact(square.sqrt(), tolerance * square.sqrt());
            rows.push(row(case, statistic, None, Some(*length), number));
        }
        Ok(Some(rows))
    }
}

fn row(
    case: &ScaledLaw,
    statistic: Statistic,
    prompt: Option<u64>,
    length: Option<PromptLength>,
    number: Measured,
) -> Row {
    let (law, length) = (case.name.clone(), length.map(PromptLength::get));
    Row { law, sigma: case.sigma, statistic, prompt, length, number }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esscher_core::Unwatched;
    use esscher_core::attention::Softmax;
    use esscher_core::measure::{Cube, Gaussian};
    use esscher_core::numerics::{InstructionSet, Stream};
    use esscher_core::prompt::Precision;

    /// The reference: the same tokens as an empirical measure, read by the definition of attention.
    #[test]
    fn distances_are_those_of_attention_on_the_prefix() {
        let identity = linalg::identity(2);
        let head = Softmax::new(identity.as_ref(), identity.as_ref()).unwrap();
        let queries = vec![vec![1.0, 0.5], vec![-2.0, 0.0], vec![0.3, 0.3]];
        let laws: [Law; 2] = [Arc::new(Gaussian::standard(2).unwrap()), Arc::new(Cube::new(2).unwrap())];
        for tokens in laws {
            let lengths = [1, 7, 300, 1000].map(|length| PromptLength::new(length).unwrap());
            let ask = Ask {
                laws: Vec::new(),
                head: head.clone(),
                sigmas: vec![1.0],
                prompts: 1,
                lengths: lengths.to_vec(),
                queries: queries.clone(),
                precision: Precision::Double,
            };
            let query_law = Arc::new(Empirical::from_tokens(2, &queries.concat()).unwrap());
            let given = Given { seed: 5, instruction_set: InstructionSet::best() };
            let path = Path { ask, cases: Vec::new(), query_law, given };
            let case = ScaledLaw { name: "tokens".to_string(), sigma: 1.0, tokens: tokens.clone() };
            let found = path.prompt(&case, 3, &Unwatched).unwrap().unwrap();
            // Tokens come from one address of the stream as long as they are at most 1024.
            let mut drawn = vec![0.0; 2 * 1024];
            tokens.sample(&mut Stream::new(part_seed(5, 3), 0, 0), &mut drawn).unwrap();
            for (length, row) in lengths.iter().zip(&found) {
                let prompt = Empirical::from_tokens(2, &drawn[..2 * length.get() as usize]).unwrap();
                let square: f64 = queries
                    .iter()
                    .map(|query| {
                        let finite = head.attend(&prompt, query).unwrap();
                        let limit = head.attend(tokens.as_ref(), query).unwrap();
                        linalg::squared_norm(&linalg::difference(&finite, &limit)) / 3.0
                    })
                    .sum();
                let value = row.number.value;
                assert!((value / square.sqrt() - 1.0).abs() < 1e-11, "{length}: {value} {}", square.sqrt());
            }
        }
    }
}
