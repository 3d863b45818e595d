//! Gaussian-mixture tokens Σ πₖ N(mₖ, Gₖ), atoms allowed: outputs and gradients in one pass of partition sums.
//!
//! Given its component k and its standardised score g, a token minus the limit T is x = oₖ + bₖh + r with
//! h = g − centreₖ, bₖ = Gₖθ/τₖ and r ~ N(0, Gₖ − bₖbₖᵀ): every site expectation below is a polynomial of degree
//! four in h, so nothing of order d⁴ is ever formed.
//!
//! The error of the gradient, E‖V(Cov − C)‖² with C the tilted covariance, is computed in two forms: centred on
//! the limit, which keeps the digits of a small error, and expanded about zero with E‖V Cov‖² from differences of
//! pairs, which keeps them when the softmax has frozen. The form with the smaller terms is the answer, and
//! its terms over its value are the stated tolerance.

use super::scale::Scale;
use super::{Deviation, PromptLength};
use crate::attention::{Attention, Softmax};
use crate::error::{Error, Result};
use crate::measure::GaussianComponent;
use crate::numerics::{check, linalg, softmax};
use crate::quantity::PerQuantity;
use crate::softmax_weights::{
    Blocks, RELATIVE_TOLERANCE, SiteGrid, SiteSums, check_score_deviation, highest_normal, integrate,
};
use faer::{Mat, MatRef};

/// The head and the components, which no query changes, on the scale of tokens and values of size one.
#[derive(Debug, Clone)]
pub(super) struct MixtureTokens {
    scale: Scale,
    components: Vec<GaussianComponent>,
    value: Mat<f64>,
    /// W = VᵀV.
    metric: Mat<f64>,
    output_dimension: usize,
}

/// Scores are known to a rounding of their size only; beyond this the tolerance would exceed 10⁻⁶.
const LARGEST_SCORE: f64 = 1e9;

/// Nodes of all components together, about a gigabyte.
const LARGEST_GRID: f64 = 2e7;

/// Far below any mass that a row needs to count.
const SMALLEST_MASS: f64 = 1e-280;

/// The exponent of means on the scale of their spread, at most.
const LARGEST_EXPONENT: i32 = 1000;

/// The exponent of outputs on the scale of tokens and values, at least: fourth powers of smaller ones leave the doubles.
const SMALLEST_OUTPUT: i32 = -200;

/// How many roundings of its largest term a sum of this module may be off.
const ROUNDINGS: f64 = 16.0 * f64::EPSILON;

impl MixtureTokens {
    /// # Errors
    /// Tokens so much wider in one direction than in another that the squares of an output would vanish beside theirs.
    pub(super) fn new(head: &Softmax, components: &[GaussianComponent]) -> Result<Self> {
        let entries = linalg::matrix_exponent(head.value());
        let value = linalg::matrix_times_power_of_two(head.value(), -entries);
        let (mut widest, mut farthest, mut largest_output) = (0.0_f64, 0.0_f64, 0.0_f64);
        for component in components {
            let (mean, root) = (component.gaussian.mean_vector(), component.gaussian.root());
            let offset = linalg::difference(mean, components[0].gaussian.mean_vector());
            let offset = check::finite_result("the distance of two components", offset)?;
            let outputs = linalg::apply(value.as_ref(), &offset);
            widest = widest.max(check::largest_entry(root)).max(linalg::largest(&offset));
            farthest = farthest.max(linalg::largest(mean));
            largest_output = largest_output
                .max(linalg::largest(&outputs))
                .max(check::largest_entry((&value * root).as_ref()));
        }
        // Means far from the origin must stay doubles, whatever the spread around them.
        let token = linalg::exponent(&[widest]).max(linalg::exponent(&[farthest]) - LARGEST_EXPONENT);
        let output = linalg::exponent(&[largest_output]) - token;
        if largest_output > 0.0 && output < SMALLEST_OUTPUT {
            return Err(Error::Underflow { what: "an output beside the size of its tokens" });
        }
        let components = components
            .iter()
            .map(|component| GaussianComponent {
                gaussian: component.gaussian.times_power_of_two(-token),
                ..*component
            })
            .collect();
        Ok(MixtureTokens {
            scale: Scale { token, value: entries, query: 0 },
            components,
            metric: value.transpose() * &value,
            value,
            output_dimension: head.output_dimension(),
        })
    }

