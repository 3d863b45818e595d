//! Errors averaged over a query law, as radius times direction: the heavy tail is in the radius.
//!
//! Errors grow like e^{τ²}/L until they saturate, so averages at long lengths rest on rare large queries.
//! For z = centre + r · root · u the radius is integrated by quadrature far into its tail and only the
//! direction u by randomised Sobol points. For Gaussian tokens the errors are linear in moments that know
//! the query through τ alone: the average first becomes a weight on each interpolation node in τ, then
//! meets the moments once, for all lengths.

use super::gaussian::{ErrorWeights, Errors, GaussianTokens, QueryGeometry};
use super::mixture::MixtureTokens;
use super::scale::{self, Scale};
use super::{FinitePrompt, PromptLength, TokenTheory};
use crate::accuracy::{Accuracy, Estimate};
use crate::attention::{Attention, Softmax};
use crate::error::{Error, Result};
use crate::measure::{Measure, Radial, radial_parts};
use crate::monitor::{Completion, Monitor};
use crate::numerics::radius::RadiusLaw;
use crate::numerics::{ScrambledSobol, Stream, check, linalg, normal, sobol};
use crate::quantity::{PerQuantity, Quantity};
use crate::softmax_weights::{
    MAX_SCORE_DEVIATION, MomentTable, NODES, Panels, WeightMoments, check_score_deviation,
};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// How finely to average over queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryAverage {
    /// Directions (or, for laws without radial form, queries) per randomisation, at most 2²⁰; powers of two
    /// are best.
    pub directions: u32,
    /// Independent randomisations, from 2 to 2¹⁶: their spread is the reported error.
    pub randomisations: u32,
    /// The seed of the randomisations.
    pub seed: u64,
}

impl QueryAverage {
    /// 8 directions in 4 randomisations, for mixture tokens, where every query costs milliseconds.
    pub const COARSE: QueryAverage = QueryAverage { directions: 8, randomisations: 4, seed: 0 };

    /// How finely every door averages over queries unless told otherwise: [`QueryAverage::COARSE`] for tokens that are
    /// mixtures of several components, the default for all others.
    pub fn for_tokens(tokens: &dyn Measure) -> Self {
        match tokens.as_gaussian_mixture() {
            Some(components) if components.len() > 1 => QueryAverage::COARSE,
            _ => QueryAverage::default(),
        }
    }
}

impl Default for QueryAverage {
    /// 512 directions in 16 randomisations, for Gaussian tokens, where a query costs less than a microsecond.
    fn default() -> Self {
        QueryAverage { directions: 512, randomisations: 16, seed: 0 }
    }
}

/// Deviations averaged over queries, at one length; each number carries its class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AveragedDeviation {
    /// The prompt length L.
    pub length: PromptLength,
    /// The mean squared errors in L²(ν).
    pub errors: PerQuantity<Estimate>,
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

/// The same with errors that may each have left the doubles: whoever needs them asks.
pub(crate) struct Averaged {
    pub(crate) deviations: Vec<AveragedErrors>,
    pub(crate) completion: Completion,
}

/// Deviations at one length.
pub(crate) struct AveragedErrors {
    pub(crate) length: PromptLength,
    pub(crate) errors: PerQuantity<Result<Estimate>>,
    participation: Estimate,
}

impl AveragedErrors {
    /// All numbers, if all are doubles.
    fn all(self) -> Result<AveragedDeviation> {
        let AveragedErrors { length, errors, participation } = self;
        let errors = PerQuantity::try_from_fn(|quantity| errors[quantity].clone())?;
        Ok(AveragedDeviation { length, errors, participation })
    }
}

/// Randomisations handed out between two looks at the monitor.
const RANDOMISATIONS_PER_STEP: u32 = 2;

/// Directions, or queries, between two looks at the monitor: a fraction of a millisecond each.
const DIRECTIONS_PER_LOOK: u32 = 256;

/// Nodes of less weight may be left out when their τ is beyond what the exact engine accepts.
const NEGLIGIBLE_WEIGHT: f64 = 1e-18;

