//! Gaussians through attention layers, against quadrature, Sinkhorn's algorithm and closed forms.

// Clippy's leave for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::panic)]

use esscher_core::layers::{
    AtCollapse, Flow, FlowOptions, Layer, LayerKind, depth, exact_softmax_flow, flow,
};
use esscher_core::measure::Gaussian;
use esscher_core::numerics::{Stream, linalg};
use esscher_core::{Ending, Error, Mat, MatRef, Monitor, Unwatched, mat};
use faer::linalg::solvers::DenseSolveCore;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::sync::atomic::{AtomicUsize, Ordering};

fn largest_difference(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    (a - b).norm_max()
}

fn largest_gap(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

fn product(matrix: MatRef<'_, f64>, vector: &[f64]) -> Vec<f64> {
    (0..matrix.nrows()).map(|i| (0..matrix.ncols()).map(|j| matrix[(i, j)] * vector[j]).sum()).collect()
}

fn identity(dimension: usize) -> Mat<f64> {
    Mat::identity(dimension, dimension)
}

fn random_matrix(stream: &mut Stream, rows: usize, columns: usize, scale: f64) -> Mat<f64> {
    Mat::from_fn(rows, columns, |_, _| scale * stream.normal())
}

/// A Gaussian whose covariance has this rank.
fn random_gaussian(stream: &mut Stream, dimension: usize, rank: usize) -> Gaussian {
    let root = random_matrix(stream, dimension, rank, 0.7);
    let mean: Vec<f64> = (0..dimension).map(|_| stream.normal()).collect();
    Gaussian::new(&mean, (&root * root.transpose()).as_ref()).unwrap()
}

/// Points m + Rg and weights of a trapezoid rule for a Gaussian of rank one or two; the rule converges
/// geometrically for integrands that are Gaussian themselves.
fn grid(tokens: &Gaussian, reach: f64, spacing: f64) -> Vec<(Vec<f64>, f64)> {
    let half = (reach / spacing).round() as i32;
    let axis: Vec<f64> = (-half..=half).map(|i| f64::from(i) * spacing).collect();
    let rank = tokens.root().ncols();
    let second: &[f64] = if rank == 2 { &axis } else { &[0.0] };
    let mut points = vec![];
    for &g in &axis {
        for &h in second {
            let shift = product(tokens.root(), &[g, h][..rank]);
            let weight = (-0.5 * (g * g + h * h)).exp();
            points.push((tokens.mean_vector().iter().zip(shift).map(|(m, s)| m + s).collect(), weight));
        }
    }
    let total: f64 = points.iter().map(|(_, weight)| weight).sum();
    points.iter_mut().for_each(|(_, weight)| *weight /= total);
    points
}

/// E[y w(y)] / E[w(y)] by quadrature, with w = exp(score − largest score).
fn weighted_mean(tokens: &Gaussian, score: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let points = grid(tokens, 14.0, 0.125);
    let scores: Vec<f64> = points.iter().map(|(y, weight)| score(y) + weight.ln()).collect();
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut mean = vec![0.0; tokens.mean_vector().len()];
    let mut total = 0.0;
    for ((y, _), score) in points.iter().zip(scores) {
        let weight = (score - top).exp();
        total += weight;
        mean.iter_mut().zip(y).for_each(|(entry, y)| *entry += weight * y);
    }
    mean.iter().map(|entry| entry / total).collect()
}

/// The Gaussians of the brute-force comparisons: on a line, singular and full in the plane.
fn brute_force_worlds() -> Vec<(Gaussian, Vec<f64>)> {
    vec![
        (Gaussian::new(&[0.7], mat![[1.3]].as_ref()).unwrap(), vec![-0.6]),
        (Gaussian::new(&[0.4, -1.1], mat![[1.0, 0.5], [0.5, 0.25]].as_ref()).unwrap(), vec![0.9, 0.3]),
        (Gaussian::new(&[-0.2, 0.8], mat![[1.2, -0.4], [-0.4, 0.6]].as_ref()).unwrap(), vec![0.5, -1.0]),
    ]
}

#[test]
fn softmax_and_linear_layers_equal_their_definition_by_quadrature() {
    let mut stream = Stream::new(11, 0, 0);
    for (tokens, query) in brute_force_worlds() {
        let d = query.len();
        let (score_matrix, value) =
            (random_matrix(&mut stream, d, d, 0.6), random_matrix(&mut stream, d, d, 1.0));
        let tilt = product(score_matrix.as_ref(), &query);
        let expected = product(value.as_ref(), &weighted_mean(&tokens, |y| linalg::dot(y, &tilt)));
        let softmax = Layer::softmax(score_matrix.as_ref(), value.as_ref()).unwrap();
        let found = softmax.affine_form(&tokens).unwrap().at(&query).unwrap();
        assert!(largest_gap(&found, &expected) < 1e-12, "softmax {found:?} {expected:?}");

        let mut moment = vec![0.0; d];
        for (y, weight) in grid(&tokens, 12.0, 0.125) {
            let score = linalg::dot(&y, &tilt);
            moment.iter_mut().zip(&y).for_each(|(entry, y)| *entry += weight * score * y);
        }
        let linear = Layer::linear(score_matrix.as_ref(), value.as_ref()).unwrap();
        let found = linear.affine_form(&tokens).unwrap().at(&query).unwrap();
        assert!(largest_gap(&found, &product(value.as_ref(), &moment)) < 1e-12);
    }
}

#[test]
fn l2_layers_equal_their_definition_by_quadrature_for_thin_and_tall_keys() {
    let mut stream = Stream::new(12, 0, 0);
    for (tokens, query) in brute_force_worlds() {
        let d = query.len();
        for key_dimension in [1, d, d + 1] {
            let queries = random_matrix(&mut stream, key_dimension, d, 0.8);
            let keys = random_matrix(&mut stream, key_dimension, d, 0.8);
            let value = random_matrix(&mut stream, d, d, 1.0);
            let target = product(queries.as_ref(), &query);
            let mean = weighted_mean(&tokens, |y| {
                -product(keys.as_ref(), y).iter().zip(&target).map(|(k, q)| (k - q) * (k - q)).sum::<f64>()
            });
            let layer = Layer::l2(queries.as_ref(), keys.as_ref(), value.as_ref()).unwrap();
            let found = layer.affine_form(&tokens).unwrap().at(&query).unwrap();
            assert!(largest_gap(&found, &product(value.as_ref(), &mean)) < 1e-12);
        }
    }
}

#[test]
fn l2_layers_equal_the_formula_with_the_inverse_covariance() {
    let mut stream = Stream::new(13, 0, 0);
    let (tokens, d) = (random_gaussian(&mut stream, 4, 4), 4);
    let (queries, keys) = (random_matrix(&mut stream, 3, d, 0.8), random_matrix(&mut stream, 3, d, 0.8));
    let value = random_matrix(&mut stream, d, d, 1.0);
    let layer = Layer::l2(queries.as_ref(), keys.as_ref(), value.as_ref()).unwrap();
    let precision = tokens.covariance_matrix().partial_piv_lu().inverse();
    let posterior = (&precision + keys.transpose() * &keys * faer::Scale(2.0)).partial_piv_lu().inverse();
    let matrix = &value * &posterior * keys.transpose() * &queries * faer::Scale(2.0);
    let offset = product((&value * &posterior * &precision).as_ref(), tokens.mean_vector());
    let form = layer.affine_form(&tokens).unwrap();
    assert!(largest_difference(form.matrix.as_ref(), matrix.as_ref()) < 1e-11);
    assert!(largest_gap(&form.offset, &offset) < 1e-11);
}

/// E[y | x] at each grid point under the plan that Sinkhorn's algorithm finds on the grid, V = I.
fn balanced_means(points: &[(Vec<f64>, f64)], score_matrix: MatRef<'_, f64>, rounds: usize) -> Vec<Vec<f64>> {
    let n = points.len();
    let tilts: Vec<Vec<f64>> = points.iter().map(|(x, _)| product(score_matrix, x)).collect();
    let scores: Vec<f64> = (0..n * n).map(|ij| linalg::dot(&points[ij % n].0, &tilts[ij / n])).collect();
    let (mut row_potential, mut column_potential) = (vec![0.0; n], vec![0.0; n]);
    let log_weights: Vec<f64> = points.iter().map(|(_, weight)| weight.ln()).collect();
    let log_sum = |terms: &mut dyn Iterator<Item = f64>| {
        let terms: Vec<f64> = terms.collect();
        let top = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        top + terms.iter().map(|term| (term - top).exp()).sum::<f64>().ln()
    };
    for _ in 0..rounds {
        for i in 0..n {
            row_potential[i] =
                -log_sum(&mut (0..n).map(|j| scores[i * n + j] + column_potential[j] + log_weights[j]));
        }
        for j in 0..n {
            column_potential[j] =
                -log_sum(&mut (0..n).map(|i| scores[i * n + j] + row_potential[i] + log_weights[i]));
        }
    }
    (0..n)
        .map(|i| {
            let mut mean = vec![0.0; points[i].0.len()];
            for (j, (y, weight)) in points.iter().enumerate() {
                let plan = (scores[i * n + j] + row_potential[i] + column_potential[j]).exp() * weight;
                mean.iter_mut().zip(y).for_each(|(entry, y)| *entry += plan * y);
            }
            mean
        })
        .collect()
}

fn worst_sinkhorn_gap(
    tokens: &Gaussian,
    queries: &Mat<f64>,
    keys: &Mat<f64>,
    reach: f64,
    spacing: f64,
) -> f64 {
    let layer =
        Layer::sinkhorn(queries.as_ref(), keys.as_ref(), identity(tokens.root().nrows()).as_ref()).unwrap();
    let form = layer.affine_form(tokens).unwrap();
    let points = grid(tokens, reach, spacing);
    let means = balanced_means(&points, (keys.transpose() * queries).as_ref(), 60);
    // Near the edge of the grid the conditional law is cut off: look at the middle only.
    let middle = points.iter().map(|(_, weight)| *weight).fold(0.0, f64::max) * (-0.5f64).exp();
    points
        .iter()
        .zip(&means)
        .filter(|((_, weight), _)| *weight >= middle)
        .map(|((x, _), mean)| largest_gap(&form.at(x).unwrap(), mean))
        .fold(0.0, f64::max)
}

#[test]
fn sinkhorn_layers_equal_the_plan_that_sinkhorns_algorithm_finds() {
    let worlds = brute_force_worlds();
    for product_of_scores in [0.3, 1.1, -0.8] {
        let (queries, keys) = (mat![[product_of_scores]], mat![[1.0]]);
        let gap = worst_sinkhorn_gap(&worlds[0].0, &queries, &keys, 9.0, 0.1);
        assert!(gap < 1e-12, "line, {product_of_scores}: {gap:e}");
    }
    let (queries, keys) = (mat![[0.7, -0.3], [0.2, 0.5]], mat![[0.4, 0.6], [-0.5, 0.3]]);
    let gap = worst_sinkhorn_gap(&worlds[1].0, &queries, &keys, 9.0, 0.1);
    assert!(gap < 1e-12, "singular in the plane: {gap:e}");
    // In the plane the grid must be coarser and end at 5.5 deviations: e^{−5.5²/2} = 3e-7.
    let gap = worst_sinkhorn_gap(&worlds[2].0, &queries, &keys, 5.5, 0.5);
    assert!(gap < 3e-7, "plane: {gap:e}");
}

#[test]
fn sinkhorn_layers_solve_the_balance_equation_of_the_plan() {
    let mut stream = Stream::new(14, 0, 0);
    let d = 4;
    let tokens = random_gaussian(&mut stream, d, d);
    let (queries, keys) = (random_matrix(&mut stream, 3, d, 1.0), random_matrix(&mut stream, 3, d, 1.0));
    let layer = Layer::sinkhorn(queries.as_ref(), keys.as_ref(), identity(d).as_ref()).unwrap();
    let s = tokens.covariance_matrix();
    let cross = (layer.affine_form(&tokens).unwrap().matrix * s).transpose().to_owned();
    let left = s.partial_piv_lu().inverse() * &cross;
    let right = (s - cross.transpose() * &left).partial_piv_lu().inverse();
    assert!(largest_difference((left * right).as_ref(), (queries.transpose() * keys).as_ref()) < 1e-9);
}

#[test]
fn the_sinkhorn_velocity_equals_the_formula_with_singular_vectors() {
    let mut stream = Stream::new(15, 0, 0);
    let d = 3;
    let tokens = random_gaussian(&mut stream, d, d);
    let (queries, keys) = (random_matrix(&mut stream, d, d, 1.0), random_matrix(&mut stream, d, d, 1.0));
    let value = random_matrix(&mut stream, d, d, 1.0);
    let eigen = tokens.covariance_matrix().self_adjoint_eigen(faer::Side::Lower).unwrap();
    let scaled = Mat::from_fn(d, d, |i, j| eigen.U()[(i, j)] * eigen.S()[j].sqrt());
    let root = &scaled * eigen.U().transpose();
    let svd = (&root * queries.transpose() * &keys * &root).svd().unwrap();
    let balanced = Mat::from_fn(d, d, |i, j| {
        let b = svd.S()[j];
        svd.U()[(i, j)] * (-1.0 + (1.0 + 4.0 * b * b).sqrt()) / (2.0 * b)
    });
    let cross = &root * balanced * svd.V().transpose() * &root;
    let expected = &value * cross.transpose() + &cross * value.transpose();
    let velocity =
        Layer::sinkhorn(queries.as_ref(), keys.as_ref(), value.as_ref()).unwrap().velocity(&tokens).unwrap();
    assert!(largest_difference(velocity.covariance.as_ref(), expected.as_ref()) < 1e-12);
    assert!(largest_gap(&velocity.mean, &product(value.as_ref(), tokens.mean_vector())) < 1e-12);
}

#[test]
fn a_centred_linear_layer_equals_the_softmax_layer() {
    let mut stream = Stream::new(16, 0, 0);
    let tokens = Gaussian::centred(random_gaussian(&mut stream, 4, 3).covariance_matrix()).unwrap();
    let (score_matrix, value) =
        (random_matrix(&mut stream, 4, 4, 1.0), random_matrix(&mut stream, 4, 4, 1.0));
    let softmax = Layer::softmax(score_matrix.as_ref(), value.as_ref()).unwrap();
    let linear = Layer::linear(score_matrix.as_ref(), value.as_ref()).unwrap();
    assert_eq!((softmax.kind(), linear.kind()), (LayerKind::Softmax, LayerKind::Linear));
    let (left, right) = (softmax.velocity(&tokens).unwrap(), linear.velocity(&tokens).unwrap());
    assert!(largest_difference(left.covariance.as_ref(), right.covariance.as_ref()) < 1e-13);
    assert!(largest_gap(&left.mean, &right.mean) < 1e-13);
}

#[test]
fn one_layer_without_the_residual_connection_has_the_published_mean_and_covariance() {
    let mut stream = Stream::new(17, 0, 0);
    let tokens = random_gaussian(&mut stream, 3, 3);
    let (u, v) = (random_matrix(&mut stream, 3, 3, 1.0), random_matrix(&mut stream, 3, 3, 1.0));
    let g = tokens.covariance_matrix();
    let law = Layer::softmax(u.as_ref(), v.as_ref()).unwrap().push_forward(&tokens).unwrap();
    let mean = product((&v * (identity(3) + g * &u)).as_ref(), tokens.mean_vector());
    let covariance = &v * g * &u * g * u.transpose() * g * v.transpose();
    assert!(largest_gap(law.mean_vector(), &mean) < 1e-12);
    assert!(largest_difference(law.covariance_matrix(), covariance.as_ref()) < 1e-11);
}

#[test]
fn at_an_atom_every_normalised_attention_returns_the_value_of_the_atom() {
    let (q, k, v) = (mat![[1.0, 0.3]], mat![[-0.4, 2.0]], mat![[0.5, 1.0], [0.0, -2.0]]);
    let atom = Gaussian::new(&[1.5, -0.5], Mat::<f64>::zeros(2, 2).as_ref()).unwrap();
    let layers = [
        Layer::softmax((k.transpose() * &q).as_ref(), v.as_ref()).unwrap(),
        Layer::l2(q.as_ref(), k.as_ref(), v.as_ref()).unwrap(),
        Layer::sinkhorn(q.as_ref(), k.as_ref(), v.as_ref()).unwrap(),
    ];
    for layer in layers {
        let form = layer.affine_form(&atom).unwrap();
        assert_eq!(form.at(&[7.0, 8.0]).unwrap(), product(v.as_ref(), atom.mean_vector()));
        let path = flow(&layer, &atom, &FlowOptions::at(&[0.3]), &Unwatched).unwrap();
        assert_eq!((path.ending, path.ending_time), (Ending::Completed, 0.3));
        assert_eq!(path.last_law.covariance_matrix().norm_max(), 0.0);
    }
}

/// A score matrix whose symmetric part has these eigenvalues in a random basis, plus a rotation.
fn score_matrix_with_growths(stream: &mut Stream, growths: &[f64]) -> Mat<f64> {
    let d = growths.len();
    let basis = random_matrix(stream, d, d, 1.0).qr().compute_Q();
    let scaled = Mat::from_fn(d, d, |i, j| basis[(i, j)] * 0.5 * growths[j]);
    let skew = random_matrix(stream, d, d, 0.3);
    scaled * basis.transpose() + &skew - skew.transpose()
}

fn softmax_identity(score_matrix: &Mat<f64>) -> Layer {
    Layer::softmax(score_matrix.as_ref(), identity(score_matrix.nrows()).as_ref()).unwrap()
}

#[test]
fn the_exact_solution_equals_the_formula_with_inverses() {
    let mut stream = Stream::new(18, 0, 0);
    let start = random_gaussian(&mut stream, 3, 3);
    let score_matrix = score_matrix_with_growths(&mut stream, &[0.2, -1.0, 0.1]);
    let exact = exact_softmax_flow(score_matrix.as_ref(), &start).unwrap();
    let time = 0.8 * exact.blow_up_time().unwrap();
    let precision = start.covariance_matrix().partial_piv_lu().inverse();
    let change = (&score_matrix + score_matrix.transpose()) * faer::Scale(time);
    let expected = (precision - change).partial_piv_lu().inverse();
    let found = exact.covariance(time).unwrap();
    assert!(largest_difference(found.as_ref(), expected.as_ref()) < 1e-9 * found.norm_max());
    assert!(matches!(
        exact.covariance(1.01 * exact.blow_up_time().unwrap()),
        Err(Error::OutOfRange { what: "time", .. })
    ));
}

#[test]
fn the_flow_follows_the_exact_solution_from_full_and_singular_covariances() {
    let mut stream = Stream::new(19, 0, 0);
    for rank in [3, 2, 1] {
        let start = random_gaussian(&mut stream, 3, rank);
        let score_matrix = score_matrix_with_growths(&mut stream, &[0.4, -1.5, -0.3]);
        let exact = exact_softmax_flow(score_matrix.as_ref(), &start).unwrap();
        let end = exact.blow_up_time().map_or(2.0, |time| (0.8 * time).min(2.0));
        let path = flow(&softmax_identity(&score_matrix), &start, &FlowOptions::evenly(end, 37), &Unwatched)
            .unwrap();
        assert_eq!((path.ending, path.ending_time), (Ending::Completed, end));
        assert_eq!(path.times.len(), 38);
        for (time, law) in path.times.iter().zip(&path.laws) {
            let expected = exact.covariance(*time).unwrap();
            let gap = largest_difference(law.covariance_matrix(), expected.as_ref());
            assert!(gap < 1e-9 * expected.norm_max(), "rank {rank}, time {time}: {gap:e}");
        }
    }
}

#[test]
fn the_mean_follows_its_exact_solution_when_the_score_matrix_is_symmetric() {
    // m(t) = eᵗ (I − 2tSU)^{−1/2} m(0); here S = I and U is diagonal.
    let start = Gaussian::new(&[1.0, -2.0], identity(2).as_ref()).unwrap();
    let layer = softmax_identity(&mat![[0.3, 0.0], [0.0, -0.7]]);
    let path = flow(&layer, &start, &FlowOptions::at(&[0.5, 1.2]), &Unwatched).unwrap();
    for (&time, law) in path.times.iter().zip(&path.laws) {
        let expected =
            [time.exp() / (1.0 - 0.6 * time).sqrt(), -2.0 * time.exp() / (1.0 + 1.4 * time).sqrt()];
        assert!(largest_gap(law.mean_vector(), &expected) < 1e-8);
    }
}

#[test]
fn the_flow_blows_up_when_the_exact_solution_does() {
    let mut stream = Stream::new(20, 0, 0);
    for growths in [&[2.0][..], &[0.7, -1.0], &[1.0, 0.9, -3.0], &[1e-3, 5e-4]] {
        let start = random_gaussian(&mut stream, growths.len(), growths.len());
        let start = Gaussian::centred(start.covariance_matrix()).unwrap();
        let score_matrix = score_matrix_with_growths(&mut stream, growths);
        let expected = exact_softmax_flow(score_matrix.as_ref(), &start).unwrap().blow_up_time().unwrap();
        let options = FlowOptions::at(&[0.5 * expected, 3.0 * expected]);
        let path = flow(&softmax_identity(&score_matrix), &start, &options, &Unwatched).unwrap();
        assert_eq!(path.times, [0.5 * expected]);
        assert_eq!(path.ending, Ending::BlownUp, "{growths:?}: {}", path.sentence);
        let time = path.ending_time;
        assert!((time / expected - 1.0).abs() < 1e-8, "{growths:?}: {time} against {expected}");
        assert!(path.collapses.is_empty(), "a blow-up is not a collapse");
    }
}

#[test]
fn a_mean_that_drives_linear_attention_blows_up_at_the_time_of_the_scalar_equation() {
    // S = 0: m' = m³ from 1 blows up at 1/2.
    let layer = Layer::linear(mat![[1.0]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    let atom = Gaussian::new(&[1.0], mat![[0.0]].as_ref()).unwrap();
    let path = flow(&layer, &atom, &FlowOptions::at(&[5.0]), &Unwatched).unwrap();
    assert!(path.ending == Ending::BlownUp && (path.ending_time - 0.5).abs() < 1e-9, "{}", path.sentence);
}

#[test]
fn l2_attention_blows_up_too_when_its_keys_miss_a_direction() {
    // K sees the first coordinate only, V writes to the second only: S₁₁ stays 1, and S₁₂ obeys
    // c' = c²/(1 + 1/2), which blows up at 3/(2c).
    let (q, k, v) = (mat![[0.0, 1.0]], mat![[1.0, 0.0]], mat![[0.0, 0.0], [0.0, 1.0]]);
    let layer = Layer::l2(q.as_ref(), k.as_ref(), v.as_ref()).unwrap();
    let start = Gaussian::centred(mat![[1.0, 0.5], [0.5, 1.0]].as_ref()).unwrap();
    let path = flow(&layer, &start, &FlowOptions::at(&[1.5, 5.0]), &Unwatched).unwrap();
    assert!((path.laws[0].covariance_matrix()[(0, 1)] - 1.0).abs() < 1e-9);
    assert!(path.ending == Ending::BlownUp && (path.ending_time - 3.0).abs() < 1e-8, "{}", path.sentence);
}

#[test]
fn exponential_growth_is_not_called_a_blow_up() {
    let layer = Layer::l2(mat![[1.0]].as_ref(), mat![[1.0]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    let path = flow(&layer, &Gaussian::standard(1).unwrap(), &FlowOptions::at(&[1e3]), &Unwatched).unwrap();
    assert_eq!(path.ending, Ending::Diverged, "{}", path.sentence);
}

/// From S = 10⁹⁰ softmax attention does blow up in finite time, but size 10¹⁰⁰ comes first: nothing is promised.
#[test]
fn a_flow_that_becomes_too_large_does_not_claim_to_live_forever() {
    let start = Gaussian::centred(mat![[1e90]].as_ref()).unwrap();
    let path = flow(&softmax_identity(&mat![[1.0]]), &start, &FlowOptions::at(&[1.0]), &Unwatched).unwrap();
    assert_eq!(path.ending, Ending::Diverged, "{}", path.sentence);
    assert!(path.sentence.contains("no blow-up in finite time was seen before"), "{}", path.sentence);
}

#[test]
fn a_shrinking_direction_collapses_at_the_time_of_the_exact_solution() {
    // S(t) = diag(1/(1 + 2t), 1): the first eigenvalue passes 1e-3 at t = 499.5.
    let layer = softmax_identity(&mat![[-1.0, 0.0], [0.0, 0.0]]);
    let start = Gaussian::standard(2).unwrap();
    let mut options = FlowOptions::at(&[1e4]);
    options.collapse_threshold = 1e-3;
    let stopped = flow(&layer, &start, &options, &Unwatched).unwrap();
    assert_eq!(stopped.ending, Ending::Collapsed, "{}", stopped.sentence);
    let collapse = stopped.collapses[0];
    assert_eq!(collapse.time, stopped.ending_time);
    assert!((collapse.time / 499.5 - 1.0).abs() < 1e-6, "{}", collapse.time);
    assert_eq!(collapse.rank, 1);
    assert!(collapse.eigenvalue_ratio <= 1e-3);
    options.at_collapse = AtCollapse::Continue;
    let continued = flow(&layer, &start, &options, &Unwatched).unwrap();
    assert_eq!((continued.ending, continued.ending_time), (Ending::Completed, 1e4));
    assert_eq!(continued.collapses, stopped.collapses);
    assert!((continued.laws[0].covariance_matrix()[(0, 0)] * 20_001.0 - 1.0).abs() < 1e-6);
    let exact = exact_softmax_flow(mat![[-1.0, 0.0], [0.0, 0.0]].as_ref(), &start).unwrap();
    assert_eq!((exact.blow_up_time(), exact.limit_rank()), (None, Some(1)));
}

#[test]
fn tokens_that_all_move_to_one_point_collapse_to_rank_zero() {
    let minus = mat![[-1.0, 0.0], [0.0, -1.0]];
    let layer = Layer::sinkhorn(identity(2).as_ref(), identity(2).as_ref(), minus.as_ref()).unwrap();
    let mut options = FlowOptions::evenly(1e4, 4);
    options.collapse_threshold = 1e-3;
    let path = flow(&layer, &Gaussian::standard(2).unwrap(), &options, &Unwatched).unwrap();
    assert_eq!(path.ending, Ending::Collapsed, "{}", path.sentence);
    assert_eq!(path.collapses.last().unwrap().rank, 0);
}

#[test]
fn discrete_layers_converge_to_the_flow_at_first_order() {
    let mut stream = Stream::new(21, 0, 0);
    let (q, k) = (random_matrix(&mut stream, 2, 3, 0.5), random_matrix(&mut stream, 2, 3, 0.5));
    let v = random_matrix(&mut stream, 3, 3, 0.5);
    let u = k.transpose() * &q;
    let start = random_gaussian(&mut stream, 3, 2);
    let layers = [
        Layer::softmax(u.as_ref(), v.as_ref()).unwrap(),
        Layer::linear(u.as_ref(), v.as_ref()).unwrap(),
        Layer::l2(q.as_ref(), k.as_ref(), v.as_ref()).unwrap(),
        Layer::sinkhorn(q.as_ref(), k.as_ref(), v.as_ref()).unwrap(),
    ];
    for layer in layers {
        let path = flow(&layer, &start, &FlowOptions::at(&[0.5]), &Unwatched).unwrap();
        assert_eq!((path.ending, path.ending_time), (Ending::Completed, 0.5), "{}", layer.kind());
        let error = |count: usize| {
            let laws = depth(&start, &vec![layer.clone(); count], 0.5 / count as f64).unwrap();
            assert_eq!(laws.len(), count + 1);
            let (mean, covariance) = (laws[count].mean_vector(), laws[count].covariance_matrix());
            largest_gap(mean, path.last_law.mean_vector())
                + largest_difference(covariance, path.last_law.covariance_matrix())
        };
        let order = (error(400) / error(800)).log2();
        assert!((order - 1.0).abs() < 0.05, "{}: order {order}", layer.kind());
    }
}

#[test]
fn the_velocity_is_the_derivative_of_the_flow() {
    let mut stream = Stream::new(22, 0, 0);
    let (q, k, v) = (
        random_matrix(&mut stream, 3, 3, 0.5),
        random_matrix(&mut stream, 3, 3, 0.5),
        random_matrix(&mut stream, 3, 3, 0.5),
    );
    let start = random_gaussian(&mut stream, 3, 3);
    let layer = Layer::l2(q.as_ref(), k.as_ref(), v.as_ref()).unwrap();
    let h = 1e-4;
    let path = flow(&layer, &start, &FlowOptions::at(&[h, 2.0 * h]), &Unwatched).unwrap();
    let velocity = layer.velocity(&path.laws[0]).unwrap();
    let difference = (path.laws[1].covariance_matrix() - start.covariance_matrix()) * faer::Scale(0.5 / h);
    assert!(largest_difference(difference.as_ref(), velocity.covariance.as_ref()) < 1e-6);
}

#[test]
fn a_monitor_that_stops_gets_the_laws_completed_so_far() {
    struct StopAfter {
        asked: AtomicUsize,
        reported: AtomicUsize,
    }
    impl Monitor for StopAfter {
        fn progress(&self, completed: usize, total: usize) {
            assert_eq!(total, 1001);
            self.reported.store(completed, Ordering::Relaxed);
        }
        fn should_stop(&self) -> bool {
            self.asked.fetch_add(1, Ordering::Relaxed) >= 20
        }
    }
    let layer = softmax_identity(&mat![[-1.0]]);
    let monitor = StopAfter { asked: AtomicUsize::new(0), reported: AtomicUsize::new(0) };
    let path: Flow =
        flow(&layer, &Gaussian::standard(1).unwrap(), &FlowOptions::evenly(10.0, 1000), &monitor).unwrap();
    assert_eq!(path.steps, 20);
    assert_eq!((path.ending, path.ending_time), (Ending::Stopped, path.last_time));
    assert_eq!(path.times.len(), monitor.reported.load(Ordering::Relaxed));
    assert!(path.times.len() > 1 && path.times.len() < 1001);
    let (time, law) = (path.times[path.times.len() - 1], &path.laws[path.laws.len() - 1]);
    assert!((law.covariance_matrix()[(0, 0)] * (1.0 + 2.0 * time) - 1.0).abs() < 1e-9);
}

#[test]
fn every_stop_says_what_to_try() {
    let layer = softmax_identity(&mat![[1.0]]);
    let mut options = FlowOptions::at(&[5.0]);
    options.max_steps = 3;
    let path = flow(&layer, &Gaussian::standard(1).unwrap(), &options, &Unwatched).unwrap();
    assert_eq!((path.ending, path.steps), (Ending::OutOfSteps, 3));
    assert!(path.sentence.contains("max_steps"));
    let path = flow(&layer, &Gaussian::standard(1).unwrap(), &FlowOptions::at(&[5.0]), &Unwatched).unwrap();
    assert!(path.sentence.contains("score matrix"), "{}", path.sentence);
}

#[test]
fn shapes_that_disagree_are_named() {
    let (two, three) = (identity(2), identity(3));
    let wide = Mat::<f64>::zeros(2, 3);
    let what = |result: Result<Layer, Error>| match result {
        Err(Error::Size { what, expected, found }) => (what, expected, found),
        other => panic!("{other:?}"),
    };
    assert_eq!(what(Layer::softmax(two.as_ref(), three.as_ref())), ("score matrix (rows)", 3, 2));
    assert_eq!(what(Layer::linear(wide.as_ref(), two.as_ref())), ("score matrix (columns)", 2, 3));
    assert_eq!(what(Layer::softmax(two.as_ref(), wide.as_ref())), ("value matrix (columns)", 2, 3));
    assert_eq!(what(Layer::l2(wide.as_ref(), three.as_ref(), three.as_ref())), ("key matrix (rows)", 2, 3));
    assert_eq!(
        what(Layer::sinkhorn(three.as_ref(), wide.as_ref(), two.as_ref())),
        ("query matrix (columns)", 2, 3)
    );
    let layer = softmax_identity(&three);
    let tokens = Gaussian::standard(2).unwrap();
    assert!(matches!(layer.affine_form(&tokens), Err(Error::Size { expected: 3, found: 2, .. })));
    assert!(matches!(layer.step(&tokens, 0.1), Err(Error::Size { .. })));
    assert!(matches!(depth(&tokens, std::slice::from_ref(&layer), 0.1), Err(Error::Size { .. })));
    assert!(matches!(
        flow(&layer, &tokens, &FlowOptions::at(&[1.0]), &Unwatched),
        Err(Error::Size { expected: 3, found: 2, .. })
    ));
    assert!(matches!(exact_softmax_flow(three.as_ref(), &tokens), Err(Error::Size { .. })));
    let infinite = mat![[f64::INFINITY]];
    assert!(matches!(Layer::softmax(infinite.as_ref(), mat![[1.0]].as_ref()), Err(Error::NotFinite { .. })));
    let empty = Mat::<f64>::zeros(0, 0);
    assert!(matches!(Layer::softmax(empty.as_ref(), empty.as_ref()), Err(Error::Empty { .. })));
}

#[test]
fn flow_options_that_make_no_sense_are_errors() {
    let layer = softmax_identity(&mat![[1.0]]);
    let start = Gaussian::standard(1).unwrap();
    let run = |options: FlowOptions| flow(&layer, &start, &options, &Unwatched).err();
    assert!(matches!(run(FlowOptions::at(&[])), Some(Error::Empty { .. })));
    assert!(matches!(run(FlowOptions::at(&[-1.0])), Some(Error::OutOfRange { .. })));
    assert!(matches!(run(FlowOptions::at(&[0.0, f64::NAN])), Some(Error::NotFinite { .. })));
    assert!(matches!(run(FlowOptions::evenly(f64::NAN, 3)), Some(Error::NotFinite { .. })));
    let error = run(FlowOptions::evenly(-1.0, 3));
    assert!(matches!(error, Some(Error::OutOfRange { what: "the end time", value: -1.0, .. })), "{error:?}");
    assert_eq!(FlowOptions::evenly(1.0, usize::MAX).save_times.len(), 1_000_001);
    assert_eq!(FlowOptions::evenly(1.0, 0).save_times, [0.0, 1.0]);
    for collapse_threshold in [0.0, 1.0, f64::NAN] {
        let options = FlowOptions { collapse_threshold, ..FlowOptions::at(&[1.0]) };
        assert!(matches!(run(options), Some(Error::OutOfRange { what: "the collapse threshold", .. })));
    }
    let options = FlowOptions { absolute_tolerance: -1.0, ..FlowOptions::at(&[1.0]) };
    assert!(matches!(run(options), Some(Error::OutOfRange { .. })));
}

/// A number of any sign and any size that a user may hand in, often zero.
fn entry() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -3.0..3.0f64,
        1 => Just(0.0),
        1 => (-1.0..1.0f64, -160..160i32).prop_map(|(mantissa, exponent)| mantissa * 10f64.powi(exponent)),
    ]
}

fn matrix(rows: usize, columns: usize) -> impl Strategy<Value = Mat<f64>> {
    proptest::collection::vec(entry(), rows * columns)
        .prop_map(move |entries| Mat::from_fn(rows, columns, |i, j| entries[i * columns + j]))
}

fn assert_finite(law: &Gaussian) {
    assert!(law.mean_vector().iter().all(|entry| entry.is_finite()));
    assert!(law.covariance_matrix().norm_max().is_finite());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(23),
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_input_makes_a_layer_or_a_flow_panic_or_hand_out_nan(
        d in 1..4usize,
        sizes in (0..4usize, 1..4usize),
        kind in 0..4usize,
        entries in proptest::collection::vec(entry(), 64),
        end in 0.0..3.0f64,
    ) {
        let (rank, k) = sizes;
        let mut source = entries.iter().copied().cycle();
        let mut take = |rows: usize, columns: usize| Mat::from_fn(rows, columns, |_, _| source.next().unwrap());
        let (q, k, v, u) = (take(k, d), take(k, d), take(d, d), take(d, d));
        let root = take(d, rank);
        let mean: Vec<f64> = take(d, 1).col_as_slice(0).to_vec();
        let Ok(start) = Gaussian::new(&mean, (&root * root.transpose()).as_ref()) else { return Ok(()) };
        let layer = match kind {
            0 => Layer::softmax(u.as_ref(), v.as_ref()),
            1 => Layer::linear(u.as_ref(), v.as_ref()),
            2 => Layer::l2(q.as_ref(), k.as_ref(), v.as_ref()),
            _ => Layer::sinkhorn(q.as_ref(), k.as_ref(), v.as_ref()),
        };
        let Ok(layer) = layer else { return Ok(()) };
        if let Ok(form) = layer.affine_form(&start) {
            prop_assert!(form.offset.iter().all(|entry| entry.is_finite()));
            prop_assert!(form.matrix.norm_max().is_finite());
        }
        if let Ok(velocity) = layer.velocity(&start) {
            prop_assert!(velocity.covariance.norm_max().is_finite());
        }
        for law in [layer.step(&start, 0.1), layer.push_forward(&start)].into_iter().flatten() {
            assert_finite(&law);
        }
        if let Ok(exact) = exact_softmax_flow(u.as_ref(), &start)
            && let Ok(covariance) = exact.covariance(end)
        {
            prop_assert!(covariance.norm_max().is_finite());
        }
        let options = FlowOptions { max_steps: 300, ..FlowOptions::evenly(end, 5) };
        // Only the start may fail: what goes wrong later is a reason to stop.
        if layer.velocity(&start).is_err() || linalg::dot(&mean, &mean) > 1e100 || root.norm_l2() > 1e50 {
            return Ok(());
        }
        let result = flow(&layer, &start, &options, &Unwatched);
        if let Err(error) = &result {
            prop_assert!(error.to_string().contains("at the start"), "{}", error);
        }
        if let Ok(path) = result {
            prop_assert_eq!(path.times.len(), path.laws.len());
            path.laws.iter().chain([&path.last_law]).for_each(assert_finite);
            let text = path.sentence;
            prop_assert!(!text.contains("NaN") && !text.contains("inf "), "{}", text);
        }
    }

    #[test]
    fn a_layer_scaled_by_any_finite_matrix_keeps_the_covariance_positive(root in matrix(3, 3), v in matrix(3, 3)) {
        let Ok(start) = Gaussian::centred((&root * root.transpose()).as_ref()) else { return Ok(()) };
        let layer = Layer::sinkhorn(identity(3).as_ref(), identity(3).as_ref(), v.as_ref()).unwrap();
        match layer.step(&start, 1.0) {
            Ok(law) => assert_finite(&law),
            Err(error) => prop_assert!(matches!(error, Error::Overflow { .. }), "{}", error),
        }
    }
}
