//! Exact risks of in-context regression: against each other, closed forms, first orders in 1/L and simulation.

mod common;

use common::length;
use esscher_core::regression::{
    Block, LinearRegression, PointAverage, RegressionHead, Response, RiskAverage, SpectralTask,
};
use esscher_core::{Mat, mat};

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

/// Coefficients of 1/L in mathematics.md, three figures after the point.
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
        let error = found.risk.absolute_error();
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
