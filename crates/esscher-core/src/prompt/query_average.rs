//! Errors averaged over a query law, as radius times direction: the heavy tail is in the radius.
//!
//! Errors grow like e^{τ²}/L until they saturate, so averages at long lengths rest on rare large queries.
//! For z = centre + r · root · u the radius is integrated by quadrature far into its tail and only the
//! direction u by randomised Sobol points. For Gaussian tokens the errors are linear in moments that know
//! the query through τ alone: the average first becomes a weight on each interpolation node in τ, then
//! meets the moments once, for all lengths.

use super::gaussian::{ErrorWeights, Errors, GaussianTokens};
use super::mixture::MixtureTokens;
use super::{FinitePrompt, PromptLength, TokenTheory};
use crate::accuracy::{Accuracy, Estimate};
use crate::attention::{Attention, Softmax};
use crate::error::{Error, Result};
use crate::measure::{Measure, Radial};
use crate::monitor::{Completion, Monitor};
use crate::numerics::{ScrambledSobol, Stream, check, linalg, normal};
use crate::softmax_weights::{MomentTable, NODES, Panels, WeightMoments, check_score_deviation};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// How finely to average over queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryAverage {
    /// Directions (or, for laws without radial form, queries) per randomisation; powers of two are best.
    pub directions: u32,
    /// Independent randomisations, at least two: their spread is the reported error.
    pub randomisations: u32,
    /// Which randomisations.
    pub seed: u64,
}

impl Default for QueryAverage {
    fn default() -> Self {
        QueryAverage { directions: 512, randomisations: 16, seed: 0 }
    }
}

/// Deviations averaged over queries, at one length; each number carries its class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AveragedDeviation {
    /// L.
    pub length: PromptLength,
    /// E |T_L − T|² in L²(ν).
    pub output_error: Estimate,
    /// E ‖∂T_L/∂U − ∂T/∂U‖² in L²(ν).
    pub score_gradient_error: Estimate,
    /// E ‖∂T_L/∂V − ∂T/∂V‖² in L²(ν).
    pub value_gradient_error: Estimate,
    /// E Σ pₗ².
    pub participation: Estimate,
}

/// The averages for all lengths, and whether all randomisations were done.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryAveraged {
    /// One entry per length; empty if the call was stopped before two randomisations were done.
    pub deviations: Vec<AveragedDeviation>,
    /// Whether all randomisations were completed.
    pub completion: Completion,
}

/// Randomisations handed out between two looks at the monitor.
const RANDOMISATIONS_PER_STEP: u32 = 2;

impl FinitePrompt {
    /// Deviations averaged over a query law, for each length in the order given.
    ///
    /// Laws with a radial form (Gaussian, sphere, their affine images) integrate the radius by quadrature
    /// and are [`Accuracy::QuasiMonteCarlo`] in the direction, [`Accuracy::Exact`] where there is only one
    /// direction and its opposite. Other laws are sampled and labelled so; beware that plain sampling
    /// misses the heavy tail of the radius at long lengths.
    ///
    /// With mixture tokens every query costs its own integrals, milliseconds each: choose fewer
    /// directions, or watch the monitor.
    pub fn over_queries(
        &self,
        queries: &dyn Measure,
        lengths: &[PromptLength],
        options: QueryAverage,
        monitor: &dyn Monitor,
    ) -> Result<QueryAveraged> {
        check::size("queries (dimension)", self.head.query_dimension(), queries.dimension())?;
        check::not_empty("the number of directions", options.directions as usize)?;
        if options.randomisations < 2 {
            return Err(Error::OutOfRange {
                what: "the number of randomisations",
                value: f64::from(options.randomisations),
                expected: "at least 2, since their spread is the error estimate",
            });
        }
        let rule = QueryRule::new(queries, options)?;
        let total = rule.randomisations();
        let mut moments = NodeMoments::new();
        let mut batches: Vec<Vec<Errors>> = Vec::new();
        while batches.len() < total as usize {
            let done = batches.len() as u32;
            if monitor.should_stop() {
                let completion = Completion::Stopped { completed: done as usize, total: total as usize };
                let deviations = if done < 2 { Vec::new() } else { summarise(&rule, lengths, &batches) };
                return Ok(QueryAveraged { deviations, completion });
            }
            let step = done..(done + RANDOMISATIONS_PER_STEP).min(total);
            let step: Vec<Vec<Errors>> = match &self.tokens {
                TokenTheory::Gaussian(tokens) => {
                    gaussian_batches(&self.head, tokens, &rule, step, lengths, &mut moments)?
                }
                TokenTheory::Mixture(tokens) => step
                    .map(|batch| mixture_batch(&self.head, tokens, &rule, batch, lengths, monitor))
                    .collect::<Result<_>>()?,
            };
            // A batch cut short by the monitor is empty and not counted.
            batches.extend(step.into_iter().filter(|batch| batch.len() == lengths.len()));
            monitor.progress(batches.len(), total as usize);
        }
        Ok(QueryAveraged {
            deviations: summarise(&rule, lengths, &batches),
            completion: Completion::Finished,
        })
    }
}