    pub(super) fn scale(&self) -> Scale {
        self.scale
    }

    pub(super) fn deviations(
        &self,
        tilt: &[f64],
        query_norm: f64,
        lengths: &[PromptLength],
    ) -> Result<Vec<Deviation>> {
        let Some(longest) = lengths.iter().max() else {
            return Ok(Vec::new());
        };
        let tilt = check::finite_result(
            "the scores of the query",
            linalg::times_power_of_two(tilt, self.scale.token),
        )?;
        let tilted = Tilted::new(&self.components, &tilt, *longest)?;
        let layout = Layout { dimension: tilt.len() };
        let integrals = integrate(&tilted.grids, lengths, layout.quantities(), |sums, blocks| {
            layout.fill(&tilted, self.metric.as_ref(), sums, blocks);
        });
        Ok(lengths
            .iter()
            .zip(&integrals)
            .map(|(&length, integrals)| self.deviation(&tilted, layout, length, query_norm, integrals))
            .collect())
    }

    fn deviation(
        &self,
        tilted: &Tilted,
        layout: Layout,
        length: PromptLength,
        query_norm: f64,
        integrals: &[f64],
    ) -> Deviation {
        let bias = linalg::apply(self.value.as_ref(), &integrals[layout.bias()]);
        let token_moment = layout.symmetric(&integrals[layout.second_moment()]);
        let mut covariance = &self.value * &token_moment * self.value.transpose();
        let output_error = linalg::trace(covariance.as_ref());
        linalg::add_outer(&mut covariance, -1.0, &bias, &bias);
        for i in 0..bias.len() {
            // A variance that rounding has made negative is zero to the stated accuracy.
            covariance[(i, i)] = covariance[(i, i)].max(0.0);
        }
        let (gradient, terms) = self.gradient_error(tilted, layout, integrals);
        let mut tolerance = RELATIVE_TOLERANCE + ROUNDINGS * tilted.largest_score;
        if gradient > 0.0 && query_norm > 0.0 {
            tolerance += ROUNDINGS * terms / gradient;
        }
        Deviation {
            length,
            bias,
            covariance,
            errors: PerQuantity {
                output: output_error,
                score_gradient: query_norm * gradient,
                value_gradient: self.output_dimension as f64 * linalg::trace(token_moment.as_ref()),
            },
            participation: integrals[layout.participation()],
            tolerance,
        }
    }

    /// E‖V(Cov − C)‖² by the form with the smaller terms, and the size of those terms.
    fn gradient_error(&self, tilted: &Tilted, layout: Layout, integrals: &[f64]) -> (f64, f64) {
        let (centred, centred_terms) = (integrals[layout.centred()], integrals[layout.centred_terms()]);
        let squared = integrals[layout.squared_covariance()];
        let mean = layout.symmetric(&integrals[layout.mean_covariance()]);
        let metric_limit = &self.metric * &tilted.covariance;
        let cross = linalg::trace_of_product(metric_limit.as_ref(), mean.as_ref());
        let limit = linalg::trace_of_product(metric_limit.as_ref(), tilted.covariance.as_ref());
        let expanded_terms = squared + 2.0 * cross.abs() + limit;
        let (value, terms) = if centred_terms < expanded_terms {
            (centred, centred_terms)
        } else {
            (squared - 2.0 * cross + limit, expanded_terms)
        };
        // Rounding can leave a small negative number; a NaN must stay one, to be refused.
        (if value < 0.0 { 0.0 } else { value }, terms)
    }
}

/// One component as the tilt sees it.
struct Part {
    /// The weight πₖ.
    weight: f64,
    /// mₖ + Gₖθ − T.
    offset: Vec<f64>,
    /// bₖ = Gₖθ/τₖ, zero for an atom.
    along: Vec<f64>,
    /// Gₖ − bₖbₖᵀ.
    rest: Mat<f64>,
    /// The standard deviation τₖ of its scores.
    score_deviation: f64,
}