impl FinitePrompt {
    /// Deviations averaged over a query law, for each length in the order given.
    ///
    /// Gaussians, spheres, their affine images and mixtures of Gaussians integrate the radius by quadrature
    /// and are [`Accuracy::QuasiMonteCarlo`] in the direction, [`Accuracy::Exact`] where there is only one
    /// direction and its opposite. Other laws are sampled and labelled so; beware that plain sampling
    /// misses the heavy tail of the radius at long lengths.
    ///
    /// With mixture tokens every query costs its own integrals, milliseconds each: start with
    /// [`QueryAverage::for_tokens`]. Errors can turn sharply along a ray, for mixture tokens and for queries that are
    /// not centred, so the radius rule is refined until it settles, and what remains is part of the stated error.
    pub fn over_queries(
        &self,
        queries: &dyn Measure,
        lengths: &[PromptLength],
        options: QueryAverage,
        monitor: &dyn Monitor,
    ) -> Result<QueryAveraged> {
        let radius = &mut RadiusRefinement::default();
        let found = self.over_queries_refined(queries, lengths, options, monitor, radius)?;
        let deviations = found.deviations.into_iter().map(AveragedErrors::all).collect::<Result<_>>()?;
        Ok(QueryAveraged { deviations, completion: found.completion })
    }

    /// The same with a radius rule as fine as a former call with this `radius` found necessary: the same queries at
    /// other lengths.
    pub(crate) fn over_queries_refined(
        &self,
        queries: &dyn Measure,
        lengths: &[PromptLength],
        options: QueryAverage,
        monitor: &dyn Monitor,
        radius: &mut RadiusRefinement,
    ) -> Result<Averaged> {
        check::size("queries (dimension)", self.head.query_dimension(), queries.dimension())?;
        options.check()?;
        let rule = QueryRule::new(queries, options)?;
        let scale = Scale { query: rule.exponent()?, ..self.scale() };
        let total = rule.randomisations();
        let mut moments = NodeMoments::new();
        let mut batches: Vec<Vec<Errors>> = Vec::new();
        while batches.len() < total as usize {
            let done = batches.len() as u32;
            let step = done..(done + RANDOMISATIONS_PER_STEP).min(total);
            let finished = if monitor.should_stop() {
                None
            } else {
                match &self.tokens {
                    TokenTheory::Gaussian(tokens) => {
                        let (head, rule) = (&self.head, &rule);
                        let average = GaussianAverage { head, tokens, rule, scale, lengths, monitor };
                        average.batches(step, &mut moments, radius)?
                    }
                    TokenTheory::Mixture(tokens) => {
                        let (head, rule) = (&self.head, &rule);
                        let average = MixtureAverage { head, tokens, rule, scale, lengths, monitor };
                        average.batch(done, radius)?.map(|batch| vec![batch])
                    }
                }
            };
            let Some(finished) = finished else {
                let completion = Completion::Stopped { completed: batches.len(), total: total as usize };
                let enough = batches.len() >= 2;
                let deviations =
                    if enough { summarise(&rule, scale, lengths, &batches, *radius)? } else { Vec::new() };
                return Ok(Averaged { deviations, completion });
            };
            batches.extend(finished);
            monitor.progress(batches.len(), total as usize);
        }
        let deviations = summarise(&rule, scale, lengths, &batches, *radius)?;
        Ok(Averaged { deviations, completion: Completion::Finished })
    }
}

impl QueryAverage {
    fn check(&self) -> Result<()> {
        for (what, value, range, expected) in [
            ("the number of directions", self.directions, 1..=1 << 20, "a whole number from 1 to 1048576"),
            (
                "the number of randomisations",
                self.randomisations,
                2..=1 << 16,
                "a whole number from 2 to 65536: their spread is the error estimate",
            ),
        ] {
            if !range.contains(&value) {
                return Err(Error::OutOfRange { what, value: f64::from(value), expected });
            }
        }
        Ok(())
    }
}

/// Queries with their weights, one after the other.
type Queries<'a> = Box<dyn Iterator<Item = (f64, Vec<f64>)> + 'a>;

