//! Gaussian-mixture tokens Σ πₖ N(mₖ, Gₖ), atoms allowed: outputs and gradients in one pass of partition sums.
//!
//! Given its component k and its standardised score g, a token minus the tilted mean is
//! x = uₖ + bₖh + r with h = g − τₖ, uₖ = mₖ + Gₖθ − T, bₖ = Gₖθ/τₖ and r ~ N(0, Gₖ − bₖbₖᵀ): every site
//! expectation below is a polynomial of degree four in h, so nothing of order d⁴ is ever formed.

use super::{Deviation, EXACT, PromptLength};
use crate::attention::{Attention, Softmax};
use crate::error::Result;
use crate::measure::GaussianComponent;
use crate::numerics::{linalg, softmax};
use crate::softmax_weights::{
    Blocks, Centre, SiteGrid, SiteSums, check_score_deviation, highest_normal, integrate,
};
use faer::Mat;

/// The head and the components, which no query changes.
#[derive(Debug, Clone)]
pub(super) struct MixtureTokens {
    components: Vec<GaussianComponent>,
    value: Mat<f64>,
    /// W = VᵀV.
    metric: Mat<f64>,
    output_dimension: usize,
}

impl MixtureTokens {
    pub(super) fn new(head: &Softmax, components: Vec<GaussianComponent>) -> Self {
        let value = head.value().to_owned();
        let metric = value.transpose() * &value;
        MixtureTokens { components, value, metric, output_dimension: head.output_dimension() }
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
        let tilted = Tilted::new(&self.components, tilt, *longest)?;
        let sites: Vec<Site> = tilted
            .parts
            .iter()
            .map(|part| Site::new(part, &tilted.covariance, self.metric.as_ref()))
            .collect();
        let dimension = tilt.len();
        let layout = Layout { dimension };
        // Site weights are shifted so that E e^ℓ = 1.
        let integrals = integrate(&tilted.grids, 0.0, lengths, layout.quantities(), |sums, blocks| {
            layout.fill(&tilted, &sites, self.metric.as_ref(), sums, blocks);
        });
        Ok(lengths
            .iter()
            .zip(&integrals)
            .map(|(&length, integrals)| self.deviation(layout, length, query_norm, integrals))
            .collect())
    }

    fn deviation(
        &self,
        layout: Layout,
        length: PromptLength,
        query_norm: f64,
        integrals: &[f64],
    ) -> Deviation {
        let bias = linalg::apply(self.value.as_ref(), &integrals[layout.bias()]);
        let entries = &integrals[layout.second_moment()];
        let token_moment =
            Mat::from_fn(layout.dimension, layout.dimension, |i, j| entries[layout.pair(i.max(j), i.min(j))]);
        let mut covariance = &self.value * &token_moment * self.value.transpose();
        let output_error = linalg::trace(covariance.as_ref());
        linalg::add_outer(&mut covariance, -1.0, &bias, &bias);
        Deviation {
            length,
            bias,
            covariance,
            output_error,
            score_gradient_error: query_norm * integrals[layout.gradient()],
            value_gradient_error: self.output_dimension as f64 * linalg::trace(token_moment.as_ref()),
            participation: integrals[layout.participation()],
            accuracy: EXACT,
        }
    }
}

/// One component as the tilt sees it.
struct Part {
    /// πₖ.
    weight: f64,
    /// uₖ = mₖ + Gₖθ − T.
    offset: Vec<f64>,
    /// bₖ = Gₖθ/τₖ, zero for an atom.
    along: Vec<f64>,
    /// Gₖ − bₖbₖᵀ.
    rest: Mat<f64>,
}

/// The mixture tilted by θ: components, site grids, covariance C*.
struct Tilted {
    parts: Vec<Part>,
    grids: Vec<(f64, SiteGrid)>,
    covariance: Mat<f64>,
}

