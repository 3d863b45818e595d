//! Exact risks of in-context regression: against each other, closed forms, first orders in 1/L and simulation.

use crate::common::length;
use esscher_core::numerics::Stream;
use esscher_core::regression::tasks::LinearTask;
use esscher_core::regression::{
    AttentionKind, Block, Landscape, LayerLandscape, LinearAttention, LinearRegression, PointAverage,
    RegressionHead, RegressionLayer, Response, RiskAverage, RiskOptions, RiskSimulation, SpectralGroup,
    SpectralLandscape, SpectralTask, settle,
};
use esscher_core::{Accuracy, Mat, Unwatched, mat};
use std::sync::Arc;

fn skew_task(noise: f64) -> LinearRegression {
    LinearRegression::new(mat![[1.0, 0.3, 0.0], [0.3, 0.7, -0.2], [0.0, -0.2, 0.5]].as_ref())
        .unwrap()
        .with_query_covariance(mat![[0.8, 0.0, 0.1], [0.0, 1.1, 0.2], [0.1, 0.2, 0.4]].as_ref())
        .unwrap()
        .with_noise(noise)
        .unwrap()
        .with_prior(1.4)
        .unwrap()
}

fn responses() -> Vec<Response> {
    let mut all = vec![Response::infinite(), Response::linear(length(7))];
    all.extend([1, 2, 7, 1000, 1_000_000_000].map(|tokens| Response::softmax(length(tokens))));
    all
}

#[test]
fn block_gradients_are_the_derivatives_of_the_risk() {
    let task = skew_task(0.3);
    let matrix = mat![[0.5, -0.2, 0.1], [0.3, 0.6, 0.0], [-0.1, 0.2, 0.9]];
    let gain = 1.3;
    for response in responses() {
        let found = Block::new(matrix.as_ref(), gain).unwrap().risk_and_gradient(&task, &response).unwrap();
        let risk = |matrix: &Mat<f64>, gain: f64| {
            Block::new(matrix.as_ref(), gain).unwrap().risk(&task, &response).unwrap()
        };
        assert!((found.risk / risk(&matrix, gain) - 1.0).abs() < 1e-13);
        let step = 1e-4;
        // Central differences err by step² and rounding/step, both about 1e-8.
        let difference = (risk(&matrix, gain + step) - risk(&matrix, gain - step)) / (2.0 * step);
        assert!((found.gain - difference).abs() < 1e-7, "{response}: {} {difference}", found.gain);
        for i in 0..3 {
            for j in 0..3 {
                let moved = |by: f64| {
                    let mut moved = matrix.clone();
                    moved[(i, j)] += by;
                    risk(&moved, gain)
                };
                let difference = (moved(step) - moved(-step)) / (2.0 * step);
                let entry = found.matrix[(i, j)];
                assert!((entry - difference).abs() < 1e-7, "{response} [{i}, {j}]: {entry} {difference}");
            }
        }
    }
}

#[test]
fn spectral_form_is_the_block_form() {
    let task = LinearRegression::new(LinearRegression::spiked(4, 1.5).unwrap().as_ref())
        .unwrap()
        .with_noise(0.2)
        .unwrap();
    let (spectral, vectors) = SpectralTask::new(&task).unwrap();
    assert_eq!(spectral.groups().iter().map(|group| group.multiplicity).collect::<Vec<_>>(), [3, 1]);
    let entries = [0.8, 0.3];
    let block = spectral.block(vectors.as_ref(), &entries, 1.7).unwrap();
    let back = spectral.entries_of(vectors.as_ref(), &block).unwrap();
    assert!(back.iter().zip(entries).all(|(a, b)| (a - b).abs() < 1e-14));
    for response in responses() {
        let whole = block.risk_and_gradient(&task, &response).unwrap();
        let found = spectral.risk_and_gradient(&entries, 1.7, &response).unwrap();
        assert!((found.risk / whole.risk - 1.0).abs() < 1e-11, "{response}: {} {}", found.risk, whole.risk);
        assert!((found.gain - whole.gain).abs() < 1e-10);
        let rotated = vectors.transpose() * &whole.matrix * &vectors;
        for (i, group) in [(0, 0), (1, 0), (2, 0), (3, 1)] {
            assert!(
                (rotated[(i, i)] - found.entries[group]).abs() < 1e-10,
                "{response}: {rotated:?} {found:?}"
            );
        }
    }
}