/// Where the queries of one randomisation stand, and with which weights.
enum QueryRule<'a> {
    /// Weighted radial laws: quadrature in the radius, directions from Sobol points (or ±1 on a line).
    Radial { parts: Vec<(f64, Radial)>, options: QueryAverage },
    /// Any other law: independent draws.
    Drawn { law: &'a dyn Measure, options: QueryAverage },
}

impl<'a> QueryRule<'a> {
    fn new(law: &'a dyn Measure, options: QueryAverage) -> Result<Self> {
        let Some(parts) = radial_parts(law) else {
            return Ok(QueryRule::Drawn { law, options });
        };
        for (_, radial) in &parts {
            if radial.root.ncols() > sobol::MAX_DIMENSION {
                return Err(Error::OutOfRange {
                    what: "the dimension of the query law",
                    value: radial.root.ncols() as f64,
                    expected: "at most 1024 directions to average over; sample queries and average `at_queries`",
                });
            }
        }
        Ok(QueryRule::Radial { parts, options })
    }

    /// How an average by this rule is obtained: a law on a line (or a point) has no direction to randomise.
    fn accuracy(&self) -> Accuracy {
        match self {
            QueryRule::Radial { parts, .. } if parts.iter().all(|(_, part)| part.root.ncols() <= 1) => {
                Accuracy::Exact
            }
            QueryRule::Radial { .. } => Accuracy::QuasiMonteCarlo,
            QueryRule::Drawn { .. } => Accuracy::Sampled,
        }
    }

    fn is_exact(&self) -> bool {
        self.accuracy() == Accuracy::Exact
    }

    /// The binary exponent of the queries' size; of draws, that of the first randomisation.
    fn exponent(&self) -> Result<i32> {
        let sizes: Vec<f64> = match self {
            QueryRule::Radial { parts, .. } => parts
                .iter()
                .flat_map(|(_, part)| {
                    [linalg::largest(&part.centre), check::largest_entry(part.root.as_ref())]
                })
                .collect(),
            QueryRule::Drawn { law, options } => QueryRule::draw(*law, *options, 0)?,
        };
        Ok(linalg::exponent(&sizes))
    }

    /// The queries of one randomisation of a law that is drawn, one after the other.
    fn draw(law: &dyn Measure, options: QueryAverage, batch: u32) -> Result<Vec<f64>> {
        let mut drawn = vec![0.0; options.directions as usize * law.dimension()];
        law.sample(&mut Stream::new(options.seed, batch, 0), &mut drawn)?;
        Ok(drawn)
    }

    /// Whether a radius varies.
    fn is_spread(&self) -> bool {
        matches!(self, QueryRule::Radial { parts, .. } if parts.iter().any(|(_, part)| part.radius.is_spread()))
    }

    /// Whether all rays start at the origin, so that along each of them only τ and |z|² change, by the radius.
    fn is_centred(&self) -> bool {
        let at_origin = |part: &Radial| part.centre.iter().all(|&entry| entry == 0.0);
        matches!(self, QueryRule::Radial { parts, .. } if parts.iter().all(|(_, part)| at_origin(part)))
    }

    fn randomisations(&self) -> u32 {
        match self {
            _ if self.is_exact() => 1,
            QueryRule::Radial { options, .. } | QueryRule::Drawn { options, .. } => options.randomisations,
        }
    }

    /// Directions root · u of one randomisation, equally weighted; nothing if the monitor asks to stop.
    fn directions(
        radial: &Radial,
        options: QueryAverage,
        batch: u32,
        monitor: &dyn Monitor,
    ) -> Result<Option<Vec<Vec<f64>>>> {
        let dimension = radial.root.ncols();
        if dimension <= 1 {
            let signs: &[f64] = if dimension == 0 { &[0.0] } else { &[1.0, -1.0] };
            let along = |&sign: &f64| linalg::apply(radial.root.as_ref(), &vec![sign; dimension]);
            return Ok(Some(signs.iter().map(along).collect()));
        }
        let points = ScrambledSobol::new(dimension, options.seed.wrapping_add(u64::from(batch) << 32))?;
        let mut directions = Vec::with_capacity(options.directions as usize);
        for index in 0..options.directions {
            if index.is_multiple_of(DIRECTIONS_PER_LOOK) && monitor.should_stop() {
                return Ok(None);
            }
            let normals: Vec<f64> = points.point(index).into_iter().map(normal::quantile).collect();
            // A norm of zero has probability zero and would need 32 equal digits on every axis.
            let norm = linalg::norm(&normals).max(f64::MIN_POSITIVE);
            let unit: Vec<f64> = normals.iter().map(|entry| entry / norm).collect();
            directions.push(linalg::apply(radial.root.as_ref(), &unit));
        }
        Ok(Some(directions))
    }