/// The mixture tilted by θ: components, site grids, covariance C.
struct Tilted {
    parts: Vec<Part>,
    grids: Vec<(f64, SiteGrid)>,
    covariance: Mat<f64>,
    largest_score: f64,
}

impl Tilted {
    fn new(components: &[GaussianComponent], tilt: &[f64], longest: PromptLength) -> Result<Self> {
        // (⟨θ, mₖ⟩, τₖ, bₖ) of every component.
        let scores: Vec<(f64, f64, Vec<f64>)> = components
            .iter()
            .map(|component| {
                let whitened = linalg::apply_transpose(component.gaussian.root(), tilt);
                let tau = check_score_deviation(linalg::norm(&whitened))?;
                let unit: Vec<f64> =
                    whitened.iter().map(|entry| if tau > 0.0 { entry / tau } else { 0.0 }).collect();
                let along = linalg::apply(component.gaussian.root(), &unit);
                Ok((linalg::dot(tilt, component.gaussian.mean_vector()), tau, along))
            })
            .collect::<Result<_>>()?;
        let log_masses: Vec<f64> = components
            .iter()
            .zip(&scores)
            .map(|(component, (score, tau, _))| component.log_weight + score + 0.5 * tau * tau)
            .collect();
        let (responsibilities, log_partition) = softmax(&log_masses);
        let largest_score = scores
            .iter()
            .map(|(score, _, _)| (score - log_partition).abs())
            .fold(log_partition.abs(), f64::max);
        let nodes: f64 = scores.iter().map(|(_, tau, _)| 60.0 + 150.0 * tau).sum();
        for (what, value, expected, limit) in [
            ("the largest score of a component", largest_score, "at most 10⁹ in size", LARGEST_SCORE),
            (
                "the number of quadrature nodes (components times score deviations)",
                nodes,
                "at most 2·10⁷: fewer components or smaller scores",
                LARGEST_GRID,
            ),
        ] {
            if check::finite_number(what, value)? > limit {
                return Err(Error::OutOfRange { what, value, expected });
            }
        }
        let centres: Vec<Vec<f64>> = components
            .iter()
            .zip(&scores)
            .map(|(component, (_, tau, along))| {
                let mut centre = component.gaussian.mean_vector().to_vec();
                linalg::add_scaled(&mut centre, *tau, along);
                centre
            })
            .collect();
        let mut tilted = Tilted {
            parts: Vec::with_capacity(components.len()),
            grids: Vec::with_capacity(components.len()),
            covariance: Mat::zeros(tilt.len(), tilt.len()),
            largest_score,
        };
        for (k, (component, (score, tau, along))) in components.iter().zip(scores).enumerate() {
            // Σⱼ aⱼ (cₖ − cⱼ): cₖ − T would round away the offset of a component that dominates T.
            let mut offset = vec![0.0; tilt.len()];
            for (responsibility, centre) in responsibilities.iter().zip(&centres) {
                linalg::add_scaled(&mut offset, *responsibility, &linalg::difference(&centres[k], centre));
            }
            tilted.covariance += faer::Scale(responsibilities[k]) * component.gaussian.covariance_matrix();
            linalg::add_outer(&mut tilted.covariance, responsibilities[k], &offset, &offset);
            // Relative to Λ, so that the mean weight of a site is one.
            let shift = score - log_partition;
            let grid = if tau == 0.0 {
                SiteGrid::atom(shift)
            } else {
                SiteGrid::normal(shift, tau, highest_normal(tau, longest, 250.0))
            };
            let weight = component.weight();
            tilted.grids.push((weight, grid));
            let mut rest = component.gaussian.covariance_matrix().to_owned();
            linalg::add_outer(&mut rest, -1.0, &along, &along);
            tilted.parts.push(Part { weight, offset, along, rest, score_deviation: tau });
        }
        Ok(tilted)
    }
}