/// Known coefficients of 1/L, three figures after the point.
#[test]
fn first_order_in_the_inverse_length() {
    let task = SpectralTask::isotropic(6, 0.5, 1.0).unwrap();
    let longest = Response::softmax(length(1_000_000_000));
    for (entry, gain, coefficient) in [(0.25, 4.0, 82.739), (0.3, 3.0, 59.619), (0.2, 4.0, 70.799)] {
        let limit = task.risk_and_gradient(&[entry], gain, &Response::infinite()).unwrap().risk;
        let found = (task.risk_and_gradient(&[entry], gain, &longest).unwrap().risk - limit) * 1e9;
        assert!((found - coefficient).abs() < 2e-3, "{found} {coefficient}");
    }
}

/// One prompt token is copied whatever the scores: R₁ = ½ E (b y₁ − ⟨w, x_q⟩)².
#[test]
fn a_single_token_is_copied() {
    let task = skew_task(0.3);
    let block = Block::new(Mat::<f64>::identity(3, 3).as_ref(), 0.9).unwrap();
    let found = block.risk(&task, &Response::softmax(length(1))).unwrap();
    let (trace, query_trace) = (1.0 + 0.7 + 0.5, 0.8 + 1.1 + 0.4);
    let expected = 0.5 * (0.81 * (1.4 * trace + 0.3) + 1.4 * query_trace + 0.3);
    assert!((found - expected).abs() < 1e-12, "{found} {expected}");
}

/// Another road to the same number in the isotropic case: the radius of x_q on a fine uniform grid, the
/// moments of the softmax weights computed at each radius, nothing tabulated.
#[test]
fn isotropic_risk_by_plain_quadrature_of_the_radius() {
    use esscher_core::softmax_weights::WeightMoments;
    for (dimension, entry, gain) in [(1u32, 0.9, 1.1), (3, 0.7, 1.5), (5, 1.3, 0.7)] {
        let task = SpectralTask::isotropic(dimension, 0.4, 1.0).unwrap();
        let d = f64::from(dimension);
        let all = [1, 2, 10, 1000, 1_000_000, 1_000_000_000].map(length);
        let mut expected = [0.0; 6];
        // Simpson's rule in r; the density of the radius is r^{d−1} e^{−r²/2} up to its norm.
        let (steps, end) = (300, 12.0);
        let mut norm = 0.0;
        for k in 0..=steps {
            let r = end * f64::from(k) / f64::from(steps);
            let simpson = if k == 0 || k == steps { 1.0 } else { 2.0 + 2.0 * f64::from(k % 2) };
            let weight = simpson * r.powf(d - 1.0) * (-0.5 * r * r).exp();
            norm += weight;
            let moments = WeightMoments::at(entry * r, &all).unwrap();
            for (expected, moments) in expected.iter_mut().zip(&moments) {
                let shrinkage = moments.shrinkage();
                let (a2, ay) = (gain * gain * entry * entry * r * r, gain * entry * r * r);
                let risk = shrinkage.second() * a2 - 2.0 * shrinkage.first() * ay
                    + r * r
                    + shrinkage.first_deficit * gain * gain * (d + 0.4);
                *expected += weight * 0.5 * risk;
            }
        }
        for (length, expected) in all.iter().zip(expected) {
            let expected = expected / norm + 0.2;
            let found = task.risk_and_gradient(&[entry], gain, &Response::softmax(*length)).unwrap().risk;
            // 1e-7 is what is promised; both roads reach about 1e-10.
            assert!((found / expected - 1.0).abs() < 1e-9, "d = {d}, {length:?}: {found} {expected}");
        }
    }
}