/// Where the queries of one randomisation stand, and with which weights.
enum QueryRule<'a> {
    /// A radial law: quadrature in the radius, directions from Sobol points (or ±1 on a line).
    Radial { radial: Radial, radii: Vec<(f64, f64)>, options: QueryAverage },
    /// Any other law: independent draws.
    Drawn { law: &'a dyn Measure, options: QueryAverage },
}

impl<'a> QueryRule<'a> {
    fn new(law: &'a dyn Measure, options: QueryAverage) -> Result<Self> {
        Ok(match law.as_radial() {
            Some(radial) => {
                if radial.root.ncols() > 1 {
                    ScrambledSobol::new(radial.root.ncols(), options.seed)?;
                }
                QueryRule::Radial { radii: radial.radius.quadrature(), radial, options }
            }
            None => QueryRule::Drawn { law, options },
        })
    }

    /// A law on a line (or a point) has no direction to randomise.
    fn is_exact(&self) -> bool {
        matches!(self, QueryRule::Radial { radial, .. } if radial.root.ncols() <= 1)
    }

    fn randomisations(&self) -> u32 {
        match self {
            _ if self.is_exact() => 1,
            QueryRule::Radial { options, .. } | QueryRule::Drawn { options, .. } => options.randomisations,
        }
    }

    /// Directions root · u of one randomisation, equally weighted.
    fn directions(radial: &Radial, options: QueryAverage, batch: u32) -> Result<Vec<Vec<f64>>> {
        let dimension = radial.root.ncols();
        if dimension <= 1 {
            let signs: &[f64] = if dimension == 0 { &[0.0] } else { &[1.0, -1.0] };
            return Ok(signs
                .iter()
                .map(|&sign| linalg::apply(radial.root.as_ref(), &vec![sign; dimension]))
                .collect());
        }
        let points = ScrambledSobol::new(dimension, options.seed.wrapping_add(u64::from(batch) << 32))?;
        Ok((0..options.directions)
            .map(|index| {
                let normals: Vec<f64> = points.point(index).into_iter().map(normal::quantile).collect();
                // A norm of zero has probability zero and would need 32 equal digits on every axis.
                let norm = linalg::squared_norm(&normals).sqrt().max(f64::MIN_POSITIVE);
                let unit: Vec<f64> = normals.iter().map(|entry| entry / norm).collect();
                linalg::apply(radial.root.as_ref(), &unit)
            })
            .collect())
    }

    /// The queries of one randomisation with their weights.
    fn queries(&self, batch: u32) -> Result<Vec<(f64, Vec<f64>)>> {
        match self {
            QueryRule::Radial { radial, radii, options } => {
                let directions = QueryRule::directions(radial, *options, batch)?;
                let share = 1.0 / directions.len() as f64;
                Ok(directions
                    .iter()
                    .flat_map(|direction| {
                        radii.iter().map(move |&(radius, weight)| {
                            let mut query = radial.centre.clone();
                            linalg::add_scaled(&mut query, radius, direction);
                            (share * weight, query)
                        })
                    })
                    .collect())
            }
            QueryRule::Drawn { law, options } => {
                let dimension = law.dimension();
                let mut drawn = vec![0.0; options.directions as usize * dimension];
                law.sample(&mut Stream::new(options.seed, batch, 0), &mut drawn)?;
                let share = 1.0 / f64::from(options.directions);
                Ok(drawn.chunks_exact(dimension).map(|query| (share, query.to_vec())).collect())
            }
        }
    }
}

/// Averages of several randomisations over Gaussian tokens: weights on τ nodes first, moments once.
fn gaussian_batches(
    head: &Softmax,
    tokens: &GaussianTokens,
    rule: &QueryRule<'_>,
    batches: std::ops::Range<u32>,
    lengths: &[PromptLength],
    moments: &mut NodeMoments,
) -> Result<Vec<Vec<Errors>>> {
    let weights: Vec<NodeWeights> = batches
        .into_par_iter()
        .map(|batch| node_weights(head, tokens, rule, batch))
        .collect::<Result<_>>()?;
    let missing: BTreeSet<usize> = weights
        .iter()
        .flat_map(|weights| weights.keys().copied())
        .filter(|panel| !moments.contains_key(panel))
        .collect();
    let computed: Vec<_> = missing
        .into_par_iter()
        .map(|panel| {
            let nodes = Panels::nodes(panel)
                .iter()
                .map(|&tau| WeightMoments::at(tau, lengths))
                .collect::<Result<_>>()?;
            Ok((panel, nodes))
        })
        .collect::<Result<_>>()?;
    moments.extend(computed);
    let errors_at = |weights: &NodeWeights, length: usize| {
        let mut total = Errors::default();
        for (panel, nodes) in weights {
            for (weight, moments) in nodes.iter().zip(&moments[panel]) {
                total += weight.errors(&moments[length]);
            }
        }
        total
    };
    Ok(weights
        .iter()
        .map(|weights| (0..lengths.len()).map(|length| errors_at(weights, length)).collect())
        .collect())
}