    /// The queries of one randomisation with their weights, on these radius nodes of each part, made one after the other;
    /// nothing if the monitor asks to stop.
    fn queries<'b>(
        &'b self,
        batch: u32,
        radii: impl Fn(&Radial) -> Vec<(f64, f64)>,
        monitor: &dyn Monitor,
    ) -> Result<Option<Queries<'b>>> {
        match self {
            QueryRule::Radial { parts, options } => {
                let mut rays = Vec::new();
                for (part_weight, radial) in parts {
                    let Some(directions) = QueryRule::directions(radial, *options, batch, monitor)? else {
                        return Ok(None);
                    };
                    rays.push((part_weight / directions.len() as f64, radial, radii(radial), directions));
                }
                Ok(Some(Box::new(rays.into_iter().flat_map(|(share, radial, radii, directions)| {
                    radii.into_iter().flat_map(move |(radius, weight)| {
                        let at = |direction: &Vec<f64>| {
                            let mut query = radial.centre.clone();
                            linalg::add_scaled(&mut query, radius, direction);
                            (share * weight, query)
                        };
                        directions.iter().map(at).collect::<Vec<_>>()
                    })
                }))))
            }
            QueryRule::Drawn { law, options } => {
                let drawn = QueryRule::draw(*law, *options, batch)?;
                let share = 1.0 / f64::from(options.directions);
                let dimension = law.dimension();
                let count = drawn.len() / dimension;
                Ok(Some(Box::new(
                    (0..count).map(move |index| {
                        (share, drawn[index * dimension..(index + 1) * dimension].to_vec())
                    }),
                )))
            }
        }
    }
}

/// The average over Gaussian tokens: weights on τ nodes first, moments once.
struct GaussianAverage<'a> {
    head: &'a Softmax,
    tokens: &'a GaussianTokens,
    rule: &'a QueryRule<'a>,
    scale: Scale,
    lengths: &'a [PromptLength],
    monitor: &'a dyn Monitor,
}