fn skew_head(scale: f64) -> RegressionHead {
    let score =
        Mat::from_fn(4, 4, |i, j| scale * (0.5 * ((i * 4 + j) as f64).sin() + f64::from(u8::from(i == j))));
    RegressionHead::new(score.as_ref(), &[0.2, -0.3, 0.1, 0.9]).unwrap()
}

#[test]
fn full_gradients_are_the_derivatives_of_the_risk() {
    let task = skew_task(0.3);
    let average = RiskAverage::new(&task, PointAverage { points: 128, randomisations: 2, seed: 1 }).unwrap();
    for response in responses() {
        let head = skew_head(0.5);
        let risk = |score: &Mat<f64>, value: &[f64]| {
            let head = RegressionHead::new(score.as_ref(), value).unwrap();
            average.evaluate(&head, &response).unwrap().risk.value
        };
        let found = average.evaluate(&head, &response).unwrap();
        let step = 1e-4;
        for i in 0..4 {
            let moved = |by: f64| {
                let mut value = head.value().to_vec();
                value[i] += by;
                risk(&head.score().to_owned(), &value)
            };
            let difference = (moved(step) - moved(-step)) / (2.0 * step);
            assert!(
                (found.value[i] - difference).abs() < 1e-7,
                "{response}: {} {difference}",
                found.value[i]
            );
            for j in 0..4 {
                let moved = |by: f64| {
                    let mut score = head.score().to_owned();
                    score[(i, j)] += by;
                    risk(&score, head.value())
                };
                let difference = (moved(step) - moved(-step)) / (2.0 * step);
                let entry = found.score[(i, j)];
                // The third derivative of a quartic in U is larger: 1e-6 of the entry is what differences give.
                assert!(
                    (entry - difference).abs() < 1e-6 * (1.0 + entry.abs()),
                    "{response} [{i}, {j}]: {entry} {difference}"
                );
            }
        }
    }
}

/// Points agree with the block form, which has none.
#[test]
fn full_form_contains_the_block_form() {
    let task = skew_task(0.3);
    let block = Block::new(mat![[0.5, -0.2, 0.1], [0.3, 0.6, 0.0], [-0.1, 0.2, 0.9]].as_ref(), 1.3).unwrap();
    let head = block.head().unwrap();
    let average = RiskAverage::new(&task, PointAverage::default()).unwrap();
    for response in responses() {
        let exact = block.risk_and_gradient(&task, &response).unwrap();
        let found = average.evaluate(&head, &response).unwrap();
        // Six standard errors of eight randomisations (Student's with 7 degrees: one in 2000), and rounding.
        let allowed = |error: f64| 6.0 * error + 1e-11;
        let error = found.risk.error;
        assert!(
            (found.risk.value - exact.risk).abs() < allowed(error),
            "{response}: {:?} {}",
            found.risk,
            exact.risk
        );
        let mut squares = (found.value[3] - exact.gain).powi(2);
        for i in 0..3 {
            for j in 0..3 {
                squares += (found.score[(i, j)] - exact.matrix[(i, j)]).powi(2);
            }
        }
        assert!(
            squares.sqrt() < allowed(found.gradient_error),
            "{response}: {} {}",
            squares.sqrt(),
            found.gradient_error
        );
    }
}

