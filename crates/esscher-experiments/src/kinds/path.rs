//! One growing prompt: how its attention approaches the limit token by token, prompt by prompt.

use super::seeds::part_seed;
use super::{Kind, Plan, columns};
use crate::measured::Class;
use crate::reading::{self, NamedLaw};
use crate::tabulating::{rounded, take_constant};
use esscher_core::attention::{Attention, Softmax};
use esscher_core::measure::{Empirical, Law};
use esscher_core::numerics::{InstructionSet, linalg};
use esscher_core::prompt::{
    FinitePrompt, Precision, PromptLength, SampleOptions, SampledPrompts, delta_method,
};
use esscher_core::{Mat, Monitor};
use esscher_lab::specification::{Mistake, Section};
use esscher_lab::{Column, Failure, Table, Unit, Value};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Series};
use std::sync::Arc;

pub(super) const KIND: Kind = Kind {
    name: "path",
    title: "One prompt that grows",
    summary: "The distance of attention from its limit along single prompts: every length is a prefix of the same tokens.",
    example: r#"kind = "path"
prompts = 3
sigmas = [1, 2]
lengths = { from = 10, to = 1e4, per_decade = 2 }
queries = [[1, 0], [0, 1]]

[[law]]
name = "normal tokens"
family = "gaussian"
dimension = 2

[[law]]
name = "random signs"
family = "rademacher"
dimension = 2
"#,
    read,
};

/// What a row holds, as the column `statistic` names it.
pub(crate) mod statistic {
    /// |T_L − T| of one prompt, the root mean square over the queries: a draw, so it has no error of its own.
    pub(crate) const DISTANCE: &str = "distance";
    /// The root of its expected square, exact at every length.
    pub(crate) const EXPECTED: &str = "expected";
    /// The root of the constant of the 1/L law over L, for laws without an exact theory.
    pub(crate) const ASYMPTOTE: &str = "asymptote";
    /// |T|, the root mean square over the queries.
    pub(crate) const LIMIT: &str = "limit";
}

const COLUMNS: [(&str, Column); 8] = [
    ("law", Column::Text),
    ("sigma", Column::Real),
    ("statistic", Column::Text),
    ("prompt", Column::Integer),
    ("length", Column::Integer),
    ("value", Column::Real),
    ("error", Column::Real),
    ("accuracy", Column::Text),
];

/// Closed forms and the delta method in double precision.
const ROUNDING: f64 = 1e-12;

struct Path {
    head: Softmax,
    cases: Vec<Case>,
    prompts: u64,
    queries: Vec<Vec<f64>>,
    query_law: Law,
    lengths: Vec<PromptLength>,
    precision: Precision,
    seed: u64,
    instructions: InstructionSet,
}

struct Case {
    name: String,
    sigma: f64,
    tokens: Law,
}

fn read(section: &mut Section, seed: u64, instructions: InstructionSet) -> Result<Box<dyn Plan>, Mistake> {
    let laws = reading::token_laws(section)?;
    let dimension = laws[0].law.dimension();
    let head = reading::head(section, dimension)?;
    let sigmas = reading::sigmas(section)?;
    let cases = cases(section, &laws, &sigmas)?;
    let prompts = section.integer("prompts", 1..=10_000, Some(4))?;
    let lengths = reading::lengths(section, "lengths")?;
    if let Some(length) = lengths.iter().find(|length| length.get() > LONGEST) {
        let message = format!("prompts are drawn token by token, up to {LONGEST} of them; found {length}");
        return Err(section.mistake("lengths", message));
    }
    let queries = section.matrix("queries", MOST_QUERIES.max(dimension))?;
    if queries[0].len() != dimension || queries.len() > MOST_QUERIES {
        let (count, found) = (queries.len(), queries[0].len());
        let expected = format!("expected at most {MOST_QUERIES} queries of {dimension} numbers");
        return Err(section.mistake("queries", format!("{expected}, found {count} of {found}")));
    }
    let query_law = section.accept("queries", Empirical::from_tokens(dimension, &queries.concat()))?;
    let precision = section.choice("precision", &reading::PRECISIONS, Some("double"))?;
    let plan = Path {
        head,
        cases,
        prompts,
        queries,
        query_law: Arc::new(query_law),
        lengths,
        precision,
        seed,
        instructions,
    };
    Ok(Box::new(plan))
}

/// Tokens that a single prompt may have: an hour or so.
const LONGEST: u64 = 100_000_000_000;

const MOST_QUERIES: usize = 64;