impl GaussianAverage<'_> {
    /// Several randomisations, nothing if the monitor asks to stop; the first of all decides how fine the radius is.
    fn batches(
        &self,
        batches: std::ops::Range<u32>,
        moments: &mut NodeMoments,
        radius: &mut RadiusRefinement,
    ) -> Result<Option<Vec<Vec<Errors>>>> {
        let finest = match radius.levels {
            Some(levels) => Some(levels),
            None => self.refine(batches.start, moments, radius)?,
        };
        let Some(finest) = finest else { return Ok(None) };
        let weights: Option<Vec<NodeWeights>> = batches
            .into_par_iter()
            .map(|batch| {
                let mut weights = self.node_weights(batch, None)?;
                for level in RadiusLaw::FINE_LEVEL + 1..=finest {
                    let Some(coarse) = weights else { break };
                    weights = self.refined(coarse, batch, level)?;
                }
                Ok(weights)
            })
            .collect::<Result<_>>()?;
        weights.map_or(Ok(None), |weights| self.errors(&weights, moments))
    }

    /// Halves the step of the radius until nothing changes: the level, also noted in `radius`; nothing if stopped.
    ///
    /// On centred rays errors are smooth in ln r at every scale, which the rule resolves as it does the density; beside
    /// the origin they turn where the ray passes it.
    fn refine(
        &self,
        batch: u32,
        moments: &mut NodeMoments,
        radius: &mut RadiusRefinement,
    ) -> Result<Option<u32>> {
        // Along a line the radius is all there is; elsewhere directions limit the accuracy.
        let (goal, most) = if self.rule.is_exact() { (MomentTable::TOLERANCE, 8) } else { (1e-6, 3) };
        let refinable = self.rule.is_spread() && (self.rule.is_exact() || !self.rule.is_centred());
        let (mut level, mut change) = (RadiusLaw::FINE_LEVEL, 0.0);
        if refinable {
            let Some(mut weights) = self.node_weights(batch, None)? else { return Ok(None) };
            let errors = self.errors(std::slice::from_ref(&weights), moments)?;
            let Some(mut coarse) = errors.map(|errors| errors.concat()) else { return Ok(None) };
            while level < RadiusLaw::FINE_LEVEL + most && (level == RadiusLaw::FINE_LEVEL || change > goal) {
                level += 1;
                let Some(finer) = self.refined(weights, batch, level)? else { return Ok(None) };
                weights = finer;
                let errors = self.errors(std::slice::from_ref(&weights), moments)?;
                let Some(fine) = errors.map(|errors| errors.concat()) else { return Ok(None) };
                change = largest_change(&fine, &coarse);
                coarse = fine;
            }
        }
        *radius = RadiusRefinement { levels: Some(level), change, ..*radius };
        Ok(Some(level))
    }

    /// Half of the coarser weights plus those of the nodes that a level adds; nothing if the monitor asks to stop.
    fn refined(&self, mut coarse: NodeWeights, batch: u32, level: u32) -> Result<Option<NodeWeights>> {
        let Some(added) = self.node_weights(batch, Some(level))? else { return Ok(None) };
        for node in coarse.values_mut().flatten() {
            let mut half = ErrorWeights::default();
            half.add(0.5, node);
            *node = half;
        }
        for (panel, added) in added {
            let nodes = coarse.entry(panel).or_insert([ErrorWeights::default(); NODES]);
            nodes.iter_mut().zip(&added).for_each(|(node, added)| node.add(1.0, added));
        }
        Ok(Some(coarse))
    }

    /// What weights on τ nodes amount to, for each length; nothing if the monitor asks to stop.
    fn errors(&self, weights: &[NodeWeights], moments: &mut NodeMoments) -> Result<Option<Vec<Vec<Errors>>>> {
        let missing: BTreeSet<usize> = weights
            .iter()
            .flat_map(|weights| weights.keys().copied())
            .filter(|panel| !moments.contains_key(panel))
            .collect();
        // With hundreds of lengths a panel takes a good part of a second.
        let computed: Vec<Option<_>> = missing
            .into_par_iter()
            .map(|panel| {
                if self.monitor.should_stop() {
                    return None;
                }
                let nodes = Panels::nodes(panel);
                Some((panel, nodes.iter().map(|&tau| WeightMoments::at_node(tau, self.lengths)).collect()))
            })
            .collect();
        if computed.iter().any(Option::is_none) {
            return Ok(None);
        }
        moments.extend(computed.into_iter().flatten());
        let errors_at = |weights: &NodeWeights, length: usize| {
            let mut total = Errors::default();
            for (panel, nodes) in weights {
                for (weight, moments) in nodes.iter().zip(&moments[panel]) {
                    total += weight.errors(&moments[length]);
                }
            }
            total
        };
        let errors_of = |weights: &NodeWeights| -> Vec<Errors> {
            (0..self.lengths.len()).map(|length| errors_at(weights, length)).collect()
        };
        Ok(Some(weights.iter().map(errors_of).collect()))
    }

    /// The weights that the radius rule puts on the nodes: the whole rule, or what one level beyond adds; nothing if the
    /// monitor asks to stop.
    fn node_weights(&self, batch: u32, level: Option<u32>) -> Result<Option<NodeWeights>> {
        let radii = |radial: &Radial| match level {
            None => radial.radius.quadrature(),
            Some(level) => added_radii(radial, level),
        };
        let mut weights = NodeWeights::new();
        let mut add = |share: f64, geometry: &QueryGeometry| -> Result<()> {
            let tau = geometry.score_deviation;
            if share < NEGLIGIBLE_WEIGHT && tau > MAX_SCORE_DEVIATION {
                return Ok(());
            }
            let (panel, coefficients) = Panels::coefficients(check_score_deviation(tau)?);
            let errors = ErrorWeights::of(geometry, self.tokens.output_dimension());
            let nodes = weights.entry(panel).or_insert([ErrorWeights::default(); NODES]);
            for (node, coefficient) in nodes.iter_mut().zip(coefficients) {
                node.add(share * coefficient, &errors);
            }
            Ok(())
        };
        let (head, tokens) = (self.head, self.tokens);
        let geometry = |query: &[f64]| -> Result<QueryGeometry> {
            Ok(tokens.geometry(&head.tilt(query)?, scale::squared_norm(query, self.scale.query)))
        };
        if let QueryRule::Radial { parts, options } = self.rule
            && self.rule.is_centred()
        {
            for (part_weight, radial) in parts {
                let radii = radii(radial);
                let directions = QueryRule::directions(radial, *options, batch, self.monitor)?;
                let Some(directions) = directions else { return Ok(None) };
                let share = part_weight / directions.len() as f64;
                for (index, direction) in (0_u32..).zip(&directions) {
                    if index.is_multiple_of(DIRECTIONS_PER_LOOK) && self.monitor.should_stop() {
                        return Ok(None);
                    }
                    let ray = geometry(direction)?;
                    for &(radius, weight) in &radii {
                        add(share * weight, &ray.at_radius(radius))?;
                    }
                }
            }
            return Ok(Some(weights));
        }
        let Some(queries) = self.rule.queries(batch, radii, self.monitor)? else { return Ok(None) };
        for (index, (share, query)) in (0_u64..).zip(queries) {
            if index.is_multiple_of(u64::from(DIRECTIONS_PER_LOOK)) && self.monitor.should_stop() {
                return Ok(None);
            }
            add(share, &geometry(&query)?)?;
        }
        Ok(Some(weights))
    }
}