/// Site expectations of one component at one row, as polynomials in h, about a chosen origin of x.
struct Site<'a> {
    /// E x | h = offset + along · h.
    offset: Vec<f64>,
    part: &'a Part,
}

impl<'a> Site<'a> {
    /// With h about the row's centre, and x about `origin`.
    fn new(part: &'a Part, centre: f64, origin: &[f64]) -> Self {
        let mut offset = linalg::difference(&part.offset, origin);
        linalg::add_scaled(&mut offset, centre - part.score_deviation, &part.along);
        Site { offset, part }
    }

    /// yᵀMy for y = offset + along · h, as coefficients of 1, h, h².
    fn quadratic(&self, matrix: MatRef<'_, f64>) -> [f64; 3] {
        let (u, b) = (&self.offset, &self.part.along);
        let (mu, mb) = (linalg::apply(matrix, u), linalg::apply(matrix, b));
        [linalg::dot(u, &mu), linalg::dot(u, &mb) + linalg::dot(b, &mu), linalg::dot(b, &mb)]
    }

    /// E xᵀWx | h and E |x|² | h.
    fn lengths(&self, metric: MatRef<'_, f64>) -> ([f64; 3], [f64; 3]) {
        let (u, b, rest) = (&self.offset, &self.part.along, self.part.rest.as_ref());
        let mut value = self.quadratic(metric);
        value[0] += linalg::trace_of_product(metric, rest);
        let mut length = [linalg::squared_norm(u), 2.0 * linalg::dot(u, b), linalg::squared_norm(b)];
        length[0] += linalg::trace(rest);
        (value, length)
    }

    /// E (xᵀWx)|x|² | h.
    fn quartic(&self, metric: MatRef<'_, f64>) -> [f64; 5] {
        let (value, length) = self.lengths(metric);
        let metric_rest = metric * &self.part.rest;
        let mut quartic = product(&value, &length);
        quartic[0] += 2.0 * linalg::trace_of_product(metric_rest.as_ref(), self.part.rest.as_ref());
        for (coefficient, term) in quartic.iter_mut().zip(self.quadratic(metric_rest.as_ref())) {
            *coefficient += 4.0 * term;
        }
        quartic
    }

    /// E xᵀMx | h, rest included.
    fn full_quadratic(&self, matrix: MatRef<'_, f64>) -> [f64; 3] {
        let mut value = self.quadratic(matrix);
        value[0] += linalg::trace_of_product(matrix, self.part.rest.as_ref());
        value
    }

    /// E [(xᵀWx) x + Wx |x|²] | h, coefficient by coefficient.
    fn cubic(&self, metric: MatRef<'_, f64>) -> [Vec<f64>; 4] {
        let (value, length) = self.lengths(metric);
        let (u, b, rest) = (&self.offset, &self.part.along, &self.part.rest);
        // E x(xᵀMx) | h = y (E xᵀMx | h) + 2 rest M y.
        let expand = |scalar: &[f64; 3], matrix: MatRef<'_, f64>| {
            let mut vectors: [Vec<f64>; 4] = std::array::from_fn(|_| vec![0.0; u.len()]);
            for (power, coefficient) in scalar.iter().enumerate() {
                linalg::add_scaled(&mut vectors[power], *coefficient, u);
                linalg::add_scaled(&mut vectors[power + 1], *coefficient, b);
            }
            linalg::add_scaled(&mut vectors[0], 2.0, &linalg::apply(matrix, u));
            linalg::add_scaled(&mut vectors[1], 2.0, &linalg::apply(matrix, b));
            vectors
        };
        let by_value = expand(&value, (rest * metric).as_ref());
        let by_length = expand(&length, rest.as_ref());
        std::array::from_fn(|power| linalg::sum(&by_value[power], &linalg::apply(metric, &by_length[power])))
    }

    /// target += weight · E xxᵀ | h, integrated against the moments of h.
    fn add_square(&self, target: &mut Mat<f64>, moments: &[f64], weight: f64) {
        let (u, b) = (&self.offset, &self.part.along);
        for column in 0..u.len() {
            for row in 0..u.len() {
                target[(row, column)] += weight
                    * (moments[0] * (u[row] * u[column] + self.part.rest[(row, column)])
                        + moments[1] * (u[row] * b[column] + b[row] * u[column])
                        + moments[2] * b[row] * b[column]);
            }
        }
    }

    /// target += weight · E x | h, integrated against the moments of h.
    fn add_mean(&self, target: &mut [f64], moments: &[f64], weight: f64) {
        linalg::add_scaled(target, weight * moments[0], &self.offset);
        linalg::add_scaled(target, weight * moments[1], &self.part.along);
    }
}