impl Tilted {
    fn new(components: &[GaussianComponent], tilt: &[f64], longest: PromptLength) -> Result<Self> {
        // (⟨θ, mₖ⟩, τₖ, bₖ) of every component.
        let scores: Vec<(f64, f64, Vec<f64>)> = components
            .iter()
            .map(|component| {
                let whitened = linalg::apply_transpose(component.gaussian.root(), tilt);
                let tau = check_score_deviation(linalg::squared_norm(&whitened).sqrt())?;
                let unit: Vec<f64> =
                    whitened.iter().map(|entry| if tau > 0.0 { entry / tau } else { 0.0 }).collect();
                let along = linalg::apply(component.gaussian.root(), &unit);
                Ok((linalg::dot(tilt, component.gaussian.mean_vector()), tau, along))
            })
            .collect::<Result<_>>()?;
        let log_masses: Vec<f64> = components
            .iter()
            .zip(&scores)
            .map(|(component, (score, tau, _))| component.weight.ln() + score + 0.5 * tau * tau)
            .collect();
        let (responsibilities, log_partition) = softmax(&log_masses);
        let tilted_means: Vec<Vec<f64>> = components
            .iter()
            .zip(&scores)
            .map(|(component, (_, tau, along))| {
                let mut mean = component.gaussian.mean_vector().to_vec();
                linalg::add_scaled(&mut mean, *tau, along);
                mean
            })
            .collect();
        let mut limit = vec![0.0; tilt.len()];
        for (responsibility, mean) in responsibilities.iter().zip(&tilted_means) {
            linalg::add_scaled(&mut limit, *responsibility, mean);
        }
        let mut tilted = Tilted {
            parts: Vec::with_capacity(components.len()),
            grids: Vec::with_capacity(components.len()),
            covariance: Mat::zeros(tilt.len(), tilt.len()),
        };
        for (k, (component, (score, tau, along))) in components.iter().zip(scores).enumerate() {
            let offset = linalg::difference(&tilted_means[k], &limit);
            tilted.covariance += faer::Scale(responsibilities[k]) * component.gaussian.covariance_matrix();
            linalg::add_outer(&mut tilted.covariance, responsibilities[k], &offset, &offset);
            let shift = score - log_partition;
            let grid = if tau == 0.0 {
                SiteGrid::atom(shift)
            } else {
                SiteGrid::normal(shift, tau, highest_normal(tau, longest), Centre::TiltedMean)
            };
            tilted.grids.push((component.weight, grid));
            let mut rest = component.gaussian.covariance_matrix().to_owned();
            linalg::add_outer(&mut rest, -1.0, &along, &along);
            tilted.parts.push(Part { weight: component.weight, offset, along, rest });
        }
        Ok(tilted)
    }
}

/// Polynomials in h of one component's site expectations; W = VᵀV, C = C*, Y = xxᵀ − C.
struct Site {
    /// E tr(W Y Y | h).
    spread: [f64; 5],
    /// E xᵀW Y x | h.
    bent: [f64; 5],
    /// E (xᵀWx)|x|² | h.
    quartic: [f64; 5],
    /// E (YWx + WYx) | h, coefficient by coefficient.
    bent_vector: [Vec<f64>; 4],
    /// E 2[(xᵀWx) x + Wx |x|²] | h.
    cubic_vector: [Vec<f64>; 4],
}

impl Site {
    fn new(part: &Part, covariance: &Mat<f64>, metric: faer::MatRef<'_, f64>) -> Self {
        let (u, b, rest) = (&part.offset, &part.along, &part.rest);
        let metric_rest = metric * rest;
        let metric_covariance = metric * covariance;
        // yᵀMy for y = u + bh, as coefficients of 1, h, h².
        let quadratic = |m: faer::MatRef<'_, f64>| {
            let (mu, mb) = (linalg::apply(m, u), linalg::apply(m, b));
            [linalg::dot(u, &mu), linalg::dot(u, &mb) + linalg::dot(b, &mu), linalg::dot(b, &mb)]
        };
        let identity = linalg::identity(u.len());
        let [mut value, mut length] = [quadratic(metric), quadratic(identity.as_ref())];
        // E xᵀWx | h and E |x|² | h.
        value[0] += linalg::trace(metric_rest.as_ref());
        length[0] += linalg::trace(rest.as_ref());
        let mut quartic = product(&value, &length);
        let rest_term = quadratic(metric_rest.as_ref());
        quartic[0] += 2.0 * linalg::trace_of_product(metric_rest.as_ref(), rest.as_ref());
        let mut covariance_term = quadratic(metric_covariance.as_ref());
        covariance_term[0] += linalg::trace_of_product(metric_covariance.as_ref(), rest.as_ref());
        let (mut spread, mut bent) = (quartic, quartic);
        for power in 0..3 {
            quartic[power] += 4.0 * rest_term[power];
            spread[power] += 4.0 * rest_term[power] - 2.0 * covariance_term[power];
            bent[power] += 4.0 * rest_term[power] - covariance_term[power];
        }
        spread[0] += linalg::trace_of_product(metric_covariance.as_ref(), covariance.as_ref());