/// Nothing in this task or this head equals anything else.
fn general(dimension: usize) -> (LinearRegression, RegressionHead) {
    let covariance = Mat::from_fn(dimension, dimension, |i, j| {
        0.4 * 0.5f64.powi(i.abs_diff(j) as i32) + if i == j { 0.3 + 0.1 * i as f64 } else { 0.0 }
    });
    let query = Mat::from_fn(dimension, dimension, |i, j| {
        0.2 * 0.3f64.powi(i.abs_diff(j) as i32) + if i == j { 0.6 - 0.04 * i as f64 } else { 0.0 }
    });
    let task = LinearRegression::new(covariance.as_ref())
        .and_then(|task| task.with_query_covariance(query.as_ref()))
        .and_then(|task| task.with_noise(0.2))
        .and_then(|task| task.with_query_noise(0.1))
        .and_then(|task| task.with_prior(0.8))
        .unwrap();
    let size = dimension + 1;
    let scale = 0.5 / (dimension as f64).sqrt();
    let score = Mat::from_fn(size, size, |i, j| {
        scale * (((3 * i + 5 * j) as f64).sin() + if i == j { 1.0 } else { 0.0 })
    });
    let value: Vec<f64> =
        (0..size).map(|i| if i == dimension { 0.9 } else { 0.3 * (i as f64).cos() }).collect();
    (task, RegressionHead::new(score.as_ref(), &value).unwrap())
}

/// Brute force: prompts drawn, attention computed, gradients by the chain rule. Five standard errors of both sides
/// for the risk and for every entry of the gradient (at most 91 entries and 9 cases: false alarm below 1e-3).
#[test]
fn exact_risks_and_gradients_are_those_of_simulated_prompts() {
    for (dimension, tokens, attention) in [
        (1, 1, AttentionKind::Softmax),
        (1, 6, AttentionKind::Softmax),
        (1, 100, AttentionKind::Softmax),
        (3, 4, AttentionKind::Softmax),
        (3, 50, AttentionKind::Softmax),
        (3, 5, AttentionKind::Linear),
        (8, 3, AttentionKind::Softmax),
        (8, 30, AttentionKind::Softmax),
        (8, 10, AttentionKind::Linear),
    ] {
        let (task, head) = general(dimension);
        let response = match attention {
            AttentionKind::Softmax => Response::softmax(length(tokens)),
            AttentionKind::Linear => Response::linear(length(tokens)),
        };
        let points = PointAverage { points: 1 << 12, ..PointAverage::default() };
        let exact = RiskAverage::new(&task, points).unwrap().evaluate(&head, &response).unwrap();
        let layer = RegressionLayer::heads(attention, &[head]).unwrap();
        let options = RiskOptions { prompts: 40_000, gradient: true, seed: 11, ..RiskOptions::default() };
        let simulation = RiskSimulation::new(
            Arc::new(LinearTask::gaussian(&task).unwrap()),
            layer,
            tokens as usize,
            options,
        )
        .unwrap();
        let found = simulation.finish(&Unwatched).unwrap();
        let (mean, error) = (found.risk.mean().unwrap(), found.risk.standard_error().unwrap());
        let allowed = 5.0 * error.hypot(exact.risk.error);
        println!("d = {dimension}, L = {tokens}: {:.5} against {mean:.5} ± {error:.5}", exact.risk.value);
        assert!(
            (mean - exact.risk.value).abs() < allowed,
            "d = {dimension}, L = {tokens}: {mean} {:?}",
            exact.risk
        );
        let rows = exact.score.row_iter().flat_map(|row| row.iter().copied().collect::<Vec<_>>());
        let (means, errors) = (found.gradient.mean(), found.gradient.standard_error().unwrap());
        for (index, entry) in rows.chain(exact.value.iter().copied()).enumerate() {
            // The gradient's quasi-Monte-Carlo error is stated for all entries together.
            let allowed = 5.0 * errors[index].hypot(exact.gradient_error) + 1e-12;
            assert!(
                (means[index] - entry).abs() < allowed,
                "{index}: {} ± {} {entry}",
                means[index],
                errors[index]
            );
        }
    }
}