/// The nodes that a level of the radius rule adds.
///
/// A part without spread has its one node at level 0: the halving of each refinement is made up here.
fn added_radii(radial: &Radial, level: u32) -> Vec<(f64, f64)> {
    if radial.radius.is_spread() || level == 0 {
        return radial.radius.quadrature_level(level);
    }
    radial.radius.quadrature_level(0).into_iter().map(|(radius, weight)| (radius, 0.5 * weight)).collect()
}

/// The largest relative change of any number at any length.
fn largest_change(fine: &[Errors], coarse: &[Errors]) -> f64 {
    fine.iter().zip(coarse).map(|(fine, coarse)| fine.relative_change(coarse)).fold(0.0, f64::max)
}

/// By panel of τ, then by node and length: the moments, computed where some query needs them.
type NodeMoments = BTreeMap<usize, Vec<Vec<WeightMoments>>>;

/// By panel of τ, what the average puts on each node.
type NodeWeights = BTreeMap<usize, [ErrorWeights; NODES]>;

/// How far the radius rule was refined on the first randomisation, and what its last refinement changed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RadiusRefinement {
    /// Levels beyond the coarsest; `None` before the first randomisation.
    levels: Option<u32>,
    /// The largest relative change of any number by the last refinement.
    change: f64,
    /// The largest tolerance of any number, from those of its queries.
    tolerance: f64,
}

/// The average over mixture tokens, where every query has its own integrals.
struct MixtureAverage<'a> {
    head: &'a Softmax,
    tokens: &'a MixtureTokens,
    rule: &'a QueryRule<'a>,
    scale: Scale,
    lengths: &'a [PromptLength],
    monitor: &'a dyn Monitor,
}