/// By panel of τ, then by node and length: the moments, computed where some query needs them.
type NodeMoments = BTreeMap<usize, Vec<Vec<WeightMoments>>>;

/// By panel of τ, what the average puts on each node.
type NodeWeights = BTreeMap<usize, [ErrorWeights; NODES]>;

fn node_weights(
    head: &Softmax,
    tokens: &GaussianTokens,
    rule: &QueryRule<'_>,
    batch: u32,
) -> Result<NodeWeights> {
    let mut weights = NodeWeights::new();
    let mut add = |share: f64, tau: f64, errors: &ErrorWeights| -> Result<()> {
        let (panel, coefficients) = Panels::coefficients(check_score_deviation(tau)?);
        let nodes = weights.entry(panel).or_insert([ErrorWeights::default(); NODES]);
        for (node, coefficient) in nodes.iter_mut().zip(coefficients) {
            node.add(share * coefficient, errors);
        }
        Ok(())
    };
    if let QueryRule::Radial { radial, radii, options } = rule
        && radial.centre.iter().all(|&entry| entry == 0.0)
    {
        // Along a ray only τ and |z|² change, by the radius.
        let directions = QueryRule::directions(radial, *options, batch)?;
        let share = 1.0 / directions.len() as f64;
        for direction in &directions {
            let ray = tokens.geometry(&head.tilt(direction)?, linalg::squared_norm(direction));
            for &(radius, weight) in radii {
                let geometry = ray.at_radius(radius);
                let errors = ErrorWeights::of(&geometry, tokens.output_dimension());
                add(share * weight, geometry.score_deviation, &errors)?;
            }
        }
        return Ok(weights);
    }
    for (share, query) in rule.queries(batch)? {
        let geometry = tokens.geometry(&head.tilt(&query)?, linalg::squared_norm(&query));
        add(share, geometry.score_deviation, &ErrorWeights::of(&geometry, tokens.output_dimension()))?;
    }
    Ok(weights)
}

/// The average of one randomisation over mixture tokens, or nothing if the monitor asks to stop.
fn mixture_batch(
    head: &Softmax,
    tokens: &MixtureTokens,
    rule: &QueryRule<'_>,
    batch: u32,
    lengths: &[PromptLength],
    monitor: &dyn Monitor,
) -> Result<Vec<Errors>> {
    let queries = rule.queries(batch)?;
    let mut total = vec![Errors::default(); lengths.len()];
    for chunk in queries.chunks(64) {
        if monitor.should_stop() {
            return Ok(Vec::new());
        }
        let parts: Vec<Vec<Errors>> = chunk
            .par_iter()
            .map(|(share, query)| {
                let deviations =
                    tokens.deviations(&head.tilt(query)?, linalg::squared_norm(query), lengths)?;
                Ok(deviations
                    .iter()
                    .map(|deviation| Errors {
                        output: share * deviation.output_error,
                        score_gradient: share * deviation.score_gradient_error,
                        value_gradient: share * deviation.value_gradient_error,
                        participation: share * deviation.participation,
                    })
                    .collect())
            })
            .collect::<Result<_>>()?;
        for part in parts {
            for (sum, errors) in total.iter_mut().zip(part) {
                *sum += errors;
            }
        }
    }
    Ok(total)
}

/// Mean over randomisations, with the class and error of each number.
fn summarise(
    rule: &QueryRule<'_>,
    lengths: &[PromptLength],
    batches: &[Vec<Errors>],
) -> Vec<AveragedDeviation> {
    let count = batches.len() as f64;
    lengths
        .iter()
        .enumerate()
        .map(|(index, &length)| {
            let estimate = |part: fn(&Errors) -> f64| {
                let mean = batches.iter().map(|batch| part(&batch[index])).sum::<f64>() / count;
                let squares: f64 = batches.iter().map(|batch| (part(&batch[index]) - mean).powi(2)).sum();
                let error = (squares / (count - 1.0).max(1.0) / count).sqrt();
                let accuracy = match rule {
                    _ if rule.is_exact() => Accuracy::Exact { tolerance: MomentTable::TOLERANCE },
                    QueryRule::Radial { .. } => Accuracy::QuasiMonteCarlo { randomisation_error: error },
                    QueryRule::Drawn { .. } => Accuracy::Sampled { standard_error: error },
                };
                Estimate { value: mean, accuracy }
            };
            AveragedDeviation {
                length,
                output_error: estimate(|errors| errors.output),
                score_gradient_error: estimate(|errors| errors.score_gradient),
                value_gradient_error: estimate(|errors| errors.value_gradient),
                participation: estimate(|errors| errors.participation),
            }
        })
        .collect()
}