/// Product of two quadratic polynomials.
fn product(a: &[f64; 3], b: &[f64; 3]) -> [f64; 5] {
    let mut result = [0.0; 5];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            result[i + j] += x * y;
        }
    }
    result
}

/// Where each quantity stands among the integrals.
#[derive(Clone, Copy)]
struct Layout {
    dimension: usize,
}

/// All sites of one row about one origin, with their sums.
struct Row<'a> {
    sites: Vec<Site<'a>>,
    sums: &'a [SiteSums],
}

impl<'a> Row<'a> {
    fn new(tilted: &'a Tilted, sums: &'a [SiteSums], origin: &[f64]) -> Self {
        let sites =
            tilted.parts.iter().zip(sums).map(|(part, sums)| Site::new(part, sums.centre, origin)).collect();
        Row { sites, sums }
    }

    /// Σₖ πₖ E uᵃ p(h) exp(−u) for a polynomial of each site.
    fn scalar(&self, order: usize, polynomial: impl Fn(&Site<'_>) -> [f64; 5]) -> f64 {
        self.each(order)
            .map(|(site, moments)| {
                let value: f64 = polynomial(site).iter().zip(moments).map(|(c, n)| c * n).sum();
                site.part.weight * value
            })
            .sum()
    }

    fn each(&self, order: usize) -> impl Iterator<Item = (&Site<'a>, &[f64; 5])> {
        self.sites.iter().zip(self.sums).map(move |(site, sums)| (site, &sums.plain[order - 1]))
    }

    fn mass(&self, order: usize) -> f64 {
        self.each(order).map(|(site, moments)| site.part.weight * moments[0]).sum()
    }

    fn mean(&self, order: usize, dimension: usize) -> Vec<f64> {
        let mut mean = vec![0.0; dimension];
        for (site, moments) in self.each(order) {
            site.add_mean(&mut mean, moments, site.part.weight);
        }
        mean
    }

    fn square(&self, order: usize, dimension: usize) -> Mat<f64> {
        let mut square = Mat::zeros(dimension, dimension);
        for (site, moments) in self.each(order) {
            site.add_square(&mut square, moments, site.part.weight);
        }
        square
    }
}

/// A quadratic polynomial among those of degree four.
fn widened(quadratic: [f64; 3]) -> [f64; 5] {
    [quadratic[0], quadratic[1], quadratic[2], 0.0, 0.0]
}

impl Layout {
    fn triangle(&self) -> usize {
        self.dimension * (self.dimension + 1) / 2
    }

    fn bias(&self) -> std::ops::Range<usize> {
        0..self.dimension
    }

    fn second_moment(&self) -> std::ops::Range<usize> {
        self.dimension..self.dimension + self.triangle()
    }

    fn mean_covariance(&self) -> std::ops::Range<usize> {
        self.second_moment().end..self.second_moment().end + self.triangle()
    }

    fn participation(&self) -> usize {
        self.mean_covariance().end
    }

    fn centred(&self) -> usize {
        self.participation() + 1
    }

    fn centred_terms(&self) -> usize {
        self.participation() + 2
    }

    fn squared_covariance(&self) -> usize {
        self.participation() + 3
    }

    fn quantities(&self) -> usize {
        self.participation() + 4
    }

    /// The entries (i, j), j ≤ i, in the order in which triangles are stored.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.dimension).flat_map(|i| (0..=i).map(move |j| (i, j)))
    }