impl MixtureAverage<'_> {
    /// One randomisation; nothing if the monitor asks to stop. The first one decides how fine the radius is.
    fn batch(&self, batch: u32, radius: &mut RadiusRefinement) -> Result<Option<Vec<Errors>>> {
        let Some(mut total) = self.level(batch, 0, radius)? else {
            return Ok(None);
        };
        // Along a line the radius is all there is; elsewhere directions limit the accuracy.
        let (goal, most) = if self.rule.is_exact() { (MomentTable::TOLERANCE, 8) } else { (1e-3, 4) };
        let last = if self.rule.is_spread() { radius.levels.unwrap_or(most) } else { 0 };
        let mut change = 0.0;
        let mut level = 0;
        while level < last && (radius.levels.is_some() || level == 0 || change > goal) {
            level += 1;
            let Some(added) = self.level(batch, level, radius)? else {
                return Ok(None);
            };
            let refined: Vec<Errors> =
                total.iter().zip(&added).map(|(coarse, added)| coarse.refined_by(added)).collect();
            change = largest_change(&refined, &total);
            total = refined;
        }
        if radius.levels.is_none() {
            *radius = RadiusRefinement { levels: Some(level), change, ..*radius };
        }
        Ok(Some(total))
    }

    /// The weighted sum over the queries that one level of the radius rule adds.
    fn level(&self, batch: u32, level: u32, radius: &mut RadiusRefinement) -> Result<Option<Vec<Errors>>> {
        let queries = self.rule.queries(batch, |radial| added_radii(radial, level), self.monitor)?;
        let Some(mut queries) = queries else { return Ok(None) };
        let mut total = vec![Errors::default(); self.lengths.len()];
        let mut uncertain = total.clone();
        loop {
            let chunk: Vec<(f64, Vec<f64>)> = queries.by_ref().take(64).collect();
            if chunk.is_empty() {
                break;
            }
            if self.monitor.should_stop() {
                return Ok(None);
            }
            let parts: Vec<Vec<(Errors, Errors)>> = chunk
                .par_iter()
                .filter(|(share, _)| *share > 0.0)
                .map(|(share, query)| {
                    let query_norm = scale::squared_norm(query, self.scale.query);
                    let deviations =
                        self.tokens.deviations(&self.head.tilt(query)?, query_norm, self.lengths)?;
                    Ok(deviations
                        .iter()
                        .map(|deviation| {
                            let uncertain = Errors::weighted(deviation, *share * deviation.tolerance);
                            (Errors::weighted(deviation, *share), uncertain)
                        })
                        .collect())
                })
                .collect::<Result<_>>()?;
            for part in parts {
                for ((sum, uncertain), (errors, share)) in total.iter_mut().zip(&mut uncertain).zip(part) {
                    *sum += errors;
                    *uncertain += share;
                }
            }
        }
        for (total, uncertain) in total.iter().zip(&uncertain) {
            for (whole, part) in total.parts().into_iter().zip(uncertain.parts()) {
                if whole > 0.0 {
                    radius.tolerance = radius.tolerance.max(part / whole);
                }
            }
        }
        Ok(Some(total))
    }
}

/// Mean over randomisations, with the class and error of each number, on the scale of the request.
fn summarise(
    rule: &QueryRule<'_>,
    scale: Scale,
    lengths: &[PromptLength],
    batches: &[Vec<Errors>],
    radius: RadiusRefinement,
) -> Result<Vec<AveragedErrors>> {
    let count = batches.len() as f64;
    let estimate = |index: usize, part: &dyn Fn(&Errors) -> f64| -> Result<Estimate> {
        let mean = batches.iter().map(|batch| part(&batch[index])).sum::<f64>() / count;
        let squares: f64 = batches.iter().map(|batch| (part(&batch[index]) - mean).powi(2)).sum();
        let spread = (squares / (count - 1.0).max(1.0) / count).sqrt();
        let found = if rule.accuracy() == Accuracy::Exact {
            Estimate::exact_to(mean, MomentTable::TOLERANCE.max(radius.change).max(radius.tolerance))
        } else {
            let error = spread.hypot(radius.change.max(radius.tolerance) * mean.abs());
            Estimate { value: mean, error, accuracy: rule.accuracy() }
        };
        check::finite_number("an averaged deviation", found.value.abs() + found.error)?;
        Ok(found)
    };
    lengths
        .iter()
        .enumerate()
        .map(|(index, &length)| {
            Ok(AveragedErrors {
                length,
                errors: PerQuantity::from_fn(|quantity: Quantity| {
                    scale.restored_estimate(quantity, estimate(index, &|errors| errors.of[quantity])?)
                }),
                participation: estimate(index, &|errors| errors.participation)?,
            })
        })
        .collect()
}