/// Everything by points, against the closed forms: infinite prompts and linear attention, risk and gradient.
#[test]
fn closed_forms_are_what_points_give() {
    for dimension in [1, 3] {
        let (task, head) = general(dimension);
        let average =
            RiskAverage::new(&task, PointAverage { points: 1 << 13, ..PointAverage::default() }).unwrap();
        for response in [Response::infinite(), Response::linear(length(1)), Response::linear(length(9))] {
            let (exact, found) = (
                average.evaluate(&head, &response).unwrap(),
                average.evaluate_by_points(&head, &response).unwrap(),
            );
            assert!(exact.risk.accuracy == Accuracy::Exact);
            // Six standard errors of eight randomisations (Student's with 7 degrees: one in 2000).
            let error = found.risk.error;
            assert!(
                (found.risk.value - exact.risk.value).abs() < 6.0 * error,
                "{response}: {:?} {:?}",
                found.risk,
                exact.risk
            );
            assert!(error < 0.01 * exact.risk.value);
            let mut squares: f64 = exact.value.iter().zip(&found.value).map(|(a, b)| (a - b).powi(2)).sum();
            for i in 0..=dimension {
                for j in 0..=dimension {
                    squares += (exact.score[(i, j)] - found.score[(i, j)]).powi(2);
                }
            }
            assert!(
                squares.sqrt() < 6.0 * found.gradient_error,
                "{response}: {} {}",
                squares.sqrt(),
                found.gradient_error
            );
        }
    }
}

/// d = 1 at the limit of the infinite flow, where 2λ = 2 and plain points over x_q would miss the tail by factors.
#[test]
fn heavy_tails_of_the_query_are_integrated() {
    let task = LinearRegression::isotropic(1).unwrap().with_noise(0.1).unwrap();
    let block = Block::new(mat![[1.0]].as_ref(), 1.0).unwrap();
    let average = RiskAverage::new(&task, PointAverage::default()).unwrap();
    for tokens in [1_000_000, 1_000_000_000, 1_000_000_000_000] {
        let response = Response::softmax(length(tokens));
        let exact = block.risk(&task, &response).unwrap() - task.noise_floor();
        let found = average.evaluate(&block.head().unwrap(), &response).unwrap();
        let excess = found.risk.value - task.noise_floor();
        // The infinite part is zero here up to rounding; w enters by w² alone, which the points know to 1e-4.
        assert!((excess / exact - 1.0).abs() < 1e-3, "{tokens}: {excess} {exact}");
        assert!((excess - exact).abs() < 6.0 * found.risk.error + 1e-14);
    }
}

/// L (∇R_L − ∇R_∞) at a billion tokens against differences of the closed first-order coefficient.
#[test]
fn gradients_have_their_first_order_too() {
    let task = SpectralTask::isotropic(6, 0.5, 1.0).unwrap();
    let tokens = 1_000_000_000;
    for (entry, gain) in [(0.25, 4.0), (0.3, 3.0), (0.2, 4.0)] {
        let at = |response: Response| task.risk_and_gradient(&[entry], gain, &response).unwrap();
        let (finite, infinite) = (at(Response::softmax(length(tokens))), at(Response::infinite()));
        let order = |entry: f64, gain: f64| task.first_order(&[entry], gain).unwrap().unwrap();
        let by_gain = (order(entry, gain + 1e-4) - order(entry, gain - 1e-4)) / 2e-4;
        let by_entry = (order(entry + 1e-4, gain) - order(entry - 1e-4, gain)) / 2e-4 / 6.0;
        let found_gain = (finite.gain - infinite.gain) * tokens as f64;
        let found_entry = (finite.entries[0] - infinite.entries[0]) * tokens as f64;
        // Rounding of the gradients (1e-15) times L, differences, and the second order in 1/L.
        assert!((found_gain / by_gain - 1.0).abs() < 1e-4, "{found_gain} {by_gain}");
        assert!((found_entry / by_entry - 1.0).abs() < 1e-4, "{found_entry} {by_entry}");
    }
}