    fn symmetric(&self, entries: &[f64]) -> Mat<f64> {
        Mat::from_fn(self.dimension, self.dimension, |i, j| {
            let (row, column) = (i.max(j), i.min(j));
            entries[row * (row + 1) / 2 + column]
        })
    }

    /// What one to four distinct sites contribute at one s.
    fn fill(&self, tilted: &Tilted, metric: MatRef<'_, f64>, sums: &[SiteSums], blocks: &mut [Blocks]) {
        let about_limit = Row::new(tilted, sums, &vec![0.0; self.dimension]);
        self.fill_centred(tilted, metric, &about_limit, blocks);
        self.fill_pairs(tilted, metric, &about_limit, blocks);
    }

    /// Bias, second moment, participation and the centred gradient error:
    /// E‖V(Cov − C)‖² = E tr(W ΣpY ΣpY) − 2 E X̄ᵀW(ΣpY)X̄ + E (X̄ᵀWX̄)|X̄|², Y = xxᵀ − C, X̄ = Σpx, with the factors
    /// 1/Γ(2), −2/Γ(3), 1/Γ(4) of the three terms.
    fn fill_centred(&self, tilted: &Tilted, metric: MatRef<'_, f64>, row: &Row<'_>, blocks: &mut [Blocks]) {
        let dimension = self.dimension;
        // E u x = 0 and E u Y = 0 under the tilted law allow either kernel; the smaller cancels less.
        let damped_mass: f64 =
            row.sites.iter().zip(row.sums).map(|(site, sums)| site.part.weight * sums.damped[0]).sum();
        let damped = -damped_mass < row.mass(1);
        let mut mean = vec![0.0; dimension];
        let mut spread = Mat::<f64>::zeros(dimension, dimension);
        let mut first_mass = 0.0;
        for (site, sums) in row.sites.iter().zip(row.sums) {
            let plain = &sums.plain[0];
            let moments = if damped { sums.damped } else { [plain[0], plain[1], plain[2]] };
            site.add_mean(&mut mean, &moments, site.part.weight);
            site.add_square(&mut spread, &moments, site.part.weight);
            first_mass += site.part.weight * moments[0];
        }
        spread -= faer::Scale(first_mass) * &tilted.covariance;
        let second = row.square(2, dimension);

        for (block, entry) in blocks[self.bias()].iter_mut().zip(&mean) {
            block[0] = *entry;
        }
        for (block, (i, j)) in blocks[self.second_moment()].iter_mut().zip(self.pairs()) {
            *block = [second[(i, j)], mean[i] * mean[j], 0.0, 0.0];
        }
        blocks[self.participation()][0] = row.mass(2);

        let metric_covariance = metric * &tilted.covariance;
        let limit = linalg::trace_of_product(metric_covariance.as_ref(), tilted.covariance.as_ref());
        let symmetric = &metric_covariance + metric_covariance.transpose();
        let mut bent_vector = vec![0.0; dimension];
        let mut cubic_vector = vec![0.0; dimension];
        for ((site, pairs), (_, triples)) in row.each(2).zip(row.each(3)) {
            let weight = site.part.weight;
            for (vector, (pair, triple)) in site.cubic(metric).iter().zip(pairs.iter().zip(triples)) {
                linalg::add_scaled(&mut bent_vector, weight * pair, vector);
                linalg::add_scaled(&mut cubic_vector, 2.0 * weight * triple, vector);
            }
        }
        let second_first = row.mean(2, dimension);
        linalg::add_scaled(&mut bent_vector, -1.0, &linalg::apply(symmetric.as_ref(), &second_first));

        let metric_mean = linalg::apply(metric, &mean);
        let metric_spread = metric * &spread;
        let metric_second = metric * &second;
        let value = linalg::dot(&mean, &metric_mean);
        let length = linalg::squared_norm(&mean);
        let (trace_value, trace_length) =
            (linalg::trace(metric_second.as_ref()), linalg::trace(second.as_ref()));
        let second_mean = linalg::apply(second.as_ref(), &mean);
        let covariance_term =
            |order| row.scalar(order, |site| widened(site.full_quadratic(metric_covariance.as_ref())));
        let [pair_quartic, triple_quartic, quadruple_quartic] =
            [2, 3, 4].map(|order| row.scalar(order, |site| site.quartic(metric)));
        // The terms of each block, positive and negative apart: their sizes bound the rounding.
        let terms: [Vec<f64>; 4] = [
            vec![
                pair_quartic,
                -2.0 * covariance_term(2),
                row.mass(2) * limit,
                -triple_quartic,
                covariance_term(3),
                quadruple_quartic / 6.0,
            ],
            vec![
                linalg::trace_of_product(metric_spread.as_ref(), spread.as_ref()),
                -linalg::trace_of_product(metric_spread.as_ref(), second.as_ref()),
                -linalg::dot(&bent_vector, &mean),
                linalg::dot(&cubic_vector, &mean) / 6.0,
                trace_value * trace_length / 6.0,
                linalg::trace_of_product(metric_second.as_ref(), second.as_ref()) / 3.0,
            ],
            vec![
                -linalg::dot(&metric_mean, &linalg::apply(spread.as_ref(), &mean)),
                trace_value * length / 6.0,
                trace_length * value / 6.0,
                linalg::dot(&metric_mean, &second_mean) / 1.5,
            ],
            vec![value * length / 6.0],
        ];
        blocks[self.centred()] = std::array::from_fn(|k| terms[k].iter().sum());
        blocks[self.centred_terms()] = std::array::from_fn(|k| terms[k].iter().map(|term| term.abs()).sum());
    }