        // E x(xᵀMx) | h = y (yᵀMy + tr M·rest) + 2 rest M y, for M = I and M = W.
        let cubic = |scalar: &[f64; 3], matrix: faer::MatRef<'_, f64>| {
            let mut vectors: [Vec<f64>; 4] = std::array::from_fn(|_| vec![0.0; u.len()]);
            for (power, coefficient) in scalar.iter().enumerate() {
                linalg::add_scaled(&mut vectors[power], *coefficient, u);
                linalg::add_scaled(&mut vectors[power + 1], *coefficient, b);
            }
            linalg::add_scaled(&mut vectors[0], 2.0, &linalg::apply(matrix, u));
            linalg::add_scaled(&mut vectors[1], 2.0, &linalg::apply(matrix, b));
            vectors
        };
        let by_length = cubic(&length, rest.as_ref()).map(|vector| linalg::apply(metric, &vector));
        let by_value = cubic(&value, (rest * metric).as_ref());
        let sums: [Vec<f64>; 4] =
            std::array::from_fn(|power| linalg::sum(&by_length[power], &by_value[power]));
        let symmetric = &metric_covariance + metric_covariance.transpose();
        let mut bent_vector = sums.clone();
        for (power, direction) in [u, b].into_iter().enumerate() {
            linalg::add_scaled(&mut bent_vector[power], -1.0, &linalg::apply(symmetric.as_ref(), direction));
        }
        let cubic_vector = sums.map(|vector| vector.iter().map(|entry| 2.0 * entry).collect());
        Site { spread, bent, quartic, bent_vector, cubic_vector }
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

impl Layout {
    fn bias(&self) -> std::ops::Range<usize> {
        0..self.dimension
    }

    fn second_moment(&self) -> std::ops::Range<usize> {
        let start = self.dimension;
        start..start + self.dimension * (self.dimension + 1) / 2
    }

    /// Position of entry (i, j), j ≤ i, inside `second_moment`.
    fn pair(&self, i: usize, j: usize) -> usize {
        i * (i + 1) / 2 + j
    }

    fn participation(&self) -> usize {
        self.second_moment().end
    }

    fn gradient(&self) -> usize {
        self.participation() + 1
    }

    fn quantities(&self) -> usize {
        self.gradient() + 1
    }