/// Spiked covariances at L = 1, where the exact risk is known: one large eigenvalue over many small ones.
#[test]
fn spiked_covariances_keep_their_digits() {
    for (dimension, strength) in [(100, 4.0), (1000, 3.0), (1000, 9.0)] {
        let group = |eigenvalue: f64, multiplicity| SpectralGroup {
            eigenvalue,
            query_eigenvalue: eigenvalue,
            multiplicity,
        };
        let task =
            SpectralTask::from_groups(&[group(1.0, dimension - 1), group(1.0 + strength, 1)], 0.5, 1.0)
                .unwrap();
        let start = task.initial(0.5).unwrap();
        let found =
            task.risk_and_gradient(&start[..2], start[2], &Response::softmax(length(1))).unwrap().risk;
        let trace = f64::from(dimension) + strength;
        let expected = 0.5 * (0.25 * (trace + 0.5) + trace + 0.5);
        assert!((found / expected - 1.0).abs() < 1e-10, "{dimension}, {strength}: {found} {expected}");
    }
}

/// Linear attention has a closed form of its own (Zhang et al.): the response (1, 1 + 1/L, σ/L) must give the same.
#[test]
fn the_linear_response_is_the_closed_form() {
    let task = skew_task(0.3);
    let block = Block::new(mat![[0.5, -0.2, 0.1], [0.3, 0.6, 0.0], [-0.1, 0.2, 0.9]].as_ref(), 1.3).unwrap();
    for tokens in [1, 5, 1000] {
        let exact = LinearAttention::new(&task, length(tokens)).unwrap().block_gradient(&block).unwrap();
        let found = block.risk_and_gradient(&task, &Response::linear(length(tokens))).unwrap();
        assert!((found.risk / exact.risk - 1.0).abs() < 1e-13, "{} {}", found.risk, exact.risk);
        assert!((found.gain - exact.gain).abs() < 1e-12 * exact.norm());
        for i in 0..3 {
            for j in 0..3 {
                assert!((found.matrix[(i, j)] - exact.matrix[(i, j)]).abs() < 1e-12 * exact.norm());
            }
        }
    }
}

/// Two opposite heads simulated as two heads that share the prompt, against the one exact response of the pair.
#[test]
fn opposite_heads_are_exact_and_cancel_most_of_the_finite_length() {
    let task = LinearRegression::isotropic(3).unwrap().with_noise(0.2).unwrap();
    let (entry, gain, tokens) = (0.6, 1.4, 20);
    let spectral = SpectralTask::new(&task).unwrap().0;
    let pair = spectral.risk_and_gradient(&[entry], gain, &Response::opposite_heads(length(tokens))).unwrap();
    let head = |sign: f64| {
        let matrix = Mat::from_fn(3, 3, |i, j| if i == j { sign * entry } else { 0.0 });
        RegressionHead::block(matrix.as_ref(), 0.5 * sign * gain).unwrap()
    };
    let layer = RegressionLayer::heads(AttentionKind::Softmax, &[head(1.0), head(-1.0)]).unwrap();
    let options = RiskOptions { prompts: 100_000, seed: 5, ..RiskOptions::default() };
    let simulation =
        RiskSimulation::new(Arc::new(LinearTask::gaussian(&task).unwrap()), layer, tokens as usize, options)
            .unwrap();
    let found = simulation.finish(&Unwatched).unwrap().risk;
    let (mean, error) = (found.mean().unwrap(), found.standard_error().unwrap());
    assert!((mean - pair.risk).abs() < 5.0 * error, "{mean} ± {error}, {}", pair.risk);
    // Gradients of the pair by differences.
    let risk = |entry: f64, gain: f64| {
        spectral.risk_and_gradient(&[entry], gain, &Response::opposite_heads(length(tokens))).unwrap().risk
    };
    let by_gain = (risk(entry, gain + 1e-4) - risk(entry, gain - 1e-4)) / 2e-4;
    let by_entry = (risk(entry + 1e-4, gain) - risk(entry - 1e-4, gain)) / 2e-4;
    assert!((pair.gain - by_gain).abs() < 1e-6);
    // An entry of one direction of three.
    assert!((3.0 * pair.entries[0] - by_entry).abs() < 1e-6);

    // What finite length adds: softmax far more than linear attention, the pair about as much as linear attention.
    for tokens in [100, 10_000, 1_000_000] {
        let (entries, gain) =
            SpectralTask::isotropic(3, 0.2, 1.0).map(|task| (task.valley(3.0).unwrap(), 3.0)).unwrap();
        let excess = |response: Response| {
            spectral.risk_and_gradient(&entries, gain, &response).unwrap().risk - spectral.noise_floor()
        };
        let softmax = excess(Response::softmax(length(tokens)));
        let linear = excess(Response::linear(length(tokens)));
        let pair = excess(Response::opposite_heads(length(tokens)));
        println!("L = {tokens}: softmax {softmax:.3e}, pair {pair:.3e}, linear {linear:.3e}");
        assert!(pair < 0.3 * softmax && (pair / linear - 1.0).abs() < 0.25);
    }
}