fn cases(section: &mut Section, laws: &[NamedLaw], sigmas: &[f64]) -> Result<Vec<Case>, Mistake> {
    let mut cases = Vec::new();
    for law in laws {
        for &sigma in sigmas {
            let tokens = section.accept("sigmas", law.scaled(sigma))?;
            cases.push(Case { name: law.name.clone(), sigma, tokens });
        }
    }
    Ok(cases)
}

impl Plan for Path {
    fn unit_count(&self) -> usize {
        self.cases.len().saturating_mul(self.prompts as usize + 1)
    }

    /// One unit per prompt, and one per law for what is expected.
    fn units(&self) -> Vec<Unit> {
        let longest = self.lengths.last().map_or(1.0, |length| length.as_f64());
        let per_token = 25e-9 * self.head.token_dimension() as f64 + 8e-9 * self.queries.len() as f64;
        let mut units = Vec::new();
        for case in &self.cases {
            let label = format!("{}, σ = {}", case.name, case.sigma);
            units.push(Unit { label: format!("{label}: expected"), cost: 0.01 * self.queries.len() as f64 });
            units.extend((1..=self.prompts).map(|prompt| Unit {
                label: format!("{label}: prompt {prompt}"),
                cost: 1e-3 + per_token * longest,
            }));
        }
        units
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let per_case = 1 + self.prompts as usize;
        let case = self.cases.get(unit / per_case).ok_or_else(|| format!("there is no unit {unit}"))?;
        match unit % per_case {
            0 => self.expected(case, monitor),
            prompt => self.prompt(case, prompt as u64, monitor),
        }
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        let paths = paths(result)?;
        let mut blocks = vec![Block::Prose(format!(
            "The distance $|T[\\mu_L](z) - T[\\mu](z)|$, root mean square over {} queries, along {} single prompts \
                 per law: every point of a line is a longer prefix of the same tokens.",
            self.queries.len(),
            self.prompts
        ))];
        blocks.extend(figures(&paths).into_iter().map(Block::Figure));
        blocks.push(Block::Table(table(&paths)));
        let (id, title) = ("path".to_string(), KIND.title.to_string());
        Ok(vec![esscher_report::Section { id, title, verdict: None, blocks }])
    }
}

impl Path {
    fn prompt(&self, case: &Case, prompt: u64, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let options = SampleOptions {
            trials: 1,
            queries: self.queries.len() as u32,
            score_gradient: false,
            seed: part_seed(self.seed, prompt),
            precision: self.precision,
            instruction_set: self.instructions,
        };
        let (tokens, queries) = (case.tokens.clone(), self.query_law.clone());
        let simulation = SampledPrompts::new(&self.head, tokens, queries, &self.lengths, options)?;
        let Some(found) = simulation.run_unit(0, monitor)? else { return Ok(None) };
        let mut table = Table::new(&COLUMNS);
        for (length, square) in self.lengths.iter().zip(found.joint.output.mean()) {
            let mut row = self.start(case, statistic::DISTANCE, Some(prompt), Some(*length));
            row.extend([square.sqrt().into(), Value::Missing, Class::Sampled.name().into()]);
            table.push(row)?;
        }
        Ok(Some(table))
    }

    /// The size of the limit, and the expected distance where theory knows it.
    fn expected(&self, case: &Case, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let mut table = Table::new(&COLUMNS);
        let count = self.queries.len() as f64;
        let mut square = 0.0;
        for query in &self.queries {
            square += linalg::squared_norm(&self.head.attend(case.tokens.as_ref(), query)?) / count;
        }
        let mut row = self.start(case, statistic::LIMIT, None, None);
        row.extend([square.sqrt().into(), (ROUNDING * square.sqrt()).into(), Class::Exact.name().into()]);
        table.push(row)?;
        let (name, squares, tolerance) = if case.tokens.as_gaussian_mixture().is_some() {
            let prompt = FinitePrompt::exact(&self.head, case.tokens.as_ref())?;
            let dimension = self.head.query_dimension();
            let queries = Mat::from_fn(self.queries.len(), dimension, |i, j| self.queries[i][j]);
            let sweep = prompt.at_queries(queries.as_ref(), &self.lengths, monitor)?;
            if sweep.deviations.len() < self.queries.len() {
                return Ok(None);
            }
            let mut squares = vec![0.0; self.lengths.len()];
            for by_length in &sweep.deviations {
                for (square, found) in squares.iter_mut().zip(by_length) {
                    *square += found.output_error / count;
                }
            }
            let tolerance = esscher_core::softmax_weights::RELATIVE_TOLERANCE;
            (statistic::EXPECTED, squares, tolerance)
        } else {
            let mut constant = 0.0;
            for query in &self.queries {
                // Where the second tilt does not exist there is no 1/L law to draw.
                let Ok(found) = delta_method(&self.head, case.tokens.as_ref(), query) else {
                    return Ok(Some(table));
                };
                constant += found.output_error / count;
            }
            let squares = self.lengths.iter().map(|length| constant / length.as_f64()).collect();
            (statistic::ASYMPTOTE, squares, ROUNDING)
        };
        for (length, square) in self.lengths.iter().zip(squares) {
            let value = square.sqrt();
            let mut row = self.start(case, name, None, Some(*length));
            row.extend([value.into(), (tolerance * value).into(), Class::Exact.name().into()]);
            table.push(row)?;
        }
        Ok(Some(table))
    }