    /// What one to four distinct sites contribute at one s.
    fn fill(
        &self,
        tilted: &Tilted,
        sites: &[Site],
        metric: faer::MatRef<'_, f64>,
        sums: &[SiteSums],
        blocks: &mut [Blocks],
    ) {
        let parts = &tilted.parts;
        let weighted = |term: &dyn Fn(usize) -> f64| -> f64 {
            parts.iter().enumerate().map(|(k, part)| part.weight * term(k)).sum()
        };
        // E u x = 0 and E u Y = 0 under the tilted law allow either kernel; the smaller cancels less.
        let damped = weighted(&|k| -sums[k].damped[0]) < weighted(&|k| sums[k].plain[0][0]);
        let first_order = |k: usize| -> [f64; 3] {
            let plain = &sums[k].plain[0];
            if damped { sums[k].damped } else { [plain[0], plain[1], plain[2]] }
        };

        let dimension = self.dimension;
        let mut mean = vec![0.0; dimension];
        let mut spread = Mat::<f64>::zeros(dimension, dimension);
        let mut second = Mat::<f64>::zeros(dimension, dimension);
        let mut bent_vector = vec![0.0; dimension];
        let mut cubic_vector = vec![0.0; dimension];
        for (k, (part, site)) in parts.iter().zip(sites).enumerate() {
            let [n0, n1, n2] = first_order(k).map(|value| part.weight * value);
            linalg::add_scaled(&mut mean, n0, &part.offset);
            linalg::add_scaled(&mut mean, n1, &part.along);
            let pairs = sums[k].plain[1].map(|value| part.weight * value);
            for (target, [m0, m1, m2], centre) in
                [(&mut spread, [n0, n1, n2], n0), (&mut second, [pairs[0], pairs[1], pairs[2]], 0.0)]
            {
                for column in 0..dimension {
                    for row in 0..dimension {
                        let (u, v) = (part.offset[row], part.offset[column]);
                        let (a, b) = (part.along[row], part.along[column]);
                        target[(row, column)] +=
                            m0 * (u * v + part.rest[(row, column)]) + m1 * (u * b + a * v) + m2 * a * b
                                - centre * tilted.covariance[(row, column)];
                    }
                }
            }
            for (vector, value) in site.bent_vector.iter().zip(pairs) {
                linalg::add_scaled(&mut bent_vector, value, vector);
            }
            for (vector, value) in site.cubic_vector.iter().zip(sums[k].plain[2]) {
                linalg::add_scaled(&mut cubic_vector, part.weight * value, vector);
            }
        }

        for (block, entry) in blocks[self.bias()].iter_mut().zip(&mean) {
            block[0] = *entry;
        }
        let second_moment = &mut blocks[self.second_moment()];
        for i in 0..dimension {
            for j in 0..=i {
                second_moment[self.pair(i, j)] = [second[(i, j)], mean[i] * mean[j], 0.0, 0.0];
            }
        }
        blocks[self.participation()][0] = weighted(&|k| sums[k].plain[1][0]);

        // E‖V(Cov − C)‖² = E tr(W ΣpY ΣpY) − 2 E X̄ᵀW(ΣpY)X̄ + E (X̄ᵀWX̄)|X̄|², X̄ = Σpx, with the factors
        // 1/Γ(2), −2/Γ(3), 1/Γ(4) of the three terms.
        let polynomial = |coefficients: &dyn Fn(usize) -> [f64; 5], order: usize| {
            weighted(&|k| coefficients(k).iter().zip(&sums[k].plain[order - 1]).map(|(c, n)| c * n).sum())
        };
        let metric_mean = linalg::apply(metric, &mean);
        let metric_spread = metric * &spread;
        let metric_second = metric * &second;
        let value = linalg::dot(&mean, &metric_mean);
        let length = linalg::squared_norm(&mean);
        let (trace_value, trace_length) =
            (linalg::trace(metric_second.as_ref()), linalg::trace(second.as_ref()));
        let second_mean = linalg::apply(second.as_ref(), &mean);
        blocks[self.gradient()] = [
            polynomial(&|k| sites[k].spread, 2) - polynomial(&|k| sites[k].bent, 3)
                + polynomial(&|k| sites[k].quartic, 4) / 6.0,
            linalg::trace_of_product(metric_spread.as_ref(), spread.as_ref())
                - linalg::trace_of_product(metric_spread.as_ref(), second.as_ref())
                - linalg::dot(&bent_vector, &mean)
                + (linalg::dot(&cubic_vector, &mean)
                    + trace_value * trace_length
                    + 2.0 * linalg::trace_of_product(metric_second.as_ref(), second.as_ref()))
                    / 6.0,
            -linalg::dot(&metric_mean, &linalg::apply(spread.as_ref(), &mean))
                + (trace_value * length
                    + trace_length * value
                    + 4.0 * linalg::dot(&metric_mean, &second_mean))
                    / 6.0,
            value * length / 6.0,
        ];
    }
}