/// Q, K, V, O with exact risk: the chain rule against differences, and the same risk as their (U, v).
#[test]
fn separate_projections_have_right_exact_gradients() {
    let (task, _) = general(2);
    let average = RiskAverage::new(&task, PointAverage { points: 64, randomisations: 2, seed: 1 }).unwrap();
    let layer =
        RegressionLayer::projections_at_random(AttentionKind::Softmax, 2, &mut Stream::new(7, 0, 0)).unwrap();
    let landscape = LayerLandscape::new(average.clone(), Response::softmax(length(9)), &layer).unwrap();
    let parameters = layer.parameters().to_vec();
    let mut gradient = vec![0.0; parameters.len()];
    let risk = landscape.slope(&parameters, &mut gradient).unwrap();
    let head = &layer.effective_heads().unwrap()[0];
    let direct = average.evaluate(head, &Response::softmax(length(9))).unwrap();
    assert_eq!(risk, direct.risk.value);
    for index in 0..parameters.len() {
        let moved = |by: f64| {
            let mut moved = parameters.clone();
            moved[index] += by;
            landscape.slope(&moved, &mut vec![0.0; parameters.len()]).unwrap()
        };
        let difference = (moved(1e-4) - moved(-1e-4)) / 2e-4;
        assert!((gradient[index] - difference).abs() < 1e-7, "{index}: {} {difference}", gradient[index]);
    }
    let two = RegressionLayer::heads(AttentionKind::Softmax, &[head.clone(), head.clone()]).unwrap();
    assert!(LayerLandscape::new(average, Response::infinite(), &two).is_err());
}

/// What leaves the doubles or makes no sense is refused, not handed out.
#[test]
fn valleys_and_settling_refuse_what_they_cannot_answer() {
    let uneven = LinearRegression::new(mat![[1.0, 0.0], [0.0, 0.5]].as_ref()).unwrap();
    let (task, _) = SpectralTask::new(&uneven).unwrap();
    for gain in [5e-324, 1e-308, 0.0, f64::NAN] {
        assert!(task.valley(gain).is_err(), "{gain}");
    }
    let told = task.infinite_limit(1e308).unwrap_err().to_string();
    assert!(told.contains("underflows"), "{told}");
    for gain in [f64::NAN, f64::INFINITY] {
        assert!(task.first_order(&[0.1, 0.2], gain).is_err());
    }
    let landscape = SpectralLandscape { task, response: Response::softmax(length(100)) };
    for stationary in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(settle(&landscape, &[0.3, 0.3, 0.5], stationary).is_err(), "{stationary}");
    }
}