    fn start(
        &self,
        case: &Case,
        statistic: &str,
        prompt: Option<u64>,
        length: Option<PromptLength>,
    ) -> Vec<Value> {
        let prompt = prompt.map(|prompt| prompt as i64);
        let length = length.map(|length| length.get() as i64);
        vec![case.name.as_str().into(), case.sigma.into(), statistic.into(), prompt.into(), length.into()]
    }
}

/// The prompts of one law, as a result holds them.
pub(crate) struct Paths {
    pub(crate) law: String,
    pub(crate) sigma: f64,
    /// |T|.
    pub(crate) limit: f64,
    /// Length and distance, a list per prompt.
    pub(crate) prompts: Vec<Vec<(f64, f64)>>,
    /// Length and expected distance or asymptote; empty where there is neither.
    pub(crate) theory: Vec<(f64, f64)>,
    /// Whether the theory holds at every length or at long ones only.
    pub(crate) theory_is_exact: bool,
}

/// The paths of a result by law and σ, in its order.
pub(crate) fn paths(result: &Table) -> Result<Vec<Paths>, Failure> {
    columns::check(result, &COLUMNS)?;
    let mut all: Vec<Paths> = Vec::new();
    for row in result.rows() {
        let (law, sigma) = (row.text("law")?, row.real("sigma")?);
        let index = match all.iter().position(|known| known.law == law && known.sigma == sigma) {
            Some(index) => index,
            None => {
                all.push(Paths {
                    law: law.to_string(),
                    sigma,
                    limit: 0.0,
                    prompts: Vec::new(),
                    theory: Vec::new(),
                    theory_is_exact: false,
                });
                all.len() - 1
            }
        };
        let (known, value) = (&mut all[index], row.real("value")?);
        match row.text("statistic")? {
            statistic::LIMIT => known.limit = value,
            statistic::DISTANCE => {
                let prompt = row.integer("prompt")?.max(1) as usize;
                if known.prompts.len() < prompt {
                    known.prompts.resize(prompt, Vec::new());
                }
                known.prompts[prompt - 1].push((row.integer("length")? as f64, value));
            }
            name => {
                known.theory_is_exact = name == statistic::EXPECTED;
                known.theory.push((row.integer("length")? as f64, value));
            }
        }
    }
    Ok(all)
}

/// The names of paths in legends: σ is said where it is not the same for all.
fn names(paths: &[Paths]) -> Vec<String> {
    let varies = paths.windows(2).any(|pair| pair[0].sigma != pair[1].sigma);
    let name = |known: &Paths| match varies {
        true => format!("{}, σ = {}", known.law, known.sigma),
        false => known.law.clone(),
    };
    paths.iter().map(name).collect()
}

/// Laws that one figure can show.
const MOST_LAWS: usize = 7;

/// The laws whose expected distance is exact, and those with an asymptote or nothing: the prompts of a law share its
/// colour, theory is dashed.
pub(crate) fn figures(paths: &[Paths]) -> Vec<Figure> {
    let all: Vec<(String, &Paths)> = names(paths).into_iter().zip(paths).collect();
    let (exact, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, known)| known.theory_is_exact);
    let mut figures = Vec::new();
    for (group, theory, explained, id) in [
        (
            exact,
            "expected",
            "the root of the expected squared distance, exact at every length",
            "path-expected",
        ),
        (others, "asymptote", "the asymptote of the $1/L$ law, for long prompts", "path-asymptote"),
    ] {
        for (part, laws) in group.chunks(MOST_LAWS).enumerate() {
            let more = if part > 0 { format!("-part-{}", part + 1) } else { String::new() };
            let (mut series, mut dashed) = (Vec::new(), Vec::new());
            let mut theory = theory.to_string();
            let point = |&(length, value): &(f64, f64)| Point::new(length, value);
            for (colour, (name, known)) in laws.iter().enumerate() {
                for prompt in known.prompts.iter().filter(|prompt| !prompt.is_empty()) {
                    let points = prompt.iter().map(point).collect();
                    series.push(Series { name: name.clone(), mark: Mark::Line, colour, points });
                }
                if !known.theory.is_empty() {
                    let (name, points) =
                        (std::mem::take(&mut theory), known.theory.iter().map(point).collect());
                    dashed.push(Series { name, mark: Mark::Dashed, colour, points });
                }
            }
            series.extend(dashed);
            figures.push(Figure {
                id: format!("{id}{more}"),
                title: "Distance from the infinite prompt along single prompts".to_string(),
                caption: format!("Each line is one prompt that grows. Dashed: {explained}."),
                x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
                y: Axis { label: "distance |T[μ_L] − T[μ]|".to_string(), scale: Scale::Logarithmic },
                series,
            });
        }
    }
    figures
}