    /// E Cov and E‖V Cov‖² from differences of pairs of sites, S² Cov = ½ Σ wᵢwⱼ(zᵢ−zⱼ)(zᵢ−zⱼ)ᵀ: the two pairs of
    /// the square coincide, share one site, or are disjoint. About the means of the row nothing cancels.
    fn fill_pairs(
        &self,
        tilted: &Tilted,
        metric: MatRef<'_, f64>,
        about_limit: &Row<'_>,
        blocks: &mut [Blocks],
    ) {
        let dimension = self.dimension;
        let (mass, pair_mass) = (about_limit.mass(1), about_limit.mass(2));
        // Rows of less mass contribute nothing, and their ratios would overflow.
        if !(mass > SMALLEST_MASS && pair_mass > SMALLEST_MASS) {
            return;
        }
        let centre_of = |order: usize, mass: f64| -> Vec<f64> {
            about_limit.mean(order, dimension).iter().map(|entry| entry / mass).collect()
        };
        let about_mean = Row::new(tilted, about_limit.sums, &centre_of(1, mass));
        let about_pair_mean = Row::new(tilted, about_limit.sums, &centre_of(2, pair_mass));

        // Unnormalised covariance of the sites under u exp(−u).
        let spread = about_mean.square(1, dimension);
        for (block, (i, j)) in blocks[self.mean_covariance()].iter_mut().zip(self.pairs()) {
            block[1] = mass * spread[(i, j)];
        }
        let relative_spread = faer::Scale(1.0 / mass) * &spread;
        let relative = metric * &relative_spread;
        let bend = &relative + relative.transpose();
        let squared_spread = linalg::trace_of_product(relative.as_ref(), relative_spread.as_ref());
        let shared = about_mean.scalar(2, |site| site.quartic(metric))
            + about_mean.scalar(2, |site| widened(site.full_quadratic(bend.as_ref())))
            + pair_mass * squared_spread;
        let pair_square = about_pair_mean.square(2, dimension);
        let metric_pair = metric * &pair_square;
        let coincident = pair_mass * about_pair_mean.scalar(2, |site| site.quartic(metric))
            + linalg::trace(metric_pair.as_ref()) * linalg::trace(pair_square.as_ref())
            + 2.0 * linalg::trace_of_product(metric_pair.as_ref(), pair_square.as_ref());
        blocks[self.squared_covariance()] =
            [0.0, coincident / 6.0, mass * mass * shared / 6.0, mass.powi(4) * squared_spread / 6.0];
    }
}