/// First and last distances, a row per law: draws without errors of their own.
pub(crate) fn table(paths: &[Paths]) -> DataTable {
    let mut rows = Vec::new();
    for known in paths {
        let largest = |points: Vec<Option<&(f64, f64)>>| {
            points.into_iter().flatten().map(|point| point.1).max_by(f64::total_cmp)
        };
        let first = largest(known.prompts.iter().map(|prompt| prompt.first()).collect());
        let last = largest(known.prompts.iter().map(|prompt| prompt.last()).collect());
        rows.push(vec![
            Cell::Text(known.law.clone()),
            Cell::Number { value: known.sigma, error: None },
            rounded(known.limit),
            first.map_or(Cell::Missing, rounded),
            last.map_or(Cell::Missing, rounded),
            known.theory.last().map_or(Cell::Missing, |point| rounded(point.1)),
        ]);
    }
    let columns = ["law", "$\\sigma$", "$|T[\\mu]|$", "first", "last", "expected"];
    let mut columns = columns.map(str::to_string).to_vec();
    take_constant(&mut columns, &mut rows, "$\\sigma$");
    let prompts = paths.first().map_or(0, |known| known.prompts.len());
    DataTable {
        id: "path-numbers".to_string(),
        caption: format!(
            "Size of the limit, largest distance of {prompts} prompts from it at the first and the last length (sampled, \
             single draws), and the expected distance at the last."
        ),
        columns,
        rows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esscher_core::Unwatched;
    use esscher_core::measure::{Cube, Gaussian};
    use esscher_core::numerics::Stream;

    #[test]
    fn prompts_have_different_seeds() {
        let mut seeds: Vec<u64> =
            (0..100).flat_map(|seed| (1..=100).map(move |prompt| part_seed(seed, prompt))).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 10_000);
    }

    /// The reference: the same tokens as an empirical measure, read by the definition of attention.
    #[test]
    fn distances_are_those_of_attention_on_the_prefix() {
        let identity = linalg::identity(2);
        let head = Softmax::new(identity.as_ref(), identity.as_ref()).unwrap();
        let queries = vec![vec![1.0, 0.5], vec![-2.0, 0.0], vec![0.3, 0.3]];
        let laws: [Law; 2] = [Arc::new(Gaussian::standard(2).unwrap()), Arc::new(Cube::new(2).unwrap())];
        for tokens in laws {
            let lengths = [1, 7, 300, 1000].map(|length| PromptLength::new(length).unwrap());
            let path = Path {
                head: head.clone(),
                cases: Vec::new(),
                prompts: 1,
                query_law: Arc::new(Empirical::from_tokens(2, &queries.concat()).unwrap()),
                queries: queries.clone(),
                lengths: lengths.to_vec(),
                precision: Precision::Double,
                seed: 5,
                instructions: InstructionSet::best(),
            };
            let case = Case { name: "tokens".to_string(), sigma: 1.0, tokens: tokens.clone() };
            let found = path.prompt(&case, 3, &Unwatched).unwrap().unwrap();
            // Tokens come from one address of the stream as long as they are at most 1024.
            let mut drawn = vec![0.0; 2 * 1024];
            tokens.sample(&mut Stream::new(part_seed(5, 3), 0, 0), &mut drawn).unwrap();
            for (length, row) in lengths.iter().zip(found.rows()) {
                let prompt = Empirical::from_tokens(2, &drawn[..2 * length.get() as usize]).unwrap();
                let square: f64 = queries
                    .iter()
                    .map(|query| {
                        let finite = head.attend(&prompt, query).unwrap();
                        let limit = head.attend(tokens.as_ref(), query).unwrap();
                        linalg::squared_norm(&linalg::difference(&finite, &limit)) / 3.0
                    })
                    .sum();
                let value = row.real("value").unwrap();
                assert!((value / square.sqrt() - 1.0).abs() < 1e-11, "{length}: {value} {}", square.sqrt());
            }
        }
    }
}
